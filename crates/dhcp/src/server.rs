//! This host as a DHCP server: only proved requests reach its server program, and a REQUEST only after a key distributor has
//! agreed to the address, so that the program never commits a lease that is then refused.
//!
//! - `whose.rs`: whose key a message is checked under, and whether a distributor still says so.

mod whose;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{DropReason, Instant};
use identity::Succession;
use identity::Verified;
use identity::distributor::HostRecord;
use identity::site_key::SiteKey;
use shield::{Bucket, PerSource};
use wire::MacAddress;
use wire::dhcp::proof::{Claim, Maker, NONCE_LEN};
use wire::dhcp::{MessageType, Operation, SERVER_PORT, View};
use wire::sarp::data::LeaseAction;

use crate::proof::{Claimed, Proving, Stamped};
use crate::{Lease, end_of, limits, stamp};

use whose::Asked;
pub use whose::{Checked, Checking, Waiting};

/// A relay that may put its own fields into clients' messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Its address on the clients' side, as in giaddr.
    pub ip: Ipv4Addr,
    /// Whose frames carry its messages: its own hardware address, or that of the router in between.
    pub mac: MacAddress,
}

/// When a distributor is asked whether a client may have an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// When the client asks for it, before the server program hears that, so that the program commits nothing in vain.
    #[default]
    AtRequest,
    /// When the program has granted it, and the ACK waits: the order of the paper (section 3.5.2). What is refused then the
    /// program has committed all the same. Only for the paper profile.
    AtAck,
}

/// What a server knows of its site.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the key that its replies are signed with.
    pub key_name: u64,
    /// The addresses of this host, which REQUESTs name where they mean it.
    pub addresses: Vec<Ipv4Addr>,
    /// The keys of the site.
    pub site_keys: Succession<SiteKey>,
    /// Relays that are believed.
    pub relays: Vec<Relay>,
    /// How far a stamp may be from the S-ARP clock.
    pub window: Duration,
    /// When a distributor is asked about an address.
    pub order: Order,
}

/// A client whose key a distributor has told.
#[derive(Debug)]
struct KnownClient {
    record: Verified<HostRecord>,
    learnt_at: Instant,
    /// Whether the distributor's word still stands. What was heard is remembered in any case, or it could come again.
    is_vouched: bool,
    last_stamp: u64,
}

/// A message that was handed to the server program and may be answered.
#[derive(Clone, Debug)]
struct Exchange {
    nonce: [u8; NONCE_LEN],
    host: u64,
    wanted: Option<Ipv4Addr>,
    /// Whether a distributor has agreed to the address.
    is_agreed: bool,
    /// What the client signed, for a distributor that is asked when the program has answered.
    to_be_asked: Option<Box<Claimed>>,
    at: Instant,
}

/// What a distributor is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What for.
    pub action: LeaseAction,
    /// The host, by its number.
    pub host: u64,
    /// The address; unspecified where none is asked about.
    pub address: Ipv4Addr,
    /// For how many seconds; zero where that is not known yet.
    pub lease_s: u32,
    /// The message that the client signed, which waits for the answer; none where this host speaks for itself.
    pub claimed: Option<Claimed>,
}

/// What is to be done with a client's message.
#[derive(Debug)]
pub enum Step {
    /// Check its signature here.
    Check(Box<Checking>),
    /// Ask a distributor whose key is its client's now, [`Waiting::question`], while it waits.
    AskWhose(Box<Waiting>),
    /// Ask a distributor for the address first.
    Ask(Box<Question>),
    /// Hand this to the server program, and tell a distributor of the second.
    Deliver(Vec<u8>, Option<Box<Question>>),
}

/// What is to be done with a reply of the server program.
#[derive(Debug)]
pub enum Reply {
    /// Sign it, and tell a distributor of the second.
    Sign(Box<Proving>, Option<Question>),
    /// Hold it until a distributor has answered this.
    Hold(Question),
}

/// A DHCP server's half of S-DHCP.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    /// When stamps began to count: what is older may be a recording that was heard before this program started.
    began_at: u64,
    clients: BTreeMap<u64, KnownClient>,
    exchanges: BTreeMap<(MacAddress, u32, MessageType), Exchange>,
    leases: BTreeMap<Ipv4Addr, Lease>,
    budget_per_source: PerSource<MacAddress>,
    check_budget: Bucket,
    check_budget_per_client: PerSource<u64>,
    reply_budget: Bucket,
    question_budget: Bucket,
    question_budget_per_client: PerSource<u64>,
    asked: Asked,
}

