//! What honest hosts send arrives as it was sent: small and in fragments, one by one and in super-frames, tagged, tunnelled.

use std::net::{SocketAddr, UdpSocket};

use bump::{Batch, Checksum, Gso, GsoKind, Meta, VlanTag};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Namespace, lan, process};
use system::port::{Receiver, Sender};

use super::raw::{await_frame, put, raw};
use super::{HOST_INTERFACE, PATIENCE, Path, TRUSTED, TRUSTED_V6, UNTRUSTED, perform_between};
use crate::stage::{Outcome, SOON};
use crate::wire::Stream;

/// Bytes over TCP that need many super-frames each way.
const BULK: u64 = 16 << 20;
/// Bytes over TCP in frames of the wire's size.
const SMALL_BULK: u64 = 2 << 20;

#[test]
fn pings_pass_whole_and_in_fragments() {
    perform_between("", |path| {
        // Of trusted hosts' messages one in 50 ms goes out, so a second one at once would be too soon.
        let thrice = "-c 3 -i 0.2";
        assert!(path.pings(thrice)?, "small ones");
        assert!(path.pings(&format!("{thrice} -s 8000"))?, "8 kB");
        assert!(crate::wire::pings(&path.trusted, UNTRUSTED, &format!("{thrice} -s 8000"))?, "8 kB the other way");
        let mut six = path.untrusted.command("ping");
        six.args(["-6", "-n", "-c", "3", "-i", "0.2", "-W", "2", "-s", "3000", TRUSTED_V6]);
        assert!(process::ask(six, &[])?.status.success(), "one in fragments over IPv6");
        Ok(())
    });
}

