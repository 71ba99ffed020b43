//! Traces of a decoder that four ranks train under several plans: on one H200 with NCCL, and on CPUs with gloo.
//! `research/traces/record.py` recorded and packed them.

use std::io::Read;
use std::path::Path;
use stepcast_core::quantity::Seconds;
use stepcast_trace::{Imported, Options, SummaryTable, SummaryValue, import};

fn imported(name: &str) -> Imported {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plans.tar.xz");
    let unpacked = lzma_rust2::XzReader::new(std::fs::File::open(archive).unwrap(), false);
    let mut archive = tar::Archive::new(unpacked);
    let mut entries = archive.entries().unwrap().map(Result::unwrap);
    let mut entry =
        entries.find(|entry| entry.path().unwrap() == Path::new(&format!("{name}.json"))).unwrap();
    let mut text = Vec::new();
    entry.read_to_end(&mut text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{name}.json"));
    std::fs::write(&path, text).unwrap();
    import(&[path], &Options::default()).unwrap()
}

fn mean_step(imported: &Imported) -> Seconds {
    imported.content.clone().into_profile().unwrap().mean_step()
}

fn figure(imported: &Imported, key: &str) -> Option<f64> {
    let figure = imported.summary.figures.iter().find(|figure| figure.key == key)?;
    match figure.value {
        SummaryValue::Count(count) => Some(count as f64),
        SummaryValue::Time(time) => Some(time.get()),
        SummaryValue::Size(size) => Some(size.get()),
        _ => None,
    }
}

fn communication(imported: &Imported) -> &SummaryTable {
    imported.summary.tables.iter().find(|table| table.key == "communication").unwrap()
}

/// Collective, process group, ranks, messages of a step, megabytes, and whether it stays in the step.
type Row = (&'static str, &'static str, u64, u64, f64, bool);

fn check(name: &str, parameters: f64, expected: &[Row]) -> Imported {
    let imported = imported(name);
    let rows = &communication(&imported).rows;
    assert_eq!(rows.len(), expected.len(), "{name}: {rows:?}");
    for (row, (collective, group, ranks, messages, megabytes, stays)) in rows.iter().zip(expected) {
        assert_eq!(row[0], SummaryValue::Text((*collective).to_owned()), "{name}");
        assert_eq!(row[1], SummaryValue::Text((*group).to_owned()), "{name}");
        let known = if *ranks == 0 { SummaryValue::Unknown } else { SummaryValue::Count(*ranks) };
        assert_eq!(row[2..4], [known, SummaryValue::Count(*messages)], "{name}: {collective}");
        let SummaryValue::Size(size) = row[4] else { panic!("{name}: {collective} has no size") };
        assert!((size.get() / 1e6 - megabytes).abs() < 0.01, "{name}: {collective} {size}");
        let used = if *stays { "stays" } else { "sums gradients" };
        assert_eq!(row[7], SummaryValue::Text(used.to_owned()), "{name}: {collective}");
    }
    assert_eq!(figure(&imported, "parameters"), Some(parameters), "{name}");
    // Put together again, the step takes as long as it was recorded.
    let recorded = figure(&imported, "step").unwrap();
    let replayed = figure(&imported, "replayed").unwrap_or_else(|| mean_step(&imported).get());
    assert!((replayed / recorded - 1.0).abs() < 0.03, "{name}: {replayed} s, recorded {recorded} s");
    imported
}

#[test]
fn replicas_sum_all_gradients() {
    let ddp = check("cuda-ddp", 75_506_688.0, &[("all-reduce", "default_pg", 4, 10, 302.03, false)]);
    assert!(mean_step(&ddp).get() < 0.5 * figure(&ddp, "step").unwrap());
}

#[test]
fn tensor_parallel_sums_stay() {
    let rows =
        [("all-reduce", "mesh_tp", 2, 28, 469.76, true), ("all-reduce", "mesh_dp", 2, 39, 167.81, false)];
    check("cuda-ddp-tensor", 41_952_256.0, &rows);
}

/// Ranks that hold parts of the parameters are one replica; what replicas of them would exchange is one part.
#[test]
fn sharded_groups_stay() {
    let rows = [
        ("all-reduce", "mesh_tp", 2, 28, 469.76, true),
        ("all-gather", "mesh_dp", 2, 9, 302.06, true),
        ("reduce-scatter", "mesh_dp", 2, 5, 167.81, true),
    ];
    let imported = check("cuda-fsdp-tensor", 20_976_128.0, &rows);
    assert!(figure(&imported, "replayed").is_none());
}

/// Sends and receives that are launched together are one; eight micro-batches make one gradient of each weight.
#[test]
fn pipelines_keep_their_messages() {
    let rows = [
        ("send and receive", "default_pg", 4, 5, 20.97, true),
        ("receive", "default_pg", 4, 3, 6.29, true),
        ("send", "default_pg", 4, 3, 6.29, true),
    ];
    let imported = check("cuda-pipeline", 20_973_568.0, &rows);
    assert_eq!(figure(&imported, "gradients"), Some(10.0));
}

#[test]
fn tokens_of_experts_stay() {
    let rows =
        [("all-reduce", "mesh_dp", 2, 55, 436.33, false), ("all-to-all", "mesh_ep", 2, 16, 268.44, true)];
    check("cuda-experts", 109_081_600.0, &rows);
}

/// With gloo, threads tell process groups apart.
#[test]
fn threads_of_gloo_are_groups() {
    let rows = [
        ("all-reduce", "gloo 735-736", 0, 28, 58.72, true),
        ("all-reduce", "gloo 729-731", 0, 39, 50.35, false),
    ];
    check("cpu-ddp-tensor", 12_587_520.0, &rows);
}