impl Server {
    /// A server that knows nobody.
    #[must_use]
    pub fn new(settings: Settings) -> Server {
        let bucket = |per_second| Bucket::new(per_second, per_second);
        Server {
            settings,
            began_at: 0,
            clients: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            leases: BTreeMap::new(),
            budget_per_source: PerSource::new(limits::MESSAGES_PER_SOURCE_PER_SECOND, limits::SOURCES_MAX),
            check_budget: bucket(limits::CLIENT_CHECKS_PER_SECOND),
            check_budget_per_client: PerSource::new(limits::CHECKS_PER_CLIENT_PER_SECOND, limits::CLIENTS_MAX),
            reply_budget: bucket(limits::REPLIES_PER_SECOND),
            question_budget: bucket(limits::QUESTIONS_PER_SECOND),
            question_budget_per_client: PerSource::new(limits::QUESTIONS_PER_CLIENT_PER_SECOND, limits::CLIENTS_MAX),
            asked: Asked::default(),
        }
    }

    /// The S-ARP clock was set for the first time, or has moved for everybody: stamps begin (again) at `stamp`. Also after a
    /// step ahead: it may have been there before, and what was heard then was forgotten on the way back.
    pub fn begin_stamps(&mut self, stamp: u64) {
        self.began_at = stamp;
        for client in self.clients.values_mut() {
            client.last_stamp = 0;
        }
    }

    /// The keys of the site are these from now on.
    pub fn share(&mut self, site_keys: Succession<SiteKey>) {
        self.settings.site_keys = site_keys;
    }

    /// A client's message from the wire.
    ///
    /// # Errors
    /// Why it must not come in.
    pub fn incoming(&mut self, now: Instant, stamp: Option<u64>, frame: &[u8]) -> Result<Step, DropReason> {
        let message = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?;
        self.check_way(&message)?;
        let claimed = Claimed::read(Maker::Client, &message, frame, (&self.settings.site_keys, stamp))?;
        let ours = stamp.ok_or(DropReason::SarpNoClock)?;
        self.check_time(ours, &claimed.claim)?;
        self.check_holder(now, &claimed.claim)?;
        if !self.budget_per_source.take(now, message.ethernet().source) {
            return Err(DropReason::DhcpBudget);
        }
        match self.key_of(claimed.claim.who) {
            Some(record) => self.check(now, claimed, record, false),
            None => self.ask_whose(now, Waiting::for_a_key(claimed)),
        }
    }

    /// Whether a message came the way that it says. What a client writes is not believed about relays.
    fn check_way(&self, message: &View<'_>) -> Result<(), DropReason> {
        if message.operation() != Operation::Request || message.destination_port() != SERVER_PORT {
            return Err(DropReason::DhcpUnasked);
        }
        let (source, giaddr) = (message.ethernet().source, message.giaddr());
        if message.is_relayed() {
            let is_listed = self.settings.relays.iter().any(|relay| relay.mac == source && relay.ip == giaddr);
            return if is_listed { Ok(()) } else { Err(DropReason::DhcpRelay) };
        }
        // A renewal from behind a relay comes straight, by way of a router.
        let by_router = || self.settings.relays.iter().any(|relay| relay.mac == source);
        if source == message.chaddr() || by_router() { Ok(()) } else { Err(DropReason::DhcpChaddr) }
    }

    fn check_time(&self, ours: u64, claim: &Claim) -> Result<(), DropReason> {
        let last = self.clients.get(&claim.who).map_or(0, |client| client.last_stamp);
        let is_near = stamp::are_near(ours, claim.stamp, self.settings.window);
        if is_near && claim.stamp > last && claim.stamp >= self.began_at { Ok(()) } else { Err(DropReason::DhcpStale) }
    }

