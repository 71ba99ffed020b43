//! `stepcast validate`: published figures recomputed, measured ones predicted, bounds kept.
//!
//! One list of sets; to add one, add a line to [`SETS`], an arm to [`run_set`] and a rendering.

use super::json;
use crate::Answer;
use crate::render::error::Complaint;
use crate::render::{Screen, tf_ps as tf_ps_text, validation};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::path::Path;
use stepcast_core::suggest;
use stepcast_study::validate::{tf_ps, zeng2023};

/// Figures in the binary.
const ZENG2023: &str = "zeng2023";
/// Measured runs in a folder.
const TF_PS: &str = "tf-ps";
const SETS: [&str; 2] = [ZENG2023, TF_PS];

pub(super) fn run(
    set: Option<&str>,
    data: Option<&Path>,
    held_out: bool,
    as_json: bool,
    screen: &Screen,
) -> anyhow::Result<Answer> {
    let sets: Vec<&str> = match set {
        Some(name) if SETS.contains(&name) => vec![name],
        Some(name) => {
            let list = format!("the sets are {}", SETS.join(", "));
            let remedy = suggest::remedy(name, SETS, &list);
            return Err(Complaint::new(format!("there is no validation set \"{name}\""), remedy).into());
        }
        None => SETS.into_iter().filter(|set| *set != TF_PS || data.is_some()).collect(),
    };
    let mut holds = true;
    let mut texts = Vec::new();
    let mut values = serde_json::Map::new();
    for set in sets {
        let outcome = run_set(set, data, held_out, screen)?;
        holds &= outcome.holds;
        texts.push(outcome.text);
        values.insert(set.to_owned(), outcome.value);
    }
    let text = if as_json { json(&values)?.text } else { texts.join("\n") };
    Ok(Answer { text, holds })
}

struct Outcome {
    text: String,
    value: Value,
    holds: bool,
}

fn run_set(set: &str, data: Option<&Path>, held_out: bool, screen: &Screen) -> anyhow::Result<Outcome> {
    if set == ZENG2023 {
        let report = zeng2023::run().context("the validation could not run")?;
        let text = validation::render(&report, screen);
        return Ok(Outcome { text, value: serde_json::to_value(&report)?, holds: report.holds() });
    }
    let Some(folder) = data else {
        let remedy = "add --data FOLDER; docs/validation.md says what is in it";
        return Err(Complaint::new("the runs of tf-ps are not in the binary", remedy).into());
    };
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{pos} of {len} points {wide_bar} {eta} left")
            .context("progress bar")?,
    );
    let report = tf_ps::run(folder, tf_ps::Options { held_out }, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let report = report.map_err(|error| Complaint::new(error.reason, error.remedy).at(error.place))?;
    let text = tf_ps_text::render(&report, screen);
    Ok(Outcome { text, value: serde_json::to_value(&report)?, holds: report.holds() })
}
