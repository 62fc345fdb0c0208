//! Whether a dropped frame tells of an attack, and of which. One rule after the other, each with its reason.

use std::net::{IpAddr, Ipv4Addr};

use bump::DropReason;
use bump::Sighting;
use bump::record::{HardwareAddress, Kind, Party};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::icmp;
use wire::layer::{self, protocol};
use wire::nd;
use wire::{EtherType, MacAddress};

use crate::around::{Around, Known};
use crate::community;
use crate::packet::{flow, network_destination, network_source, ports};

/// Ports of DHCP servers (RFC 2131, section 4.1; RFC 8415, section 7.2).
const DHCP_SERVER_PORTS: [u16; 2] = [67, 547];
/// What a server sends (RFC 951).
const BOOT_REPLY: u8 = 2;
const UDP_HEADER_LEN: usize = 8;
/// Frames of a kind that honest machines and links make now and then, before they are an attack.
const SOME: u64 = 5;
/// The same, where a loop or a late link makes a burst of them.
const MANY: u64 = 32;
/// The same, where each honest host causes one as well.
const VERY_MANY: u64 = 256;
/// Announcements and repeated handshakes that the hosts of another site on the same LAN do not send in
/// ten seconds.
const OF_A_SITE: u64 = 1024;
/// Questions to a DHCP server that all guests together do not put in ten seconds, after a power cut
/// for instance.
const GUESTS: u64 = 1024;

/// What a frame tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Of which kind of attack.
    pub kind: Kind,
    /// Who sent it.
    pub source: Party,
    /// To whom.
    pub target: Party,
    /// In whose name.
    pub claimed: Party,
    /// Why it was dropped.
    pub reason: DropReason,
    /// How many such frames make an attack.
    pub threshold: u64,
    /// How many frames of this kind and reason within [`CROWD_MS`](crate::attacks::CROWD_MS) make one
    /// together, whoever sends them. Of a flood, those of one sender count in that time only.
    pub crowd: Option<u64>,
    /// The frame's beginning.
    pub sample: Vec<u8>,
    /// Protocol and ports, if it has any.
    pub flow: Option<(u8, u16, u16)>,
    /// The flow's Community ID.
    pub community_id: Option<String>,
}

/// A frame in the terms of the rules.
struct Case<'a> {
    reason: DropReason,
    header: Header,
    bytes: &'a [u8],
    around: &'a Around,
}

/// What a frame that was kept tells.
#[must_use]
pub fn frame(sighting: &Sighting, around: &Around) -> Option<Finding> {
    if sighting.from != bump::Side::WIRE && around.own.mac.is_some() {
        return None;
    }
    let (header, _) = Header::parse(&sighting.head).ok()?;
    let case = Case { reason: sighting.reason, header, bytes: &sighting.head, around };
    by_reason(&case).or_else(|| by_content(&case))
}

/// What counters alone tell: that it happened. Only of what no honest host sends, or not so much of.
#[must_use]
pub fn counted(reason: DropReason) -> Option<Finding> {
    let told = |kind| matches!(kind, Kind::ForgedSealed | Kind::Replay | Kind::Flood);
    let (kind, of_one) = sealed(reason).filter(|(kind, _)| told(*kind))?;
    let crowd = crowd(kind, reason);
    let threshold = crowd.unwrap_or(of_one);
    Some(Finding {
        kind,
        source: Party::default(),
        target: Party::default(),
        claimed: Party::default(),
        reason,
        threshold,
        crowd,
        sample: Vec::new(),
        flow: None,
        community_id: None,
    })
}

/// What frames tell that were only counted, of which this one is a sample: the same, with a sender.
pub(crate) fn sampled(reason: DropReason, sighting: &Sighting, around: &Around) -> Option<Finding> {
    let counted = counted(reason)?;
    let (header, _) = Header::parse(&sighting.head).ok()?;
    let case = Case { reason, header, bytes: &sighting.head, around };
    Some(Finding { crowd: counted.crowd, ..case.finding(counted.kind, Party::default(), counted.threshold) })
}

/// A message of ARP and the source of its frame.
pub(crate) fn arp_of(bytes: &[u8]) -> Option<(MacAddress, Arp)> {
    let (header, _) = Header::parse(bytes).ok()?;
    let (ethertype, at) = layer::network_layer(bytes)?;
    let message = bytes.get(at..).filter(|_| ethertype == EtherType::ARP)?;
    Some((header.source, Arp::parse(message).ok()?))
}

