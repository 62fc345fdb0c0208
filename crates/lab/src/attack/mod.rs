//! The attackers: real tools where there is one, small scapy programs where there is none.
//!
//! Each family has a file, each attack a row in [`ALL`] and a function that strikes and says what it found. Whether that
//! counts as success or as blocked is decided in [`scene`], by one rule for all.

mod belief;
mod cloning;
mod conflict;
mod dhcp;
pub mod distributor;
mod eavesdropping;
pub mod exhaustion;
mod flipping;
mod group;
mod handshake;
mod injection;
mod insider;
mod lease;
mod poisoning;
mod replay;
pub mod scene;
mod signed;

use scene::{Finding, Scene};

use crate::failure::Failure;
use crate::guard::{DHCP_CLIENT, DHCP_SERVER, DISTRIBUTOR, Guard};
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
    /// The guards that have to stop it.
    pub guards: &'static [Guard],
    /// Further lines of section `[sarp]` under [`Guard::Sarp`].
    pub sarp_lines: &'static str,
    /// Whether the LAN has a DHCP server, and a client without another address.
    pub dhcp: bool,
    /// Carries it out.
    pub strike: fn(&mut Scene<'_>) -> Result<Finding, Failure>,
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
    guards: &[Guard::Cll],
    sarp_lines: "",
    dhcp: false,
    strike: poisoning::unsolicited_reply,
};

/// What attacks on DHCP share: they aim at the server unless they say otherwise.
const LEASES: Attack =
    Attack { victim: DHCP_SERVER, honest: (DHCP_SERVER, "b"), guards: &[Guard::Sarp], dhcp: true, ..COMMON };

/// Guards that stop what is wrong in ARP itself.
const BOTH: &[Guard] = &[Guard::Cll, Guard::Sarp];

