//! One measured point, predicted as it was measured: workers start together, the run ends when the slowest has done its
//! steps or the time is up, and the second half counts. Runs of a system that is bistable differ, so many are simulated.

use super::data::{Configuration, Measurement, wrong};
use super::{Row, Testbed};
use stepcast_analytic::phases::Phases;
use stepcast_analytic::{cynthia2019, lin2018};
use stepcast_core::profile::Profile;
use stepcast_sim::measure::{Window, quantile};
use stepcast_sim::{
    Coordination, Limits, ParseLane, Parsing, Program, Replay, ReplayWorker, Steps, TcpSpec, TransferOrder,
    Transport, run,
};
use stepcast_trace::TraceError;

/// Simulated runs of each point.
const RUNS: u64 = 40;

/// Bytes of an HTTP/2 message beside the tensor.
const HEADER: f64 = 42.0;

pub(super) fn row(
    configuration: &Configuration,
    testbed: &Testbed,
    profile: &Profile,
    measurement: &Measurement,
) -> Result<Row, TraceError> {
    let place = configuration.file("runmetadata.tar.xz");
    let broken = |error: String| wrong(&place, error, "record the profile again");
    let program = program(configuration, testbed, profile, measurement.workers).map_err(broken)?;
    // The step that is under way when the slowest has done its steps still belongs to the run.
    let limits = Limits { time: configuration.seconds, ..Limits::until_slowest(configuration.steps + 1) };
    let batch = f64::from(configuration.batch);
    let mut rates = Vec::with_capacity(RUNS as usize);
    for seed in 0..RUNS {
        let mut steps = Steps::default();
        let outcome = run(&program, seed, limits, &mut steps).map_err(|error| broken(error.to_string()))?;
        let second_half = Window { since: 0.5 * outcome.time, until: outcome.time };
        rates.push(batch * second_half.steps_per_second(&steps.records));
    }
    let predicted = rates.iter().sum::<f64>() / rates.len() as f64;
    let phases = Phases::of_profile(profile, configuration.rate * testbed.goodput);
    Ok(Row {
        configuration: configuration.name.clone(),
        workers: measurement.workers,
        measured: measurement.examples_per_s,
        predicted,
        interval: [quantile(&mut rates, 0.05), quantile(&mut rates, 0.95)],
        cynthia: batch * cynthia2019::from_phases(&phases, measurement.workers, false),
        lin: batch * lin2018::steps_per_second(&phases, measurement.workers),
    })
}

fn program(
    configuration: &Configuration,
    testbed: &Testbed,
    profile: &Profile,
    workers: u32,
) -> Result<Program, String> {
    let port = (configuration.rate * testbed.goodput).to_bytes_per_sec();
    let replay = Replay {
        workers: vec![ReplayWorker { slowness: 1.0, port }; workers as usize],
        server_of: vec![0; profile.operations.len()],
        servers: 1,
        server_port: port,
        startup: stepcast_core::quantity::Seconds::ZERO,
        parsing: Parsing {
            per_byte: testbed.parse_per_byte,
            fixed: testbed.parse_fixed,
            lane: ParseLane::Beside,
        },
        transport: Transport::Tcp(TcpSpec::linux(port.get(), configuration.queue.get())),
        header: HEADER,
        order: TransferOrder::Recorded,
        coordination: Coordination::Async,
        shared_cores: (!configuration.sleeps).then_some(testbed.cores),
    };
    replay.program(profile).map_err(|error| error.to_string())
}
