//! All methods on one scenario: as one response, or as a stream of growing tables.

use super::accepts;
use crate::Shared;
use crate::problem::Problem;
use crate::request::{Input, ScenarioBody};
use crate::study::as_written;
use crate::work::{self, EVENTS, Events, Work};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use stepcast_core::scenario::Scenario;
use stepcast_report::table;
use stepcast_report::table::NEUTRAL;
use stepcast_report::tables::comparison::{effects, predictions, refusals};
use stepcast_study::predict::compare::{Answer, Comparison};
use stepcast_study::predict::methods;
use tokio_util::sync::CancellationToken;

/// The events of a comparison, one per line.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[schemars(rename = "Event")]
pub(crate) enum ComparisonEvent {
    /// Another method has answered.
    Progress {
        /// Methods that have answered.
        done: usize,
        /// All methods.
        of: usize,
        /// The tables so far.
        #[serde(flatten)]
        tables: Tables,
    },
    /// All methods have answered.
    Compared {
        /// The comparison, as from `stepcast compare --json`.
        comparison: Box<Comparison>,
        /// The tables.
        #[serde(flatten)]
        tables: Tables,
    },
}

/// A comparison as tables.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tables {
    /// The methods in the rows of the first table.
    methods: Vec<&'static str>,
    /// The tables as HTML fragments.
    html: Vec<String>,
}

impl Tables {
    fn from_comparison(comparison: &Comparison) -> Self {
        let tables = [predictions(comparison), effects(comparison), refusals(comparison, NEUTRAL)];
        let html = tables.iter().filter(|table| !table.rows.is_empty()).map(table::section).collect();
        let predicted = comparison.rows.iter().filter(|row| matches!(row.answer, Answer::Predicted(_)));
        let methods = predicted.map(|row| row.method).collect();
        Self { methods, html }
    }
}

fn compared(
    scenario: &Scenario,
    token: &CancellationToken,
    part: &mut dyn FnMut(&Comparison),
) -> Result<Comparison, Problem> {
    let watch = |_: stepcast_study::Progress<'_>| work::check(token);
    Ok(Comparison::watched(scenario, &watch, part)?)
}

fn aloud(scenario: &Scenario, events: &Events) -> Result<(), Problem> {
    let comparison = compared(scenario, events.token(), &mut |so_far| {
        events.send(&ComparisonEvent::Progress {
            done: so_far.rows.len(),
            of: methods::all().len(),
            tables: Tables::from_comparison(so_far),
        });
    })?;
    let tables = Tables::from_comparison(&comparison);
    events.send(&ComparisonEvent::Compared { comparison: Box::new(comparison), tables });
    Ok(())
}

pub(super) async fn compare(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Input(body): Input<ScenarioBody>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    let scenario = shared.work.quick().run(move |_| Ok(body.request(&kept)?.scenario()?)).await?;
    if accepts(&headers, EVENTS) {
        return Ok(work::respond(shared, Work::heavy, move |events| aloud(&scenario, events)));
    }
    let comparison = shared.work.heavy().run(move |token| compared(&scenario, token, &mut |_| ()));
    as_written(&comparison.await?)
}
