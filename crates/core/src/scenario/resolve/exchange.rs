//! Resolves the exchange of gradients: fusion, collectives, curves.

use super::below;
use crate::fault::{Fault, NameList, Remedy};
use crate::files::Files;
use crate::fitted::artefact::{self, Artefact, ArtefactKind};
use crate::fitted::transfer::{Curve, LogLinear, Measured, TransferModel};
use crate::keys::{not_negative, positive};
use crate::quantity::{Bytes, BytesPerSec, Seconds};
use crate::strategy::{
    AllReduceSection, BucketList, CurveSection, Exchange, Fusion, FusionRule, FusionSection, HOROVOD_CYCLE,
    HOROVOD_THRESHOLD, PYTORCH_CAP, PYTORCH_FIRST, StrategySection,
};
use crate::suggest;
use crate::workload::Gradient;

/// Whether checking a strategy requires the list of gradients.
pub(super) fn names_gradients(strategy: &StrategySection) -> bool {
    strategy.fusion.as_ref().is_some_and(|fusion| fusion.buckets.is_some())
}

pub(super) fn exchange(
    mut all_reduce: AllReduceSection,
    fusion: FusionSection,
    gradients: &[Gradient],
    files: &dyn Files,
) -> Result<Exchange, Fault> {
    let fusion = self::fusion(fusion, gradients).map_err(below("fusion"))?;
    let (measured, section, fitted) =
        (all_reduce.measured.take(), all_reduce.curve.take(), all_reduce.fitted.take());
    let within = below("all-reduce");
    let curve = curve(measured, section, fitted, files).map_err(&within)?;
    all_reduce.fill(None, files, fusion, curve).map_err(within)
}

fn curve(
    measured: Option<Vec<(Bytes, Seconds)>>,
    section: Option<CurveSection>,
    fitted: Option<String>,
    files: &dyn Files,
) -> Result<Option<Curve>, Fault> {
    match (measured, section, fitted) {
        (Some(points), None, None) => {
            let remedy = "give at least two sizes, in growing order: `measured = [[\"1 MB\", \"9 ms\"], [\"64 MB\", \"500 ms\"]]`";
            let wrong = |error: crate::fitted::transfer::NoCurve| {
                Fault::in_key("measured", error.to_string(), remedy)
            };
            Ok(Some(Curve::Measured(Measured::new(&points).map_err(wrong)?)))
        }
        (None, Some(section), None) => {
            Ok(Some(Curve::Piecewise(piecewise(section).map_err(below("curve"))?)))
        }
        (None, None, Some(path)) => {
            let model = fitted_curve(&path, files).map_err(below("fitted"))?;
            Ok(Some(Curve::Fitted { path: path.into(), model }))
        }
        (None, None, None) => Ok(None),
        (measured, _, fitted) => {
            let first = if measured.is_some() { "measured" } else { "curve" };
            let second = if fitted.is_some() { "fitted" } else { "curve" };
            let reason = format!("both `{first}` and `{second}` say how long an all-reduce takes");
            Err(Fault::in_key(second, reason, "keep one of them"))
        }
    }
}

fn fitted_curve(path: &str, files: &dyn Files) -> Result<TransferModel, Fault> {
    match artefact::load(path, files)? {
        Artefact::Transfer(model) => Ok(model),
        other => Err(artefact::unwanted(path, other.kind(), &[ArtefactKind::Transfer])),
    }
}

fn piecewise(section: CurveSection) -> Result<LogLinear, Fault> {
    let missing = |key: &str, example: &str| {
        let reason = format!("the curve has no `{key}`");
        Fault::new(reason, format!("add `{key} = \"{example}\"`"))
    };
    let bandwidth: BytesPerSec = section.bandwidth.ok_or_else(|| missing("bandwidth", "2 GB/s"))?;
    let overhead = section.overhead.ok_or_else(|| missing("overhead", "1 ms"))?;
    let threshold = section.threshold.unwrap_or(LogLinear::PAPER_THRESHOLD);
    let per_doubling = section.per_doubling.unwrap_or(Seconds::ZERO);
    positive("bandwidth", bandwidth.get(), "a rate such as \"2 GB/s\"")?;
    not_negative("overhead", overhead.get(), "a time such as \"1 ms\"")?;
    positive("threshold", threshold.get(), "a size such as \"45 kB\"")?;
    not_negative("per-doubling", per_doubling.get(), "a time such as \"20 us\"")?;
    let curve = LogLinear::continuous(threshold, per_doubling, bandwidth, overhead);
    Ok(section.one_byte.map_or(curve, |time| curve.with_offset_below(time)))
}