    /// Only the holder of an address may give it back or call it taken, and nobody gets what another has.
    fn check_holder(&self, now: Instant, claim: &Claim) -> Result<(), DropReason> {
        let lease = claim.wanted().and_then(|address| self.leases.get(&address)).filter(|lease| lease.holds(now));
        let holds = lease.map(|lease| lease.host == claim.who);
        match claim.kind {
            MessageType::Release | MessageType::Decline if holds != Some(true) => Err(DropReason::DhcpNotHolder),
            MessageType::Request if self.is_for_us(claim) => match holds {
                Some(true) => Ok(()),
                Some(false) => Err(DropReason::DhcpNotHolder),
                None => self.check_room(now, claim),
            },
            _ => Ok(()),
        }
    }

    fn check_room(&self, now: Instant, claim: &Claim) -> Result<(), DropReason> {
        if claim.wanted().is_none() {
            return Err(DropReason::DhcpMalformed);
        }
        let holding = self.leases.values().filter(|lease| lease.holds(now));
        let (mine, all) =
            holding.fold((0, 0), |(mine, all), lease| (mine + usize::from(lease.host == claim.who), all + 1));
        if mine >= limits::LEASES_PER_HOST_MAX || all >= limits::LEASES_MAX {
            return Err(DropReason::DhcpLeasesFull);
        }
        Ok(())
    }

    fn is_for_us(&self, claim: &Claim) -> bool {
        claim.server.is_unspecified() || self.settings.addresses.contains(&claim.server)
    }

    /// The key that a distributor said last was the client's.
    fn key_of(&self, host: u64) -> Option<Verified<HostRecord>> {
        self.clients.get(&host).map(|client| client.record.clone())
    }

    /// The same, as long as it counts while no distributor answers.
    fn key_without_asking(&self, now: Instant, host: u64) -> Option<&Verified<HostRecord>> {
        let client = self.clients.get(&host)?;
        let is_good = client.is_vouched && now.since(client.learnt_at) < limits::CLIENT_GOOD_FOR;
        is_good.then_some(&client.record)
    }

    /// Whether one more question is asked for a client whose signature was right.
    fn may_ask(&mut self, now: Instant, host: u64) -> bool {
        self.question_budget_per_client.take(now, host) && self.question_budget.take(now)
    }

    /// What a distributor is asked about an address before the REQUEST for it may come in.
    fn ask(&mut self, now: Instant, claimed: Claimed) -> Result<Step, DropReason> {
        let (host, address) = (claimed.claim.who, claimed.claim.wanted().unwrap_or(Ipv4Addr::UNSPECIFIED));
        if !self.may_ask(now, host) {
            return Err(DropReason::DhcpBudget);
        }
        let (action, claimed) = (LeaseAction::Bind, Some(claimed));
        Ok(Step::Ask(Box::new(Question { action, host, address, lease_s: 0, claimed })))
    }

    /// Whether this asks for an address that its host has already: a renewal.
    fn is_renewal(&self, now: Instant, claim: &Claim) -> bool {
        let held = claim.wanted().and_then(|address| self.leases.get(&address));
        held.is_some_and(|lease| lease.host == claim.who && lease.holds(now))
    }

    /// Whether the message is a REQUEST for which a distributor is asked to bind an address, which
    /// only the key that the repository has now can make it do.
    fn binds(&self, now: Instant, claim: &Claim) -> bool {
        let is_first = claim.kind == MessageType::Request && self.is_for_us(claim) && !self.is_renewal(now, claim);
        is_first && self.settings.order == Order::AtRequest
    }

    /// A message whose signature is right, under a key that nothing is to be asked about any more.
    fn pass(&mut self, now: Instant, stamp: Option<u64>, claimed: Claimed) -> Result<Step, DropReason> {
        if self.binds(now, &claimed.claim) {
            return self.ask(now, claimed);
        }
        let is_renewal = self.is_renewal(now, &claimed.claim);
        self.admit(now, stamp, &claimed, is_renewal)
    }

    /// A distributor has bound the address that a message asks for, and says whose key it is.
    ///
    /// # Errors
    /// Why the message that waited must not come in all the same.
    pub fn agreed(
        &mut self,
        now: Instant,
        stamp: Option<u64>,
        claimed: &Claimed,
        record: Verified<HostRecord>,
    ) -> Result<Step, DropReason> {
        self.learn(now, claimed.claim.who, record);
        self.admit(now, stamp, claimed, true)
    }

