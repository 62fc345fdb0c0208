//! IP behind headers that whoever watches the wire reads and the hosts may not: none of it leaves
//! in `balanced` unless it is listed, and what carries no IP passes.

#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, DropReason, Instant, Ledger, Meta, Now, Side};
use scrub::settings::Network;
use scrub::{Action, Keys, Preset, Rule, Scrubber, Settings};
use wire::EtherType;

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

fn settings(preset: Preset) -> Settings {
    Settings::preset(preset)
}

/// What becomes of a frame from the untrusted side: what left, or why nothing did.
fn pass(settings: &Settings, frame: &[u8]) -> Result<Vec<u8>, DropReason> {
    let keys = Keys { tables: [1; 16], sequence: [2; 16], identification: [3; 16] };
    let mut scrubber = Scrubber::new(settings.clone(), keys);
    let mut sink = Collected::new();
    let now = Now { since_boot: Instant::from_millis(1), wall: None };
    scrubber.process(now, Side::UNTRUSTED, &mut Frames::new(&mut [(frame.to_vec(), Meta::plain())]), &mut sink);
    let mut ledger = Ledger::new();
    scrubber.add_to_ledger(&mut ledger);
    let dropped = DropReason::ALL.iter().find(|reason| ledger.drops(**reason) > 0);
    dropped.map_or_else(|| Ok(sink.take().remove(0).1), |reason| Err(*reason))
}

fn sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An IPv4 packet of `protocol` that carries `payload`.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 198, 51, 100, 7, 192, 0, 2, 1]);
    let checksum = sum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// A TCP segment with `text`, in a packet: the fake that only a watcher is to read.
fn fake() -> Vec<u8> {
    let header = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0];
    ipv4(6, &[&header[..], b"GET /harmls"].concat())
}

fn frame(ethertype: u16, rest: &[u8]) -> Vec<u8> {
    [&MACS[..], &ethertype.to_be_bytes(), rest].concat()
}

fn inner_frame() -> Vec<u8> {
    frame(0x0800, &fake())
}

fn length_frame(rest: &[u8]) -> Vec<u8> {
    frame(rest.len() as u16, rest)
}