/// Reasons that say by themselves what it was.
fn sealed(reason: DropReason) -> Option<(Kind, u64)> {
    use DropReason as Why;
    Some(match reason {
        Why::BadTag | Why::BadSpin | Why::BadSlowNonce | Why::WrongPeer | Why::TooFar | Why::BadSignature => {
            (Kind::ForgedSealed, MANY)
        }
        // No honest host makes these, and a link that corrupts frames breaks the tag more often.
        Why::Malformed => (Kind::ForgedSealed, MANY),
        Why::BadBinder => (Kind::ForgedSealed, SOME),
        // A link that repeats or delays frames, and a loop, make bursts of these.
        Why::Replayed | Why::TooOld | Why::GroupReplayed | Why::HandshakeStale | Why::ShieldReplay => {
            (Kind::Replay, MANY)
        }
        Why::SarpStale | Why::DhcpStale => (Kind::Replay, MANY),
        Why::SarpSignature | Why::SarpMac | Why::InnerArp => (Kind::ArpSpoofing, 1),
        Why::InnerDiscovery => (Kind::NdSpoofing, 1),
        Why::AddressTaken => (Kind::IdentityTwice, 1),
        Why::DhcpSignature => (Kind::RogueDhcp, 1),
        Why::OwnSource => (Kind::ClonedMac, SOME),
        Why::IpAddress => (Kind::SpoofedSource, SOME),
        Why::FragmentConflict => (Kind::Evasion, 1),
        Why::FlowsOfSource => (Kind::ConnectionFlood, SOME),
        // A host of another site sends some of these now and then. What it sends to groups
        // (`group-tag`) may be a stream, and tells nothing.
        Why::HandshakeSiteMac
        | Why::Repeated
        | Why::GroupUnasked
        | Why::SarpRequestCheck
        | Why::SarpUnasked
        | Why::DhcpUnasked => (Kind::Flood, VERY_MANY),
        Why::AddressNotValidated => (Kind::SynFlood, VERY_MANY),
        _ => return None,
    })
}

/// How many of all senders together are a flood.
fn crowd(kind: Kind, reason: DropReason) -> Option<u64> {
    use DropReason as Why;
    let is_heard_of_another_site = matches!(reason, Why::GroupUnasked | Why::Repeated);
    (kind == Kind::Flood).then_some(if is_heard_of_another_site { OF_A_SITE } else { VERY_MANY })
}

fn by_reason(case: &Case<'_>) -> Option<Finding> {
    // In whose name comes before how many.
    let of_claim = match case.reason {
        DropReason::InnerSource => return of_insider(case),
        DropReason::SarpUnasked => of_arp(case),
        // Of a frame to all the sealed one was kept as well, which does not show the claim.
        DropReason::InnerArp if case.arp().is_none() => return None,
        _ => None,
    };
    if of_claim.is_some() {
        return of_claim;
    }
    let (kind, threshold) = sealed(case.reason)?;
    let claimed = match (kind, network_source(case.bytes)) {
        (Kind::SpoofedSource | Kind::Evasion | Kind::ConnectionFlood, Some(ip)) => {
            Party { ip: Some(ip), ..Party::default() }
        }
        // Each of a flood's addresses may be spoofed, and the next is another.
        (Kind::SynFlood, _) => Party::default(),
        _ => case.arp().and_then(|arp| case.around.owner(arp.sender_ip.into())).map_or_else(
            || case.around.holder(case.header.source).map_or_else(Party::default, |known| known.party(None)),
            |owner| owner.party(None),
        ),
    };
    Some(Finding { crowd: crowd(kind, case.reason), ..case.finding(kind, claimed, threshold) })
}

/// An enrolled host that has sealed a packet with the address of another. For an address that nobody
/// is known to have it is a leak: of a container, or of an address that its certificate does not list.
fn of_insider(case: &Case<'_>) -> Option<Finding> {
    let ip = network_source(case.bytes)?;
    let owner = case.around.owner(ip).filter(|owner| owner.mac.is_some_and(|mac| mac != case.header.source))?;
    Some(case.finding(Kind::IdentityTwice, owner.party(Some(ip)), SOME))
}

/// What a frame in clear says that is not its sender's to say.
fn by_content(case: &Case<'_>) -> Option<Finding> {
    use DropReason as Why;
    let is_in_clear = matches!(
        case.reason,
        Why::PlainArp | Why::Unsealed | Why::Downgrade | Why::LegacyAddress | Why::ArpConflict | Why::ArpSource
    );
    let is_not_proved = matches!(case.reason, Why::SarpMalformed | Why::SarpNoKey);
    let may_be_dhcp = matches!(
        case.reason,
        Why::Dhcp | Why::DhcpUnsigned | Why::DhcpTag | Why::DhcpChaddr | Why::DhcpRelay | Why::Broadcast
    );
    let may_be_ipv6 = matches!(case.reason, Why::Ipv6 | Why::Multicast);
    // Another VLAN may have the same addresses; what is for this card alone is none of its frames.
    if case.reason == Why::Vlan && case.around.own.mac == Some(case.header.destination) {
        return of_spoof(case);
    }
    if !(is_in_clear || is_not_proved || may_be_dhcp || may_be_ipv6) {
        return None;
    }
    if case.header.ethertype == EtherType::ARP {
        return of_arp(case);
    }
    let (transport, at) = layer::transport_layer(case.bytes)?;
    let payload = case.bytes.get(at..)?;
    let found = match transport {
        icmp::PROTOCOL_V6 => of_discovery(case, payload),
        protocol::UDP => of_dhcp(case, payload),
        _ => None,
    };
    let in_clear = || is_in_clear.then(|| of_spoof(case).or_else(|| of_clone(case))).flatten();
    found.or_else(in_clear).or_else(|| (transport == protocol::UDP).then(|| of_questions(case, payload)).flatten())
}

