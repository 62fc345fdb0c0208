//! DHCP through link layers (paper, section 6): the way to a lease, what comes with it, and everything that does not pass.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::DropReason;
use cll::{Instruction, Legacy, Migration, Settings};
use common::{Lan, Site, client_settings, ip, mac, plain_frame, server_settings, settings, to_group};
use identity::dhcp_key::DhcpMaster;
use identity::shared_keys::NO_END;
use identity::{Generation, Succession, Term};
use wire::cll::dhcp::{Speaker, set_tag};
use wire::cll::{DhcpFrame, PacketType};
use wire::dhcp::{MessageType, Operation, View};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

const XID: [u8; 4] = [1, 2, 3, 4];
const LEASE_S: u32 = 600;
/// A test begins 1000 s after the site, and a LAN a second later.
const FIRST_LEASE_ENDS_UNIX_S: u64 = common::START_UNIX_S + 1001 + LEASE_S as u64;
const NONE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
/// Where the server is, and two clients.
const D: usize = 0;
const A: usize = 1;
const B: usize = 2;

/// What a DHCP program puts on the wire.
#[derive(Clone)]
struct Program {
    kind: MessageType,
    source: MacAddress,
    destination: MacAddress,
    from_ip: Ipv4Addr,
    chaddr: MacAddress,
    ciaddr: Ipv4Addr,
    yiaddr: Ipv4Addr,
    giaddr: Ipv4Addr,
    options: Vec<u8>,
}

impl Program {
    fn of_client(number: u8, kind: MessageType, options: &[u8]) -> Program {
        let (destination, chaddr) = (MacAddress::BROADCAST, mac(number));
        let options = options.to_vec();
        Program {
            kind,
            source: chaddr,
            destination,
            from_ip: NONE,
            chaddr,
            ciaddr: NONE,
            yiaddr: NONE,
            giaddr: NONE,
            options,
        }
    }

    fn of_server(to: u8, kind: MessageType, yiaddr: Ipv4Addr, lease_s: u32) -> Program {
        let time = if kind == MessageType::Nak { vec![] } else { [&[51, 4][..], &lease_s.to_be_bytes()].concat() };
        let options = [&[54, 4, 10, 0, 0, 1][..], &time].concat();
        let (source, destination, chaddr) = (mac(1), MacAddress::BROADCAST, mac(to));
        Program { kind, source, destination, from_ip: ip(1), chaddr, ciaddr: NONE, yiaddr, giaddr: NONE, options }
    }

    fn frame(&self) -> Vec<u8> {
        let is_request = self.kind.operation() == Operation::Request;
        let mut bootp = vec![0; 240];
        bootp[..4].copy_from_slice(&[if is_request { 1 } else { 2 }, 1, 6, 0]);
        bootp[4..8].copy_from_slice(&XID);
        bootp[12..16].copy_from_slice(&self.ciaddr.octets());
        bootp[16..20].copy_from_slice(&self.yiaddr.octets());
        bootp[24..28].copy_from_slice(&self.giaddr.octets());
        bootp[28..34].copy_from_slice(&self.chaddr.0);
        bootp[236..].copy_from_slice(&[99, 130, 83, 99]);
        bootp.extend([&[53, 1, self.kind as u8][..], &self.options, &[255]].concat());
        let (ip_len, udp_len) = ((28 + bootp.len()) as u16, (8 + bootp.len()) as u16);
        let ports: [u8; 4] = if is_request { [0, 68, 0, 67] } else { [0, 67, 0, 68] };
        let mut packet = [&[0x45, 0][..], &ip_len.to_be_bytes(), &[0, 0, 0, 0, 64, 17, 0, 0]].concat();
        packet.extend(self.from_ip.octets());
        packet.extend([255; 4]);
        wire::ipv4::fill_checksum(&mut packet);
        packet.extend(ports);
        packet.extend(udp_len.to_be_bytes());
        let header = Header { destination: self.destination, source: self.source, ethertype: EtherType::IPV4 };
        [&header.emit()[..], &packet, &[0, 0], &bootp].concat()
    }
}

fn wants(number: u8) -> Vec<u8> {
    [&[50, 4][..], &ip(number).octets()].concat()
}

fn discover(number: u8) -> Program {
    Program::of_client(number, MessageType::Discover, &[])
}

fn request(number: u8) -> Program {
    Program::of_client(number, MessageType::Request, &[&[54, 4, 10, 0, 0, 1][..], &wants(number)].concat())
}

/// Without the name of a server, as in a renewal.
fn renewal(number: u8) -> Program {
    Program { ciaddr: ip(number), from_ip: ip(number), ..Program::of_client(number, MessageType::Request, &[]) }
}

/// A server and two clients of one site.
fn lan() -> Lan {
    lan_with(None)
}

