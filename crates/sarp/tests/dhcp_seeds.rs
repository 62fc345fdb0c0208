//! S-DHCP under loss, duplication, delay, corruption, restarts, absent distributors, and an attacker who replays and forges.
//! Whatever happens, a program hears only what an honest one said, and no two hosts hold one address; once faults stop, every
//! client has a lease within two minutes. `SARP_SEEDS` sets how many worlds are tried.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{Generator, Side};
use common::dhcp::*;
use common::{DISTRIBUTORS, ip, mac};
use wire::dhcp::{MessageType, OPTION_REQUESTED, OPTION_SERVER, View};

const SEEDS: u64 = 40;
const ROUNDS: u64 = 80;
const CLIENTS: [u8; 2] = [CLIENT, OTHER];

/// Loses, repeats, delays and corrupts frames.
fn faults(random: &mut Generator, frame: &mut [u8]) -> Vec<Duration> {
    if random.chance(20) {
        let at = random.below(frame.len() as u64) as usize;
        frame[at] ^= 1 << random.below(8);
    }
    let copies = if random.chance(8) { 0 } else { 1 + u64::from(random.chance(10)) };
    let longest_us = if random.chance(10) { 500_000 } else { 200 };
    (0..copies).map(|_| Duration::from_micros(random.below(longest_us))).collect()
}

/// A server program that gives each client one address, and clients that ask until they have it.
#[derive(Default)]
struct Programs {
    /// What each client's program has sent, by type.
    sent: BTreeMap<(u8, MessageType), usize>,
    /// What the server's program has heard of each client, by type.
    heard: BTreeMap<(u8, MessageType), usize>,
    has: BTreeMap<u8, Ipv4Addr>,
    xid: u32,
}

impl Programs {
    fn send(&mut self, site: &mut Site, number: u8, frame: Vec<u8>) {
        *self.sent.entry((number, View::new(&frame).unwrap().kind())).or_default() += 1;
        site.lan.deliver(number, Side::STACK, frame);
    }

    /// A client begins anew, renews, or gives back.
    fn begin(&mut self, site: &mut Site, number: u8, gives_back: bool) {
        self.xid += 1;
        match self.has.get(&number).copied() {
            Some(held) if gives_back => {
                self.has.remove(&number);
                self.send(site, number, release(number, held));
            }
            Some(held) => self.send(site, number, renewal(number, self.xid, held)),
            None => self.send(site, number, discover(number, self.xid)),
        }
    }

    /// Everybody's program reads what it heard and answers.
    fn read(&mut self, site: &mut Site) {
        for frame in std::mem::take(&mut site.lan.station(SERVER).stack.dhcp) {
            self.serve(site, &View::new(&frame).unwrap());
        }
        for number in CLIENTS {
            for frame in std::mem::take(&mut site.lan.station(number).stack.dhcp) {
                let view = View::new(&frame).unwrap();
                assert_eq!(view.address_option(OPTION_SERVER), Ok(Some(ip(SERVER))), "an honest server's words");
                match view.kind() {
                    MessageType::Offer => self.send(site, number, request(number, view.xid(), view.yiaddr())),
                    MessageType::Ack => drop(self.has.insert(number, view.yiaddr())),
                    _ => drop(self.has.remove(&number)),
                }
            }
        }
    }

    fn serve(&mut self, site: &mut Site, view: &View<'_>) {
        let number = view.chaddr().0[5];
        if number == INSIDER {
            // It is enrolled and may ask for what nobody has; this program has offered it nothing.
            let refusal = answer(MessageType::Nak, SERVER, INSIDER, view.xid(), Ipv4Addr::UNSPECIFIED);
            return site.lan.deliver(SERVER, Side::STACK, refusal);
        }
        assert!(CLIENTS.contains(&number), "only enrolled clients speak");
        *self.heard.entry((number, view.kind())).or_default() += 1;
        let given = ip(20 + number);
        let kind = match view.kind() {
            MessageType::Discover => MessageType::Offer,
            MessageType::Request => MessageType::Ack,
            _ => return,
        };
        let wanted = view.address_option(OPTION_REQUESTED).unwrap().unwrap_or(view.ciaddr());
        assert!(kind == MessageType::Offer || wanted == given, "what was offered");
        site.lan.deliver(SERVER, Side::STACK, answer(kind, SERVER, number, view.xid(), given));
    }

