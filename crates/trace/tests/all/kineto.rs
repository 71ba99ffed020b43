//! Traces of PyTorch's profiler: a made-up job whose every time is known, files that are broken, and recorded plans.

use crate::gzip;
use crate::made::Job;
use std::io::Read;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::pass::Recorded;
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_trace::{Format, Imported, Options, SummaryTable, SummaryValue, import};

fn write(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.path().join(name)).collect();
    for ((_, bytes), path) in files.iter().zip(&paths) {
        std::fs::write(path, bytes).unwrap();
    }
    (folder, paths)
}

fn read(bytes: &[u8]) -> Result<Imported, Fault> {
    read_with(bytes, Some(8))
}

fn read_with(bytes: &[u8], batch: Option<u32>) -> Result<Imported, Fault> {
    let (_folder, paths) = write(&[("job.json", bytes)]);
    import(&paths, &Options { batch, ..Options::default() })
}

fn profile(imported: Imported) -> Profile {
    imported.content.into_profile().unwrap()
}

fn figure(imported: &Imported, key: &str) -> f64 {
    let figure = imported.summary.figures.iter().find(|figure| figure.key == key).unwrap();
    match &figure.value {
        SummaryValue::Count(count) => *count as f64,
        SummaryValue::Time(time) => time.get() * 1e6,
        SummaryValue::Size(size) => size.get(),
        SummaryValue::Rate(rate) => rate.get(),
        SummaryValue::Share(share) => *share,
        SummaryValue::Text(_) | SummaryValue::Unknown => f64::NAN,
    }
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found}, not {expected}");
}

fn same(time: Seconds, microseconds: f64) {
    near(time.get() * 1e6, microseconds, 1e-3);
}

#[test]
fn a_busy_device_gives_its_times_back() {
    let job = Job::default();
    let imported = read_with(job.trace().as_bytes(), None).unwrap();
    near(figure(&imported, "parameters"), 4000.0, 1e-9);
    near(figure(&imported, "step"), 1250.0, 1e-3);
    near(figure(&imported, "idle"), 0.0, 1e-9);
    let profile = profile(imported);
    assert_eq!((profile.batch, profile.steps.len(), profile.name.as_str()), (16, 3, "job"));
    let pass = Recorded::new(&profile).unwrap().mean(1.0);
    // The first gradient is ready after the forward pass and one backward kernel.
    same(pass.forward, 4.0 * job.forward + job.backward);
    assert_eq!(pass.tensors(), 4);
    for layer in &pass.layers[1..] {
        same(layer.backward, job.backward);
    }
    same(pass.update, job.update);
    let weights = profile.operations.iter().filter(|op| op.resource == Resource::Downlink);
    assert!(weights.into_iter().all(|op| op.bytes == 4000));
    // Each part of the forward pass waits for its own weight: the last gradient's comes first.
    let parts: Vec<_> = profile.operations.iter().filter(|op| op.name.starts_with("forward")).collect();
    assert_eq!(
        parts.iter().map(|op| op.after.clone()).collect::<Vec<_>>(),
        [vec![3], vec![2, 4], vec![1, 5], vec![0, 6]]
    );
}

/// Without communication, a job of many ranks is the job of one.
#[test]
fn communication_is_taken_out() {
    let alone = Job { host: 10.0, ..Job::default() };
    let expected = profile(read(alone.trace().as_bytes()).unwrap());
    for (bucket, duration) in [(1, 10.0), (2, 500.0), (4, 3000.0), (3, 1e5)] {
        let ddp = Job { exchange: Some((bucket, duration)), rank: Some((0, 2)), ..alone.clone() };
        let imported = read(ddp.trace().as_bytes()).unwrap();
        let exposed = figure(&imported, "exposed");
        assert!(figure(&imported, "step") >= 1250.0 + exposed - 1.0, "{exposed}");
        assert!(exposed > 0.9 * duration, "the last bucket overlaps nothing: {exposed}");
        let profile = profile(imported);
        let (mean, step) = (profile.mean(), expected.mean());
        near(mean.length, step.length, 1e-9);
        for (index, operation) in expected.operations.iter().enumerate() {
            near(mean.end[index], step.end[index], 1e-9);
            assert_eq!(profile.operations[index].bytes, operation.bytes);
        }
    }
}