fn of_arp(case: &Case<'_>) -> Option<Finding> {
    let arp = case.arp()?;
    let (ip, is_reply) = (IpAddr::V4(arp.sender_ip), arp.operation == Operation::Reply);
    let is_to_one = !case.header.destination.is_group();
    let Some(owner) = case.around.owner(ip) else {
        // Nobody asked in clear, so no honest host answers so. Probes have no sender.
        let is_unasked = is_reply && is_to_one && !case.around.asks_in_clear && !arp.sender_ip.is_unspecified();
        let claimed = Party { ip: Some(ip), ..Party::default() };
        // A host that is made up for each answer sends one only.
        let finding = || Finding { crowd: Some(MANY), ..of_lie(case, &arp, claimed, 2) };
        return is_unasked.then(finding);
    };
    let claimed = owner.party(Some(ip));
    let Some(mac) = owner.mac else {
        return is_reply.then(|| of_lie(case, &arp, claimed, 1));
    };
    if case.header.source != mac || arp.sender_mac != mac {
        return Some(of_lie(case, &arp, claimed, 1));
    }
    // His own address from his own card, in clear: a host that is being moved does so to groups, and at its start.
    (is_reply && is_to_one && case.around.known_are_sealed).then(|| case.finding(Kind::ClonedMac, claimed, SOME))
}

/// Who wants the packets of another has its own card in the message, whatever the frame's source is;
/// who wants somebody known to get them does not.
fn of_lie(case: &Case<'_>, arp: &Arp, claimed: Party, threshold: u64) -> Finding {
    let finding = case.finding(Kind::ArpSpoofing, claimed, threshold);
    let bait = arp.sender_mac;
    let is_own = bait != case.header.source && !bait.is_group() && case.around.holder(bait).is_none();
    if !is_own || bait == MacAddress::ZERO {
        return finding;
    }
    Finding { source: Party { mac: Some(HardwareAddress(bait.0)), ..Party::default() }, ..finding }
}

fn of_discovery(case: &Case<'_>, payload: &[u8]) -> Option<Finding> {
    let source = network_source(case.bytes);
    match *payload.first()? {
        icmp::v6::ROUTER_ADVERTISEMENT | icmp::v6::REDIRECT => {
            Some(case.finding(Kind::RogueRouter, Party { ip: source, ..Party::default() }, 1))
        }
        icmp::v6::NEIGHBOUR_ADVERTISEMENT => {
            let message = nd::Message::parse(payload).ok()?;
            let (target, link) = (IpAddr::V6(message.target?), message.target_link);
            let owner = case.around.owner(target)?;
            let is_false = owner.mac.is_some_and(|mac| link.unwrap_or(case.header.source) != mac);
            is_false.then(|| case.finding(Kind::NdSpoofing, owner.party(Some(target)), 1))
        }
        icmp::v6::NEIGHBOUR_SOLICITATION => {
            let link = nd::Message::parse(payload).ok()?.source_link?;
            let owner = case.around.owner(source?)?;
            let is_false = owner.mac.is_some_and(|mac| link != mac);
            is_false.then(|| case.finding(Kind::NdSpoofing, owner.party(source), 1))
        }
        _ => None,
    }
}

