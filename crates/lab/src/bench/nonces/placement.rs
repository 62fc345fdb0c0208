//! Who runs where: processors and priorities of daemons, of the stream's sender, and of the path on
//! which the kernel receives.

use std::fs;
use std::process::Command;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::books::ended;
use crate::failure::Failure;
use crate::guard::Daemon;
use crate::net::lan::{self, INTERFACE};
use crate::net::{Host, Lan, process};

/// The processor of sender, peers, bridge and attacker.
pub const SENDER_CORE: usize = 0;
/// The receiver's.
pub const RECEIVER_CORE: usize = 1;
/// How urgent its receive path is, among real-time threads.
const RECEIVE_PRIORITY: &str = "5";
/// The same where it is behind the daemon, among threads that are none. The kernel takes from
/// real-time threads what is over 0.95 of a processor (`kernel.sched_rt_runtime_us`), in one piece
/// each second; an interrupt does not stand still for that.
const RECEIVE_NICENESS: &str = "-20";
/// How urgent the receiver's daemon is where the receive path is behind it.
const DAEMON_PRIORITY: &str = "6";
/// A card that waited longer would not moderate, it would lose frames.
const MODERATION_MAX: Duration = Duration::from_millis(10);
/// How urgent the stream's sender is, and the daemons that seal for it.
pub const STREAM_PRIORITY: &str = "10";

/// How the kernel's receive thread stands to the receiver's daemon on the processor that they
/// share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// It comes first, as an interrupt does: a flood can starve the daemon.
    #[default]
    Urgent,
    /// The scheduler treats them alike.
    Fair,
    /// It comes behind the daemon and the program that reads the stream, and in front of all else:
    /// what those have no time for is lost in the card's ring.
    Behind,
    /// The daemon comes first by its own `real_time_priority`; the scheduler treats all others
    /// alike, that thread among them.
    First,
}

impl Order {
    /// The word in a row's statistics.
    pub fn word(self) -> &'static str {
        match self {
            Order::Urgent => "urgent",
            Order::Fair => "fair",
            Order::Behind => "behind",
            Order::First => "first",
        }
    }
}

/// How the receiver receives.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receive {
    /// How the kernel's receive thread stands to the receiver's daemon.
    #[arg(long = "receive", value_enum, default_value_t)]
    pub order: Order,
    /// How long the receiver's card waits for more frames before it wakes the kernel again, as
    /// cards do that moderate their interrupts.
    #[arg(long, value_name = "MICROSECONDS", value_parser = parse_moderation, default_value = "0")]
    pub moderation: Duration,
    /// The stream of --only strongswan is sealed before the clock starts, so that the sender's
    /// processor is the attacker's alone.
    #[arg(long)]
    pub sealed: bool,
}

fn parse_moderation(text: &str) -> Result<Duration, String> {
    let most = MODERATION_MAX.as_micros();
    let told = text.parse().ok().map(Duration::from_micros).filter(|told| *told <= MODERATION_MAX);
    told.ok_or_else(|| format!("a number of microseconds, at most {most}"))
}

impl Receive {
    /// What the receiver's daemon has about it in the section `[host]` of its configuration.
    pub fn of_host(self) -> &'static str {
        if self.order == Order::First { "real_time_priority = 6\n" } else { "" }
    }

    /// The real-time priority that the receiver's daemon is given, and the program that reads, if
    /// they are given any.
    pub fn of_daemon(self) -> Option<&'static str> {
        (self.order == Order::Behind).then_some(DAEMON_PRIORITY)
    }

    /// What makes `/sys/class/net/INTERFACE` so.
    fn of_card(self) -> Vec<(&'static str, u128)> {
        let mut settings = vec![("threaded", 1)];
        if !self.moderation.is_zero() {
            // Two rounds without a frame, and the card wakes the kernel by itself again (Linux,
            // Documentation/networking/napi.rst).
            settings.extend([("napi_defer_hard_irqs", 2), ("gro_flush_timeout", self.moderation.as_nanos())]);
        }
        settings
    }
}

/// Has the kernel receive for `host` in a thread, and the bridge hand on single frames.
///
/// # Errors
/// The kernel cannot.
pub fn receive_in_a_thread(lan: &Lan, host: &Host, receive: Receive) -> Result<(), Failure> {
    lan::set_offloads(&lan.bridge, &Lan::port(host), &["tso", "off", "gso", "off", "tx-udp-segmentation", "off"])?;
    lan::set_offloads(&host.namespace, INTERFACE, &["gro", "on"])?;
    let mut command = Command::new("ip");
    let write = |(file, value): (&str, u128)| format!("echo {value} > /sys/class/net/{INTERFACE}/{file}");
    let script = receive.of_card().into_iter().map(write).collect::<Vec<_>>().join(" && ");
    command.args(["netns", "exec", host.namespace.name(), "sh", "-c", &script]);
    process::must(command).map(drop)
}

/// Binds the receive threads, of which only receivers' interfaces have any, to the receiver's
/// processor; their numbers.
///
/// # Errors
/// There are none.
pub fn place_receive_path(receive: Receive) -> Result<Vec<u32>, Failure> {
    let prefix = format!("napi/{INTERFACE}-");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").map_err(Failure::io("reading /proc"))?.flatten() {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.starts_with(&prefix) {
            let thread = entry.file_name().to_string_lossy().into_owned();
            order("taskset", &["-pc", &RECEIVER_CORE.to_string(), &thread])?;
            match receive.order {
                Order::Urgent => order("chrt", &["-f", "-p", RECEIVE_PRIORITY, &thread])?,
                Order::Behind => order("renice", &["-n", RECEIVE_NICENESS, "-p", &thread])?,
                Order::Fair | Order::First => {}
            }
            found.extend(thread.parse::<u32>());
        }
    }
    if found.is_empty() {
        return Err(Failure::Unreadable("the kernel has no receive thread for the card".to_owned()));
    }
    Ok(found)
}

/// Binds all threads of a daemon to a processor, with this real-time priority if any.
///
/// # Errors
/// It has ended.
pub fn place(daemon: &Daemon, core: usize, priority: Option<&str>) -> Result<(), Failure> {
    place_process(daemon.id().ok_or_else(ended)?, core, priority)
}

/// As [`place`], for any process.
///
/// # Errors
/// It has ended.
pub fn place_process(id: u32, core: usize, priority: Option<&str>) -> Result<(), Failure> {
    let id = id.to_string();
    order("taskset", &["-apc", &core.to_string(), &id])?;
    priority.map_or(Ok(()), |priority| order("chrt", &["-a", "-f", "-p", priority, &id]))
}

/// Binds the calling thread to a processor, with this real-time priority if any.
///
/// # Errors
/// The kernel refuses.
pub fn sit_on(core: usize, priority: Option<&str>) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set)
        .map_err(|error| Failure::Io { doing: "choosing a processor".to_owned(), source: error.into() })?;
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    priority.map_or(Ok(()), |priority| order("chrt", &["-f", "-p", priority, &own]))
}

fn order(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.args(arguments);
    process::must(command).map(drop)
}
