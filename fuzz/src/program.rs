//! The configuration file of the program, which is no library: its room is taken in by path. Whoever includes this module
//! stands at the root of a crate and has `use program::failure;`, because that room says `crate::failure`.

#[path = "../../crates/ringwall/src/config/mod.rs"]
#[allow(dead_code, unused_imports)]
pub(crate) mod config;
#[path = "../../crates/ringwall/src/failure.rs"]
#[allow(dead_code)]
pub(crate) mod failure;

use std::path::PathBuf;

/// A file is refused with one line that names it, or is shown and read back as the same.
pub(crate) fn config_file(data: &[u8]) {
    let file = PathBuf::from("/dev/shm").join(format!("ringwall-fuzz-{}.toml", std::process::id()));
    let load = |text: &[u8]| {
        std::fs::write(&file, text).expect("written");
        let loaded = config::ConfigFile::load(&file).and_then(|config| config.shown(&file));
        std::fs::remove_file(&file).expect("removed");
        loaded
    };
    match load(data) {
        Ok(shown) => assert_eq!(load(shown.as_bytes()).expect("what is shown is valid"), shown),
        Err(failure) => {
            let line = failure.to_string();
            assert!(line.contains("ringwall-fuzz-"), "{line:?} names no file");
            assert!(!line.contains('\n'), "{line:?} is not one line");
        }
    }
}
