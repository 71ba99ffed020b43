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

/// Plans with their parameters, and of each collective: its name, process group, ranks (0 if unknown), messages of a step,
/// megabytes, and whether it stays in the step.
const PLANS: &str = include_str!("../plans.txt");

/// Sums of gradients leave the step, other collectives stay: those of tensor-parallel ranks, of ranks that hold parts of the
/// parameters, between stages (sends and receives that are launched together are one), of tokens of experts. With gloo, threads
/// tell process groups apart.
#[test]
fn collectives_stay_unless_they_sum_gradients() {
    for plan in PLANS.split("\n\n") {
        let mut lines = plan.lines().map(|line| line.split(" | ").collect::<Vec<_>>());
        let [name, parameters] = lines.next().unwrap().try_into().unwrap();
        let imported = imported(name);
        let expected: Vec<_> = lines.collect();
        let rows = &communication(&imported).rows;
        assert_eq!(rows.len(), expected.len(), "{name}: {rows:?}");
        for (row, expected) in rows.iter().zip(expected) {
            let [collective, group, ranks, messages, megabytes, used] = expected.try_into().unwrap();
            let text = |text: &str| SummaryValue::Text(text.to_owned());
            assert_eq!([&row[0], &row[1], &row[7]], [&text(collective), &text(group), &text(used)], "{name}");
            let count = |count: &str| SummaryValue::Count(count.parse().unwrap());
            let ranks = if ranks == "0" { SummaryValue::Unknown } else { count(ranks) };
            assert_eq!(row[2..4], [ranks, count(messages)], "{name}: {collective}");
            let SummaryValue::Size(size) = row[4] else { panic!("{name}: {collective} has no size") };
            let megabytes: f64 = megabytes.parse().unwrap();
            assert!((size.get() / 1e6 - megabytes).abs() < 0.01, "{name}: {collective} {size}");
        }
        assert_eq!(figure(&imported, "parameters"), Some(parameters.parse().unwrap()), "{name}");
        // Put together again, the step takes as long as it was recorded.
        let recorded = figure(&imported, "step").unwrap();
        let replayed = figure(&imported, "replayed").unwrap_or_else(|| mean_step(&imported).get());
        match name {
            // All communication is taken out.
            "cuda-ddp" => assert!(mean_step(&imported).get() < 0.5 * recorded),
            // One replica; what replicas of it would exchange is one part.
            "cuda-fsdp-tensor" => assert!(figure(&imported, "replayed").is_none()),
            // Eight micro-batches make one gradient of each weight.
            "cuda-pipeline" => assert_eq!(figure(&imported, "gradients"), Some(10.0)),
            _ => {}
        }
        assert!((replayed / recorded - 1.0).abs() < 0.03, "{name}: {replayed} s, recorded {recorded} s");
    }
}
