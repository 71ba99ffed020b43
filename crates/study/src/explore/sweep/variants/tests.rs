use super::*;
use proptest::prelude::*;
use stepcast_core::files::NoFiles;

/// Two groups, and a network with a table of its own.
const TEXT: &str = include_str!("groups.toml");

/// Every key with its own setting, and some that require resolving the document.
const AXES: &str = include_str!("axes.txt");

/// Keys that look like a single field but require resolving the document.
const DOCUMENT_ONLY: [&str; 4] =
    ["cluster.workers.1.device.efficiency", "cluster.network.base", "cluster.nodes.workers", "model.zoo"];

fn document() -> Document {
    Document::new("test", TEXT)
}

fn axes(places: &[usize]) -> Vec<Axis> {
    places.iter().map(|&place| Axis::parse(AXES.lines().nth(place).unwrap()).unwrap()).collect()
}

/// Reference: resolves the document alone and leaves out groups without workers.
fn slowly(variants: &Variants<'_>, digits: &[u64]) -> Result<Scenario, String> {
    let mut scenario = variants.resolve(digits).map_err(|error| error.reason)?;
    scenario.cluster.groups.retain(|group| group.count > 0);
    scenario.check_together().map_err(|fault| fault.reason)?;
    Ok(scenario)
}

#[test]
fn every_key_has_the_reach_it_should() {
    let document = document();
    for text in AXES.lines() {
        let axis = Axis::parse(text).unwrap();
        let key = axis.key.clone();
        let variants = Variants::new(&document, &NoFiles, &[], vec![axis]).unwrap();
        let only = matches!(variants.reach[0], Reach::Document);
        let expected = DOCUMENT_ONLY.contains(&key.as_str()) || key.starts_with("methods");
        assert_eq!(only, expected, "{text}: {:?}", variants.reach);
    }
}

#[test]
fn a_field_that_brings_others_with_it_is_left_to_the_document() {
    // Without a network section, setting a bandwidth creates a network without latency.
    let document = Document::new("test", "[model]\nzoo = \"alexnet\"\n");
    let axis = Axis::parse("network.bandwidth=1Gbit/s,10Gbit/s").unwrap();
    let variants = Variants::new(&document, &NoFiles, &[], vec![axis]).unwrap();
    assert!(matches!(variants.reach[0], Reach::Listed(_)), "the first point has it already");
    let axis = |text: &str| Axis::parse(text).unwrap();
    let both = vec![axis("cluster.network=25gbe,10gbe"), axis("cluster.network.base=1gbe,25gbe")];
    let variants = Variants::new(&document, &NoFiles, &[], both).unwrap();
    assert!(variants.reach.iter().all(|reach| matches!(reach, Reach::Document)), "{:?}", variants.reach);
}

#[test]
fn wrong_values_are_the_axis_s_fault() {
    let document = document();
    let wrong = |text: &str| {
        let axis = Axis::parse(text).unwrap();
        match Variants::new(&document, &NoFiles, &[], vec![axis]) {
            Err(VaryError::Axis { axis, fault }) => {
                assert_eq!(axis, text);
                fault.reason
            }
            other => panic!("{text}: {:?}", other.err()),
        }
    };
    assert!(wrong("strategy.batch=0..8").contains("must be between 1 and 100000000, but is 0"));
    assert!(wrong("strategy.batch=1,8,0").contains("must be between 1 and 100000000, but is 0"));
    assert!(wrong("cluster.workers.7.count=1,2").contains("no element 7"));
    assert!(wrong("cluster.network.bandwidth=1,2").contains("bandwidth"));
    assert!(wrong("cluster.network.bandwith=1Gbit/s").contains("unknown"));
    assert!(wrong("model.zoo=alexnet,alexnett").contains("alexnett"));
    let twice = ["cluster.workers.0.count=1,2", "cluster.workers.count=1,2"];
    let axes = twice.map(|text| Axis::parse(text).unwrap()).to_vec();
    let error = Variants::new(&document, &NoFiles, &[], axes).err().unwrap();
    assert!(error.to_string().contains("hides"), "{error}");
}

proptest! {
    #[test]
    fn walking_is_resolving(
        places in proptest::sample::subsequence((0..AXES.lines().count()).collect::<Vec<_>>(), 1..5).prop_shuffle(),
        steps in proptest::collection::vec(any::<u64>(), 12),
    ) {
        let document = document();
        // Axes that hide each other, or an invalid first point, are refused as a whole.
        let Ok(variants) = Variants::new(&document, &NoFiles, &[], axes(&places)) else { return Ok(()) };
        let points = variants.grid().points() as u64;
        let mut walker = variants.walker();
        let mut digits = Vec::new();
        for step in steps {
            variants.grid().digits(step % points, &mut digits);
            let walked = walker.look(&digits, Scenario::clone).map_err(|fault| fault.reason);
            prop_assert_eq!(walked, slowly(&variants, &digits), "{:?} {:?}", variants.axes, digits);
        }
    }
}

#[test]
fn points_have_a_small_budget_unless_the_scenario_gives_one() {
    let budget = |text: &str, overrides: &[&str]| {
        let overrides: Vec<Edit> = overrides.iter().map(|text| Edit::parse(text).unwrap()).collect();
        let document = Document::new("test", text);
        Variants::new(&document, &NoFiles, &overrides, Vec::new()).unwrap().first().methods.simulate.budget
    };
    let given = format!("{TEXT}[methods.simulate]\nbudget = 50000\n");
    assert_eq!(budget(TEXT, &[]), SMALL);
    assert_eq!(budget(TEXT, &["methods.simulate.budget=8000"]), 8000);
    assert_eq!(budget(&given, &[]), 50_000);
}
