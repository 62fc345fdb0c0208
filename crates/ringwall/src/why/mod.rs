//! `ringwall why HOST`: what keeps this host and another apart, or in clear (docs/decisions/0094-why-and-top.md).
//!
//! - `facts.rs`: what is known here of the other host; `read.rs`: how it is found, from the daemon,
//!   the kernel and one datagram.
//! - `checks.rs`: what the rules and lists say; `refusals.rs`: what was refused, and why nobody
//!   answers. Each check is a function from facts to findings; [`CHECKS`] is their list, from which
//!   docs/why.md is made.

mod checks;
mod facts;
mod read;
mod refusals;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::client::{DaemonArgs, print_json};
use crate::failure::Failure;
use crate::finding::{Finding, overall};
use crate::output::say;
use facts::Facts;

/// What the JSON is called, and its version, which changes when a field goes or means something else.
const SCHEMA: &str = "ringwall-why";
const SCHEMA_VERSION: u32 = 1;

/// Options of `ringwall why`
#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// The other host: a name, an address or a hardware address.
    #[arg(value_name = "HOST")]
    host: String,
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Sends nothing to HOST; only what happened by itself is told.
    #[arg(long)]
    no_probe: bool,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// One check.
struct Check {
    name: &'static str,
    /// What it looks at, and when it is not good: for the manual.
    about: &'static str,
    judge: fn(&Facts) -> Vec<Finding>,
}

/// All of them, in the order in which they are told.
const CHECKS: &[Check] = &[
    Check {
        name: "way",
        about: "Where packets to HOST go. Critical where they go nowhere; unknown where they go past this daemon.",
        judge: checks::way,
    },
    Check { name: "card", about: "Whether the card has a carrier. Critical without it.", judge: checks::card },
    Check {
        name: "layers",
        about: "Whether this host protects anything at all. Critical where a laboratory switched layers off.",
        judge: checks::layers,
    },
    Check {
        name: "own-certificate",
        about: "This host's certificate. Critical where it is over or revoked: then nobody answers.",
        judge: checks::own_certificate,
    },
    Check {
        name: "clock",
        about: "This host's clock, and how far that of HOST was from it in its last handshake. A warning \
                beyond a minute.",
        judge: checks::clock,
    },
    Check {
        name: "association",
        about: "The sealed association with HOST. A warning while a handshake is under way.",
        judge: checks::association,
    },
    Check {
        name: "key",
        about: "In mode sarp the key of HOST, and whether distributors answer. Critical without a key.",
        judge: checks::key,
    },
    Check {
        name: "list",
        about: "Legacy list, exceptions and management machines: a warning where one has HOST spoken to in clear.",
        judge: checks::list,
    },
    Check {
        name: "clear",
        about: "Frames of HOST in clear. Critical where the mode in force drops them, a warning where it lets them in.",
        judge: checks::clear,
    },
    Check {
        name: "refused",
        about: "Handshakes and frames of HOST that were refused here, with the words of the check: certificate over, \
                not yet valid, revoked, of another authority, without this address, another site's key, weaker \
                than required.",
        judge: refusals::refused,
    },
    Check {
        name: "challenge",
        about: "Whether HOST was asked to prove that its handshake is fresh, and has not yet done so. A warning.",
        judge: refusals::challenge,
    },
    Check {
        name: "answer",
        about: "Whether HOST answers at all. Critical where it does not; only HOST can tell whether it \
                refuses this host.",
        judge: refusals::answer,
    },
    Check {
        name: "mtu",
        about: "Whether packets of full size reach HOST, if it answers pings. Critical where only short ones do.",
        judge: checks::mtu,
    },
    Check {
        name: "attack",
        about: "Attacks under way in which HOST is the source or the one whose name is misused. A warning.",
        judge: checks::attack,
    },
];

/// One line of the answer.
#[derive(Debug, Serialize)]
struct Line {
    check: &'static str,
    /// What the check looks at.
    about: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

/// `ringwall why`: the exit status says how it is.
pub(crate) fn why(args: &WhyArgs) -> Result<ExitCode, Failure> {
    let found = read::facts(&args.host, &args.daemon, !args.no_probe)?;
    let told = found.into_iter().map(|facts| {
        let lines = lines(&facts);
        (facts, lines)
    });
    let told: Vec<(Facts, Vec<Line>)> = told.collect();
    let level = overall(told.iter().flat_map(|(_, lines)| lines).map(|line| line.finding.level));
    if args.json {
        let answers: Vec<_> = told.iter().map(|(facts, lines)| json(facts, lines)).collect();
        print_json(&serde_json::json!({
            "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "level": level, "answers": answers,
        }))?;
    } else {
        for (facts, lines) in &told {
            say!("{}", head(facts));
            lines.iter().for_each(|line| say!("{}", line.finding.line(line.check)));
        }
    }
    Ok(ExitCode::from(level as u8))
}

fn lines(facts: &Facts) -> Vec<Line> {
    let of = |check: &'static Check| {
        let line = |finding| Line { check: check.name, about: check.about, finding };
        (check.judge)(facts).into_iter().map(line)
    };
    let found: Vec<Line> = CHECKS.iter().flat_map(of).collect();
    if !found.is_empty() {
        return found;
    }
    let nothing = format!("nothing is known here of {}", facts.target.word());
    let finding = Finding::unknown(nothing, "give its address, so that it can be asked");
    vec![Line { check: "answer", about: "Whether anything is known of HOST.", finding }]
}

/// Who is meant, under all names.
fn head(facts: &Facts) -> String {
    let target = &facts.target;
    let ips = target.ips.iter().map(ToString::to_string);
    let names = target.name.iter().cloned().chain(ips).chain(target.macs.iter().cloned());
    let mut names: Vec<String> = names.collect();
    if names.is_empty() {
        names.push(target.asked.clone());
    }
    format!("{} and {}", facts.status.interface, names.join(", "))
}

fn json(facts: &Facts, lines: &[Line]) -> serde_json::Value {
    let target = &facts.target;
    serde_json::json!({
        "interface": facts.status.interface,
        "mode": facts.status.mode,
        "host": { "asked": target.asked, "name": target.name, "macs": target.macs, "addresses": target.ips },
        "asked_over_the_network": facts.is_tried,
        "findings": lines,
    })
}
