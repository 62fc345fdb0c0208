//! A LAN of S-ARP hosts in virtual time. The stacks are as gullible as Linux is without protection: a request creates an
//! entry, a reply changes one. What a table holds in the end is what S-ARP let through.

// Each test file uses its own share of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

pub mod dhcp;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, ClockTrust, DropReason, Generator, Instant, Ledger, Meta, Now, Side, Wall};
use identity::certificate::Role;
use identity::distributor::{DistributorKey, RequestMaster};
use identity::profile::{KEY_RANDOM_LEN, KeyLength, PaperKey};
use identity::signing::{SigningKey, ed25519_pkcs8_from_seed};
use identity::{HostIdentity, Profile, new_key_block};
use sarp::akd::{Akd, Binding, Grant, HostLookup, Lookup, Member, RecordKey, Records};
use sarp::{Completion, Distributor, Event, Host, KnownHost, Settings};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::sarp::data::Refusal;
use wire::{EtherType, MacAddress};

/// What the distributors' clocks show when a test starts, in seconds since 1970.
pub const START_UNIX_S: u64 = 1_800_000_000;
/// How long the LAN takes to carry a frame.
const HOP: Duration = Duration::from_micros(100);
/// How often a stack asks before it gives up, a second apart, as Linux does.
const QUESTIONS: u32 = 3;

pub fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

