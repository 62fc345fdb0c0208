//! tinc 1.0: layer 2 over UDP in switch mode, with its default cipher and digest.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::tools::{Tools, version_line};
use super::{End, Peer};
use crate::failure::Failure;
use crate::net::{Running, process};

/// The program.
const PROGRAM: &str = "/usr/sbin/tincd";
/// TCP and UDP port of both ends.
const PORT: u16 = 10655;
/// The interface it makes.
const INTERFACE: &str = "tap-tinc";
/// How long the first end may take until the second can connect; it would try again only after 5 s.
const READY_LIMIT: Duration = Duration::from_secs(5);

/// tinc between two nodes.
pub struct Tinc;

impl Peer for Tinc {
    fn name(&self) -> &'static str {
        "tinc"
    }

    fn version(&self, _tools: &Tools<'_>) -> Result<String, Failure> {
        let line = version_line(Path::new(PROGRAM))?;
        Ok(line.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
    }

    fn mtu(&self) -> u16 {
        1400
    }

    fn interface(&self, _end: &End) -> String {
        INTERFACE.to_owned()
    }

    fn start(&self, _tools: &Tools<'_>, ends: &[End; 2]) -> Result<[Running; 2], Failure> {
        let [first, second] = ends;
        make_node(first, None)?;
        make_node(second, Some(first))?;
        introduce(first, second)?;
        introduce(second, first)?;
        let mut listening = launch(first)?;
        listening.await_output("Ready", READY_LIMIT)?;
        Ok([listening, launch(second)?])
    }
}

/// Writes the configuration of one node and has it make its keys.
fn make_node(end: &End, connect_to: Option<&End>) -> Result<(), Failure> {
    let hosts = end.directory.join("hosts");
    std::fs::create_dir_all(&hosts).map_err(Failure::file("making", &hosts))?;
    let connect = connect_to.map_or(String::new(), |other| format!("ConnectTo = {}\n", other.host.name));
    let text = format!("Name = {}\nMode = switch\nInterface = {INTERFACE}\nAddressFamily = ipv4\n", end.host.name);
    end.write("tinc.conf", &(text + &connect))?;
    end.write(&format!("hosts/{}", end.host.name), &format!("Address = {}\nPort = {PORT}\n", end.host.ip))?;
    let mut generate = Command::new(PROGRAM);
    generate.arg("--config").arg(&end.directory).args(["--generate-keys=2048"]);
    process::must(generate).map(drop)
}

/// Gives `to` the address and public key of `end`.
fn introduce(end: &End, to: &End) -> Result<(), Failure> {
    let name = format!("hosts/{}", end.host.name);
    let (source, target) = (end.directory.join(&name), to.directory.join(&name));
    std::fs::copy(&source, &target).map_err(Failure::file("copying", &source)).map(drop)
}

fn launch(end: &End) -> Result<Running, Failure> {
    let config = format!("--config={}", end.directory.display());
    let pid_file = format!("--pidfile={}", end.directory.join("pid").display());
    end.start(Path::new(PROGRAM), &[&config, &pid_file, "--no-detach", "--debug=1"])
}
