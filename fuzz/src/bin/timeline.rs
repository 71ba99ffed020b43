#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stepcast_fuzz::import(stepcast_trace::Format::Timeline, data));
