//! Planted faults in recordings of eight ranks on four machines: how many are found, and how often nothing is. And what
//! recordings are read.

use std::fs;
use std::path::Path;
use stepcast_study::check::ranks::{
    GroupTransfers, RankRecording, RankSeries, RankStep, SlowKind, Slowness, distribution, find,
    read_rank_texts, read_ranks,
};

/// A fault that is planted.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    /// A rank, and the factor on its work.
    SlowRank(u64, f64),
    SlowMachine(u64),
    /// The link from a rank to the next.
    SlowLink(u64),
    Pauses(Pauses),
    Documents,
    Loading(u64),
}

#[derive(Clone, Copy, PartialEq)]
struct Pauses {
    /// The rank that stands still; none if all do.
    rank: Option<u64>,
    /// The share of the time.
    share: f64,
    every: u64,
    first: u64,
    seen: Seen,
}

/// How a recording shows pauses.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    /// As time of the garbage collector: tables of `stepcast.watch`.
    Collector,
    /// As a device that has nothing to do: traces.
    Silent,
    /// Not at all: they look like work.
    Work,
}

impl Pauses {
    fn of(self, rank: u64, step: u64) -> f64 {
        let stands = self.rank.is_none_or(|own| own == rank) && step % self.every == self.first;
        if stands { 0.115 * self.share * self.every as f64 } else { 0.0 }
    }
}

const RANKS: u64 = 8;
const STEPS: u64 = 200;

/// Numbers from a standard normal distribution, the same in every run.
fn normals(mut seed: u64) -> impl FnMut() -> f64 {
    let mut uniform = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    move || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}

/// Ranks compute, wait for the slowest, and send around a ring. Devices differ by 1 % and steps of one by 2 %, now and then
/// by 6 %; links by 3 % and transfers by 5 %.
fn recorded(fault: Fault, seed: u64) -> RankRecording {
    let mut normal = normals(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 7);
    let devices: Vec<f64> = (0..RANKS).map(|_| (0.01 * normal()).exp()).collect();
    let links: Vec<f64> = (0..RANKS).map(|_| (0.03 * normal()).exp()).collect();
    let mut ranks: Vec<RankSeries> = (0..RANKS)
        .map(|rank| RankSeries { rank, machine: Some(format!("node-{}", rank / 2)), ..RankSeries::default() })
        .collect();
    let mut transfers: Vec<GroupTransfers> = (0..RANKS)
        .map(|rank| GroupTransfers { ranks: vec![rank, (rank + 1) % RANKS], times: Vec::new() })
        .collect();
    for step in 0..STEPS {
        let mut own = Vec::new();
        for rank in 0..RANKS {
            let noise = if normal() > 2.5 { 0.06 } else { 0.02 };
            let slow = match fault {
                Fault::SlowRank(slow, factor) if slow == rank => factor,
                Fault::SlowMachine(slow) if slow == rank / 2 => 1.10,
                _ => 1.0,
            };
            let tokens = if fault == Fault::Documents { 1000.0 * (0.15 * normal()).exp() } else { 1000.0 };
            own.push((
                0.1 * devices[rank as usize] * slow * tokens / 1000.0 * (noise * normal()).exp(),
                tokens,
            ));
        }
        let sent: Vec<f64> = (0..RANKS)
            .map(|rank| {
                let slow = if fault == Fault::SlowLink(rank) { 2.0 } else { 1.0 };
                0.01 * links[rank as usize] * slow * (0.05 * normal()).exp()
            })
            .collect();
        for (group, time) in transfers.iter_mut().zip(&sent) {
            group.times.push(*time);
        }
        let paused = |rank: u64| if let Fault::Pauses(pauses) = fault { pauses.of(rank, step) } else { 0.0 };
        let loading =
            |rank: u64| if fault == Fault::Loading(rank) { 0.01 * (0.2 * normal()).exp() } else { 0.0 };
        let loading: Vec<f64> = (0..RANKS).map(loading).collect();
        let arrives =
            own.iter().zip(&loading).zip(0..).map(|(((own, _), data), rank)| own + data + paused(rank));
        let time = arrives.fold(0.0, f64::max) + sent.iter().fold(0.0, |most: f64, own| most.max(*own));
        for (place, series) in ranks.iter_mut().enumerate() {
            let ((own, tokens), paused) = (own[place], paused(series.rank));
            let seen = |by: Seen| match fault {
                Fault::Pauses(pauses) if pauses.seen == by => paused,
                _ => 0.0,
            };
            let silent = 0.002 * (0.2 * normal()).exp();
            series.steps.push(RankStep {
                time,
                communication: Some(time - own - loading[place] - paused - silent),
                data: loading[place],
                pause: seen(Seen::Collector),
                silent: silent + seen(Seen::Silent),
                work: Some(tokens),
            });
        }
    }
    RankRecording { ranks, transfers, ..RankRecording::default() }
}

