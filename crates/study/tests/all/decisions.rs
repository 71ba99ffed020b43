//! What to measure before a choice, which offer to take, and whether a cluster keeps what was agreed.

use crate::request;
use std::ops::ControlFlow;
use stepcast_core::quantity::Seconds;
use stepcast_study::advise::{Decision, DecisionOption, Lateness};
use stepcast_study::contract::{Outcome, Terms};
use stepcast_study::explore::decide::{self, LATE, decide};
use stepcast_study::explore::plan::{SHARED, Training};

const OPTIONS: [DecisionOption; 2] =
    [DecisionOption { time: 100.0, price: 1.0 }, DecisionOption { time: 52.0, price: 2.0 }];

/// Variances of the logarithms of their times.
const VARIANCES: [f64; 2] = [0.04 + 0.0004, 0.01 + 0.0225 + 0.0004];

/// These options of nearly equal loss that share a cause, one with a cause of its own; readings of either cause.
fn decision(lateness: Option<Lateness>) -> Decision {
    // ln t1 = 0.2 a + e1, ln t2 = 0.1 a + 0.15 b + e2; readings a + n and b + n.
    let n = 0.1f64.powi(2);
    #[rustfmt::skip]
    let covariance = vec![
        VARIANCES[0], 0.02, 0.2, 0.0,
        0.02, VARIANCES[1], 0.1, 0.15,
        0.2, 0.1, 1.0 + n, 0.0,
        0.0, 0.15, 0.0, 1.0 + n,
    ];
    Decision::new(OPTIONS.to_vec(), lateness, covariance)
}

/// The expected loss by an option whose logarithm of time has this mean, beside its median, and variance.
fn loss(option: usize, lateness: Option<Lateness>, shift: f64, variance: f64) -> f64 {
    let DecisionOption { time, price } = OPTIONS[option];
    let moved = DecisionOption { time: time * shift.exp(), price };
    Decision::new(vec![moved], lateness, vec![variance]).losses()[0]
}

/// Enumerates outcomes of a reading of variance 1.01 with these covariances with both options, each with its probability.
fn enumerated(lateness: Option<Lateness>, with: [f64; 2]) -> f64 {
    let now = decision(lateness).best();
    let mut value = 0.0;
    for step in -4000..=4000 {
        let z = f64::from(step) / 500.0;
        let probability = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() / 500.0;
        let losses = [0, 1].map(|option| {
            let slope = with[option] / 1.01f64.sqrt();
            loss(option, lateness, slope * z, VARIANCES[option] - slope.powi(2))
        });
        value += probability * (losses[now] - losses[0].min(losses[1]));
    }
    value
}

#[test]
fn values_are_those_of_enumeration() {
    for lateness in [None, Some(Lateness { deadline: 110.0, price: 3.0 })] {
        let decision = decision(lateness);
        let worlds = decision.worlds().unwrap();
        for (reading, with) in [(2, [0.2, 0.1]), (3, [0.0, 0.15])] {
            let found = decision.value(&[reading], &worlds).unwrap();
            let exact = enumerated(lateness, with);
            assert!(
                (found.value - exact).abs() < (1.5 * found.error).max(0.005 * exact),
                "{found:?} {exact}"
            );
            assert!(found.error < 0.1 * exact);
            let chances: f64 = found.choices.iter().map(|choice| choice.chance).sum();
            assert!((chances - 1.0).abs() < 1e-9);
        }
        let both = decision.value(&[2, 3], &worlds).unwrap().value;
        let single = [2, 3].map(|reading| decision.value(&[reading], &worlds).unwrap().value);
        let regret = decision.perfect(&worlds).value;
        assert!(both > single[0].max(single[1]) && both < regret, "{single:?} {both} {regret}");
    }
}

/// E max(T - D, 0) by its integral over the normal distribution.
#[test]
fn lateness_costs_its_mean() {
    let lateness = Some(Lateness { deadline: 110.0, price: 3.0 });
    let late = decision(lateness);
    let sum: f64 = (-4000..=4000)
        .map(|step| {
            let z = f64::from(step) / 500.0;
            let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() / 500.0;
            density * (100.0 * (0.3 * z).exp() - 110.0).max(0.0)
        })
        .sum();
    let cost = loss(0, lateness, 0.0, 0.09) - loss(0, None, 0.0, 0.09);
    assert!((cost - 3.0 * sum).abs() < 1e-3);
    assert!((late.in_time(0).unwrap() - 0.682).abs() < 1e-3);
}

