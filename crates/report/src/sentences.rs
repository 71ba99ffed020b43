//! Sentences about a scenario and its forecast.

use crate::format::{
    as_sure, count, duration, grouped, interval_of_times, money, name, percent, plain, ratio, rough_duration,
    rough_money, several,
};
use crate::table::{Hint, Wording};
use stepcast_core::machine::{ServerSoftware, Transport};
use stepcast_core::method::Method;
use stepcast_core::prediction::{Bottleneck, Prediction, Verdict};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Plan, Sharding};
use stepcast_study::explore::sweep::devices;
use stepcast_study::request::Assumed;
use stepcast_study::{Advice, Forecast, Training, WhatIf};

/// Computing that exceeds the parts of a step by less than this share is not mentioned.
const OVERLAPPED: f64 = 0.01;

/// Slack below this rounds to nothing.
const NO_SLACK: f64 = 0.0005;

/// Kinds of devices that a title names; of more, only the number of workers.
const NAMED: usize = 3;

/// The model and the machines: "resnet50 on 64 × NVIDIA A100 SXM4 80GB, 8 on each machine".
pub fn title(scenario: &Scenario, assumed: &Assumed) -> String {
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
        each if each == 1 || cluster.workers() == 1 => String::new(),
        each if each >= cluster.workers() => " in one machine".to_owned(),
        each => {
            let last = u64::from(cluster.workers_on_last_node());
            let rest = if last < each { format!(" and {} on the last", count(last)) } else { String::new() };
            format!(", {} on each machine{rest}", count(each))
        }
    };
    let mark = match (assumed.device, assumed.workers) {
        (true, true) => " (assumed)",
        (true, false) => " (device assumed)",
        (false, true) => " (number assumed)",
        (false, false) => "",
    };
    format!("{} on {workers}{mark}{machines}", name(scenario.name()))
}

fn marked(choice: String, assumed: bool) -> String {
    if assumed { choice + " (assumed)" } else { choice }
}

/// How software moves data over a link.
fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => ", TCP",
        Transport::Rdma => ", RDMA",
        Transport::HostMpi => ", MPI through hosts",
        Transport::Gloo => ", gloo",
        Transport::Pcie | Transport::Nvlink | Transport::Ideal => "",
    }
}

/// Settings that decide the answer beside model and machines: exchange of gradients, batch, number format and network,
/// each marked if assumed.
pub fn setting(scenario: &Scenario, assumed: &Assumed) -> String {
    let (strategy, cluster) = (&scenario.strategy, &scenario.cluster);
    let architecture = match strategy.architecture {
        Architecture::ParameterServer => {
            let servers = several(u64::from(cluster.servers.count), "parameter server");
            let open =
                cluster.servers.software.is_none() && scenario.server_software() == ServerSoftware::Grpc;
            if open { format!("{servers} with gRPC of any age (assumed)") } else { servers }
        }
        Architecture::AllReduce => "all-reduce".to_owned(),
        Architecture::StandAlone => "stand-alone".to_owned(),
    };
    let network = match strategy.architecture {
        Architecture::StandAlone => String::new(),
        Architecture::AllReduce if cluster.workers() == 1 => String::new(),
        _ => {
            // Workers of one machine do not use the network.
            let nodes = cluster.nodes.as_ref();
            let inside = nodes.filter(|nodes| u64::from(nodes.workers) >= cluster.workers());
            let link = inside.map_or(&cluster.network, |nodes| &nodes.network);
            let link =
                format!("{} ({}{})", name(&link.name), link.bandwidth.human(), transport(link.transport));
            let is_assumed = if inside.is_some() { assumed.layout } else { assumed.network };
            format!(", {}", marked(link, is_assumed))
        }
    };
    let precision = match scenario.profile() {
        Some(_) => String::new(),
        None => format!(", {}", marked(strategy.precision.to_string(), assumed.precision)),
    };
    if let Some(plan) = &strategy.plan {
        let recipe = match plan.recipe.bits() {
            Some(_) => format!(", products by {}", plan.recipe),
            None => String::new(),
        };
        let sequences =
            sequences(scenario, plan, assumed).map_or(String::new(), |sequences| format!(", {sequences}"));
        let (split, micro_batch) = (split(plan, cluster.workers()), micro_batch(plan));
        let split = match assumed.plan == assumed.micro_batch {
            true => marked(format!("{split}, {micro_batch}"), assumed.plan),
            false => format!("{}, {micro_batch}", marked(split, assumed.plan)),
        };
        return format!("{split}{sequences}{precision}{recipe}{network}");
    }
    let batches = (0..cluster.groups.len()).map(|group| scenario.batch(group));
    let least = batches.clone().min().unwrap_or(strategy.batch);
    let most = batches.max().unwrap_or(strategy.batch);
    let batch = if least == most {
        count(most.into())
    } else {
        format!("{}–{}", count(least.into()), count(most.into()))
    };
    let together = (0..cluster.groups.len())
        .map(|group| u64::from(scenario.samples(group)) * u64::from(cluster.groups[group].count));
    let each = match cluster.workers() {
        1 => String::new(),
        _ => format!(" per worker ({} together)", count(together.sum())),
    };
    let batch = marked(format!("batch {batch}{each}"), assumed.batch);
    format!("{architecture}, {}, {batch}{precision}{network}", strategy.synchronisation)
}