/// Sums of activations are told apart from those of gradients by their process group, and listed.
#[test]
fn collectives_belong_to_their_process_groups() {
    let ddp = Job { exchange: Some((2, 500.0)), rank: Some((0, 8)), ..Job::default() };
    let alone = read(ddp.trace().as_bytes()).unwrap();
    assert!(!alone.notes.iter().any(|note| note.contains("part of the step")), "{:?}", alone.notes);
    let split = Job { activations: Some(30.0), ..ddp };
    let imported = read(split.trace().as_bytes()).unwrap();
    assert!(imported.notes.iter().any(|note| note.contains("part of the step")), "{:?}", imported.notes);
    let table = imported.summary.tables.iter().find(|table| table.key == "communication").unwrap();
    let text = |text: &str| SummaryValue::Text(text.to_owned());
    let time = |us: f64| SummaryValue::Time(Seconds::new(us / 1e6));
    let sums = |group: &str, ranks: u64, messages: u64, bytes: f64, us: f64, exposed: f64, stays: &str| {
        vec![
            text("all-reduce"),
            text(group),
            SummaryValue::Count(ranks),
            SummaryValue::Count(messages),
            SummaryValue::Size(Bytes::new(bytes)),
            time(us),
            time(exposed),
            text(stays),
        ]
    };
    // The second bucket starts with the third layer's backward pass and is sent behind the first, which two layers hide.
    let expected = [
        sums("dp", 4, 2, 16_000.0, 1000.0, 600.0, "sums gradients"),
        sums("tp", 2, 4, 4.0 * 256.0, 120.0, 120.0, "stays"),
    ];
    assert_eq!(table.rows, expected);
    near(figure(&imported, "replayed"), figure(&imported, "step"), 0.01 * figure(&imported, "step"));
    // 16 kB by a ring of four, at 1.5 times the bytes.
    near(figure(&imported, "reached"), 24e3 / 1e-3, 1e-3);
    near(figure(&imported, "parameters"), figure(&alone, "parameters"), 1e-9);
    let (with, without) = (profile(imported), profile(alone));
    assert_eq!(with.operations.len(), without.operations.len());
    // What sums activations stays in the step.
    same(with.mean_step(), without.mean_step().get() * 1e6 + 120.0);
}

/// A host that is slow stays slow when nothing is waited for: works do not start before they are asked for.
#[test]
fn a_slow_host_stays_slow() {
    let alone = Job { host: 300.0, ..Job::default() };
    let imported = read(alone.trace().as_bytes()).unwrap();
    assert!(figure(&imported, "launch_bound") > 0.4);
    let expected = profile(imported).mean_step();
    same(expected, 9.0 * 300.0);
    let ddp = Job { exchange: Some((2, 700.0)), rank: Some((1, 2)), ..alone };
    let imported = read(ddp.trace().as_bytes()).unwrap();
    assert!(figure(&imported, "exposed") > 0.0);
    near(profile(imported).mean_step().get(), expected.get(), 0.01 * expected.get());
}

/// A host that waits for the device goes on earlier when the device does not wait.
#[test]
fn a_waiting_host_waits_less() {
    let alone = Job { waits: true, ..Job::default() };
    let expected = profile(read(alone.trace().as_bytes()).unwrap()).mean_step();
    let ddp = Job { exchange: Some((4, 5000.0)), rank: Some((0, 2)), ..alone };
    let imported = read(ddp.trace().as_bytes()).unwrap();
    assert!(figure(&imported, "step") > 6000.0);
    near(profile(imported).mean_step().get(), expected.get(), 0.01 * expected.get());
}