    /// A distributor has agreed to what an ACK gives that waits. It is [`outgoing`](Server::outgoing) now like any other.
    pub fn agreed_to_ack(&mut self, now: Instant, claim: &Claim, record: Verified<HostRecord>) {
        self.learn(now, claim.who, record);
        let exchange = self.exchanges.get_mut(&(claim.chaddr, claim.xid, claim.kind));
        if let Some(exchange) = exchange.filter(|exchange| exchange.nonce == claim.nonce) {
            exchange.is_agreed = true;
        }
    }

    fn learn(&mut self, now: Instant, host: u64, record: Verified<HostRecord>) {
        if !self.clients.contains_key(&host) && self.clients.len() >= limits::CLIENTS_MAX {
            self.forget_one_client();
        }
        let last_stamp = self.clients.get(&host).map_or(0, |client| client.last_stamp);
        self.clients.insert(host, KnownClient { record, learnt_at: now, is_vouched: true, last_stamp });
    }

    /// Forgets who was heard longest ago. What is as old as its last message could be one of its recordings from now on.
    fn forget_one_client(&mut self) {
        let oldest = self.clients.iter().min_by_key(|(_, client)| client.last_stamp).map(|(host, _)| *host);
        if let Some(gone) = oldest.and_then(|host| self.clients.remove(&host)) {
            self.began_at = self.began_at.max(gone.last_stamp.saturating_add(1));
        }
    }

    /// A distributor has refused: what it said of this host before counts no more.
    pub fn refused(&mut self, question: &Question) {
        if let Some(client) = self.clients.get_mut(&question.host) {
            client.is_vouched = false;
        }
        self.leases.retain(|address, lease| *address != question.address || lease.host != question.host);
    }

    /// The message comes in; its stamp is used up, and it may be answered.
    fn admit(
        &mut self,
        now: Instant,
        stamp: Option<u64>,
        claimed: &Claimed,
        is_agreed: bool,
    ) -> Result<Step, DropReason> {
        let claim = &claimed.claim;
        // Another message of the same host may have overtaken this one. And our clock may have gone back meanwhile: a stamp of
        // the time before would keep this client out until the clock is there again.
        self.check_time(stamp.ok_or(DropReason::SarpNoClock)?, claim)?;
        let client = self.clients.get_mut(&claim.who).ok_or(DropReason::DhcpSignature)?;
        if !client.record.admits(claim.chaddr) {
            return Err(DropReason::DhcpChaddr);
        }
        client.last_stamp = claim.stamp;
        let bare = claimed.bare()?;
        let question = match claim.kind {
            MessageType::Release | MessageType::Decline => self.give_back(claim),
            _ => None,
        };
        self.open(now, claimed, is_agreed)?;
        Ok(Step::Deliver(bare, question.map(Box::new)))
    }

    fn give_back(&mut self, claim: &Claim) -> Option<Question> {
        let address = claim.wanted()?;
        self.leases.remove(&address);
        Some(Question { action: LeaseAction::Unbind, host: claim.who, address, lease_s: 0, claimed: None })
    }

    fn open(&mut self, now: Instant, claimed: &Claimed, is_agreed: bool) -> Result<(), DropReason> {
        let claim = &claimed.claim;
        if matches!(claim.kind, MessageType::Release | MessageType::Decline) {
            return Ok(());
        }
        let key = (claim.chaddr, claim.xid, claim.kind);
        if self.exchanges.len() >= limits::SERVER_EXCHANGES_MAX && !self.exchanges.contains_key(&key) {
            self.exchanges.retain(|_, one| now.since(one.at) < limits::EXCHANGE_OPEN);
            if self.exchanges.len() >= limits::SERVER_EXCHANGES_MAX {
                return Err(DropReason::DhcpLeasesFull);
            }
        }
        let (nonce, host, wanted) = (claim.nonce, claim.who, claim.wanted());
        let to_be_asked = (self.settings.order == Order::AtAck).then(|| Box::new(claimed.without_frame()));
        self.exchanges.insert(key, Exchange { nonce, host, wanted, is_agreed, to_be_asked, at: now });
        Ok(())
    }

