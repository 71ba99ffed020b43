//! Sentences about a scenario and its forecast.

use crate::format::{
    count, duration, grouped, interval_of_times, money, name, percent, plain, ratio, several,
};
use stepcast_core::method::Method;
use stepcast_core::prediction::{Bottleneck, Prediction, Verdict};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Plan, Sharding};
use stepcast_study::explore::sweep::devices;
use stepcast_study::{Advice, Forecast, WhatIf};

/// Computing that exceeds the parts of a step by less than this share is not mentioned.
const OVERLAPPED: f64 = 0.01;

/// Slack below this rounds to nothing.
const NO_SLACK: f64 = 0.0005;

/// Kinds of devices that a title names; of more, only the number of workers.
const NAMED: usize = 3;

/// The model and the machines: "resnet50 on 64 × NVIDIA A100 SXM4 80GB, 8 on each machine".
pub fn title(scenario: &Scenario) -> String {
    let cluster = &scenario.cluster;
    let devices = devices(scenario);
    let workers = match devices.len() <= NAMED && scenario.profile().is_none() {
        true => {
            let each = |(device, number): &(&str, u64)| format!("{} × {}", count(*number), name(device));
            devices.iter().map(each).collect::<Vec<_>>().join(" and ")
        }
        false => several(cluster.workers(), "worker"),
    };
    let machines = match u64::from(cluster.workers_per_node()) {
        1 => String::new(),
        each if each >= cluster.workers() => " in one machine".to_owned(),
        each => {
            let last = u64::from(cluster.workers_on_last_node());
            let rest = if last < each { format!(" and {} on the last", count(last)) } else { String::new() };
            format!(", {} on each machine{rest}", count(each))
        }
    };
    format!("{} on {workers}{machines}", name(scenario.name()))
}

/// The architecture, the network, the synchronisation and the batch.
pub fn setting(scenario: &Scenario) -> String {
    let (strategy, cluster) = (&scenario.strategy, &scenario.cluster);
    let architecture = match strategy.architecture {
        Architecture::ParameterServer => several(u64::from(cluster.servers.count), "parameter server"),
        Architecture::AllReduce => "all-reduce".to_owned(),
        Architecture::StandAlone => "stand-alone".to_owned(),
    };
    let network = match strategy.architecture {
        Architecture::StandAlone => String::new(),
        _ => {
            // Workers of one machine do not use the network.
            let nodes = cluster.nodes.as_ref();
            let inside = nodes.filter(|nodes| u64::from(nodes.workers) >= cluster.workers());
            let link = inside.map_or(&cluster.network, |nodes| &nodes.network);
            format!(", {} ({})", name(&link.name), link.bandwidth.human())
        }
    };
    if let Some(plan) = &strategy.plan {
        return format!("{}{network}", split(plan));
    }
    let batches = (0..cluster.groups.len()).map(|group| scenario.batch(group));
    let least = batches.clone().min().unwrap_or(strategy.batch);
    let most = batches.max().unwrap_or(strategy.batch);
    let batch = if least == most {
        count(most.into())
    } else {
        format!("{}–{}", count(least.into()), count(most.into()))
    };
    format!("{architecture}{network}, {}, batch {batch}", strategy.synchronisation)
}

/// Whether a plan fits into the devices.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::MayNotFit => "may not fit",
        Verdict::DoesNotFit => "does not fit",
    }
}

/// How a plan splits a transformer: "tensor 8 × pipeline 4 (2 chunks), zero-1, micro-batch 1".
fn split(plan: &Plan) -> String {
    let kinds = [
        ("tensor", plan.tensor),
        ("context", plan.context),
        ("pipeline", plan.pipeline),
        ("expert", plan.expert),
    ];
    let mut parts: Vec<String> = kinds
        .into_iter()
        .filter(|(_, ranks)| *ranks > 1)
        .map(|(kind, ranks)| format!("{kind} {}", count(ranks)))
        .collect();
    if parts.is_empty() {
        parts.push("data parallelism".to_owned());
    }
    let schedule = match plan.pipeline {
        1 => String::new(),
        _ => format!(", {}", plan.schedule_kind()),
    };
    let sharding = match plan.sharding {
        Sharding::None => String::new(),
        sharding => format!(", {sharding}"),
    };
    format!("{}{schedule}{sharding}, micro-batch {}", parts.join(" × "), count(plan.micro_batch))
}

/// The method that predicted, what it models, and what is added to its paper's formula.
pub fn method(method: &dyn Method, scenario: &Scenario) -> String {
    let beyond = match method.beyond_paper(scenario).as_slice() {
        [] if scenario.as_published => "; as published".to_owned(),
        [] => String::new(),
        beyond => format!("; beyond the paper's formula: {}", beyond.join(", ")),
    };
    format!("Predicted by {}: {}{beyond}.", method.name(), method.summary())
}

