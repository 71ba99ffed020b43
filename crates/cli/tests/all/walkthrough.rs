//! `docs/walkthrough.md`, command by command, in a folder with a recording in it.
//!
//! `TRYCMD=overwrite cargo test -p stepcast-cli --test walkthrough` writes its output anew.

use crate::program::{answer, example, root};
use std::fs;

#[test]
fn from_a_trace_to_a_decision() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let predict = ["predict", &example("profile.toml"), "--set", "cluster.workers=[{count=1}]"];
    answer(&[&predict[..], &["--timeline-steps", "20", "--timeline", trace.to_str().unwrap()]].concat());
    let page = root().join("docs/walkthrough.md").canonicalize().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(page).run();
    let report = fs::read_to_string("report.html").unwrap();
    assert!(report.contains("Reproduce this report") && report.contains("<svg"));
}
