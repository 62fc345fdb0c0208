//! `ringwall gate flows` and `block`: the TCP connections that a gateway remembers, and ending one.

use std::net::{IpAddr, SocketAddr};

use clap::Args;

use super::guard::vlan_text;
use crate::client::{self, DaemonArgs, print_json, unexpected};
use crate::config::DEFAULT_GATE_FILE;
use crate::failure::Failure;
use crate::output::say;
use crate::protocol::{Answer, Ask, Flow};

/// How many connections are listed unless more are asked for.
const LISTED: usize = 100;
/// The state of connections that an operator ended.
const BLOCKED: &str = "blocked";

/// Which gateway is meant.
#[derive(Args, Debug)]
struct GateDaemonArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `ringwall gate flows`
#[derive(Args, Debug)]
pub(crate) struct FlowsArgs {
    #[command(flatten)]
    gate: GateDaemonArgs,
    /// Connections of this host only.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// Connections in this state only, such as established.
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// How many at most, up to 10000.
    #[arg(long, value_name = "NUMBER", default_value_t = LISTED)]
    limit: usize,
}

/// Options of `ringwall gate block`
#[derive(Args, Debug)]
pub(crate) struct BlockArgs {
    #[command(flatten)]
    gate: GateDaemonArgs,
    /// Address and port of the trusted host and of the untrusted one, as `gate flows` shows them;
    /// without them the connections that are blocked are listed.
    #[arg(value_name = "ADDRESS:PORT", num_args = 2)]
    ends: Vec<SocketAddr>,
    /// VLAN identifiers of the connection, as `gate flows` shows them.
    #[arg(long, value_name = "VLAN", value_parser = vlans, default_value = "0")]
    vlan: u32,
    /// Lets the connection begin again.
    #[arg(long, requires = "ends")]
    undo: bool,
}

/// Options of `ringwall gate handover`
#[derive(Args, Debug)]
pub(crate) struct HandoverArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// Reads one VLAN identifier, or the outer and the inner one with a dot between.
fn vlans(text: &str) -> Result<u32, String> {
    let wrong = || "write it as 7, or as 100.7 with the outer one first".to_owned();
    let read = |part: &str| part.parse::<u32>().ok().filter(|number| *number <= 0xfff).ok_or_else(wrong);
    match text.split_once('.') {
        Some((outer, inner)) => Ok(read(outer)? << 12 | read(inner)?),
        None => read(text),
    }
}

impl GateDaemonArgs {
    fn ask(&self, question: &Ask) -> Result<Answer, Failure> {
        let socket = self.daemon.socket_or(DEFAULT_GATE_FILE)?;
        match client::ask(&socket, question)? {
            answer @ (Answer::Flows { .. } | Answer::Blocked { .. }) => Ok(answer),
            _ => Err(unexpected(&socket)),
        }
    }

    fn list(&self, question: &Ask) -> Result<(), Failure> {
        let Answer::Flows { flows } = self.ask(question)? else { return Ok(()) };
        if self.json {
            return print_json(&flows);
        }
        say!(
            "{:<22} {:<22} {:>5}  {:<13} {:<6} {:>7} {:>10} {:>12} {:>12}",
            "trusted",
            "untrusted",
            "VLAN",
            "state",
            "path",
            "idle",
            "retained",
            "bytes out",
            "bytes in"
        );
        flows.iter().for_each(print_flow);
        Ok(())
    }
}

fn print_flow(flow: &Flow) {
    let vlan = if flow.vlans == 0 { "-".to_owned() } else { vlan_text(flow.vlans) };
    let path = if flow.carried { "kernel" } else { "daemon" };
    say!(
        "{:<22} {:<22} {vlan:>5}  {:<13} {path:<6} {:>5} s {:>10} {:>12} {:>12}",
        flow.trusted.to_string(),
        flow.untrusted.to_string(),
        flow.state,
        flow.idle_s,
        flow.retained_bytes,
        flow.bytes_from_trusted,
        flow.bytes_from_untrusted
    );
}

/// `ringwall gate flows`
pub(crate) fn flows(args: &FlowsArgs) -> Result<(), Failure> {
    args.gate.list(&Ask::Flows { limit: args.limit, address: args.address, state: args.state.clone() })
}

/// `ringwall gate block`
pub(crate) fn block(args: &BlockArgs) -> Result<(), Failure> {
    let [trusted, untrusted] = args.ends[..] else {
        return args.gate.list(&Ask::Flows { limit: usize::MAX, address: None, state: Some(BLOCKED.to_owned()) });
    };
    let order = Ask::Block { trusted, untrusted, vlans: args.vlan, undo: args.undo, if_remembered: false };
    let Answer::Blocked { changed } = args.gate.ask(&order)? else { return Ok(()) };
    match (changed, args.undo) {
        (true, false) => say!("{trusted} - {untrusted} is blocked; both sides hear it with the next segment"),
        (true, true) => say!("{trusted} - {untrusted} may begin again"),
        (false, false) => {
            let line = format!("{trusted} - {untrusted}: as many connections are blocked as may be; undo some first");
            return Err(Failure::new(line));
        }
        (false, true) => {
            return Err(Failure::new(format!("{trusted} - {untrusted}: is not blocked; see `gate block`")));
        }
    }
    Ok(())
}

/// `ringwall gate handover`
pub(crate) fn hand_over(args: &HandoverArgs) -> Result<(), Failure> {
    let socket = args.daemon.socket_or(DEFAULT_GATE_FILE)?;
    match client::ask(&socket, &Ask::HandOver)? {
        Answer::Done { lines } => lines.iter().for_each(|line| say!("{line}")),
        _ => return Err(unexpected(&socket)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vlans_read_as_they_are_shown() {
        for shown in ["7", "100.7", "4095.4095"] {
            assert_eq!(vlan_text(vlans(shown).expect("valid")), shown);
        }
        for wrong in ["", "4096", "1.", "1.2.3", "-1"] {
            assert!(vlans(wrong).is_err(), "{wrong}");
        }
    }
}
