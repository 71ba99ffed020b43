//! Runs that cannot be those of their scenario.

use stepcast_core::fault::Fault;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;

/// Convolutions by Winograd's F(2×2, 3×3) do fewer multiplications than are counted, by this factor. Measured networks stay
/// below it (VGG-16 on a V100 in FP32: 1.13 to 1.47).
const FAST_CONVOLUTIONS: f64 = 2.25;
/// A step takes three forward passes' operations.
const PASSES: f64 = 3.0;
/// Measured over forecast beyond which a run is another one, unless the forecast is as uncertain as that.
const LARGEST_FACTOR: f64 = 20.0;
/// Standard deviations within which any ratio is possible.
const DEVIATIONS: f64 = 4.0;

const OTHER: &str = "this run is not the scenario's";
const REMEDY: &str = "check its unit and its keys: model, devices, workers and batch";

/// Refuses steps in which devices would compute faster than they can.
pub(super) fn check_rate(
    scenario: &Scenario,
    prediction: &Prediction,
    measured: Seconds,
) -> Result<(), Fault> {
    let (share, most) = match &prediction.transformer {
        Some(split) => (split.mfu.max(split.hfu) * (prediction.iteration / measured), 1.0),
        None => {
            let peak = |group: &WorkerGroup| {
                let peak = group.device.peak(scenario.strategy.precision);
                let devices = f64::from(group.count) * f64::from(group.gpus);
                peak.unwrap_or_else(|| group.device.fp32_peak()).get() * devices * group.speed.max(1.0)
            };
            let peak: f64 = scenario.cluster.groups.iter().map(peak).sum();
            let operations = PASSES * scenario.workload.forward.get() * prediction.samples as f64;
            (operations / measured.get() / peak, FAST_CONVOLUTIONS)
        }
    };
    match share.is_nan() || share <= most {
        true => Ok(()),
        false => {
            let step = measured.human();
            let reason =
                format!("a step of {step} takes {share:.3} times the peak rate of the devices: {OTHER}");
            Err(Fault::new(reason, REMEDY))
        }
    }
}

/// Refuses a step that is longer or shorter than forecast by more than anything assumed may be off; logarithms.
pub(super) fn check_distance(difference: f64, spread: f64) -> Result<(), Fault> {
    if difference.abs() <= LARGEST_FACTOR.ln().max(DEVIATIONS * spread) {
        return Ok(());
    }
    let (factor, word) = match difference > 0.0 {
        true => (difference.exp(), "longer"),
        false => ((-difference).exp(), "shorter"),
    };
    let factor = if factor < 1e4 { format!("{factor:.0}") } else { format!("{factor:.0e}") };
    let reason = format!("its step is {factor} times {word} than forecast: {OTHER}");
    Err(Fault::new(reason, REMEDY))
}
