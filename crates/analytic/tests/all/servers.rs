//! Server software against test vectors of the reference implementation in research/priors.

use std::collections::BTreeMap;
use stepcast_analytic::lin2018::mean_value_analysis;
use stepcast_analytic::servers::{Service, byteps_rate, hidden, least_exposed, losses};
use stepcast_core::machine::{DeviceKind, ServerSoftware};
use stepcast_core::prior::Priors;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

/// Share of a port's nominal rate that the reference leaves for payload.
const WIRE: f64 = 0.9;

struct Row(BTreeMap<String, String>);

impl Row {
    fn number(&self, column: &str) -> f64 {
        self.0[column].parse().unwrap()
    }

    fn is(&self, column: &str) -> bool {
        self.0[column] == "True"
    }
}

fn rows() -> Vec<Row> {
    let text = include_str!("../../../../research/priors/vectors_servers.csv");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let header = lines.next().unwrap();
    lines.map(|line| Row(header.iter().cloned().zip(line).collect())).collect()
}

/// The step of a row: section 4 of docs/priors.md, from the functions under test.
fn step(row: &Row) -> f64 {
    let priors = Priors::shipped().unwrap().servers;
    let (workers, servers) = (row.number("N") as u64, row.number("S"));
    let (bytes, alone) = (Bytes::new(row.number("B") * 1e9), Seconds::new(row.number("T1")));
    let kind = if row.is("cpu") { DeviceKind::Cpu } else { DeviceKind::Gpu };
    let computing = alone * losses(&priors, kind, workers);
    let hidden = hidden(&priors, alone * (2.0 / 3.0));
    let nominal = BytesPerSec::new(row.number("gbps") * 1e9 / 8.0);
    let exposed = |communication: Seconds, overlaps: bool| match overlaps {
        true => least_exposed(&priors, communication).max(communication - hidden),
        false => communication,
    };
    if row.is("byteps") {
        let communication = bytes * 2.0 / byteps_rate(&priors, nominal, workers);
        return (computing + exposed(communication, !row.is("no_overlap"))).get();
    }
    let copies = if row.is("copies") { row.number("gpus_per_node") } else { 1.0 };
    let moved = bytes * (1.0 + copies);
    let software = if row.is("mpi") { ServerSoftware::GrpcMpi } else { ServerSoftware::Grpc };
    let service = Service::from_software(software, &priors).unwrap();
    let service = service.time(moved / servers, row.number("tensors") / servers);
    if row.is("asynchronous") {
        let service = service / priors.duplex;
        // The baseline of one worker had one server.
        let thinking = match row.is("one_gpu") {
            true => (alone - service * servers).max(alone * 0.3),
            false => alone,
        };
        return workers as f64 / mean_value_analysis(&[service], thinking, workers as u32);
    }
    let load = (workers as f64 / servers).max(1.0);
    let wire = if row.is("mpi") { Seconds::ZERO } else { moved * load / (nominal * WIRE) };
    let communication = (service * workers as f64).max(wire);
    (computing + exposed(communication, !row.is("copies"))).get()
}

#[test]
fn server_software_costs_what_the_reference_says() {
    let rows = rows();
    assert!(rows.len() > 100, "{}", rows.len());
    for row in &rows {
        let (found, expected) = (step(row), row.number("predicted_s"));
        assert!((found / expected - 1.0).abs() < 1e-5, "{}: {found} against {expected}", row.0["id"]);
    }
}