/// The share of a hundred recordings, each with a fault of its own, whose first cause is the planted one.
fn found(planted: impl Fn(&mut dyn FnMut(u64) -> u64) -> (Fault, SlowKind, String)) -> f64 {
    let is_found = |seed: &u64| {
        let mut normal = normals(seed * 77 + 5);
        let mut below = |count: u64| (normal().abs() * 1e6) as u64 % count;
        let (fault, kind, name) = planted(&mut below);
        let causes = find(&recorded(fault, *seed)).causes;
        causes.first().is_some_and(|cause| cause.kind == kind && cause.name.contains(&name))
    };
    (0..100).filter(is_found).count() as f64 / 100.0
}

/// Faults at random ranks and steps. The bounds are 9 of 10, and 5 % of false alarms; measured when this was
/// written: 99 of 100 or more found, no alarm.
#[test]
fn planted_faults_are_found_and_healthy_recordings_are_left_alone() {
    let pauses = |rank: Option<u64>, seen: Seen, below: &mut dyn FnMut(u64) -> u64| {
        let every = 4 + below(47);
        let share = 0.03 + 0.001 * below(20) as f64;
        let planted = Pauses { rank, share, every, first: below(every), seen };
        let who = rank.map_or_else(String::new, |rank| format!("rank {rank}, "));
        let what = if seen == Seen::Collector { "garbage collection, " } else { "" };
        (Fault::Pauses(planted), SlowKind::Pauses, format!("{who}{what}every {every} steps"))
    };
    let shares = [
        found(|below| {
            let rank = below(RANKS);
            let slow = Fault::SlowRank(rank, 1.1 + 0.01 * below(10) as f64);
            (slow, SlowKind::Rank, format!("rank {rank}"))
        }),
        found(|below| {
            let machine = below(RANKS / 2);
            (Fault::SlowMachine(machine), SlowKind::Machine, format!("machine node-{machine}"))
        }),
        found(|below| {
            let rank = below(RANKS);
            let next = (rank + 1) % RANKS;
            let name = format!("rank {rank} (node-{}) – rank {next} (node-{})", rank / 2, next / 2);
            (Fault::SlowLink(rank), SlowKind::Link, name)
        }),
        found(|below| pauses(None, Seen::Collector, below)),
        found(|below| pauses(Some(below(RANKS)), Seen::Collector, below)),
        found(|below| pauses(Some(below(RANKS)), Seen::Silent, below)),
        found(|below| pauses(Some(below(RANKS)), Seen::Work, below)),
        found(|_| (Fault::Documents, SlowKind::Documents, "documents".to_owned())),
        found(|below| {
            let rank = below(RANKS);
            (Fault::Loading(rank), SlowKind::DataLoading, format!("rank {rank}"))
        }),
    ];
    assert!(shares.iter().all(|share| *share >= 0.9), "{shares:?}");
    let alarms = (0..200).filter(|seed| !find(&recorded(Fault::Nothing, *seed)).causes.is_empty()).count();
    assert!(alarms <= 10, "{alarms} of 200");
}

