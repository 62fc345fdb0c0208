//! What somebody without a key can do with what he recorded, and what many hosts with one can do
//! together: nobody is kept out.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bump::DropReason;
use cll::Effect;
use common::{Lan, START_UNIX_S, Site, mac, settings, to_group};
use identity::HostIdentity;
use identity::agreement::KeyPair;
use wire::cll::handshake::{append_signature, set_site_tag, tagged_parts, unsigned_parts};
use wire::cll::{Compression, Handshake, Offer, PacketType, Resolution};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

const DAY_MS: u64 = 86_400_000;

/// Requests of one host as a wire carries them: signed by its key, tagged by its site.
struct Author {
    identity: Arc<HostIdentity>,
    pair: KeyPair,
}

impl Author {
    fn new(identity: Arc<HostIdentity>) -> Author {
        Author { identity, pair: KeyPair::from_random(&[77; 32]).unwrap() }
    }

    fn mac(&self) -> MacAddress {
        self.identity.certificate().mac()
    }

    /// Its request number `number`, made at `unix_ms`, for the host with number `to`.
    fn request(&self, number: u32, unix_ms: u64, to: u8) -> Vec<u8> {
        let mut nonce = [0x5c; 16];
        nonce[..4].copy_from_slice(&number.to_be_bytes());
        let own_ip = self.identity.certificate().addresses().first().copied();
        let mut message = Handshake {
            kind: PacketType::HandshakeRequest,
            site_tag: [0; 16],
            resolution: Resolution::by_hardware_address(self.mac(), own_ip, mac(to)),
            timestamp_ms: unix_ms,
            nonce,
            offer: self.offer(number),
            key_share: self.pair.public(),
            cookie: [0; 16],
            certificate: self.identity.certificate().der(),
            signature: &[],
        }
        .emit_unsigned();
        let [before, after] = unsigned_parts(&message);
        let signature = self.identity.sign(&[b"ringwall cll 2 request", before, after].concat()).unwrap();
        append_signature(&mut message, &signature);
        let ethernet = Header { destination: mac(to), source: self.mac(), ethertype: EtherType::CLL }.emit();
        let [before, after] = tagged_parts(&message);
        let tag = self.identity.site_key().frame_tag(b"handshake", &[&ethernet, before, after]);
        set_site_tag(&mut message, &tag);
        [&ethernet[..], &message].concat()
    }

    fn offer(&self, number: u32) -> Offer {
        Offer {
            agreement: wire::cll::Agreement::X25519,
            suite: identity::aead::Suite::Aes256Gcm.id(),
            confidential: true,
            slow_nonce: false,
            lanes: 1,
            receiver_index: 8 * (number + 1),
            lifetime_s: 1800,
            compression: Compression::NONE,
            post_quantum: false,
            pre_shared: false,
        }
    }
}

fn now_ms(lan: &Lan) -> u64 {
    START_UNIX_S * 1000 + lan.at.as_nanos() / 1_000_000
}

/// Everything that a daemon keeps of this host's peers is there when its program starts anew.
fn restart_with_what_is_kept(lan: &mut Lan, host: usize) {
    let effects = lan.hosts[host].effects.clone();
    let settings = &mut lan.hosts[host].settings;
    for effect in effects {
        match effect {
            Effect::Remember(proved) => settings.proved.push(proved),
            Effect::RememberTime { mac, unix_ms } => settings.heard.push((mac, unix_ms)),
            _ => {}
        }
    }
    lan.restart(host);
}

fn sent(lan: &Lan, from: usize, kind: PacketType) -> Vec<Vec<u8>> {
    let is_kind = |frame: &[u8]| frame[12..14] == [0x07, 0xd0] && frame[14] == kind.first_byte();
    lan.seen.iter().filter(|(host, frame)| *host == from && is_kind(frame)).map(|(_, frame)| frame.clone()).collect()
}

/// Host 0 asks for host 1 while `recordings` come at it, one every `gap`. Whether it gets in before
/// it gives up.
fn gets_in_beside(recordings: &[Vec<u8>], lan: &mut Lan, gap: Duration) -> bool {
    let mut next = recordings.iter().cycle();
    let mut flood = |lan: &mut Lan| next.next().into_iter().for_each(|frame| lan.inject(1, frame.clone()));
    (0..250).for_each(|_| flood(lan));
    lan.ask(0, 2);
    let began = lan.at;
    while !lan.hosts[0].established_with(2) && lan.at.since(began) < cll::limits::HANDSHAKE_GIVE_UP {
        flood(lan);
        lan.pass(gap);
    }
    lan.hosts[0].established_with(2)
}

/// Both hosts start anew, so that host 1 has to challenge host 0. Hosts 3 to 3 + `authors` are
/// known to host 1 and away.
fn restarted_pair(authors: u8) -> (Lan, Vec<Author>) {
    let mut site = Site::new(1);
    let mut lan = Lan::new((1..=2 + authors).map(|number| settings(site.identity(number))));
    lan.ask(0, 2);
    (0..authors).for_each(|author| lan.ask(2 + usize::from(author), 2));
    lan.pass(Duration::from_secs(1));
    let authors = lan.hosts.drain(2..).map(|host| Author::new(host.settings.identity)).collect::<Vec<_>>();
    assert!(authors.iter().all(|author| lan.hosts[1].cll.control.established_with(author.mac()) == 1));
    restart_with_what_is_kept(&mut lan, 1);
    lan.restart(0);
    (lan, authors)
}

