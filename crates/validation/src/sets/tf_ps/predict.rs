//! One measured run, predicted in the way it was measured: workers start together, the run ends when the slowest has done
//! its steps or the time is up, and the second half counts. The system is bistable, so that runs differ: many are
//! simulated.

use super::data::{Recorded, wrong};
use super::testbed::Testbed;
use serde_json::{Value, json};
use stepcast_analytic::baselines::{Phases, cynthia2019_rate, lin2018_rate};
use stepcast_core::fault::Fault;
use stepcast_core::profile::Resource;
use stepcast_sim::{Limits, LinkSharing, ParseLane, Parsing, Program, Replay, Window, run_steps};
use stepcast_stats::{mean, quantile, spread_of_logarithms};

pub(super) const RUNS: u64 = 40;

/// Bytes of an HTTP/2 message beside the tensor.
const HEADER: f64 = 42.0;

pub(super) fn prediction(
    recorded: &Recorded,
    testbed: &Testbed,
    workers: u32,
    measured: f64,
) -> Result<Value, Fault> {
    let configuration = &recorded.configuration;
    let mut rates = throughputs(recorded, testbed, workers, RUNS)?;
    let batch = f64::from(configuration.batch);
    let phases = Phases::from_profile(&recorded.profile, configuration.rate * testbed.goodput);
    let interval = [quantile(&mut rates, 0.05), quantile(&mut rates, 0.95)];
    Ok(json!({
        "configuration": configuration.name,
        "workers": workers,
        "rate_bits_per_s": configuration.rate.get(),
        "parameters": (recorded.profile.bytes(Resource::Downlink).get() / 4.0) as u64,
        "measured": measured,
        // Mean of the simulated runs.
        "predicted": mean(&rates),
        // With parameters that were chosen on other configurations only.
        "held_out": null,
        // 90 % of the simulated runs.
        "interval": interval,
        // 90 % of measured runs: variation from run to run and model error.
        "likely": interval,
        // Standard deviation of the logarithm over simulated runs.
        "run_spread": spread_of_logarithms(&rates).unwrap_or_default(),
        "cynthia": batch * cynthia2019_rate(&phases, workers, false),
        "lin": batch * lin2018_rate(&phases, workers),
    }))
}

/// Throughput of each of `runs` simulated runs, in samples per second.
pub(super) fn throughputs(
    recorded: &Recorded,
    testbed: &Testbed,
    workers: u32,
    runs: u64,
) -> Result<Vec<f64>, Fault> {
    let configuration = &recorded.configuration;
    let place = configuration.file("runmetadata.tar.xz");
    let broken = |error: String| wrong(&place, error, "record the profile again");
    let program = program(recorded, testbed, workers).map_err(broken)?;
    // The step that is under way when the slowest has done its steps still belongs to the run.
    let limits = Limits { time: configuration.seconds, ..Limits::until_slowest(configuration.steps + 1) };
    let throughput = |seed| {
        let (outcome, steps) =
            run_steps(&program, seed, limits).map_err(|error| broken(error.to_string()))?;
        let second_half = Window { since: 0.5 * outcome.time, until: outcome.time };
        Ok(f64::from(configuration.batch) * second_half.steps_per_second(&steps.records))
    };
    (0..runs).map(throughput).collect()
}

fn program(recorded: &Recorded, testbed: &Testbed, workers: u32) -> Result<Program, String> {
    let Recorded { configuration, profile, .. } = recorded;
    let port = (configuration.rate * testbed.goodput).to_bytes_per_sec();
    let replay = Replay {
        parsing: Parsing {
            per_byte: testbed.parse_per_byte,
            fixed: testbed.parse_fixed,
            lane: ParseLane::Beside,
        },
        header: HEADER,
        shared_cores: (!configuration.sleeps).then_some(testbed.cores),
        ..Replay::new(profile, workers as usize, port, LinkSharing::Tcp(testbed.network(configuration)))
    };
    replay.program().map_err(|error| error.to_string())
}
