//! Whatever is done to a scenario or a profile, nothing panics, and what is predicted is finite and positive.

use proptest::prelude::*;
use std::cell::RefCell;
use std::sync::LazyLock;
use stepcast_core::fault::{Excerpt, Fault};
use stepcast_core::files::{Files, NoFiles};
use stepcast_core::prediction::Prediction;
use stepcast_core::profile::Profile;
use stepcast_core::scenario::{Document, Scenario};
use stepcast_study::predict::methods;

const QUICK_START: &str = include_str!("../../../../examples/quickstart.toml");
const PROFILE: &str = include_str!("../../../../examples/one-worker.json");

/// Values that a careless or a hostile author might write.
static TOKENS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../mutations/values.txt").lines().collect());

/// Keys that a quick start does not have.
static LINES: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../mutations/lines.txt").lines().collect());

/// Numbers that a careless or a hostile author might write into a profile.
static NUMBERS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../mutations/numbers.txt").lines().collect());

#[derive(Debug, Clone)]
enum Mutation {
    Delete(usize, usize),
    Duplicate(usize, usize),
    Byte(usize, char),
    Value(usize, usize),
    Insert(usize, usize),
    Swap(usize, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = || 0..4096_usize;
    prop_oneof![
        (at(), 1..40_usize).prop_map(|(place, length)| Mutation::Delete(place, length)),
        (at(), 1..80_usize).prop_map(|(place, length)| Mutation::Duplicate(place, length)),
        (at(), any::<char>()).prop_map(|(place, with)| Mutation::Byte(place, with)),
        (at(), 0..TOKENS.len()).prop_map(|(line, token)| Mutation::Value(line, token)),
        (at(), 0..TOKENS.len()).prop_map(|(line, token)| Mutation::Value(line, token)),
        (at(), 0..LINES.len()).prop_map(|(line, new)| Mutation::Insert(line, new)),
        (at(), at()).prop_map(|(one, other)| Mutation::Swap(one, other)),
    ]
}

fn apply(text: &str, mutation: &Mutation) -> String {
    let place = |wanted: usize| text.floor_char_boundary(wanted % (text.len() + 1));
    let span = |start: usize, length: usize| {
        let start = place(start);
        start..text.ceil_char_boundary((start + length).min(text.len()))
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match *mutation {
        Mutation::Delete(start, length) => {
            let span = span(start, length);
            return format!("{}{}", &text[..span.start], &text[span.end..]);
        }
        Mutation::Duplicate(start, length) => {
            let span = span(start, length);
            return format!("{}{}", &text[..span.end], &text[span.start..]);
        }
        Mutation::Byte(start, with) => {
            let span = span(start, 1);
            return format!("{}{with}{}", &text[..span.start], &text[span.end..]);
        }
        Mutation::Value(line, token) => {
            let valued: Vec<usize> = (0..lines.len()).filter(|line| lines[*line].contains('=')).collect();
            if let Some(line) = valued.get(line % valued.len().max(1)) {
                let key = lines[*line].split('=').next().unwrap_or_default().to_owned();
                lines[*line] = format!("{key}= {}", TOKENS[token]);
            }
        }
        Mutation::Insert(line, new) => lines.insert(line % (lines.len() + 1), LINES[new].to_owned()),
        Mutation::Swap(one, other) => {
            let count = lines.len().max(1);
            if !lines.is_empty() {
                lines.swap(one % count, other % count);
            }
        }
    }
    lines.join("\n")
}

fn is_sound(prediction: &Prediction) -> Result<(), TestCaseError> {
    let positive = [
        ("iteration", prediction.iteration.get()),
        ("throughput", prediction.throughput.get()),
        ("speed-up", prediction.speedup),
        ("scaling factor", prediction.scaling_factor),
    ];
    for (name, value) in positive {
        prop_assert!(value.is_finite() && value > 0.0, "{name} = {value}");
    }
    for part in &prediction.breakdown {
        prop_assert!(part.time.is_finite() && part.time.get() >= 0.0, "{part:?}");
    }
    Ok(())
}

/// Every method has a sound answer or a reason; simulations are cut short.
fn answers(mut scenario: Scenario) -> Result<(), TestCaseError> {
    scenario.methods.simulate.runs = 2;
    scenario.methods.simulate.steps = 3;
    scenario.methods.simulate.warm_up = Some(1);
    for method in methods::all() {
        match method.predict(&scenario) {
            Ok(prediction) => is_sound(&prediction)?,
            Err(why) => prop_assert!(!why.reason.is_empty() && !why.remedy.is_empty()),
        }
    }
    Ok(())
}

/// Hands out one profile.
struct Only(RefCell<Option<Profile>>);

impl Files for Only {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        self.0.take().ok_or_else(|| Fault::new(format!("no {path}"), "none"))
    }

    fn text(&self, path: &str) -> Result<String, Fault> {
        NoFiles.text(path)
    }
}

fn with_number(text: &str, place: usize, number: &str) -> String {
    let digit = |c: char| c.is_ascii_digit() || c == '.';
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|(at, c)| c.is_ascii_digit() && text[..*at].ends_with([',', '[', ':', ' ']))
        .map(|(at, _)| at)
        .collect();
    let Some(&start) = starts.get(place % starts.len().max(1)) else { return text.to_owned() };
    let length = text[start..].find(|c: char| !digit(c)).unwrap_or(text.len() - start);
    format!("{}{number}{}", &text[..start], &text[start + length..])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mutation_panics(mutations in prop::collection::vec(mutation(), 1..5)) {
        let text = mutations.iter().fold(QUICK_START.to_owned(), |text, mutation| apply(&text, mutation));
        match Document::new("mutated.toml", text).scenario(&[]) {
            Err(error) => {
                prop_assert!(!error.reason.is_empty() && !error.remedy.is_empty(), "{error:?}");
                if let Some(Excerpt { text, span }) = error.excerpt().cloned() {
                    prop_assert!(text.get(span).is_some());
                }
            }
            Ok(scenario) => answers(scenario)?,
        }
    }

    #[test]
    fn no_profile_panics(
        mutations in prop::collection::vec((0..4096_usize, 0..NUMBERS.len()), 0..3),
        bytes in prop::collection::vec(mutation(), 0..2),
        servers in 1..4_u32,
        synchronisation in 0..4_usize,
    ) {
        let text = mutations.iter().fold(PROFILE.to_owned(), |text, &(place, number)| {
            with_number(&text, place, NUMBERS[number])
        });
        let text = bytes.iter().fold(text, |text, mutation| apply(&text, mutation));
        match stepcast_trace::parse_profile(text.as_bytes(), "mutated.json") {
            Err(error) => prop_assert!(!error.reason.is_empty() && !error.remedy.is_empty(), "{error:?}"),
            Ok(profile) => {
                let when = ["async", "bsp", "ssp(1)", "local-sgd(2)"][synchronisation];
                let scenario = format!(
                    "[model]\nprofile = \"p.json\"\n[cluster.servers]\ncount = {servers}\n\
                     [strategy]\nsynchronisation = \"{when}\"\n"
                );
                let files = Only(RefCell::new(Some(profile)));
                match Document::new("scenario.toml", scenario).scenario_with(&files, &[]) {
                    Ok(scenario) => answers(scenario)?,
                    Err(error) => prop_assert!(!error.remedy.is_empty(), "{error:?}"),
                }
            }
        }
    }
}
