//! Golden cases of fusion, in all readings of the paper.

use super::letters::{Letters, Print, golden, number, numbers};
use super::near;
use stepcast_analytic::liu2022::{Flush, Plan, Reading, Schedule, osf, plan};

/// F, t_wait and start by layer, counted from 1, in the form of the golden file.
fn by_layer(plan: &Plan, layers: usize, figure: impl Fn(&Flush) -> f64) -> Vec<Option<f64>> {
    let mut figures = vec![None; layers];
    for flush in &plan.flushes {
        figures[layers - 1 - flush.last] = Some(figure(flush));
    }
    figures
}

#[test]
fn golden_fusion_cases_in_all_readings() {
    let golden = golden();
    let mut checked = 0;
    let mut check = |found: f64, expected: f64, what: &str| {
        near(found, expected, 1e-12, what);
        checked += 1;
    };
    for case in &golden {
        let name = case["case"].as_str().unwrap();
        let letters = Letters::of(case);
        let (pass, curve) = (letters.pass(), letters.curve());
        let layers = pass.layers.len();
        for (key, schedule, print) in [
            ("plain", Some(Schedule::PerLayer), None),
            ("fusion_corrected", Some(letters.fused(Reading::Serial)), Some(Print::Corrected)),
            ("fusion_concurrent_wait", Some(letters.fused(Reading::Concurrent)), Some(Print::Concurrent)),
            ("fusion_printed", None, Some(Print::Literal)),
        ] {
            let expected = &case[key];
            let what = |figure: &str| format!("{name} {key} {figure}");
            if let Some(schedule) = schedule {
                let plan = plan(&pass, &curve, &schedule);
                assert_eq!(plan.outcome, osf(&pass, &curve, &schedule));
                assert_eq!(plan.sent(), pass.gradients());
                let outcome = plan.outcome;
                check(outcome.update.get(), number(&expected["Tu"]), &what("Tu"));
                check(outcome.computing.get(), number(&expected["Tc"]), &what("Tc"));
                check(outcome.overlap.get(), number(&expected["To"]), &what("To"));
                check(outcome.factor(), number(&expected["OSF"]), &what("OSF"));
                if expected.get("F").is_some() {
                    let sizes = by_layer(&plan, layers, |flush| flush.size.get());
                    let waits = by_layer(&plan, layers, |flush| flush.wait.get());
                    for i in 0..layers {
                        check(sizes[i].unwrap_or(0.0), numbers(&expected["F"])[i], &what("F"));
                        check(waits[i].unwrap_or(0.0), numbers(&expected["t_wait"])[i], &what("t_wait"));
                    }
                }
                if expected.get("tau").is_some() {
                    // τ is the time at which the network is free and the layer is ready, before any wait.
                    let tau = by_layer(&plan, layers, |flush| match key {
                        "plain" => flush.start.get(),
                        _ => flush.start.get() - flush.wait.get(),
                    });
                    for (found, expected) in tau.into_iter().zip(numbers(&expected["tau"])) {
                        if let Some(found) = found {
                            check(found, expected, &what("tau"));
                        }
                    }
                }
                if expected.get("start").is_some() {
                    let starts = by_layer(&plan, layers, |flush| flush.start.get());
                    for (found, expected) in starts.into_iter().zip(expected["start"].as_array().unwrap()) {
                        assert_eq!(found.is_none(), expected == "None", "{}", what("start"));
                        if let Some(found) = found {
                            check(found, number(expected), &what("start"));
                        }
                    }
                }
            }
            // The literal equations reproduce every number of the file, including the printed ones.
            if let Some(print) = print {
                let solved = letters.solve(print);
                check(solved.update, number(&expected["Tu"]), &what("letters, Tu"));
                let computing = pass.computing().get();
                let factor = computing / (computing + solved.update - pass.overlap().get());
                check(factor, number(&expected["OSF"]), &what("letters, OSF"));
                let lists =
                    [("B", &solved.b), ("F", &solved.f), ("t_wait", &solved.wait), ("tau", &solved.tau)];
                for (figure, found) in lists.into_iter().filter(|(figure, _)| expected.get(figure).is_some())
                {
                    for (found, expected) in found[1..].iter().zip(numbers(&expected[figure])) {
                        check(*found, expected, &what(figure));
                    }
                }
            }
        }
    }
    assert_eq!((golden.len(), checked), (6, CHECKED_FUSION));
}

/// Number of comparisons in [`golden_fusion_cases_in_all_readings`]; fewer would mean that some were skipped.
const CHECKED_FUSION: usize = 500;
