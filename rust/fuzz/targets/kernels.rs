#![no_main]

#[path = "../../core/tests/properties.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::kernels(data));
