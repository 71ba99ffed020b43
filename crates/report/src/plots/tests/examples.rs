//! One plot of each kind, its figures made up.

use crate::plots::breakdown::{Breakdown, Column};
use crate::plots::fusion::{FusionComparison, Plan, Standing};
use crate::plots::gantt::{Bar, Gantt, Lane};
use crate::plots::lines::Lines;
use crate::plots::pareto::{Choice, Pareto};
use crate::plots::predicted_measured::{Pair, PredictedMeasured, Set};
use crate::plots::rank_grid::{RankGrid, Tile};
use crate::plots::scaling_curve::{Measured, Point, ScalingCurve};
use crate::plots::stage_memory::StageMemory;
use crate::plots::staleness::Staleness;
use crate::plots::varied::{Varied, VariedPair};
use stepcast_core::quantity::{Bytes, SamplesPerSec, Seconds};

fn rate(value: f64) -> SamplesPerSec {
    SamplesPerSec::new(value)
}

fn seconds(value: f64) -> Seconds {
    Seconds::new(value)
}

pub(super) fn scaling_curve() -> ScalingCurve {
    let point = |workers: u32| {
        let alone = 120.0 * f64::from(workers);
        let throughput = alone / (1.0 + f64::from(workers) / 9.0);
        Point {
            workers,
            throughput: rate(throughput),
            low_high: Some([rate(0.9 * throughput), rate(1.12 * throughput)]),
            ideal: Some(rate(alone)),
        }
    };
    ScalingCurve {
        title: "Throughput of resnet50".to_owned(),
        method: "layerwise".to_owned(),
        points: [1, 2, 3, 4, 8, 16].map(point).into(),
        measured: [(1, 105.0), (2, 204.0), (4, 320.0)]
            .map(|(workers, measured)| Measured { workers, throughput: rate(measured) })
            .into(),
        here: Some(3),
        saturates_at: Some(8),
    }
}

pub(super) fn breakdown() -> Breakdown {
    let column = |workers: u64| {
        let others = workers as f64 - 1.0;
        let parts = [
            ("computing", 0.21),
            ("start-up", 0.01),
            ("pushing", 0.03 * others),
            ("waiting", 0.012 * others),
        ];
        Column { workers, parts: parts.map(|(name, time)| (name.to_owned(), seconds(time))).into() }
    };
    Breakdown {
        title: "A step of resnet50".to_owned(),
        method: "zeng2023".to_owned(),
        columns: [1, 2, 3, 4, 6, 8, 12, 16].map(column).into(),
    }
}

pub(super) fn gantt() -> Gantt {
    let mut lanes = Vec::new();
    for worker in 0..3 {
        let shift = 0.004 * f64::from(worker);
        for (kind, name) in ["steps", "downlink", "computing", "uplink"].into_iter().enumerate() {
            let bars = (0..6).map(|place| {
                let since = shift + 0.03 * f64::from(place) + 0.006 * kind as f64;
                let words = if place == 5 { "backward of a layer with a long name" } else { "conv" };
                let length = 0.004 + 0.003 * f64::from(place);
                Bar {
                    name: format!("{words}{place}"),
                    since: seconds(since),
                    until: seconds(since + length),
                    ..Bar::default()
                }
            });
            lanes.push(Lane {
                group: format!("worker {worker}"),
                name: name.to_owned(),
                kind,
                bars: bars.collect(),
            });
        }
    }
    Gantt { title: "Steps of alexnet, simulated".to_owned(), lanes, ..Gantt::default() }
}

pub(super) fn fusion() -> FusionComparison {
    let plan = |(rule, step, exposed, messages, standing): (&str, f64, f64, usize, Standing)| Plan {
        rule: rule.to_owned(),
        step: seconds(step),
        exposed: seconds(exposed),
        messages,
        standing,
    };
    FusionComparison {
        title: "Fusion of the gradients of resnet50".to_owned(),
        plans: [
            ("as it is: PyTorch, 25 MiB", 0.231, 0.031, 6, Standing::Own),
            ("every gradient by itself", 0.312, 0.112, 161, Standing::Other),
            ("all together", 0.263, 0.063, 1, Standing::Other),
            ("a rule whose name is much too long to stand beside a bar", 0.229, 0.029, 9, Standing::Other),
            ("best plan", 0.218, 0.018, 8, Standing::Best),
        ]
        .map(plan)
        .into(),
    }
}

pub(super) fn lines() -> Lines {
    let line = |factor: f64| {
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(|n: f64| (n, 1.0 / (1.0 + factor * n.log2()))).into()
    };
    Lines {
        title: "Scaling of vgg16 with layers replaced".to_owned(),
        across: ("workers".to_owned(), crate::Unit::Number),
        upwards: ("scaling factor".to_owned(), crate::Unit::Number),
        lines: vec![("as it is".to_owned(), line(0.6)), ("layers replaced".to_owned(), line(0.08))],
    }
}

