//! Drawings: written whole, where they were asked for, and the same bytes every time.

use crate::program::process;
use std::fs;
use std::path::Path;

fn stepcast(folder: &Path, args: &str) -> std::process::Output {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");
    let args = args.split(' ').map(|arg| arg.replace("EXAMPLES/", examples));
    process(&[]).current_dir(folder).args(args).output().unwrap()
}

/// What is drawn by `args`, twice.
fn drawn(args: &str) -> String {
    let once = || {
        let folder = tempfile::tempdir().unwrap();
        let output = stepcast(folder.path(), args);
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8(output.stdout).unwrap().contains("x.svg"), "{args}");
        let files: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files, ["x.svg"], "nothing is left beside it");
        fs::read_to_string(folder.path().join("x.svg")).unwrap()
    };
    let svg = once();
    assert_eq!(svg, once());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    svg
}

#[test]
fn every_command_draws_what_it_answers() {
    let bars = |svg: &str| svg.matches("<g><title>").count();
    let scaling = drawn("predict --workers 1,2,4,8 --plot x.svg");
    assert_eq!(bars(&scaling), 4);
    assert!(scaling.contains("this cluster: 3"));
    let line = drawn("sweep --vary batch=8,16,32 --plot x.svg");
    assert_eq!(bars(&line), 3);
    let names = drawn("sweep --vary network=1gbe,10gbe --plot x.svg");
    assert!(names.contains(">10gbe</text>"));
    let map = drawn("sweep --vary batch=8,16,32 --vary workers.count=1..4 --plot x.svg");
    assert_eq!(map.matches("class=\"cell").count(), 12);
    let fusion = drawn("fuse EXAMPLES/all-reduce.toml --plot x.svg");
    assert!(fusion.contains(">▸ best plan</text>"));
    let front = drawn("search EXAMPLES/search.toml --minimize cost --vary workers.count=1..8 --plot x.svg");
    assert!(front.contains(">chosen</text>"));
    let steps = drawn(
        "predict EXAMPLES/async.toml --workers 4 --set methods.simulate.steps=20 --set methods.simulate.warm-up=5 \
         --timeline x.svg --timeline-steps 1",
    );
    assert!(steps.contains(">step 0</text>") && steps.contains(">worker 0</text>"));
}
