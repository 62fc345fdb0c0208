#![no_main]
#![allow(missing_docs)]

// The program is no library, so its room for the configuration is taken in by path.
#[path = "../src/program.rs"]
mod program;
use program::{config, failure, modes};

libfuzzer_sys::fuzz_target!(|data: &[u8]| program::config_file(data));