    fn judge(&self, site: &mut Site) {
        let now = site.lan.now;
        for number in CLIENTS {
            let own = site.lan.station(number).host.report(now).leases;
            assert!(own.iter().all(|lease| lease.ip == ip(20 + number)), "host {number} holds {own:?}");
        }
        // A recording or a copy would be one more than was sent.
        for (what, heard) in &self.heard {
            assert!(heard <= &self.sent[what], "{what:?}: {heard} of {}", self.sent[what]);
        }
    }
}

/// One thing that somebody does.
fn act(site: &mut Site, programs: &mut Programs) {
    let number = CLIENTS[site.lan.random.below(2) as usize];
    match site.lan.random.below(12) {
        0..=4 => programs.begin(site, number, false),
        5 => programs.begin(site, number, true),
        6 | 7 => replay(site),
        8 => {
            let forged = answer(MessageType::Offer, 66, number, programs.xid, ip(66));
            site.lan.inject(forged);
            site.lan.inject(release(number, ip(20 + number)));
        }
        9 => {
            // An enrolled host wants what another has.
            let forged = site.insiders(INSIDER, mac(INSIDER), &request(INSIDER, 1, ip(20 + number)));
            site.lan.inject(forged);
        }
        10 if site.lan.random.chance(4) => site.lan.restart(number),
        10 if site.lan.random.chance(4) => site.lan.restart(SERVER),
        _ => {
            let (distributor, off) = (DISTRIBUTORS[site.lan.random.below(2) as usize], site.lan.random.chance(3));
            site.lan.station(distributor).is_off = off;
        }
    }
}

fn replay(site: &mut Site) {
    let seen = site.lan.seen.len() as u64;
    if seen > 0 {
        let at = site.lan.random.below(seen) as usize;
        let mut frame = site.lan.seen[at].clone();
        if site.lan.random.chance(2) {
            let at = site.lan.random.below(frame.len() as u64) as usize;
            frame[at] ^= 1 << site.lan.random.below(8);
        }
        site.lan.inject(frame);
    }
}

fn live_through(seed: u64) {
    let mut site = site_of(seed);
    let mut programs = Programs::default();
    site.lan.fault = Some(Box::new(|random, frame| faults(random, frame)));
    for _ in 0..ROUNDS {
        act(&mut site, &mut programs);
        for _ in 0..4 {
            let pause = Duration::from_millis(site.lan.random.below(1500));
            site.lan.run(pause);
            programs.read(&mut site);
            programs.judge(&mut site);
        }
    }
    site.lan.fault = None;
    for distributor in DISTRIBUTORS {
        site.lan.station(distributor).is_off = false;
    }
    // A proposal of which no distributor heard the end is over after a time; this repository knows none.
    site.lan.repository.leases.borrow_mut().retain(|_, (host, _)| *host != u64::from(INSIDER));
    for second in 0..120 {
        if second % 10 == 0 {
            for number in CLIENTS {
                programs.begin(&mut site, number, false);
            }
        }
        site.lan.run(SECOND);
        programs.read(&mut site);
        programs.judge(&mut site);
    }
    for number in CLIENTS {
        let now = site.lan.now;
        assert_eq!(programs.has.get(&number), Some(&ip(20 + number)), "seed {seed}: host {number} has no lease");
        assert_eq!(site.lan.station(number).host.report(now).leases.len(), 1, "seed {seed}: host {number}");
        let bound = site.lan.repository.leases.borrow()[&ip(20 + number)].0;
        assert_eq!(bound, u64::from(number), "seed {seed}");
    }
}

#[test]
fn no_world_deceives_a_program_and_all_heal() {
    let seeds = std::env::var("SARP_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        let lived = std::panic::catch_unwind(|| live_through(seed));
        assert!(lived.is_ok(), "seed {seed}");
    }
}
