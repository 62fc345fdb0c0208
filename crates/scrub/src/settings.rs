//! What a scrubber is told before its first frame.

use std::net::IpAddr;
use std::time::Duration;

use wire::EtherType;

use crate::limits;
use crate::rule::{Action, Rule, Rules};

/// A choice of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// What the paper does, and nothing that it does not.
    Paper,
    /// Everything that neither stalls nor slows honest traffic.
    #[default]
    Balanced,
    /// Everything, at a price.
    Strict,
}

/// What becomes of bytes behind a hole in the sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfOrder {
    /// They go on, and their first version is kept.
    #[default]
    Retain,
    /// They are dropped (the paper's section III-A).
    Drop,
}

/// How the timing of a trusted host's ICMP is hidden (the paper's section IV-B4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpTiming {
    /// At most one message per pair of addresses in this time.
    Limit(Duration),
    /// Every message waits for a random time up to this.
    Jitter(Duration),
}

/// A TCP option whose place among the others can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// Maximum segment size.
    MaximumSegmentSize,
    /// Selective acknowledgement permitted.
    SackPermitted,
    /// Timestamps.
    Timestamps,
    /// Window scale.
    WindowScale,
    /// Blocks of selective acknowledgement.
    Sack,
}

/// The order of the TCP options that the scrubber knows; all others follow them (the paper's section IV-B3).
pub type OptionOrder = [OptionKind; 5];

/// The order that most hosts on the Internet use, so that it tells nothing.
pub const OPTION_ORDER: OptionOrder = [
    OptionKind::MaximumSegmentSize,
    OptionKind::SackPermitted,
    OptionKind::Timestamps,
    OptionKind::WindowScale,
    OptionKind::Sack,
];

/// Which connections that are older than the scrubber are taken over when the trusted side shows that it knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopt {
    /// None, and nobody is told.
    No,
    /// None: they are ended for both sides when they are met.
    End,
    /// Those whose numbers are the trusted host's own, to the byte. What else there is was shifted with keys that are lost, and
    /// is ended for both sides.
    Unshifted,
    /// All: an earlier run had the same keys, or there was none.
    All,
}

impl Adopt {
    /// What is left of it where no earlier run had the keys.
    #[must_use]
    pub fn with_new_keys(self) -> Adopt {
        if self == Adopt::All { Adopt::Unshifted } else { self }
    }
}

/// An address block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// Its first address.
    pub address: IpAddr,
    /// How many bits all its addresses share.
    pub prefix_len: u8,
}

/// Two networks whose hosts may speak something that the scrubber cannot read, in either direction.
pub type Pair = (Network, Network);

/// What a scrubber is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What each rule does.
    pub rules: Rules,
    /// Whether the trusted side's half of a connection is scrubbed too (the paper's section III-B: configurable).
    pub both_directions: bool,
    /// Bytes behind a hole.
    pub out_of_order: OutOfOrder,
    /// In which order TCP options leave.
    pub option_order: OptionOrder,
    /// Connections that are older than the scrubber.
    pub adopt: Adopt,
    /// How long an established connection may be silent.
    pub idle: Duration,
    /// Whether some segments may have gone from host to host without passing here, or pass in
    /// another order than they were sent: so it is in a capture, and what a host acknowledges is
    /// believed there.
    pub misses_segments: bool,
    /// Subnets on the links, as far as they are known: any hop limit reaches their hosts. Of those
    /// of IPv4 the last address is for all its hosts, and no other is.
    pub subnets: Vec<Network>,
    /// EtherTypes that pass beside IP and ARP where only listed ones do.
    pub ethertypes: Vec<EtherType>,
    /// Pairs that may speak encrypted and opaque protocols where only listed ones may.
    pub encrypted: Vec<Pair>,
    /// Pairs that may tunnel where only listed ones may.
    pub tunnels: Vec<Pair>,
    /// Packets towards the trusted side with a lower hop limit are dropped; how many hops lie behind the scrubber.
    pub hops_behind: u8,
    /// Hop limit towards the untrusted side.
    pub hop_limit: u8,
    /// How the timing of ICMP is hidden.
    pub icmp: IcmpTiming,
    /// Bytes behind the quoted IP header in errors of trusted hosts where it is a tunnel's, whose ends may need more than the
    /// 8 that all others get; no less than 8.
    pub icmp_quote_len: usize,
    /// Longest echo message where that is limited, in bytes from its type on.
    pub icmp_echo_max_bytes: usize,
    /// Exchanges of UDP, echo and unknown protocols that are remembered of each side.
    pub exchanges_max: usize,
    /// Longest packet on the links of either side, in bytes.
    pub mtu: usize,
    /// Memory for retained data and fragments of all flows together, in bytes.
    pub memory_max_bytes: usize,
    /// Connections that are remembered.
    pub flows: FlowLimits,
}

