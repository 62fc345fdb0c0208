//! S-ARP under loss, duplication, delay, corruption, restarts, absent distributors, and an attacker who replays, forges
//! and is enrolled himself. Whatever happens, no stack believes a wrong hardware address; once faults stop, honest hosts
//! find each other within 15 s. `SARP_SEEDS` sets how many worlds are tried.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::time::Duration;

use bump::Generator;
use common::{DISTRIBUTORS, Lan, START_UNIX_S, arp_frame, ip, mac, reply, request};
use sarp::akd::Lookup;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::sarp::data::Resolution;
use wire::sarp::{Kind, Message, seal};

const HOSTS: u8 = 4;
/// Enrolled like the others, but dishonest.
const INSIDER: u8 = 4;
const SEEDS: u64 = 60;
const ROUNDS: u64 = 60;

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

fn no_stack_is_deceived(lan: &Lan) {
    for station in lan.stations.values() {
        for (address, mac) in &station.stack.table {
            assert_eq!(address.octets()[3], mac.0[5], "host {} believes {address} at {mac}", station.number);
        }
    }
}

/// One thing that somebody does.
fn act(lan: &mut Lan) {
    let pick = |lan: &mut Lan, below: u8| 1 + lan.random.below(u64::from(below)) as u8;
    let (one, other) = (pick(lan, HOSTS), pick(lan, HOSTS));
    match lan.random.below(10) {
        0..=2 if one != other => lan.ask(one, other),
        3 if one != other => {
            lan.ask(one, other);
            // The question is on the wire, its answer is not there yet.
            lan.run(Duration::from_micros(100));
            insider(lan, other);
        }
        4 => replay(lan),
        5 => lan.inject(arp_frame(mac(one), mac(66), &reply(other, 66, ip(one), mac(one)))),
        6 => {
            lan.inject(arp_frame(MacAddress::BROADCAST, mac(66), &Arp { sender_ip: ip(other), ..request(66, ip(one)) }))
        }
        7 if lan.random.chance(3) => lan.restart(one),
        8 if lan.random.chance(3) => {
            let distributor = DISTRIBUTORS[lan.random.below(2) as usize];
            let is_off = lan.station(distributor).is_off;
            lan.station(distributor).is_off = !is_off;
        }
        9 => insider(lan, one),
        _ => {}
    }
}

/// Puts something old on the wire again, perhaps to somebody else, perhaps with a bit changed.
fn replay(lan: &mut Lan) {
    if lan.seen.is_empty() {
        return;
    }
    let index = lan.random.below(lan.seen.len() as u64) as usize;
    let mut frame = lan.seen[index].clone();
    if lan.random.chance(3) {
        frame[..6].copy_from_slice(&mac(1 + lan.random.below(u64::from(HOSTS)) as u8).0);
    }
    if lan.random.chance(4) {
        let at = lan.random.below(frame.len() as u64) as usize;
        frame[at] ^= 1 << lan.random.below(8);
    }
    lan.inject(frame);
}

/// The insider answers the last question on the wire in the name of whoever was asked, with a good stamp, the right nonce
/// and his own signature; or puts his own address into a good message of another.
fn insider(lan: &mut Lan, victim: u8) {
    let asks = |frame: &&Vec<u8>| Arp::parse(&frame[14..]).is_ok_and(|arp| arp.operation == Operation::Request);
    let Some(question) = lan.seen.iter().rev().find(asks).cloned() else { return };
    let asked = Arp::parse(&question[14..]).unwrap();
    let nonce = Message::parse(&question[14..]).ok().and_then(|message| Resolution::parse(message.data).ok());
    let nonce = nonce.and_then(|data| data.nonce);
    let mut arp = reply(victim, INSIDER, asked.sender_ip, asked.sender_mac);
    if lan.random.chance(2) {
        arp.sender_ip = asked.target_ip;
    }
    let seconds = START_UNIX_S as u32 + (lan.now.as_nanos() / 1_000_000_000) as u32;
    let data = Resolution { fraction: Some(lan.random.number()), nonce }.emit();
    let unsigned = Message { arp, kind: Kind::Resolution, seconds, data: &data, signature: &[] }.signed_bytes();
    let signature = lan.station(INSIDER).settings.key.sign(&unsigned).unwrap();
    let message = seal(unsigned, &signature);
    lan.inject([&asked.sender_mac.0[..], &mac(INSIDER).0, &[0x08, 0x06], &message].concat());
}

fn world(seed: u64) {
    let mut lan = Lan::with_hosts(seed, HOSTS);
    if seed % 2 == 1 {
        for number in 1..=HOSTS {
            lan.station(number).settings.sign_requests = number % 2 == 1;
            lan.restart(number);
        }
    }
    if seed.is_multiple_of(3) {
        // A site that binds no hardware addresses: the signature alone protects.
        for lookup in lan.repository.hosts.borrow_mut().values_mut() {
            if let Lookup::Good { mac, .. } = lookup {
                *mac = None;
            }
        }
    }
    lan.fault = Some(Box::new(|random, frame| faults(random, frame)));
    for _ in 0..ROUNDS {
        act(&mut lan);
        let pause = Duration::from_millis(lan.random.below(400));
        lan.run(pause);
        no_stack_is_deceived(&lan);
    }
    heal(&mut lan);
    no_stack_is_deceived(&lan);
}

/// Faults stop; everybody finds everybody within 15 s.
fn heal(lan: &mut Lan) {
    lan.fault = None;
    for number in DISTRIBUTORS {
        lan.station(number).is_off = false;
    }
    for _ in 0..5 {
        for one in 1..=HOSTS {
            for other in (1..=HOSTS).filter(|other| *other != one) {
                if lan.station(one).knows(other).is_none() {
                    lan.ask(one, other);
                }
            }
        }
        lan.run(Duration::from_secs(3));
    }
    for one in 1..=HOSTS {
        for other in (1..=HOSTS).filter(|other| *other != one) {
            assert_eq!(lan.station(one).knows(other), Some(mac(other)), "{one} looks for {other}");
        }
    }
}

#[test]
fn no_world_deceives_a_stack_and_all_heal() {
    let seeds = std::env::var("SARP_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        let result = std::panic::catch_unwind(|| world(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}