/// The same, where tickets live for `resumption`.
fn lan_with(resumption: Option<Duration>) -> Lan {
    let mut site = Site::new(1);
    let server = server_settings(site.server(1, "10.0.0.0/29"));
    let all = [server, client_settings(site.base(2)), client_settings(site.base(3))];
    let mut lan = Lan::new(all.map(|settings| Settings { resumption, ..settings }));
    // A stamp of the second in which the server started may be a recording.
    lan.pass(Duration::from_secs(1));
    lan
}

/// How many messages of this kind were given to the programs of `host`.
fn heard(lan: &Lan, host: usize, kind: MessageType) -> usize {
    let of_kind = |frame: &&(Vec<u8>, bump::Meta)| View::new(&frame.0).is_ok_and(|message| message.kind() == kind);
    lan.hosts[host].delivered.iter().filter(of_kind).count()
}

/// The program of `client` gets its address; the server's answers at once.
fn lease(lan: &mut Lan, client: usize) {
    let number = client as u8 + 1;
    lan.send(client, discover(number).frame());
    lan.send(D, Program::of_server(number, MessageType::Offer, ip(number), LEASE_S).frame());
    lan.send(client, request(number).frame());
    lan.send(D, Program::of_server(number, MessageType::Ack, ip(number), LEASE_S).frame());
}

/// The newest DHCP frame that `host` sent.
fn newest(lan: &Lan, host: usize) -> Vec<u8> {
    let is_dhcp = |frame: &[u8]| PacketType::of(&frame[14..]) == Ok(PacketType::Dhcp);
    lan.seen.iter().rev().find(|(from, frame)| *from == host && is_dhcp(frame)).unwrap().1.clone()
}

#[test]
fn a_lease_makes_a_host_somebody_to_its_peers() {
    let mut lan = lan();
    lan.ask(A, 1);
    assert_eq!(lan.hosts[A].drops(DropReason::ArpNotOurs), 1, "without an address nobody is asked");
    for client in [A, B] {
        lease(&mut lan, client);
        assert_eq!(lan.hosts[client].count("address-leased"), 1);
        assert_eq!((heard(&lan, client, MessageType::Offer), heard(&lan, client, MessageType::Ack)), (1, 1));
    }
    assert_eq!(lan.hosts[D].count("lease-certified"), 2);
    assert_eq!(lan.hosts[A].drops(DropReason::NotForUs), 2, "what B's answers were");
    lan.ask(A, 3);
    assert!(lan.hosts[A].established_with(3) && lan.hosts[B].established_with(2));
    let peer = lan.hosts[B].cll.control.peers(lan.at).remove(0);
    assert_eq!(peer.addresses, [ip(2)]);
    assert!(peer.certificate_not_after_unix <= FIRST_LEASE_ENDS_UNIX_S, "it ends with the lease");
    assert!(peer.remaining <= Duration::from_secs(u64::from(LEASE_S) + 1), "and the association with it");
}

#[test]
fn a_renewal_shows_peers_the_newer_certificate_and_the_end_of_a_lease_ends_all() {
    let mut lan = lan();
    [A, B].into_iter().for_each(|client| lease(&mut lan, client));
    lan.ask(A, 3);
    lan.pass(Duration::from_secs(300));
    lan.send(A, renewal(2).frame());
    lan.send(D, Program::of_server(2, MessageType::Ack, ip(2), LEASE_S).frame());
    lan.pass(Duration::from_secs(2));
    assert_eq!((lan.hosts[A].count("renewed"), lan.hosts[B].count("renewed")), (1, 1));
    assert_eq!(lan.hosts[A].count("address-leased"), 1, "it is the same address");
    let peer = lan.hosts[B].cll.control.peers(lan.at).remove(0);
    assert!(peer.certificate_not_after_unix > FIRST_LEASE_ENDS_UNIX_S);
    lan.pass(Duration::from_secs(u64::from(LEASE_S)));
    assert_eq!((lan.hosts[A].count("lease-lost"), lan.hosts[B].count("lease-lost")), (1, 1));
    assert!(!lan.hosts[A].established_with(3) && !lan.hosts[B].established_with(2));
    lan.ask(B, 2);
    assert_eq!(lan.hosts[B].drops(DropReason::ArpNotOurs), 1);
}

#[test]
fn an_operator_sees_each_lease_as_long_as_it_lasts() {
    let mut lan = lan();
    let seen = |lan: &Lan, host: usize| -> Vec<(Ipv4Addr, MacAddress, Option<u64>, bool)> {
        let leases = lan.hosts[host].cll.control.leases(lan.at);
        leases.into_iter().map(|one| (one.ip, one.mac, one.remaining.map(|left| left.as_secs()), one.given)).collect()
    };
    lease(&mut lan, A);
    lan.pass(Duration::from_secs(100));
    lease(&mut lan, B);
    let left = u64::from(LEASE_S);
    assert_eq!(seen(&lan, A), [(ip(2), mac(2), Some(left - 100), false)]);
    assert_eq!(seen(&lan, D), [(ip(2), mac(2), Some(left - 100), true), (ip(3), mac(3), Some(left), true)]);
    lan.pass(Duration::from_secs(left - 50));
    assert_eq!((seen(&lan, A), seen(&lan, D)), (vec![], vec![(ip(3), mac(3), Some(50), true)]));
}