/// How many connections are remembered, and what of it one host may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// In all.
    pub max: usize,
    /// A host may hold as many that it opened as one part of so many of the free places,
    /// [`SOURCE_FLOWS_MIN`](limits::SOURCE_FLOWS_MIN) in any case; as many as it likes if zero.
    pub source_part: u32,
    /// The same of memory for retained data, [`SOURCE_MEMORY_MIN_BYTES`](limits::SOURCE_MEMORY_MIN_BYTES)
    /// in any case.
    pub memory_part: u32,
    /// With as many connections that untrusted hosts began within half a minute and did not complete,
    /// they show that they receive before another one begins; never if `None`.
    pub half_open: Option<u32>,
}

impl FlowLimits {
    /// At most `max`, and the usual share for each host.
    #[must_use]
    pub fn at_most(max: usize) -> FlowLimits {
        FlowLimits { max, source_part: limits::SOURCE_PART, memory_part: limits::SOURCE_MEMORY_PART, half_open: None }
    }
}

/// A program in the kernel does what these say, and would not where they are off.
const MUST_BE_ON: [Rule; 6] = [
    Rule::TcpChecksum,
    Rule::TcpSequence,
    Rule::TcpAcknowledgement,
    Rule::TcpOutOfOrder,
    Rule::TcpRetransmission,
    Rule::TcpTimestamps,
];
/// What it changes in nearly every packet. None of it ends a connection there.
const MUST_NOT_SEVER: [Rule; 6] = [
    Rule::EthernetTrailer,
    Rule::HopLimitFloor,
    Rule::HopLimitUniform,
    Rule::Ipv4Identification,
    Rule::Ipv6FlowLabel,
    Rule::TcpTimestamps,
];

impl Settings {
    /// Whether a program in the kernel does all that the rules say to clean segments (record 0123).
    #[must_use]
    pub fn may_be_carried(&self) -> bool {
        let action = |rule: &Rule| self.rules.action(*rule);
        let are_on = MUST_BE_ON.iter().all(|rule| action(rule) != Action::Off);
        let end_none = MUST_NOT_SEVER.iter().all(|rule| action(rule) != Action::Sever);
        are_on && end_none && action(&Rule::Ipv4DontFragment) == Action::Off && !self.misses_segments
    }

    /// The settings of `preset`.
    #[must_use]
    pub fn preset(preset: Preset) -> Settings {
        let paper = preset == Preset::Paper;
        Settings {
            rules: Rules::preset(preset as usize),
            both_directions: preset == Preset::Strict,
            out_of_order: if paper { OutOfOrder::Drop } else { OutOfOrder::Retain },
            option_order: OPTION_ORDER,
            adopt: Adopt::No,
            idle: limits::ESTABLISHED_TIMEOUT,
            misses_segments: false,
            subnets: Vec::new(),
            ethertypes: vec![EtherType::EAPOL, EtherType::LLDP, EtherType::SLOW, EtherType::PTP],
            encrypted: Vec::new(),
            tunnels: Vec::new(),
            hops_behind: limits::HOPS_BEHIND,
            hop_limit: limits::HOP_LIMIT,
            icmp: IcmpTiming::Limit(limits::ICMP_INTERVAL),
            icmp_quote_len: limits::ICMP_QUOTE_LEN,
            icmp_echo_max_bytes: limits::ICMP_ECHO_MAX_BYTES,
            exchanges_max: limits::EXCHANGES_MAX,
            mtu: limits::MTU,
            memory_max_bytes: limits::MEMORY_MAX_BYTES,
            flows: FlowLimits::at_most(limits::FLOWS_MAX),
        }
    }

    /// Every rule off: what remains is reading and writing.
    #[must_use]
    pub fn null() -> Settings {
        Settings { rules: Rules::none(), ..Settings::preset(Preset::Balanced) }
    }
}

impl Network {
    /// One host.
    #[must_use]
    pub fn host(address: IpAddr) -> Network {
        Network { address, prefix_len: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether it is one host.
    #[must_use]
    pub fn is_host(&self) -> bool {
        *self == Network::host(self.address)
    }

    /// Whether `address` is its last one, which is for all its hosts where it is a subnet of IPv4. Two hosts on a link need no such
    /// address (RFC 3021).
    #[must_use]
    pub fn is_last(&self, address: IpAddr) -> bool {
        let IpAddr::V4(bits) = address else { return false };
        let host_bits = u32::MAX.checked_shr(self.prefix_len.into()).unwrap_or(0);
        self.prefix_len <= 30 && self.contains(address) && bits.to_bits() & host_bits == host_bits
    }

    /// Whether `address` lies in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (mine, its, width) = match (self.address, address) {
            (IpAddr::V4(mine), IpAddr::V4(its)) => (u128::from(mine.to_bits()), u128::from(its.to_bits()), 32),
            (IpAddr::V6(mine), IpAddr::V6(its)) => (mine.to_bits(), its.to_bits(), 128),
            _ => return false,
        };
        let shift = width - u32::from(self.prefix_len).min(width);
        mine.checked_shr(shift).unwrap_or(0) == its.checked_shr(shift).unwrap_or(0)
    }
}

/// Whether one of `pairs` joins the two addresses, in either direction.
pub(crate) fn is_listed(pairs: &[Pair], a: IpAddr, b: IpAddr) -> bool {
    pairs.iter().any(|(one, other)| (one.contains(a) && other.contains(b)) || (one.contains(b) && other.contains(a)))
}