    /// A reply of the server program: what is to be signed, and what a distributor is to be told.
    ///
    /// # Errors
    /// Why it must not leave.
    pub fn outgoing(&mut self, now: Instant, stamp: Option<u64>, frame: &[u8]) -> Result<Reply, DropReason> {
        let message = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?;
        let (asked, exchange) = self.exchange(now, &message).ok_or(DropReason::DhcpUnasked)?;
        let stamp = stamp.ok_or(DropReason::SarpNoClock)?;
        let grants = (message.kind(), asked) == (MessageType::Ack, MessageType::Request);
        if let (true, false, Some(claimed)) = (grants, exchange.is_agreed, &exchange.to_be_asked) {
            return self.hold(now, message.yiaddr(), &exchange, claimed).map(Reply::Hold);
        }
        if !self.reply_budget.take(now) {
            return Err(DropReason::DhcpBudget);
        }
        let by = Stamped { who: self.settings.key_name, stamp, nonce: exchange.nonce };
        let proving = Proving::new(Maker::Server, &message, frame, by, &self.settings.site_keys)?;
        let question = match (message.kind(), asked) {
            (MessageType::Ack, MessageType::Request) => Some(self.grant(now, &message, &exchange)?),
            (MessageType::Nak, _) => self.withdraw(&exchange),
            _ => None,
        };
        Ok(Reply::Sign(Box::new(proving), question))
    }

    /// What a distributor is asked about an address that the program has granted already.
    fn hold(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        exchange: &Exchange,
        claimed: &Claimed,
    ) -> Result<Question, DropReason> {
        if exchange.wanted != Some(address) {
            return Err(DropReason::DhcpAddress);
        }
        if !self.question_budget.take(now) {
            return Err(DropReason::DhcpBudget);
        }
        let (action, host, claimed) = (LeaseAction::Bind, exchange.host, Some(claimed.clone()));
        Ok(Question { action, host, address, lease_s: 0, claimed })
    }

    /// Which message of a client the program answers.
    fn exchange(&self, now: Instant, message: &View<'_>) -> Option<(MessageType, Exchange)> {
        let found = message.kind().answers().iter().filter_map(|kind| {
            let exchange = self.exchanges.get(&(message.chaddr(), message.xid(), *kind))?;
            (now.since(exchange.at) < limits::EXCHANGE_OPEN).then(|| (*kind, exchange.clone()))
        });
        found.max_by_key(|(_, exchange)| exchange.at)
    }

    /// The program grants an address; the distributor learns for how long. Any other than the one that it has agreed to does
    /// not leave, nor an answer to a REQUEST that meant another server.
    fn grant(&mut self, now: Instant, message: &View<'_>, exchange: &Exchange) -> Result<Question, DropReason> {
        let (address, host) = (message.yiaddr(), exchange.host);
        if !exchange.is_agreed || exchange.wanted != Some(address) {
            return Err(DropReason::DhcpAddress);
        }
        let lease_s = message.lease_s().ok().flatten().ok_or(DropReason::DhcpMalformed)?;
        self.leases.retain(|_, lease| lease.holds(now));
        // Others may have been granted since the request was let in.
        if self.leases.len() >= limits::LEASES_MAX && !self.leases.contains_key(&address) {
            return Err(DropReason::DhcpLeasesFull);
        }
        self.leases.insert(address, Lease { address, host, until: end_of(now, lease_s) });
        Ok(Question { action: LeaseAction::Extend, host, address, lease_s, claimed: None })
    }

    /// The program refuses what a distributor has agreed to, or what it granted before: the address is free.
    fn withdraw(&mut self, exchange: &Exchange) -> Option<Question> {
        let (address, host) = (exchange.wanted.filter(|_| exchange.is_agreed)?, exchange.host);
        self.leases.retain(|leased, lease| *leased != address || lease.host != host);
        Some(Question { action: LeaseAction::Unbind, host, address, lease_s: 0, claimed: None })
    }

    /// Whether `host` has `address` by a lease that lasts.
    #[must_use]
    pub fn is_leased(&self, now: Instant, address: Ipv4Addr, host: u64) -> bool {
        self.leases.get(&address).is_some_and(|lease| lease.host == host && lease.holds(now))
    }

