//! Imports of recorded jobs: asynchronous training with one parameter server and one worker, TensorFlow 2.12.
//!
//! The recordings are not part of the repository; without them these tests say so and pass.

use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use stepcast_core::profile::{Profile, Resource};
use stepcast_trace::{Imported, read_run_metadata};

const CONFIGURATIONS: [&str; 4] = ["alex1024_b4_r1000", "alexcif_b32_r400", "goog_b1_r800", "sleepA_b1_r400"];

struct Recording {
    folder: PathBuf,
    name: &'static str,
    imported: Imported<Profile>,
}

/// Every configuration, imported; none if they are absent.
static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/measured/tf_ps");
    if !data.is_dir() {
        println!("skipped: {} is absent", data.display());
        return Vec::new();
    }
    let import = |name: &'static str| {
        let folder = data.join(name);
        let batch = json(&folder.join("config.json"))["batch"].as_u64().unwrap() as u32;
        let graphs = folder.join("partition_graphs_runmetadata.pb.gz");
        let imported = read_run_metadata(&folder.join("runmetadata.tar.xz"), Some(&graphs), batch).unwrap();
        Recording { folder, name, imported }
    };
    CONFIGURATIONS.into_iter().map(import).collect()
});

fn json(path: &Path) -> Value {
    let file = File::open(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "gz") {
        serde_json::from_reader(MultiGzDecoder::new(file)).unwrap()
    } else {
        serde_json::from_reader(file).unwrap()
    }
}

fn count(profile: &Profile, resource: Resource) -> usize {
    profile.operations.iter().filter(|operation| operation.resource == resource).count()
}

#[test]
fn sizes_are_those_of_the_tensors() {
    for Recording { folder, name, imported: Imported { content: profile, notes, .. } } in &*RECORDINGS {
        profile.check().unwrap();
        let edges: usize = profile.operations.iter().map(|operation| operation.after.len()).sum();
        println!(
            "{name}: {} steps, {} operations ({} down, {} worker, {} up, {} server), {edges} edges, mean step {}",
            profile.steps.len(),
            profile.operations.len(),
            count(profile, Resource::Downlink),
            count(profile, Resource::Worker),
            count(profile, Resource::Uplink),
            count(profile, Resource::Server),
            profile.mean_step(),
        );
        for note in notes {
            println!("  note: {note}");
        }
        assert_eq!(profile.steps.len(), 40, "{name}");
        let truth = json(&folder.join("tensors.json"));
        for (direction, resource) in [("downlink", Resource::Downlink), ("uplink", Resource::Uplink)] {
            let tensors = truth["tensors"].as_array().unwrap();
            let expected: BTreeMap<&str, u64> = tensors
                .iter()
                .filter(|tensor| tensor["direction"] == direction)
                .map(|tensor| (tensor["tensor"].as_str().unwrap(), tensor["bytes"].as_u64().unwrap()))
                .collect();
            let found: BTreeMap<&str, u64> = profile
                .operations
                .iter()
                .filter(|operation| operation.resource == resource)
                .map(|operation| (operation.name.as_str(), operation.bytes))
                .collect();
            assert_eq!(found, expected, "{name} {direction}");
            let total = truth["total_bytes"][direction].as_u64().unwrap();
            assert_eq!(found.values().sum::<u64>(), total, "{name} {direction}");
        }
    }
}

#[test]
fn tensors_lie_between_producers_and_consumers() {
    for Recording { folder, name, imported: Imported { content: profile, .. } } in &*RECORDINGS {
        let truth = json(&folder.join("tensors.json"));
        let position = |name: &str| profile.operations.iter().position(|operation| operation.name == name);
        for tensor in truth["tensors"].as_array().unwrap() {
            let Some(transfer) = position(tensor["tensor"].as_str().unwrap()) else { continue };
            let producer = position(tensor["producer"].as_str().unwrap()).unwrap();
            assert_eq!(profile.operations[transfer].after, [producer as u32], "{name} {tensor}");
            for consumer in tensor["consumers"].as_array().unwrap() {
                let consumer = position(consumer.as_str().unwrap()).unwrap();
                assert!(profile.operations[consumer].after.contains(&(transfer as u32)), "{name} {tensor}");
            }
        }
    }
}

