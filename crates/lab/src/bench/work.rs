//! What the daemon of a measured host does, and what the program says about the price of its cryptography.

use std::path::Path;
use std::time::Duration;

use crate::failure::Failure;
use crate::guard::Site;
use crate::net::{Host, lan, process};

/// What a daemon does to frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing: same ports, threads and segmentation.
    Null,
    /// A tag on every frame, the payload readable.
    Authenticate,
    /// The payload sealed.
    Encrypt,
}

impl Work {
    /// The configuration of a daemon that does this, with its own files below `directory`.
    pub fn configuration(self, identity: &Path, directory: &Path) -> String {
        let (mode, profile) = match self {
            Work::Null => ("null", "lab"),
            Work::Authenticate | Work::Encrypt => ("cll", "modern"),
        };
        let (interface, identity, directory) = (lan::INTERFACE, identity.display(), directory.display());
        let mut text = format!(
            "[host]\ninterface = \"{interface}\"\nmode = \"{mode}\"\nprofile = \"{profile}\"\n\
             identity = \"{identity}\"\non_exit = \"closed\"\nrun_dir = \"{directory}/run\"\n\
             state_dir = \"{directory}/state\"\n"
        );
        if self != Work::Null {
            text.push_str(&format!("\n[cll]\nconfidentiality = {}\n", self == Work::Encrypt));
        }
        text
    }
}

/// What each cryptographic operation of a handshake costs on this machine with the keys of `host`, as
/// `(operation, time)`.
///
/// # Errors
/// The program fails or its report is not what it was.
pub fn time_operations(site: &Site, host: &Host) -> Result<Vec<(String, Duration)>, Failure> {
    let mut command = site.command();
    command.args(["bench-crypto", "--json", "--runs", "50", "--rest-ms", "5", "--identity"]).arg(site.identity(host)?);
    operations(&process::must(command)?)
}

/// Reads the rows `{"operation", "median_ns"}`.
fn operations(text: &str) -> Result<Vec<(String, Duration)>, Failure> {
    let unreadable = |why: &str| Failure::Unreadable(format!("`ringwall bench-crypto --json`: {why}"));
    let rows: Vec<serde_json::Value> = serde_json::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
    let read = |row: &serde_json::Value| {
        let nanoseconds = row["median_ns"].as_f64()?;
        Some((row["operation"].as_str()?.to_owned(), Duration::from_secs_f64(nanoseconds / 1e9)))
    };
    rows.iter().map(|row| read(row).ok_or_else(|| unreadable("a row without operation or median_ns"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_in_nanoseconds() {
        let read = operations(r#"[{"operation":"sign","median_ns":21500}]"#).unwrap();
        assert_eq!(read, [("sign".to_owned(), Duration::from_nanos(21_500))]);
        assert!(operations(r#"[{"operation":"sign"}]"#).is_err());
        assert!(operations("sign 21500").is_err());
    }

    #[test]
    fn only_a_daemon_with_keys_has_a_cll_section() {
        let text = |work: Work| work.configuration(Path::new("/x/a.pem"), Path::new("/x"));
        assert!(text(Work::Encrypt).ends_with("[cll]\nconfidentiality = true\n"));
        assert!(text(Work::Authenticate).ends_with("[cll]\nconfidentiality = false\n"));
        assert!(text(Work::Null).contains("profile = \"lab\"") && !text(Work::Null).contains("[cll]"));
    }
}
