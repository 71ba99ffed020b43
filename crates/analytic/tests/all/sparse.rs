//! Exchanges of sparse tables against the transfers of which they consist, one after the other.

use super::resolved;
use stepcast_analytic::collectives::curve;
use stepcast_analytic::layerwise::Layerwise;
use stepcast_core::method::Method;
use stepcast_core::prediction::PartKind;
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::Scenario;
use stepcast_core::workload::Tensor;

/// One table of a million rows of 64 bytes, of which a sample looks up two, before a product.
const TABLE: &str = include_str!("../scenarios/sparse.toml");

/// Bytes per second of the network.
const RATE: f64 = 1.25e9;
/// What every message costs beside its bytes.
const START: f64 = 25e-6;

fn scenario(sets: &[&str]) -> Scenario {
    resolved(TABLE, sets)
}

fn table(scenario: &Scenario) -> &Tensor {
    scenario.workload.layers[0].tensors.iter().find(|tensor| tensor.rows.is_some()).unwrap()
}

/// Rows that this many lookups touch, one lookup after the other.
fn touched(lookups: u32) -> f64 {
    (0..lookups).fold(0.0, |rows, _| rows + 1.0 - rows / 1e6)
}

/// All workers pass on what they have received around a ring, first the indices, then the values; in every step the
/// worker that sends most is the last.
fn gathered(rows: &[f64], value: f64) -> f64 {
    let mut time = 0.0;
    for element in [8.0, value] {
        let mut held: Vec<f64> = rows.iter().map(|rows| rows * element).collect();
        for _ in 1..rows.len() {
            time += START + held.iter().copied().fold(0.0, f64::max) / RATE;
            held.rotate_right(1);
        }
    }
    time
}

/// The closed form adds the time in which an all-reduce adds up numbers, which a gathering does not.
const ADDING: f64 = 1e-3;

#[test]
fn gathering_takes_the_time_of_its_steps() {
    for (sets, workers, lookups, value) in [
        (&[][..], 6, 1024, 64.0),
        (&["cluster.workers.count=2"], 2, 1024, 64.0),
        (&["cluster.workers.count=48", "strategy.batch=32"], 48, 64, 64.0),
        (&["strategy.accumulation=4"], 6, 4096, 64.0),
        (&["strategy.all-reduce.gradients=fp16"], 6, 1024, 32.0),
    ] {
        let scenario = scenario(sets);
        let fast = curve(&scenario).time(scenario.summed(table(&scenario))).get();
        let slow = gathered(&vec![touched(lookups); workers], value);
        assert!((fast / slow - 1.0).abs() < ADDING, "{sets:?}: {fast} {slow}");
    }
}

/// Unequal batches go around the ring at the pace of the largest; the closed form counts what all workers receive.
#[test]
fn unequal_workers_send_their_own_rows() {
    let two = "cluster.workers=[{device=\"a100\",count=3,batch=512},{device=\"a100\",count=3,batch=256}]";
    let scenario = scenario(&[two]);
    let rows = [[touched(1024); 3], [touched(512); 3]].concat();
    let sum = Bytes::new(rows.iter().sum::<f64>() * 72.0 / 2.0);
    assert!((scenario.summed(table(&scenario)) / sum - 1.0).abs() < 1e-9);
}

#[test]
fn weights_are_averaged_whole() {
    let scenario = scenario(&["strategy.synchronisation=local-sgd(8)"]);
    assert_eq!(scenario.summed(table(&scenario)), Bytes::new(64e6));
}

/// One server: all workers push their rows through its port, then pull them; computing takes almost no time.
#[test]
fn rows_go_to_servers_and_back() {
    let ideal = ["strategy.architecture=parameter-server", "cluster.servers.software=none"];
    let step = |sets: &[&str]| {
        let scenario = scenario(&[&ideal[..], sets].concat());
        let prediction = Layerwise.predict(&scenario).unwrap();
        prediction.part(PartKind::Push).get()
            + prediction.part(PartKind::Queueing).get()
            + prediction.part(PartKind::Pull).get()
    };
    let product = 33.0 * 4.0;
    for (sets, lookups) in [(&[][..], 1024), (&["strategy.batch=64"], 128)] {
        let bytes = 6.0 * 2.0 * (touched(lookups) * 72.0 + product);
        // The table is last in the backward pass, and what precedes it passes beside computing.
        let (least, most) = ((bytes - 12.0 * product) / RATE, bytes / RATE);
        let found = step(sets);
        assert!(
            found > least * (1.0 - 1e-9) && found < most * (1.0 + 1e-9),
            "{sets:?}: {least} {found} {most}"
        );
    }
    // Rows of eight local steps travel together.
    let local = scenario(&[&ideal[..], &["strategy.synchronisation=local-sgd(8)"]].concat());
    let sent = local.sent(0, &local.workload.layers[0]);
    assert!((sent / Bytes::new(touched(8192) * 72.0) - 1.0).abs() < 1e-9, "{sent}");
}

#[test]
fn the_answer_says_what_is_assumed_and_where_dense_gradients_are_smaller() {
    let codes = |sets: &[&str]| -> Vec<&str> {
        scenario(sets).sparse_warnings().iter().map(|warning| warning.code).collect()
    };
    assert_eq!(codes(&[]), ["uniform-rows"]);
    assert_eq!(codes(&["cluster.workers.count=4000"]), ["uniform-rows", "gathered-rows"]);
    assert_eq!(codes(&["strategy.architecture=parameter-server"]), ["uniform-rows"]);
    assert_eq!(codes(&["strategy.synchronisation=local-sgd(8)"]), [""; 0]);
    let text = TABLE.replace(", sparse = true", "");
    assert_eq!(resolved(text, &[]).sparse_warnings(), []);
}