    /// The leases that last, by address.
    #[must_use]
    pub fn leases(&self, now: Instant) -> Vec<Lease> {
        self.leases.values().filter(|lease| lease.holds(now)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use identity::distributor::DistributorKey;
    use identity::signing::{SigningKey, ed25519_pkcs8_from_seed};
    use wire::arp::{Arp, Operation as ArpOperation};
    use wire::sarp::data::{Answer, Record};
    use wire::sarp::{Kind, Message, seal};

    use super::*;
    use crate::client;

    const ME: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const NOW: Instant = Instant::from_millis(1000);
    const STAMP: u64 = 1_800_000_000 << 32;

    fn key(seed: u8) -> Arc<SigningKey> {
        Arc::new(SigningKey::from_pkcs8_der(&ed25519_pkcs8_from_seed(&[seed; 32]).expect("a seed")).expect("a key"))
    }

    /// What a distributor says of the client whose key is made from `seed`.
    fn record(seed: u8) -> Verified<HostRecord> {
        let (algorithm, public) = (1, key(seed).record_key().expect("Ed25519").1.to_vec());
        let record = Record { algorithm, mac: Some(ME), key: &public }.emit();
        let data = Answer { fraction: 0, host: 9, nonce: [0; 16], rest: &record }.emit();
        let (sender_ip, target_ip) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
        let operation = ArpOperation::Reply;
        let arp = Arp { operation, sender_mac: MacAddress::ZERO, sender_ip, target_mac: ME, target_ip };
        let unsigned = Message { arp, kind: Kind::LeaseAgreed, seconds: 1, data: &data, signature: &[] }.signed_bytes();
        let distributor = key(200);
        let sealed = seal(unsigned.clone(), &distributor.sign(&unsigned).expect("signed"));
        let known = DistributorKey::new(1, distributor.record_key().expect("Ed25519").1).expect("a key");
        let statement = known.verify(&Message::parse(&sealed).expect("a message")).expect("signed");
        statement.record().expect("a record")
    }

    fn server() -> Server {
        let site_keys = SiteKey::from_bytes([4; 32]).into();
        let window = Duration::from_secs(30);
        let order = Order::AtRequest;
        Server::new(Settings { key_name: 1, addresses: Vec::new(), site_keys, relays: Vec::new(), window, order })
    }

    /// A REQUEST of host 1 for 10.0.0.`last`, signed at `stamp`.
    fn request(last: u8, stamp: u64) -> Vec<u8> {
        let mut bootp = vec![0; 240];
        bootp[..8].copy_from_slice(&[1, 1, 6, 0, 0, 0, 0, last]);
        bootp[28..34].copy_from_slice(&ME.0);
        bootp[236..].copy_from_slice(&[99, 130, 83, 99]);
        bootp.extend([53, 1, 3, 50, 4, 10, 0, 0, last, 255]);
        let (ip_len, udp_len) = ((28 + bootp.len()) as u16, (8 + bootp.len()) as u16);
        let mut frame = [&[0xff; 6][..], &ME.0, &[8, 0, 0x45, 0], &ip_len.to_be_bytes()].concat();
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 68, 0, 67]);
        frame.extend(udp_len.to_be_bytes());
        let frame = [&frame[..], &[0, 0], &bootp].concat();
        let (site_keys, window) = (SiteKey::from_bytes([4; 32]).into(), Duration::from_secs(30));
        let settings = client::Settings { mac: ME, host: 1, site_keys, servers: Vec::new(), window };
        let proving = client::Client::new(settings).outgoing(NOW, Some(stamp), [last; 16], &frame).expect("it leaves");
        proving.run(&key(1)).expect("signed")
    }

    /// Goes on until a distributor is asked to bind the address; of the client it says `record(1)`.
    fn asked_at(server: &mut Server, stamp: u64, frame: &[u8]) -> Claimed {
        let mut step = server.incoming(NOW, Some(stamp), frame);
        loop {
            step = match step {
                Ok(Step::AskWhose(waiting)) => server.told(NOW, Some(stamp), *waiting, record(1)),
                Ok(Step::Check(checking)) => server.checked(NOW, Some(stamp), checking.run()),
                Ok(Step::Ask(question)) => return question.claimed.expect("a client's message"),
                other => panic!("not asked: {other:?}"),
            }
        }
    }

    fn asked(server: &mut Server, frame: &[u8]) -> Claimed {
        asked_at(server, STAMP, frame)
    }

