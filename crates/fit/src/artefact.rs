//! The artefact of a fit: a TOML text with formula, coefficients with units and meaning, source, date and errors.
//! [`Artefact`](stepcast_core::fitted::artefact::Artefact) reads it back.

use crate::Quality;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepcast_core::fitted::artefact::Kind;

/// The first lines of every artefact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Provenance {
    /// What was fitted.
    pub formula: String,
    /// What it was fitted to.
    pub source: String,
    /// When: year-month-day.
    pub date: String,
    /// What the coefficients mean.
    pub meaning: BTreeMap<String, String>,
}

/// Errors on the measurements of the fit, and on others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FitErrors {
    /// On the measurements of the fit.
    pub fit: Quality,
    /// On measurements that took no part in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Quality>,
}

impl Provenance {
    /// Of a fit of `source` on `date`.
    pub fn new(formula: &str, source: String, date: String, meaning: &[(&str, &str)]) -> Self {
        let meaning = meaning.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Self { formula: formula.to_owned(), source, date, meaning }
    }
}

#[derive(Serialize)]
struct File<'a, E, M> {
    kind: Kind,
    provenance: Provenance,
    errors: E,
    model: &'a M,
}

/// The text of a TOML file with a fitted model.
pub(crate) fn to_toml<E: Serialize, M: Serialize>(
    kind: Kind,
    provenance: Provenance,
    errors: E,
    model: &M,
) -> Result<String, toml::ser::Error> {
    toml::to_string(&File { kind, provenance, errors, model })
}
