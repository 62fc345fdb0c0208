//! lwIP, in a program that is built from the source beside this crate when it is wanted.

use std::path::Path;
use std::process::Command;

use super::{READY_LIMIT, TAP};
use crate::failure::Failure;
use crate::net::{Namespace, Running, process};

const SOURCE: &str = include_str!("../../../stacks/lwip/host.c");
/// Where Debian's liblwip-dev has its headers.
const HEADERS: &str = "/usr/include/lwip";

pub(super) fn missing() -> Option<&'static str> {
    if !process::installed("cc") {
        return Some("cc");
    }
    (!Path::new(HEADERS).join("netif/tapif.h").is_file()).then_some("liblwip-dev")
}

pub(super) fn stand(host: &Namespace, directory: &Path) -> Result<Running, Failure> {
    let (source, program) = (directory.join("lwip.c"), directory.join("lwip"));
    std::fs::write(&source, SOURCE).map_err(Failure::file("writing", &source))?;
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-I", HEADERS, "-o"]).arg(&program).arg(&source).args(["-llwip", "-lpthread"]);
    process::must(compile)?;
    let mut command = host.command(&program.to_string_lossy());
    command.env("PRECONFIGURED_TAPIF", TAP);
    let mut running = Running::start(command, &directory.join("lwip.log"))?;
    running.await_output("ready", READY_LIMIT)?;
    Ok(running)
}
