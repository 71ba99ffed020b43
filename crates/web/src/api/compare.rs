//! All methods on one scenario.

use crate::Shared;
use crate::input::Input;
use crate::problem::Problem;
use crate::question::{Asked, Question};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use stepcast_study::predict::compare::Comparison;

pub(super) async fn compare(
    State(shared): State<Arc<Shared>>,
    Input(asked): Input<Asked>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    let comparison = shared.work.heavy().run(move |_| {
        let scenario = Question::new(&asked)?.scenario(&kept.uploads)?;
        Ok(Comparison::new(&scenario))
    });
    Ok(Json(comparison.await?).into_response())
}