/// Every way to carry the fake in a frame, and the EtherType by which an operator lists it, if there is one.
fn hidden_in_frames() -> Vec<(&'static str, Option<u16>, Vec<u8>)> {
    let ip = [&[8, 0][..], &fake()].concat();
    let tagged = |tpid: u16| [&[0, 0][..], &tpid.to_be_bytes(), &[0, 0], &ip].concat();
    let behind = |head: &[u8]| [head, &ip].concat();
    let packet = |head: &[u8]| [head, &fake()].concat();
    let framed = |head: &[u8]| [head, &inner_frame()].concat();
    let snap = |organisation: [u8; 3]| [&[0xaa, 0xaa, 3][..], &organisation, &ip].concat();
    vec![
        ("0x9100", Some(0x9100), frame(0x9100, &behind(&[0, 0]))),
        ("0x9200", Some(0x9200), frame(0x9200, &behind(&[0, 5]))),
        ("0x9300", Some(0x9300), frame(0x9300, &behind(&[0, 5]))),
        ("0x8100 in 0x9100", Some(0x9100), frame(0x9100, &tagged(0x8100))),
        ("0x9100 in 0x8100", Some(0x9100), frame(0x8100, &tagged(0x9100))),
        ("0x9100 in 0x88a8", Some(0x9100), frame(0x88a8, &tagged(0x9100))),
        ("explicit null", Some(0x8847), frame(0x8847, &packet(&[0, 0, 1, 64]))),
        ("explicit null of IPv6", Some(0x8847), frame(0x8847, &packet(&[0, 0, 0x21, 64]))),
        ("a label", Some(0x8847), frame(0x8847, &packet(&[0, 6, 0x41, 64]))),
        ("labels to many", Some(0x8848), frame(0x8848, &packet(&[0, 6, 0x40, 64, 0, 0, 1, 64]))),
        ("a pseudowire", Some(0x8847), frame(0x8847, &framed(&[0, 6, 0x41, 64, 0, 0, 0, 0]))),
        ("a label in a tag", Some(0x8847), frame(0x8100, &packet(&[0, 5, 0x88, 0x47, 0, 0, 1, 64]))),
        ("a channel with IP", Some(0x8847), frame(0x8847, &packet(&[0, 0, 0xd1, 64, 0x10, 0, 0, 0x21]))),
        ("PPPoE", Some(0x8864), frame(0x8864, &packet(&[0x11, 0, 0, 7, 0, 53, 0, 0x21]))),
        ("PPPoE, short protocol", Some(0x8864), frame(0x8864, &packet(&[0x11, 0, 0, 7, 0, 52, 0x21]))),
        ("PPP", Some(0x880b), frame(0x880b, &packet(&[0xff, 3, 0, 0x21]))),
        ("frames", Some(0x6558), frame(0x6558, &inner_frame())),
        ("backbone bridges", Some(0x88e7), frame(0x88e7, &framed(&[0, 0, 0, 7]))),
        ("virtual network tag", Some(0x8926), frame(0x8926, &behind(&[0, 1, 0, 2]))),
        ("port extension", Some(0x893f), frame(0x893f, &behind(&[0, 0, 0, 1, 0, 0]))),
        ("redundant ring", Some(0x892f), frame(0x892f, &behind(&[0, 57, 0, 1]))),
        ("security group", Some(0x8909), frame(0x8909, &behind(&[1, 1, 0, 1, 0, 7]))),
        ("authenticated only", Some(0x88e5), frame(0x88e5, &behind(&[0, 0, 0, 0, 0, 1]))),
        ("with its channel", Some(0x88e5), frame(0x88e5, &behind(&[0x20, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0, 1]))),
        ("FabricPath", Some(0x8903), frame(0x8903, &framed(&[0, 0x60]))),
        ("TRILL", Some(0x22f3), frame(0x22f3, &framed(&[0, 6, 0, 1, 0, 2]))),
        ("TRILL with an option", Some(0x22f3), frame(0x22f3, &framed(&[0, 0x46, 0, 1, 0, 2, 0, 0, 0, 0]))),
        ("service chain", Some(0x894f), frame(0x894f, &packet(&[0, 2, 1, 1, 0, 0, 7, 255]))),
        ("service chain of frames", Some(0x894f), frame(0x894f, &framed(&[0, 2, 1, 3, 0, 0, 7, 255]))),
        ("mirrored", Some(0x88be), frame(0x88be, &framed(&[0x10; 8]))),
        ("802.2 of IP", None, length_frame(&packet(&[6, 6, 3]))),
        ("SNAP", None, length_frame(&snap([0, 0, 0]))),
        ("SNAP of bridges' types", None, length_frame(&snap([0, 0, 0xf8]))),
        ("SNAP of another organisation", None, length_frame(&snap([0, 0, 0x0c]))),
        ("SNAP in an information frame", None, length_frame(&[&[0xaa, 0xaa, 0, 0, 0, 0, 0][..], &ip].concat())),
        ("SNAP with a tag", None, length_frame(&[&[0xaa, 0xaa, 3, 0, 0, 0, 0x91, 0, 0, 0][..], &ip].concat())),
        ("SNAP of bridged frames", None, length_frame(&framed(&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0]))),
        ("OSI's identifier of IP", None, length_frame(&packet(&[0xfe, 0xfe, 3, 0xcc]))),
        ("802.2 in a long frame", Some(0x8870), frame(0x8870, &snap([0, 0, 0]))),
        ("too deep to look", Some(0x9100), frame(0x9100, &[0, 0, 0x91, 0].repeat(20))),
    ]
}

