//! fastd: layer 2 over UDP, in its fastest cipher and without any.

use std::path::Path;
use std::process::Command;

use super::tools::{Tools, version_line};
use super::{End, Peer};
use crate::failure::Failure;
use crate::net::{Running, process};

/// The program.
const PROGRAM: &str = "/usr/bin/fastd";

/// fastd with one method.
pub struct Fastd {
    name: &'static str,
    method: &'static str,
    interface: &'static str,
    port: u16,
}

impl Fastd {
    /// Its fastest authenticated cipher. About every third session of fastd 22 with UMAC carries no frame on a machine
    /// that this was tried on, whatever the cipher and whoever begins; the next attempt does.
    pub const AES128_CTR_UMAC: Fastd =
        Fastd { name: "fastd-aes128-ctr+umac", method: "aes128-ctr+umac", interface: "fastd-aes", port: 10001 };
    /// Only the handshake is authenticated.
    pub const NULL: Fastd = Fastd { name: "fastd-null", method: "null", interface: "fastd-null", port: 10002 };

    fn configuration(&self, secret: &str, public_of_other: &str, own: &End, other: &End) -> String {
        let (interface, method, port, mtu) = (self.interface, self.method, self.port, self.mtu());
        let (bind, remote) = (own.host.ip, other.host.ip);
        format!(
            "log level info;\nmode tap;\ninterface \"{interface}\";\nmethod \"{method}\";\nmtu {mtu};\n\
             bind {bind}:{port};\nsecret \"{secret}\";\n\
             peer \"other\" {{ key \"{public_of_other}\"; remote {remote}:{port}; }}\n"
        )
    }
}

impl Peer for Fastd {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self, _tools: &Tools<'_>) -> Result<String, Failure> {
        version_line(Path::new(PROGRAM))
    }

    fn mtu(&self) -> u16 {
        1426
    }

    fn interface(&self, _end: &End) -> String {
        self.interface.to_owned()
    }

    fn start(&self, _tools: &Tools<'_>, ends: &[End; 2]) -> Result<[Running; 2], Failure> {
        let keys = [make_keys()?, make_keys()?];
        let start = |own: usize, other: usize| {
            let text = self.configuration(&keys[own].0, &keys[other].1, &ends[own], &ends[other]);
            let config = ends[own].write("fastd.conf", &text)?;
            ends[own].start(Path::new(PROGRAM), &["--config", &config.to_string_lossy()])
        };
        Ok([start(0, 1)?, start(1, 0)?])
    }
}

/// A secret and its public key, as the program prints them.
fn make_keys() -> Result<(String, String), Failure> {
    let mut generate = Command::new(PROGRAM);
    generate.arg("--generate-key");
    let text = process::must(generate)?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(|key| key.trim().to_owned());
    field("Secret:").zip(field("Public:")).ok_or_else(|| Failure::Unreadable("fastd --generate-key".to_owned()))
}
