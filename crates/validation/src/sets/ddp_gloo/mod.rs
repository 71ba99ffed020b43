//! Real PyTorch DDP jobs over gloo on CPUs: from the profile of one worker and a micro-benchmark of all-reduces to the
//! time of a step.
//!
//! Two parameters are fitted to jobs, once for the testbed: the time that a byte takes of a rank's only core, and how much
//! slower a loaded host computes. Every job is judged with parameters fitted on jobs of other models.

mod data;
mod model;

use crate::records::Fields;
use crate::report::Findings;
use crate::set::Run;
use crate::{ErrorBounds, Errors, Evidence, ValidationError};
use data::Data;
use model::{Parameters, PreparedJob, Testbed};
use rayon::prelude::*;
use serde_json::{Value, json};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::strategy::Architecture;
use stepcast_report::format::name;
use stepcast_study::predict::interval::{Case, Limit, Machines, Pace, Regime};

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let bounds: ErrorBounds = run.bounds()?;
    let data = Data::read(run.data()?)?;
    let testbed = Testbed::measure(&data);
    let jobs: Vec<PreparedJob> =
        data.jobs.iter().filter_map(|job| PreparedJob::new(&data, &testbed, job)).collect();
    let mut models: Vec<&str> = jobs.iter().map(|job| job.job.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    // Parameters fitted without the jobs of each model, then on all jobs; with a single model there is nothing else to fit on.
    let left_out: Vec<Option<&str>> = models.iter().copied().map(Some).chain([None]).collect();
    let fits: Vec<Parameters> = left_out
        .par_iter()
        .map(|left_out| {
            let is_kept = |job: &&PreparedJob| models.len() == 1 || Some(job.job.model.as_str()) != *left_out;
            Parameters::fit(&jobs.iter().filter(is_kept).collect::<Vec<_>>(), run.observer)
        })
        .collect::<Result<_, ValidationError>>()?;
    let all = fits[models.len()];
    let without =
        |model: &str| models.iter().position(|other| *other == model).map_or(all, |index| fits[index]);
    let rows: Vec<Value> = jobs.iter().map(|job| row(job, &without(&job.job.model), &all)).collect();
    let errors = |method, key: &str| {
        Errors::from_ratios(method, rows.iter().map(|row| row.number(key) / row.number("measured_s")))
    };
    let errors = [
        errors("other models' fit", "predicted_s"),
        errors("own fit", "fitted_s"),
        errors("plain overlap", "plain_s"),
    ];
    let missing = data.jobs.len() - rows.len();
    let fitted = |what: String, fit: &Parameters| json!({ "what": what, "core": fit.core_per_byte.get(), "slower": fit.slowness - 1.0 });
    let each = models.iter().zip(&fits).map(|(model, fit)| fitted(format!("without {}", name(model)), fit));
    let figures = json!({
        "testbed": testbed,
        "parameters": all,
        "without": models.iter().zip(&fits).collect::<Vec<_>>(),
        "rows": rows,
        "errors": errors,
        "bounds": bounds,
        "left_out": missing,
        "_errors": errors,
        "_bounded": bounds.to_string(),
        "_missing": match missing {
            0 => String::new(),
            missing => format!(" {missing} jobs have no profile and were left out."),
        },
        "_fits": each.chain([fitted("on all jobs".to_owned(), &all)]).collect::<Vec<_>>(),
    });
    let cases = rows.iter().map(|row| case(run.set, row)).collect();
    let holds = missing == 0 && bounds.keeps(&errors[0]);
    Ok(Findings { holds, ..Findings::new(figures, Evidence::measured(cases, bounds)) })
}

/// One job: predicted with parameters fitted on other models and on all jobs, and by plain overlap without any.
fn row(job: &PreparedJob, others: &Parameters, all: &Parameters) -> Value {
    let predicted = job.predict(others);
    json!({
        "model": job.job.model,
        "batch": job.job.batch,
        "ranks": job.job.place.ranks,
        "rate": job.job.place.rate,
        "cores": job.job.place.cores,
        "bucket_mb": job.job.bucket,
        "computing_share": job.computing() / predicted,
        "parameters": job.parameters(),
        "measured_s": job.measured().get(),
        "predicted_s": predicted.get(),
        "fitted_s": job.predict(all).get(),
        "plain_s": job.plain().get(),
    })
}

fn case(set: &'static str, row: &Value) -> Case {
    let samples = row.number("batch") * row.number("ranks");
    let rate = |key: &str| SamplesPerSec::from_time(samples, Seconds::new(row.number(key)));
    Case {
        set,
        group: row.text("model").to_owned(),
        method: "simulate".to_owned(),
        regime: Regime {
            architecture: Architecture::AllReduce,
            pace: Pace::Synchronous,
            limit: Limit::of(row.number("computing_share")),
            machines: Machines::Several,
        },
        workers: row.small("ranks"),
        bandwidth: data::rate(row.text("rate")),
        parameters: Some(row.count("parameters")),
        predicted: rate("predicted_s"),
        measured: rate("measured_s"),
        run_spread: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::data::Data;

    #[test]
    fn broken_files_are_refused_with_their_line() {
        const PLACE: &str = r#""N": 2, "rate": "1gbit", "cores_per_rank": 1"#;
        let folder = std::env::temp_dir().join(format!("stepcast-ddp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let refused = |text: &str| {
            let path = folder.join("jobs.jsonl");
            std::fs::write(&path, text).unwrap();
            let fault = Data::read(&path).unwrap_err();
            format!("{}: {}", fault.origin(), fault.reason)
        };
        let profile = |gradients: &str| {
            format!(
                r#"{{"kind": "profile", {PLACE}, "model": "m", "fwd": [1], "bwd": [1], "opt": [1], "grads": {gradients}}}"#
            )
        };
        let job =
            |place: &str| format!(r#"{{"kind": "ddp", {place}, "model": "m", "bucket_mb": 1, "iter": [1]}}"#);
        for (text, reason) in [
            (String::new(), "no measured job"),
            ("{".to_owned(), ":1"),
            (format!(r#"{{"kind": "x", {PLACE}}}"#), "unknown variant"),
            (job(r#""N": 0, "rate": "1gbit", "cores_per_rank": 1"#), "ranks"),
            (job(r#""N": 2, "rate": "fast", "cores_per_rank": 1"#), "rate"),
            (
                profile(r#"[{"bytes": 4, "ready": 2}, {"bytes": 4, "ready": 1}]"#),
                "before the one that precedes it",
            ),
            (profile("[]"), "no gradient has a time"),
            (format!(r#"{{"kind": "allreduce", {PLACE}, "bytes": 4, "times": [-1]}}"#), "positive"),
        ] {
            assert!(refused(&text).contains(reason), "{text}: {}", refused(&text));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