#[test]
fn with_its_lease_a_host_is_somebody_new_to_groups() {
    let mut lan = lan();
    let mut frame = plain_frame(2, 1, b"without an address");
    frame[..6].copy_from_slice(&MacAddress::BROADCAST.0);
    lan.send(A, frame);
    assert_eq!(lan.hosts[D].count("group-sender"), 1, "its base certificate is enough for what names no address");
    lease(&mut lan, A);
    lan.pass(Duration::from_secs(2));
    lan.send(A, to_group(2, MacAddress::BROADCAST, b"from its address"));
    let is_heard = |payload: &Vec<u8>| payload.windows(16).any(|window| window == b"from its address");
    assert!(lan.hosts[D].payloads(EtherType::IPV4).iter().any(is_heard), "judged by the new certificate");
    assert_eq!((lan.hosts[D].count("group-sender"), lan.hosts[D].drops(DropReason::InnerSource)), (2, 0));
}

#[test]
fn tickets_end_with_the_leased_certificate() {
    let mut lan = lan_with(Some(Duration::from_secs(3600)));
    lease(&mut lan, A);
    lan.ask(A, 1);
    lan.pass(Duration::from_secs(3));
    assert_eq!((lan.hosts[A].cll.control.tickets_held(), lan.hosts[D].cll.control.tickets_held()), (1, 1));
    lan.send(A, renewal(2).frame());
    lan.send(D, Program::of_server(2, MessageType::Ack, ip(2), LEASE_S).frame());
    assert_eq!(lan.hosts[A].cll.control.tickets_held(), 0, "it was given to the certificate of before");
    lan.restart(D);
    lan.ask(D, 2);
    assert_eq!(lan.hosts[A].drops(DropReason::TicketUnknown), 1, "it was given under the certificate of before");
    assert!(lan.hosts[D].established_with(2), "the handshake takes over");
}

#[test]
fn a_chain_fits_a_ticket() {
    let mut lan = lan_with(Some(Duration::from_secs(3600)));
    lease(&mut lan, A);
    lan.ask(A, 1);
    lan.pass(Duration::from_secs(3));
    lan.restart(D);
    lan.ask(D, 2);
    assert!(lan.hosts[D].cll.control.peers(lan.at)[0].resumed);
}

/// Its DHCP program has the address still, and asks again when half of the lease is over.
#[test]
fn a_daemon_that_is_started_anew_goes_on_with_its_lease() {
    let mut lan = lan();
    lease(&mut lan, A);
    let asked = lan.seen.len();
    lan.pass(Duration::from_secs(60));
    lan.restart(A);
    assert!(!lan.seen[asked..].iter().any(|(from, _)| *from == A), "nobody was asked");
    let report = lan.hosts[A].cll.control.leases(lan.at)[0].clone();
    assert_eq!((report.ip, report.remaining), (ip(2), Some(Duration::from_secs(u64::from(LEASE_S) - 60))));
    lan.ask(A, 1);
    assert!(lan.hosts[D].established_with(2));
    // It ends when it would have ended.
    lan.pass(Duration::from_secs(u64::from(LEASE_S) - 61));
    lan.restart(A);
    assert_eq!(lan.hosts[A].cll.control.leases(lan.at).len(), 1);
    lan.pass(Duration::from_secs(2));
    assert_eq!(lan.hosts[A].count("lease-lost"), 1);
    assert_eq!(lan.hosts[A].disk.lease, None);
    // What is over is no lease, however it comes to be read.
    lease(&mut lan, A);
    let over = lan.hosts[A].disk.lease.clone();
    lan.pass(Duration::from_secs(u64::from(LEASE_S) + 1));
    lan.hosts[A].disk.lease = over;
    lan.restart(A);
    assert!(lan.hosts[A].cll.control.leases(lan.at).is_empty());
    assert_eq!(lan.hosts[A].disk.lease, None);
}

/// A file in which somebody changed something, or that is another host's, gives no address.
#[test]
fn a_lease_that_is_kept_is_checked_as_when_it_came() {
    let mut lan = lan();
    lease(&mut lan, A);
    lease(&mut lan, B);
    let (own, of_other) = (lan.hosts[A].disk.lease.clone(), lan.hosts[B].disk.lease.clone());
    let changed = own.clone().map(|mut lease| {
        lease.certificate[100] ^= 1;
        lease
    });
    let elsewhere = own.map(|lease| cll::KeptLease { address: ip(3), ..lease });
    for lease in [of_other, changed, elsewhere] {
        assert!(lease.is_some());
        lan.hosts[A].disk.lease = lease;
        lan.restart(A);
        assert!(lan.hosts[A].cll.control.leases(lan.at).is_empty());
        assert_eq!(lan.hosts[A].disk.lease, None, "it is not tried again");
    }
}