/// The answer in a few sentences: how long, how uncertain, what limits it.
pub fn answer(forecast: &Forecast) -> String {
    let prediction = &forecast.prediction;
    let interval = forecast.interval.as_ref().map_or(String::new(), |interval| {
        format!(" ({} interval {})", percent(interval.level), interval_of_times(interval.iteration_s))
    });
    let training = forecast.training.as_ref().map_or(String::new(), |training| {
        let cost = training.cost.map_or(String::new(), |cost| {
            let currency = name(training.currency.as_deref().unwrap_or_default());
            format!(" and costs {} {currency}", money(cost))
        });
        format!(" Training takes {}{cost}.", duration(training.total))
    });
    format!(
        "A step takes {}{interval}. The throughput is {}, {} of what {} would reach without communication.{training} {}",
        prediction.iteration.human(),
        grouped(prediction.throughput.human()),
        percent(prediction.scaling_factor),
        several(prediction.workers, "worker"),
        plain(&forecast.advice.sentence)
    )
}

/// That points were predicted by several methods, where they were.
pub fn mixed(methods: &[&str]) -> Option<String> {
    let (last, others) = methods.split_last().filter(|(_, others)| !others.is_empty())?;
    Some(format!(
        "No single method models all of them: {} and {last} predict them. Compare only those of one method.",
        others.join(", ")
    ))
}

/// At which bandwidth the bottleneck changes.
pub fn balance(prediction: &Prediction, advice: &Advice) -> Option<String> {
    let rate = advice.balanced_bandwidth?.human();
    Some(match prediction.bottleneck {
        Bottleneck::Compute => format!("Communication becomes the bottleneck below {rate}."),
        _ => format!("Computing becomes the bottleneck above {rate}."),
    })
}

/// Beyond how many workers the throughput hardly grows.
pub fn saturation(forecast: &Forecast) -> Option<String> {
    let workers = several(forecast.saturates_at?.into(), "worker");
    let worth = (1e4 * forecast.worth).round() / 100.0;
    Some(format!("More than {workers} add less than {worth} % to the throughput."))
}

/// What the speed-up compares with.
pub fn baseline(advice: &Advice) -> String {
    advice.alone.as_ref().map_or("over the fastest worker alone".to_owned(), |alone| {
        format!(
            "over the fastest worker alone: {}, {}",
            name(&alone.device),
            grouped(alone.throughput.human())
        )
    })
}

/// How long workers compute, where transfers hide a part of it from the breakdown.
pub fn overlapped(prediction: &Prediction) -> Option<String> {
    let counted = prediction.computing();
    let times = || prediction.groups.iter().map(|group| group.compute);
    let (least, most) = (times().reduce(Seconds::min)?, times().reduce(Seconds::max)?);
    if prediction.simulation.is_some() || most <= counted * (1.0 + OVERLAPPED) {
        return None;
    }
    let range = match least < most {
        true => format!("{} to {}", least.human(), most.human()),
        false => most.human(),
    };
    Some(format!("The parts add up to the step. Workers compute for {range}, mostly during transfers."))
}

/// Other methods that compare changes, and what they predict for the scenario.
pub fn compared_elsewhere(method: &str, changes: &[WhatIf]) -> Option<String> {
    let mut others: Vec<&WhatIf> = changes.iter().filter(|change| change.method != method).collect();
    others.sort_by(|a, b| a.method.cmp(b.method));
    let same = |a: &&WhatIf, b: &&WhatIf| a.method == b.method;
    let sentence = |these: &[&WhatIf]| {
        let names: Vec<String> = these.iter().map(|change| name(&change.change)).collect();
        let (by, before) = (these[0].method, grouped(these[0].before.human()));
        format!("{by} compares {}; it predicts {before} for this scenario.", names.join(", "))
    };
    let sentences: Vec<String> = others.chunk_by(same).map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// What a change adds to the throughput: "+75 %", "none".
pub fn gain(share: f64) -> String {
    let gain = percent(share);
    // "+0.0 %" and "-0.0 %" both mean that there is no gain.
    match gain.trim_start_matches('-') {
        "0.0 %" | "< 0.1 %" => "none".to_owned(),
        _ if share > 0.0 => format!("+{gain}"),
        _ => gain.replace('-', "−"),
    }
}

/// How much slower a worker may compute before the step gets longer.
pub fn slack(share: Option<f64>) -> String {
    match share {
        None => "–".to_owned(),
        Some(share) if share < NO_SLACK => "none: any delay lengthens the step".to_owned(),
        Some(share) => format!("{}× slower", ratio(1.0 + share)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_a_factor() {
        assert_eq!(slack(Some(0.4)), "1.40× slower");
        assert_eq!(slack(Some(0.0)), "none: any delay lengthens the step");
        assert_eq!(slack(Some(19.0)), "20.0× slower");
    }

    #[test]
    fn the_batch_is_that_of_the_groups() {
        let of = |groups: &str| {
            let text = format!("[model]\nzoo = \"resnet50\"\n[strategy]\nbatch = 16\n{groups}");
            setting(&stepcast_core::scenario::Document::new("test", text).scenario(&[]).unwrap())
        };
        assert!(of("").ends_with("batch 16"));
        assert!(of("[[cluster.workers]]\nbatch = 64\n").ends_with("batch 64"));
        assert!(of("[[cluster.workers]]\nbatch = 64\n[[cluster.workers]]\n").ends_with("batch 16–64"));
    }

    #[test]
    fn gains_have_their_sign() {
        assert_eq!(gain(0.75), "+75 %");
        assert_eq!(gain(-0.2), "−20 %");
        assert_eq!(gain(-0.000_01), "none");
    }
}
