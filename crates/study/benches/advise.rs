//! Speed of advice on ten offers and ten experiments, which is to take less than 2 s: the figures of all of them, and the value
//! of each experiment.

use stepcast_analytic::transformer::Transformer;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_study::advise::{
    Candidate, DecisionOption, Experiment, ExperimentKind, MeasurementAdvice, UncertainFigure,
};

const EXAMPLE: &str = include_str!("../../../examples/plan-offers.toml");

fn main() {
    divan::main();
}

fn scenarios() -> Result<Vec<Scenario>, Fault> {
    let document = Document::new("plan-offers.toml", EXAMPLE);
    let edit = |machines: u32| Edit::parse(&format!("cluster.machines={machines}"));
    [2, 3, 4, 5, 6, 7, 8, 10, 12, 16]
        .map(|machines| document.scenario(&[edit(machines)?]))
        .into_iter()
        .collect()
}

fn advised(scenarios: &[Scenario]) -> Result<Option<MeasurementAdvice>, Fault> {
    let candidate = |(place, scenario): (usize, &Scenario)| {
        let option = DecisionOption { time: 1e6 / (1.0 + place as f64), price: 1.0 + 1.01 * place as f64 };
        Ok(Candidate {
            machines: String::new(),
            figure: UncertainFigure::step(scenario, &Transformer)?,
            option,
        })
    };
    let candidates = scenarios.iter().enumerate().map(candidate).collect::<Result<Vec<_>, Fault>>()?;
    let experiment = |(scenario, candidate): (&Scenario, &Candidate)| Experiment {
        kind: ExperimentKind::Gpu,
        machines: String::new(),
        time: Seconds::new(3600.0),
        price: 10.0,
        readings: (0..scenario.priors.groups.len())
            .filter(|group| candidate.figure.depends_on(*group))
            .map(|group| candidate.figure.of_group(scenario, group))
            .collect(),
        command: String::new(),
    };
    let experiments: Vec<Experiment> = scenarios.iter().zip(&candidates).map(experiment).collect();
    Ok(MeasurementAdvice::new(&candidates, &experiments, None, "USD"))
}

/// All of it.
#[divan::bench(sample_count = 5)]
fn ten_offers_ten_experiments(bencher: divan::Bencher<'_, '_>) {
    let Ok(scenarios) = scenarios() else { return };
    bencher.bench_local(|| advised(&scenarios));
}
