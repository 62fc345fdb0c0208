//! What the scrubber does, one rule for each ambiguity: its name, what it looks at, where that is written down, and what it
//! can break. The names are those of the configuration, of the counters and of the rows in `docs/scrubbing.md`.

use std::fmt;
use std::str::FromStr;

/// What a rule does when it applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Nothing; the rule is switched off.
    Off,
    /// It rewrites or drops the packet.
    #[default]
    Scrub,
    /// Besides, the flow ends for both sides.
    Sever,
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Action::Off),
            "scrub" => Ok(Action::Scrub),
            "sever" => Ok(Action::Sever),
            _ => Err("write off, scrub or sever".to_owned()),
        }
    }
}

macro_rules! rules {
    ($($variant:ident, $name:literal, $source:literal, $does:literal, $risk:literal, $paper:ident $balanced:ident $strict:ident;)+) => {
        /// One rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Rule {
            $(#[doc = $does] $variant,)+
        }

        impl Rule {
            /// Every rule, in the order of the counters.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant,)+];

            /// Its name in configuration, counters and documents.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name,)+ }
            }

            /// Where it is written down.
            #[must_use]
            pub fn source(self) -> &'static str {
                match self { $(Rule::$variant => $source,)+ }
            }

            /// What it does, in a sentence.
            #[must_use]
            pub fn does(self) -> &'static str {
                match self { $(Rule::$variant => $does,)+ }
            }

            /// What it can break: the reason to switch it off.
            #[must_use]
            pub fn risk(self) -> &'static str {
                match self { $(Rule::$variant => $risk,)+ }
            }

            /// Whether it is on in the presets `paper`, `balanced` and `strict`.
            #[must_use]
            pub fn is_on(self) -> [bool; 3] {
                match self { $(Rule::$variant => [on($paper), on($balanced), on($strict)],)+ }
            }
        }
    };
}

/// A column of the list below.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    On,
    Off,
}

use Column::{Off, On};

const fn on(column: Column) -> bool {
    matches!(column, On)
}

