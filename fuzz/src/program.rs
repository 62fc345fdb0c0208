//! The configuration file of the program, which is no library: its rooms are taken in by path.
//! Whoever includes this module stands at the root of a crate and has `use program::{config,
//! failure, modes};`, because those rooms say `crate::failure` and so on.

#[path = "../../crates/ringwall/src/config/mod.rs"]
#[allow(dead_code, unused_imports)]
pub(crate) mod config;
/// Of the modes, what a file says of them.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/ringwall/src/modes"]
pub(crate) mod modes {
    pub(crate) mod any_file;
    pub(crate) mod file;
    pub(crate) mod name;
    pub(crate) mod cll {
        pub(crate) mod config;
    }
    pub(crate) mod gateway {
        pub(crate) mod config;
        pub(crate) mod values;
    }
    pub(crate) mod ipsec {
        pub(crate) mod config;
    }
    pub(crate) mod null {
        pub(crate) mod config;
    }
    pub(crate) mod sarp {
        pub(crate) mod config;
    }
}
#[path = "../../crates/ringwall/src/failure.rs"]
#[allow(dead_code)]
pub(crate) mod failure;

use std::path::PathBuf;

/// A file is refused with one line that names it, or is shown and read back as the same.
pub(crate) fn config_file(data: &[u8]) {
    let file = PathBuf::from("/dev/shm").join(format!("ringwall-fuzz-{}.toml", std::process::id()));
    let load = |text: &[u8]| {
        std::fs::write(&file, text).expect("written");
        let loaded = modes::any_file::ConfigFile::load(&file).and_then(|config| config.shown());
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
