//! OpenVPN: layer 2 over UDP, TLS between two peers, AES-256-GCM in user space.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::tools::{Tools, version_line};
use super::{End, Peer};
use crate::failure::Failure;
use crate::net::{Running, process};

/// The program.
const PROGRAM: &str = "/usr/sbin/openvpn";
/// UDP port of both ends.
const PORT: u16 = 11940;
/// The interface it makes.
const INTERFACE: &str = "tap-openvpn";

/// OpenVPN between two peers that know each other's certificate.
pub struct OpenVpn;

impl Peer for OpenVpn {
    fn name(&self) -> &'static str {
        "openvpn"
    }

    fn version(&self, _tools: &Tools<'_>) -> Result<String, Failure> {
        let line = version_line(Path::new(PROGRAM))?;
        Ok(line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
    }

    fn mtu(&self) -> u16 {
        1400
    }

    fn interface(&self, _end: &End) -> String {
        INTERFACE.to_owned()
    }

    fn start(&self, _tools: &Tools<'_>, ends: &[End; 2]) -> Result<[Running; 2], Failure> {
        let certificates = [Certificate::make(&ends[0])?, Certificate::make(&ends[1])?];
        let start = |own: usize, other: usize, role: &str| {
            let text =
                configuration(role, &certificates[own], &certificates[other].fingerprint, &ends[own], &ends[other]);
            let config = ends[own].write("openvpn.conf", &text)?;
            ends[own].start(Path::new(PROGRAM), &["--config", &config.to_string_lossy()])
        };
        Ok([start(0, 1, "tls-server\ndh none")?, start(1, 0, "tls-client")?])
    }
}

/// A self-signed certificate with its key.
struct Certificate {
    key: PathBuf,
    certificate: PathBuf,
    fingerprint: String,
}

impl Certificate {
    fn make(end: &End) -> Result<Certificate, Failure> {
        let (key, certificate) = (end.directory.join("key.pem"), end.directory.join("certificate.pem"));
        let mut request = Command::new("openssl");
        request.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        request.args(["-days", "2", "-subj", &format!("/CN={}", end.host.name)]);
        request.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
        process::must(request)?;
        let mut show = Command::new("openssl");
        show.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(&certificate);
        let shown = process::must(show)?;
        let fingerprint = shown.trim().split('=').nth(1).map(str::to_owned);
        let fingerprint = fingerprint.ok_or_else(|| Failure::Unreadable("openssl x509 -fingerprint".to_owned()))?;
        Ok(Certificate { key, certificate, fingerprint })
    }
}

fn configuration(role: &str, own: &Certificate, fingerprint_of_other: &str, end: &End, other: &End) -> String {
    let (key, certificate) = (own.key.display(), own.certificate.display());
    let (local, remote, mtu) = (end.host.ip, other.host.ip, OpenVpn.mtu());
    format!(
        "dev {INTERFACE}\ndev-type tap\nproto udp\nlocal {local}\nlport {PORT}\nremote {remote} {PORT}\n{role}\n\
         key {key}\ncert {certificate}\npeer-fingerprint {fingerprint_of_other}\ndata-ciphers AES-256-GCM\n\
         cipher AES-256-GCM\ndisable-dco\ntun-mtu {mtu}\nverb 1\n"
    )
}