#[test]
fn a_host_of_1970_is_challenged_and_gets_its_lease() {
    let mut lan = lan();
    lan.hosts[A].clock_error_s = Some(-1_799_999_000);
    lease(&mut lan, A);
    assert_eq!(lan.hosts[A].count("address-leased"), 1);
    let is_empty = |frame: &[u8]| DhcpFrame::parse(&frame[14..]).is_ok_and(|frame| frame.packet.is_empty());
    assert_eq!(
        lan.seen.iter().filter(|(from, frame)| *from == D && is_empty(frame)).count(),
        1,
        "for the DISCOVER alone"
    );
    assert_eq!(heard(&lan, D, MessageType::Discover), 1);
    lan.hosts[B].clock_error_s = None;
    lease(&mut lan, B);
    lan.ask(B, 2);
    assert!(lan.hosts[A].established_with(3), "and it speaks");
}

#[test]
fn a_recording_is_answered_with_a_nonce_and_goes_no_further() {
    let mut lan = lan();
    lan.send(A, discover(2).frame());
    let recorded = newest(&lan, A);
    assert_eq!(heard(&lan, D, MessageType::Discover), 1);
    for _ in 0..3 {
        lan.inject(D, recorded.clone());
    }
    assert_eq!(
        heard(&lan, D, MessageType::Discover),
        2,
        "the client, which is asked whether it is there, says it once again"
    );
    lan.pass(Duration::from_secs(200));
    for _ in 0..20 {
        lan.inject(D, recorded.clone());
    }
    assert!(lan.hosts[D].drops(DropReason::DhcpStale) > 0, "more than a client needs are not answered");
    // A renewal with its right clock needs no nonce, and its recording is worth nothing either.
    let mut lan = self::lan();
    lease(&mut lan, A);
    lan.pass(Duration::from_secs(10));
    lan.send(A, renewal(2).frame());
    lan.send(D, Program::of_server(2, MessageType::Ack, ip(2), LEASE_S).frame());
    let (recorded, before) = (newest(&lan, A), heard(&lan, D, MessageType::Request));
    lan.inject(D, recorded);
    assert_eq!((before, heard(&lan, D, MessageType::Request)), (2, 2));
}

#[test]
fn an_answer_is_good_for_its_question_alone() {
    let mut lan = lan();
    lan.send(A, discover(2).frame());
    lan.send(D, Program::of_server(2, MessageType::Offer, ip(2), LEASE_S).frame());
    let offer = newest(&lan, D);
    lan.pass(Duration::from_secs(100));
    lan.inject(A, offer.clone());
    assert_eq!(lan.hosts[A].drops(DropReason::DhcpUnasked), 1, "its question is closed");
    lan.send(A, Program { options: vec![12, 1, b'x'], ..discover(2) }.frame());
    lan.inject(A, offer);
    assert_eq!(heard(&lan, A, MessageType::Offer), 1);
    // The client's own frame, turned round, is none of a server.
    let mut own = newest(&lan, A);
    own[15] = 1;
    lan.inject(A, own);
    assert_eq!(lan.hosts[A].drops(DropReason::OwnSource), 1);
}

#[test]
fn what_a_client_may_not_say_has_a_name() {
    let identifier = |own: u8| [&[61, 7, 1][..], &mac(own).0].concat();
    let taken = Program { ciaddr: ip(3), from_ip: ip(3), ..renewal(2) };
    let cases: [(&str, Program, DropReason); 8] = [
        ("another's hardware address", Program { chaddr: mac(3), ..discover(2) }, DropReason::DhcpChaddr),
        ("a relay", Program { giaddr: ip(9), ..discover(2) }, DropReason::DhcpRelay),
        ("another's identifier", Program { options: identifier(3), ..discover(2) }, DropReason::DhcpChaddr),
        ("another source", Program { from_ip: ip(4), ..discover(2) }, DropReason::DhcpAddress),
        ("another's address", taken, DropReason::DhcpNotHolder),
        (
            "another server",
            Program { options: [vec![54, 4, 10, 0, 0, 7], wants(2)].concat(), ..request(2) },
            DropReason::NotForUs,
        ),
        (
            "decline",
            Program { kind: MessageType::Decline, options: wants(2), ..discover(2) },
            DropReason::DhcpGivenBack,
        ),
        ("release", Program { kind: MessageType::Release, ..renewal(2) }, DropReason::DhcpGivenBack),
    ];
    for (what, program, reason) in cases {
        let mut lan = lan();
        lease(&mut lan, B);
        // An attacker with root on A has A's key: what A's own half refuses he wraps himself.
        lan.send(A, discover(2).frame());
        let frame = rewrapped(&newest(&lan, A), &program);
        lan.pass(Duration::from_secs(1));
        let before = lan.hosts[D].drops(reason);
        let delivered = lan.hosts[D].delivered.len();
        lan.inject(D, frame);
        assert_eq!(lan.hosts[D].drops(reason), before + 1, "{what}");
        assert_eq!(lan.hosts[D].delivered.len(), delivered, "{what}");
    }
}

