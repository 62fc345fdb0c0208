//! The parsers of `wire`.

use wire::arp::{self, Arp};
use wire::cll::broadcast::HASH_LEN;
use wire::cll::dhcp::{DhcpFrame, set_tag, tagged_parts as tagged_parts_of_dhcp};
use wire::cll::handshake::tagged_parts;
use wire::cll::resumption::Grant;
use wire::cll::{
    Announcement, Challenge, DataHeader, GroupFrame, Handshake, InnerHeader, PacketType, Resolution as Resolved,
    Resumption, Rollover, train,
};
use wire::ethernet::Header;
use wire::sarp::Message;
use wire::sarp::data::{Answer, Change, Question, Record, Resolution};
use wire::sarp::enrolment::{Application, Enrolment, Fetch};
use wire::{MacAddress, icmp, ipv4, ipv6, layer, nd, tcp, udp};

/// Ethernet headers, the way through tags and IP headers, and hardware addresses as text.
pub fn ethernet(data: &[u8]) {
    if let Ok((header, payload)) = Header::parse(data) {
        assert_eq!([&header.emit()[..], payload].concat(), data);
    }
    if let Some((_, at)) = layer::network_layer(data) {
        assert!(at <= data.len(), "the network header starts at {at} of {}", data.len());
    }
    if let Some((_, at)) = layer::transport_layer(data) {
        assert!(at <= data.len(), "the transport header starts at {at} of {}", data.len());
    }
    let _ = layer::ipv4_source(data);
    if let Ok(mac) = String::from_utf8_lossy(data).parse::<MacAddress>() {
        assert_eq!(mac.to_string().parse(), Ok(mac));
    }
}

/// ARP messages.
pub fn arp(data: &[u8]) {
    if let Ok(message) = Arp::parse(data) {
        assert_eq!(message.emit(), data[..arp::LEN]);
    }
}

/// S-ARP messages and everything that they carry.
pub fn sarp(data: &[u8]) {
    if let Ok(message) = Message::parse(data) {
        let emitted = message.emit();
        assert_eq!(emitted, data[..emitted.len()]);
        assert!(Message::is_one(data));
    }
    if let Ok(parsed) = Resolution::parse(data) {
        assert_eq!(parsed.emit(), data);
    }
    if let Ok(parsed) = Question::parse(data) {
        assert_eq!(parsed.emit(), data);
    }
    if let Ok(parsed) = Change::parse(data) {
        assert_eq!(parsed.emit(), data);
    }
    if let Ok(parsed) = Answer::parse(data) {
        assert_eq!(parsed.emit(), data);
    }
    if let Ok(parsed) = Record::parse(data) {
        assert_eq!(parsed.emit(), data);
    }
    if let Ok(parsed) = Application::parse(data) {
        assert_eq!(parsed.emit(), data);
    }
    if let Ok(parsed) = Fetch::parse(data) {
        assert_eq!(parsed.emit(), data);
    }
    if let Ok(parsed) = Enrolment::parse(data) {
        assert_eq!(parsed.emit(), data);
        let piece = parsed.piece;
        assert!(usize::from(piece.offset) + piece.bytes.len() <= usize::from(piece.total));
    }
}

/// Headers of sealed frames, in clear and inside the seal.
pub fn cll_data(data: &[u8]) {
    if let Ok((header, sealed)) = DataHeader::parse(data) {
        let mut emitted = vec![0xa5; header.emitted_len()];
        header.emit(&mut emitted);
        assert_eq!([&emitted, sealed].concat(), data);
        assert_eq!(PacketType::of(data), Ok(PacketType::Unicast));
    }
    if let Ok((inner, payload)) = InnerHeader::parse(data) {
        assert_eq!([&inner.emit()[..], payload].concat(), data);
    }
}

/// Trains: what is taken for one lies within the frame, and its headers can be made again from it.
pub fn train(data: &[u8]) {
    let Some(range) = train::messages(data) else { return };
    assert!(range.start == train::HEAD_LEN && range.start < range.end && range.end <= data.len());
    let (header, _) = Header::parse(data).expect("a train has an Ethernet header");
    let first = [&header.emit()[..], &data[range.clone()]].concat();
    let head = train::head(&first, range.len()).expect("its lengths fit");
    assert_eq!(train::messages(&[&head[..], &data[range.clone()]].concat()), Some(range));
}

/// Handshake requests and replies.
pub fn cll_handshake(data: &[u8]) {
    let Ok(message) = Handshake::parse(data) else { return };
    assert_eq!(message.emit(), data);
    assert_eq!(Resolved::in_message(data), Some(message.resolution));
    let answer = message.resolution.reply(MacAddress([2; 6]), None);
    assert_eq!(
        (answer.target_mac(), answer.target_ip()),
        (message.resolution.sender_mac(), message.resolution.sender_ip())
    );
    let signed = message.signed_parts(data).concat();
    assert_eq!(signed.len() + message.site_tag.len() + 2 + message.signature.len(), data.len());
    assert_eq!(tagged_parts(data).concat().len() + message.site_tag.len(), data.len());
}

/// DHCP messages of the link layer.
pub fn cll_dhcp(data: &[u8]) {
    let Ok(message) = DhcpFrame::parse(data) else { return };
    assert_eq!(message.emit(), data);
    assert_eq!(tagged_parts_of_dhcp(data).concat().len() + message.tag.len(), data.len());
    let mut retagged = data.to_vec();
    set_tag(&mut retagged, &[0xa5; 16]);
    assert_eq!(tagged_parts_of_dhcp(&retagged), tagged_parts_of_dhcp(data));
    assert_eq!(DhcpFrame::parse(&retagged), Ok(DhcpFrame { tag: [0xa5; 16], ..message }));
}

