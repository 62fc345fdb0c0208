//! A LAN of a few link layers without loss or delay, for tests that follow one exchange step by step. Jobs run at once,
//! stacks answer ARP for their own address, and a test may drop or change any frame on its way.

// Each test file uses its own share of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{
    Bump, Checksum, ClockTrust, DropReason, ErasingGenerator, Generator, Instant, Ledger, Meta, Now, Side, Wall,
};
use cll::{
    Cll, Completion, Effect, Event, HeldTicket, Instruction, IssuingKey, KeptLease, Remembered, Settings, TicketId,
};
use dhcp::link::{self, Link};
use identity::certificate::{CertificateRequest, Role};
use identity::dhcp_key::{DhcpMaster, client_id};
use identity::revocation::RevocationList;
use identity::{HostIdentity, Profile, Verified};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

/// The moment at which every test starts, in seconds since 1970.
pub const START_UNIX_S: u64 = 1_800_000_000;
const WIRE_MTU: u16 = 1500;
/// Deliveries at one moment after which a test is taken to run in a circle.
const STEPS_MAX: usize = 100_000;

/// One site that issues identities.
pub struct Site {
    pub site: authority::Site,
    random: Generator,
}

impl Site {
    pub fn new(seed: u8) -> Site {
        Site::of_profile(seed, Profile::Modern)
    }

    pub fn of_profile(seed: u8, profile: Profile) -> Site {
        let mut random = Generator::from_seed([seed; 32]);
        let mut fill = |bytes: &mut [u8]| fill(&mut random, bytes);
        let year = Duration::from_secs(365 * 86_400);
        let site = authority::Site::create_for("test", year, profile, &mut fill, START_UNIX_S).unwrap();
        Site { site, random }
    }

    /// The site takes back the certificate of this identity.
    pub fn revocation_of(&self, identity: &HostIdentity) -> Arc<Verified<RevocationList>> {
        let text = self.site.revocation_list(&[identity.certificate().serial()], START_UNIX_S).unwrap();
        let der = identity::pem::single(&text, identity::pem::REVOCATION_LIST).unwrap();
        Arc::new(self.site.anchor().verify_revocation_list(&der).unwrap())
    }

    /// The same among `others` certificates that nobody has.
    pub fn long_revocation_of(
        &self,
        identity: &HostIdentity,
        others: u8,
        issued_unix: u64,
    ) -> Arc<Verified<RevocationList>> {
        let others: Vec<[u8; 16]> = (1..=others).map(|number| [number; 16]).collect();
        let mut serials: Vec<&[u8]> = others.iter().map(|serial| &serial[..]).collect();
        serials.push(identity.certificate().serial());
        let text = self.site.revocation_list(&serials, issued_unix).unwrap();
        let der = identity::pem::single(&text, identity::pem::REVOCATION_LIST).unwrap();
        Arc::new(self.site.anchor().verify_revocation_list(&der).unwrap())
    }

    pub fn identity(&mut self, number: u8) -> Arc<HostIdentity> {
        self.identity_for(request(number), START_UNIX_S)
    }

    pub fn identity_for(&mut self, request: authority::Request, unix_s: u64) -> Arc<HostIdentity> {
        let mut fill = |bytes: &mut [u8]| fill(&mut self.random, bytes);
        let pem = self.site.issue_identity(&request, &mut fill, unix_s).unwrap();
        Arc::new(HostIdentity::from_pem(&pem).unwrap())
    }
}

/// What DHCP takes of a site.
impl Site {
    fn master() -> DhcpMaster {
        DhcpMaster::from_bytes([9; 32])
    }

    /// A host without an address, and with its DHCP key.
    pub fn base(&mut self, number: u8) -> Arc<HostIdentity> {
        self.base_until(number, authority::limits::HOST_VALIDITY)
    }

