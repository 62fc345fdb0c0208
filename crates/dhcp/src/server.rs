//! This host as a DHCP server: only proved requests reach its server program, and a REQUEST only after a key distributor has
//! agreed to the address, so that the program never commits a lease that is then refused.

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

/// A client whose key a distributor has vouched for.
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

/// A client's message whose signature is to be checked under a key that is here.
#[derive(Debug)]
pub struct Checking {
    /// The message.
    pub claimed: Claimed,
    record: Verified<HostRecord>,
}

impl Checking {
    /// Checks the signature; the message comes back if it is right.
    #[must_use]
    pub fn run(self) -> Option<Claimed> {
        let is_right = self.record.verify_signature(&self.claimed.signed_bytes(), &self.claimed.signature).is_ok();
        is_right.then_some(self.claimed)
    }
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
    /// Ask a distributor first.
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
    reply_budget: Bucket,
    question_budget: Bucket,
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
            reply_budget: bucket(limits::REPLIES_PER_SECOND),
            question_budget: bucket(limits::QUESTIONS_PER_SECOND),
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
        match self.key_of(now, claimed.claim.who) {
            Some(record) if self.check_budget.take(now) => Ok(Step::Check(Box::new(Checking { claimed, record }))),
            Some(_) => Err(DropReason::DhcpBudget),
            None => self.ask(now, claimed),
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

    fn key_of(&self, now: Instant, host: u64) -> Option<Verified<HostRecord>> {
        let client = self.clients.get(&host)?;
        let is_good = client.is_vouched && now.since(client.learnt_at) < limits::CLIENT_GOOD_FOR;
        is_good.then(|| client.record.clone())
    }

    /// What a distributor is asked about a message before it may come in.
    fn ask(&mut self, now: Instant, claimed: Claimed) -> Result<Step, DropReason> {
        if !self.question_budget.take(now) {
            return Err(DropReason::DhcpBudget);
        }
        let is_order = self.settings.order == Order::AtRequest;
        let binds = is_order && claimed.claim.kind == MessageType::Request && self.is_for_us(&claimed.claim);
        let action = if binds { LeaseAction::Bind } else { LeaseAction::Check };
        let address = claimed.claim.wanted().filter(|_| binds).unwrap_or(Ipv4Addr::UNSPECIFIED);
        let host = claimed.claim.who;
        Ok(Step::Ask(Box::new(Question { action, host, address, lease_s: 0, claimed: Some(claimed) })))
    }

    /// A message whose signature is right under a key that was here. A REQUEST for an address that the host has already is a
    /// renewal and goes through (section 3.5.2); the distributor hears of it with the answer.
    ///
    /// # Errors
    /// Why it must not come in all the same.
    pub fn verified(&mut self, now: Instant, stamp: Option<u64>, claimed: Claimed) -> Result<Step, DropReason> {
        let claim = &claimed.claim;
        let held = claim.wanted().and_then(|address| self.leases.get(&address));
        let is_renewal = held.is_some_and(|lease| lease.host == claim.who && lease.holds(now));
        let is_first = claim.kind == MessageType::Request && self.is_for_us(claim) && !is_renewal;
        if is_first && self.settings.order == Order::AtRequest {
            return self.ask(now, claimed);
        }
        self.admit(now, stamp, &claimed, is_renewal)
    }

    /// A distributor has agreed, and says whose key it is.
    ///
    /// # Errors
    /// Why the message that waited must not come in all the same.
    pub fn agreed(
        &mut self,
        now: Instant,
        stamp: Option<u64>,
        action: LeaseAction,
        claimed: &Claimed,
        record: Verified<HostRecord>,
    ) -> Result<Step, DropReason> {
        self.learn(now, claimed.claim.who, record);
        self.admit(now, stamp, claimed, action == LeaseAction::Bind)
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

    fn asked(step: Result<Step, DropReason>) -> Claimed {
        match step {
            Ok(Step::Ask(question)) => question.claimed.expect("a client's message"),
            other => panic!("not asked: {other:?}"),
        }
    }

    #[test]
    fn of_two_copies_that_are_under_way_at_once_one_comes_in() {
        let mut server = server();
        let frame = request(7, STAMP);
        let copies = [(); 2].map(|()| asked(server.incoming(NOW, Some(STAMP), &frame)));
        assert!(matches!(
            server.agreed(NOW, Some(STAMP), LeaseAction::Bind, &copies[0], record(1)),
            Ok(Step::Deliver(..))
        ));
        assert_eq!(
            server.agreed(NOW, Some(STAMP), LeaseAction::Bind, &copies[1], record(1)).err(),
            Some(DropReason::DhcpStale)
        );
        // A third is known for what it is before anybody is asked or a signature is checked.
        assert_eq!(server.incoming(NOW, Some(STAMP), &frame).err(), Some(DropReason::DhcpStale));
        // After a step back of everybody's clock stamps begin again.
        server.begin_stamps(STAMP - 1);
        assert!(matches!(server.incoming(NOW, Some(STAMP), &frame), Ok(Step::Check(_))));
    }

    #[test]
    fn a_refusal_forgets_the_key_and_not_what_was_heard() {
        let mut server = server();
        let frame = request(7, STAMP);
        let claimed = asked(server.incoming(NOW, Some(STAMP), &frame));
        assert!(server.agreed(NOW, Some(STAMP), LeaseAction::Bind, &claimed, record(1)).is_ok());
        let (action, address) = (LeaseAction::Extend, Ipv4Addr::new(10, 0, 0, 7));
        server.refused(&Question { action, host: 1, address, lease_s: 60, claimed: None });
        assert_eq!(server.incoming(NOW, Some(STAMP), &frame).err(), Some(DropReason::DhcpStale));
        asked(server.incoming(NOW, Some(STAMP), &request(7, STAMP + 1)));
    }

    #[test]
    fn a_step_back_forgets_what_was_newest_and_what_is_older_than_that_stays_out() {
        let mut server = server();
        server.begin_stamps(STAMP);
        let old = server.incoming(NOW, Some(STAMP), &request(7, STAMP - 1));
        assert_eq!(old.err(), Some(DropReason::DhcpStale));
        asked(server.incoming(NOW, Some(STAMP), &request(7, STAMP)));
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
        let waiting = asked(server.incoming(NOW, Some(ahead), &request(7, ahead)));
        server.begin_stamps(STAMP);
        let late = server.agreed(NOW, Some(STAMP), LeaseAction::Bind, &waiting, record(1));
        assert_eq!(late.err(), Some(DropReason::DhcpStale));
        assert!(matches!(server.incoming(NOW, Some(STAMP), &request(7, STAMP + 1)), Ok(Step::Check(_))));
    }

    #[test]
    fn all_tables_are_bounded() {
        let mut server = server();
        for number in 0..limits::CLIENTS_MAX as u64 + 10 {
            let mut claimed = asked(server.ask(NOW + Duration::from_secs(number), asked_for(7)));
            claimed.claim.who = number;
            claimed.claim.xid = number as u32;
            let _ =
                server.agreed(NOW + Duration::from_secs(number), Some(STAMP), LeaseAction::Bind, &claimed, record(1));
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
