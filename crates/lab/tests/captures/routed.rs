//! TCP along a route that its sender wrote into the packets, where nothing takes options out
//! (`paper`).

use super::{ACK, CLIENT, PSH_ACK, SERVER, SYN, framed, pcap, replay, segment, sum};

const ROUTERS: [[u8; 4]; 2] = [[198, 51, 100, 254], [192, 0, 2, 254]];

/// The packet on its way to a router, with the rest of its loose source route (RFC 791, 3.1): its
/// checksum of TCP stays, which names the last host (RFC 9293, 3.1).
fn routed(packet: &[u8]) -> Vec<u8> {
    let is_answer = packet[12..16] == SERVER;
    let (router, last) = if is_answer { (ROUTERS[0], CLIENT) } else { (ROUTERS[1], SERVER) };
    let mut head = packet[..20].to_vec();
    head[0] = 0x47;
    head[2..4].copy_from_slice(&(packet.len() as u16 + 8).to_be_bytes());
    head[10..12].fill(0);
    head[16..20].copy_from_slice(&router);
    head.extend([&[131, 7, 4][..], &last, &[0]].concat());
    let checksum = !sum(&head);
    head[10..12].copy_from_slice(&checksum.to_be_bytes());
    [head, packet[20..].to_vec()].concat()
}

#[test]
fn a_source_routed_connection_passes_where_options_are_kept() {
    let packets = [
        segment(true, SYN, 100, 0, &[]),
        segment(false, SYN | ACK, 500, 101, &[]),
        segment(true, ACK, 101, 501, &[]),
        segment(true, PSH_ACK, 101, 501, b"question"),
        segment(false, PSH_ACK, 501, 109, b"answer"),
    ];
    let routed = packets.map(|packet| routed(&packet));
    let Some((frames, said, is_well)) = replay(&pcap(&routed), "paper") else { return };
    assert!(is_well, "{said}");
    assert_eq!(frames.len(), routed.len(), "{said}");
    for (frame, packet) in frames.iter().zip(&routed) {
        // DF is cleared in paper, and so the header's checksum is another; route and segment are as
        // they came.
        assert_eq!(frame[34..], framed(packet)[34..], "{said}");
    }
    // What breaks the sum is still no segment.
    let mut wrong = routed.to_vec();
    wrong[3][44] ^= 1;
    let Some((frames, said, _)) = replay(&pcap(&wrong), "paper") else { return };
    assert!(said.contains("tcp-checksum") && frames.len() < routed.len(), "{said}");
    // Elsewhere such packets never leave.
    let Some((frames, said, _)) = replay(&pcap(&routed), "balanced") else { return };
    assert!(frames.is_empty() && said.contains("ip-options"), "{said}");
}
