//! What is read while a run goes on: frames on wires, memory and processor time of daemons.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::bench::cpu;
use crate::failure::Failure;
use crate::guard::Daemon;
use crate::net::{Host, Lan};

/// Memory of a daemon.
///
/// # Errors
/// It has ended.
pub fn memory_mib(daemon: &Daemon) -> Result<f64, Failure> {
    memory_of(daemon.id().ok_or_else(ended)?)
}

/// A daemon that was to be looked at is gone.
pub fn ended() -> Failure {
    Failure::Unreadable("a daemon has ended".to_owned())
}

/// Memory that a process occupies.
///
/// # Errors
/// It has ended.
pub fn memory_of(process: u32) -> Result<f64, Failure> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).map_err(Failure::io(format!("reading {path}")))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(ended)
}

/// Frames that the wire of `host` has carried from it.
///
/// # Errors
/// `ip` does not say.
pub fn sent_by(lan: &Lan, host: &Host) -> Result<f64, Failure> {
    counted_by(lan, host, "rx")
}

/// Frames that have come to the wire of `victim` and that no host sent: the flood's, those included
/// for which its card had no place.
///
/// # Errors
/// `ip` does not say.
pub fn forged_to(lan: &Lan, victim: &Host) -> Result<f64, Failure> {
    let offered = counted(lan, victim, "tx", "packets")? + counted(lan, victim, "tx", "dropped")?;
    let others = lan.hosts.iter().filter(|host| host.name != victim.name);
    Ok(offered - others.map(|host| sent_by(lan, host)).sum::<Result<f64, _>>()?)
}

/// Frames that the bridge's end of the wire of `host` has counted in this direction.
pub fn counted_by(lan: &Lan, host: &Host, direction: &str) -> Result<f64, Failure> {
    counted(lan, host, direction, "packets")
}

fn counted(lan: &Lan, host: &Host, direction: &str, what: &str) -> Result<f64, Failure> {
    let text = lan.bridge.ip(&format!("-json -statistics link show {}", Lan::port(host)))?;
    let said: Value = serde_json::from_str(&text).unwrap_or_default();
    let count = said[0]["stats64"][direction][what].as_f64();
    count.ok_or_else(|| Failure::Unreadable("`ip -json -statistics link show`".to_owned()))
}

/// Processor time of a daemon.
///
/// # Errors
/// It has ended.
pub fn worked(daemon: &Daemon) -> Result<Duration, Failure> {
    cpu::exact(daemon.id().ok_or_else(ended)?)
}

/// A run that says nothing, and why.
pub fn busy(what: &str) -> Failure {
    Failure::Unreadable(format!("{what}: the machine is busy, or too slow"))
}