/// The DHCP frame of a client with another message in it, under the client's own key.
fn rewrapped(frame: &[u8], program: &Program) -> Vec<u8> {
    let key = identity::dhcp_key::DhcpMaster::from_bytes([9; 32]);
    let plain = program.frame();
    let old = DhcpFrame::parse(&frame[14..]).unwrap();
    let stamp = wire::cll::dhcp::Stamp { counter: old.stamp.counter + 1, ..old.stamp };
    let mut message = DhcpFrame { packet: &plain[14..], stamp, certificate: &[], ..old }.emit();
    let [before, after] = wire::cll::dhcp::tagged_parts(&message);
    let tag = key.key_of(old.client).tag(&[&frame[..14], before, after]);
    set_tag(&mut message, &tag);
    [&frame[..14], &message].concat()
}

#[test]
fn what_is_not_under_the_key_has_a_name() {
    let mut lan = lan();
    lan.send(A, discover(2).frame());
    let frame = newest(&lan, A);
    for at in [16, 30, 40, 47, 70, 100, frame.len() - 1] {
        let mut changed = frame.clone();
        changed[at] ^= 1;
        let before = lan.hosts[D].drops(DropReason::DhcpTag) + lan.hosts[D].drops(DropReason::DhcpExpired);
        lan.inject(D, changed);
        let after = lan.hosts[D].drops(DropReason::DhcpTag) + lan.hosts[D].drops(DropReason::DhcpExpired);
        assert_eq!(after, before + 1, "byte {at}");
    }
    let mut from_other = frame.clone();
    from_other[6..12].copy_from_slice(&mac(3).0);
    lan.inject(D, from_other);
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpChaddr), 1);
    lan.inject(D, frame[..90].to_vec());
    assert_eq!(lan.hosts[D].drops(DropReason::Malformed), 1);
    lan.inject(B, frame.clone());
    assert!(lan.hosts[B].drops(DropReason::DhcpNotServer) > 0);
    assert_eq!(heard(&lan, D, MessageType::Discover), 1);
}

#[test]
fn an_expired_client_is_not_even_looked_at() {
    let mut site = Site::new(1);
    let short = site.base_until(2, Duration::from_secs(60));
    let mut lan = Lan::new([server_settings(site.server(1, "10.0.0.0/29")), client_settings(short)]);
    // The host of this simulation counts from 1000 s after the site's beginning.
    lan.send(A, discover(2).frame());
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpExpired), 1);
    assert_eq!(heard(&lan, D, MessageType::Discover), 0);
}

#[test]
fn a_server_certifies_only_what_it_serves_and_clients_only_take_what_they_asked_for() {
    let mut lan = lan();
    lan.send(A, discover(2).frame());
    lan.send(D, Program::of_server(2, MessageType::Offer, ip(2), LEASE_S).frame());
    let outside = Program { options: [&[50, 4][..], &ip(9).octets()].concat(), ..request(2) };
    lan.send(A, outside.frame());
    lan.send(D, Program::of_server(2, MessageType::Ack, ip(9), LEASE_S).frame());
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpCertificate), 1, "10.0.0.9 is not in 10.0.0.0/29");
    lan.send(D, Program::of_server(2, MessageType::Ack, ip(4), LEASE_S).frame());
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpAddress), 1, "nobody has asked for it");
    assert_eq!((lan.hosts[A].count("address-leased"), heard(&lan, A, MessageType::Ack)), (0, 0));
    lan.send(D, Program::of_server(3, MessageType::Ack, ip(3), LEASE_S).frame());
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpUnasked), 1);
}

#[test]
fn one_client_cannot_keep_a_server_busy_nor_empty_its_pool() {
    let mut lan = lan();
    for second in 0..30 {
        lan.pass(Duration::from_secs(1));
        lan.send(A, Program { options: vec![61, 2, 0, second], ..discover(2) }.frame());
    }
    assert_eq!(heard(&lan, D, MessageType::Discover), 10, "as many as are configured for a minute");
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpBudget), 20);
    lease(&mut lan, B);
    assert_eq!(lan.hosts[B].count("address-leased"), 1, "others are served meanwhile");
}

