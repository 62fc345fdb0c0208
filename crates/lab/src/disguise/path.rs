//! A stack, a prober, and what stands between them: a bridge, or the real gateway.
//!
//! ```text
//!   prober u: e0 ------ out0 [bridge or gateway] in0 ------ e0 :t stack
//! ```

use std::path::{Path as FilePath, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::Guard;
use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::net::{Namespace, Running, process};
use crate::stacks::standing::{ADDRESS, INTERFACE, PROBER, Stack, Standing};

/// How long the gateway may take until it carries frames, and the stack until it answers, with room for a loaded machine.
const READY_LIMIT: Duration = Duration::from_secs(20);

/// Two hosts and what is between them. Dropping it removes all of it.
#[derive(Debug)]
pub struct Path {
    /// Where the tools run.
    pub prober: Namespace,
    /// Files of this path.
    pub directory: PathBuf,
    stack: Namespace,
    gate: Namespace,
    program: PathBuf,
    gateway: Option<Running>,
    standing: Option<Standing>,
}

impl Path {
    /// Lays the path to `stack` and waits until it answers. `lines` are further lines of `[gate]`.
    ///
    /// # Errors
    /// A tool, the stack or the gateway fails.
    pub fn lay(run: &Run, program: &FilePath, stack: Stack, guard: Guard, lines: &str) -> Result<Path, Failure> {
        let directory = run.directory().join("disguise");
        if directory.exists() {
            std::fs::remove_dir_all(&directory).map_err(Failure::file("emptying", &directory))?;
        }
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let [prober, host, gate] = ["u", "t", "g"].map(|member| Namespace::create(run, member));
        let (prober, host, gate, program) = (prober?, host?, gate?, program.to_owned());
        let mut path = Path { prober, directory, stack: host, gate, program, gateway: None, standing: None };
        path.wire()?;
        path.standing = Some(stack.stand(&path.stack, &path.directory)?);
        match guard.preset() {
            None => path.bridge()?,
            Some(preset) => path.guard(preset, lines)?,
        }
        path.await_answer()?;
        Ok(path)
    }

    fn wire(&self) -> Result<(), Failure> {
        for (host, card) in [(&self.stack, "in0"), (&self.prober, "out0")] {
            self.gate.ip(&format!("link add {card} type veth peer name {INTERFACE} netns {}", host.name()))?;
            self.gate.ip(&format!("link set {card} up"))?;
        }
        self.prober.ip(&format!("address add {PROBER}/24 dev {INTERFACE}"))?;
        self.prober.ip(&format!("link set {INTERFACE} up")).map(drop)
    }

    fn bridge(&self) -> Result<(), Failure> {
        for words in
            ["link add br0 type bridge", "link set in0 master br0", "link set out0 master br0", "link set br0 up"]
        {
            self.gate.ip(words)?;
        }
        Ok(())
    }

    fn guard(&mut self, preset: &str, lines: &str) -> Result<(), Failure> {
        let directory = self.directory.display();
        let text = format!(
            "[gate]\ntrusted = \"in0\"\nuntrusted = \"out0\"\npreset = \"{preset}\"\nrun_dir = \"{directory}/run\"\n\
             state_dir = \"{directory}/state\"\n{lines}\n"
        );
        std::fs::write(self.config(), text).map_err(Failure::file("writing", &self.config()))?;
        let mut gateway = Running::start(self.command(&["gate", "run"]), &self.directory.join("log"))?;
        let ready = process::until("the gateway", READY_LIMIT, || {
            gateway.ensure_alive()?;
            let Ok(text) = process::told(self.command(&["status", "--json"])) else { return Ok(false) };
            Ok(serde_json::from_str::<Value>(&text).is_ok_and(|status| status["state"] == "running"))
        });
        self.gateway = Some(gateway);
        ready
    }

    fn config(&self) -> PathBuf {
        self.directory.join("gate.toml")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.gate.command(&self.program.to_string_lossy());
        command.args(words).arg("--config").arg(self.config());
        command
    }

    fn await_answer(&self) -> Result<(), Failure> {
        process::until("an answer of the stack to a ping", READY_LIMIT, || {
            let mut ping = self.prober.command("ping");
            ping.args(["-n", "-c", "1", "-W", "1", &ADDRESS.to_string()]);
            Ok(process::ask(ping, &[])?.status.success())
        })
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.standing = None;
        if cleanup::permit().is_err() {
            return;
        }
        if let Some(gateway) = self.gateway.take() {
            gateway.stop(Signal::TERM);
            // What was never taken cannot be released; the sweep reports what stays.
            let _released = process::ask(self.command(&["gate", "release"]), &[]);
        }
        for namespace in [&self.prober, &self.stack, &self.gate] {
            let _gone = namespace.delete();
        }
    }
}