#[test]
fn ip_behind_other_headers_leaves_in_no_frame() {
    for (name, listed_by, sent) in hidden_in_frames() {
        for preset in [Preset::Balanced, Preset::Strict] {
            assert_eq!(pass(&settings(preset), &sent), Err(DropReason::EthertypeNotListed), "{name}, {preset:?}");
        }
        let Some(listed_by) = listed_by else { continue };
        let mut listed = settings(Preset::Balanced);
        listed.ethertypes.push(EtherType(listed_by));
        assert_eq!(pass(&listed, &sent).as_ref(), Ok(&sent), "{name}, listed");
    }
}

/// What such headers carry beside IP is nobody's two readings, and a plant or a bridge needs it.
#[test]
fn what_carries_no_ip_passes() {
    let goose = [0x88, 0xb8, 0, 1, 0, 8, 0, 0, 0, 0];
    let frames = [
        ("older tag of a plant", frame(0x9100, &[&[0, 5][..], &goose].concat())),
        ("ring of a plant", frame(0x892f, &[&[0, 12, 0, 1][..], &goose].concat())),
        ("backbone of a plant", frame(0x88e7, &[&[0, 0, 0, 7][..], &MACS, &goose].concat())),
        ("PPPoE discovery", frame(0x8863, &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0])),
        ("PPPoE, its control", frame(0x8864, &[0x11, 0, 0, 7, 0, 6, 0xc0, 0x21, 1, 1, 0, 4])),
        ("encrypted link", frame(0x88e5, &[&[0x2c, 0, 0, 0, 0, 1][..], &[0x45; 60]].concat())),
        ("channel of a label", frame(0x8847, &[0, 0, 0xd1, 64, 0x10, 0, 0, 7, 0x20, 0, 0, 0])),
        ("spanning tree", length_frame(&[0x42, 0x42, 3, 0, 0, 0, 0, 0])),
        ("routing of OSI", length_frame(&[0xfe, 0xfe, 3, 0x83, 0x1b, 1, 0, 15])),
        ("discovery of neighbours", length_frame(&[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0, 1, 180])),
        ("tags of spanning tree", length_frame(&[0xaa, 0xaa, 3, 0, 0, 0x0c, 1, 0x0b, 0, 0])),
        ("bridges about themselves", length_frame(&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 0x0e, 0, 0])),
        ("LLDP", frame(0x88cc, &[2, 7, 4, 2, 0, 0, 0, 0, 1, 0])),
        ("GOOSE", frame(0x88b8, &[0, 1, 0, 8, 0, 0, 0, 0])),
    ];
    for (name, sent) in frames {
        assert_eq!(pass(&settings(Preset::Balanced), &sent).as_ref(), Ok(&sent), "{name}");
    }
}