/// Bulk both ways at once; returns the status afterwards.
fn bulk(path: &Path, bytes: u64) -> Result<serde_json::Value, Failure> {
    let up = Stream::start(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
    let down = Stream::start(&path.trusted, &path.untrusted, UNTRUSTED, 5002)?;
    up.await_progress(bytes, PATIENCE)?;
    down.await_progress(bytes, PATIENCE)?;
    path.status()
}

#[test]
fn tcp_passes_both_ways_in_super_frames() {
    perform_between("", |path| {
        let status = bulk(path, BULK)?;
        let ports = &status["ports"];
        for name in ["trusted_received_super_frames", "untrusted_sent_super_frames", "trusted_sent_super_frames"] {
            assert!(ports[name].as_u64() > Some(0), "{name}: {ports}");
        }
        assert_eq!((&ports["trusted_send_errors"], &ports["untrusted_send_errors"]), (&0.into(), &0.into()), "{ports}");
        Ok(())
    });
}

#[test]
fn tcp_passes_both_ways_in_plain_frames() {
    perform_between("", |path| {
        for host in [&path.trusted, &path.untrusted] {
            lan::set_offloads(host, HOST_INTERFACE, &["tx", "off", "tso", "off", "gso", "off", "gro", "off"])?;
        }
        let status = bulk(path, SMALL_BULK)?;
        assert_eq!(status["ports"]["untrusted_received_super_frames"], 0, "{status}");
        Ok(())
    });
}

#[test]
fn datagrams_pass_unchanged_also_when_they_need_fragments() {
    perform_between("", |path| {
        let socket = |host: &Namespace, at| {
            let opened = || UdpSocket::bind(SocketAddr::from((at, 4000))).map_err(Failure::io("binding"));
            let socket = host.enter(opened)?;
            socket.set_read_timeout(Some(PATIENCE)).map_err(Failure::io("setting a time-out"))?;
            Ok::<_, Failure>(socket)
        };
        let (near, far) = (socket(&path.untrusted, UNTRUSTED)?, socket(&path.trusted, TRUSTED)?);
        for len in [0, 1, 1472, 1473, 9000] {
            let sent: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            for (from, to, at) in [(&near, &far, TRUSTED), (&far, &near, UNTRUSTED)] {
                from.send_to(&sent, (at, 4000)).map_err(Failure::io("sending"))?;
                let mut buffer = [0; 16 << 10];
                let count = to.recv(&mut buffer).map_err(Failure::io("receiving"))?;
                assert_eq!(buffer[..count], sent, "{len} bytes to {at}");
            }
        }
        Ok(())
    });
}

/// A datagram from the untrusted to the trusted host behind `tags`, with a number of its own.
fn tagged(tags: &[u8], number: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(tags);
    frame.extend([8, 0, 0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(UNTRUSTED.octets());
    frame.extend(TRUSTED.octets());
    let start = 14 + tags.len();
    wire::ipv4::fill_checksum(&mut frame[start..]);
    // Without a UDP checksum (RFC 768).
    frame.extend([0x0f, 0xa0, 0x0f, 0xa1, 0, 40, 0, 0]);
    frame.extend([number; 32]);
    frame
}

#[test]
fn tags_of_a_raw_sender_are_kept() {
    perform_between("", |path| {
        let (mut sender, mut hearer) = (raw(&path.untrusted)?, raw(&path.trusted)?);
        let cases: [(&[u8], Option<VlanTag>); 4] = [
            (&[], None),
            (&[0x81, 0x00, 0xa0, 0x07], Some(VlanTag { tpid: 0x8100, tci: 0xa007 })),
            (&[0x88, 0xa8, 0x00, 0x08], Some(VlanTag { tpid: 0x88a8, tci: 8 })),
            // The kernel takes the outer one out.
            (&[0x88, 0xa8, 0x00, 0x09, 0x81, 0x00, 0x00, 0x07], Some(VlanTag { tpid: 0x88a8, tci: 9 })),
        ];
        for (number, (tags, kept)) in cases.into_iter().enumerate() {
            let sent = tagged(tags, 0x50 + number as u8);
            put(&mut sender, &sent);
            let (tag, rest) = await_frame(&mut hearer, &sent)?;
            assert_eq!(tag, kept, "{tags:02x?}");
            let inner = if tags.is_empty() { &sent[12..] } else { &sent[16..] };
            // The identification of a datagram that is whole may be another, and with it the header's checksum.
            assert_eq!(rest[12..][..inner.len() - 32], *blank(&rest[12..], inner), "{tags:02x?}");
        }
        Ok(())
    });
}

/// What `sent` begins with, with what a gateway may write anew taken over from `left`.
fn blank(left: &[u8], sent: &[u8]) -> Vec<u8> {
    let header = sent.len() - 60;
    let mut expected = sent[..sent.len() - 32].to_vec();
    for place in [header + 4, header + 5, header + 10, header + 11] {
        expected[place] = left[place];
    }
    expected
}

/// Datagrams of 1000 bytes each in one frame of a card that joins them, behind a tag.
#[test]
fn a_tagged_super_frame_keeps_its_tag_and_its_datagrams() {
    perform_between("", |path| {
        let (mut sender, mut hearer) = (raw(&path.untrusted)?, raw(&path.trusted)?);
        let tag = VlanTag { tpid: 0x8100, tci: 7 };
        let (frame, meta) = datagrams(tag);
        sender.sender.reserve(frame.len()).expect("room").copy_from_slice(&frame);
        sender.sender.commit(frame.len(), meta);
        assert!(!sender.sender.flush().waits());
        let mut heard = 0;
        process::until("three datagrams", SOON, || {
            let filled = hearer.receiver.fill().map_err(Failure::io("receiving"))?;
            while let Some(frame) = hearer.receiver.next_frame().filter(|_| filled) {
                let udp = frame.bytes.get(42..).filter(|_| frame.bytes[12..14] == [8, 0] && frame.bytes[23] == 17);
                if let Some(data) = udp.filter(|data| data.len() % 1000 == 0) {
                    assert_eq!(frame.meta.vlan, Some(tag));
                    heard += data.len();
                }
            }
            Ok(heard >= 3000)
        })?;
        assert_eq!(heard, 3000);
        Ok(())
    });
}

/// Three datagrams from the untrusted to the trusted host in one frame behind `tag`.
fn datagrams(tag: VlanTag) -> (Vec<u8>, Meta) {
    let mut frame = tagged(&[], 0);
    frame.truncate(42);
    frame.extend((0..3000).map(|at| (at % 7) as u8));
    frame[16..18].copy_from_slice(&3028_u16.to_be_bytes());
    frame[38..40].copy_from_slice(&3008_u16.to_be_bytes());
    frame[24..26].fill(0);
    wire::ipv4::fill_checksum(&mut frame[14..34]);
    let sum = wire::checksum::pseudo_header_v4(UNTRUSTED, TRUSTED, 17, 3008).fold();
    frame[40..42].copy_from_slice(&sum.to_be_bytes());
    let meta = Meta {
        checksum: Checksum::Partial { start: 34, offset: 6 },
        gso: Some(Gso { kind: GsoKind::Udp, size: 1000, ecn: false }),
        vlan: Some(tag),
        ..Meta::default()
    };
    (frame, meta)
}

/// A tunnel's super-frames name the inner transport header, and whoever takes it for the outer one lets nothing through.
#[test]
fn tcp_in_a_vxlan_tunnel_passes() {
    perform_between("tunnels = [[\"10.6.0.1\", \"10.6.0.2\"]]", |path| {
        for (number, checksums) in ["udpcsum", "noudpcsum"].into_iter().enumerate() {
            tunnel(path, number, checksums)?;
            let address = |last| [10, 9, number as u8, last].into();
            let stream = Stream::start(&path.untrusted, &path.trusted, address(1), 5004)?;
            stream.await_progress(SMALL_BULK, PATIENCE)?;
            let back = Stream::start(&path.trusted, &path.untrusted, address(2), 5005)?;
            back.await_progress(SMALL_BULK, PATIENCE)?;
        }
        judge_tunnels(&path.status()?);
        Ok(())
    });
}

/// VXLAN between the hosts, number `number`, the outer datagrams with or without checksums.
fn tunnel(path: &Path, number: usize, checksums: &str) -> Outcome {
    for (host, here, there, last) in [(&path.trusted, TRUSTED, UNTRUSTED, 1), (&path.untrusted, UNTRUSTED, TRUSTED, 2)]
    {
        let name = format!("x{number}");
        let ends = format!("local {here} remote {there} dev {HOST_INTERFACE}");
        host.ip(&format!("link add {name} type vxlan id {number} {ends} dstport {} {checksums}", 4789 + number))?;
        host.ip(&format!("address add 10.9.{number}.{last}/24 dev {name}"))?;
        host.ip(&format!("link set {name} up"))?;
    }
    Ok(())
}

/// Where the kernel takes super-frames inside of tunnels they have stayed whole, and elsewhere they were cut.
fn judge_tunnels(status: &serde_json::Value) {
    let (ports, probe) = (&status["ports"], status["probes"]["tunnels"].as_str().expect("a probe"));
    for side in ["trusted", "untrusted"] {
        let segments = ports[format!("{side}_received_segments")].as_u64().expect("a counter");
        let super_frames = ports[format!("{side}_sent_super_frames")].as_u64().expect("a counter");
        if probe.starts_with("yes") {
            assert!(segments == 0 && super_frames > 100, "{status}");
        } else {
            eprintln!("SKIPPED whole tunnels: {probe}");
            assert!(segments > 100 && super_frames == 0, "{status}");
        }
        assert_eq!(ports[format!("{side}_send_errors")], 0, "{status}");
    }
}