#[test]
fn buckets_tell_sizes_where_shapes_do_not() {
    let job = Job { exchange: Some((3, 40.0)), batch: None, ..Job::default() };
    let imported = read(job.trace().as_bytes()).unwrap();
    near(figure(&imported, "parameters"), 4000.0, 1e-9);
    assert!(imported.notes.iter().any(|note| note.contains("record_shapes")), "{:?}", imported.notes);
    let buckets = imported.summary.tables.iter().find(|table| table.key == "buckets").unwrap();
    let elements: Vec<&SummaryValue> = buckets.rows.iter().map(|row| &row[1]).collect();
    assert_eq!(elements, [&SummaryValue::Count(3000), &SummaryValue::Count(1000)]);
    let error = read_with(job.trace().as_bytes(), None).unwrap_err();
    assert!(error.reason.contains("how many samples") && error.remedy.contains("`batch`"), "{error}");
}

#[test]
fn steps_are_found_without_marks() {
    let marked = profile(read(Job { steps: 5, ..Job::default() }.trace().as_bytes()).unwrap());
    let job = Job { steps: 5, marks: false, ..Job::default() };
    let imported = read(job.trace().as_bytes()).unwrap();
    let found = profile(imported);
    assert_eq!(found.steps, marked.steps);
    let repeated = job.trace().replace("Optimizer.step#SGD.step", "whatever");
    let found = profile(read(repeated.as_bytes()).unwrap());
    assert_eq!(found.steps.len(), 4, "what comes after the last beginning is not known to be a step");
    near(found.mean_step().get(), marked.mean_step().get(), 1e-9);
}

#[test]
fn ranks_are_put_on_one_clock_and_the_slow_one_is_shown() {
    let rank = |number, backward, duration, clock| Job {
        rank: Some((number, 3)),
        backward,
        exchange: Some((4, duration)),
        clock,
        ..Job::default()
    };
    // The third rank computes for 400 µs longer; the others wait for it in the collective.
    let traces = [rank(0, 200.0, 500.0, 0.0), rank(1, 200.0, 500.0, 7000.0), rank(2, 300.0, 100.0, -300.0)];
    let texts: Vec<String> = traces.iter().map(Job::trace).collect();
    let names = ["rank0.json", "rank1.json", "rank2.json"];
    let files: Vec<(&str, &[u8])> =
        names.iter().zip(&texts).map(|(name, text)| (*name, text.as_bytes())).collect();
    let (_folder, paths) = write(&files);
    let imported = import(&paths, &Options { batch: Some(8), ..Options::default() }).unwrap();
    let table = imported.summary.tables.iter().find(|table| table.key == "ranks").unwrap();
    let column = |key: &str| table.columns.iter().position(|(name, _)| *name == key).unwrap();
    let time = |rank: usize, key: &str| match &table.rows[rank][column(key)] {
        SummaryValue::Time(time) => time.get() * 1e6,
        SummaryValue::Share(share) => *share,
        _ => f64::NAN,
    };
    near(time(1, "clock"), 7000.0, 1e-3);
    near(time(2, "clock"), -300.0, 1e-3);
    near(time(2, "last"), 1.0, 1e-9);
    near(time(0, "waited"), 400.0, 1e-3);
    near(time(2, "compute"), 1650.0, 1e-3);
    assert!(imported.notes.iter().any(|note| note.contains("rank 0") || note.contains("rank 1")));
    near(profile(imported).mean_step().get(), 1250e-6, 1e-9);
}

