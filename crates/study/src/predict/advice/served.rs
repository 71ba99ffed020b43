//! Sentence for answers that rest on an assumed rate of the servers' software: the rate with its interval, and the rate from which
//! a faster network helps, if the interval leaves that open.

use super::changes::with_bandwidth;
use crate::predict::interval::assumed::closed_form;
use crate::predict::scaling::WORTH;
use std::sync::Arc;
use stepcast_analytic::servers::assumed_rate;
use stepcast_core::method::Method;
use stepcast_core::prior::{Domain, SHIFT};
use stepcast_core::quantity::{BytesPerSec, Seconds};
use stepcast_core::scenario::Scenario;

/// Standard deviations from the middle to the ends of a 90 % interval.
const NINE_OF_TEN: f64 = 1.645;

/// Least change of a step over the interval for which the rate matters.
const MATTERS: f64 = 0.05;

/// Halvings of the interval in the search for the deciding rate.
const HALVINGS: u32 = 16;

/// The assumed rate, and the scenario at any place of its interval.
struct AssumedService<'a> {
    scenario: &'a Scenario,
    rate: BytesPerSec,
    /// By group of priors: its shift for each standard deviation of the rate.
    moves: Vec<(usize, f64)>,
    spread: f64,
}

impl<'a> AssumedService<'a> {
    fn new(scenario: &'a Scenario) -> Option<Self> {
        let rate = assumed_rate(scenario)?;
        let groups = scenario.priors.groups.iter().enumerate();
        let servers = groups.filter(|(_, group)| group.domain == Domain::Servers);
        let mut moves = Vec::new();
        for (index, group) in servers {
            let moved = assumed_rate(&moved(scenario, &[(index, SHIFT)]))?;
            let effect = (moved / rate).ln() / SHIFT * group.spread;
            if effect.abs() > 0.0 {
                moves.push((index, group.spread, effect));
            }
        }
        let spread = moves.iter().map(|(_, _, effect)| effect.powi(2)).sum::<f64>().sqrt();
        let moves = moves.into_iter().map(|(index, own, effect)| (index, own * effect / spread)).collect();
        (spread > 0.0).then_some(Self { scenario, rate, moves, spread })
    }

    /// The rate this many standard deviations from the assumed one.
    fn rate(&self, deviations: f64) -> BytesPerSec {
        self.rate * (deviations * self.spread).exp()
    }

    /// The step at this rate, with links of `factor` times their rates.
    fn step(&self, method: &dyn Method, deviations: f64, factor: f64) -> Option<Seconds> {
        let moves: Vec<(usize, f64)> =
            self.moves.iter().map(|&(index, own)| (index, own * deviations)).collect();
        let moved = moved(self.scenario, &moves);
        Some(method.predict(&moved.on(with_bandwidth(&moved.cluster, factor))).ok()?.iteration)
    }

    /// Whether links of twice the rate are worth it at this rate of the software.
    fn helps(&self, method: &dyn Method, deviations: f64) -> Option<bool> {
        let gain = self.step(method, deviations, 1.0)? / self.step(method, deviations, 2.0)? - 1.0;
        Some(gain >= WORTH)
    }
}

fn moved(scenario: &Scenario, moves: &[(usize, f64)]) -> Scenario {
    let mut priors = Arc::clone(&scenario.priors);
    for &(index, shift) in moves {
        priors = Arc::new(priors.moved(index, shift));
    }
    Scenario { priors, ..scenario.clone() }
}

/// States that the answer rests on an assumed rate, and the rate from which a faster network helps.
pub(super) fn sentence(scenario: &Scenario, method: &dyn Method) -> Option<String> {
    let method = closed_form(scenario, method)?;
    let service = AssumedService::new(scenario)?;
    let [slow, fast] = [-NINE_OF_TEN, NINE_OF_TEN];
    let change = service.step(method, slow, 1.0)? / service.step(method, fast, 1.0)? - 1.0;
    if change < MATTERS {
        return None;
    }
    let [least, most] = [slow, fast].map(|end| service.rate(end).human());
    let rests = format!(
        "Assumed, not measured: the software of a server moves {} ({least} to {most})",
        service.rate.human()
    );
    let advice = match (service.helps(method, slow)?, service.helps(method, fast)?) {
        (false, true) => {
            let (mut low, mut high) = (slow, fast);
            for _ in 0..HALVINGS {
                let middle = f64::midpoint(low, high);
                *(if service.helps(method, middle)? { &mut high } else { &mut low }) = middle;
            }
            format!(
                "; twice the bandwidth helps if it moves more than {}: measure it",
                service.rate(high).human()
            )
        }
        _ => String::new(),
    };
    Some(rests + &advice + ".")
}