    pub fn base_until(&mut self, number: u8, validity: Duration) -> Arc<HostIdentity> {
        let request = authority::Request::new(&format!("h{number}"), mac(number), Vec::new()).unwrap();
        let request = request.with_validity(validity).unwrap();
        let mut fill = |bytes: &mut [u8]| fill(&mut self.random, bytes);
        let pem = self.site.issue_identity(&request, &mut fill, START_UNIX_S).unwrap();
        let client = client_id(HostIdentity::from_pem(&pem).unwrap().certificate());
        let whole = format!("{}{}", *pem, *Site::master().key_of(client).to_pem());
        Arc::new(HostIdentity::from_pem(&whole).unwrap())
    }

    /// The same identity and one with a certificate that renews it.
    pub fn base_twice(&mut self, number: u8) -> [Arc<HostIdentity>; 2] {
        let request = |days: u32| {
            let request = authority::Request::new(&format!("h{number}"), mac(number), Vec::new()).unwrap();
            request.with_validity(days * Duration::from_secs(24 * 60 * 60)).unwrap()
        };
        let mut fill = |bytes: &mut [u8]| fill(&mut self.random, bytes);
        let first = self.site.issue_identity(&request(30), &mut fill, START_UNIX_S).unwrap();
        let asked = CertificateRequest::from_pem(&authority::enrolment::renewal(&first).unwrap()).unwrap();
        let bundle = self.site.issue(&request(60), &asked, &mut fill, START_UNIX_S + 10).unwrap().to_pem();
        let second = authority::enrolment::renewed(&first, &bundle, START_UNIX_S + 10).unwrap().0;
        [first, second].map(|pem| {
            let client = client_id(HostIdentity::from_pem(&pem).unwrap().certificate());
            let whole = format!("{}{}", *pem, *Site::master().key_of(client).to_pem());
            Arc::new(HostIdentity::from_pem(&whole).unwrap())
        })
    }

    /// A DHCP server whose authority is for `served`.
    pub fn server(&mut self, number: u8, served: &str) -> Arc<HostIdentity> {
        let request = request(number).with_role(Role::DhcpServer);
        let mut fill = |bytes: &mut [u8]| fill(&mut self.random, bytes);
        let pem = self.site.issue_identity(&request, &mut fill, START_UNIX_S).unwrap();
        let identity = HostIdentity::from_pem(&pem).unwrap();
        let served = [served.parse().unwrap()];
        let authority = self.site.lease_authority(identity.certificate(), &served, &mut fill).unwrap();
        let authority = identity::pem::encode(identity::pem::CERTIFICATE, &authority);
        let whole = format!("{}{}{}", *pem, *authority, *Site::master().to_pem());
        Arc::new(HostIdentity::from_pem(&whole).unwrap())
    }
}

const LINK: Link = Link { ethertype: EtherType::CLL, mtu: WIRE_MTU };

/// The settings of a host that gets its address by DHCP.
pub fn client_settings(identity: Arc<HostIdentity>) -> Settings {
    let (keys, base) = (identity.dhcp_keys().unwrap().clone(), identity.certificate().der().to_vec());
    let client = Some(link::client::Settings { keys, base, link: LINK });
    Settings { dhcp: cll::Dhcp { client, server: None }, ..settings(identity) }
}

/// The settings of a host that gives addresses.
pub fn server_settings(identity: Arc<HostIdentity>) -> Settings {
    let settings_of_server = link::server::Settings {
        masters: identity.dhcp_masters().unwrap().clone(),
        mac: identity.certificate().mac(),
        addresses: identity.certificate().addresses().to_vec(),
        link: LINK,
        tolerance: cll::limits::CLOCK_TOLERANCE,
        messages_per_minute: 10,
    };
    let authority = Arc::new(Signing(authority::LeaseAuthority::open(&identity).unwrap()));
    let server = Some(cll::DhcpServer { settings: settings_of_server, authority });
    Settings { dhcp: cll::Dhcp { client: None, server }, ..settings(identity) }
}

#[derive(Debug)]
struct Signing(authority::LeaseAuthority);

impl link::LeaseAuthority for Signing {
    fn certify(&self, grant: &link::Grant) -> Result<Vec<u8>, String> {
        let link::Grant { base, address, from_unix_s, until_unix_s, serial } = grant.clone();
        let asked = authority::lease::Grant { address, from_unix_s, until_unix_s, serial };
        self.0.certify(&base, &asked).map_err(|error| error.to_string())
    }
}

