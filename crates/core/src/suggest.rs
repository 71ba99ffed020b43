//! "Did you mean": the known name most similar to a mistyped one, or the known names that contain it.

use crate::fault::{Remedies, Remedy};

/// Longest name for which similar names are suggested: time and memory grow with the product of both lengths.
const LONGEST: usize = 100;

const LISTED: usize = 12;

/// The candidate most similar to `name`, if any is similar enough.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let is_short = |name: &str| name.len() <= LONGEST;
    let wanted = is_short(name).then(|| normal(name))?;
    candidates
        .into_iter()
        .filter(|candidate| is_short(candidate))
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&wanted, &normal(candidate)), candidate))
        .filter(|(likeness, candidate)| *likeness >= 0.5 && is_related(name, candidate))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The letters before the first digit or dash, in lower case.
fn family(name: &str) -> String {
    name.chars().take_while(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect()
}

/// Whether families are alike: "dit-xl" is no "gpt2-xl".
fn is_related(wanted: &str, candidate: &str) -> bool {
    let (wanted, candidate) = (family(wanted), family(candidate));
    let common = wanted.chars().count().min(candidate.chars().count());
    let start = |name: &str| name.chars().take(common.max(1)).collect::<String>();
    strsim::normalized_damerau_levenshtein(&start(&wanted), &start(&candidate)) >= 0.5
}

/// A similar candidate, if there is one, and `otherwise`.
pub fn remedy<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<Remedies>,
) -> Remedies {
    meant(nearest(name, candidates), otherwise)
}

fn meant(name: Option<&str>, otherwise: impl Into<Remedies>) -> Remedies {
    let meant = name.map(|name| Remedy::DidYouMean { name: name.to_owned() });
    meant.map(Remedies::from).unwrap_or_default().or(otherwise)
}

/// The candidates that contain `name`, as "a100-sxm4-80gb" contains "a100", or whose family it names, as "vit-large";
/// without any, as [`remedy`].
pub fn variants<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<Remedies>,
) -> Remedies {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let wanted = normal(name);
    let like = |candidate: &&str| wanted.len() > 1 && normal(candidate).contains(&wanted);
    let mut found: Vec<&str> = candidates.iter().copied().filter(like).collect();
    if found.is_empty() && nearest(name, candidates.iter().copied()).is_none() {
        let own = family(name);
        found = candidates.iter().copied().filter(|other| own.len() > 1 && family(other) == own).collect();
    }
    match found[..] {
        [] => remedy(name, candidates, otherwise),
        [only] => meant(Some(only), otherwise),
        _ if found.len() <= LISTED => format!("use one of {}", found.join(", ")).into(),
        _ => otherwise.into(),
    }
}

/// Letters and digits of a name, in lower case.
pub fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