    fn is_asked_whose(server: &mut Server, frame: &[u8]) -> bool {
        matches!(server.incoming(NOW, Some(STAMP), frame), Ok(Step::AskWhose(_)))
    }

    #[test]
    fn of_two_copies_that_are_under_way_at_once_one_comes_in() {
        let mut server = server();
        let frame = request(7, STAMP);
        let copies = [(); 2].map(|()| asked(&mut server, &frame));
        assert!(matches!(server.agreed(NOW, Some(STAMP), &copies[0], record(1)), Ok(Step::Deliver(..))));
        assert_eq!(server.agreed(NOW, Some(STAMP), &copies[1], record(1)).err(), Some(DropReason::DhcpStale));
        // A third is known for what it is before anybody is asked or a signature is checked.
        assert_eq!(server.incoming(NOW, Some(STAMP), &frame).err(), Some(DropReason::DhcpStale));
        // After a step back of everybody's clock stamps begin again.
        server.begin_stamps(STAMP - 1);
        assert!(matches!(server.incoming(NOW, Some(STAMP), &frame), Ok(Step::Check(_))));
    }

    #[test]
    fn a_refusal_takes_the_last_word_back_and_not_what_was_heard() {
        let mut server = server();
        let frame = request(7, STAMP);
        let claimed = asked(&mut server, &frame);
        assert!(server.agreed(NOW, Some(STAMP), &claimed, record(1)).is_ok());
        let (action, address) = (LeaseAction::Extend, Ipv4Addr::new(10, 0, 0, 7));
        let untold = |server: &mut Server, stamp| {
            let claimed =
                Claimed { claim: Claim { kind: MessageType::Discover, stamp, ..claimed.claim }, ..claimed.clone() };
            server.not_told(NOW, Some(STAMP), Waiting { claimed, tried: Some((record(1), true)) })
        };
        assert!(matches!(untold(&mut server, STAMP + 1), Ok(Step::Deliver(..))));
        server.refused(&Question { action, host: 1, address, lease_s: 60, claimed: None });
        assert_eq!(untold(&mut server, STAMP + 2).err(), Some(DropReason::DhcpNoAnswer));
        assert_eq!(server.incoming(NOW, Some(STAMP), &frame).err(), Some(DropReason::DhcpStale));
    }

    #[test]
    fn a_step_back_forgets_what_was_newest_and_what_is_older_than_that_stays_out() {
        let mut server = server();
        server.begin_stamps(STAMP);
        let old = server.incoming(NOW, Some(STAMP), &request(7, STAMP - 1));
        assert_eq!(old.err(), Some(DropReason::DhcpStale));
        assert!(is_asked_whose(&mut server, &request(7, STAMP)));
        let far = server.incoming(NOW, Some(STAMP), &request(7, STAMP + (31 << 32)));
        assert_eq!(far.err(), Some(DropReason::DhcpStale), "beyond the window");
        let early = server.incoming(NOW, None, &request(7, STAMP));
        assert_eq!(early.err(), Some(DropReason::SarpNoClock));
    }

    /// Broke `admit` by comparing with the last stamp alone: the client was kept out for a day.
    #[test]
    fn a_message_that_waited_while_the_clock_went_back_does_not_come_in() {
        let mut server = server();
        let ahead = STAMP + (86_400 << 32);
        let waiting = asked_at(&mut server, ahead, &request(7, ahead));
        server.begin_stamps(STAMP);
        let late = server.agreed(NOW, Some(STAMP), &waiting, record(1));
        assert_eq!(late.err(), Some(DropReason::DhcpStale));
        assert!(matches!(server.incoming(NOW, Some(STAMP), &request(7, STAMP + 1)), Ok(Step::Check(_))));
    }

    /// A flood in a client's name: what it costs distributors, and what is left of the client's
    /// key.
    #[test]
    fn wrong_signatures_are_asked_about_once_in_an_interval_and_leave_the_key() {
        let mut server = server();
        let claimed = asked(&mut server, &request(7, STAMP));
        assert!(server.agreed(NOW, Some(STAMP), &claimed, record(1)).is_ok());
        let mut asked = 0;
        for number in 0..1000 {
            // Half a second each: no budget of sources hides what is asked.
            let now = NOW + Duration::from_millis(500) * number;
            let mut forged = request(8, STAMP + 1);
            let at = forged.len() - 40;
            forged[at] ^= 1;
            let Ok(Step::Check(checking)) = server.incoming(now, Some(STAMP), &forged) else { panic!("{number}") };
            match server.checked(now, Some(STAMP), checking.run()) {
                Ok(Step::AskWhose(waiting)) => {
                    asked += 1;
                    let told = server.told(now, Some(STAMP), *waiting, record(1));
                    assert_eq!(told.err(), Some(DropReason::DhcpSignature));
                }
                other => assert_eq!(other.err(), Some(DropReason::DhcpSignature)),
            }
        }
        assert_eq!(asked, 249, "500 s, once in two; the first question was the client's own");
    }

