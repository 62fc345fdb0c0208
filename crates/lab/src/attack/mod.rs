//! The attackers: real tools where there is one, small scapy programs where there is none.
//!
//! Each family has a file, each attack a row in the [`catalogue`] and a function that strikes and says what it found. Whether that
//! counts as success or as blocked is decided in [`scene`], by one rule for all.

mod belief;
mod catalogue;
mod cloning;
mod conflict;
mod dhcp;
pub mod distributor;
mod eavesdropping;
pub mod exhaustion;
mod flipping;
mod former_key;
mod group;
mod handshake;
mod injection;
mod insider;
mod ipv6;
mod lease;
mod path;
mod poisoning;
mod ready;
mod replay;
pub mod scene;
mod signed;
mod signed_group;
mod stolen_key;
mod strangers;
mod switching;
mod told;

use scene::{Finding, Outcome, Scene};

use crate::failure::Failure;
use crate::guard::{DHCP_CLIENT, DHCP_SERVER, DISTRIBUTOR, Guard, ROUTER};
use crate::net::{Forwarding, process};

/// The interpreter for which Debian packages scapy.
const PYTHON: &str = "/usr/bin/python3";

/// An attack and the setting it needs.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// Its number in the catalogue of attacks.
    pub number: u16,
    /// What is attempted.
    pub name: &'static str,
    /// The programs that carry it out.
    pub tools: &'static [&'static str],
    /// How the bridge forwards.
    pub forwarding: Forwarding,
    /// Layers that are switched off for it under [`Guard::Weakened`]; none when it works on a bare LAN.
    pub weaken: &'static [&'static str],
    /// Lines of section `[cll]` under [`Guard::Weakened`] alone: layers that an operator may move as well.
    pub weakened_cll_lines: &'static str,
    /// Whether hosts of CLL authenticate their payloads and leave them readable.
    pub readable: bool,
    /// Whose wire, inner device and counters are watched.
    pub victim: &'static str,
    /// Which two hosts ping each other meanwhile.
    pub honest: (&'static str, &'static str),
    /// Drop reasons that may stop it, of which at least one must have risen; empty for an attack that only listens.
    pub reasons: &'static [&'static str],
    /// Guards under which no attack record can have the attacker's hardware address, and why. Under
    /// all others one must.
    pub anonymous: &'static [(Guard, &'static str)],
    /// The guards that have to stop it.
    pub guards: &'static [Guard],
    /// The guards under which it is not tried, and why.
    pub untried: &'static [Untried],
    /// Further lines of section `[sarp]` under [`Guard::Sarp`].
    pub sarp_lines: &'static str,
    /// What the LAN has beside hosts with fixed addresses.
    pub network: Network,
    /// Carries it out.
    pub strike: fn(&mut Scene<'_>) -> Result<Finding, Failure>,
}

/// What a LAN has beside hosts with fixed addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    Plain,
    /// A DHCP server, and a client without another address.
    Leases,
    /// Hosts have IPv6, and a router is among them.
    Ipv6,
}

/// Why an attack is not tried under a guard.
#[derive(Clone, Copy, Debug)]
pub struct Untried {
    /// Under which guard.
    pub guard: Guard,
    /// What the row says instead.
    pub outcome: Outcome,
    /// The reason, as evidence.
    pub because: &'static str,
}

impl Untried {
    const fn does_not_apply(guard: Guard, because: &'static str) -> Untried {
        Untried { guard, outcome: Outcome::DoesNotApply, because }
    }

    const fn not_testable(guard: Guard, because: &'static str) -> Untried {
        Untried { guard, outcome: Outcome::NotTestable, because }
    }
}

/// All attacks, by number.
pub fn all() -> impl Iterator<Item = &'static Attack> {
    catalogue::CHAPTERS.iter().copied().flatten()
}

/// What most attacks share: a switch, victim a, who talks to b, and a bare LAN to compare with.
const COMMON: Attack = Attack {
    number: 0,
    name: "",
    tools: &[],
    forwarding: Forwarding::Switch,
    weaken: &[],
    weakened_cll_lines: "",
    readable: false,
    victim: "a",
    honest: ("a", "b"),
    reasons: &[],
    anonymous: &[],
    guards: &[Guard::Cll],
    untried: &[],
    sarp_lines: "",
    network: Network::Plain,
    strike: poisoning::unsolicited_reply,
};

/// What attacks on DHCP share: they aim at the server unless they say otherwise.
const LEASES: Attack =
    Attack { victim: DHCP_SERVER, honest: (DHCP_SERVER, "b"), guards: BOTH, network: Network::Leases, ..COMMON };

/// What attacks on IPv6 share.
const WITH_IPV6: Attack = Attack { network: Network::Ipv6, reasons: &["unsealed"], ..COMMON };

/// Guards that stop what is wrong in ARP itself, and in DHCP.
const BOTH: &[Guard] = &[Guard::Cll, Guard::Sarp];

