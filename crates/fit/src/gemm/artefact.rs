//! The model of products as a TOML text.

use crate::artefact::{self, FitErrors, Provenance};
use std::collections::BTreeMap;
use stepcast_core::fitted::artefact::Kind;
use stepcast_core::fitted::gemm::{GemmModel, Variant};

const FORMULA: &str = "\
time = queued + (alone + kernel - queued) / calls; calls = budget / flops, from 1 to 20; \
queued = (host^4 + kernel^4)^(1/4); host = launch + [two kernels] second; \
kernel = least over tiles and splits of \
max(waves * 2 * tile * steps / rate(tile), (mk + kn) / read) + mn / write + start + steps * step \
+ [split > 1] (split_start + split * mn / merge); \
waves = ceil(tiles of C * split / multiprocessors), steps = k / split; \
times exp(log-ratio) interpolated between nodes";
const MEANING: [(&str, &str); 13] = [
    ("alignment", "largest unit in which rows of all matrices can be copied: other units take other kernels"),
    ("alone", "what the first call of a queue costs beside its kernel"),
    ("budget", "operations after which a queue of timed calls ended"),
    ("launch", "what the host needs for a call in a queue of calls"),
    ("merge", "rate at which partial sums of a split k are added"),
    ("read", "rate at which A and B are read"),
    ("second", "what the host needs for a second kernel of the same call"),
    ("split", "what adding partial sums costs whatever their size"),
    ("start", "what a kernel costs whatever its size"),
    ("step", "latency of one element of k in the loop of a block"),
    ("tiles", "rate of one multiprocessor by the part of C that a block computes"),
    ("write", "rate at which C is written"),
    ("log-ratios", "ln(measured / kernels) at nodes half a doubling apart, k fastest, then n"),
];

/// The text of a TOML file with fitted products; `errors` are those of each variant.
pub fn to_toml(
    model: &GemmModel,
    errors: &BTreeMap<Variant, FitErrors>,
    source: String,
    date: String,
) -> Result<String, toml::ser::Error> {
    let errors: BTreeMap<String, &FitErrors> =
        errors.iter().map(|(variant, errors)| (variant.to_string(), errors)).collect();
    artefact::to_toml(Kind::Gemm, Provenance::new(FORMULA, source, date, &MEANING), errors, model)
}