fn fusion(section: FusionSection, gradients: &[Gradient]) -> Result<Fusion, Fault> {
    let named = section.rule.or(section.buckets.as_ref().map(|_| FusionRule::Buckets));
    let rule = named.unwrap_or(FusionRule::Pytorch);
    use FusionRule::{Buckets, Buffer, Horovod, Pytorch};
    let keys: [(&str, bool, &[FusionRule]); 6] = [
        ("size", section.size.is_some(), &[Buffer, Pytorch, Horovod]),
        ("first", section.first.is_some(), &[Pytorch]),
        ("timeout", section.timeout.is_some(), &[Buffer]),
        ("reading", section.reading.is_some(), &[Buffer]),
        ("cycle", section.cycle.is_some(), &[Horovod]),
        ("buckets", section.buckets.is_some(), &[Buckets]),
    ];
    if let Some((key, ..)) = keys.iter().find(|(_, given, rules)| *given && !rules.contains(&rule)) {
        let reason = format!("`{key}` has no meaning for this rule");
        return Err(Fault::in_key(*key, reason, "remove it, or choose another `rule`"));
    }
    if let Some(size) = section.size {
        positive("size", size.get(), "a size such as \"25 MiB\"")?;
    }
    if let Some(size) = section.first {
        positive("first", size.get(), "a size such as \"1 MiB\"")?;
    }
    if let Some(time) = section.timeout {
        not_negative("timeout", time.get(), "a time such as \"5 ms\"")?;
    }
    if let Some(time) = section.cycle {
        positive("cycle", time.get(), "a time such as \"1 ms\"")?;
    }
    Ok(match rule {
        FusionRule::None => Fusion::None,
        FusionRule::All => Fusion::All,
        FusionRule::Buffer => Fusion::Buffer {
            size: section.size.unwrap_or(HOROVOD_THRESHOLD),
            timeout: section.timeout,
            reading: section.reading.unwrap_or_default(),
        },
        FusionRule::Pytorch => Fusion::Pytorch {
            // A given size applies to the first bucket as well (`bucket_cap_mb` of recent versions).
            first: section.first.or(section.size).unwrap_or(PYTORCH_FIRST),
            cap: section.size.unwrap_or(PYTORCH_CAP),
        },
        FusionRule::Horovod => {
            Fusion::horovod(section.size.unwrap_or(HOROVOD_THRESHOLD), section.cycle.unwrap_or(HOROVOD_CYCLE))
        }
        FusionRule::Adaptive => Fusion::Adaptive,
        FusionRule::MgWfbp => Fusion::MgWfbp,
        FusionRule::Buckets => {
            let counts = match section.buckets {
                Some(list) => counts(list, gradients)?,
                None => {
                    let remedy = "add `buckets = [3, 2, …]`, the number of gradients in each message";
                    return Err(Fault::new("the list of buckets is missing", remedy));
                }
            };
            Fusion::Buckets(counts.into())
        }
    })
}

/// Number of gradients in each message; every gradient must be in exactly one.
fn counts(list: BucketList, gradients: &[Gradient]) -> Result<Vec<u32>, Fault> {
    let wrong = |reason: String, remedy: &str| Err(Fault::in_key("buckets", reason, remedy.to_owned()));
    let counts = match list {
        BucketList::Counts(counts) => counts,
        BucketList::Names(buckets) => {
            for (position, name) in buckets.iter().flatten().enumerate() {
                if gradients.get(position).is_none_or(|gradient| gradient.name != *name) {
                    return Err(misplaced(name, position, gradients));
                }
            }
            buckets.iter().map(|bucket| bucket.len() as u32).collect()
        }
    };
    if counts.contains(&0) {
        return wrong("a bucket is empty".to_owned(), "remove it");
    }
    let held: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    if held != gradients.len() as u64 {
        return wrong(
            format!("the buckets hold {held} gradients, and the model has {}", gradients.len()),
            "put every gradient into one bucket",
        );
    }
    Ok(counts)
}

/// The fault of a gradient listed in the place of another.
fn misplaced(name: &str, position: usize, gradients: &[Gradient]) -> Fault {
    let wrong = |reason, remedy| Fault::in_key("buckets", reason, remedy);
    let in_order = || "name every gradient once, in the order in which they are ready".into();
    match gradients.iter().position(|gradient| gradient.name == name) {
        None => {
            let names = gradients.iter().map(|gradient| gradient.name.as_str());
            let remedy = suggest::remedy(name, names, Remedy::ListNames { list: NameList::Gradients });
            wrong(format!("there is no gradient \"{name}\""), remedy)
        }
        Some(place) if place < position => {
            wrong(format!("the gradient \"{name}\" stands in two places or out of order"), in_order())
        }
        Some(_) => {
            let reason =
                format!("the gradient \"{}\" is missing before \"{name}\"", gradients[position].name);
            wrong(reason, in_order())
        }
    }
}