#[test]
fn a_revoked_host_gets_nothing_and_what_it_has_ends() {
    let mut site = Site::new(1);
    let base = site.base(2);
    let revoked = site.revocation_of(&base);
    let server = server_settings(site.server(1, "10.0.0.0/29"));
    let mut lan = Lan::new([server, client_settings(base), client_settings(site.base(3))]);
    [A, B].into_iter().for_each(|client| lease(&mut lan, client));
    lan.ask(A, 3);
    // The list names the base certificate; B has seen a leased one, which stands on it.
    lan.revoke(B, &revoked);
    assert!(!lan.hosts[B].established_with(2));
    lan.revoke(D, &revoked);
    lan.pass(Duration::from_secs(5));
    lan.send(A, renewal(2).frame());
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpCertificate), 1);
}

#[test]
fn an_enrolled_host_is_no_server_behind_the_seal() {
    let mut site = Site::new(1);
    let server = server_settings(site.server(1, "10.0.0.0/29"));
    let mut lan = Lan::new([server, client_settings(site.base(2)), settings(site.identity(3))]);
    lease(&mut lan, A);
    lan.ask(B, 2);
    let offer = Program {
        source: mac(3),
        from_ip: ip(3),
        destination: mac(2),
        ..Program::of_server(2, MessageType::Offer, ip(9), 9)
    };
    lan.send(B, offer.frame());
    assert_eq!(lan.hosts[B].drops(DropReason::Dhcp), 1, "a host that is not set up for it sends none");
    // An attacker with root on B has no such scruple and seals it; here behind a VLAN tag, which our own half does not look behind.
    let plain = offer.frame();
    let tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
    lan.send(B, tagged);
    assert_eq!(lan.hosts[A].drops(DropReason::Dhcp), 1);
    assert_eq!(heard(&lan, A, MessageType::Offer), 1, "that of the server");
}

#[test]
fn the_two_speakers_are_told_apart() {
    let mut lan = lan();
    lan.send(A, discover(2).frame());
    lan.send(D, Program::of_server(2, MessageType::Offer, ip(2), LEASE_S).frame());
    let offer = newest(&lan, D);
    assert_eq!(DhcpFrame::parse(&offer[14..]).unwrap().speaker, Speaker::Server);
    let mut reflected = offer;
    reflected[6..12].copy_from_slice(&mac(2).0);
    lan.inject(D, reflected);
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpNotClient), 1);
}

/// What the keys of DHCP follow from: the site's first one, and one that takes its place `after_s`
/// from the start of a test, with as long a grace.
fn masters(after_s: u64) -> Succession<DhcpMaster> {
    let now_s = FIRST_LEASE_ENDS_UNIX_S - u64::from(LEASE_S);
    let older = Term { until_unix_s: now_s + 2 * after_s, ..Term::FIRST };
    let newest = Term { generation: Generation(1), from_unix_s: now_s + after_s, until_unix_s: NO_END };
    let [former, next] = [9, 10].map(|seed| DhcpMaster::from_bytes([seed; 32]));
    Succession::new(vec![(older, former), (newest, next)]).unwrap()
}

/// A server and two clients, of which these have been given both masters, or keys of both.
fn lan_where(has_both: [bool; 3], after_s: u64) -> Lan {
    let mut site = Site::new(1);
    let server = server_settings(site.server(1, "10.0.0.0/29"));
    let mut all = [server, client_settings(site.base(2)), client_settings(site.base(3))];
    for (settings, _) in all.iter_mut().zip(has_both).filter(|(_, has)| *has) {
        if let Some(server) = &mut settings.dhcp.server {
            server.settings.masters = masters(after_s);
        }
        if let Some(client) = &mut settings.dhcp.client {
            let id = client.keys.newest().1.client();
            client.keys = masters(after_s).map(|master| master.key_of(id));
        }
    }
    let mut lan = Lan::new(all);
    lan.pass(Duration::from_secs(1));
    lan
}

/// Broke the server's `key_of` by looking under the key alone that is sent with.
#[test]
fn one_master_follows_another_and_who_has_no_key_of_it_is_nobody_after_it() {
    let mut lan = lan_where([true, true, false], 100);
    [A, B].into_iter().for_each(|client| lease(&mut lan, client));
    assert_eq!([A, B].map(|client| lan.hosts[client].count("address-leased")), [1, 1], "handed out");
    let given = |lan: &Lan, client: usize| heard(lan, client, MessageType::Ack);
    let renew = |lan: &mut Lan, client: usize| {
        let number = client as u8 + 1;
        lan.send(client, renewal(number).frame());
        lan.send(D, Program::of_server(number, MessageType::Ack, ip(number), LEASE_S).frame());
        lan.pass(Duration::from_secs(1));
    };
    lan.pass(Duration::from_secs(120));
    [A, B].into_iter().for_each(|client| renew(&mut lan, client));
    assert_eq!([A, B].map(|client| given(&lan, client)), [2, 2], "changed");
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpTag), 0);
    lan.pass(Duration::from_secs(120));
    [A, B].into_iter().for_each(|client| renew(&mut lan, client));
    assert_eq!([A, B].map(|client| given(&lan, client)), [3, 2], "over");
    assert!(lan.hosts[D].drops(DropReason::DhcpTag) > 0);
}

