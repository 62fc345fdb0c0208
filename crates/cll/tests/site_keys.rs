//! One site key follows another while hosts talk (docs/protocol.md, section 3; record 0064).
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Generator};
use cll::Instruction;
use common::{Lan, START_UNIX_S, datagram, request, settings, to_group};
use identity::shared_keys::NO_END;
use identity::site_key::SiteKey;
use identity::{Generation, HostIdentity, Succession, Term};
use wire::MacAddress;
use wire::cll::PacketType;
use zeroize::Zeroizing;

/// When hosts begin to send with the new key, on the clock of the LAN, which shows 1000 s at first.
const CHANGE: Duration = Duration::from_secs(1_120);
/// Until when the old one is accepted.
const END: Duration = Duration::from_secs(1_300);
/// When it is not any more, and everybody has looked at his clock.
const OVER: Duration = Duration::from_secs(1_302);
const MDNS: MacAddress = MacAddress([0x01, 0, 0x5e, 0, 0, 0xfb]);

fn unix_s(at: Duration) -> u64 {
    START_UNIX_S + at.as_secs()
}

fn key(generation: u32) -> SiteKey {
    SiteKey::from_bytes([40 + generation as u8; 32])
}

fn term(generation: u32, from_unix_s: u64, until_unix_s: u64) -> Term {
    Term { generation: Generation(generation), from_unix_s, until_unix_s }
}

/// A site whose key is about to change, and what its hosts have of it.
struct Office {
    site: authority::Site,
    texts: Vec<Zeroizing<String>>,
}

impl Office {
    /// With three hosts that have the first key alone.
    fn open() -> Office {
        let mut random = Generator::from_seed([7; 32]);
        let mut fill = |bytes: &mut [u8]| bytes.fill_with(|| random.bytes::<1>()[0]);
        let mut site = authority::Site::create("lab", &mut fill, START_UNIX_S).unwrap();
        site.share(key(0).into());
        let texts = [1, 2, 3].map(|number| site.issue_identity(&request(number), &mut fill, START_UNIX_S).unwrap());
        let keys = [(term(0, 0, unix_s(END)), key(0)), (term(1, unix_s(CHANGE), NO_END), key(1))];
        site.share(Succession::new(keys.into()).unwrap());
        Office { site, texts: texts.into() }
    }

    fn identity(&self, host: usize) -> Arc<HostIdentity> {
        Arc::new(HostIdentity::from_pem(&self.texts[host]).unwrap())
    }

    fn lan(&self) -> Lan {
        let mut lan = Lan::new([0, 1, 2].map(|host| settings(self.identity(host))));
        // Longer than what a receiver of group frames may have delivered before its start.
        lan.pass(Duration::from_secs(10));
        lan
    }

    /// The host asks for the keys as they are, and its running program takes them.
    fn give_keys(&mut self, lan: &mut Lan, host: usize) {
        let bundle = self.site.share_with(self.identity(host).certificate().clone()).unwrap();
        let unix_s = unix_s(Duration::from_nanos(lan.at.as_nanos()));
        let (text, identity) = authority::enrolment::renewed(&self.texts[host], &bundle.to_pem(), unix_s).unwrap();
        self.texts[host] = text;
        lan.hosts[host].settings.identity = Arc::new(identity);
        let identity = Arc::clone(&lan.hosts[host].settings.identity);
        lan.instruct(host, Instruction::Renewed(identity));
    }
}

fn pass_until(lan: &mut Lan, at: Duration) {
    let now = Duration::from_nanos(lan.at.as_nanos());
    lan.pass(at - now);
}

fn drops(lan: &Lan, reason: DropReason) -> u64 {
    lan.hosts.iter().map(|host| host.drops(reason)).sum()
}

/// Host `from` asks for host `to`, with time for one repetition, and both send.
fn meet(lan: &mut Lan, from: usize, to: usize) -> bool {
    lan.ask(from, to as u8 + 1);
    lan.pass(Duration::from_millis(3_500));
    let talk = |lan: &mut Lan, from: usize, to: usize| {
        let frame = datagram(from as u8 + 1, to as u8 + 1, &lan.at.as_nanos().to_be_bytes());
        lan.send(from, frame.clone());
        lan.hosts[to].delivered.last().is_some_and(|(delivered, _)| *delivered == frame)
    };
    lan.hosts[from].established_with(to as u8 + 1) && talk(lan, from, to) && talk(lan, to, from)
}

/// Whether a frame of host `from` to a group is delivered at host `to`.
fn is_heard(lan: &mut Lan, from: usize, to: usize) -> bool {
    let frame = to_group(from as u8 + 1, MDNS, &lan.at.as_nanos().to_be_bytes());
    lan.send(from, frame.clone());
    lan.pass(Duration::from_secs(8));
    lan.hosts[to].delivered.iter().any(|(delivered, _)| *delivered == frame)
}

