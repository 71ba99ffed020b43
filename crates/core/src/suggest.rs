//! "Did you mean": the known name most similar to a mistyped one.

/// Letters beyond which nothing is suggested: the comparison takes time and memory with the product of both lengths.
const LONGEST: usize = 100;

/// The candidate most similar to `name`, if any is similar enough.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let is_short = |name: &str| name.len() <= LONGEST;
    let wanted = is_short(name).then(|| normal(name))?;
    candidates
        .into_iter()
        .filter(|candidate| is_short(candidate))
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&wanted, &normal(candidate)), candidate))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// "Did you mean `x`?" if a candidate is similar, and `otherwise` if not.
pub fn remedy<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, otherwise: &str) -> String {
    match nearest(name, candidates) {
        Some(candidate) => format!("did you mean \"{candidate}\"? {otherwise}"),
        None => otherwise.to_owned(),
    }
}

/// Letters and digits of a name, in lower case.
pub(crate) fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let zoo = ["vgg16", "vgg19", "resnet50", "alexnet"];
        assert_eq!(nearest("VGG-16", zoo), Some("vgg16"));
        assert_eq!(nearest("resnet5", zoo), Some("resnet50"));
        assert_eq!(nearest("transformer-xl", zoo), None);
    }

    /// Compared letter by letter, these two would take 80 TB.
    #[test]
    fn long_names_are_compared_with_nothing() {
        let long = "a".repeat(1 << 20);
        assert_eq!(nearest(&long, [&long[1..], "a"]), None);
        assert_eq!(nearest("resnet5", [&long[..], "resnet50"]), Some("resnet50"));
    }
}
