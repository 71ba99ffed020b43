//! File uploads.

use crate::Shared;
use crate::problem::Problem;
use crate::request::Parameters;
use crate::uploads::LARGEST;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout, timeout_at};

/// Time allowed for an upload beyond its time at the lowest rate.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lowest rate of an upload, in bytes per second.
const SLOWEST: f64 = 16_384.0;

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
    Parameters(about): Parameters<UploadQuery>,
    body: Body,
) -> Result<Response, Problem> {
    let turn = shared.uploads.turn()?;
    let mut received = Received { path: shared.uploads.place()?, bytes: 0, shared: Arc::clone(&shared) };
    timeout(LONGEST, write(body, &mut received)).await.map_err(|_| too_slow())??;
    drop(turn);
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

/// The time until which the next part of an upload must arrive: it began at `since` and has `received` bytes.
fn due(since: Instant, bytes: u64) -> Instant {
    since + PATIENCE + Duration::from_secs_f64(bytes as f64 / SLOWEST)
}

/// The reason why an upload is not written.
fn not_kept(error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            let remedy = "make room on the disk of the server, or send a smaller file";
            let status = StatusCode::INSUFFICIENT_STORAGE;
            Problem::new(status, "disk-full", "the disk of the server is full", remedy)
        }
        kind => Problem::fault(format!("the upload cannot be kept: {kind}")),
    }
}

async fn write(body: Body, received: &mut Received) -> Result<(), Problem> {
    let failed = |error: io::Error| not_kept(&error);
    let mut file = File::create_new(&received.path).await.map_err(failed)?;
    let mut parts = body.into_data_stream();
    let since = Instant::now();
    while let Some(part) =
        timeout_at(due(since, received.bytes), parts.next()).await.map_err(|_| too_slow())?
    {
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
    path: Result<Path<UploadName>, PathRejection>,
) -> Result<Response, Problem> {
    let Path(UploadName { name }) =
        path.map_err(|rejection| Problem::malformed("path", rejection.body_text()))?;
    let text = shared.uploads.text(&name)?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_called_so() {
        let full = not_kept(&io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!((full.status, full.detail.as_str()), (507, "the disk of the server is full"));
        assert_eq!(not_kept(&io::Error::from(io::ErrorKind::PermissionDenied)).status, 500);
    }

    #[test]
    fn an_upload_keeps_up_a_rate() {
        let since = Instant::now();
        assert_eq!(due(since, 0), since + PATIENCE);
        assert!(due(since, 2) < since + Duration::from_secs(12), "a byte every twelve seconds is too slow");
        assert_eq!(due(since, 1 << 20), since + PATIENCE + Duration::from_secs(64));
    }
}