/// The sequences of a step of a plan: "128 sequences of 8,192 tokens (4 per worker)".
fn sequences(scenario: &Scenario, plan: &Plan, assumed: &Assumed) -> Option<String> {
    let shape = scenario.transformer_of_plan().ok()?;
    let workers = scenario.cluster.workers();
    let batch = plan.divide(&shape, workers).ok()?.global_batch;
    let each = match batch.is_multiple_of(workers) && workers > 1 {
        true => format!(", {} per worker", count(batch / workers)),
        false => String::new(),
    };
    let text = format!("{} of {} tokens a step{each}", several(batch, "sequence"), count(shape.sequence));
    Some(marked(text, assumed.batch))
}

/// Whether a plan fits, in words, and the workers on which it would.
pub fn memory(forecast: &Forecast) -> Option<String> {
    let memory = &forecast.prediction.transformer.as_ref()?.memory;
    let (least, most, capacity) = (memory.least.human(), memory.most.human(), memory.capacity.human());
    let more = match forecast.fits_with {
        None => " No usual plan fits on any number of such workers: shorter sequences or adapters need less memory.".to_owned(),
        Some(workers) if u64::from(workers) == forecast.prediction.workers => {
            " Another plan fits on these workers.".to_owned()
        }
        Some(workers) => {
            format!(" A plan that fits needs {} of this kind.", several(workers.into(), "worker"))
        }
    };
    let change = forecast.fits_after.as_ref();
    let more = more + &change.map_or(String::new(), |change| format!(" To fit here, {change}."));
    if let Some(saving) = memory.saving {
        let condition = saving.condition();
        return Some(format!(
            "May not fit: needs {most} of the {capacity} of a worker, or {least} {condition}.{more}"
        ));
    }
    Some(match memory.verdict {
        Verdict::Fits => format!("Fits: {least} to {most} of the {capacity} of a worker."),
        Verdict::MayNotFit => {
            format!(
                "May not fit: needs {least}, {most} with what allocators lose, of the {capacity} of a worker.{more}"
            )
        }
        Verdict::DoesNotFit => {
            let times = memory.least / memory.capacity;
            let times = if times >= 2.0 { format!(" ({} times)", ratio(times)) } else { String::new() };
            format!("Does not fit{times}: needs {least}, and a worker has {capacity}.{more}")
        }
    })
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
fn split(plan: &Plan, workers: u64) -> String {
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
        parts.push(if workers > 1 { "data parallelism" } else { "one worker" }.to_owned());
    }
    let schedule = match plan.pipeline {
        1 => String::new(),
        _ => format!(", {}", plan.schedule_kind()),
    };
    let sharding = match plan.sharding {
        Sharding::None => String::new(),
        sharding => format!(", {sharding}"),
    };
    format!("{}{schedule}{sharding}", parts.join(" × "))
}

fn micro_batch(plan: &Plan) -> String {
    let outer = match plan.outer_replicas {
        1 => String::new(),
        replicas => {
            let link = plan.outer_link.map_or(String::new(), |link| format!(" over {}", link.human()));
            format!(", {} replicas with local SGD{link}", count(replicas))
        }
    };
    format!("micro-batch {}{outer}", count(plan.micro_batch))
}

