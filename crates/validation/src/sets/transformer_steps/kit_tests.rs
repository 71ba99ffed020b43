//! Steps of one H200 predicted from what the kit measured in three minutes on another: no step of the set was fitted to.

use super::h200;
use std::path::Path;
use std::sync::Arc;
use stepcast_analytic::transformer::Transformer;
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::machine::{FittedDevice, FittedModel};
use stepcast_core::method::Method as _;
use stepcast_fit::FitReport;
use stepcast_fit::machine::{AttentionChoice, run};
use stepcast_study::never_cancelled;
use stepcast_study::predict::interval;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/kit/machine_h200.jsonl.gz");

fn fitted(attention: AttentionChoice) -> FitReport {
    run(Path::new(FILE), None, None, attention, "2026-11-16".to_owned(), &never_cancelled).unwrap()
}

#[test]
fn shapes_left_out_and_steps_of_another_session_are_predicted_with_narrower_intervals() {
    let report = fitted(AttentionChoice::Flash);
    // Measured when this was written: 3.2, 3.7, 3.0 and 3.5 %.
    for (what, median, worst) in [
        ("products", 0.045, 0.55),
        ("shards of layers", 0.05, 0.25),
        ("output layers", 0.04, 0.10),
        ("steps", 0.045, 0.25),
    ] {
        let row = report.rows.iter().find(|row| row.what == what && row.set == "held").unwrap();
        assert!(row.quality.median < median && row.quality.worst < worst, "{row:?}");
    }
    let Ok(Artefact::Machine(machine)) = Artefact::from_toml(&report.artefact) else {
        panic!("{}", report.artefact)
    };
    let fitted =
        FittedDevice { path: "machine.toml".to_owned(), model: FittedModel::Machine(Arc::from(machine)) };
    let (mut errors, mut inside, mut narrower) = (Vec::new(), 0, 0);
    for case in h200::cases().unwrap() {
        let Some(mut scenario) = case.step else { continue };
        let assumed = Transformer.predict(&scenario).unwrap();
        let before = interval::of(&scenario, &Transformer, &assumed).unwrap().unwrap();
        for group in &mut scenario.cluster.groups {
            group.device.fitted = Some(fitted.clone());
        }
        let prediction = Transformer.predict(&scenario).unwrap();
        assert!(prediction.warnings.iter().all(|warning| warning.code != "assumed-efficiency"));
        let after = interval::of(&scenario, &Transformer, &prediction).unwrap().unwrap();
        errors.push((prediction.iteration.get() / case.measured - 1.0).abs());
        let [least, most] = after.iteration_s.map(|time| time.get());
        inside += usize::from((least..=most).contains(&case.measured));
        narrower += usize::from(after.model < before.model);
    }
    errors.sort_unstable_by(f64::total_cmp);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let count = errors.len();
    assert!(mean < 0.055 && errors[count - 1] < 0.30, "{mean} {}", errors[count - 1]);
    assert!(inside * 100 >= 85 * count, "{inside} of {count}");
    assert!(narrower * 100 >= 95 * count, "{narrower} of {count}");
}
