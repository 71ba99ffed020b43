//! `docs/walkthrough.md`, command by command, in a folder with a recording in it.
//!
//! `TRYCMD=overwrite cargo test -p stepcast-cli --test walkthrough` writes its output anew.

use std::fs;
use std::path::Path;

#[test]
fn from_a_trace_to_a_decision() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    assert_cmd::Command::cargo_bin("stepcast")
        .unwrap()
        .current_dir(&root)
        .args(["predict", "examples/profile.toml", "--set", "cluster.workers=[{count=1}]"])
        .args(["--timeline-steps", "20", "--timeline"])
        .arg(folder.path().join("trace.json"))
        .assert()
        .success();
    let page = root.join("docs/walkthrough.md").canonicalize().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(page).run();
    let report = fs::read_to_string("report.html").unwrap();
    assert!(report.contains("Reproduce this report") && report.contains("<svg"));
}