/// Six processes in network namespaces with shaped links (research/ranks/testbed.py), and traces of PyTorch's profiler of four
/// ranks that share an H200 (research/ranks/one_gpu.py, without what is not read).
#[test]
fn faults_of_recorded_processes_are_found() {
    for (file, expected) in [
        ("healthy.csv", None),
        ("slow-rank.csv", Some((SlowKind::Rank, "rank 4"))),
        ("slow-link.csv", Some((SlowKind::Link, "rank 3 (node-1) – rank 4 (node-2)"))),
        ("pauses.csv", Some((SlowKind::Pauses, "rank 2, every 10 steps"))),
        ("documents.csv", Some((SlowKind::Documents, "documents of different lengths"))),
        ("loading.csv", Some((SlowKind::DataLoading, "rank 1"))),
        ("h200/healthy", None),
        ("h200/slow-rank", Some((SlowKind::Rank, "rank 2"))),
        ("h200/pauses", Some((SlowKind::Pauses, "rank 3, every 8 steps"))),
        ("h200/documents", Some((SlowKind::Documents, "work that differs between ranks"))),
        ("h200/loading", Some((SlowKind::DataLoading, "rank 1"))),
    ] {
        let path = format!("{}/tests/ranks/{file}", env!("CARGO_MANIFEST_DIR"));
        let found = find(&read_ranks(Path::new(&path)).unwrap().unwrap());
        let first = found.causes.first().map(|cause| (cause.kind, cause.name.as_str()));
        assert_eq!(first, expected, "{file}: {found:?}");
    }
}

/// A rank that is 10 % slow costs what the others wait for it, and its removal gains as much.
#[test]
fn a_fault_costs_what_its_removal_gains() {
    let (slow, healthy) = (recorded(Fault::SlowRank(5, 1.1), 1), recorded(Fault::Nothing, 1));
    let mean = |recording: &RankRecording| {
        let steps = recording.steps();
        steps.iter().map(|step| step.get()).sum::<f64>() / steps.len() as f64
    };
    let cause = &find(&slow).causes[0];
    let gained = mean(&slow) - mean(&healthy);
    assert!((cause.cost.get() / gained - 1.0).abs() < 0.2, "{cause:?} {gained}");
    assert!((cause.factor - 1.1).abs() < 0.03 && (cause.gain - gained / mean(&slow)).abs() < 0.02);
}

#[test]
fn steps_that_get_longer_drift() {
    let times = |slope: f64| -> Vec<f64> {
        let mut normal = normals(3);
        (0..300).map(|step| (slope * f64::from(step) + 0.02 * normal()).exp()).collect()
    };
    let drift = distribution(&times(0.0003)).drift.unwrap();
    assert!((drift - 0.06).abs() < 0.02, "{drift}");
    let steady = distribution(&times(0.0));
    assert!(steady.drift.is_none() && (steady.spread - 0.02).abs() < 0.004, "{steady:?}");
    assert!(steady.tails[0] < steady.tails[1] && steady.tails[1] <= steady.tails[2]);
}

fn read(texts: &[(String, String)]) -> Slowness {
    find(&read_rank_texts(texts).unwrap().unwrap())
}

/// Ranks 10 to 13 on two machines sum over all of them, and in pairs; rank 12 computes for 115 ms instead of 100, and the pair of
/// ranks 11 and 13 sends at half the rate.
fn dump(rank: u64) -> (String, String) {
    let pair = rank % 2;
    let own = |rank: u64| if rank == 2 { 0.115 } else { 0.100 };
    let entries: Vec<String> = (1..=40u64)
        .flat_map(|step| {
            let start = step * 160_000_000;
            let transfer = 0.02 + (step % 5) as f64 * 1e-4;
            let waits = (0..4).map(own).fold(0.0, f64::max) - own(rank);
            let of_pair = if pair == 1 { 0.012 } else { 0.006 };
            let entry = |group: String, created: u64, duration: f64| {
                format!(
                    r#"{{"process_group": ["{group}", "x"], "collective_seq_id": {step}, "p2p_seq_id": 0, "is_p2p": false,
                    "time_created_ns": {created}, "duration_ms": {}, "state": "completed", "profiling_name": "nccl:all_reduce"}}"#,
                    duration * 1e3
                )
            };
            [
                entry("0".to_owned(), start, waits + transfer),
                entry(format!("{}", pair + 1), start + 1000, of_pair),
                entry(format!("{}", pair + 3), start + 2000, 0.006),
            ]
        })
        .collect();
    let text = format!(r#"{{"version": "2.4", "pg_config": {{}}, "entries": [{}]}}"#, entries.join(","));
    (format!("dump/nccl_trace_rank_{}", 10 + rank), text)
}