/// Neighbour discovery, alone and in a packet: what it says stands in it, and who asks and who answers are read as they were made.
pub fn discovery(data: &[u8]) {
    if let Ok(view) = ipv6::View::new(data)
        && let Ok(Some(upper)) = view.upper_layer()
    {
        assert!(data.ends_with(upper.bytes) || view.payload_len() as usize + ipv6::HEADER_LEN < data.len());
        assert!(upper.is_behind_extensions || upper.protocol == view.next_header());
        if upper.protocol == icmp::PROTOCOL_V6 {
            discovery_message(upper.bytes);
        }
    }
    discovery_message(data);
}

fn discovery_message(data: &[u8]) {
    let Ok(message) = nd::Message::parse(data) else { return };
    assert!(nd::is_discovery(data[0]) && data[1] == 0);
    let says = |option: u8, mac: MacAddress| data.windows(8).any(|at| at[..2] == [option, 1] && at[2..] == mac.0);
    assert!(message.source_link.is_none_or(|mac| says(1, mac)) && message.target_link.is_none_or(|mac| says(2, mac)));
    let Some(target) = message.target else { return };
    assert_eq!(data[8..24], target.octets());
    // Who has no address says no link-layer address.
    if target.is_unspecified() {
        return;
    }
    let mac = message.source_link.or(message.target_link).unwrap_or(MacAddress([2; 6]));
    let asked = nd::solicitation(target, mac, nd::solicited_node(target), target);
    let answered = nd::advertisement(target, mac, target, false);
    for (packet, kind) in [(asked, nd::Kind::Solicitation), (answered, nd::Kind::Advertisement)] {
        let read = nd::Message::parse(&packet[ipv6::HEADER_LEN..]).expect("what is made is read");
        assert_eq!((read.kind, read.target, read.source_link.or(read.target_link)), (kind, Some(target), Some(mac)));
    }
}

/// Challenges.
pub fn cll_challenge(data: &[u8]) {
    if let Ok(challenge) = Challenge::parse(data) {
        assert_eq!(challenge.emit(), data);
    }
}

/// Rollover messages, as they stand behind the seal.
pub fn cll_rollover(data: &[u8]) {
    let Ok(message) = Rollover::parse(data) else { return };
    assert_eq!(message.emit(), data);
    if let Rollover::Keys(keys) = message {
        assert_eq!(keys.signed_part(data), keys.emit_unsigned());
    }
}

/// Frames to groups, announcements and questions.
pub fn cll_broadcast(data: &[u8]) {
    if let Ok(message) = GroupFrame::parse(data) {
        assert_eq!(message.emit(), data);
        assert_eq!(message.emit_unproved(), &data[..message.unproved_len()]);
        assert_eq!(message.proof.path.len(), message.head.place.path_nodes() * HASH_LEN);
    }
    if let Ok(message) = Announcement::parse(data) {
        assert_eq!(message.emit(), data);
        assert_eq!(message.emit_unproved(), &data[..message.unproved_len()]);
    }
    if let Ok(question) = wire::cll::Question::parse(data) {
        assert_eq!(question.emit(), data);
    }
}

/// Resumption requests and replies, and the messages behind the seal that grant a ticket.
pub fn cll_resumption(data: &[u8]) {
    if let Ok(message) = Resumption::parse(data) {
        assert_eq!(message.emit(), data);
        assert_eq!([message.bound_part(data), &message.binder].concat(), message.signed_part(data));
        assert_eq!(tagged_parts(data).concat().len() + message.site_tag.len(), data.len());
    }
    if let Ok(grant) = Grant::parse(data) {
        assert_eq!(grant.emit(), data);
    }
}

/// Views of IP, TCP and UDP headers, in any order over the same bytes.
pub fn internet(data: &[u8]) {
    if let Ok(view) = ipv4::View::new(data) {
        let _ = (view.type_of_service(), view.total_len(), view.identification(), view.dont_fragment());
        let _ = (view.more_fragments(), view.fragment_offset(), view.is_fragment(), view.time_to_live());
        let _ = (view.checksum(), view.source(), view.destination());
        assert!(view.header_len() + view.payload().len() <= data.len());
        let mut fixed = data.to_vec();
        ipv4::fill_checksum(&mut fixed[..view.header_len()]);
        assert!(ipv4::View::new(&fixed).expect("as before").checksum_is_right());
    }
    if let Ok(view) = ipv6::View::new(data) {
        let _ = (view.payload_len(), view.source(), view.destination(), view.skip_extensions());
    }
    if let Ok(view) = tcp::View::new(data) {
        let _ = (view.source_port(), view.destination_port(), view.sequence(), view.acknowledgement());
        let _ = (view.flags(), view.window(), view.checksum(), view.urgent_pointer());
        assert_eq!(tcp::HEADER_LEN + view.options().len() + view.payload().len(), data.len());
    }
    if let Ok(view) = udp::View::new(data) {
        let _ = (view.source_port(), view.destination_port(), view.length(), view.checksum());
        assert!(udp::HEADER_LEN + view.payload().len() <= data.len());
    }
}
