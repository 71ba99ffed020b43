//! All methods on one scenario.

use crate::Shared;
use crate::input::Input;
use crate::problem::Problem;
use crate::request::ScenarioBody;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use stepcast_study::predict::compare::Comparison;

pub(super) async fn compare(
    State(shared): State<Arc<Shared>>,
    Input(body): Input<ScenarioBody>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    let comparison = shared.work.heavy().run(move |_| {
        let scenario = body.request(&kept)?.scenario()?;
        Ok(Comparison::new(&scenario))
    });
    Ok(Json(comparison.await?).into_response())
}