/// Broke `remember` by not counting repetitions.
#[test]
fn a_server_that_has_not_fetched_the_other_master_hears_the_second_try() {
    let mut lan = lan_where([false, true, false], 20);
    lan.pass(Duration::from_secs(30));
    for heard_so_far in [0, 1] {
        lan.send(A, discover(2).frame());
        assert_eq!(heard(&lan, D, MessageType::Discover), heard_so_far);
    }
    assert_eq!(lan.hosts[D].drops(DropReason::DhcpTag), 1);
    lan.send(D, Program::of_server(2, MessageType::Offer, ip(2), LEASE_S).frame());
    assert_eq!(heard(&lan, A, MessageType::Offer), 1, "it answers under the key of the question");
}

/// Broke `renew` by showing the renewed certificate at once, which binds no address.
#[test]
fn a_lease_goes_on_under_a_renewed_certificate_and_the_next_one_hangs_on_that() {
    let mut site = Site::new(1);
    let server = server_settings(site.server(1, "10.0.0.0/29"));
    let [base, renewed] = site.base_twice(2);
    let mut lan = Lan::new([server, client_settings(base), client_settings(site.base(3))]);
    lan.pass(Duration::from_secs(1));
    [A, B].into_iter().for_each(|client| lease(&mut lan, client));
    lan.ask(A, 3);
    lan.instruct(A, Instruction::Renewed(Arc::clone(&renewed)));
    assert!(lan.hosts[A].established_with(3) && lan.hosts[B].established_with(2));
    assert_eq!(lan.hosts[A].count("lease-lost"), 0);
    lan.pass(Duration::from_secs(300));
    lan.send(A, renewal(2).frame());
    let asked = newest(&lan, A);
    let asked = DhcpFrame::parse(&asked[14..]).unwrap();
    assert_eq!(asked.certificate, renewed.certificate().der());
    lan.send(D, Program::of_server(2, MessageType::Ack, ip(2), LEASE_S).frame());
    lan.pass(Duration::from_secs(2));
    assert_eq!(heard(&lan, A, MessageType::Ack), 2);
    let peer = lan.hosts[B].cll.control.peers(lan.at).remove(0);
    assert!(peer.certificate_not_after_unix > FIRST_LEASE_ENDS_UNIX_S, "peers see the newer one");
}

/// A server in this mode with host 9, a printer, on its list, and two hosts of the site that are
/// its clients.
fn migrating(server: Migration, clients: Migration) -> Lan {
    let mut site = Site::new(1);
    let mut all =
        [server_settings(site.server(1, "10.0.0.0/28")), client_settings(site.base(2)), client_settings(site.base(3))];
    all[D].legacy = vec![Legacy { mac: mac(9), ip: ip(9), router: false, broadcast: false }];
    all[D].policy.migration = server;
    all[A].policy.migration = clients;
    all[B].policy.migration = clients;
    let mut lan = Lan::new(all);
    lan.pass(Duration::from_secs(1));
    lan
}

/// Whether `host` put this frame on the wire as it is.
fn sent_in_clear(lan: &Lan, host: usize, frame: &[u8]) -> bool {
    lan.seen.iter().any(|(from, seen)| *from == host && seen == frame)
}

#[test]
fn a_server_answers_clients_that_prove_nothing_while_its_mode_lets_everything_pass() {
    for (mode, is_served) in [(Migration::Observe, true), (Migration::Prefer, true), (Migration::Enforce, false)] {
        let mut lan = migrating(mode, mode);
        let (asks, offers) = (discover(7), Program::of_server(7, MessageType::Offer, ip(7), LEASE_S));
        lan.inject(D, asks.frame());
        assert_eq!(heard(&lan, D, MessageType::Discover), usize::from(is_served), "{mode:?}");
        lan.send(D, offers.frame());
        assert_eq!(sent_in_clear(&lan, D, &offers.frame()), is_served, "{mode:?}");
        lan.inject(D, request(7).frame());
        let grants = Program::of_server(7, MessageType::Ack, ip(7), LEASE_S);
        lan.send(D, grants.frame());
        assert_eq!(sent_in_clear(&lan, D, &grants.frame()), is_served, "{mode:?}");
        let would_drop = lan.hosts[D].ledger().excused[DropReason::Dhcp as usize];
        assert_eq!(would_drop, if is_served { 2 } else { 0 }, "what enforcing would drop is counted: {mode:?}");
    }
}

