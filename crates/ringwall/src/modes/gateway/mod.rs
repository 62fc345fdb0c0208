//! `ringwall gate`: the scrubber between a trusted and an untrusted network.
//!
//! - `run.rs`: between two cards, as a daemon; `cards.rs`: those cards, as the supervisor sees
//!   them; `guard.rs`: the scrubber,
//!   as the data path sees it; `mirror.rs`: a copy of what leaves; `keys.rs`: secrets that outlive the daemon;
//!   `kernel.rs`: the program that carries clean segments.
//! - `config.rs`: its section; `flows.rs`: connections listed and ended; `orders.rs`: that in the
//!   daemon;
//!   `kind.rs`: what its two threads say to each other; `respond.rs`: connections ended for an IDS,
//!   `condemned.rs`: what that says.
//! - `paired`: one of two gateways, of which one forwards.
//! - `replay.rs`: over a capture; `sides.rs`: which side a captured frame came from; `trace.rs`:
//!   what
//!   became of single frames, `fields.rs`: what stands in them; `progress.rs`: how far it is;
//!   `report.rs`: what it says at its end.

mod cards;
mod condemned;
pub(crate) mod config;
mod ended;
mod fields;
mod flows;
mod guard;
mod kernel;
mod keys;
mod kind;
mod mirror;
mod orders;
mod paired;
pub(crate) mod parts;
mod progress;
mod replay;
mod report;
mod respond;
mod run;
mod sides;
mod trace;
mod values;

use clap::Subcommand;
use scrub::settings::{Preset, Settings};
use scrub::{Action, Rule};

use crate::failure::Failure;
use crate::output::say;
use flows::{BlockArgs, FlowsArgs, HandoverArgs};
use replay::ReplayArgs;
use respond::RespondArgs;
use run::{HoldArgs, ReleaseArgs, RunArgs};

/// `ringwall gate …`
#[derive(Subcommand, Debug)]
pub(crate) enum GateCommand {
    /// Scrubs all that passes between two interfaces until it is told to stop (needs root).
    #[command(after_help = "Examples:\n  ringwall gate run --trusted eth1 --untrusted eth2\n  \
        ringwall status --interface eth1\n\nThe interfaces must have no address. They move into a network namespace of their \
        own, where nothing passes without this daemon; with on_exit = \"closed\" they stay there when it ends, until the \
        next start or `gate release`.")]
    Run(RunArgs),
    /// Stops the daemon, if one runs, and gives the interfaces back (needs root).
    Release(ReleaseArgs),
    /// Makes the namespace for the interfaces, before a daemon that must not make one; the unit runs it.
    #[command(hide = true)]
    Hold(HoldArgs),
    /// Lists TCP connections through the gateway.
    Flows(FlowsArgs),
    /// Ends a TCP connection through the gateway for both sides and lets none begin in its place.
    #[command(after_help = "Example, with addresses and ports as `ringwall gate flows` shows them:\n  \
        ringwall gate block 192.0.2.10:443 198.51.100.7:50123\n\nWhat is blocked is forgotten when the daemon ends.")]
    Block(BlockArgs),
    /// Ends the TCP connections that an intrusion detection system condemns in its EVE records.
    #[command(after_help = "Examples:\n  \
        ringwall gate respond --eve-socket /run/ringwall-ids/eve.sock --severity 1\n  \
        tail -n 0 -F /var/log/suricata/eve.json | ringwall gate respond --eve - --signature 2010937\n\n\
        Suricata writes to the socket with `filetype: unix_stream` in eve-log.")]
    Respond(RespondArgs),
    /// Has the other gateway of a pair take over, as before an update of this one.
    #[command(after_help = "Example, on the active gateway:\n  ringwall gate handover\n\n\
        It is refused while the other gateway is not heard, has a card without a link, or does not know all flows \
        yet. `ringwall status` says how the pair is.")]
    Handover(HandoverArgs),
    /// Scrubs a capture file.
    #[command(
        after_help = "Examples:\n  ringwall gate replay --read in.pcap --write out.pcap --trusted 192.0.2.0/24\n  \
        tcpdump -i eth0 -w - | ringwall gate replay --read - --write - --preset strict | tshark -r -\n  \
        ringwall gate replay --read in.pcap.zst --explain why.pcapng --trusted 192.0.2.0/24\n\n\
        Without --trusted, --trusted-mac or --trusted-interface, of two hosts the one that speaks first is untrusted."
    )]
    Replay(ReplayArgs),
    /// Lists the rules: what each does, what it can break, and in which presets it is on.
    Rules,
}

impl GateCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            GateCommand::Run(args) => run::run(&args),
            GateCommand::Release(args) => run::release(&args),
            GateCommand::Hold(args) => run::hold(&args),
            GateCommand::Flows(args) => flows::flows(&args),
            GateCommand::Block(args) => flows::block(&args),
            GateCommand::Respond(args) => respond::respond(&args),
            GateCommand::Handover(args) => flows::hand_over(&args),
            GateCommand::Replay(args) => replay::replay(&args),
            GateCommand::Rules => {
                print_rules();
                Ok(())
            }
        }
    }
}

fn print_rules() {
    let presets = [("paper", Preset::Paper), ("balanced", Preset::Balanced), ("strict", Preset::Strict)];
    let presets = presets.map(|(name, preset)| (name, Settings::preset(preset).rules));
    for rule in Rule::ALL {
        let on: Vec<_> =
            presets.iter().filter(|(_, rules)| rules.action(*rule) != Action::Off).map(|(name, _)| *name).collect();
        let on = if on.is_empty() { "in no preset".to_owned() } else { on.join(", ") };
        say!("{} ({on}; {})\n  does:  {}\n  risk:  {}", rule.name(), rule.source(), rule.does(), rule.risk());
    }
}
