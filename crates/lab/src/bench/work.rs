//! What the daemon of a measured host does, and what the program says about the price of its cryptography.

use std::path::Path;
use std::time::Duration;

use identity::Profile;

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
    /// The same, with tickets on disk.
    EncryptAndResume,
    /// The same as [`Work::Encrypt`], under keys that also come from ML-KEM.
    EncryptWithKem,
    /// Nonces alone, in a site of the paper profile: no tag, the payload readable.
    NonceOnly,
    /// The payload compressed and sealed.
    EncryptAndCompress,
    /// The payload sealed, and the keys replaced after so many seconds.
    EncryptAndRekey(u32),
    /// ARP signed.
    SignArp,
}

impl Work {
    /// The configuration of a daemon that does this, with its own files below `directory`.
    /// `of_site` is the profile of the identity's site.
    pub fn configuration(self, of_site: Profile, identity: &Path, directory: &Path) -> String {
        let (mode, profile) = match self {
            Work::Null => ("null", "lab"),
            Work::Authenticate
            | Work::Encrypt
            | Work::EncryptAndResume
            | Work::EncryptAndCompress
            | Work::EncryptWithKem
            | Work::NonceOnly => ("cll", of_site.name()),
            Work::EncryptAndRekey(_) => ("cll", "lab"),
            Work::SignArp => ("sarp", of_site.name()),
        };
        let (interface, identity, directory) = (lan::INTERFACE, identity.display(), directory.display());
        let mut text = format!(
            "[host]\ninterface = \"{interface}\"\nmode = \"{mode}\"\nprofile = \"{profile}\"\n\
             identity = \"{identity}\"\non_exit = \"closed\"\nrun_dir = \"{directory}/run\"\n\
             state_dir = \"{directory}/state\"\n"
        );
        if mode == "cll" {
            let encrypts = !matches!(self, Work::Authenticate | Work::NonceOnly);
            text.push_str(&format!("\n[cll]\nconfidentiality = {encrypts}\n"));
            text.push_str(match self {
                Work::EncryptAndResume => "resumption = true\n",
                Work::EncryptAndCompress => "compress = \"lz4\"\n",
                Work::EncryptWithKem => "post_quantum = \"require\"\n",
                Work::NonceOnly => "send_suite = \"nonce-only\"\nrequire_suites = [\"nonce-only\"]\n",
                _ => "",
            });
        }
        if let Work::EncryptAndRekey(every_s) = self {
            text.push_str(&format!("\n[lab]\nrekey_every_s = {every_s}\n"));
        }
        text
    }
}

/// One line of the report of `ringwall bench-crypto`.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// The median time.
    pub median: Duration,
    /// Minimum, mean, maximum and deviation in microseconds, in this order, as the papers print them.
    pub spread_us: [f64; 4],
}

/// What each cryptographic operation of a handshake costs on this machine with the keys of `host`, as
/// `(operation, time)`.
///
/// # Errors
/// The program fails or its report is not what it was.
pub fn time_operations(site: &Site, host: &Host) -> Result<Vec<(String, Duration)>, Failure> {
    let found = time_with(site, host, &["--runs", "50", "--rest-ms", "5"])?;
    Ok(found.into_iter().map(|operation| (operation.name, operation.median)).collect())
}

/// As [`time_operations`], with these options and all that was found.
///
/// # Errors
/// As there.
pub fn time_with(site: &Site, host: &Host, options: &[&str]) -> Result<Vec<Operation>, Failure> {
    let mut command = site.command();
    command.args(["bench-crypto", "--json"]).args(options).arg("--identity").arg(site.identity(host)?);
    operations(&process::must(command)?)
}

/// Reads the rows `{"operation", "median_ns", "min_ns", "mean_ns", "max_ns", "deviation_ns"}`.
fn operations(text: &str) -> Result<Vec<Operation>, Failure> {
    let unreadable = |why: &str| Failure::Unreadable(format!("`ringwall bench-crypto --json`: {why}"));
    let rows: Vec<serde_json::Value> = serde_json::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
    let read = |row: &serde_json::Value| {
        let mut spread_us = [0.0; 4];
        for (slot, name) in spread_us.iter_mut().zip(["min_ns", "mean_ns", "max_ns", "deviation_ns"]) {
            *slot = row[name].as_f64()? / 1e3;
        }
        let median = Duration::from_secs_f64(row["median_ns"].as_f64()? / 1e9);
        Some(Operation { name: row["operation"].as_str()?.to_owned(), median, spread_us })
    };
    rows.iter().map(|row| read(row).ok_or_else(|| unreadable("a row without one of its values"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_in_nanoseconds() {
        let row = r#"[{"operation":"sign","median_ns":21500,"min_ns":21000,"mean_ns":22000.0,"max_ns":30000,"deviation_ns":5}]"#;
        let read = operations(row).unwrap();
        let spread_us = [21.0, 22.0, 30.0, 0.005];
        assert_eq!(read, [Operation { name: "sign".to_owned(), median: Duration::from_nanos(21_500), spread_us }]);
        assert!(operations(r#"[{"operation":"sign"}]"#).is_err());
        assert!(operations("sign 21500").is_err());
    }

    #[test]
    fn only_a_daemon_with_keys_has_a_cll_section() {
        let text = |work: Work| work.configuration(Profile::Modern, Path::new("/x/a.pem"), Path::new("/x"));
        assert!(text(Work::Encrypt).ends_with("[cll]\nconfidentiality = true\n"));
        assert!(text(Work::EncryptWithKem).ends_with("post_quantum = \"require\"\n"));
        assert!(text(Work::Authenticate).ends_with("[cll]\nconfidentiality = false\n"));
        let paper = Work::Encrypt.configuration(Profile::Paper, Path::new("/x/a.pem"), Path::new("/x"));
        assert!(paper.contains("mode = \"cll\"\nprofile = \"paper\""));
        let bare = Work::NonceOnly.configuration(Profile::Paper, Path::new("/x/a.pem"), Path::new("/x"));
        assert!(bare.contains("confidentiality = false\nsend_suite = \"nonce-only\"\n"));
        let rekeying = text(Work::EncryptAndRekey(7));
        assert!(rekeying.contains("profile = \"lab\"") && rekeying.ends_with("[lab]\nrekey_every_s = 7\n"));
        assert!(text(Work::Null).contains("profile = \"lab\"") && !text(Work::Null).contains("[cll]"));
    }
}
