//! S-ARP: the host alpha, its stack, and a wire on which a distributor, the honest host omega and a stranger speak.
//!
//! The laws: every frame has one fate; what is held is bounded; the stack never hears that omega's address is anywhere but
//! at omega, nor anything of addresses that nobody proved.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, ClockTrust, Generator, Instant, Ledger, Meta, Now, Side, Wall};
use identity::distributor::{DistributorKey, RequestMaster};
use sarp::akd::{Akd, Lookup, RecordKey, Records};
use sarp::{Distributor, Host, Settings};
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;

use crate::input::Input;
use crate::site;

const STEPS_MAX: usize = 64;
const MASTER: [u8; 32] = [5; 32];
const MACS: [MacAddress; 3] =
    [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 0xff]), MacAddress([2, 0, 0, 0, 0, 0xaa])];
const IPS: [Ipv4Addr; 3] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 254), Ipv4Addr::new(10, 0, 0, 53)];
/// Places in the tables above: who is fuzzed, who is honest, who distributes keys.
const ALPHA: usize = 0;
const OMEGA: usize = 1;
const DISTRIBUTOR: usize = 2;

/// Knows omega, and alpha until it changes its key.
struct Repository(RefCell<[Vec<u8>; 2]>);

impl Records for Repository {
    fn find(&self, ip: Ipv4Addr) -> Lookup {
        let Some(host) = IPS[..2].iter().position(|known| *known == ip) else { return Lookup::NotFound };
        Lookup::Good { algorithm: 1, key: self.0.borrow()[host].clone(), mac: Some(MACS[host]) }
    }

    fn replace(&self, ip: Ipv4Addr, old: &[u8], new: RecordKey<'_>) -> bool {
        let Some(host) = IPS[..2].iter().position(|known| *known == ip) else { return false };
        let mut keys = self.0.borrow_mut();
        if keys[host] != old || new.algorithm != 1 {
            return false;
        }
        keys[host] = new.key.to_vec();
        true
    }
}

/// All that happens in one input.
struct World {
    now: Instant,
    hosts: [Host; 3],
    repository: Repository,
    /// What was on the wire.
    seen: Vec<Vec<u8>>,
}

/// Any frames in any order.
pub fn sarp_bump(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new(input.chance());
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        world.step(&mut input);
    }
}

