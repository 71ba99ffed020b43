//! Whatever is done to a scenario, nothing panics, and what is predicted is finite and positive.

use proptest::prelude::*;
use stepcast_core::prediction::Prediction;
use stepcast_core::scenario::Document;
use stepcast_study::methods;

const QUICK_START: &str = include_str!("../../../examples/quickstart.toml");

/// Values that a careless or a hostile author might write.
const TOKENS: [&str; 40] = [
    "0",
    "1",
    "-1",
    "32",
    "1e308",
    "1e-308",
    "-0.0",
    "nan",
    "inf",
    "4294967295",
    "4294967296",
    "1_000_000",
    "9223372036854775807",
    "true",
    "\"\"",
    "\"vgg16\"",
    "\"resnet50\"",
    "\"bsp\"",
    "\"async\"",
    "\"ssp(0)\"",
    "\"local-sgd(1)\"",
    "\"local-sgd(4294967295)\"",
    "\"all-reduce\"",
    "\"stand-alone\"",
    "\"25gbe\"",
    "\"tesla-t4\"",
    "\"1 bit/s\"",
    "\"1e300 Gbit/s\"",
    "\"1e-300 Gbit/s\"",
    "[]",
    "[[]]",
    "{}",
    "{ bandwidth = \"1e-300 bit/s\" }",
    "{ bandwidth = \"1e300 bit/s\", latency = \"1e300 s\" }",
    "{ base = \"10gbe\", host-rate = \"1e-300 B/s\" }",
    "{ base = \"tesla-t4\", clock = \"1e300 Hz\" }",
    "{ base = \"tesla-t4\", clock = \"1e-300 Hz\" }",
    "{ base = \"tesla-t4\", efficiency = 1e-300 }",
    "{ base = \"tesla-t4\", memory-rate = \"1e-300 B/s\" }",
    "\u{1F680}",
];

/// Keys that a quick start does not have.
const LINES: [&str; 12] = [
    "efficiency = 0.5",
    "efficiency = 1e300",
    "efficiency = 1e-300",
    "bandwidth = \"1 Gbit/s\"",
    "bandwidth = \"1e-300 Gbit/s\"",
    "batch = 100_000_000",
    "placement = \"even\"",
    "precision = \"fp16\"",
    "epochs = 9223372036854775807",
    "[methods.zeng2023]",
    "flops-per-weight = 1e308",
    "simd = 1e-300",
];

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mutation_panics(mutations in prop::collection::vec(mutation(), 1..5)) {
        let text = mutations.iter().fold(QUICK_START.to_owned(), |text, mutation| apply(&text, mutation));
        match Document::new("mutated.toml", text).scenario(&[]) {
            Err(error) => {
                prop_assert!(!error.reason.is_empty() && !error.remedy.is_empty(), "{error:?}");
                if let Some((text, span)) = error.place {
                    prop_assert!(text.get(span).is_some());
                }
            }
            Ok(scenario) => {
                for method in methods::all() {
                    match method.predict(&scenario) {
                        Ok(prediction) => is_sound(&prediction)?,
                        Err(why) => prop_assert!(!why.reason.is_empty() && !why.remedy.is_empty()),
                    }
                }
            }
        }
    }
}