fn udp(ports: [u16; 2], data: &[u8]) -> Vec<u8> {
    let mut datagram = [ports[0].to_be_bytes(), ports[1].to_be_bytes()].concat();
    datagram.extend((8 + data.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(data);
    frame(0x0800, &ipv4(17, &datagram))
}

/// Every way to carry the fake in a packet.
fn hidden_in_packets() -> Vec<(&'static str, Vec<u8>)> {
    let packet = |head: &[u8]| [head, &fake()].concat();
    let framed = |head: &[u8]| [head, &inner_frame()].concat();
    let of = |protocol: u8, carried: &[u8]| frame(0x0800, &ipv4(protocol, carried));
    let to = |port: u16, data: &[u8]| udp([40_000, port], data);
    let six = [&[0x60, 0, 0, 0, 0, 4, 59, 64][..], &[0x20; 32], &[0; 4]].concat();
    vec![
        ("IP in IP", of(4, &fake())),
        ("6in4", of(41, &six)),
        ("GRE", of(47, &packet(&[0, 0, 8, 0]))),
        ("GRE with key and number", of(47, &packet(&[0x30, 0, 8, 0, 0, 0, 0, 7, 0, 0, 0, 1]))),
        ("GRE with frames", of(47, &framed(&[0, 0, 0x65, 0x58]))),
        ("GRE with labels", of(47, &packet(&[0, 0, 0x88, 0x47, 0, 0, 1, 64]))),
        ("GRE of a mirror", of(47, &framed(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 0, 0, 0, 0, 0]))),
        ("PPTP", of(47, &packet(&[0x30, 0x81, 0x88, 0x0b, 0, 55, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0x21]))),
        ("Ethernet in IP", of(97, &framed(&[0x30, 0]))),
        ("labels in IP", of(137, &packet(&[0, 0, 1, 64]))),
        ("minimal encapsulation", of(55, &[6, 0, 0, 0, 192, 0, 2, 1])),
        ("L2TP", to(1701, &packet(&[0, 2, 0, 1, 0, 1, 0xff, 3, 0, 0x21]))),
        (
            "L2TP with length and numbers",
            to(1701, &packet(&[0x48, 2, 0, 99, 0, 1, 0, 1, 0, 1, 0, 1, 0xff, 3, 0, 0x21])),
        ),
        ("GTP", to(2152, &packet(&[0x30, 0xff, 0, 51, 0, 0, 0, 1]))),
        ("Teredo", to(3544, &six)),
        ("LISP", to(4341, &packet(&[0; 8]))),
        ("GRE in UDP", to(4754, &packet(&[0, 0, 8, 0]))),
        ("VXLAN", to(4789, &framed(&[8, 0, 0, 0, 0, 0, 7, 0]))),
        ("VXLAN, answer", udp([4789, 40_000], &framed(&[8, 0, 0, 0, 0, 0, 7, 0]))),
        ("VXLAN as it was", to(8472, &framed(&[8, 0, 0, 0, 0, 0, 7, 0]))),
        ("VXLAN with tag", to(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame(0x8100, &[0, 5, 8, 0]), &fake()].concat())),
        ("VXLAN extended", to(4790, &packet(&[0x0c, 0, 0, 1, 0, 0, 7, 0]))),
        ("Geneve", to(6081, &framed(&[0, 0, 0x65, 0x58, 0, 0, 7, 0]))),
        ("Geneve with an option", to(6081, &packet(&[1, 0, 8, 0, 0, 0, 7, 0, 1, 1, 1, 0]))),
        ("MPLS in UDP", to(6635, &packet(&[0, 0, 1, 64]))),
        ("CAPWAP", to(5247, &framed(&[0, 0x10, 2, 0, 0, 0, 0, 0]))),
        ("sniffer", to(37008, &framed(&[1, 0, 0, 1, 1]))),
    ]
}

#[test]
fn ip_in_tunnels_that_nobody_listed_leaves_in_no_packet() {
    let all = |address: [u8; 4]| Network { address: address.into(), prefix_len: 32 };
    for (name, sent) in hidden_in_packets() {
        assert_eq!(pass(&settings(Preset::Balanced), &sent), Err(DropReason::ProtocolNotListed), "{name}");
        let mut listed = settings(Preset::Balanced);
        listed.tunnels.push((all([192, 0, 2, 1]), all([198, 51, 100, 7])));
        assert_eq!(pass(&listed, &sent).as_ref(), Ok(&sent), "{name}, listed");
        let mut off = settings(Preset::Balanced);
        off.rules.set(Rule::TunnelledPackets, Action::Off);
        assert_eq!(pass(&off, &sent).as_ref(), Ok(&sent), "{name}, rule off");
    }
}

/// Ports of tunnels are other programs' too: what does not look like the tunnel is none.
#[test]
fn datagrams_that_only_share_a_port_pass() {
    let question =
        [&[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\x07example\x03com\x00\x00\x01\x00\x01"].concat();
    for port in [1701, 2152, 3386, 3544, 4341, 4754, 4789, 4790, 5072, 5247, 6080, 6081, 8472, 37008] {
        let sent = udp([port, 53], &question);
        assert_eq!(pass(&settings(Preset::Balanced), &sent).as_ref(), Ok(&sent), "port {port}");
    }
    let sctp = frame(0x0800, &ipv4(132, &[0x0b; 40]));
    assert_eq!(pass(&settings(Preset::Balanced), &sctp).as_ref(), Ok(&sctp));
}
