//! The closed list of kinds, each with its sentence and what to do.

use std::fmt::Write;

/// How bad it is, in the words and numbers of syslog (RFC 5424, section 6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Somebody tries, and a protected host acts against the rules.
    Error = 3,
    /// Somebody tries.
    Warning = 4,
}

impl Severity {
    /// The severity as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

macro_rules! kinds {
    ($($variant:ident, $word:literal, $severity:ident, $sentence:literal, $advice:literal;)+) => {
        /// What kind of attack it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $(#[doc = $sentence] $variant,)+
        }

        impl Kind {
            /// Every kind, in the order of the documentation.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant,)+];

            /// The kind as one word, for programs.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Kind::$variant => $word,)+ }
            }

            /// How bad it is.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Kind::$variant => Severity::$severity,)+ }
            }

            /// What happens, with places for source, claim and target.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(Kind::$variant => $sentence,)+ }
            }

            /// What a person should do.
            #[must_use]
            pub fn advice(self) -> &'static str {
                match self { $(Kind::$variant => $advice,)+ }
            }
        }
    };
}

kinds! {
    ArpSpoofing, "arp-spoofing", Warning,
        "{source} says by ARP that it has the address of {claimed}; told to {target}.",
        "Nobody here believed it. Find the switch port of the source and disconnect it; hosts \
         that are not guarded may have been deceived.";
    NdSpoofing, "nd-spoofing", Warning,
        "{source} says by IPv6 neighbour discovery that it has the address of {claimed}; told to {target}.",
        "Nobody here believed it. Find the switch port of the source and disconnect it; hosts \
         that are not guarded may have been deceived.";
    RogueDhcp, "rogue-dhcp", Warning,
        "{source} answers as a DHCP server ({claimed}) that this site does not know; told to {target}.",
        "Disconnect it. If it is your server, give its certificate the role dhcp and set dhcp.server on it.";
    RogueRouter, "rogue-router", Warning,
        "{source} advertises itself as an IPv6 router ({claimed}) without being one of this site; told to {target}.",
        "Disconnect it. If it is your router, enrol it and give its certificate the role router.";
    ClonedMac, "cloned-hardware-address", Warning,
        "{source} sends in clear with the hardware address of {claimed}; told to {target}.",
        "Look on the switch for a second port with this address. If the host itself was taken \
         back to clear, `ringwall host forget` it.";
    IdentityTwice, "identity-in-use-twice", Error,
        "{source} speaks for an address of {claimed}, which another host has; told to {target}.",
        "Two enrolled hosts use one address, one forwards for the other without the role router, or \
         one of them lies: see `ringwall peers` on both, and revoke the one that should not.";
    Replay, "replay", Warning,
        "{source} repeats frames that were delivered before, in the name of {claimed}; told to {target}.",
        "Nothing was believed twice. Look for a loop between switches first, then for the machine that records.";
    ForgedSealed, "forged-sealed-frames", Warning,
        "{source} sends sealed frames that nobody of the site has made, in the name of {claimed}; told to {target}.",
        "All were dropped. Find the switch port; the source address may be forged, too. A faulty \
         link corrupts few frames, never many.";
    SpoofedSource, "spoofed-source", Warning,
        "{source} sends packets with a source address that is not its own, {claimed}; told to {target}.",
        "All were dropped. Find who sends them by the hardware address; at a gateway that is the one of \
         the last router. A second, unguarded card of the same host looks the same.";
    Evasion, "evasion", Warning,
        "{source} sends overlapping parts with different bytes as {claimed}, so that two readers \
         read differently; told to {target}.",
        "The receiver and your detection system read the same, or nothing. Treat the source as an attacker.";
    ConnectionFlood, "connection-flood", Warning,
        "{source} opens more connections through the gateway than one host may hold, as {claimed}; told to {target}.",
        "Its new connections are refused, those of others are not. `ringwall gate flows --address` \
         lists what it holds; block it in front of the gateway. Where many hosts stand behind the \
         address, lower shares.flows.";
    SynFlood, "syn-flood", Warning,
        "{source} asks {target} for connections in the name of addresses that have not shown that they receive.",
        "Hosts that answer the gateway's question get through, all others are refused. Find who sends \
         by the hardware address, which is that of the last router; who provides that line can filter.";
    DhcpSpoofing, "dhcp-spoofing", Warning,
        "{source} sends DHCP messages in the name of another client or relay, {claimed}; told to {target}.",
        "No lease was given or taken back for them. Find the switch port of the source. A relay \
         of yours looks the same: mode sarp lists it in dhcp.relays, and mode cll carries none. So does a \
         repeater that changes the hardware address of its clients.";
    Flood, "flood", Warning,
        "{source} sends messages faster than an honest host does, in the name of {claimed}; told to {target}.",
        "They are dropped by cheap checks, and known hosts are served. Find the switch port by the hardware \
         address; where addresses are made up, limit how many a port may have.";
}

/// The page about all kinds.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Attacks, kind by kind\n\n\
         Made by `cargo run -p bump --example records`; a test compares. How they are found, and where they are\n\
         told, is in [the manual](manual/attacks.md).\n\n\
         | kind | severity | what is said | what to do |\n|---|---|---|---|\n",
    );
    for kind in Kind::ALL {
        let (word, severity) = (kind.word(), kind.severity().word());
        // Writing to a string does not fail.
        let _ = writeln!(page, "| `{word}` | {severity} | {} | {} |", kind.sentence(), kind.advice());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_documents_is_this_one() {
        let there = include_str!("../../../../docs/records.md");
        assert!(there == page(), "cargo run -p bump --example records > docs/records.md");
    }

    #[test]
    fn words_are_unique_and_no_advice_is_to_enrol_an_attacker() {
        let mut words: Vec<_> = Kind::ALL.iter().map(|kind| kind.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Kind::ALL.len());
        for kind in [Kind::ArpSpoofing, Kind::NdSpoofing, Kind::ClonedMac, Kind::ForgedSealed] {
            assert!(!kind.advice().to_lowercase().contains("enrol"), "{}", kind.word());
        }
    }
}
