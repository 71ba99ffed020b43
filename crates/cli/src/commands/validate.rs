//! `stepcast validate`: published figures recomputed, measured ones predicted, bounds kept.
//!
//! One list of sets; to add one, add a line to [`SETS`] and a rendering.

use super::json;
use crate::Answer;
use crate::render::error::Complaint;
use crate::render::{Screen, validation};
use anyhow::Context;
use std::collections::BTreeMap;
use stepcast_core::suggest;
use stepcast_study::validate::zeng2023;

const SETS: [&str; 1] = ["zeng2023"];

pub(super) fn run(set: Option<&str>, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    if let Some(name) = set
        && !SETS.contains(&name)
    {
        let list = format!("the sets are {}", SETS.join(", "));
        let remedy = suggest::remedy(name, SETS, &list);
        return Err(Complaint::new(format!("there is no validation set \"{name}\""), remedy).into());
    }
    let report = zeng2023::run().context("the validation could not run")?;
    let text = match as_json {
        true => json(&BTreeMap::from([(SETS[0], &report)]))?.text,
        false => validation::render(&report, screen),
    };
    Ok(Answer { text, holds: report.holds() })
}
