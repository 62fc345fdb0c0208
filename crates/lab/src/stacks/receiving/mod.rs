//! Stacks as receivers of attacks, behind a pipe: the kernel, smoltcp, and programs in other languages.

mod kernel;
mod program;
mod smoltcp;

use std::path::Path;

use crate::cleanup::Run;
use crate::failure::Failure;
use crate::receivers::{Found, Receiver};

/// Starts every stack that can receive. Programs are looked for in `programs`, where `packaging/receivers.sh` puts them; the
/// kernel needs a `run` whose namespace it is in, which needs root.
#[must_use]
pub fn find(programs: &Path, run: Option<&Run>) -> Found {
    let mut found = Found::default();
    match run {
        Some(run) => add(&mut found, "Linux", kernel::Kernel::start(run)),
        None => found.missing.push("Linux: needs root for a namespace of its own".to_owned()),
    }
    add(&mut found, "smoltcp", Ok(smoltcp::Embedded::new()));
    for name in program::NAMES {
        add(&mut found, name, program::Program::start(name, programs));
    }
    found
}

fn add<R: Receiver + 'static>(found: &mut Found, name: &str, started: Result<R, Failure>) {
    match started {
        Ok(receiver) => found.receivers.push(Box::new(receiver)),
        Err(failure) => found.missing.push(format!("{name}: {failure}")),
    }
}
