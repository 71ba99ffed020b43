#![no_main]

use libfuzzer_sys::fuzz_target;
use stepcast_trace::Format;

fuzz_target!(|data: &[u8]| stepcast_fuzz::import(Format::Chakra, data));