/// The clock of the script that ran the steps, against the records.
#[test]
fn steps_are_as_long_as_measured_from_outside() {
    for Recording { folder, name, imported: Imported { content: profile, .. } } in &*RECORDINGS {
        let run = json(&folder.join("profile_W1.json.gz"));
        let times: Vec<(f64, f64)> = serde_json::from_value(run["step_times"][0].clone()).unwrap();
        assert_eq!(times.len(), profile.steps.len());
        for (index, step) in profile.steps.iter().enumerate() {
            let next = times.get(index + 1).map_or(times[index].1, |next| next.0);
            let expected = next - times[index].0;
            let error = step.length / expected - 1.0;
            assert!(error.abs() < 0.01, "{name} step {index}: {} for {expected}", step.length);
        }
    }
}

/// The same records, as another program extracted them.
#[test]
fn times_are_those_of_the_extracted_trace() {
    for Recording { folder, name, imported: Imported { content: profile, .. } } in &*RECORDINGS {
        let file = MultiGzDecoder::new(File::open(folder.join("trace.csv.gz")).unwrap());
        let mut rows: Vec<(usize, String, f64, f64)> = Vec::new();
        for row in csv::Reader::from_reader(file).records() {
            let row = row.unwrap();
            rows.push((
                row[0].parse().unwrap(),
                row[3].to_owned(),
                row[5].parse().unwrap(),
                row[6].parse().unwrap(),
            ));
        }
        let mut first = vec![f64::INFINITY; profile.steps.len()];
        for (step, _, start, _) in &rows {
            first[*step] = first[*step].min(*start);
        }
        let index: BTreeMap<&str, usize> = profile
            .operations
            .iter()
            .enumerate()
            .map(|(index, operation)| (operation.name.as_str(), index))
            .collect();
        let mut seen = BTreeSet::new();
        for (step, operation, start, end) in &rows {
            if operation == "_SOURCE" {
                continue;
            }
            let found = index[operation.as_str()];
            assert!(seen.insert((*step, found)));
            let times = &profile.steps[*step];
            // Both ends of the difference were cut to whole microseconds.
            assert!(
                (times.start[found] - (start - first[*step]) * 1e-6).abs() < 1.1e-6,
                "{name} {step} {operation}"
            );
            assert!(
                (times.end[found] - (end - first[*step]) * 1e-6).abs() < 2.1e-6,
                "{name} {step} {operation}"
            );
        }
        let missing = profile.operations.len() * profile.steps.len() - seen.len();
        println!("{name}: {} records, {missing} filled in", seen.len());
        let expected = match *name {
            "alex1024_b4_r1000" => 11,
            "sleepA_b1_r400" => 5,
            _ => 0,
        };
        assert_eq!(missing, expected, "{name}");
    }
}

#[test]
fn nothing_starts_before_what_it_waits_for() {
    for Recording { name, imported: Imported { content: profile, .. }, .. } in &*RECORDINGS {
        let (mut early, mut pairs) = (BTreeMap::new(), 0_usize);
        let mut worst = f64::NEG_INFINITY;
        for step in &profile.steps {
            for (index, operation) in profile.operations.iter().enumerate() {
                pairs += 1;
                for &before in &operation.after {
                    let ahead = step.end[before as usize] - step.start[index];
                    worst = worst.max(ahead);
                    if ahead > 50e-6 {
                        let names =
                            (profile.operations[before as usize].name.clone(), operation.name.clone());
                        early.entry(names).or_insert_with(Vec::new).push(ahead);
                    }
                }
            }
        }
        let count: usize = early.values().map(Vec::len).sum();
        println!("{name}: {count} of {pairs} start early, at worst {:.1} µs", worst * 1e6);
        for (names, ahead) in early.iter().take(20) {
            println!("  {} -> {}: {:?}", names.0, names.1, ahead);
        }
        assert!(count as f64 <= 0.001 * pairs as f64, "{name}");
    }
}

/// Four steps under a packet capture, with the graphs of the longer run.
#[test]
fn captured_steps_give_the_same_operations() {
    for Recording { folder, name, imported: Imported { content: profile, .. } } in &*RECORDINGS {
        let graphs = folder.join("partition_graphs_runmetadata.pb.gz");
        let captured =
            read_run_metadata(&folder.join("capture_runmetadata_W1_w0.tar.xz"), Some(&graphs), profile.batch);
        let Imported { content: captured, notes, .. } = captured.unwrap();
        println!("{name}: {} captured steps, {notes:?}", captured.steps.len());
        let names = |profile: &Profile| {
            profile
                .operations
                .iter()
                .map(|operation| (operation.name.clone(), operation.bytes))
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(names(&captured), names(profile), "{name}");
    }
}
