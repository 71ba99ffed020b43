//! Every fuzz target runs with its seeds and with all that once broke it.

#[allow(clippy::expect_used, dead_code, unreachable_pub, reason = "a library of its own")]
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

#[test]
fn targets_hold_for_their_seeds_and_regressions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    for target in targets::TARGETS {
        let mut inputs = 0;
        for kind in ["seeds", "regressions"] {
            for file in folder.join(kind).join(target.name).read_dir().into_iter().flatten() {
                target.run(&std::fs::read(file.unwrap().path()).unwrap());
                inputs += 1;
            }
        }
        assert!(inputs > 0, "{} has no seeds", target.name);
    }
}