rules! {
    // Ethernet.                                                                                            paper balanced strict
    EthernetTypes, "ethernet-types", "IEEE 802.3, 3.2.6",
        "Drops frames whose EtherType is neither IP, ARP nor listed.",
        "Cuts whatever else the two sides speak, such as spanning tree or a plant's field bus.", Off Off On;
    EthernetEncapsulation, "ethernet-encapsulation", "RFC 1042; RFC 1122, 2.3.3; RFC 3032; RFC 2516; IEEE 802.1Q, 9",
        "Drops IP and ARP behind anything but two plain tags, such as 802.2, older tags, labels or PPPoE, unless its EtherType is \
        listed: some hosts read it, some do not.",
        "Hosts that speak IP in SNAP or PPPoE, and networks of providers and plants with labels, three tags or tags of their own.",
        Off On On;
    EthernetBroadcast, "ethernet-broadcast", "RFC 1122, 3.3.6; RFC 1812, 5.3.4",
        "Drops packets to one host in frames to all: some hosts take them, some do not.",
        "Wake-on-LAN packets that a router sends to all under the address of the one that sleeps.", Off On On;
    VlanDropEligible, "vlan-drop-eligible", "IEEE 802.1Q, 9.6",
        "Clears the bit of a customer tag that meant another order of bits once and says now what to drop first.",
        "Switches on both sides that mark what exceeds a rate.", Off Off On;
    EthernetTrailer, "ethernet-trailer", "RFC 894; IEEE 802.3, 3.2.6",
        "Cuts off what follows the packet or the payload whose length a header announces.",
        "None known: padding carries nothing.", On On On;

    // IPv4.
    Ipv4Header, "ipv4-header", "RFC 791, 3.1",
        "Drops packets whose version, header length or total length contradicts the frame.",
        "None: no host accepts them.", On On On;
    Ipv4Checksum, "ipv4-checksum", "RFC 1122, 3.2.1.2",
        "Drops packets with a wrong header checksum.",
        "None: no host accepts them.", On On On;
    Ipv4Addresses, "ipv4-addresses", "RFC 1122, 3.2.1.3; RFC 9293, 3.9.2.3",
        "Drops packets with addresses that no host can have, with a source that is the destination, and TCP to groups.",
        "Networks that use class E addresses inside.", Off On On;
    Ipv4Options, "ipv4-options", "RFC 791, 3.1; RFC 7126",
        "Takes IP options out, and drops packets with source routes or malformed options.",
        "Cuts record route and router alert between the two sides (IGMP is let through with its alert).", Off On On;
    Ipv4TypeOfService, "ipv4-type-of-service", "RFC 2474; RFC 3168",
        "Keeps the classes that are assigned and the ECN field, and clears all other values.",
        "Experimental classes of service.", On On On;
    Ipv4ReservedBit, "ipv4-reserved-bit", "RFC 791, 3.1",
        "Clears the reserved fragment bit.",
        "None known.", On On On;
    Ipv4DontFragment, "ipv4-dont-fragment", "RFC 791, 3.1; RFC 1191",
        "Clears the DF bit where the next link carries the packet whole (the paper's section IV-B1).",
        "Path MTU discovery over narrower links beyond the scrubber; packets without identification may be mixed up there.", On Off Off;
    Ipv4SmallDontFragment, "ipv4-small-dont-fragment", "RFC 791, 3.1; RFC 6864",
        "Sets the DF bit in TCP segments without data of trusted hosts, which are too small to be cut on any path.",
        "None known.", Off On On;
    Ipv4Identification, "ipv4-identification", "RFC 6864",
        "Gives packets to the untrusted side an identification that says nothing about the host.",
        "Tools that follow packets by their identification.", Off On On;
    Ipv4Fragments, "ipv4-fragments", "RFC 791, 3.2; RFC 1858; RFC 3128",
        "Reassembles fragments, old data winning, and cuts the packet again on its way out, without DF.",
        "Memory and delay for senders of many fragments; flows whose fragments take several paths.", On On On;
    Ipv4FragmentReuse, "ipv4-fragment-reuse", "RFC 791, 2.3; RFC 6864, 4.3",
        "Drops both packets where a first fragment contradicts the one that waits: the identification was used again too soon.",
        "None known: the two would make one packet that neither side sent.", Off On On;

    // IPv6.
    Ipv6Header, "ipv6-header", "RFC 8200, 3",
        "Drops packets whose version or payload length contradicts the frame, and jumbograms.",
        "Jumbograms (RFC 2675) on a wire, which no known network uses; what Linux joins beyond 64 KiB is cut before.",
        On On On;
    Ipv6TrafficClass, "ipv6-traffic-class", "RFC 2474; RFC 3168",
        "Keeps the classes that are assigned and the ECN field, and clears all other values.",
        "Experimental classes of service.", On On On;
    Ipv6Addresses, "ipv6-addresses", "RFC 4291, 2.7",
        "Drops packets with addresses that no host can have, with a source that is the destination, and TCP to groups.",
        "None known.", Off On On;
    Ipv6Extensions, "ipv6-extensions", "RFC 8200, 4.1 and 4.7; RFC 5095",
        "Drops packets whose extension headers are out of order, repeated, too many, or still to be routed; cuts off what \
         follows where nothing should.",
        "Experiments with extension headers, Mobile IPv6 and segment routing through the scrubber.", Off On On;
    Ipv6Options, "ipv6-options", "RFC 8200, 4.2; RFC 4942, 2.1.9",
        "Takes out padding and options that a host would skip, all but MLD's router alert, and drops packets that a host \
         would drop.",
        "Experiments with options, Mobile IPv6, and AH over packets that carry any.", Off On On;
    Ipv6FlowLabel, "ipv6-flow-label", "RFC 6437",
        "Gives packets to the untrusted side a flow label that says nothing about the host.",
        "Load balancers that both sides agreed on by label.", Off On On;
    Ipv6Identification, "ipv6-identification", "RFC 8200, 4.5; RFC 7739",
        "Gives packets that leave in pieces to the untrusted side an identification that says nothing about the host.",
        "Tools that follow packets by their identification.", Off On On;
    Ipv6Fragments, "ipv6-fragments", "RFC 8200, 4.5; RFC 5722; RFC 6946; RFC 7112; RFC 6980",
        "Reassembles fragments, drops packets whose fragments overlap, and cuts the packet again on its way out; takes out \
         Fragment headers of packets that are whole.",
        "Memory and delay for senders of many fragments.", On On On;

    // Both versions.
    HopLimitFloor, "hop-limit-floor", "RFC 791, 3.2; RFC 8200, 3; RFC 2328, A.1; RFC 5082",
        "Never lets the hop limit of a TCP flow fall below the largest seen, and drops what could not reach the trusted hosts, \
         unless they are on the link: in gate.subnets, or by their own ARP or neighbour discovery.",
        "Traceroute to trusted hosts behind a router, and neighbours that said nothing of themselves yet.", Off On On;
    HopLimitUniform, "hop-limit-uniform", "RFC 1700; RFC 5082",
        "Gives packets to the untrusted side one hop limit, only ever lowering it, but leaves 255 to protocols that check for it.",
        "Traceroute from the untrusted side, and protocols nobody thought of that check for 255.", Off On On;
    Encrypted, "encrypted", "RFC 4303; RFC 4302",
        "Drops encrypted and opaque protocols between hosts that are not listed for them (the paper's section II).",
        "IPsec, GRE and other tunnels of hosts that nobody listed.", Off Off On;
    TunnelledPackets, "tunnelled-packets", "RFC 2003; RFC 4213; RFC 2784; RFC 7348; RFC 8926",
        "Drops packets of IP in tunnels (IP in IP, GRE, VXLAN, Geneve, GTP, L2TP and others) between hosts that are not listed \
        under tunnels: whoever watches reads them, and they are not scrubbed.",
        "Tunnels in the clear that nobody listed.", Off On On;
    Tunnels, "tunnels", "RFC 2003; RFC 4213; RFC 2784",
        "Drops IP in IP and GRE between hosts that are not listed for them: what they carry cannot be judged.",
        "Tunnels that nobody listed.", Off Off On;

    // TCP.
    TcpHeader, "tcp-header", "RFC 9293, 3.1",
        "Drops segments whose header is cut short or says a wrong length.",
        "None: no host accepts them.", On On On;
    TcpChecksum, "tcp-checksum", "RFC 9293, 3.1",
        "Drops segments with a wrong checksum; it is never repaired.",
        "None: no host accepts them.", On On On;
    TcpFlags, "tcp-flags", "RFC 9293, 3.10.7",
        "Drops segments with flags that no correct sender combines, and segments without ACK but SYN and RST.",
        "None known.", On On On;
    TcpReservedBits, "tcp-reserved-bits", "RFC 9293, 3.1; RFC 3168",
        "Clears reserved bits and the fields that no flag makes valid, and ECN flags that were not negotiated.",
        "Experiments; accurate ECN is kept where both sides offered it.", Off On On;
    TcpOptions, "tcp-options", "RFC 9293, 3.1; RFC 7323; RFC 2018",
        "Drops malformed options and takes out those that have no place in a segment.",
        "None known.", On On On;
    TcpUnknownOptions, "tcp-unknown-options", "RFC 9293, 3.1",
        "Takes options that the scrubber does not know out of the handshake, so that neither side uses them, unless it is signed.",
        "Multipath TCP and whatever is new. What TCP-MD5 or TCP-AO signs passes as it is.", Off Off On;
    TcpHandshake, "tcp-handshake", "RFC 9293, 3.5",
        "Lets a connection begin only by the three-way handshake in its one usual form; a SYN after its answer becomes a question.",
        "Simultaneous open, and connections older than the scrubber unless they are adopted.", On On On;
    TcpSynData, "tcp-syn-data", "RFC 9293, 3.4; RFC 7413",
        "Takes data and Fast Open out of the handshake; the sender sends the data again.",
        "A round trip for clients that use Fast Open.", On On On;
    TcpRetransmission, "tcp-retransmission", "RFC 9293, 3.8.1",
        "Writes the bytes that were sent first over those of a retransmission.",
        "Memory for what is not acknowledged yet.", On On On;
    TcpOutOfOrder, "tcp-out-of-order", "RFC 9293, 3.10.7.4; RFC 2018",
        "Keeps the first version of bytes behind a hole, or drops them if so configured.",
        "Dropping them slows every lossy path down, because senders rely on selective acknowledgement.", On On On;
    TcpSequence, "tcp-sequence", "RFC 9293, 3.4; RFC 5961, 5",
        "Drops what lies outside the window; of what was acknowledged goes on the last byte, so that it is acknowledged again.",
        "None known.", On On On;
    TcpAcknowledgement, "tcp-acknowledgement", "RFC 5961, 5",
        "Drops segments that acknowledge what was never sent, and has data acknowledge no less than its sender did before.",
        "None known.", On On On;
    TcpSack, "tcp-sack", "RFC 2018, 3",
        "Takes out blocks of selective acknowledgement that are outside of what was sent.",
        "None known.", Off On On;
    TcpTimestamps, "tcp-timestamps", "RFC 7323, 5",
        "Drops segments whose timestamp every host would refuse, and takes out timestamps that were not negotiated.",
        "Hosts whose timestamps go backwards.", On On On;
    TcpUrgent, "tcp-urgent", "RFC 6093",
        "Clears the urgent flag and pointer, so that all hosts read urgent data in line.",
        "Programs that rely on out-of-band data, such as old remote shells.", On On On;
    TcpWindow, "tcp-window", "RFC 9293, 3.8.6; RFC 7323, 2",
        "Cuts data to the right edge of the window that was ever granted.",
        "None known: correct senders stay inside.", On On On;
    TcpMss, "tcp-mss", "RFC 9293, 3.7.1; RFC 6691",
        "Drops segments longer than the receiver said it takes.",
        "Paths whose hosts ignore the option.", Off Off On;
    TcpReset, "tcp-reset", "RFC 5961, 3",
        "Lets a reset through only at exactly the next sequence number, without data; inside of the window a question takes its place.",
        "Resets of hosts that have lost the connection are answered by a challenge first.", On On On;
    TcpFin, "tcp-fin", "RFC 9293, 3.6",
        "Lets a FIN count only in sequence, and nothing behind it; one behind a hole is acknowledged \
        selectively and sent when the hole is filled.",
        "Without selective acknowledgement, and in paper, a hole before a FIN costs its sender a timeout.", On On On;
    TcpPortReuse, "tcp-port-reuse", "RFC 6191",
        "Lets a connection that has just ended begin again as RFC 6191 allows, and asks the host that remembers otherwise.",
        "Clients that use a port again at once and start lower.", On On On;
    TcpOptionOrder, "tcp-option-order", "RFC 9293, 3.1",
        "Writes options in one order with one padding (the paper's section IV-B3).",
        "None known.", On On On;
    TcpSequenceShift, "tcp-sequence-shift", "RFC 6528",
        "Adds a number to the sequence numbers of trusted hosts that nobody can predict.",
        "TCP-MD5 and TCP-AO, whose flows are left alone, and asymmetric paths.", On On On;
    TcpTimestampShift, "tcp-timestamp-shift", "RFC 7323, 5.4",
        "Adds a number to the timestamps of trusted hosts, so that their uptime is not told.",
        "None known.", Off On On;
    TcpResetForm, "tcp-reset-form", "RFC 9293, 3.10.7.1",
        "Gives the resets of trusted hosts one form.",
        "None known.", Off On On;
    TcpPlainHandshake, "tcp-plain-handshake", "RFC 9293, 3.1; RFC 7323; RFC 2018; RFC 3168",
        "Takes window scale, selective acknowledgement, timestamps and ECN out of every handshake, so that all hosts offer the same.",
        "Throughput of long fat paths and of lossy ones.", Off Off On;
    TcpInitialWindow, "tcp-initial-window", "RFC 9293, 3.1",
        "Lowers window, window scale and MSS in the handshake of trusted hosts to common values.",
        "Throughput of the first round trip, and of long fat paths.", Off Off On;

    // UDP.
    UdpLength, "udp-length", "RFC 768",
        "Drops datagrams whose length contradicts the packet, and cuts off what follows them.",
        "UDP options (RFC 9868).", Off On On;
    UdpChecksum, "udp-checksum", "RFC 768; RFC 8200, 8.1",
        "Drops datagrams with a wrong checksum, over IPv6 also those without one.",
        "Tunnels over IPv6 without checksums (RFC 6935), unless listed.", Off On On;

    // ICMP.
    IcmpChecksum, "icmp-checksum", "RFC 792; RFC 4443, 2.3",
        "Drops messages that are cut short or have a wrong checksum.",
        "None: no host accepts them.", On On On;
    IcmpTypes, "icmp-types", "RFC 1122, 3.2.2; RFC 6633; RFC 6918; RFC 4890, 4.3",
        "Drops redirects, source quench, timestamp, mask and information messages, router renumbering, node \
        information, and types that nobody assigned.",
        "Redirects across the scrubber, clocks by ICMP, and tools that ask hosts for their names (RFC 4620), \
        which tells them to everybody.", Off On On;
    IcmpEchoCode, "icmp-echo-code", "RFC 792",
        "Clears the code of echo messages.",
        "None known.", Off On On;
    IcmpUnsolicited, "icmp-unsolicited", "RFC 792; RFC 5927",
        "Drops echo replies and errors that nothing from the other side called for.",
        "Asymmetric paths.", Off On On;
    IcmpQuote, "icmp-quote", "RFC 792; RFC 1812, 4.3.2.3",
        "Cuts the packet that an error of a trusted host quotes to its header and eight bytes (the paper's section IV-B2), and \
         drops errors that quote less.",
        "Tunnels that need more of it, unless the longer quote is chosen.", On On On;
    IcmpQuoteForm, "icmp-quote-form", "RFC 792; RFC 4443, 3; RFC 1812, 4.3.2.3",
        "Writes what an error of a trusted host quotes as its sender sent it, and zeros into what the error does not use.",
        "Traceroutes whose probes differ only in identification or checksum, towards routers on the trusted side.", Off On On;
    IcmpAnswerForm, "icmp-answer-form", "RFC 1349, 5.1; RFC 1812, 4.3.2.5",
        "Clears class of service and DF in replies and errors of trusted hosts, in which systems differ.",
        "Tests of a class of service by ping; a large reply may be cut on its way instead of being lost.", Off On On;
    IcmpMtu, "icmp-mtu", "RFC 1191; RFC 8201; RFC 5927, 7",
        "Drops errors that announce an MTU below the least of IP.",
        "None known.", Off On On;
    IcmpBroadcast, "icmp-broadcast", "RFC 1122, 3.2.2.6",
        "Drops echo requests to broadcast and multicast addresses.",
        "Discovery by ping to all hosts.", Off On On;
    IcmpSize, "icmp-size", "RFC 792",
        "Drops echo messages longer than a limit.",
        "Tests of the path MTU by ping with larger packets.", Off Off On;
    IcmpRate, "icmp-rate", "RFC 1812, 4.3.2.8",
        "Lets replies and errors of trusted hosts out no faster than one per pair of addresses and interval, or delays each by \
         a random time (the paper's section IV-B4).",
        "Ping at a higher rate shows loss.", On On On;
    IcmpRequestRate, "icmp-request-rate", "RFC 1812, 4.3.2.8",
        "Lets the pace hold for requests of trusted hosts too, and for all else but what manages the link, as in the paper; needs icmp-rate.",
        "Monitoring from the trusted side that pings faster shows loss.", On Off On;
    NeighbourDiscovery, "neighbour-discovery", "RFC 4861, 3; RFC 6980",
        "Drops neighbour discovery that crossed a router or is fragmented.",
        "None: no host accepts them.", Off On On;
}