/// All attacks, by number.
pub const ALL: &[Attack] = &[
    Attack {
        number: 1,
        name: "unsolicited ARP reply",
        tools: &["arpspoof"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::unsolicited_reply,
        ..COMMON
    },
    Attack {
        number: 2,
        name: "two-way man in the middle",
        tools: &["ettercap"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::man_in_the_middle,
        ..COMMON
    },
    Attack {
        number: 3,
        name: "man in the middle with discovery",
        tools: &["bettercap"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::discovery_and_poisoning,
        ..COMMON
    },
    Attack {
        number: 4,
        name: "spoofed ARP request",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp", "answered"],
        strike: poisoning::spoofed_request,
        ..COMMON
    },
    Attack {
        number: 5,
        name: "resolution triggered, then raced",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::triggered_race,
        ..COMMON
    },
    Attack {
        number: 6,
        name: "race for the genuine answer",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::race_for_the_answer,
        ..COMMON
    },
    Attack {
        number: 7,
        name: "gratuitous ARP takeover",
        tools: &["arping"],
        guards: BOTH,
        reasons: &["plain-arp", "arp-target"],
        strike: poisoning::gratuitous_takeover,
        ..COMMON
    },
    Attack {
        number: 8,
        name: "address denied to who probes for it",
        tools: &["arping", "scapy"],
        guards: BOTH,
        reasons: &["plain-arp", "arp-conflict"],
        strike: conflict::denied_address,
        ..COMMON
    },
    Attack {
        number: 9,
        name: "fake address conflict",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp", "arp-conflict"],
        strike: conflict::fake_conflict,
        ..COMMON
    },
    Attack {
        number: 10,
        name: "Ethernet source differs from ARP sender",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp", "arp-source"],
        strike: poisoning::other_ethernet_source,
        ..COMMON
    },
    Attack {
        number: 11,
        name: "replayed handshake request and reply",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weaken: &["freshness", "promotion"],
        // The old request only earns a challenge, which b never asked for either; what is dropped is dropped at b.
        victim: "b",
        reasons: &["handshake-unasked"],
        strike: handshake::replayed_handshake,
        ..COMMON
    },
    Attack {
        number: 11,
        name: "replayed signed answer",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        honest: ("a", "c"),
        // Shows what the stamp is worth without a nonce.
        sarp_lines: "sign_requests = false",
        guards: &[Guard::Sarp],
        reasons: &["sarp-stale"],
        strike: signed::replayed_answer,
        ..COMMON
    },
    Attack {
        number: 12,
        name: "replay after a host left, its MAC cloned",
        tools: &["tcpreplay", "ip"],
        forwarding: Forwarding::Hub,
        honest: ("a", "c"),
        reasons: &["replayed", "too-old", "handshake-stale", "handshake-unasked"],
        strike: cloning::replay_of_the_departed,
        ..COMMON
    },
    Attack {
        number: 12,
        name: "the same, unheard answer, signed requests",
        tools: &["tcpreplay", "ip"],
        forwarding: Forwarding::Hub,
        honest: ("a", "c"),
        guards: &[Guard::Sarp],
        reasons: &["sarp-nonce"],
        strike: signed::unheard_answer_at_once,
        ..COMMON
    },
    Attack {
        number: 12,
        name: "the same, unheard answer, window over",
        tools: &["tcpreplay", "ip"],
        forwarding: Forwarding::Hub,
        honest: ("a", "c"),
        sarp_lines: "sign_requests = false\nwindow_s = 2",
        guards: &[Guard::Sarp],
        reasons: &["sarp-stale"],
        strike: signed::unheard_answer_later,
        ..COMMON
    },
    Attack {
        number: 13,
        name: "enrolled insider claims another's address",
        tools: &["scapy"],
        weaken: &["cross-layer"],
        reasons: &["inner-source"],
        strike: insider::claims_another_address,
        ..COMMON
    },
    Attack {
        number: 13,
        name: "enrolled insider signs a false hardware address",
        tools: &["scapy"],
        // The tool does not repeat the question's nonce, and what stops an insider who does is the record.
        sarp_lines: "sign_requests = false",
        guards: &[Guard::Sarp],
        reasons: &["sarp-mac"],
        strike: signed::false_hardware_address,
        ..COMMON
    },
    Attack {
        number: 14,
        name: "answer for an address beyond the LAN",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::proxy_hijack,
        ..COMMON
    },
    Attack {
        number: 16,
        name: "malformed trailer of S-ARP",
        tools: &["scapy"],
        guards: &[Guard::Sarp],
        reasons: &["sarp-malformed"],
        strike: signed::malformed,
        ..COMMON
    },
    Attack {
        number: 17,
        name: "flood of made-up hosts",
        tools: &["scapy"],
        guards: &[Guard::Sarp],
        reasons: &["sarp-unasked", "sarp-budget"],
        strike: signed::flood_of_strangers,
        ..COMMON
    },
    Attack {
        number: 19,
        name: "starvation by made-up DHCP clients",
        tools: &["scapy"],
        reasons: &["dhcp-chaddr"],
        strike: dhcp::starvation,
        ..LEASES
    },
    Attack {
        number: 20,
        name: "starvation, each client with its own frames",
        tools: &["scapy"],
        reasons: &["dhcp-unsigned"],
        strike: dhcp::starvation_in_pairs,
        ..LEASES
    },
    Attack {
        number: 21,
        name: "rogue DHCP server",
        tools: &["dnsmasq"],
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unsigned"],
        strike: belief::rogue_server,
        ..LEASES
    },
    Attack {
        number: 22,
        name: "release of another's lease",
        tools: &["scapy"],
        reasons: &["dhcp-unsigned"],
        strike: dhcp::foreign_release,
        ..LEASES
    },
    Attack {
        number: 23,
        name: "flood of DECLINE in another's name",
        tools: &["scapy"],
        reasons: &["dhcp-unsigned"],
        strike: dhcp::foreign_decline,
        ..LEASES
    },
    Attack {
        number: 24,
        name: "injected NAK",
        tools: &["scapy"],
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unsigned"],
        strike: belief::injected_refusal,
        ..LEASES
    },
    Attack {
        number: 25,
        name: "replayed REQUEST of a host that left",
        tools: &["tcpreplay"],
        reasons: &["dhcp-stale"],
        strike: dhcp::replayed_request,
        ..LEASES
    },
    Attack {
        number: 25,
        name: "replayed ACK with a former router",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unasked"],
        strike: belief::replayed_grant,
        ..LEASES
    },
    Attack {
        number: 26,
        name: "injected ACK with router and DNS server",
        tools: &["scapy"],
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unsigned"],
        strike: belief::injected_options,
        ..LEASES
    },
    Attack {
        number: 27,
        name: "made-up relay agent and circuit",
        tools: &["scapy"],
        reasons: &["dhcp-relay"],
        strike: dhcp::forged_relay,
        ..LEASES
    },
    Attack {
        number: 41,
        name: "injected IP with a spoofed source",
        tools: &["hping3", "scapy"],
        forwarding: Forwarding::Hub,
        reasons: &["unsealed"],
        strike: injection::spoofed_source,
        ..COMMON
    },
    Attack {
        number: 42,
        name: "replayed frame",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        reasons: &["replayed", "too-old"],
        strike: replay::replayed_frame,
        ..COMMON
    },
    Attack {
        number: 44,
        name: "bit flips in header, ciphertext and tag",
        tools: &["impairing link"],
        reasons: &["bad-tag", "bad-spin"],
        strike: flipping::flipped_bits,
        ..COMMON
    },
    Attack {
        number: 46,
        name: "eavesdropping for a known payload",
        tools: &["tcpdump"],
        forwarding: Forwarding::Hub,
        strike: eavesdropping::known_payload,
        ..COMMON
    },
    Attack {
        number: 47,
        name: "reflection to the sender",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        reasons: &["unknown-index", "wrong-peer", "bad-tag", "bad-spin"],
        strike: replay::reflection,
        ..COMMON
    },
    Attack {
        number: 48,
        name: "splice into another association",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        victim: "c",
        reasons: &["unknown-index", "wrong-peer", "bad-tag", "bad-spin"],
        strike: replay::splice,
        ..COMMON
    },
    Attack {
        number: 49,
        name: "MAC cloning steals the switch's entry",
        tools: &["ip", "scapy"],
        honest: ("b", "c"),
        reasons: &["own-source"],
        strike: cloning::stolen_switch_entry,
        ..COMMON
    },
    Attack {
        number: 53,
        name: "forged service discovery (mDNS)",
        // The forger sends in b's name, and a switch would give him b's frames as well.
        forwarding: Forwarding::Hub,
        tools: &["scapy"],
        reasons: &["unsealed"],
        strike: group::forged_discovery,
        ..COMMON
    },
    Attack {
        number: 54,
        name: "smurf: echo to all in another's name",
        tools: &["hping3"],
        reasons: &["unsealed"],
        strike: group::smurf,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "a: flood with a wrong receiver index",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weakened_cll_lines: "layers = \"none\"",
        reasons: &["unknown-index"],
        strike: exhaustion::wrong_index,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "b: flood with a wrong nonce",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weakened_cll_lines: "layers = \"none\"",
        reasons: &["bad-spin"],
        strike: exhaustion::wrong_nonce,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "c: flood with right nonces and a wrong tag",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        // Who heard a nonce is behind the frame that it was of; without the window that does not matter.
        weaken: &["replay-window"],
        reasons: &["replayed", "too-old"],
        strike: exhaustion::wrong_tag,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "d: flood of handshakes from made-up hosts",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        // Where a stranger's time is believed as well; otherwise a challenge takes the place of the missing tag.
        weaken: &["site-mac", "freshness"],
        reasons: &["handshake-site-mac"],
        strike: exhaustion::handshake_flood,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "e: flood of a replayed handshake request",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weaken: &["freshness"],
        // Some are answered, by a challenge that is cheap and that b never asked for.
        reasons: &["handshake-stale", "handshake-budget", "answered"],
        strike: exhaustion::handshake_replay,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "f: flood of forged signatures to all",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weaken: &["site-mac"],
        reasons: &["group-tag"],
        strike: exhaustion::group_flood,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "g: sequence numbers burnt",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weaken: &["tag"],
        readable: true,
        reasons: &["bad-spin"],
        strike: exhaustion::burnt_numbers,
        ..COMMON
    },
    Attack {
        number: 59,
        name: "a: key distributor's answers replayed and forged",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        guards: &[Guard::Sarp],
        weaken: &["reply-check"],
        reasons: &["sarp-unasked"],
        strike: distributor::recorded_answers,
        ..COMMON
    },
    Attack {
        number: 59,
        name: "b: key distributor flooded with questions",
        tools: &["tcpreplay"],
        guards: &[Guard::Sarp],
        weaken: &["site-mac"],
        victim: DISTRIBUTOR,
        reasons: &["sarp-request-check"],
        strike: distributor::flood_of_questions,
        ..COMMON
    },
    Attack {
        number: 59,
        name: "c: key distributor cut off, then poisoning",
        tools: &["scapy"],
        guards: &[Guard::Sarp],
        reasons: &["plain-arp", "answered"],
        strike: distributor::cut_off,
        ..COMMON
    },
];

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
        match (self.dhcp, self.has_insider()) {
            (true, _) => &["b", DHCP_SERVER, DHCP_CLIENT, "m"],
            (false, true) => &["a", "b", "i", "m"],
            (false, false) => &["a", "b", "c", "m"],
        }
    }

    /// Hosts whose daemon runs: the honest ones, and the insider's where it has to seal what he says.
    #[must_use]
    pub fn guarded(&self, guard: Guard) -> &'static [&'static str] {
        match (self.has_insider(), guard) {
            _ if self.dhcp => &[DISTRIBUTOR, "b", DHCP_SERVER, DHCP_CLIENT],
            (false, guard) if self.signs_arp(guard) => &[DISTRIBUTOR, "a", "b", "c"],
            (true, Guard::Sarp) => &[DISTRIBUTOR, "a", "b"],
            (false, _) => &["a", "b", "c"],
            (true, _) => &["a", "b", "i"],
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
        self.number == 13
    }

    /// Whether the attacker sits on the wire of host b.
    #[must_use]
    pub fn is_on_path(&self) -> bool {
        self.number == 44
    }

    /// The first of its tools, or of those that watch, that is not installed.
    #[must_use]
    pub fn missing_tool(&self) -> Option<&'static str> {
        let watching = ["tcpdump", "ping", "nsenter", "ethtool"];
        let serving = self.dhcp.then_some(["dnsmasq", "udhcpc"]).into_iter().flatten();
        self.tools.iter().copied().chain(watching).chain(serving).find(|tool| !available(tool))
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
        assert!(ALL.windows(2).all(|pair| pair[0].number <= pair[1].number));
        for attack in ALL {
            assert!(!attack.tools.is_empty() && !attack.name.is_empty(), "{}", attack.number);
            assert!(attack.number == 46 || !attack.reasons.is_empty(), "{} only listens?", attack.number);
        }
    }

    #[test]
    fn the_attacks_of_the_foundation_are_all_here() {
        let under = |guard: Guard| -> Vec<u16> {
            ALL.iter().filter(|attack| attack.guards.contains(&guard)).map(|attack| attack.number).collect()
        };
        let cll = [1, 2, 4, 7, 10, 11, 12, 13, 41, 42, 44, 46, 47, 48, 49, 53, 54, 58];
        assert!(cll.iter().all(|number| under(Guard::Cll).contains(number)));
        let sarp = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17];
        assert!(sarp.iter().copied().chain(19..=27).chain([59]).all(|number| under(Guard::Sarp).contains(&number)));
    }
}