/// The method of the prediction, what it models, and additions to its paper's formula.
pub fn method(method: &dyn Method, scenario: &Scenario) -> String {
    let beyond = match method.beyond_paper(scenario).as_slice() {
        [] if scenario.as_published => "; as published".to_owned(),
        [] => String::new(),
        beyond => format!("; beyond the paper's formula: {}", beyond.join(", ")),
    };
    format!("Predicted by {}: {}{beyond}.", method.name(), method.about().summary)
}

/// Part of a step below which a difference is not worth a sentence.
const NOTICED: f64 = 0.02;

/// How long training takes, with the digits that its interval leaves.
pub(crate) fn trained_for(training: &Training) -> String {
    if training.total_interval_s.is_some() {
        rough_duration(training.total)
    } else {
        duration(training.total)
    }
}

/// The cost of training, with the digits that its interval leaves.
pub(crate) fn cost_of(training: &Training, cost: f64) -> String {
    if training.cost_interval.is_some() { rough_money(cost) } else { money(cost) }
}

/// The answer in a few sentences: step time, uncertainty, bottleneck.
pub fn answer(forecast: &Forecast) -> String {
    let prediction = &forecast.prediction;
    let interval = forecast.interval.as_ref().map_or(String::new(), |interval| {
        format!(" ({} interval {})", percent(interval.level), interval_of_times(interval.iteration_s))
    });
    let training = forecast.training.as_ref().map_or(String::new(), |training| {
        let cost = training.cost.map_or(String::new(), |cost| {
            let currency = name(training.currency.as_deref().unwrap_or_default());
            let assumed = if training.is_price_assumed { " (price assumed)" } else { "" };
            format!(" and costs {} {currency}{assumed}", cost_of(training, cost))
        });
        format!(" Training takes {}{cost}.", trained_for(training))
    });
    let width = width(forecast);
    let reached = match &prediction.transformer {
        Some(report) => {
            let tokens = count(as_sure(report.tokens_per_s, width).round() as u64);
            format!("{tokens} tokens/s at {} of the peak rate (MFU)", percent(report.mfu))
        }
        None => {
            let rate = grouped(SamplesPerSec::new(as_sure(prediction.throughput.get(), width)).human());
            let (share, workers) =
                (percent(prediction.scaling_factor), several(prediction.workers, "worker"));
            format!("{rate}, {share} of what {workers} would reach without communication")
        }
    };
    let iteration = Seconds::new(as_sure(prediction.iteration.get(), width)).human();
    let differs = |step: &Seconds| (*step / prediction.iteration - 1.0).abs() > NOTICED;
    let kernels = forecast.with_hugging_face_s.filter(differs).map_or(String::new(), |step| {
        let step = Seconds::new(as_sure(step.get(), width)).human();
        format!(" With the kernels of Hugging Face instead of PyTorch's (assumed) a step takes {step}.")
    });
    let limit = plain(&forecast.advice.sentence);
    format!("A step takes {iteration}{interval}: {reached}.{kernels}{training} {limit}")
}

/// The width of the interval of a step, as a share of the step; without one, the width from simulated runs.
pub(crate) fn width(forecast: &Forecast) -> f64 {
    let ends = forecast.interval.as_ref().map(|interval| interval.iteration_s);
    let ends = ends.or_else(|| simulated(&forecast.prediction));
    ends.map_or(0.0, |[low, high]| (high - low) / forecast.prediction.iteration)
}

/// Interval of the time of a step from simulated runs.
pub(crate) fn simulated(prediction: &Prediction) -> Option<[Seconds; 2]> {
    let [low, high] = prediction.simulation.as_ref()?.throughput_interval;
    let step = |rate: f64| prediction.iteration * (prediction.throughput.get() / rate);
    (low > 0.0).then(|| [step(high), step(low)])
}

const NAMED_PARTS: usize = 5;

