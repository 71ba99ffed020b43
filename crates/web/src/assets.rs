//! The web page and its assets, compiled into the program.

use crate::Shared;
use crate::problem::not_found;
use axum::Router;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use include_dir::{Dir, include_dir};
use std::sync::Arc;

static PAGE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets");

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/", get(|| named(Path("index.html".to_owned())))).route("/{name}", get(named))
}

async fn named(Path(name): Path<String>) -> Response {
    match file(&name) {
        Some(response) => response,
        None => not_found().await.into_response(),
    }
}

fn file(name: &str) -> Option<Response> {
    let kind = match name.rsplit('.').next()? {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    };
    // A new version of the program may have a new page.
    Some(([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], lean(name)?).into_response())
}

/// The text of an asset without indentation and lines of comments.
fn lean(name: &str) -> Option<String> {
    let text = PAGE.get_file(name)?.contents_utf8()?;
    let is_comment = |line: &&str| line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"));
    Some(
        text.lines()
            .map(str::trim_start)
            .filter(|line| !is_comment(line))
            .fold(String::new(), |all, line| all + line + "\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_keeps_its_code() {
        let names = PAGE.files().map(|file| file.path().to_str().unwrap());
        let sizes: Vec<usize> = names.map(|name| lean(name).unwrap().len()).collect();
        assert!(sizes.iter().sum::<usize>() < 160_000, "{sizes:?}");
        assert!(lean("main.js").unwrap().contains("\nimport "));
    }
}