pub fn ip(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

/// Numbers of the machines that can be distributors.
pub const DISTRIBUTORS: [u8; 2] = [101, 102];
pub const MASTER: [u8; 32] = [42; 32];

pub fn signing_key(seed: u8) -> SigningKey {
    SigningKey::from_pkcs8_der(&ed25519_pkcs8_from_seed(&[seed; 32]).unwrap()).unwrap()
}

/// A key of the paper profile.
pub fn paper_key(length: KeyLength, seed: u8) -> SigningKey {
    SigningKey::from_paper_block(&new_key_block(length, &[seed; KEY_RANDOM_LEN])).unwrap()
}

fn distributor_key(profile: Profile, seed: u8) -> SigningKey {
    match profile {
        Profile::Modern => signing_key(seed),
        Profile::Paper => paper_key(KeyLength::Bits1024, seed),
    }
}

/// The repository that all distributors share.
#[derive(Default)]
pub struct Repository {
    pub hosts: RefCell<BTreeMap<Ipv4Addr, Lookup>>,
    pub fails: bool,
    /// Hosts by their number, for DHCP.
    pub members: RefCell<BTreeMap<u64, Member>>,
    /// Who has which address by lease, and for how long when that was last said.
    pub leases: RefCell<BTreeMap<Ipv4Addr, (u64, Option<Duration>)>>,
}

impl Records for Repository {
    fn find(&self, ip: Ipv4Addr) -> Lookup {
        if self.fails { Lookup::Failed } else { self.hosts.borrow().get(&ip).cloned().unwrap_or(Lookup::NotFound) }
    }

    fn replace(&self, ip: Ipv4Addr, old: &[u8], new: RecordKey<'_>) -> bool {
        match self.hosts.borrow_mut().get_mut(&ip) {
            Some(Lookup::Good { algorithm, key, .. }) if key == old && !self.fails => {
                (*algorithm, *key) = (new.algorithm, new.key.to_vec());
                if let Some((holder, _)) = self.leases.borrow().get(&ip)
                    && let Some(member) = self.members.borrow_mut().get_mut(holder)
                {
                    (member.algorithm, member.key) = (new.algorithm, new.key.to_vec());
                }
                true
            }
            _ => false,
        }
    }

    fn host(&self, number: u64) -> HostLookup {
        let found = self.members.borrow().get(&number).cloned();
        if self.fails { HostLookup::Failed } else { found.map_or(HostLookup::NotGood, HostLookup::Good) }
    }

    /// Everybody may have any address below 10.0.0.200.
    fn lease(&self, grant: &Grant) -> Binding {
        let Grant { host, ip, time, only_if_held } = *grant;
        let holder = self.leases.borrow().get(&ip).map(|(holder, _)| *holder);
        match holder {
            _ if ip.octets()[..3] != [10, 0, 0] || ip.octets()[3] >= 200 => {
                return Binding::Refused(Refusal::OutsideSubnets);
            }
            Some(holder) if holder != host => return Binding::Refused(Refusal::Taken),
            None if only_if_held => return Binding::Refused(Refusal::NotHeld),
            _ => {}
        }
        let Member { algorithm, key, mac, .. } = self.members.borrow()[&host].clone();
        self.hosts.borrow_mut().insert(ip, Lookup::Good { algorithm, key, mac });
        self.leases.borrow_mut().insert(ip, (host, time));
        Binding::Done
    }

    fn unbind(&self, host: u64, ip: Ipv4Addr) -> Binding {
        let held = self.leases.borrow().get(&ip).is_some_and(|(holder, _)| *holder == host);
        if !held {
            return Binding::Refused(Refusal::NotHeld);
        }
        self.leases.borrow_mut().remove(&ip);
        self.hosts.borrow_mut().remove(&ip);
        Binding::Done
    }
}

/// A stack that believes all ARP that it hears.
#[derive(Default)]
pub struct Stack {
    pub table: BTreeMap<Ipv4Addr, MacAddress>,
    /// Unanswered questions: how often asked, and when again.
    asking: BTreeMap<Ipv4Addr, (u32, Instant)>,
    /// Every ARP message that it heard.
    pub heard: Vec<Arp>,
    /// Frames that are not ARP.
    pub others: usize,
    /// DHCP that it heard, taken out by the test.
    pub dhcp: Vec<Vec<u8>>,
}

pub struct Station {
    pub number: u8,
    pub host: Host,
    pub stack: Stack,
    pub settings: Settings,
    pub events: Vec<Event>,
    /// What the wall clock shows beside the true time, in seconds.
    pub wall_error_s: i64,
    /// Whether it is switched off.
    pub is_off: bool,
}

impl Station {
    pub fn ledger(&self) -> Ledger {
        let mut total = Ledger::new();
        self.host.add_to_ledger(&mut total);
        total
    }

    pub fn drops(&self, reason: DropReason) -> u64 {
        self.ledger().drops(reason)
    }

    pub fn knows(&self, number: u8) -> Option<MacAddress> {
        self.stack.table.get(&ip(number)).copied()
    }
}

struct Flying {
    at: Instant,
    /// The station that sent it; `None` for an attacker.
    from: Option<u8>,
    frame: Vec<u8>,
}

/// What becomes of a frame on its way: nothing, one or several copies, each after an extra delay.
pub type Fault = Box<dyn FnMut(&mut Generator, &mut Vec<u8>) -> Vec<Duration>>;

pub struct Lan {
    pub now: Instant,
    pub stations: BTreeMap<u8, Station>,
    pub repository: Repository,
    /// Everything that was on the wire, oldest first.
    pub seen: Vec<Vec<u8>>,
    pub fault: Option<Fault>,
    pub random: Generator,
    flying: Vec<Flying>,
    site: authority::Site,
    site_random: Generator,
}

impl Lan {
    pub fn new(seed: u64) -> Lan {
        Lan::of(seed, Profile::Modern)
    }

    /// A LAN whose site has this profile.
    pub fn of(seed: u64, profile: Profile) -> Lan {
        let mut site_random = Generator::from_seed([7; 32]);
        let mut fill = |bytes: &mut [u8]| bytes.fill_with(|| site_random.bytes::<1>()[0]);
        let year = authority::limits::HOST_VALIDITY;
        let site = authority::Site::create_for("test", year, profile, &mut fill, START_UNIX_S).unwrap();
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        Lan {
            now: Instant::from_millis(1000),
            stations: BTreeMap::new(),
            repository: Repository::default(),
            seen: Vec::new(),
            fault: None,
            random: Generator::from_seed(bytes),
            flying: Vec::new(),
            site,
            site_random,
        }
    }

    /// Two distributors and `hosts` ordinary hosts, numbered from 1.
    pub fn with_hosts(seed: u64, hosts: u8) -> Lan {
        Lan::with_hosts_of(seed, hosts, Profile::Modern)
    }

    /// The same in a site of this profile.
    pub fn with_hosts_of(seed: u64, hosts: u8, profile: Profile) -> Lan {
        let mut lan = Lan::of(seed, profile);
        for number in DISTRIBUTORS.into_iter().chain(1..=hosts) {
            lan.add(number, |_| {});
        }
        lan
    }

    /// An identity for `number`, whether or not the repository knows it.
    pub fn identity(&mut self, number: u8) -> Arc<HostIdentity> {
        self.identity_as(number, Role::Host, vec![ip(number)])
    }

    /// An identity for `number` with this role and these addresses.
    pub fn identity_as(&mut self, number: u8, role: Role, addresses: Vec<Ipv4Addr>) -> Arc<HostIdentity> {
        let random = &mut self.site_random;
        let mut fill = |bytes: &mut [u8]| bytes.fill_with(|| random.bytes::<1>()[0]);
        let mut request =
            authority::Request::new(&format!("h{number}"), mac(number), addresses).unwrap().with_role(role);
        if self.site.profile() == Profile::Paper {
            // Both lengths meet.
            request = request.with_paper_key(PaperKey::Dsa(KeyLength::ALL[usize::from(number % 2)]));
        }
        let pem = self.site.issue_identity(&request, &mut fill, START_UNIX_S).unwrap();
        Arc::new(HostIdentity::from_pem(&pem).unwrap())
    }

    /// Has the repository know the key of `identity` as that of `number`.
    pub fn record(&mut self, number: u8, identity: &HostIdentity, bound: bool) {
        let (algorithm, key) = identity.certificate().record_key().unwrap();
        let record = Lookup::Good { algorithm, key: key.to_vec(), mac: bound.then(|| mac(number)) };
        self.repository.hosts.borrow_mut().insert(ip(number), record);
    }

    /// Adds a host that the repository knows.
    pub fn add(&mut self, number: u8, adjust: impl FnOnce(&mut Settings)) {
        let identity = self.identity(number);
        self.record(number, &identity, true);
        self.add_as(number, identity, adjust);
    }

    /// Adds a host with this identity.
    pub fn add_as(&mut self, number: u8, identity: Arc<HostIdentity>, adjust: impl FnOnce(&mut Settings)) {
        let distributors = DISTRIBUTORS.map(|one| Distributor {
            ip: ip(one),
            mac: mac(one),
            key: {
                let key = distributor_key(self.site.profile(), one);
                let (algorithm, public) = key.record_key().unwrap();
                DistributorKey::new(algorithm, public).unwrap()
            },
        });
        let mut settings = Settings {
            key: identity.record_signing_key(),
            mac: mac(number),
            addresses: vec![ip(number)],
            distributors: distributors.to_vec(),
            request_keys: RequestMaster::from_bytes(MASTER).key_of(u64::from(number)).into(),
            known_hosts: Vec::new(),
            window: sarp::limits::WINDOW,
            dhcp_client: None,
            dhcp_server: None,
            sign_requests: false,
            weaken: sarp::Weaken::default(),
        };
        adjust(&mut settings);
        let mut station = Station {
            number,
            host: Host::new(Arc::new(settings.clone()), None, Generator::from_seed([0; 32])),
            stack: Stack::default(),
            settings,
            events: Vec::new(),
            wall_error_s: 0,
            is_off: false,
        };
        self.boot(&mut station);
        self.stations.insert(number, station);
    }

    /// A host without memory: what a restart of the daemon leaves.
    fn boot(&mut self, station: &mut Station) {
        let akd = DISTRIBUTORS
            .contains(&station.number)
            .then(|| distributor_key(self.site.profile(), station.number))
            .map(|key| Akd::new(Arc::new(key), RequestMaster::from_bytes(MASTER)));
        let random = Generator::from_seed(self.random.bytes());
        station.host = Host::new(Arc::new(station.settings.clone()), akd, random);
    }

    pub fn restart(&mut self, number: u8) {
        let mut station = self.stations.remove(&number).unwrap();
        station.is_off = false;
        self.boot(&mut station);
        self.stations.insert(number, station);
    }

    pub fn station(&mut self, number: u8) -> &mut Station {
        self.stations.get_mut(&number).unwrap()
    }

    /// Puts a frame on the wire from outside.
    pub fn inject(&mut self, frame: Vec<u8>) {
        self.flying.push(Flying { at: self.now + HOP, from: None, frame });
    }

    /// Has `number` replace its own key by one made from `seed`; whether it began to.
    pub fn change_key(&mut self, number: u8, seed: u8) -> bool {
        self.change_key_to(number, signing_key(seed))
    }

    /// The same with this key.
    pub fn change_key_to(&mut self, number: u8, key: SigningKey) -> bool {
        let now = Now { since_boot: self.now, wall: Some(self.wall(number)) };
        let mut sink = Collected::new();
        let began = self.station(number).host.change_key(now, Arc::new(key), &mut sink);
        self.after(number, sink);
        began
    }

    /// The stack of `number` wants to speak with `other`.
    pub fn ask(&mut self, number: u8, other: u8) {
        let now = self.now;
        let stack = &mut self.station(number).stack;
        stack.table.remove(&ip(other));
        stack.asking.insert(ip(other), (0, now));
        self.run(Duration::ZERO);
    }

    /// Has the stack of `number` send this ARP message to everybody.
    pub fn stack_says(&mut self, number: u8, arp: Arp) {
        let frame = arp_frame(MacAddress::BROADCAST, mac(number), &arp);
        self.deliver(number, Side::STACK, frame);
    }

    /// Lets `time` pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.step();
            let flying = self.flying.iter().map(|one| one.at).min();
            let deadlines = self.stations.values().filter(|one| !one.is_off);
            let timers = deadlines
                .flat_map(|one| one.host.deadline().into_iter().chain(one.stack.asking.values().map(|(_, at)| *at)));
            let next = timers.chain(flying).min().unwrap_or(end).max(self.now + Duration::from_micros(1));
            if next > end {
                self.now = self.now.max(end);
                return;
            }
            self.now = next;
        }
    }

    /// Everything that is due now.
    fn step(&mut self) {
        let now = self.now;
        let (due, later) = std::mem::take(&mut self.flying).into_iter().partition(|one: &Flying| one.at <= now);
        self.flying = later;
        for flying in due as Vec<Flying> {
            self.carry(flying);
        }
        for number in self.stations.keys().copied().collect::<Vec<_>>() {
            self.ask_again(number);
            self.tick(number);
        }
    }

    fn carry(&mut self, flying: Flying) {
        self.seen.push(flying.frame.clone());
        for number in self.stations.keys().copied().collect::<Vec<_>>() {
            let destination = Header::parse(&flying.frame).map(|(header, _)| header.destination).unwrap_or_default();
            let hears = destination.is_group() || destination == self.station(number).settings.mac;
            if flying.from != Some(number) && hears {
                self.deliver(number, Side::WIRE, flying.frame.clone());
            }
        }
    }

    fn ask_again(&mut self, number: u8) {
        let now = self.now;
        let station = self.station(number);
        if station.is_off {
            return;
        }
        let due: Vec<_> = station.stack.asking.iter().filter(|(_, (_, at))| *at <= now).map(|(ip, _)| *ip).collect();
        for wanted in due {
            let station = self.station(number);
            let Some((count, at)) = station.stack.asking.get_mut(&wanted) else { continue };
            (*count, *at) = (*count + 1, now + Duration::from_secs(1));
            if *count > QUESTIONS {
                station.stack.asking.remove(&wanted);
                continue;
            }
            self.stack_says(number, request(number, wanted));
        }
    }

    fn tick(&mut self, number: u8) {
        let wall = self.wall(number);
        let now = self.now;
        let station = self.station(number);
        if station.is_off || station.host.deadline().is_none_or(|at| at > now) {
            return;
        }
        let mut sink = Collected::new();
        station.host.tick(Now { since_boot: now, wall: Some(wall) }, 100, &mut sink);
        self.after(number, sink);
    }

    pub fn deliver(&mut self, number: u8, from: Side, frame: Vec<u8>) {
        let wall = self.wall(number);
        let now = Now { since_boot: self.now, wall: Some(wall) };
        let station = self.station(number);
        if station.is_off {
            return;
        }
        let mut sink = Collected::new();
        station.host.process(now, from, &mut Frames::new(&mut [(frame, Meta::plain())]), &mut sink);
        self.after(number, sink);
    }

    fn wall(&mut self, number: u8) -> Wall {
        let true_ms = START_UNIX_S * 1000 + self.now.as_nanos() / 1_000_000;
        let error_ms = self.station(number).wall_error_s * 1000;
        Wall { unix_ms: true_ms.saturating_add_signed(error_ms), trust: ClockTrust::Plausible }
    }

    /// Runs jobs and delivers what came out, until nothing does.
    fn after(&mut self, number: u8, mut sink: Collected) {
        let wall = self.wall(number);
        let now = Now { since_boot: self.now, wall: Some(wall) };
        while let Some((ticket, job)) = self.station(number).host.next_job() {
            let completion: Completion = job.run(&self.repository);
            self.station(number).host.complete(now, ticket, completion, &mut sink);
        }
        let station = self.station(number);
        while let Some(event) = station.host.next_event() {
            station.events.push(event);
        }
        assert_eq!(station.ledger().balance(), 0, "host {number}");
        for (to, frame, _) in sink.take() {
            match to {
                Side::STACK => self.tell_stack(number, &frame),
                Side::WIRE => self.onto_wire(number, frame),
            }
        }
    }

    fn onto_wire(&mut self, number: u8, mut frame: Vec<u8>) {
        let mut delays = vec![Duration::ZERO];
        if let Some(fault) = &mut self.fault {
            delays = fault(&mut self.random, &mut frame);
        }
        for delay in delays {
            self.flying.push(Flying { at: self.now + HOP + delay, from: Some(number), frame: frame.clone() });
        }
    }

    fn tell_stack(&mut self, number: u8, frame: &[u8]) {
        let (header, message) = Header::parse(frame).unwrap();
        let stack = &mut self.station(number).stack;
        if header.ethertype != EtherType::ARP {
            stack.others += 1;
            if wire::dhcp::recognise(frame) == wire::dhcp::Kind::Dhcp {
                stack.dhcp.push(frame.to_vec());
            }
            return;
        }
        let arp = Arp::parse(message).unwrap();
        stack.heard.push(arp);
        let was_asked = stack.asking.remove(&arp.sender_ip).is_some();
        let to_us = arp.operation == Operation::Request && arp.target_ip == ip(number);
        if !arp.sender_ip.is_unspecified() && (was_asked || to_us || stack.table.contains_key(&arp.sender_ip)) {
            stack.table.insert(arp.sender_ip, arp.sender_mac);
        }
        if to_us {
            let reply = reply(number, number, arp.sender_ip, arp.sender_mac);
            self.deliver(number, Side::STACK, arp_frame(arp.sender_mac, mac(number), &reply));
        }
    }
}

fn public(key: &SigningKey) -> Vec<u8> {
    key.record_key().unwrap().1.to_vec()
}

pub fn request(number: u8, wanted: Ipv4Addr) -> Arp {
    Arp {
        operation: Operation::Request,
        sender_mac: mac(number),
        sender_ip: ip(number),
        target_mac: MacAddress::ZERO,
        target_ip: wanted,
    }
}

/// `liar`'s hardware address for the address of `claimed`.
pub fn reply(claimed: u8, liar: u8, to_ip: Ipv4Addr, to_mac: MacAddress) -> Arp {
    Arp {
        operation: Operation::Reply,
        sender_mac: mac(liar),
        sender_ip: ip(claimed),
        target_mac: to_mac,
        target_ip: to_ip,
    }
}

pub fn arp_frame(to: MacAddress, from: MacAddress, arp: &Arp) -> Vec<u8> {
    let header = Header { destination: to, source: from, ethertype: EtherType::ARP };
    let mut frame = [&header.emit()[..], &arp.emit()].concat();
    frame.resize(60, 0);
    frame
}

pub fn known(number: u8) -> KnownHost {
    KnownHost { ip: ip(number), mac: mac(number) }
}
