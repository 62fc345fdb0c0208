//! vpncloud: layer 2 over UDP in switch mode, AES-256.

use std::path::PathBuf;
use std::process::Command;

use super::tools::{Tools, version_line};
use super::{End, Peer};
use crate::failure::Failure;
use crate::net::Running;

/// The version that is known to work with the settings below.
const VERSION: &str = "2.3.0";
/// UDP port of both ends.
const PORT: u16 = 3210;
/// The interface it makes.
const INTERFACE: &str = "tap-vpncloud";

/// vpncloud between two nodes that share a password.
pub struct VpnCloud;

impl VpnCloud {
    fn program(tools: &Tools<'_>) -> PathBuf {
        tools.cached("vpncloud/bin/vpncloud")
    }
}

impl Peer for VpnCloud {
    fn name(&self) -> &'static str {
        "vpncloud"
    }

    fn version(&self, tools: &Tools<'_>) -> Result<String, Failure> {
        let program = VpnCloud::program(tools);
        if !program.is_file() {
            let mut install = Command::new("cargo");
            install.args(["install", "vpncloud", "--version", VERSION, "--locked", "--root"]);
            install.arg(tools.cached("vpncloud"));
            tools.fetch(install)?;
        }
        version_line(&program)
    }

    fn mtu(&self) -> u16 {
        1400
    }

    fn interface(&self, _end: &End) -> String {
        INTERFACE.to_owned()
    }

    fn start(&self, tools: &Tools<'_>, ends: &[End; 2]) -> Result<[Running; 2], Failure> {
        let program = VpnCloud::program(tools);
        let start = |own: &End, other: &End| {
            // It asks the kernel for its own address by way of the default route and panics without one.
            own.host.namespace.ip(&format!("route replace default via {}", other.host.ip))?;
            let (listen, peer) = (format!("{}:{PORT}", own.host.ip), format!("{}:{PORT}", other.host.ip));
            let mut arguments = vec!["--type", "tap", "--mode", "switch", "--device", INTERFACE];
            arguments.extend(["--listen", &listen, "--peer", &peer, "--password", "a lab's password"]);
            arguments.extend(["--algorithm", "aes256", "--no-port-forwarding", "--no-auto-claim"]);
            own.start(&program, &arguments)
        };
        Ok([start(&ends[0], &ends[1])?, start(&ends[1], &ends[0])?])
    }
}