#[test]
fn a_proved_client_is_answered_by_proof_beside_those_in_clear() {
    let mut lan = migrating(Migration::Observe, Migration::Observe);
    lan.inject(D, discover(7).frame());
    lease(&mut lan, A);
    assert_eq!(lan.hosts[A].count("address-leased"), 1);
    for kind in [MessageType::Offer, MessageType::Ack] {
        assert!(!sent_in_clear(&lan, D, &Program::of_server(2, kind, ip(2), LEASE_S).frame()), "{kind:?}");
    }
    assert!(!sent_in_clear(&lan, A, &discover(2).frame()), "it was answered at once");
}

#[test]
fn nobody_asks_in_clear_for_a_client_with_a_proved_lease() {
    let mut lan = migrating(Migration::Prefer, Migration::Prefer);
    lease(&mut lan, A);
    let before = heard(&lan, D, MessageType::Request);
    lan.inject(D, renewal(2).frame());
    let of_other = Program { source: mac(8), ..renewal(2) };
    lan.inject(D, of_other.frame());
    assert_eq!((heard(&lan, D, MessageType::Request), lan.hosts[D].drops(DropReason::Downgrade)), (before, 2));
    assert!(lan.hosts[D].count("downgrade") > 0);
}

#[test]
fn a_host_on_the_list_gets_its_reservation_in_every_mode_and_nothing_else() {
    for mode in Migration::ALL {
        let mut lan = migrating(mode, mode);
        for ask in [discover(9), request(9), Program { source: mac(9), destination: mac(1), ..renewal(9) }] {
            lan.inject(D, ask.frame());
        }
        let heard_of = (heard(&lan, D, MessageType::Discover), heard(&lan, D, MessageType::Request));
        assert_eq!(heard_of, (1, 2), "{mode:?}");
        let ack = Program::of_server(9, MessageType::Ack, ip(9), LEASE_S);
        let unicast = Program { destination: mac(9), ..ack.clone() };
        for answer in [Program::of_server(9, MessageType::Offer, ip(9), LEASE_S), ack, unicast] {
            lan.send(D, answer.frame());
            assert!(sent_in_clear(&lan, D, &answer.frame()), "{mode:?}");
        }
    }
    let mut lan = migrating(Migration::Enforce, Migration::Enforce);
    let lies = [
        Program { chaddr: mac(2), ..discover(9) },
        request(8),
        Program { giaddr: ip(9), ..discover(9) },
        Program::of_client(9, MessageType::Decline, &wants(9)),
        Program { ciaddr: ip(3), from_ip: ip(3), ..renewal(9) },
    ];
    for lie in lies.iter().map(|lie| Program { source: mac(9), ..lie.clone() }) {
        lan.inject(D, lie.frame());
    }
    let other = Program::of_server(9, MessageType::Ack, ip(5), LEASE_S);
    lan.send(D, other.frame());
    lan.send(D, Program { destination: mac(9), ..other.clone() }.frame());
    assert!(!sent_in_clear(&lan, D, &other.frame()));
    let given = [MessageType::Discover, MessageType::Request, MessageType::Decline].map(|kind| heard(&lan, D, kind));
    assert_eq!((given, lan.hosts[D].drops(DropReason::Dhcp)), ([0; 3], 5));
}

#[test]
fn a_client_asks_in_clear_when_no_server_of_the_site_answers_and_only_where_the_mode_lets_it() {
    for (mode, falls_back) in [(Migration::Observe, true), (Migration::Enforce, false)] {
        let mut site = Site::new(1);
        let mut settings = client_settings(site.base(2));
        settings.policy.migration = mode;
        let mut lan = Lan::new([settings]);
        let offer = Program { source: mac(7), ..Program::of_server(2, MessageType::Offer, ip(2), LEASE_S) };
        let ack = Program { kind: MessageType::Ack, ..offer.clone() };
        let first = discover(2).frame();
        lan.send(0, first.clone());
        lan.inject(0, offer.frame());
        assert!(!sent_in_clear(&lan, 0, &first), "the first question is for those that prove themselves");
        assert_eq!(heard(&lan, 0, MessageType::Offer), 0, "and so are its answers");
        lan.pass(Duration::from_secs(3));
        lan.send(0, first.clone());
        lan.inject(0, offer.frame());
        lan.send(0, request(2).frame());
        lan.inject(0, ack.frame());
        let of_another = Program { chaddr: mac(3), ..ack.clone() };
        lan.inject(0, of_another.frame());
        let counts = [MessageType::Offer, MessageType::Ack].map(|kind| heard(&lan, 0, kind));
        assert_eq!((sent_in_clear(&lan, 0, &first), counts), (falls_back, [usize::from(falls_back); 2]), "{mode:?}");
        // With that address it is found by whoever asks in clear.
        lan.inject(0, common::arp_request(7, 2));
        let asked = lan.hosts[0].payloads(EtherType::ARP).len();
        assert_eq!(asked, usize::from(falls_back), "{mode:?}");
    }
}