pub(super) fn pareto() -> Pareto {
    let choice = |(name, hours, cost): (&str, f64, f64)| Choice {
        name: name.to_owned(),
        index: None,
        time: seconds(3600.0 * hours),
        cost,
    };
    Pareto {
        title: "Time and cost of training resnet50".to_owned(),
        currency: "EUR".to_owned(),
        candidates: [("workers.count 12", 4.1, 131.0), ("workers.count 9", 5.6, 118.0)].map(choice).into(),
        front: [
            ("workers.count 16", 3.2, 128.0),
            ("workers.count 8", 5.4, 108.0),
            ("workers.count 2", 19.0, 95.0),
        ]
        .map(choice)
        .into(),
        chosen: Some(choice(("workers.count 8", 5.4, 108.0))),
    }
}

pub(super) fn predicted_measured() -> PredictedMeasured<Seconds> {
    let set = |(name, first, bias): (&str, f64, f64)| Set {
        name: name.to_owned(),
        pairs: (0..6)
            .map(|place| {
                let measured = first * 1.9_f64.powi(place);
                let error = bias * (1.0 + f64::from(place % 3));
                Pair {
                    name: format!("{name} {place}"),
                    measured: seconds(measured),
                    predicted: seconds(measured * (1.0 + error)),
                }
            })
            .collect(),
    };
    PredictedMeasured {
        title: "Step times, predicted and measured".to_owned(),
        quantity: "step time".to_owned(),
        sets: [("CPUs", 0.9, 0.03), ("GPUs", 0.04, -0.05), ("unequal workers", 0.3, 0.06)].map(set).into(),
    }
}

pub(super) fn rank_grid() -> RankGrid {
    let name = |words: &str| Some(words.to_owned());
    let block = |place: u64| {
        (0..4).map(move |rank| Tile { value: place, words: format!("rank {}", 4 * place + rank) })
    };
    RankGrid {
        title: "Ranks of llama3-8b, by stage".to_owned(),
        note: "Rows: stages; columns: replicas; 2 tensor ranks across".to_owned(),
        values: (0..3).map(|stage| format!("stage {stage}")).collect(),
        columns: vec![name("0"), name("1"), None, name("15")],
        rows: vec![name("stage 0"), name("stage 1"), None],
        across: 2,
        down: 2,
        blocks: (0..6).map(|place| block(place).collect()).collect(),
    }
}

pub(super) fn stage_memory() -> StageMemory {
    let stage = |place: u32| {
        let sizes = [9.1, 9.1, 18.2, 30.0 - 7.0 * f64::from(place), 1.5];
        sizes.map(|size| Bytes::new(1e9 * size)).into()
    };
    StageMemory {
        title: "Memory of llama3-8b".to_owned(),
        capacity: Bytes::new(64e9),
        parts: ["weights", "gradients", "optimiser", "activations", "working sets"].map(str::to_owned).into(),
        stages: (0..4).map(stage).collect(),
    }
}

pub(super) fn staleness() -> Staleness {
    Staleness {
        title: "Staleness of alexnet".to_owned(),
        shares: vec![0.02, 0.08, 0.21, 0.38, 0.19, 0.09, 0.03],
        open_ended: true,
        mean: Some(3.04),
    }
}

pub(super) fn varied_numbers() -> Varied<SamplesPerSec> {
    let points = [(8, Some(61.0)), (16, Some(104.0)), (32, Some(150.0)), (64, Some(171.0)), (128, None)];
    let too_large = vec![false, false, false, true];
    Varied {
        title: "Throughput of resnet50".to_owned(),
        key: "strategy.batch".to_owned(),
        quantity: "throughput".to_owned(),
        points: points.map(|(batch, value)| (batch.to_string(), value.map(rate))).into(),
        too_large,
        best: Some(2),
    }
}

pub(super) fn varied_names() -> Varied<SamplesPerSec> {
    let points =
        [("1gbe", 12.0), ("10gbe", 88.0), ("25gbe", 131.0), ("a network with quite a long name", 133.0)];
    Varied {
        title: "Throughput of resnet50".to_owned(),
        key: "cluster.network".to_owned(),
        quantity: "throughput".to_owned(),
        points: points.map(|(name, value)| (name.to_owned(), Some(rate(value)))).into(),
        too_large: vec![true, false],
        best: Some(3),
    }
}

pub(super) fn varied_pair() -> VariedPair<SamplesPerSec> {
    let names = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>();
    let figure = |place: usize| (place != 7).then(|| rate(40.0 * (1.0 + place as f64).powf(1.3)));
    VariedPair {
        title: "Throughput of resnet50".to_owned(),
        quantity: "throughput".to_owned(),
        across: ("cluster.workers.count".to_owned(), names(&[1, 2, 4, 8])),
        upwards: ("strategy.batch".to_owned(), names(&[16, 32, 64])),
        figures: (0..12).map(figure).collect(),
        too_large: (0..12).map(|place| place > 9).collect(),
        best: Some(9),
    }
}
