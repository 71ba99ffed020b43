//! Layers that are replaced by smaller ones, and what their gradients cost.

use crate::{example, pass};
use std::ops::ControlFlow;
use stepcast_core::method::never_cancelled;
use stepcast_core::model::LayerFile;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::{Document, Scenario};
use stepcast_study::replace::{LayerLine, Refusal, ReplacementReport, Substitution, replace};

fn scenario() -> Scenario {
    crate::scenario(&example("layer-replacement.toml"), &[])
}

fn replaced(scenario: &Scenario, asked: Substitution) -> ReplacementReport {
    replace(scenario, asked, &never_cancelled).unwrap()
}

fn layers(text: &str) -> Vec<LayerFile> {
    Document::new("layers", text).layers().unwrap()
}

/// Liu 2022, section 4.1, with the calibration of errata 4.5.
#[test]
fn the_example_gives_the_factors_of_the_paper() {
    let report = replaced(&scenario(), Substitution::default());
    assert!((report.before.scaling_factor - 0.25).abs() < 1e-5, "{}", report.before.scaling_factor);
    let replacement = report.replacement.unwrap();
    assert!((replacement.after.scaling_factor - 0.72).abs() < 1e-5, "{}", replacement.after.scaling_factor);
    let mib = |lines: &[LayerLine]| -> Vec<f64> {
        lines.iter().map(|line| line.weights.get() / 1024.0 / 1024.0).filter(|size| *size > 0.0).collect()
    };
    assert_eq!(mib(&replacement.removed), [392.0, 64.0, 15.625]);
    assert_eq!(mib(&replacement.added), [1.0, 1.953_125]);
    // Figure 8: both models over the number of workers; one worker sends nothing.
    let at = |workers: u32| report.scaling.iter().find(|point| point.workers == workers).unwrap();
    assert_eq!((at(1).before, at(1).after), (1.0, 1.0));
    assert_eq!(
        (at(32).before, at(32).after),
        (report.before.scaling_factor, replacement.after.scaling_factor)
    );
    assert!(report.scaling.windows(2).all(|pair| pair[0].before >= pair[1].before));
    // fc1 is 74.27 % of all bytes (the text rounds to 74.2 %).
    let worst = &report.layers[0];
    assert_eq!(worst.name, "classifier.0");
    assert!((worst.share - 0.7427).abs() < 5e-5);
    // The new scenario gives the predicted result.
    let again = replaced(&replacement.scenario.resolve().unwrap(), Substitution::default());
    assert_eq!(again.before, replacement.after);
    assert_eq!(
        again.reason.unwrap(),
        "Nothing is proposed: the model does not end in fully connected layers."
    );
}

#[test]
fn exposed_times_are_those_of_steps_without_the_exchange() {
    let scenario = scenario();
    let report = replaced(&scenario, Substitution::default());
    assert_eq!(report.layers.len(), 16);
    let total: Bytes = report.layers.iter().map(|layer| layer.size).sum();
    assert_eq!(total, report.before.gradients);
    assert!(report.layers.is_sorted_by(|a, b| a.exposed >= b.exposed));
    // Without fusion the network is never idle after the first gradients of this model: each layer costs its own time.
    let worst = &report.layers[0];
    let weight = Bytes::new(25088.0 * 4096.0 * 4.0);
    let own = curve_time(&scenario, weight) + curve_time(&scenario, Bytes::new(4096.0 * 4.0));
    assert!((worst.exposed / own - 1.0).abs() < 1e-9);
    assert!(report.before.exposed > worst.exposed);
}

fn curve_time(scenario: &Scenario, size: Bytes) -> Seconds {
    stepcast_analytic::collectives::curve(scenario).time(size)
}

#[test]
fn a_user_chooses_the_cut_and_the_layers() {
    let request = |from: Option<&str>, with: Option<&str>| Substitution {
        from: from.map(str::to_owned),
        with: with.map(layers),
        workers: None,
    };
    let small =
        r#"layers = [{ op = "global-average-pool" }, { op = "flatten" }, { op = "linear", out = 1000 }]"#;
    let found = replaced(&scenario(), request(None, Some(small))).replacement.unwrap();
    assert_eq!(found.added.iter().map(|line| line.parameters).sum::<u64>(), 512 * 1000 + 1000);
    let found = replaced(&scenario(), request(Some("features.30"), None)).replacement.unwrap();
    assert_eq!(found.added.len(), 5);
    assert_eq!(found.added[0].output, "512×14×14");
    let last = request(Some("classifier.6"), Some(r#"layers = [{ op = "linear", out = 10 }]"#));
    let found = replaced(&scenario(), last);
    assert_eq!(found.replacement.unwrap().added[0].parameters, 40_970);
}

/// Where the budget does not pay for a step without each of the layers, those with the most gradients are looked at, with
/// the same figures.
#[test]
fn a_budget_bounds_the_layers_that_are_looked_at() {
    let whole = scenario();
    let mut small = whole.clone();
    small.methods.simulate.budget = 3 * pass(&whole);
    let [all, few] = [&whole, &small].map(|scenario| replaced(scenario, Substitution::default()));
    assert_eq!((all.layers.len(), few.layers.len()), (16, 3));
    assert!(few.layers.iter().all(|layer| all.layers.contains(layer)));
    let smallest = few.layers.iter().map(|layer| layer.size.get()).fold(f64::INFINITY, f64::min);
    assert_eq!(all.layers.iter().filter(|layer| layer.size.get() >= smallest).count(), 3);
    let told = |report: &ReplacementReport| report.warnings.iter().any(|warning| warning.code == "left-out");
    assert_eq!((told(&all), told(&few)), (false, true));
}

#[test]
fn it_ends_when_it_is_no_longer_wanted() {
    let ended = replace(&scenario(), Substitution::default(), &|| ControlFlow::Break(()));
    assert!(matches!(ended, Err(Refusal::Scenario(_))), "{ended:?}");
}
