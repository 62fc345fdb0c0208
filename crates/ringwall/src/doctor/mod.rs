//! `ringwall doctor`: looks at what is around a daemon, changes nothing, and says what to do
//! (docs/decisions/0086-a-doctor.md).
//!
//! - `facts.rs`: what is there, found without a daemon and without root as far as that goes;
//!   `read.rs`: how it is found.
//! - `machine.rs` and `interface.rs`: checks, each a function from facts to a finding. [`CHECKS`]
//!   is their list, and
//!   docs/doctor.md is made from it.

mod facts;
mod interface;
mod machine;
mod read;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::client::print_json;
use crate::failure::Failure;
use crate::finding::{Finding, overall};
use crate::output::say;
use facts::{Guarded, Machine};

/// What the JSON is called, and its version, which changes when a field goes or means something
/// else.
const SCHEMA: &str = "ringwall-doctor";
const SCHEMA_VERSION: u32 = 1;

/// Options of `ringwall doctor`
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Looks at the interface of this configuration; without it at those of all files in
    /// /etc/ringwall.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// What a check looks at.
#[derive(Clone, Copy)]
enum Of {
    Machine(fn(&Machine) -> Finding),
    Interface(fn(&Machine, &Guarded) -> Finding),
}

/// One check.
struct Check {
    name: &'static str,
    /// What it looks at, and when it is not good: for the manual.
    about: &'static str,
    of: Of,
}

/// All of them, in the order in which they are told.
const CHECKS: &[Check] = &[
    Check {
        name: "kernel",
        about: "The kernel's version. Critical below Linux 5.16; a warning where in-place needs a newer one.",
        of: Of::Machine(machine::kernel),
    },
    Check {
        name: "tun",
        about: "/dev/net/tun. Critical without it: no inner device can be made.",
        of: Of::Machine(machine::tun),
    },
    Check {
        name: "landlock",
        about: "Whether the kernel has Landlock, the last fence of the sandbox. A warning without it.",
        of: Of::Machine(machine::landlock),
    },
    Check {
        name: "tools",
        about: "`nft`, `ip` and `tc`. Critical without `nft` or `ip`; a warning without `tc`, which in-place needs.",
        of: Of::Machine(machine::tools),
    },
    Check {
        name: "optmem",
        about: "net.core.optmem_max before Linux 6.7: room for the checks that the kernel makes. \
                A warning below 20480.",
        of: Of::Machine(machine::optmem),
    },
    Check {
        name: "account",
        about: "The account `ringwall` that daemons become. A warning without it: they take a number that has no name.",
        of: Of::Machine(machine::account),
    },
    Check {
        name: "clock",
        about: "The clock. Critical before this program was written; a warning where nobody says that it is right.",
        of: Of::Machine(machine::clock),
    },
    Check {
        name: "configuration",
        about: "The file. Critical where it has a mistake; a warning for what is allowed and unwise.",
        of: Of::Interface(interface::configuration),
    },
    Check {
        name: "card",
        about: "Whether the interface is there, has a carrier, and belongs to no bridge or bond.",
        of: Of::Interface(interface::card),
    },
    Check {
        name: "xdp",
        about: "Another XDP program at the card. A warning: it sees frames before Ringwall, and in-place is refused.",
        of: Of::Interface(interface::xdp),
    },
    Check {
        name: "mtu",
        about: "The guarded interface's MTU. Critical where somebody raised it: what is too long is lost silently.",
        of: Of::Interface(interface::mtu),
    },
    Check {
        name: "network-manager",
        about: "NetworkManager and systemd-networkd: whether the drop-ins are there that keep them off our devices, and \
                whether NetworkManager can use the interface after a restart.",
        of: Of::Interface(interface::network_manager),
    },
    Check {
        name: "identity",
        about: "This host's certificate. Critical when it is over or ends within a day; a warning \
                within 30 days, or a third of its time.",
        of: Of::Interface(interface::identity),
    },
    Check {
        name: "authority",
        about: "The certificate of the site's authority. Critical within 30 days of its end; a warning within 180.",
        of: Of::Interface(interface::authority),
    },
    Check {
        name: "site-key",
        about: "The key that the site shares. Critical when it is over; a warning where it has an end \
                and this host has no later one.",
        of: Of::Interface(interface::site_key),
    },
    Check {
        name: "unit",
        about: "Whether the interface is guarded after the next boot. A warning where no unit is enabled for it.",
        of: Of::Interface(interface::unit),
    },
    Check {
        name: "daemon",
        about: "The daemon. Critical where it gives no answer and the interface is taken; its verdict otherwise.",
        of: Of::Interface(interface::daemon),
    },
    Check {
        name: "peers",
        about: "Hosts that speak in clear, and what mode enforce would drop of them. A warning while there are any.",
        of: Of::Interface(interface::peers),
    },
    Check {
        name: "disk",
        about: "Room for what a daemon keeps. Critical below 1 MiB, a warning below 50 MiB.",
        of: Of::Interface(interface::disk),
    },
];

/// One line of the answer.
#[derive(Debug, Serialize)]
struct Line {
    check: &'static str,
    /// What the check looks at.
    about: &'static str,
    /// None of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    #[serde(flatten)]
    finding: Finding,
}

/// `ringwall doctor`: the exit status says how it is.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let machine = read::machine();
    let guarded = read::guarded(args.config.as_deref());
    let lines = lines(&machine, &guarded);
    let level = overall(lines.iter().map(|line| line.finding.level));
    if args.json {
        print_json(&serde_json::json!({
            "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "level": level, "checks": lines,
        }))?;
    } else {
        lines.iter().for_each(print);
        if guarded.is_empty() {
            say!("no interface: there is no configuration in /etc/ringwall; name one with --config");
        }
    }
    Ok(ExitCode::from(level as u8))
}

fn lines(machine: &Machine, guarded: &[Guarded]) -> Vec<Line> {
    let line = |check: &Check, interface: Option<&Guarded>, finding: Finding| Line {
        check: check.name,
        about: check.about,
        interface: interface.map(|guarded| guarded.name.clone()),
        finding,
    };
    let mut lines = Vec::new();
    for check in CHECKS {
        if let Of::Machine(judge) = check.of {
            lines.push(line(check, None, judge(machine)));
        }
    }
    for one in guarded {
        for check in CHECKS {
            if let Of::Interface(judge) = check.of {
                lines.push(line(check, Some(one), judge(machine, one)));
            }
        }
    }
    lines
}

fn print(line: &Line) {
    let place = line.interface.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    say!("{}", line.finding.line(&format!("{}{place}", line.check)));
}