#[test]
fn recorded_requests_of_one_host_leave_all_others_their_challenges() {
    for gap_us in [100, 500, 2300] {
        let (mut lan, authors) = restarted_pair(1);
        let yesterday = now_ms(&lan) - DAY_MS;
        let recordings: Vec<_> = (0..1000).map(|n| authors[0].request(n, yesterday + u64::from(n), 2)).collect();
        let gap = Duration::from_micros(gap_us);
        assert!(gets_in_beside(&recordings, &mut lan, gap), "a recording every {gap_us} us");
        assert!(lan.hosts[1].drops(DropReason::HandshakeBudget) > 0, "the flood was more than its budget");
    }
}

/// Ten hosts were recorded for a day, and the host that asks is one of them. Each share is for one
/// source, but all of these are.
#[test]
fn recorded_requests_of_many_hosts_and_of_the_one_that_asks_keep_nobody_out() {
    let (mut lan, mut authors) = restarted_pair(10);
    authors.push(Author::new(Arc::clone(&lan.hosts[0].settings.identity)));
    let yesterday = now_ms(&lan) - DAY_MS;
    let recordings: Vec<_> =
        (0..1100_u32).map(|n| authors[n as usize % authors.len()].request(n, yesterday + u64::from(n), 2)).collect();
    assert!(gets_in_beside(&recordings, &mut lan, Duration::from_micros(500)));
}

/// Recordings from while the victim was down are newer than what it remembers; what their sender
/// says now is newer still.
#[test]
fn requests_that_were_recorded_while_a_host_was_down_keep_nobody_out() {
    let (mut lan, mut authors) = restarted_pair(3);
    authors.push(Author::new(Arc::clone(&lan.hosts[0].settings.identity)));
    lan.pass(Duration::from_secs(60));
    let just_now = now_ms(&lan) - 50_000;
    let recordings: Vec<_> =
        (0..1000_u32).map(|n| authors[n as usize % authors.len()].request(n, just_now + u64::from(n), 2)).collect();
    assert!(gets_in_beside(&recordings, &mut lan, Duration::from_micros(500)));
}

/// A host whose clock was set back to before all that it ever said has nothing newer to say; it
/// shares a budget with recordings, and gets in once they do not come faster than that.
#[test]
fn a_host_whose_clock_was_set_back_is_challenged_beside_slow_recordings() {
    let (mut lan, authors) = restarted_pair(1);
    let yesterday = now_ms(&lan) - DAY_MS;
    lan.hosts[0].clock_error_s = Some(-365 * 86_400);
    let recordings: Vec<_> = (0..1000).map(|n| authors[0].request(n, yesterday + u64::from(n), 2)).collect();
    assert!(gets_in_beside(&recordings, &mut lan, Duration::from_millis(10)));
}

/// The table of answers held 1,024 requests for 30 s each, which is 34 a second; 14 hosts filled it
/// for everybody.
#[test]
fn handshakes_of_many_hosts_at_their_full_rate_keep_nobody_out() {
    let mut site = Site::new(1);
    let mut lan = Lan::new([1, 2].map(|number| settings(site.identity(number))));
    lan.ask(0, 2);
    // From now on a request that is new is known by its time.
    lan.pass(Duration::from_secs(150));
    let authors: Vec<_> = (10..24).map(|number| Author::new(site.identity(number))).collect();
    lan.wire = Box::new(|_, _, _| false);
    for round in 0..90 {
        for author in &authors {
            let request = author.request(round, now_ms(&lan), 2);
            lan.inject(1, request);
        }
        lan.pass(Duration::from_millis(300));
    }
    assert_eq!(lan.hosts[1].drops(DropReason::HandshakeBudget), 0, "47 a second, of 200");
    lan.wire = Box::new(|_, _, _| true);
    lan.restart(0);
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2));
}

/// A question had no time in it, so a dozen recordings used up the share of the host that had once
/// asked them.
#[test]
fn recorded_questions_do_not_make_a_restarted_receiver_deaf_to_groups() {
    for phase_us in [0, 1730, 4400, 7100] {
        let mut lan = Lan::pair();
        for number in 0..12 {
            lan.pass(Duration::from_millis(2_003 + 3 * number));
            lan.restart(1);
            lan.send(0, to_group(1, MacAddress::BROADCAST, &[number as u8; 8]));
            lan.pass(Duration::from_secs(1));
        }
        let recordings = sent(&lan, 1, PacketType::Question);
        assert!(recordings.len() >= 12, "each start asked");
        lan.pass(Duration::from_secs(10));
        lan.restart(1);
        let before = lan.hosts[1].payloads(EtherType::IPV4).len();
        let mut frames = 0;
        for step in 0..2000_usize {
            lan.inject(0, recordings[step % recordings.len()].clone());
            if step % 100 == 50 {
                lan.pass(Duration::from_micros(phase_us));
                lan.send(0, to_group(1, MacAddress::BROADCAST, &step.to_be_bytes()));
                frames += 1;
            }
            lan.pass(Duration::from_millis(10));
        }
        let heard = lan.hosts[1].payloads(EtherType::IPV4).len() - before;
        assert!(heard + 1 >= frames, "phase {phase_us} us: heard {heard} of {frames}");
        assert!(lan.hosts[0].drops(DropReason::GroupBudget) > 0, "the recordings were more than their budget");
    }
}

/// What a recording is answered with is a challenge, within the budget, and nothing that costs a
/// signature.
#[test]
fn recordings_buy_no_signature() {
    let (mut lan, authors) = restarted_pair(1);
    let yesterday = now_ms(&lan) - DAY_MS;
    let replies = sent(&lan, 1, PacketType::HandshakeReply).len();
    for number in 0..300 {
        let request = authors[0].request(number, yesterday + u64::from(number), 2);
        lan.inject(1, request);
    }
    assert_eq!(sent(&lan, 1, PacketType::HandshakeReply).len(), replies);
    assert!(lan.hosts[1].cll.control.peers(lan.at).is_empty());
}
