#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use stepcast_fuzz::Target;

/// Which target to run: one program for all of them is linked once.
static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("STEPCAST_FUZZ").unwrap_or_default();
        Target::named(&name).expect("STEPCAST_FUZZ names a target")
    });
    target.run(data);
});
