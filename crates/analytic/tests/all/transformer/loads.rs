//! Loads of expert ranks against sampled ones.

use super::{plan, scenario};
use stepcast_analytic::transformer::Transformer as Method;
use stepcast_analytic::transformer::loads::{ExpertLoads, OWN_ROUTING, Over};
use stepcast_analytic::transformer::memory::MemoryInputs;
use stepcast_core::method::Method as _;
use stepcast_core::model::zoo;
use stepcast_core::strategy::{Division, Implementation, Plan};

/// Uniform numbers between 0 and 1 (splitmix64).
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A gamma variate of a whole shape: a sum of exponential ones.
    fn gamma(&mut self, shape: u32) -> f64 {
        (0..shape).map(|_| -(1.0 - self.next()).ln()).sum()
    }
}

/// Fullest ranks of sampled shares, sorted: of eight ranks with 16 of 128 experts and c = 2, so that a rank's load has the shape 4,
/// together over some layers.
fn sampled(layers: u32) -> Vec<f64> {
    let mut uniform = Uniform(7);
    let mut fullest: Vec<f64> = (0..20_000)
        .map(|_| {
            let mut loads = [0.0; 8];
            for _ in 0..layers {
                let own: [f64; 8] = std::array::from_fn(|_| uniform.gamma(4));
                let all: f64 = own.iter().sum();
                loads
                    .iter_mut()
                    .zip(own)
                    .for_each(|(load, own)| *load += 8.0 * own / all / f64::from(layers));
            }
            loads.into_iter().fold(0.0, f64::max)
        })
        .collect();
    fullest.sort_by(f64::total_cmp);
    fullest
}

#[test]
fn fullest_ranks_are_those_of_sampled_shares() {
    let shape = zoo::transformer("qwen3-235b-a22b").unwrap();
    let loads = ExpertLoads::new(&shape, 8, 2.0, None).unwrap();
    let one = sampled(1);
    let mean = one.iter().sum::<f64>() / one.len() as f64;
    assert!((loads.expected() / mean - 1.0).abs() < 0.01, "{} {mean}", loads.expected());
    for layers in [1, 3] {
        let sampled = sampled(layers);
        let found = loads.quantile(0.95, Over::Sum(layers.into()));
        let expected = sampled[sampled.len() * 95 / 100];
        // Shares of one whole are less extreme than independent loads.
        assert!((1.0..1.12).contains(&(found / expected)), "{layers}: {found} {expected}");
    }
    // The fullest of several layers is fuller than that of one; both ends of the quantile agree.
    let [one, five] = [1, 5].map(|layers| loads.quantile(0.95, Over::Fullest(layers)));
    assert!(five > one);
    assert!((loads.exceeds(five, Over::Fullest(5)) - 0.05).abs() < 1e-3);
}

/// Eight ranks with 16 experts each of a model's own routing (Megatron-MoE-ModelZoo), and what bounds them.
#[test]
fn own_routing_has_the_fullest_rank_of_measured_steps() {
    let shape = zoo::transformer("qwen3-235b-a22b").unwrap();
    let loads = |imbalance, capacity| ExpertLoads::new(&shape, 8, imbalance, capacity);
    assert!((loads(OWN_ROUTING, None).unwrap().expected() - 1.65).abs() < 0.01);
    assert!(loads(OWN_ROUTING, Some(1.25)).unwrap().quantile(0.95, Over::Sum(4)) <= 1.25);
    assert_eq!(loads(0.0, None), None);
    // A token visits two of Mixtral's experts, so that none has more than four times the mean.
    let mixtral = zoo::transformer("mixtral-8x7b").unwrap();
    let single = ExpertLoads::new(&mixtral, 8, 3.0, None).unwrap();
    assert!((single.quantile(0.999, Over::Fullest(32)) - 4.0).abs() < 1e-12);
}

#[test]
fn uneven_experts_take_longer_unless_tokens_are_dropped() {
    let run = |changes: &[&str]| {
        let usual = ["model.zoo=mixtral-8x7b", "strategy.plan.expert=8", "strategy.plan.sharding=zero-3"];
        let all: Vec<&str> = usual.iter().chain(changes).copied().collect();
        let found = Method.predict(&scenario(&all).unwrap()).unwrap();
        (found.iteration.get(), found.transformer.unwrap().memory)
    };
    let (even, held) = run(&[]);
    let (uneven, fuller) = run(&["strategy.plan.expert-imbalance=0.5"]);
    assert!(uneven > 1.1 * even && fuller.most > held.most, "{even} {uneven}");
    let (bounded, dropping) =
        run(&["strategy.plan.expert-imbalance=0.5", "strategy.plan.expert-capacity=1.1"]);
    assert!(bounded < uneven && dropping.risk.is_none());
    assert_eq!(run(&["model.zoo=llama3-8b", "strategy.plan.expert=1"]).1.risk, None);
}

/// The risk of a device that has room for a fifth more visits than the mean, in all layers together.
#[test]
fn memory_runs_out_as_often_as_loads_exceed_it() {
    let shape = zoo::transformer("mixtral-8x7b").unwrap();
    let division = Division { data: 8, micro_batches: 1, global_batch: 8 };
    let plan = |expert_imbalance| Plan { expert: 8, expert_imbalance, ..plan(Implementation::Megatron) };
    let even = plan(0.0);
    let loaded = MemoryInputs { expert_load: 1.2, ..MemoryInputs::new(&shape, &even, &division) };
    let limit = loaded.rank(0).total();
    let risk = |imbalance| {
        MemoryInputs::new(&shape, &plan(imbalance), &division).risk(|total| total <= limit).unwrap()
    };
    let loads = |imbalance| ExpertLoads::new(&shape, 8, imbalance, None).unwrap();
    for (given, meant) in [(0.5, 0.5), (0.3, 0.3), (0.0, OWN_ROUTING)] {
        let expected = loads(meant).exceeds(1.2, Over::Sum(32));
        assert!((risk(given) - expected).abs() < 1e-4, "{given}: {} {expected}", risk(given));
    }
    assert!(risk(0.3) < 0.01 && risk(0.5) > 0.05);
    // What is said to be needed is exceeded in one of 20 runs.
    let uneven = plan(0.5);
    let uneven = MemoryInputs::new(&shape, &uneven, &division);
    let needed = uneven.rank(0).total();
    assert!((uneven.risk(|total| total <= needed).unwrap() - 0.05).abs() < 1e-3);
}