    /// The same in the names of clients that are not known, or that there are not.
    #[test]
    fn unknown_clients_leave_the_questions_of_those_that_are_known() {
        let mut server = server();
        let mut asked = 0;
        for who in 1000..1500 {
            let mut claimed = asked_for(7);
            claimed.claim.who = who;
            asked += u32::from(server.ask_whose(NOW, Waiting::for_a_key(claimed)).is_ok());
        }
        assert_eq!(asked, limits::UNPROVED_QUESTIONS_PER_SECOND);
        let known = (0..limits::QUESTIONS_PER_SECOND).filter(|who| server.may_ask(NOW, u64::from(*who))).count();
        assert_eq!(known, limits::QUESTIONS_PER_SECOND as usize);
    }

    #[test]
    fn a_client_takes_no_more_than_its_share_of_questions() {
        let mut server = server();
        let taken = (0..100).filter(|_| server.may_ask(NOW, 7)).count();
        assert_eq!(taken, limits::QUESTIONS_PER_CLIENT_PER_SECOND as usize);
        assert!(server.may_ask(NOW, 8));
    }

    #[test]
    fn a_key_that_changed_while_a_message_waited_is_tried() {
        let mut server = server();
        let claimed = asked(&mut server, &request(7, STAMP));
        assert!(server.agreed(NOW, Some(STAMP), &claimed, record(2)).is_ok());
        // Signed by key 1, checked under key 2, which is a former one.
        let (now, frame) = (NOW + limits::UNPROVED_QUESTION_INTERVAL, request(7, STAMP + 1));
        let Ok(Step::Check(checking)) = server.incoming(now, Some(STAMP), &frame) else { panic!("no check") };
        let Ok(Step::AskWhose(waiting)) = server.checked(now, Some(STAMP), checking.run()) else { panic!("unasked") };
        let Ok(Step::Check(checking)) = server.told(now, Some(STAMP), *waiting, record(1)) else { panic!("untried") };
        assert!(matches!(server.checked(now, Some(STAMP), checking.run()), Ok(Step::Ask(_))));
        // Another message was under way under the former key meanwhile.
        let Ok(Step::Check(late)) = server.check(now, claimed, record(2), false) else { panic!("no check") };
        assert!(matches!(server.checked(now, Some(STAMP), late.run()), Ok(Step::Check(_))));
    }

    #[test]
    fn all_tables_are_bounded() {
        let mut server = server();
        for number in 0..limits::CLIENTS_MAX as u64 + 10 {
            let mut claimed = asked_for(7);
            claimed.claim.who = number;
            claimed.claim.xid = number as u32;
            let _ = server.agreed(NOW + Duration::from_secs(number), Some(STAMP), &claimed, record(1));
        }
        assert_eq!(server.clients.len(), limits::CLIENTS_MAX);
        assert_eq!(server.began_at, STAMP + 1, "who is forgotten cannot be replayed");
        assert!(server.exchanges.len() <= limits::SERVER_EXCHANGES_MAX);
        let lease = |number: u32| {
            let address = Ipv4Addr::from(number);
            (address, Lease { address, host: 5, until: None })
        };
        server.leases = (0..limits::LEASES_MAX as u32).map(lease).collect();
        assert_eq!(server.check_holder(NOW, &asked_for(7).claim), Err(DropReason::DhcpLeasesFull));
    }

    fn asked_for(last: u8) -> Claimed {
        let frame = request(last, STAMP);
        let view = View::new(&frame).expect("a message");
        Claimed::read(Maker::Client, &view, &frame, (&SiteKey::from_bytes([4; 32]).into(), None)).expect("proved")
    }
}