#[test]
fn a_job_without_a_device_is_its_operators() {
    let trace = include_str!("../operators.json");
    let imported = read_with(trace.as_bytes(), None).unwrap();
    near(figure(&imported, "exposed"), 295.0, 1e-3);
    near(figure(&imported, "parameters"), 18.0, 1e-9);
    // The range of a sum tells its size where nothing else does.
    let buckets = imported.summary.tables.iter().find(|table| table.key == "buckets").unwrap();
    assert_eq!(buckets.rows[0][1..3], [SummaryValue::Count(18), SummaryValue::Size(Bytes::new(72.0))]);
    let profile = profile(imported);
    assert_eq!(profile.batch, 4);
    let pass = Recorded::new(&profile).unwrap().mean(1.0);
    same(pass.forward, 310.0);
    same(pass.update, 1000.0 - 310.0 - 295.0);
}

#[test]
fn content_tells_the_format() {
    let text = Job::default().trace();
    let (_folder, paths) = write(&[
        ("a.txt", text.as_bytes()),
        ("b.bin", &gzip(text.as_bytes())),
        ("c.json", b"{\"a\": 1}"),
        ("d.json", b""),
        ("e.pb", include_bytes!("../fixtures/graphs.pb.gz")),
    ]);
    assert_eq!(Format::detect(&paths[0]).unwrap(), Format::Kineto);
    assert_eq!(Format::detect(&paths[1]).unwrap(), Format::Kineto);
    assert!(Format::detect(&paths[2]).unwrap_err().remedy.contains("Kineto"));
    assert!(Format::detect(&paths[3]).is_err());
    assert_eq!(Format::detect(&paths[4]).unwrap(), Format::RunMetadata);
    let mixed = [paths[0].clone(), paths[4].clone()];
    assert!(import(&mixed, &Options::default()).unwrap_err().reason.contains("the first file"));
}

#[test]
fn broken_files_give_what_they_hold() {
    let good = Job { steps: 6, ..Job::default() }.trace();
    let whole = profile(read(good.as_bytes()).unwrap());
    let noted = |text: &[u8], note: &str| {
        let imported = read(text).unwrap();
        assert!(imported.notes.iter().any(|it| it.contains(note)), "{note}: {:?}", imported.notes);
        profile(imported)
    };
    let cut = noted(&good.as_bytes()[..good.len() * 2 / 3], "in the middle");
    assert!((2..6).contains(&cut.steps.len()));
    let packed = gzip(good.as_bytes());
    noted(&packed[..packed.len() * 2 / 3], "cannot be unpacked");
    let lost = good.replacen("\"correlation\": 9\n    }\n  }", "\"correlation\": 9\n    }\n", 1);
    assert_ne!(lost, good);
    noted(lost.as_bytes(), "1 event ignored: unreadable");
    let strings = quoted_times(&good);
    assert_eq!(profile(read(strings.as_bytes()).unwrap()).steps, whole.steps, "times as strings");
    let twice = good.replace("\"cat\": \"kernel\"", "\"cat\": \"x\", \"cat\": \"kernel\"");
    assert_eq!(profile(read(twice.as_bytes()).unwrap()).steps, whole.steps, "the last of two keys counts");
    let absurd = good.replacen("\"dur\": 100.000", "\"dur\": -1e300", 2);
    noted(absurd.as_bytes(), "impossible times");
    let mut bytes = good.clone().into_bytes();
    let place = good.find("made_up_convolution").unwrap();
    bytes[place] = 0xff;
    assert_eq!(noted(&bytes, "event").steps, whole.steps);
    let numbers = good.replace("\"blocks per SM\": 1.5", "\"blocks per SM\": nan");
    assert_eq!(noted(numbers.as_bytes(), "event").steps, whole.steps);
    for hopeless in [
        &good.as_bytes()[..40],
        b"{\"schemaVersion\":1,\"traceEvents\":[]}",
        b"{\"schemaVersion\":1,\"traceEvents\":3",
    ] {
        let error = read(hopeless).unwrap_err();
        assert!(!error.reason.is_empty() && !error.remedy.is_empty());
    }
}