/// Breakdown of a step, and the useful number of workers, in brief.
pub fn parts(forecast: &Forecast) -> String {
    let prediction = &forecast.prediction;
    let mut parts: Vec<(String, f64)> = prediction
        .breakdown
        .iter()
        .map(|part| (part.kind.to_string(), part.time / prediction.iteration))
        .filter(|(_, share)| *share >= 0.001)
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let text: Vec<String> =
        parts.iter().take(NAMED_PARTS).map(|(part, share)| format!("{part} {}", percent(*share))).collect();
    let knee = saturation(forecast).map_or(String::new(), |sentence| format!(" {sentence}"));
    format!("Where the time goes: {}.{knee}", text.join(", "))
}

/// Next steps: what to measure, warnings, and further commands.
pub fn next(forecast: &Forecast, words: Wording) -> Vec<String> {
    let assumption = forecast.interval.as_ref().and_then(|interval| interval.by_assumption.first());
    let measure = assumption.map(|most| words.hint(&Hint::NarrowInterval(most.remedy.clone())));
    let warnings = match forecast.prediction.warnings.len() as u64 {
        0 => None,
        number => {
            let codes: Vec<&str> = forecast.prediction.warnings.iter().map(|warning| warning.code).collect();
            Some(format!("{}: {}.", several(number, "warning"), codes.join(", ")))
        }
    };
    let rest = Some(words.hint(&Hint::WholeForecast)).filter(|rest| !rest.is_empty());
    let advice: Vec<String> = measure.into_iter().chain(warnings).collect();
    Some(advice.join(" ")).filter(|advice| !advice.is_empty()).into_iter().chain(rest).collect()
}

/// Note that points were predicted by several methods, if so.
pub fn mixed(methods: &[&str]) -> Option<String> {
    let (last, others) = methods.split_last().filter(|(_, others)| !others.is_empty())?;
    Some(format!(
        "No single method models all of them: {} and {last} predict them. Compare only those of one method.",
        others.join(", ")
    ))
}

/// Bandwidth at which the bottleneck changes.
pub fn balance(prediction: &Prediction, advice: &Advice) -> Option<String> {
    let rate = advice.balanced_bandwidth?.human();
    Some(match prediction.bottleneck {
        Bottleneck::Compute => format!("Communication becomes the bottleneck below {rate}."),
        _ => format!("Computing becomes the bottleneck above {rate}."),
    })
}

/// Number of workers beyond which the throughput hardly grows.
pub fn saturation(forecast: &Forecast) -> Option<String> {
    let workers = several(forecast.saturates_at?.into(), "worker");
    let worth = (1e4 * forecast.worth).round() / 100.0;
    Some(format!("More than {workers} add less than {worth} % to the throughput."))
}

/// Baseline of the speed-up.
pub fn baseline(advice: &Advice) -> String {
    advice.alone.as_ref().map_or("over the fastest worker alone".to_owned(), |alone| {
        format!(
            "over the fastest worker alone: {}, {}",
            name(&alone.device),
            grouped(alone.throughput.human())
        )
    })
}

/// Computing time of workers, if transfers hide a part of it from the breakdown.
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

/// Note about other methods used to compare changes.
pub fn compared_elsewhere(method: &str, changes: &[WhatIf]) -> Option<String> {
    let mut others: Vec<&WhatIf> = changes.iter().filter(|change| change.method != method).collect();
    others.sort_by(|a, b| a.method.cmp(b.method));
    let same = |a: &&WhatIf, b: &&WhatIf| a.method == b.method;
    let sentence = |these: &[&WhatIf]| {
        let names: Vec<String> = these.iter().map(|change| name(&change.change)).collect();
        format!("{} compares {}.", these[0].method, names.join(", "))
    };
    let sentences: Vec<String> = others.chunk_by(same).map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Gain in throughput by a change: "+75 %", "none".
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
            let scenario = stepcast_core::scenario::Document::new("test", text).scenario(&[]).unwrap();
            setting(&scenario, &Assumed::default())
        };
        assert!(of("").contains("batch 16 per worker"));
        assert!(of("[[cluster.workers]]\nbatch = 64\n").contains("batch 64 per worker"));
        assert!(
            of("[[cluster.workers]]\nbatch = 64\n[[cluster.workers]]\n").contains("batch 16–64 per worker")
        );
    }

    #[test]
    fn gains_have_their_sign() {
        assert_eq!(gain(0.75), "+75 %");
        assert_eq!(gain(-0.2), "−20 %");
        assert_eq!(gain(-0.000_01), "none");
    }
}