fn of_dhcp(case: &Case<'_>, payload: &[u8]) -> Option<Finding> {
    let (from, to) = ports(payload)?;
    let message = payload.get(UDP_HEADER_LEN..)?;
    let is_answer = to != DHCP_SERVER_PORTS[0] || message.first() == Some(&BOOT_REPLY);
    if DHCP_SERVER_PORTS.contains(&from) && is_answer {
        let claimed = Party { ip: network_source(case.bytes), ..Party::default() };
        return Some(case.finding(Kind::RogueDhcp, claimed, 1));
    }
    let message = ClientMessage::parse(message).filter(|_| to == DHCP_SERVER_PORTS[0])?;
    if let Some(relay) = message.relay {
        // A router on the list of legacy hosts may well be one.
        let claimed = Party { ip: Some(relay.into()), ..Party::default() };
        let is_stranger = case.around.holder(case.header.source).is_none();
        return is_stranger.then(|| case.finding(Kind::DhcpSpoofing, claimed, 1));
    }
    let of_another = |owner: &&Known| owner.mac.is_some_and(|mac| mac != case.header.source);
    let held = message.held.and_then(|held| case.around.owner(held.into()));
    if let Some(owner) = case.around.holder(message.hardware).or(held).filter(of_another) {
        return Some(case.finding(Kind::DhcpSpoofing, owner.party(None), 1));
    }
    let finding = || case.finding(Kind::DhcpSpoofing, Party::default(), SOME);
    (message.hardware != case.header.source).then(|| Finding { crowd: Some(MANY), ..finding() })
}

/// Questions to a DHCP server. Guests put them as well, each of them now and then.
fn of_questions(case: &Case<'_>, payload: &[u8]) -> Option<Finding> {
    let (_, to) = ports(payload)?;
    ClientMessage::parse(payload.get(UDP_HEADER_LEN..)?).filter(|_| to == DHCP_SERVER_PORTS[0])?;
    let finding = case.finding(Kind::Flood, Party::default(), MANY);
    Some(Finding { crowd: Some(GUESTS), ..finding })
}

/// What a DHCP client says of itself (RFC 2131, section 2).
struct ClientMessage {
    /// The address that it says it holds.
    held: Option<Ipv4Addr>,
    relay: Option<Ipv4Addr>,
    hardware: MacAddress,
}

impl ClientMessage {
    fn parse(message: &[u8]) -> Option<ClientMessage> {
        // BOOTREQUEST, Ethernet.
        let [1, 1, 6, ..] = *message else { return None };
        let address = |at: usize| -> Option<Ipv4Addr> {
            let octets: [u8; 4] = *message.get(at..)?.first_chunk()?;
            Some(Ipv4Addr::from(octets)).filter(|address| !address.is_unspecified())
        };
        let hardware = MacAddress(*message.get(28..)?.first_chunk()?);
        Some(ClientMessage { held: address(12), relay: address(24), hardware })
    }
}

/// A packet in clear with the address of somebody who seals, from another card. An address that is
/// made from his hardware address may be of another network, from where a router brings it.
fn of_spoof(case: &Case<'_>) -> Option<Finding> {
    let ip = network_source(case.bytes).filter(|_| case.around.known_are_sealed)?;
    let is_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let is_his = |owner: &&Known| is_local || owner.addresses.contains(&ip);
    let is_from_another = |owner: &&Known| owner.mac.is_some_and(|mac| mac != case.header.source);
    let owner = case.around.owner(ip).filter(is_his).filter(is_from_another)?;
    Some(case.finding(Kind::SpoofedSource, owner.party(Some(ip)), SOME))
}

/// Frames to one host, in clear, from the card of somebody who seals.
fn of_clone(case: &Case<'_>) -> Option<Finding> {
    let is_to_one = !case.header.destination.is_group();
    let holder = case.around.holder(case.header.source).filter(|_| is_to_one && case.around.known_are_sealed)?;
    Some(case.finding(Kind::ClonedMac, holder.party(None), SOME))
}

impl Case<'_> {
    fn arp(&self) -> Option<Arp> {
        arp_of(self.bytes).map(|(_, arp)| arp)
    }

    fn finding(&self, kind: Kind, claimed: Party, threshold: u64) -> Finding {
        let flow = flow(self.bytes);
        Finding {
            kind,
            source: self.source(&claimed),
            target: self.target(),
            claimed,
            reason: self.reason,
            threshold,
            crowd: None,
            sample: self.bytes.to_vec(),
            flow,
            community_id: community::id(self.bytes),
        }
    }

    /// Who sent it, by the one address that he could not do without. A name only where it is not the claim itself.
    fn source(&self, claimed: &Party) -> Party {
        let mac = HardwareAddress(self.header.source.0);
        let holder = self.around.holder(self.header.source).filter(|_| claimed.mac != Some(mac));
        Party { mac: Some(mac), ip: None, name: holder.and_then(|known| known.name.clone()) }
    }

    fn target(&self) -> Party {
        let (mac, around) = (self.header.destination, self.around);
        let ip = self.arp().map(|arp| IpAddr::V4(arp.target_ip)).or_else(|| network_destination(self.bytes));
        let of = |known: &Known| Party { ip, ..known.party(ip) };
        match around.holder(mac) {
            Some(known) => of(known),
            None if mac == MacAddress::BROADCAST => Party { name: Some("everybody".to_owned()), ip, mac: None },
            None => Party { mac: Some(HardwareAddress(mac.0)), ip, name: None },
        }
    }
}
