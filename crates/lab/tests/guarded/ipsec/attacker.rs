//! Forged frames of an attacker on the LAN, once or for as long as is wanted.

use std::process::Command;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::{Frame, Host, Running, pcap, process};

use crate::stage::{Outcome, Stage};

/// Sends `frames` from the attacker's card once, as fast as it can.
pub fn inject(stage: &Stage, attacker: &Host, frames: &[Frame]) -> Outcome {
    process::must(sender(stage, attacker, frames, &["--topspeed"])?).map(drop)
}

/// Sends `frames` from the attacker's card again and again, so many a second, until it is stopped.
pub fn flood(stage: &Stage, attacker: &Host, frames: &[Frame], per_second: u32) -> Result<Running, Failure> {
    let pace = format!("--pps={per_second}");
    Running::start(sender(stage, attacker, frames, &["--loop=0", &pace])?, &stage.file("flood.log"))
}

/// Under the attacker's own hardware address, so that no switch learns a wrong one.
fn sender(stage: &Stage, attacker: &Host, frames: &[Frame], options: &[&str]) -> Result<Command, Failure> {
    let file = stage.file("forged.pcap");
    let frames: Vec<Frame> =
        frames.iter().map(|frame| frame.with_addresses(attacker.mac, frame.destination())).collect();
    pcap::write(&file, &frames)?;
    let mut command = attacker.namespace.command("tcpreplay");
    command.args(options).args(["--preload-pcap", "-i", INTERFACE]).arg(&file);
    Ok(command)
}
