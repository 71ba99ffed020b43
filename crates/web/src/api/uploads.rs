//! File uploads.

use crate::Shared;
use crate::problem::Problem;
use crate::uploads::LARGEST;
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// Longest time to wait for data from a client.
const PATIENCE: Duration = Duration::from_secs(20);

/// Longest time to receive an upload.
const LONGEST: Duration = Duration::from_secs(600);

/// The query parameters of an upload.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct UploadQuery {
    /// The client's name for the file: displayed, never used as a path.
    #[serde(default)]
    name: String,
    /// Samples per step, if the recording does not contain it.
    batch: Option<u32>,
}

/// The path parameter that identifies an upload.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct UploadName {
    /// Its name in scenarios.
    name: String,
}

/// A temporary file that is always removed, and counted as long as it is there.
struct Received {
    path: PathBuf,
    bytes: u64,
    shared: Arc<Shared>,
}

impl Drop for Received {
    fn drop(&mut self) {
        // The file may not exist.
        let _ = std::fs::remove_file(&self.path);
        self.shared.uploads.release(self.bytes);
    }
}

pub(super) async fn receive(
    State(shared): State<Arc<Shared>>,
    Query(about): Query<UploadQuery>,
    body: Body,
) -> Result<Response, Problem> {
    let mut received = Received { path: shared.uploads.place()?, bytes: 0, shared: Arc::clone(&shared) };
    timeout(LONGEST, write(body, &mut received)).await.map_err(|_| too_slow())??;
    let kept = Arc::clone(&shared);
    let taken = shared
        .work
        .heavy()
        .run(move |token| kept.uploads.take(received.path.clone(), &about.name, about.batch, token));
    Ok(Json(taken.await?).into_response())
}

fn too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the upload came too slowly", "try again")
}

async fn write(body: Body, received: &mut Received) -> Result<(), Problem> {
    let failed =
        |error: std::io::Error| Problem::fault(format!("the upload cannot be kept: {}", error.kind()));
    let mut file = File::create_new(&received.path).await.map_err(failed)?;
    let mut parts = body.into_data_stream();
    while let Some(part) = timeout(PATIENCE, parts.next()).await.map_err(|_| too_slow())? {
        let part = part.map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "malformed-body", error.to_string(), "send it again")
        })?;
        let size = part.len() as u64;
        if received.bytes + size > LARGEST {
            let reason = format!("an upload may have {} MiB", LARGEST >> 20);
            let remedy = "compress it (.json.gz), or use `stepcast import`, which has no limit";
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", reason, remedy));
        }
        received.shared.uploads.reserve(size)?;
        received.bytes += size;
        file.write_all(&part).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    if received.bytes == 0 {
        return Err(Problem::invalid("upload", "the upload is empty", "choose a file with something in it"));
    }
    Ok(())
}

pub(super) async fn download(
    State(shared): State<Arc<Shared>>,
    Path(UploadName { name }): Path<UploadName>,
) -> Result<Response, Problem> {
    let text = shared.uploads.text(&name)?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], text).into_response())
}
