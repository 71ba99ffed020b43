//! Reports of sets on the committed data, for tests: each set runs once, however many tests look at its report.

use crate::set::unwatched;
use crate::{Options, Report, Source, sets};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

/// The folder of committed data.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation")
}

/// The report of the set called `name`.
pub(crate) fn report(name: &str) -> &'static Report {
    static REPORTS: LazyLock<Vec<OnceLock<Report>>> =
        LazyLock::new(|| sets::all().iter().map(|_| OnceLock::new()).collect());
    let index = sets::all().iter().position(|set| set.name() == name).unwrap();
    REPORTS[index].get_or_init(|| {
        let set = sets::all()[index];
        let data = match set.source() {
            Source::Embedded => None,
            Source::Folder(path) | Source::File(path) => Some(folder().join(path)),
        };
        set.run(&Options { data: data.as_deref(), ..Options::default() }, &unwatched).unwrap()
    })
}

/// What programs get of the set called `name`.
pub(crate) fn figures(name: &str) -> Value {
    serde_json::to_value(report(name)).unwrap()[name].take()
}
