//! One network namespace: made, entered, removed.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::process;

/// A network namespace of the current run. Its name is the run's followed by the member's.
#[derive(Clone, Debug)]
pub struct Namespace {
    run: Run,
    name: String,
}

impl Namespace {
    /// Makes the namespace of `member`, with its loopback up and IPv6 off.
    ///
    /// # Errors
    /// `ip` fails, for example because the namespace exists.
    pub fn create(run: &Run, member: &str) -> Result<Namespace, Failure> {
        let namespace = Namespace::existing(run, member);
        let mut add = Command::new("ip");
        add.args(["netns", "add", &namespace.name]);
        process::must(add)?;
        // IPv6 would only add noise to what is counted; who needs it switches it on.
        for scope in ["all", "default"] {
            namespace.set_kernel_parameter(&format!("ipv6/conf/{scope}/disable_ipv6"), "1")?;
        }
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// The namespace of `member`, which exists already.
    #[must_use]
    pub fn existing(run: &Run, member: &str) -> Namespace {
        Namespace { run: run.clone(), name: run.namespace(member) }
    }

    /// Its name for `ip netns`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `program`, to be run inside. The mount namespace stays the machine's own, unlike with `ip netns exec`, so that
    /// what a daemon mounts can be seen and removed from outside.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name)).arg("--").arg(program);
        self.run.mark(&mut command);
        command
    }

    /// Runs `ip` inside; `arguments` are separated by blanks.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn ip(&self, arguments: &str) -> Result<String, Failure> {
        let mut command = Command::new("ip");
        command.args(["-n", &self.name]).args(arguments.split_whitespace());
        process::must(command)
    }

    /// Runs `body` on a thread inside the namespace. Sockets it opens stay there, wherever they are used later.
    ///
    /// # Errors
    /// The namespace cannot be entered, or the body's own.
    pub fn enter<T: Send>(&self, body: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
        let path = format!("/run/netns/{}", self.name);
        let file = File::open(&path).map_err(Failure::io(format!("opening {path}")))?;
        let inside = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| Failure::Io { doing: format!("entering {path}"), source: error.into() })?;
            body()
        };
        let outcome = thread::scope(|scope| scope.spawn(inside).join());
        outcome.unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    }

    /// Writes `value` to the kernel parameter at `key` below `net`.
    ///
    /// # Errors
    /// The parameter does not exist or refuses the value.
    pub fn set_kernel_parameter(&self, key: &str, value: &str) -> Result<(), Failure> {
        let path = format!("/proc/sys/net/{key}");
        self.enter(|| std::fs::write(&path, value).map_err(Failure::io(format!("writing {path}"))))
    }

    /// As [`Self::set_kernel_parameter`], where a kernel without the parameter has nothing to be set.
    ///
    /// # Errors
    /// The parameter refuses the value.
    pub fn set_kernel_parameter_if_there(&self, key: &str, value: &str) -> Result<(), Failure> {
        let path = format!("/proc/sys/net/{key}");
        let there = self.enter(|| Ok(std::path::Path::new(&path).exists()))?;
        if there { self.set_kernel_parameter(key, value) } else { Ok(()) }
    }

    /// Removes it, with all interfaces in it.
    ///
    /// # Errors
    /// `ip` fails, or the clean-up after an interrupt does it already.
    pub fn delete(&self) -> Result<(), Failure> {
        let mut delete = Command::new("ip");
        delete.args(["netns", "del", &self.name]);
        process::must(delete).map(drop)
    }
}