/// Broke `other_than` by always giving the key that is sent with, then `send_message` by never
/// answering under the key of a question: hosts of different generations no longer met after the
/// change.
#[test]
fn hosts_of_either_generation_meet_until_the_old_key_ends() {
    let just_before_the_end = END - Duration::from_secs(5);
    for at in [CHANGE - Duration::from_secs(60), CHANGE + Duration::from_secs(60), just_before_the_end] {
        for (with_new, from, to) in [(vec![0], 0, 1), (vec![0], 1, 0), (vec![0, 1], 0, 1), (vec![], 0, 1)] {
            let mut office = Office::open();
            let mut lan = office.lan();
            with_new.iter().for_each(|host| office.give_keys(&mut lan, *host));
            pass_until(&mut lan, at);
            assert!(meet(&mut lan, from, to), "at {at:?}, {with_new:?} with the new key, {from} asks {to}");
        }
    }
}

#[test]
fn nothing_is_lost_while_the_keys_change_under_who_has_both() {
    let mut office = Office::open();
    let mut lan = office.lan();
    assert!(meet(&mut lan, 0, 1));
    (0..3).for_each(|host| office.give_keys(&mut lan, host));
    let handshakes = |lan: &Lan| {
        let is_request = |frame: &[u8]| frame[14] == PacketType::HandshakeRequest.first_byte();
        lan.seen.iter().filter(|(_, frame)| is_request(frame)).count()
    };
    let before = handshakes(&lan);
    for at in [CHANGE - Duration::from_secs(20), CHANGE, END - Duration::from_secs(9), OVER] {
        pass_until(&mut lan, at);
        let frame = datagram(1, 2, &at.as_secs().to_be_bytes());
        lan.send(0, frame.clone());
        assert_eq!(lan.hosts[1].delivered.last().map(|(delivered, _)| delivered), Some(&frame), "{at:?}");
        assert!(is_heard(&mut lan, 0, 1), "{at:?}");
    }
    assert_eq!(handshakes(&lan), before, "the association lives on");
    assert!(meet(&mut lan, 1, 2) && meet(&mut lan, 2, 0));
    let refused = [DropReason::HandshakeSiteMac, DropReason::GroupTag].map(|reason| drops(&lan, reason));
    assert_eq!(refused, [0, 0]);
}

/// Broke `accepted` by never dropping the older key: each of these was judged.
#[test]
fn recordings_and_hosts_of_the_old_key_are_worth_nothing_after_its_end() {
    let mut office = Office::open();
    let mut lan = office.lan();
    // Host 3 was taken out: it gets no bundle. Here it has only been heard, and keeps what it has.
    (0..2).for_each(|host| office.give_keys(&mut lan, host));
    lan.ask(2, 1);
    assert!(is_heard(&mut lan, 2, 0));
    let recorded: Vec<Vec<u8>> =
        lan.seen.iter().filter(|(host, _)| *host == 2).map(|(_, frame)| frame.clone()).collect();
    let of = |kind: PacketType| {
        let found = recorded.iter().find(|frame| frame[14] == kind.first_byte());
        found.cloned().expect("sent")
    };
    let (request, group) = (of(PacketType::HandshakeRequest), of(PacketType::GroupFrame));
    pass_until(&mut lan, OVER);
    let count =
        |lan: &Lan| [DropReason::HandshakeSiteMac, DropReason::GroupTag].map(|reason| lan.hosts[0].drops(reason));
    assert_eq!(count(&lan), [0, 0]);
    lan.restart(0);
    lan.inject(0, request);
    lan.inject(0, group);
    assert_eq!(count(&lan), [1, 1]);
    // Nor does what it makes now buy anything: no answer, no challenge.
    let sent_before = lan.seen.iter().filter(|(host, _)| *host == 0).count();
    lan.restart(2);
    lan.ask(2, 1);
    lan.pass(Duration::from_secs(4));
    assert!(count(&lan)[0] > 1 && !lan.hosts[2].established_with(1));
    assert_eq!(lan.seen.iter().filter(|(host, _)| *host == 0).count(), sent_before);
    // And the others are untouched.
    assert!(meet(&mut lan, 0, 1));
}

#[test]
fn a_host_that_slept_comes_back_with_its_bundle() {
    let mut office = Office::open();
    let mut lan = office.lan();
    office.give_keys(&mut lan, 0);
    pass_until(&mut lan, OVER);
    assert!(!meet(&mut lan, 1, 0), "it has only the old key");
    office.give_keys(&mut lan, 1);
    // Its question before has been given up by then.
    lan.pass(Duration::from_secs(30));
    assert!(meet(&mut lan, 1, 0) && is_heard(&mut lan, 1, 0));
}

#[test]
fn a_clock_that_is_wrong_shuts_nobody_out() {
    const DAY_S: i64 = 86_400;
    for (error_s, from, to) in [(-DAY_S, 0, 1), (-DAY_S, 1, 0), (DAY_S, 0, 1), (DAY_S, 1, 0)] {
        for at in [CHANGE - Duration::from_secs(60), OVER] {
            let mut office = Office::open();
            let mut lan = office.lan();
            lan.hosts[0].clock_error_s = Some(error_s);
            lan.restart(0);
            (0..2).for_each(|host| office.give_keys(&mut lan, host));
            pass_until(&mut lan, at);
            assert!(meet(&mut lan, from, to), "{error_s} s wrong, at {at:?}, {from} asks {to}");
        }
    }
}
