//! File uploads.

use crate::Shared;
use crate::problem::Problem;
use crate::uploads::{LARGEST, Taken};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stepcast_trace::Overview;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// Longest time to wait for data from a client.
const PATIENCE: Duration = Duration::from_secs(20);

/// The query parameters of an upload.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct About {
    /// The client's name for the file: displayed, never used as a path.
    #[serde(default)]
    name: String,
    /// Samples per step, if the recording does not contain it.
    batch: Option<u32>,
}

/// The path parameter that identifies an upload.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Name {
    /// Its name in scenarios.
    name: String,
}

/// The result of an upload.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Its name in scenarios; none if the scenario contains everything.
    file: Option<String>,
    /// A scenario to start from.
    scenario: String,
    /// The contents of the file, as in `stepcast import --json`.
    overview: Option<Overview>,
}

/// A temporary file that is always removed.
struct Received(PathBuf);

impl Drop for Received {
    fn drop(&mut self) {
        // The file may not exist.
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(super) async fn receive(
    State(shared): State<Arc<Shared>>,
    Query(about): Query<About>,
    body: Body,
) -> Result<Response, Problem> {
    let received = Received(shared.uploads.place()?);
    write(body, &received.0).await?;
    let kept = Arc::clone(&shared);
    let taken =
        shared.work.heavy().run(move |_| kept.uploads.take(received.0.clone(), &about.name, about.batch));
    let Taken { file, scenario, overview } = taken.await?;
    Ok(Json(Answer { file, scenario, overview }).into_response())
}

async fn write(body: Body, path: &std::path::Path) -> Result<(), Problem> {
    let failed =
        |error: std::io::Error| Problem::fault(format!("the upload cannot be kept: {}", error.kind()));
    let slow =
        |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the upload came too slowly", "try again");
    let mut file = File::create_new(path).await.map_err(failed)?;
    let mut parts = body.into_data_stream();
    let mut size = 0_u64;
    while let Some(part) = timeout(PATIENCE, parts.next()).await.map_err(slow)? {
        let part = part.map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "malformed-body", error.to_string(), "send it again")
        })?;
        size += part.len() as u64;
        if size > LARGEST {
            let reason = format!("an upload may have {} MiB", LARGEST >> 20);
            let remedy = "compress it (.json.gz), or use `stepcast import`, which has no limit";
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", reason, remedy));
        }
        file.write_all(&part).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    if size == 0 {
        return Err(Problem::invalid("upload", "the upload is empty", "choose a file with something in it"));
    }
    Ok(())
}

pub(super) async fn download(
    State(shared): State<Arc<Shared>>,
    Path(Name { name }): Path<Name>,
) -> Result<Response, Problem> {
    let text = shared.uploads.text(&name)?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], text).into_response())
}