#[test]
fn dumps_name_the_rank_that_others_wait_for_and_the_slow_pair() {
    let dumps: Vec<_> = (0..4).map(dump).collect();
    let found = read(&dumps);
    let of = |kind| found.causes.iter().find(|cause| cause.kind == kind);
    assert_eq!(of(SlowKind::Rank).unwrap().name, "rank 12", "{found:?}");
    let link = of(SlowKind::Link).unwrap();
    assert!(link.name == "rank 11 – rank 13" && (link.factor - 2.0).abs() < 1e-6, "{link:?}");
    let broken = ("rank_0".to_owned(), "{\"pg_config\": {}, \"entries\": 3}".to_owned());
    let fault = read_rank_texts(&[broken]).unwrap_err();
    assert!(fault.to_string().contains("rank_0"), "{fault}");
}

#[test]
fn tables_of_ranks_are_read_by_their_header() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..2 {
        let rows: String =
            (0..20).map(|step| format!("{rank},{step},100 ms,0.02,0.01,,node-{rank},512\n")).collect();
        let header = "rank,step,step-time,communication,data,pause,machine,tokens\n";
        fs::write(folder.path().join(format!("rank{rank}.csv")), header.to_owned() + &rows).unwrap();
    }
    let found = read_ranks(folder.path()).unwrap().unwrap();
    assert_eq!((found.ranks.len(), found.steps().len()), (2, 20));
    assert_eq!(found.ranks[1].machine.as_deref(), Some("node-1"));
    let RankStep { time, communication, data, pause, .. } = found.ranks[0].steps[0];
    assert_eq!((time, communication, data, pause), (0.1, Some(0.02), 0.01, 0.0));
    let broken = folder.path().join("rank0.csv");
    fs::write(&broken, "rank,step,step-time\n0,1,fast\n").unwrap();
    let fault = read_ranks(folder.path()).unwrap_err().to_string();
    assert!(fault.contains("rank0.csv:2") && fault.contains("fast"), "{fault}");
    fs::write(&broken, "41 ms\n").unwrap();
    assert_eq!(read_ranks(&broken).unwrap(), None);
}

#[test]
fn lines_of_megatron_name_the_rank_that_is_always_the_slowest() {
    let line = |most: f64, rank: u64| {
        format!(
            "0: INFO:megatron.core.utils:[2024-03-14 23:07:56] | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: {most:.2}ms/{rank} | \
             MnPwr/Rnk: 601796W/8 | MnDRtt/Rnk: 14.27ms/23 | MxDRtt/Rnk: 34.65ms/3 | MnEtpt/Rnk: 296.02TF/0\n"
        )
    };
    let log =
        |rank: &dyn Fn(u64) -> u64, most: f64| (0..10).map(|at| line(most, rank(at))).collect::<String>();
    let of = |text: &str| read(&[("log".to_owned(), text.to_owned())]);
    let slow = of(&log(&|_| 5, 3900.0));
    assert_eq!((slow.causes[0].kind, slow.causes[0].name.as_str()), (SlowKind::Rank, "rank 5"));
    assert!((slow.causes[0].factor - 1.129).abs() < 1e-3);
    assert!(of(&log(&|at| at, 3900.0)).causes.iter().all(|cause| cause.kind != SlowKind::Rank));
    assert!(of(&log(&|_| 5, 3468.2)).causes.is_empty());
}