pub fn request(number: u8) -> authority::Request {
    authority::Request::new(&format!("h{number}"), mac(number), vec![ip(number)]).unwrap()
}

fn fill(random: &mut Generator, bytes: &mut [u8]) {
    bytes.fill_with(|| random.bytes::<1>()[0]);
}

pub fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

pub fn ip(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

pub fn settings(identity: Arc<HostIdentity>) -> Settings {
    Settings::new(identity, WIRE_MTU)
}

/// One host: a link layer between a stack and the wire.
pub struct Host {
    pub cll: Cll,
    pub settings: Settings,
    /// What the stack was given, oldest first.
    pub delivered: Vec<(Vec<u8>, Meta)>,
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    /// The wall clock less the true time; `None` for a host without one.
    pub clock_error_s: Option<i64>,
    pub trust: ClockTrust,
    /// Whether the stack answers ARP.
    pub answers: bool,
    /// Whether jobs are lost instead of run.
    pub loses_jobs: bool,
    /// Whether jobs are left undone until this is over.
    pub is_busy: bool,
    /// What outlives the program.
    pub disk: Disk,
    keys: ErasingGenerator,
}

impl Host {
    fn now(&self, at: Instant) -> Now {
        Now { since_boot: at, wall: clock(at, self.clock_error_s, self.trust) }
    }

    pub fn ledger(&self) -> Ledger {
        let mut total = Ledger::new();
        self.cll.add_to_ledger(&mut total);
        total
    }

    pub fn drops(&self, reason: DropReason) -> u64 {
        self.ledger().drops(reason)
    }

    pub fn established_with(&self, number: u8) -> bool {
        self.cll.control.established_with(mac(number)) == 1
    }

    pub fn count(&self, word: &str) -> usize {
        self.events.iter().filter(|event| event.word() == word).count()
    }

    /// The payloads of delivered frames of this type.
    pub fn payloads(&self, ethertype: EtherType) -> Vec<Vec<u8>> {
        self.delivered
            .iter()
            .filter_map(|(frame, _)| Header::parse(frame).ok())
            .filter(|(header, _)| header.ethertype == ethertype)
            .map(|(_, payload)| payload.to_vec())
            .collect()
    }
}

/// The disk of a host: tickets of peers, the keys of its own, and which of those were used.
#[derive(Clone, Default)]
pub struct Disk {
    pub tickets: BTreeMap<MacAddress, HeldTicket>,
    pub keys: Vec<IssuingKey>,
    pub spent: Vec<TicketId>,
    pub lease: Option<KeptLease>,
}

impl Disk {
    fn take(&mut self, effect: Effect) {
        match effect {
            Effect::KeepTicket(ticket) => _ = self.tickets.insert(ticket.mac(), *ticket),
            Effect::ForgetTicket(mac) => _ = self.tickets.remove(&mac),
            Effect::KeepTicketKeys(keys) => self.keys = keys,
            Effect::KeepSpent(id) => self.spent.push(id),
            Effect::KeepLease(lease) => self.lease = Some(lease),
            Effect::ForgetLease => self.lease = None,
            Effect::PermanentNeighbour { .. }
            | Effect::Remember(_)
            | Effect::RememberTime { .. }
            | Effect::CheckRevocationList { .. }
            | Effect::CheckPolicy { .. }
            | Effect::ForgetNeighbour { .. } => {}
        }
    }

    fn read(&self) -> Remembered {
        let tickets = self.tickets.values().cloned().collect();
        Remembered { tickets, keys: self.keys.clone(), spent: self.spent.clone() }
    }
}

/// What happens to a frame between the host it leaves and the host it is to reach; false loses it.
pub type Wire = Box<dyn FnMut(&mut Vec<u8>, usize, usize) -> bool>;

/// Hosts on one hub.
pub struct Lan {
    pub hosts: Vec<Host>,
    pub at: Instant,
    /// Every frame that any host sent, with its sender.
    pub seen: Vec<(usize, Vec<u8>)>,
    pub wire: Wire,
    in_flight: std::collections::VecDeque<(usize, Vec<u8>)>,
}

impl Lan {
    pub fn new(all: impl IntoIterator<Item = Settings>) -> Lan {
        let mut lan = Lan {
            hosts: Vec::new(),
            at: Instant::from_millis(1_000_000),
            seen: Vec::new(),
            wire: Box::new(|_, _, _| true),
            in_flight: std::collections::VecDeque::new(),
        };
        for settings in all {
            lan.add(settings, Some(0));
        }
        lan
    }

    /// Two hosts of one site with default settings.
    pub fn pair() -> Lan {
        let mut site = Site::new(1);
        Lan::new([settings(site.identity(1)), settings(site.identity(2))])
    }

    pub fn add(&mut self, settings: Settings, clock_error_s: Option<i64>) -> usize {
        let number = self.hosts.len();
        let at = Now { since_boot: self.at, wall: clock(self.at, clock_error_s, ClockTrust::Plausible) };
        self.hosts.push(Host {
            cll: start(&settings, number as u8, 1, at),
            settings,
            delivered: Vec::new(),
            events: Vec::new(),
            effects: Vec::new(),
            clock_error_s,
            trust: ClockTrust::Plausible,
            answers: true,
            loses_jobs: false,
            is_busy: false,
            disk: Disk::default(),
            keys: ErasingGenerator::from_seed(&[100 + number as u8; 32]),
        });
        self.settle();
        number
    }

    /// The program of this host dies and starts anew.
    pub fn restart(&mut self, host: usize) {
        let seed = (self.at.as_nanos() / 1_000_000) as u8;
        let now = self.hosts[host].now(self.at);
        let this = &mut self.hosts[host];
        this.cll = start(&this.settings, host as u8, seed | 1, now);
        cll::remember(&mut this.cll, now, this.disk.read(), &mut Collected::new());
        let mut sink = Collected::new();
        let lease = this.disk.lease.clone();
        lease.into_iter().for_each(|lease| cll::remember_lease(&mut this.cll, now, lease, &mut sink));
        self.after(host, sink);
        self.settle();
    }

    /// `host` hears of revoked certificates.
    pub fn revoke(&mut self, host: usize, list: &Arc<Verified<RevocationList>>) {
        let now = self.hosts[host].now(self.at);
        let mut sink = Collected::new();
        cll::revoke(&mut self.hosts[host].cll, now, Arc::clone(list), &mut sink);
        self.after(host, sink);
        self.settle();
    }

    /// `host` is told something by its operator.
    pub fn instruct(&mut self, host: usize, instruction: Instruction) {
        let now = self.hosts[host].now(self.at);
        let mut sink = Collected::new();
        cll::instruct(&mut self.hosts[host].cll, now, instruction, &mut sink);
        self.after(host, sink);
        self.settle();
    }

    /// The stack of `host` sends `frame`.
    pub fn send(&mut self, host: usize, frame: Vec<u8>) {
        self.send_with(host, frame, Meta::plain());
    }

    pub fn send_with(&mut self, host: usize, frame: Vec<u8>, meta: Meta) {
        self.process(host, Side::STACK, frame, meta);
        self.settle();
    }

    /// The stack of `host` sends all of `frames` at one moment, before any job is done.
    pub fn send_all(&mut self, host: usize, frames: Vec<Vec<u8>>) {
        self.process_all(host, Side::STACK, frames);
    }

    /// The wire brings all of `frames` to `host` alone at one moment, before any job is done.
    pub fn inject_all(&mut self, host: usize, frames: Vec<Vec<u8>>) {
        self.process_all(host, Side::WIRE, frames);
    }

    fn process_all(&mut self, host: usize, from: Side, frames: Vec<Vec<u8>>) {
        let now = self.hosts[host].now(self.at);
        let mut batch: Vec<_> = frames.into_iter().map(|frame| (frame, Meta::plain())).collect();
        let mut sink = Collected::new();
        self.hosts[host].cll.process_on(0, now, from, &mut Frames::new(&mut batch), &mut sink);
        self.after(host, sink);
        self.settle();
    }

    /// The wire brings `frame` to `host` alone.
    pub fn inject(&mut self, host: usize, frame: Vec<u8>) {
        self.process(host, Side::WIRE, frame, Meta::plain());
        self.settle();
    }

    /// The stack of `host` asks who has the address of host `number`.
    pub fn ask(&mut self, host: usize, number: u8) {
        let frame = arp_request(host as u8 + 1, number);
        self.send(host, frame);
    }

    /// Lets time pass; everything due on the way is done.
    pub fn pass(&mut self, time: Duration) {
        let end = self.at + time;
        loop {
            self.settle();
            let next = self.hosts.iter().filter_map(|host| host.cll.deadline()).min();
            match next.filter(|&next| next <= end) {
                Some(next) => self.at = self.at.max(next) + Duration::from_nanos(1),
                None => break,
            }
            for host in 0..self.hosts.len() {
                self.tick(host);
            }
        }
        self.at = end;
        self.settle();
    }

    fn tick(&mut self, host: usize) {
        let mut sink = Collected::new();
        let at = self.at;
        let now = self.hosts[host].now(at);
        if self.hosts[host].cll.deadline().is_some_and(|deadline| deadline <= at) {
            self.hosts[host].cll.tick(now, 64, &mut sink);
        }
        self.after(host, sink);
    }

    fn process(&mut self, host: usize, from: Side, frame: Vec<u8>, meta: Meta) {
        let mut sink = Collected::new();
        let now = self.hosts[host].now(self.at);
        let lane = lane_of(&frame, from, self.hosts[host].cll.lanes.len());
        let mut batch = [(frame, meta)];
        self.hosts[host].cll.process_on(lane, now, from, &mut Frames::new(&mut batch), &mut sink);
        self.after(host, sink);
    }

    /// Takes in what a call put out, runs the jobs it asked for, and checks the books.
    fn after(&mut self, host: usize, mut sink: Collected) {
        let now = self.hosts[host].now(self.at);
        let mut answers = Vec::new();
        self.sort(host, &mut sink, &mut answers);
        let this = &mut self.hosts[host];
        if !this.is_busy
            && let Some((ticket, job)) = this.cll.next_job()
        {
            let completion = if this.loses_jobs { Completion::lost() } else { job.run(&mut this.keys) };
            let mut sink = Collected::new();
            this.cll.complete(now, ticket, completion, &mut sink);
            self.after(host, sink);
            return answers.into_iter().for_each(|frame| self.process(host, Side::STACK, frame, Meta::plain()));
        }
        while let Some(event) = this.cll.next_event() {
            this.events.push(event);
        }
        while let Some(effect) = this.cll.next_effect() {
            this.effects.push(effect.clone());
            this.disk.take(effect);
        }
        assert_eq!(this.ledger().balance(), 0, "every frame has one fate");
        answers.into_iter().for_each(|frame| self.process(host, Side::STACK, frame, Meta::plain()));
    }

    fn sort(&mut self, host: usize, sink: &mut Collected, answers: &mut Vec<Vec<u8>>) {
        for (side, frame, meta) in sink.take() {
            match side {
                Side::WIRE => {
                    self.seen.push((host, frame.clone()));
                    self.in_flight.push_back((host, frame));
                }
                Side::STACK => {
                    let this = &mut self.hosts[host];
                    answers.extend(arp_answer(&frame, host as u8 + 1).filter(|_| this.answers));
                    this.delivered.push((frame, meta));
                }
            }
        }
    }

    /// Carries frames until none is on its way.
    pub fn settle(&mut self) {
        for _ in 0..STEPS_MAX {
            for host in 0..self.hosts.len() {
                self.after(host, Collected::new());
            }
            let Some((from, frame)) = self.in_flight.pop_front() else { return };
            for to in (0..self.hosts.len()).filter(|&to| to != from) {
                let mut copy = frame.clone();
                if (self.wire)(&mut copy, from, to) {
                    self.process(to, Side::WIRE, copy, Meta::plain());
                }
            }
        }
        panic!("frames run in a circle");
    }
}

fn clock(at: Instant, error_s: Option<i64>, trust: ClockTrust) -> Option<Wall> {
    let true_ms = i64::try_from(START_UNIX_S * 1000 + at.as_nanos() / 1_000_000).unwrap();
    error_s.map(|error| Wall { unix_ms: u64::try_from(true_ms + error * 1000).unwrap(), trust })
}

fn start(settings: &Settings, host: u8, life: u8, now: Now) -> Cll {
    let mut seed = [host; 32];
    seed[0] = life;
    let mut sink = Collected::new();
    cll::start(now, settings.clone(), Generator::from_seed(seed), &mut sink)
}

/// Sealed frames go to the lane that their receiver index names, others to lane 0, as a fan-out by index has it.
fn lane_of(frame: &[u8], from: Side, lanes: usize) -> usize {
    let sealed = from == Side::WIRE && frame.len() > 20 && frame[12..15] == [0x07, 0xd0, 0x21];
    if sealed { usize::from(frame[19] % 8) % lanes } else { 0 }
}

fn arp_answer(frame: &[u8], own: u8) -> Option<Vec<u8>> {
    let (header, message) = Header::parse(frame).ok()?;
    let arp = Arp::parse(message).ok().filter(|_| header.ethertype == EtherType::ARP)?;
    let asked = arp.operation == Operation::Request && arp.target_ip == ip(own);
    asked.then(|| {
        arp_frame(
            arp.sender_mac,
            Arp {
                operation: Operation::Reply,
                sender_mac: mac(own),
                sender_ip: ip(own),
                target_mac: arp.sender_mac,
                target_ip: arp.sender_ip,
            },
        )
    })
}

pub fn arp_request(from: u8, to: u8) -> Vec<u8> {
    arp_frame(
        MacAddress::BROADCAST,
        Arp {
            operation: Operation::Request,
            sender_mac: mac(from),
            sender_ip: ip(from),
            target_mac: MacAddress::ZERO,
            target_ip: ip(to),
        },
    )
}

pub fn arp_frame(destination: MacAddress, arp: Arp) -> Vec<u8> {
    let header = Header { destination, source: arp.sender_mac, ethertype: EtherType::ARP };
    [&header.emit()[..], &arp.emit()].concat()
}

/// A UDP datagram with a complete checksum of the IP header and none of its own (RFC 768 allows zero).
pub fn datagram(from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    datagram_from(from, ip(from), to, payload)
}

pub fn datagram_from(from: u8, source: Ipv4Addr, to: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet.extend(source.octets());
    packet.extend(ip(to).octets());
    packet[2..4].copy_from_slice(&((28 + payload.len()) as u16).to_be_bytes());
    wire::ipv4::fill_checksum(&mut packet);
    packet.extend([0x12, 0x34, 0x56, 0x78]);
    packet.extend(((8 + payload.len()) as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    let header = Header { destination: mac(to), source: mac(from), ethertype: EtherType::IPV4 };
    [&header.emit()[..], &packet].concat()
}

/// A datagram of host `from` to a group.
pub fn to_group(from: u8, group: MacAddress, payload: &[u8]) -> Vec<u8> {
    let mut frame = datagram(from, 255, payload);
    frame[..6].copy_from_slice(&group.0);
    frame
}

/// Any frame that carries `payload` under the EtherType for local experiments.
pub fn plain_frame(from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let header = Header { destination: mac(to), source: mac(from), ethertype: EXPERIMENT };
    [&header.emit()[..], payload].concat()
}

/// The EtherType for local experiments (IEEE 802).
pub const EXPERIMENT: EtherType = EtherType(0x88b5);

/// Partial-checksum metadata of a frame.
pub fn partial(start: u16, offset: u16) -> Meta {
    Meta { checksum: Checksum::Partial { start, offset }, ..Meta::plain() }
}
