//! Sentences about a scenario and its forecast.

use crate::format::{count, duration, grouped, interval_of_times, money, name, percent, ratio, several};
use stepcast_core::method::Method;
use stepcast_core::prediction::{Bottleneck, Prediction};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;
use stepcast_study::{Advice, Forecast};

/// Slack below this rounds to nothing.
const NO_SLACK: f64 = 0.0005;

/// The model and the number of workers.
pub fn title(scenario: &Scenario) -> String {
    format!("{} on {}", name(scenario.name()), several(scenario.cluster.workers(), "worker"))
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
        _ => format!(", {} ({})", name(&cluster.network.name), cluster.network.bandwidth.human()),
    };
    let batch = count(strategy.batch.into());
    format!("{architecture}{network}, {}, batch {batch}", strategy.synchronisation)
}

/// The method that predicted, and what it models.
pub fn method(method: &dyn Method) -> String {
    format!("Predicted by {}: {}.", method.name(), method.summary())
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

/// Beyond how many workers the throughput hardly grows.
pub fn saturation(forecast: &Forecast) -> Option<String> {
    let workers = several(forecast.saturates_at?.into(), "worker");
    let worth = (1e4 * forecast.worth).round() / 100.0;
    Some(format!("More than {workers} add less than {worth} % to the throughput."))
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
    fn gains_have_their_sign() {
        assert_eq!(gain(0.75), "+75 %");
        assert_eq!(gain(-0.2), "−20 %");
        assert_eq!(gain(-0.000_01), "none");
    }
}
