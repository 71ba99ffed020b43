//! Plans that the figures cannot tell apart, and which of them to take.
//!
//! The logarithms of two steps are jointly normal: a group of assumed constants with the spread σ moves both, by the slopes a
//! and b, and what no constant explains of a run, of spread r, is its own. The variance of their difference is
//!
//! Σ σ²·(a − b)² + 2·r²
//!
//! over all groups. What two plans share cancels, so that close plans are told apart better than each is known.

use super::families::{BestPlan, Families};
use super::report::{ClosePlans, Entry};
use super::{Method, PlanQuestion};
use crate::predict::interval::{assumed::slopes, spreads};
use stepcast_core::fault::Fault;
use stepcast_core::method::Method as _;
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{PlanChoice, Recompute, ScheduleKind, Sharding};

/// A plan with more kinds of parallelism must be this much better to be chosen.
const WORTH: f64 = 0.005;

/// Plans that are looked at, the best of every value of every property first.
const LOOKED_AT: usize = 12;

/// Half-width of a 90 % interval, in standard deviations.
const HALF_WIDTH: f64 = 1.645;

/// How many kinds of parallelism, sharding and recomputation a plan has.
fn kinds(choice: &PlanChoice) -> u64 {
    let divided = [choice.tensor, choice.context, choice.pipeline, choice.virtual_stages, choice.expert];
    let divided = divided.iter().filter(|ranks| **ranks > 1).count() as u64;
    let sharding = match choice.sharding {
        Sharding::None => 0,
        Sharding::Hsdp => 2,
        _ => 1,
    };
    let usual = matches!(choice.schedule, ScheduleKind::OneFOneB | ScheduleKind::Interleaved);
    divided + sharding + u64::from(!usual) + u64::from(choice.recompute.what != Recompute::None)
}

/// The simplest of the plans that are nearly as good as the best.
pub(super) fn simplest(families: &Families, best: BestPlan) -> BestPlan {
    let near = families.finalists().into_iter().filter(|plan| plan.value <= best.value * (1.0 + WORTH));
    near.fold(best, |one, other| if kinds(&other.choice) < kinds(&one.choice) { other } else { one })
}

/// A plan with what is known of its step.
struct KnownPlan {
    plan: BestPlan,
    memory: Bytes,
    /// Effects of the groups of constants on the logarithm of its step, in standard deviations of each.
    effects: Vec<f64>,
}

impl PlanQuestion<'_> {
    fn known(&self, plan: &BestPlan) -> Result<KnownPlan, Fault> {
        let mut scenario = self.on(&plan.setup)?;
        scenario.strategy.plan = Some(plan.choice.plan(&self.base(&plan.setup)));
        let memory = Method.predict(&scenario)?.transformer.map_or(Bytes::ZERO, |report| report.memory.most);
        let slopes = slopes(&scenario, &Method)?;
        let effects = slopes.iter().zip(spreads(&scenario)).map(|(slope, spread)| slope * spread).collect();
        Ok(KnownPlan { plan: *plan, memory, effects })
    }

    /// Plans that cannot be told apart from the best one; none if it stands alone.
    pub(super) fn close(&self, families: &Families, best: &BestPlan) -> Result<Option<ClosePlans>, Fault> {
        let own = self.known(best)?;
        let unexplained = self.scenario.priors.residual.transformer.row;
        let apart = |other: &KnownPlan| {
            let groups = own.effects.iter().zip(&other.effects).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            HALF_WIDTH * (groups + 2.0 * unexplained.powi(2)).sqrt()
        };
        let mut close = Vec::new();
        let others = families.finalists().into_iter().filter(|plan| plan.choice != best.choice);
        for plan in others.take(LOOKED_AT) {
            let other = self.known(&plan)?;
            if (plan.value / best.value).ln().abs() < apart(&other) {
                close.push(other);
            }
        }
        if close.is_empty() {
            return Ok(None);
        }
        let separating = close.iter().min_by(|a, b| a.plan.value.total_cmp(&b.plan.value)).and_then(|next| {
            let effects = own.effects.iter().zip(&next.effects).map(|(a, b)| (a - b).abs());
            let groups = effects.zip(self.scenario.priors.groups.iter());
            let most = groups.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(effect, _)| *effect > unexplained);
            most.map(|(_, group)| group.name.clone())
        });
        close.push(own);
        // The longest step of the interval; what no constant explains is as large for all.
        let worst = |it: &KnownPlan| {
            let variance = it.effects.iter().map(|effect| effect.powi(2)).sum::<f64>();
            it.plan.value.ln() + HALF_WIDTH * variance.sqrt()
        };
        let entry = |it: Option<&KnownPlan>| -> Result<Option<Entry>, Fault> {
            let chosen = it.filter(|it| it.plan.choice != best.choice || it.plan.setup != best.setup);
            chosen.map(|it| self.entry(&it.plan.setup, &it.plan.choice, it.plan.step, it.memory)).transpose()
        };
        let simplest = close.iter().min_by(|a, b| {
            let [a, b] = [a, b].map(|it| (kinds(&it.plan.choice), it.plan.value));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        Ok(Some(ClosePlans {
            plans: close.len() as u64,
            simplest: entry(simplest)?,
            smallest: entry(close.iter().min_by(|a, b| a.memory.get().total_cmp(&b.memory.get())))?,
            robust: entry(close.iter().min_by(|a, b| worst(a).total_cmp(&worst(b))))?,
            separated_by: separating,
        }))
    }
}