fn quoted_times(text: &str) -> String {
    let quoted = |line: &str| match line.trim_start().strip_prefix("\"ts\": ") {
        Some(rest) => {
            let (start, rest) = rest.split_once(',').unwrap();
            let (duration, rest) = rest
                .trim_start()
                .strip_prefix("\"dur\": ")
                .map_or(("", rest), |it| it.split_once(',').unwrap());
            match duration {
                "" => line.to_owned(),
                _ => format!("\"ts\": \"{start}\", \"dur\": \"{duration}\",{rest}"),
            }
        }
        None => line.to_owned(),
    };
    text.lines().map(quoted).collect::<Vec<_>>().join("\n")
}

/// Steps of 100 ms whose first kernel, a copy on a stream of its own, runs beside the end of the step before.
fn overlapping(steps: u32, early: bool) -> String {
    let mut events = Vec::new();
    let mut correlation = 0;
    for step in 0..steps {
        let origin = step * 100_000;
        events.push(format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{step}","pid":1,"tid":1,"ts":{origin},"dur":99990}}"#
        ));
        let mut kernel = |name: &str, launch: u32, start: u32, length: u32| {
            correlation += 1;
            events.push(format!(
                r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{launch},"dur":5,"args":{{"correlation":{correlation}}}}}"#
            ));
            events.push(format!(
                r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{start},"dur":{length},"args":{{"correlation":{correlation}}}}}"#
            ));
        };
        if early {
            kernel("prefetch", origin + 1000, origin + 1100, 1000);
        }
        for number in 0..9 {
            kernel("gemm", origin + 2000 + 100 * number, origin + 62_000 + 10_000 * number, 10_000);
        }
    }
    format!(r#"{{"schemaVersion":1,"deviceProperties":[],"traceEvents":[{}]}}"#, events.join(","))
}

#[test]
fn steps_that_overlap_last_from_mark_to_mark() {
    let apart = read_with(overlapping(5, false).as_bytes(), Some(32)).unwrap();
    assert!(!apart.notes.iter().any(|note| note.contains("overlap")), "{:?}", apart.notes);
    let imported = read_with(overlapping(5, true).as_bytes(), Some(32)).unwrap();
    assert!(imported.notes.iter().any(|note| note.contains("steps overlap: 4")), "{:?}", imported.notes);
    near(figure(&imported, "step"), figure(&apart, "step"), 1e-9);
    // Nine kernels of 10 ms in a period of 100 ms.
    near(figure(&imported, "idle"), 0.1, 1e-9);
    for step in profile(imported).steps {
        near(step.length, 0.1, 1e-9);
    }
}

// Traces of a decoder that four ranks train under several plans: on one H200 with NCCL, and on CPUs with gloo.
// `research/traces/record.py` recorded and packed them.

fn imported_plan(name: &str) -> Imported {
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

fn plan_figure(imported: &Imported, key: &str) -> Option<f64> {
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
        let imported = imported_plan(name);
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
        assert_eq!(plan_figure(&imported, "parameters"), Some(parameters.parse().unwrap()), "{name}");
        // Put together again, the step takes as long as it was recorded.
        let recorded = plan_figure(&imported, "step").unwrap();
        let replayed = plan_figure(&imported, "replayed").unwrap_or_else(|| mean_step(&imported).get());
        match name {
            // All communication is taken out.
            "cuda-ddp" => assert!(mean_step(&imported).get() < 0.5 * recorded),
            // One replica; what replicas of it would exchange is one part.
            "cuda-fsdp-tensor" => assert!(plan_figure(&imported, "replayed").is_none()),
            // Eight micro-batches make one gradient of each weight.
            "cuda-pipeline" => assert_eq!(plan_figure(&imported, "gradients"), Some(10.0)),
            _ => {}
        }
        assert!((replayed / recorded - 1.0).abs() < 0.03, "{name}: {replayed} s, recorded {recorded} s");
    }
}