/// Number of rules.
pub const RULES: usize = Rule::ALL.len();

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Rule::ALL.iter().find(|rule| rule.name() == text);
        found.copied().ok_or_else(|| format!("there is no rule {text:?}"))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What every rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules([Action; RULES]);

impl Rules {
    /// Every rule off: the engine parses and writes, and judges nothing.
    #[must_use]
    pub fn none() -> Rules {
        Rules([Action::Off; RULES])
    }

    /// The rules of the preset whose column in the list is `column`.
    pub(crate) fn preset(column: usize) -> Rules {
        let mut rules = Rules::none();
        for rule in Rule::ALL.iter().filter(|rule| rule.is_on()[column]) {
            rules.set(*rule, Action::Scrub);
        }
        rules
    }

    /// Sets what `rule` does.
    pub fn set(&mut self, rule: Rule, action: Action) {
        self.0[rule as usize] = action;
    }

    /// What `rule` does.
    #[must_use]
    pub fn action(&self, rule: Rule) -> Action {
        self.0[rule as usize]
    }
}

/// How often each rule acted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters([u64; RULES]);

impl Default for Counters {
    fn default() -> Self {
        Counters([0; RULES])
    }
}

impl Counters {
    /// How often `rule` rewrote or dropped a packet.
    #[must_use]
    pub fn of(&self, rule: Rule) -> u64 {
        self.0[rule as usize]
    }

    pub(crate) fn count(&mut self, rule: Rule) {
        self.0[rule as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back() {
        for (index, rule) in Rule::ALL.iter().enumerate() {
            assert_eq!(*rule as usize, index);
            assert_eq!(rule.name().parse(), Ok(*rule));
        }
    }

    #[test]
    fn strict_does_all_that_balanced_does() {
        for rule in Rule::ALL {
            let [_, balanced, strict] = rule.is_on();
            assert!(strict || !balanced, "{rule}");
        }
    }
}
