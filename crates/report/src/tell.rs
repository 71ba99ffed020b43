//! What a scenario asks and what a forecast answers, in sentences.

use crate::words::{between, count, duration, grouped, money, name, percent, ratio, several};
use stepcast_core::prediction::{Bottleneck, Prediction};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;
use stepcast_study::{Advice, Forecast};

/// Slack below this rounds to nothing.
const NO_SLACK: f64 = 0.0005;
/// Beyond this, slack is told as a factor.
const MUCH_SLACK: f64 = 10.0;

/// What is trained on how many workers.
pub fn title(scenario: &Scenario) -> String {
    format!("{} on {}", name(scenario.name()), several(scenario.cluster.workers(), "worker"))
}

/// How it is trained.
pub fn setting(scenario: &Scenario) -> String {
    let (strategy, cluster) = (&scenario.strategy, &scenario.cluster);
    let architecture = match strategy.architecture {
        Architecture::ParameterServer => several(u64::from(cluster.servers.count), "parameter server"),
        Architecture::AllReduce => "all-reduce".to_owned(),
        Architecture::StandAlone => "stand-alone".to_owned(),
    };
    let network = match strategy.architecture {
        Architecture::StandAlone => String::new(),
        _ => format!(", {} ({})", name(&cluster.network.name), cluster.network.bandwidth.human()),
    };
    let batch = count(strategy.batch.into());
    format!("{architecture}{network}, {}, batch {batch}", strategy.synchronisation)
}

/// The answer in a sentence or two: how long, how sure, and what limits it.
pub fn answer(forecast: &Forecast) -> String {
    let prediction = &forecast.prediction;
    let sure = forecast.interval.as_ref().map_or(String::new(), |interval| {
        let ends = between(interval.iteration_s.map(Seconds::human));
        format!(" ({ends} with {})", percent(interval.level))
    });
    let epoch = forecast.training.as_ref().map_or(String::new(), |training| {
        let cost = training.cost.map_or(String::new(), |cost| {
            let currency = name(training.currency.as_deref().unwrap_or_default());
            format!(" for {} {currency}", money(cost))
        });
        format!(" Training takes {}{cost}.", duration(training.total))
    });
    format!(
        "A step takes {}{sure}: {} in all, {} of what {} would do without communication.{epoch} {}",
        prediction.iteration.human(),
        grouped(prediction.throughput.human()),
        percent(prediction.scaling_factor),
        several(prediction.workers, "worker"),
        forecast.advice.sentence
    )
}

/// At which bandwidth the bottleneck changes.
pub fn balance(prediction: &Prediction, advice: &Advice) -> Option<String> {
    let rate = advice.balanced_bandwidth?.human();
    Some(match prediction.bottleneck {
        Bottleneck::Compute => format!("Communication becomes the bottleneck below {rate}."),
        _ => format!("Computing becomes the bottleneck above {rate}."),
    })
}

/// From where on more workers are not worth it.
pub fn saturation(forecast: &Forecast) -> Option<String> {
    let workers = several(forecast.saturates_at?.into(), "worker");
    let worth = (1e4 * forecast.worth).round() / 100.0;
    Some(format!("More than {workers} bring less than {worth} % more."))
}

/// What a change brings: "+75 %", "none".
pub fn gain(share: f64) -> String {
    let gain = percent(share);
    // Neither "+0.0 %" nor "-0.0 %" says more than nothing.
    match gain.trim_start_matches('-') {
        "0.0 %" | "< 0.1 %" => "none".to_owned(),
        _ if share > 0.0 => format!("+{gain}"),
        _ => gain.replace('-', "−"),
    }
}

/// How much slower a worker may be before the step gets longer.
pub fn slack(share: Option<f64>) -> String {
    match share {
        None => "–".to_owned(),
        Some(share) if share < NO_SLACK => "none: any delay costs".to_owned(),
        Some(share) if share < MUCH_SLACK => format!("{} slower costs nothing", percent(share)),
        Some(share) => format!("{}× the time costs nothing", ratio(1.0 + share)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_told_in_words() {
        assert_eq!(slack(Some(0.4)), "40 % slower costs nothing");
        assert_eq!(slack(Some(0.0)), "none: any delay costs");
        assert_eq!(slack(Some(19.0)), "20.0× the time costs nothing");
    }

    #[test]
    fn gains_are_told_with_their_sign() {
        assert_eq!(gain(0.75), "+75 %");
        assert_eq!(gain(-0.2), "−20 %");
        assert_eq!(gain(-0.000_01), "none");
    }
}