impl Attack {
    /// With what it is compared: the bare LAN, or Ringwall without the layer that the attack is about.
    #[must_use]
    pub fn unguarded(&self) -> Guard {
        let is_weakened = !self.weaken.is_empty() || !self.weakened_cll_lines.is_empty();
        if is_weakened { Guard::Weakened } else { Guard::None }
    }

    /// Under what it is run.
    pub fn plays(&self) -> impl Iterator<Item = Guard> + use<> {
        std::iter::once(self.unguarded()).chain(self.guards.iter().copied())
    }

    /// Who is on the LAN, the attacker too; a key distributor comes to it under [`Guard::Sarp`].
    #[must_use]
    pub fn hosts(&self) -> &'static [&'static str] {
        match self.network {
            Network::Ipv6 => &["a", "b", ROUTER, "m"],
            Network::Leases => &["b", DHCP_SERVER, DHCP_CLIENT, "m"],
            Network::Plain if self.has_insider() => &["a", "b", "i", "m"],
            Network::Plain => &["a", "b", "c", "m"],
        }
    }

    /// Hosts whose daemon runs: the honest ones, and the insider's where it has to seal what he says.
    #[must_use]
    pub fn guarded(&self, guard: Guard) -> &'static [&'static str] {
        match (self.network, self.has_insider()) {
            (Network::Ipv6, _) => &["a", "b", ROUTER],
            (Network::Leases, _) if guard == Guard::Sarp => &[DISTRIBUTOR, "b", DHCP_SERVER, DHCP_CLIENT],
            (Network::Leases, _) => &["b", DHCP_SERVER, DHCP_CLIENT],
            (Network::Plain, false) if self.signs_arp(guard) => &[DISTRIBUTOR, "a", "b", "c"],
            (Network::Plain, true) if guard == Guard::Sarp => &[DISTRIBUTOR, "a", "b"],
            (Network::Plain, false) => &["a", "b", "c"],
            (Network::Plain, true) => &["a", "b", "i"],
        }
    }

    /// Whether hosts sign ARP under `guard`: where it is whole, and where a layer of nothing else is switched off.
    #[must_use]
    pub fn signs_arp(&self, guard: Guard) -> bool {
        guard == Guard::Sarp || guard == Guard::Weakened && self.guards == [Guard::Sarp]
    }

    /// Whether the attacker is an enrolled host.
    #[must_use]
    pub fn has_insider(&self) -> bool {
        matches!(self.number, 13 | 56)
    }

    /// Why nobody can be told who it was under `guard`; none where somebody must be.
    #[must_use]
    pub fn anonymity(&self, guard: Guard) -> Option<&'static str> {
        self.anonymous.iter().find(|(under, _)| *under == guard).map(|(_, why)| *why)
    }

    /// Whether it sends as fast as it can, or is about how much a machine bears: nothing else may be
    /// loaded by it, or load it.
    #[must_use]
    pub fn is_flood(&self) -> bool {
        matches!(self.number, 19 | 34 | 39 | 50 | 58)
    }

    /// Whether the attacker sits on the wire of host b.
    #[must_use]
    pub fn is_on_path(&self) -> bool {
        (43..=45).contains(&self.number)
    }

    /// The first of its tools, or of those that watch, that is not installed.
    #[must_use]
    pub fn missing_tool(&self) -> Option<&'static str> {
        let watching = ["tcpdump", "ping", "nsenter", "ethtool"];
        let serving: &[&str] = match self.network {
            Network::Plain => &[],
            Network::Leases => &["dnsmasq", "udhcpc"],
            Network::Ipv6 => &["dnsmasq", "dhclient"],
        };
        self.tools.iter().chain(&watching).chain(serving).copied().find(|tool| !available(tool))
    }
}

fn available(tool: &str) -> bool {
    match tool {
        "scapy" => {
            let mut probe = std::process::Command::new(PYTHON);
            probe.args(["-c", "import importlib.util as u; exit(u.find_spec('scapy') is None)"]);
            process::ask(probe, &[]).is_ok_and(|answer| answer.status.success())
        }
        // Our own.
        "impairing link" => true,
        program => process::installed(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_every_attack_can_be_judged() {
        assert!(all().zip(all().skip(1)).all(|(one, next)| one.number <= next.number));
        for attack in all() {
            assert!(!attack.tools.is_empty() && !attack.name.is_empty(), "{}", attack.number);
            assert!([46, 50].contains(&attack.number) || !attack.reasons.is_empty(), "{} only listens?", attack.number);
        }
    }

    #[test]
    fn the_attacks_of_the_foundation_are_all_here() {
        let under = |guard: Guard| -> Vec<u16> {
            all().filter(|attack| attack.guards.contains(&guard)).map(|attack| attack.number).collect()
        };
        assert!((1..=14).chain(16..=58).all(|number| under(Guard::Cll).contains(&number)));
        let sarp = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17];
        assert!(sarp.iter().copied().chain(19..=27).chain([59]).all(|number| under(Guard::Sarp).contains(&number)));
    }
}
