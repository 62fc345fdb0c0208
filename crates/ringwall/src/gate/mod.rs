//! `ringwall gate`: the scrubber between a trusted and an untrusted network.
//!
//! - `replay.rs`: over a capture; `sides.rs`: which side a captured frame came from.

mod replay;
mod sides;

use clap::Subcommand;
use scrub::settings::{Preset, Settings};
use scrub::{Action, Rule};

use crate::failure::Failure;
use crate::output::say;
use replay::ReplayArgs;

/// `ringwall gate …`
#[derive(Subcommand, Debug)]
pub(crate) enum GateCommand {
    /// Scrubs a capture file.
    #[command(
        after_help = "Examples:\n  ringwall gate replay --read in.pcap --write out.pcap --trusted 192.0.2.0/24\n  \
        tcpdump -i eth0 -w - | ringwall gate replay --read - --write - --preset strict | tshark -r -\n\n\
        Without --trusted, --trusted-mac or --trusted-interface, of two hosts the one that speaks first is untrusted."
    )]
    Replay(ReplayArgs),
    /// Lists the rules: what each does, what it can break, and in which presets it is on.
    Rules,
}

impl GateCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
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
