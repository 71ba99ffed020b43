//! The fitted machine as a TOML text.

use crate::artefact::{self, FitErrors, Provenance};
use std::collections::BTreeMap;
use stepcast_core::fitted::artefact::Kind;
use stepcast_core::fitted::machine::MachineModel;

const FORMULA: &str =
    "the compute model of transformers (docs/transformers.md, computing), with these constants";
const MEANING: [(&str, &str); 10] = [
    ("device", "entry of the catalog to whose rates the shares refer"),
    ("product", "share of the peak rate that large products reach under load"),
    ("sustained", "rate under load against the rate after a rest"),
    ("depth, tile, wave", "what tiles of products cost beside their operations"),
    ("flash, flash-back, head, diagonal", "share of the peak rate of attention, narrow heads, masked blocks"),
    ("memory, pass, update", "shares of the memory rate: copies, norms and activations, the optimiser"),
    ("kernel", "start and tail of a kernel, s"),
    (
        "host, outside, checkpoint",
        "host time of a kernel, s; kernels outside of layers; to compute a layer again, s",
    ),
    ("uncertainty", "families of shapes predicted by a fit of the others: standard deviations of logarithms"),
    ("times", "measured collectives, for `collectives` of a plan"),
];

/// The text of a TOML file with a fitted machine; errors by kind of measurement.
pub fn to_toml(
    model: &MachineModel,
    errors: &BTreeMap<String, FitErrors>,
    source: String,
    date: String,
) -> Result<String, toml::ser::Error> {
    artefact::to_toml(Kind::Machine, Provenance::new(FORMULA, source, date, &MEANING), errors, model)
}