#[test]
fn an_experiment_that_tells_nothing_is_worth_nothing() {
    let options = vec![DecisionOption { time: 1.0, price: 1.0 }, DecisionOption { time: 1.1, price: 1.0 }];
    let decision = Decision::new(options, None, vec![0.01, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 0.0, 1.0]);
    let found = decision.value(&[2], &decision.worlds().unwrap()).unwrap();
    assert!(found.value.abs() < 1e-12 && found.choices.len() == 1, "{found:?}");
}

#[test]
fn what_was_read_moves_options_that_share_its_cause() {
    let after = decision(None).after(2, 1.01);
    let [first, second] = [0, 1].map(|option| after.options()[option].time);
    assert!((first - 100.0 * 0.2f64.exp()).abs() < 1e-9 && (second - 52.0 * 0.1f64.exp()).abs() < 1e-9);
    let variance = 2.0 * (after.losses()[0] / first).ln();
    assert!((variance - (VARIANCES[0] - 0.04 / 1.01)).abs() < 1e-12);
    assert_eq!(after.worlds().unwrap()[0].len(), 3);
}

fn decided(text: &str) -> decide::Decision {
    let asked = request(text, &[]).for_planning().scenario().unwrap();
    decide(SHARED, &asked, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

const LLAMA: &str = "[model]\nzoo = \"llama3-8b\"\n[plan]\ntokens = 1e11\n[[plan.offers]]\nmachine = \"dgx-h100\"\nnodes = [2, 8]\n\
                     [[plan.offers]]\nmachine = \"p5\"\nname = \"p5 spot\"\nspot = true\nnodes = [4]\n";

#[test]
fn prices_are_assumed_and_widen_the_cost() {
    let decision = decided(LLAMA);
    assert_eq!(decision.options.len(), 3);
    for option in &decision.options {
        let (price, figures) = (option.price.as_ref().unwrap(), option.figures.as_ref().unwrap());
        let hours = figures.time.unwrap().get() / 3600.0;
        let cost = hours * price.node_hour * option.nodes as f64;
        assert!((figures.cost.unwrap() / cost - 1.0).abs() < 1e-9, "{}", option.offer);
        let (width, of_time) = (figures.cost_interval.unwrap(), figures.time_interval_s.unwrap());
        assert!(width[1] / width[0] > of_time[1] / of_time[0], "{}", option.offer);
    }
    let spot = decision.options[2].figures.as_ref().unwrap().training.as_ref().unwrap();
    let plain = decision.options[1].figures.as_ref().unwrap().training.as_ref().unwrap();
    let of_one = |training: &Training, nodes: f64| training.interruptions / training.time.get() / nodes;
    assert!(of_one(spot, 4.0) > 1.5 * of_one(plain, 8.0));
}

#[test]
fn the_cheapest_that_meets_the_deadline_is_recommended() {
    let free = decided(LLAMA);
    let figures =
        |decision: &decide::Decision, place: usize| decision.options[place].figures.clone().unwrap();
    let cheapest =
        |a: &usize, b: &usize| figures(&free, *a).cost.unwrap().total_cmp(&figures(&free, *b).cost.unwrap());
    assert_eq!(free.recommended, (0..3).min_by(cheapest));
    let times = (0..3).map(|place| figures(&free, place).time_interval_s.unwrap()[1].get());
    let fastest = times.clone().fold(f64::INFINITY, f64::min);
    let within = |deadline: String| {
        decided(&LLAMA.replace("tokens = 1e11", &format!("tokens = 1e11\ndeadline = \"{deadline}\"")))
    };
    let tight = within(format!("{} s", fastest * 1.001));
    let chosen = figures(&tight, tight.recommended.unwrap());
    assert!(
        chosen.late.unwrap() <= LATE
            && (chosen.time_interval_s.unwrap()[1].get() / fastest - 1.0).abs() < 1e-9
    );
    // Nothing is fast enough: the fastest, which will be late.
    let never = within("1 h".to_owned());
    assert!(figures(&never, never.recommended.unwrap()).late.unwrap() > 0.99);
    assert_eq!(never.recommended, tight.recommended);
}

#[test]
fn models_that_are_not_split_have_options_too() {
    let decision = decided(
        "[model]\nzoo = \"resnet50\"\n[data]\nsamples = 1281167\nepochs = 90\n[[plan.offers]]\nmachine = \"dgx-a100\"\nnodes = [1, 2]\n",
    );
    let [one, two] = [0, 1].map(|place| decision.options[place].figures.clone().unwrap());
    assert!(two.time.unwrap() < one.time.unwrap() && one.cost.unwrap() < two.cost.unwrap());
    assert!(one.is_on_front && two.is_on_front && decision.recommended == Some(0));
}

const TERMS: Terms =
    Terms { agreed_step: Seconds::new(1.0), tolerance: 0.05, false_alarm: 0.05, miss: 0.1, spread: 0.03 };

/// Steps whose mean is one observation.
const BLOCK: usize = 10;

/// Steps of a test of a fixed number of them.
fn most_steps(spread: f64) -> u64 {
    Terms { spread, ..TERMS }.test(&[Seconds::new(1.0)]).most_steps
}

/// Numbers between 0 and 1 that are the same in every run.
fn numbers(mut seed: u64) -> impl FnMut() -> f64 {
    move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Of 2000 clusters whose steps take `slowness` times the agreed one: shares that are found to keep the contract and to
/// break it, and mean steps until then.
fn outcomes(slowness: f64) -> ([f64; 2], f64) {
    let mut next = numbers(7);
    let (mut found, mut steps) = ([0.0; 2], 0.0);
    for _ in 0..2000 {
        let times: Vec<Seconds> = (0..most_steps(0.06))
            .map(|_| {
                let normal: f64 = (0..12).map(|_| next()).sum::<f64>() - 6.0;
                Seconds::new(slowness * (normal * TERMS.spread * (BLOCK as f64).sqrt()).exp())
            })
            .collect();
        let acceptance = TERMS.test(&times);
        match acceptance.outcome {
            Outcome::Kept => found[0] += 1.0 / 2000.0,
            Outcome::Broken => found[1] += 1.0 / 2000.0,
            Outcome::Open => {}
        }
        steps += acceptance.steps as f64 / 2000.0;
    }
    (found, steps)
}

#[test]
fn false_alarms_and_misses_are_as_rare_as_stated() {
    let ([kept, alarms], steps) = outcomes(1.0);
    assert!(alarms <= TERMS.false_alarm && kept >= 1.0 - TERMS.false_alarm, "{kept} {alarms}");
    let ([misses, broken], faster) = outcomes(1.05);
    assert!(misses <= TERMS.miss && broken >= 1.0 - TERMS.miss, "{misses} {broken}");
    let most = most_steps(TERMS.spread) as f64;
    assert!(steps < most && faster < most, "{steps} {faster} {most}");
    assert!(outcomes(1.3).1 <= 2.0 * BLOCK as f64 && outcomes(0.8).1 <= 2.0 * BLOCK as f64);
}

#[test]
fn too_few_steps_leave_it_open() {
    assert_eq!(TERMS.test(&[Seconds::new(1.0); 9]).outcome, Outcome::Open);
    let close = TERMS.test(&[Seconds::new(1.024); 20]);
    assert_eq!((close.outcome, close.steps), (Outcome::Open, 20));
}

#[test]
fn terms_are_read_as_they_are_written() {
    let text = TERMS.to_toml().unwrap();
    assert_eq!(Terms::from_toml("contract.toml", &text), Ok(TERMS));
    for broken in ["", "agreed-step = \"1 s\"", &text.replace("0.05", "7e9"), &text.replace("1 s", "-1 s")] {
        let fault = Terms::from_toml("contract.toml", broken).unwrap_err();
        assert!(fault.to_string().contains("contract.toml"), "{fault}");
    }
}