impl World {
    fn new(sign_requests: bool) -> World {
        let keys = [0, 1].map(|host| site::identities()[host].signing_key().record_key().expect("Ed25519").1.to_vec());
        World {
            now: Instant::from_millis(1000),
            hosts: [ALPHA, OMEGA, DISTRIBUTOR].map(|place| host(place, sign_requests)),
            repository: Repository(RefCell::new(keys)),
            seen: Vec::new(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(8) {
            // Alpha's stack asks for omega, or for anybody.
            0 => self.hand(ALPHA, Side::STACK, question(ALPHA, IPS[OMEGA])),
            1 => self.hand(ALPHA, Side::STACK, question(ALPHA, Ipv4Addr::new(10, 0, 0, input.byte()))),
            // Omega asks for alpha.
            2 => self.hand(OMEGA, Side::STACK, question(OMEGA, IPS[ALPHA])),
            3 => self.pass(Duration::from_millis(u64::from(input.word()))),
            // Something old again, with some bytes changed.
            4 => {
                let Some(mut frame) = self.seen.get(input.below(self.seen.len().max(1))).cloned() else { return };
                for _ in 0..input.below(4) {
                    let at = input.below(frame.len());
                    frame[at] ^= input.byte();
                }
                self.hand(ALPHA, Side::WIRE, frame);
            }
            5 => self.hand(ALPHA, Side::WIRE, input.counted(300).to_vec()),
            6 => self.hand(ALPHA, Side::STACK, input.counted(300).to_vec()),
            _ => self.hand(ALPHA, Side::WIRE, lie(input)),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        for place in 0..self.hosts.len() {
            if self.hosts[place].deadline().is_some_and(|at| at <= self.now) {
                let mut sink = Collected::new();
                let now = self.time();
                self.hosts[place].tick(now, 100, &mut sink);
                self.after(place, sink);
            }
        }
    }

    fn time(&self) -> Now {
        let unix_ms = site::START_UNIX_S * 1000 + self.now.as_nanos() / 1_000_000;
        Now { since_boot: self.now, wall: Some(Wall { unix_ms, trust: ClockTrust::Plausible }) }
    }

    fn hand(&mut self, place: usize, from: Side, frame: Vec<u8>) {
        let mut sink = Collected::new();
        let now = self.time();
        self.hosts[place].process(now, from, &mut Frames::new(&mut [(frame, Meta::plain())]), &mut sink);
        self.after(place, sink);
    }

    /// Runs jobs, checks the books, and delivers what came out to whom it is for.
    fn after(&mut self, place: usize, mut sink: Collected) {
        let now = self.time();
        while let Some((ticket, job)) = self.hosts[place].next_job() {
            self.hosts[place].complete(now, ticket, job.run(&self.repository), &mut sink);
        }
        while self.hosts[place].next_event().is_some() {}
        let mut ledger = Ledger::new();
        self.hosts[place].add_to_ledger(&mut ledger);
        assert_eq!(ledger.balance(), 0);
        assert!(ledger.held <= sarp::limits::PENDING_MAX as u64);
        for (to, frame, _) in sink.take() {
            match to {
                Side::STACK if place == ALPHA => judge(&frame),
                Side::STACK => {}
                Side::WIRE => self.carry(place, frame),
            }
        }
    }

    fn carry(&mut self, from: usize, frame: Vec<u8>) {
        // What was injected as not ARP passes as it is, and no honest host would say it.
        let Ok((header, _)) = Header::parse(&frame) else { return };
        if self.seen.len() < 256 {
            self.seen.push(frame.clone());
        }
        let hears =
            |place: &usize| *place != from && (header.destination.is_group() || header.destination == MACS[*place]);
        for place in (0..self.hosts.len()).filter(hears) {
            self.hand(place, Side::WIRE, frame.clone());
        }
    }
}

fn host(place: usize, sign_requests: bool) -> Host {
    let distributor_key = site::identities()[1].signing_key();
    let (algorithm, public) = distributor_key.record_key().expect("Ed25519");
    let distributor = Distributor {
        ip: IPS[DISTRIBUTOR],
        mac: MACS[DISTRIBUTOR],
        key: DistributorKey::new(algorithm, public).expect("a key"),
    };
    let master = RequestMaster::from_bytes(MASTER);
    let settings = Settings {
        key: site::identities()[place % 2].signing_key(),
        mac: MACS[place],
        addresses: vec![IPS[place]],
        distributors: vec![distributor],
        request_keys: master.key_of(place as u64).into(),
        known_hosts: Vec::new(),
        window: sarp::limits::WINDOW,
        dhcp_client: None,
        dhcp_server: None,
        sign_requests,
        weaken: sarp::Weaken::default(),
    };
    let akd = (place == DISTRIBUTOR).then(|| Akd::new(Arc::clone(&distributor_key), master));
    Host::new(Arc::new(settings), akd, Generator::from_seed([place as u8; 32]))
}

fn question(from: usize, wanted: Ipv4Addr) -> Vec<u8> {
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: MACS[from],
        sender_ip: IPS[from],
        target_mac: MacAddress::ZERO,
        target_ip: wanted,
    };
    frame(MacAddress::BROADCAST, MACS[from], &arp)
}

/// A stranger's plain ARP message.
fn lie(input: &mut Input<'_>) -> Vec<u8> {
    let stranger = MacAddress([2, 0, 0, 0, 0, 0x66]);
    let operation = if input.chance() { Operation::Request } else { Operation::Reply };
    let claimed = Ipv4Addr::new(10, 0, 0, if input.chance() { 254 } else { input.byte() });
    let arp = Arp { operation, sender_mac: stranger, sender_ip: claimed, target_mac: MACS[0], target_ip: IPS[0] };
    frame(if input.chance() { MACS[0] } else { MacAddress::BROADCAST }, stranger, &arp)
}

fn frame(destination: MacAddress, source: MacAddress, arp: &Arp) -> Vec<u8> {
    let header = Header { destination, source, ethertype: wire::EtherType::ARP };
    [&header.emit()[..], &arp.emit()].concat()
}

/// What alpha's stack may hear of ARP: omega and the distributor at their own hardware addresses.
fn judge(frame: &[u8]) {
    let (header, message) = Header::parse(frame).expect("a whole frame");
    if header.ethertype != wire::EtherType::ARP {
        return;
    }
    let arp = Arp::parse(message).expect("ARP");
    let place = IPS.iter().position(|ip| *ip == arp.sender_ip).expect("nobody else is proved");
    assert!(place != ALPHA && arp.sender_mac == MACS[place], "{arp:?}");
}
