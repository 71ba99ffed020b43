//! Uneven loads of experts, as order statistics over ranks and layers.
//!
//! The loads of single experts vary with the coefficient c (`expert-imbalance`) as gamma variates of shape 1/c² do, so that the
//! shares of all experts follow a Dirichlet distribution. The load of a rank with e experts is then a gamma variate of shape
//! e/c², and together over L layers of shape L·e/c², if layers are independent. Its largest of x ranks has the distribution
//! function F(y)^x. For the shares themselves, which add up to one, this is exact in the mean and an upper bound of high quantiles
//! (their components are negatively associated).
//!
//! Only sums of a rank matter: on one H200, grouped products of 8 to 128 experts take at most 9 % longer where the fullest has four
//! times the mean than where all have the same, from 512 rows for each on (loads were prescribed).

use stepcast_core::model::transformer::Transformer;
use stepcast_core::strategy::Plan;
use stepcast_stats::{normal_quantile, normal_share};

/// The probability with which the fullest rank has the memory that a plan is said to need.
pub const MEMORY: f64 = 0.95;

/// c of a model's own routing where nothing is given: with it the fullest of eight ranks with 16 experts each has 1.65 times the
/// mean, as steps of Qwen3-235B with and without forced balance show (Megatron-MoE-ModelZoo).
pub const OWN_ROUTING: f64 = 1.65;

/// Loads of expert ranks against their mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpertLoads {
    /// Shape of the gamma distribution of a rank's load in one layer.
    form: f64,
    /// x.
    ranks: f64,
    /// Upper limit of a rank's load: all tokens visit it, or places run out.
    most: f64,
}

/// Layers whose loads count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The sum of these.
    Sum(u64),
    /// The fullest of these.
    Fullest(u64),
}

impl ExpertLoads {
    /// Loads of `ranks` that divide the experts of a model; none if all are equal. `capacity` is the number of an expert's places
    /// relative to its mean load; tokens beyond it are dropped.
    pub fn new(shape: &Transformer, ranks: u64, imbalance: f64, capacity: Option<f64>) -> Option<Self> {
        let experts = shape.experts.filter(|_| ranks > 1 && imbalance > 0.0)?;
        let (ranks, own, active) = (ranks as f64, (experts.count / ranks) as f64, experts.active as f64);
        let visited = ranks * own.min(active) / active;
        let most = capacity.map_or(visited, |capacity| visited.min(capacity.max(1.0)));
        Some(Self { form: own / imbalance.powi(2), ranks, most })
    }

    /// Loads of the expert ranks of a plan.
    pub(super) fn of_plan(shape: &Transformer, plan: &Plan) -> Option<Self> {
        Self::new(shape, plan.expert, plan.expert_imbalance, plan.expert_capacity)
    }

    /// The load at a normal variate (Wilson and Hilferty 1931: the cube root of a gamma variate is nearly normal).
    fn load(&self, form: f64, normal: f64) -> f64 {
        (1.0 - 1.0 / (9.0 * form) + normal / (3.0 * form.sqrt())).max(0.0).powi(3).min(self.most)
    }

    const fn of(&self, over: Over) -> (f64, f64) {
        match over {
            Over::Sum(layers) => (self.form * layers as f64, self.ranks),
            Over::Fullest(layers) => (self.form, self.ranks * layers as f64),
        }
    }

    /// Expected load of the fullest rank in a layer, ∫ y dF(y)^x.
    pub fn expected(&self) -> f64 {
        const STEP: f64 = 0.25;
        let below = |step: i32| normal_share(STEP * f64::from(step)).powf(self.ranks);
        let part = |step: i32| {
            self.load(self.form, STEP * (f64::from(step) + 0.5)) * (below(step + 1) - below(step))
        };
        (-24..32).map(part).sum::<f64>().max(1.0)
    }

    /// The load that the fullest rank does not exceed with this probability, at least a half.
    pub fn quantile(&self, share: f64, over: Over) -> f64 {
        let (form, draws) = self.of(over);
        self.load(form, normal_quantile(share.powf(1.0 / draws))).max(1.0)
    }

    /// The probability that a rank exceeds this load.
    pub fn exceeds(&self, load: f64, over: Over) -> f64 {
        if load >= self.most {
            return 0.0;
        }
        let (form, draws) = self.of(over);
        let normal = (load.max(0.0).cbrt() - 1.0 + 1.0 / (9.0 * form)) * 3.0 * form.sqrt();
        1.0 - normal_share(normal).powf(draws)
    }
}
