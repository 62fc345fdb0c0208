//! A gateway beside guarded hosts: one more daemon in a namespace of the stage, and an evasion that it must undo.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use ringwall_lab::cleanup;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Namespace, Running, process};
use rustix::net::SendFlags;
use rustix::process::Signal;
use serde_json::Value;

use super::{PATIENCE, READY_LIMIT};
use crate::stage::{Stage, program};

/// A gateway between two interfaces of a namespace that others use as well. Dropping it gives them back.
pub struct Beside {
    namespace: Namespace,
    directory: PathBuf,
    process: Option<Running>,
}

impl Beside {
    /// Starts it between the interfaces `trusted` and `untrusted` of `namespace`, and waits until it carries frames.
    pub fn start(stage: &Stage, namespace: &Namespace, [trusted, untrusted]: [&str; 2]) -> Result<Beside, Failure> {
        let directory = stage.file("gateway-beside");
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let (file, place) = (directory.join("gate.toml"), directory.display());
        let text = format!(
            "[gate]\ntrusted = \"{trusted}\"\nuntrusted = \"{untrusted}\"\nrun_dir = \"{place}/run\"\n\
             state_dir = \"{place}/state\"\n"
        );
        std::fs::write(&file, text).map_err(Failure::file("writing", &file))?;
        let mut beside = Beside { namespace: namespace.clone(), directory, process: None };
        let mut process = Running::start(beside.command(&["gate", "run"]), &beside.directory.join("log"))?;
        let ready = process::until("the gateway beside the hosts", READY_LIMIT, || {
            process.ensure_alive()?;
            Ok(beside.status().is_ok_and(|status| status["state"] == "running"))
        });
        beside.process = Some(process);
        ready.map(|()| beside)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.namespace.command(&program().to_string_lossy());
        command.args(words).arg("--config").arg(self.directory.join("gate.toml"));
        command
    }

    /// What it says of itself.
    pub fn status(&self) -> Result<Value, Failure> {
        let text = process::told(self.command(&["status", "--json"]))?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("{error}: {text}")))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After an interrupt or a failed assertion the sweep has done it already.
        if cleanup::permit().is_err() || !self.directory.exists() {
            return;
        }
        if let Some(process) = self.process.take() {
            process.stop(Signal::TERM);
        }
        let _never_taken = process::ask(self.command(&["gate", "release"]), &[]);
    }
}

/// What an evader sends, its last byte as urgent: an observer who knows nothing of that reads all of it.
pub const EVASION: &[u8] = b"open the doorX";
/// What a program reads of it that did not ask for urgent data: that byte stands beside its stream (RFC 6093, section 3).
pub const EVADED: &[u8] = b"open the door";

/// What a program in `to` reads of the evasion, sent from `from` to `port` of the address `at`.
pub fn read_of_evasion(from: &Namespace, to: &Namespace, at: Ipv4Addr, port: u16) -> Result<Vec<u8>, Failure> {
    let address = SocketAddr::from((at, port));
    let failed = || Failure::io(format!("an evasion by TCP to {address}"));
    let listener = to.enter(|| TcpListener::bind(address).map_err(failed()))?;
    let mut client = from.enter(|| TcpStream::connect_timeout(&address, PATIENCE).map_err(failed()))?;
    let (mut server, _) = listener.accept().map_err(failed())?;
    server.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
    let (urgent, rest) = EVASION.split_last().expect("it is not empty");
    client.write_all(rest).map_err(failed())?;
    rustix::net::send(&client, &[*urgent], SendFlags::OOB).map_err(|error| failed()(error.into()))?;
    drop(client);
    let mut read = Vec::new();
    server.read_to_end(&mut read).map_err(failed())?;
    Ok(read)
}
