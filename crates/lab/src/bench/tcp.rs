//! One TCP stream from one host to another, driven by iperf3, with the CPU time it took on both sides.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::cpu;
use crate::failure::Failure;
use crate::net::{Host, Running, process};

/// How long the server may take to open its port.
const LISTEN_LIMIT: Duration = Duration::from_secs(5);
/// Bytes in a gigabyte, as rates are counted: decimal.
const GIGABYTE: f64 = 1e9;

/// Which way the payload flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the first host to the second, as the gates want it.
    Forward,
    /// The other way round.
    Reverse,
}

impl Direction {
    /// Both, in the paper's order.
    pub const ALL: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    /// What is added to the name of a row.
    pub fn suffix(self) -> &'static str {
        match self {
            Direction::Forward => "",
            Direction::Reverse => "/reverse",
        }
    }
}

/// Two ends between which streams are measured.
#[derive(Debug)]
pub struct Ends<'a> {
    /// Where the client runs.
    pub client: &'a Host,
    /// Where the server listens; inside a tunnel if one is measured.
    pub address: Ipv4Addr,
    /// The programs that carry the client's traffic.
    pub client_daemons: &'a [u32],
    /// The programs that carry the server's traffic.
    pub server_daemons: &'a [u32],
    /// How many Mbit/s are sent at most; `None` is as fast as it goes.
    pub limit_mbit: Option<u32>,
}

/// What one run showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Payload that the receiver got, in Mbit/s.
    pub goodput_mbit: f64,
    /// Load of the sending host, its daemon included, in percent of one processor.
    pub sender_percent: f64,
    /// Load of the receiving host, its daemon included, in percent of one processor.
    pub receiver_percent: f64,
    /// CPU seconds of both daemons per gigabyte of payload.
    pub daemons_per_gigabyte: f64,
    /// CPU seconds of the whole machine per gigabyte of payload.
    pub machine_per_gigabyte: f64,
}

/// Starts a server at the standard port of `host`, whose log goes to `directory`.
///
/// # Errors
/// iperf3 is missing, or the port is taken.
pub fn serve(host: &Host, directory: &Path) -> Result<Running, Failure> {
    let mut command = host.namespace.command("iperf3");
    command.args(["--server", "--forceflush"]);
    let mut server = Running::start(command, &directory.join(format!("iperf3-{}.log", host.name)))?;
    server.await_output("Server listening", LISTEN_LIMIT)?;
    Ok(server)
}

/// Runs one stream for `seconds`.
///
/// # Errors
/// iperf3 fails or its report is not what it was.
pub fn run(ends: &Ends<'_>, direction: Direction, seconds: u32) -> Result<Sample, Failure> {
    cpu::settle()?;
    let mut command = ends.client.namespace.command("iperf3");
    command.args(["--json", "--client", &ends.address.to_string(), "--time", &seconds.to_string()]);
    if direction == Direction::Reverse {
        command.arg("--reverse");
    }
    command.args(ends.limit_mbit.map(|mbit| format!("--bitrate={mbit}M")));
    let (machine, start) = (cpu::machine()?, Instant::now());
    let (client, server) = (cpu::processes(ends.client_daemons)?, cpu::processes(ends.server_daemons)?);
    let output = process::must(command)?;
    let report = Report::read(&output)?;
    let used = Used {
        elapsed: start.elapsed(),
        machine: cpu::machine()?.saturating_sub(machine),
        client: cpu::processes(ends.client_daemons)?.saturating_sub(client),
        server: cpu::processes(ends.server_daemons)?.saturating_sub(server),
    };
    Ok(used.sample(&report, direction))
}

/// CPU time that passed during a run.
struct Used {
    elapsed: Duration,
    machine: Duration,
    client: Duration,
    server: Duration,
}

impl Used {
    fn sample(&self, report: &Report, direction: Direction) -> Sample {
        let percent = |daemon: Duration| 100.0 * daemon.as_secs_f64() / self.elapsed.as_secs_f64();
        let client = report.client_percent + percent(self.client);
        let server = report.server_percent + percent(self.server);
        let (sender_percent, receiver_percent) = match direction {
            Direction::Forward => (client, server),
            Direction::Reverse => (server, client),
        };
        let gigabytes = report.bytes / GIGABYTE;
        Sample {
            goodput_mbit: report.bits_per_second / 1e6,
            sender_percent,
            receiver_percent,
            daemons_per_gigabyte: (self.client + self.server).as_secs_f64() / gigabytes,
            machine_per_gigabyte: self.machine.as_secs_f64() / gigabytes,
        }
    }
}

/// The part of iperf3's report that is used.
#[derive(Debug, PartialEq)]
struct Report {
    bytes: f64,
    bits_per_second: f64,
    client_percent: f64,
    server_percent: f64,
}

impl Report {
    /// Reads `iperf3 --json`. The receiver's count is what arrived; the sender's holds what still sat in buffers.
    fn read(output: &str) -> Result<Report, Failure> {
        let report: Value =
            serde_json::from_str(output).map_err(|error| Failure::Unreadable(format!("iperf3 --json: {error}")))?;
        let number = |pointer: &str| {
            let found = report.pointer(pointer).and_then(Value::as_f64);
            found.ok_or_else(|| Failure::Unreadable(format!("iperf3 --json has no {pointer}")))
        };
        let read = Report {
            bytes: number("/end/sum_received/bytes")?,
            bits_per_second: number("/end/sum_received/bits_per_second")?,
            client_percent: number("/end/cpu_utilization_percent/host_total")?,
            server_percent: number("/end/cpu_utilization_percent/remote_total")?,
        };
        if read.bytes > 0.0 { Ok(read) } else { Err(Failure::Unreadable("iperf3 moved no data".to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"end":{"sum_sent":{"bytes":2e9,"bits_per_second":8e9},
        "sum_received":{"bytes":1000000000,"bits_per_second":4e9},
        "cpu_utilization_percent":{"host_total":30.0,"host_user":1,"remote_total":50.0}}}"#;

    #[test]
    fn daemons_count_for_the_side_they_serve() {
        let report = Report::read(REPORT).unwrap();
        let used = Used {
            elapsed: Duration::from_secs(2),
            machine: Duration::from_secs(3),
            client: Duration::from_millis(1000),
            server: Duration::from_millis(400),
        };
        let forward = used.sample(&report, Direction::Forward);
        assert_eq!((forward.sender_percent, forward.receiver_percent), (80.0, 70.0));
        assert_eq!((forward.daemons_per_gigabyte, forward.machine_per_gigabyte), (1.4, 3.0));
        assert_eq!(forward.goodput_mbit, 4000.0);
        let reverse = used.sample(&report, Direction::Reverse);
        assert_eq!((reverse.sender_percent, reverse.receiver_percent), (70.0, 80.0));
    }

    #[test]
    fn a_report_without_data_is_no_report() {
        assert!(Report::read(r#"{"error":"unable to connect"}"#).is_err());
        assert!(Report::read(&REPORT.replace("1000000000", "0")).is_err());
        assert!(Report::read("iperf3: error").is_err());
    }
}
