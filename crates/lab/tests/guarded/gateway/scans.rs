//! Scans that break the handshake learn nothing through the gateway.

use std::net::TcpListener;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;

use super::{Path, TRUSTED, perform_with};

const OPEN: u16 = 22;
const PORTS: &str = "20-27";

/// What nmap finds out about some ports of the trusted host by the scan `kind`.
fn scan(path: &Path, kind: &str) -> Result<String, Failure> {
    let mut command = path.untrusted.command("nmap");
    command.args([kind, "-n", "-Pn", "-T5", "--max-retries", "1", "-p", PORTS, "-oG", "-", &TRUSTED.to_string()]);
    process::must(command)
}

#[test]
fn null_fin_xmas_and_ack_scans_learn_nothing() {
    perform_with(&["nmap"], "", |path| {
        let listen = || TcpListener::bind((TRUSTED, OPEN)).map_err(Failure::io("listening"));
        let _open = path.trusted.enter(listen)?;
        let connecting = scan(path, "-sT")?;
        assert!(connecting.contains("22/open/tcp") && connecting.contains("closed"), "the scan works: {connecting}");
        for kind in ["-sN", "-sF", "-sX"] {
            let found = scan(path, kind)?;
            assert!(!found.contains("/closed/") && !found.contains("State: closed"), "{kind}: {found}");
        }
        let found = scan(path, "-sA")?;
        assert!(!found.contains("unfiltered"), "{found}");
        Ok(())
    });
}
