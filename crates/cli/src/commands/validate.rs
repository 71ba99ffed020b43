//! `stepcast validate`: published figures recomputed, measured ones predicted, bounds kept.
//!
//! One list of sets; to add one, add a line to [`SETS`], an arm to [`run_set`] and a rendering.

use super::json;
use crate::args::Validate;
use crate::render::error::Complaint;
use crate::render::{
    Screen, ddp_gloo as ddp_gloo_text, hkbu as hkbu_text, liu2022 as liu2022_text, steps as steps_text,
    tf_ps as tf_ps_text, validation,
};
use crate::{Answer, End};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use stepcast_core::suggest;
use stepcast_study::fit::DataError;
use stepcast_study::validate::{ddp_gloo, hkbu, liu2022, steps, tf_ps, zeng2023};
use stepcast_trace::TraceError;

/// Figures in the binary.
const ZENG2023: &str = "zeng2023";
const LIU2022: &str = "liu2022";
const HKBU: &str = "hkbu";
/// Measured runs in a folder.
const TF_PS: &str = "tf-ps";
/// Measured jobs in a file.
const DDP_GLOO: &str = "ddp-gloo";
/// Measured steps in a file.
const STEPS: &str = "steps";
const SETS: [&str; 6] = [ZENG2023, LIU2022, HKBU, TF_PS, DDP_GLOO, STEPS];
/// Sets whose data are not in the binary.
const WITH_DATA: [&str; 3] = [TF_PS, DDP_GLOO, STEPS];

pub(super) fn run(flags: &Validate, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    let sets: Vec<&str> = match flags.set.as_deref() {
        Some(name) if SETS.contains(&name) => vec![name],
        Some(name) => {
            let list = format!("the sets are {}", SETS.join(", "));
            let remedy = suggest::remedy(name, SETS, &list);
            return Err(Complaint::new(format!("there is no validation set \"{name}\""), remedy).into());
        }
        None => SETS.into_iter().filter(|set| !WITH_DATA.contains(set)).collect(),
    };
    let mut holds = true;
    let mut texts = Vec::new();
    let mut values = serde_json::Map::new();
    for set in sets {
        let outcome = run_set(set, flags, screen)?;
        holds &= outcome.holds;
        texts.push(outcome.text);
        values.insert(set.to_owned(), outcome.value);
    }
    let text = if as_json { json(&values)?.text } else { texts.join("\n") };
    Ok(Answer { text, end: if holds { End::Done } else { End::BoundMissed } })
}

struct Outcome {
    text: String,
    value: Value,
    holds: bool,
}

fn run_set(set: &str, flags: &Validate, screen: &Screen) -> anyhow::Result<Outcome> {
    let failed = "the validation could not run";
    match set {
        ZENG2023 => {
            let report = zeng2023::run().context(failed)?;
            outcome(validation::render(&report, screen), &report, report.holds())
        }
        LIU2022 => {
            let report = liu2022::run().context(failed)?;
            outcome(liu2022_text::render(&report, screen), &report, report.holds())
        }
        HKBU => {
            let report = hkbu::run().context(failed)?;
            outcome(hkbu_text::render(&report, screen), &report, report.holds())
        }
        _ => run_measured(set, flags, screen),
    }
}

fn outcome(text: String, report: &impl Serialize, holds: bool) -> anyhow::Result<Outcome> {
    Ok(Outcome { text, value: serde_json::to_value(report)?, holds })
}

/// A set whose data are not in the binary.
fn run_measured(set: &str, flags: &Validate, screen: &Screen) -> anyhow::Result<Outcome> {
    let Some(data) = flags.data.as_deref() else {
        let what = if set == TF_PS { "FOLDER" } else { "FILE" };
        let remedy = format!("add --data {what}; docs/validation.md says what is in it");
        return Err(Complaint::new(format!("the measurements of {set} are not in the binary"), remedy).into());
    };
    let complain = |error: TraceError| Complaint::new(error.reason, error.remedy).at(error.place);
    if set == DDP_GLOO {
        let report = ddp_gloo::run(data).map_err(complain)?;
        return outcome(ddp_gloo_text::render(&report, screen), &report, report.holds());
    }
    if set == STEPS {
        let complain = |error: DataError| Complaint::new(error.reason, error.remedy).at(error.place);
        let report = steps::run(data, flags.gemm.as_deref()).map_err(complain)?;
        return outcome(steps_text::render(&report, screen), &report, report.holds());
    }
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{pos} of {len} points {wide_bar} {eta} left")
            .context("progress bar")?,
    );
    let report = tf_ps::run(data, tf_ps::Options { held_out: flags.held_out }, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let report = report.map_err(complain)?;
    outcome(tf_ps_text::render(&report, screen), &report, report.holds())
}
