//! Enrolment by token, without sockets: the machine that applies, a distributor, a real site behind it, and what others can do to
//! their exchange. The machine has no clock at all.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use authority::Directory;
use authority::directory::{Delivery, Invitation, Sharing};
use authority::enrolment::by_token::Applying;
use authority::files::Overwrite;
use authority::limits::SITE_VALIDITY;
use authority::repository::Store;
use authority::repository::enrolment::{self, Answer, Progress};
use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, ClockTrust, DropReason, Generator, Instant, Ledger, Meta, Now, Side, Wall};
use identity::certificate::Role;
use identity::distributor::DistributorKey;
use identity::token::Token;
use identity::{HostIdentity, Profile};
use sarp::akd::{Akd, Lookup, Outcome, RecordKey, Records};
use sarp::applicant::{Applicant, News, Settings};
use sarp::{Distributor, Host};
use tempfile::TempDir;
use wire::MacAddress;
use wire::sarp::enrolment::{Application, State};
use wire::sarp::{Kind, Message};

const NOW_UNIX_S: u64 = 1_800_000_000;
const DAY: Duration = Duration::from_secs(86_400);
const SECOND: Duration = Duration::from_secs(1);
const KEYS: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
const DESK: MacAddress = MacAddress([2, 0, 0, 0, 0, 7]);

fn random(seed: u8) -> impl FnMut(&mut [u8]) {
    let mut generator = Generator::from_seed([seed; 32]);
    move |bytes| bytes.fill_with(|| generator.bytes::<1>()[0])
}

/// What a distributor asks: the site's own repository.
struct Repository {
    store: Box<dyn Store>,
    fails: bool,
}

impl Repository {
    fn say(&self, answer: Result<Answer, authority::repository::StoreError>) -> Option<Outcome> {
        let state = match answer.ok().filter(|_| !self.fails)? {
            Answer::Approved(sealed) => return Some(Outcome { state: State::Approved, sealed }),
            Answer::Waiting => State::Waiting,
            Answer::Refused => State::Refused,
            Answer::Fetched => State::Fetched,
            Answer::NotOpen => State::NotOpen,
            Answer::NotApplied => State::NotApplied,
            Answer::OtherKey => State::OtherKey,
            Answer::OtherMac => State::OtherMac,
            Answer::BadRequest => State::BadRequest,
        };
        Some(state.into())
    }
}

impl Records for Repository {
    fn find(&self, _ip: std::net::Ipv4Addr) -> Lookup {
        Lookup::Failed
    }

    fn replace(&self, _ip: std::net::Ipv4Addr, _old: &[u8], _new: RecordKey<'_>) -> bool {
        false
    }

    fn apply(&self, application: &Application<'_>, mac: MacAddress) -> Option<Outcome> {
        let Application { question, sealing_key, request } = *application;
        let applicant = enrolment::Applicant { mac, sealing_key, request: request.to_vec(), asked_unix_s: NOW_UNIX_S };
        self.say(enrolment::apply(&*self.store, question.host, &applicant, NOW_UNIX_S))
    }

    fn fetch(&self, token: u64) -> Option<Outcome> {
        self.say(enrolment::ask(&*self.store, token, NOW_UNIX_S))
    }

    fn close(&self, token: u64) -> Option<Outcome> {
        self.say(enrolment::close(&*self.store, token, NOW_UNIX_S))
    }
}

/// A site with the distributor "keys", and that distributor.
struct World {
    _place: TempDir,
    site: Directory,
    keys: Host,
    records: Repository,
    trust: ClockTrust,
    now: Instant,
}

fn world() -> World {
    let place = tempfile::tempdir().unwrap();
    let founded = place.path().join("site");
    let site = Directory::init(&founded, "lab", SITE_VALIDITY, Profile::Modern, &mut random(1), NOW_UNIX_S).unwrap();
    let request =
        authority::Request::new("keys", KEYS, vec![[10, 0, 0, 9].into()]).unwrap().with_role(Role::Distributor);
    let output = place.path().join("keys.pem");
    let delivery = Delivery { output: &output, overwrite: Overwrite::Never, sharing: Sharing::Refused };
    site.issue_identity(&request, &delivery, &mut random(2), NOW_UNIX_S).unwrap();
    let identity = HostIdentity::from_pem(&std::fs::read_to_string(&output).unwrap()).unwrap();
    let key = DistributorKey::of(identity.certificate()).unwrap();
    let settings = sarp::Settings {
        key: identity.signing_key(),
        mac: KEYS,
        addresses: vec![[10, 0, 0, 9].into()],
        distributors: vec![Distributor { ip: [10, 0, 0, 9].into(), mac: KEYS, key }],
        request_keys: identity.request_keys().unwrap().clone(),
        known_hosts: Vec::new(),
        window: Duration::from_secs(30),
        dhcp_client: None,
        dhcp_server: None,
        sign_requests: false,
        weaken: sarp::Weaken::default(),
    };
    let akd = Akd::new(identity.signing_key(), identity.request_masters().unwrap().clone());
    let keys = Host::new(Arc::new(settings), Some(akd), Generator::from_seed([3; 32]));
    let records = Repository { store: site.repository().unwrap(), fails: false };
    let (trust, now) = (ClockTrust::Plausible, Instant::from_millis(1000));
    World { _place: place, site, keys, records, trust, now }
}

fn invitation(name: &str) -> Invitation {
    Invitation {
        name: name.to_owned(),
        role: Role::Host,
        mac: None,
        addresses: vec![],
        subnets: vec![],
        preapproved: false,
        by_service: false,
        validity: DAY,
        valid: DAY,
    }
}

impl World {
    fn token(&self) -> Token {
        let made_before = self.records.store.enrolments().unwrap().len() as u8;
        self.site.invite(&invitation("desk"), &mut random(40 + made_before), NOW_UNIX_S).unwrap()
    }

    /// The distributor hears `frame`; what it answers.
    fn hand(&mut self, frame: Vec<u8>) -> Vec<Vec<u8>> {
        let wall = Some(Wall { unix_ms: NOW_UNIX_S * 1000, trust: self.trust });
        let now = Now { since_boot: self.now, wall };
        let mut sink = Collected::new();
        self.keys.process(now, Side::WIRE, &mut Frames::new(&mut [(frame, Meta::plain())]), &mut sink);
        while let Some((ticket, job)) = self.keys.next_job() {
            self.keys.complete(now, ticket, job.run(&self.records), &mut sink);
        }
        assert_eq!(self.ledger().balance(), 0);
        sink.take().into_iter().filter(|(to, ..)| *to == Side::WIRE).map(|(_, frame, _)| frame).collect()
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        self.keys.add_to_ledger(&mut ledger);
        ledger
    }

    fn drops(&self, reason: DropReason) -> u64 {
        self.ledger().drops(reason)
    }

    /// Lets the machine go on until it has news, with `lost` deciding what the LAN loses.
    fn exchange(&mut self, machine: &mut Machine, mut lost: impl FnMut() -> bool) -> News {
        for _ in 0..1000 {
            self.now = machine.applicant.deadline().unwrap().max(self.now);
            if let Some(news) = machine.applicant.give_up() {
                return news;
            }
            let Some(frame) = machine.applicant.send(self.now) else { continue };
            if lost() {
                continue;
            }
            for answer in self.hand(frame) {
                let news = (!lost()).then(|| machine.applicant.hear(self.now, &answer)).flatten();
                if let Some(news) = news {
                    return news;
                }
            }
        }
        panic!("no news");
    }

    fn approve(&self) {
        self.site.approve("desk", None, Sharing::Refused, &mut random(5), NOW_UNIX_S).unwrap();
    }

    fn progress(&self) -> Vec<Progress> {
        self.records.store.enrolments().unwrap().into_iter().map(|one| one.progress).collect()
    }
}

/// A machine that enrols, with what it keeps.
struct Machine {
    applicant: Applicant,
    applying: Applying,
}

fn machine(token: &Token, seed: u8) -> Machine {
    let applying = Applying::begin(token, DESK, &[[10, 0, 0, 7].into()], &mut random(seed)).unwrap();
    let settings = Settings {
        mac: DESK,
        key: token.key(),
        distributors: token.distributors().to_vec(),
        sealing_key: applying.sealing_key(),
        request: applying.request().to_vec(),
    };
    let applicant = Applicant::new(settings, Generator::from_seed([seed; 32]), Instant::from_millis(1000));
    Machine { applicant, applying }
}

fn none_lost() -> impl FnMut() -> bool {
    || false
}

#[test]
fn a_machine_without_a_clock_gets_its_identity_over_a_lan_that_loses_half() {
    for seed in 0..20 {
        let mut world = world();
        let token = world.token();
        let mut machine = machine(&token, 7);
        let mut generator = Generator::from_seed([seed; 32]);
        let mut lost = || generator.chance(2);
        assert_eq!(world.exchange(&mut machine, &mut lost), News::Applied);
        world.approve();
        let News::Sealed(sealed) = world.exchange(&mut machine, &mut lost) else { panic!("not sealed") };
        let (_, identity) = machine.applying.install(&token, &sealed, 0).unwrap();
        assert_eq!((identity.certificate().name(), identity.certificate().mac()), ("desk", DESK));
        assert_eq!(identity.distributors().len(), 1);
        assert_eq!(machine.applicant.deadline(), None, "it says nothing before it is installed");
        machine.applicant.installed(world.now);
        assert_eq!(world.exchange(&mut machine, &mut lost), News::Done);
        assert!(machine.applicant.deadline().is_none());
    }
}

#[test]
fn what_was_sealed_is_forgotten_once_it_is_installed() {
    let mut world = world();
    let token = world.token();
    let mut machine = machine(&token, 7);
    world.exchange(&mut machine, none_lost());
    world.approve();
    assert!(matches!(world.exchange(&mut machine, none_lost()), News::Sealed(_)));
    assert!(matches!(world.progress()[..], [Progress::AwaitsFetch(..)]));
    machine.applicant.installed(world.now);
    assert_eq!(world.exchange(&mut machine, none_lost()), News::Done);
    assert_eq!(world.progress(), [Progress::Fetched]);
    // The token serves nobody else.
    let mut second = self::machine(&token, 8);
    assert_eq!(world.exchange(&mut second, none_lost()), News::Ended(State::Fetched));
}

#[test]
fn a_machine_that_restarts_goes_on_with_its_keys() {
    let mut world = world();
    let token = world.token();
    let mut first = machine(&token, 7);
    world.exchange(&mut first, none_lost());
    world.approve();
    let mut again = machine(&token, 7);
    let News::Sealed(sealed) = world.exchange(&mut again, none_lost()) else { panic!("not sealed") };
    assert!(first.applying.install(&token, &sealed, 0).is_ok());
}

#[test]
fn whoever_comes_second_or_too_late_or_from_elsewhere_is_told_so() {
    let mut world = world();
    let token = world.token();
    world.exchange(&mut machine(&token, 7), none_lost());
    assert_eq!(world.exchange(&mut machine(&token, 8), none_lost()), News::Ended(State::OtherKey));
    world.site.refuse("desk", NOW_UNIX_S).unwrap();
    assert_eq!(world.exchange(&mut machine(&token, 7), none_lost()), News::Ended(State::Refused));
    let later = world.token();
    assert_eq!(world.exchange(&mut machine(&token, 7), none_lost()), News::Ended(State::NotOpen));
    let asked = world.records.store.enrolment(later.number()).unwrap();
    let over = asked.clone().map(|one| authority::repository::Enrolment { until_unix_s: NOW_UNIX_S - 1, ..one });
    assert!(world.records.store.change_enrolment(asked.as_ref(), over.as_ref()).unwrap());
    assert_eq!(world.exchange(&mut machine(&later, 7), none_lost()), News::Ended(State::NotOpen));
}

/// Broke `Akd::enrol` by leaving the tag out: the table had what the attacker sent.
#[test]
fn nothing_changes_without_the_tokens_secret() {
    let mut world = world();
    let token = world.token();
    let frame = machine(&token, 7).applicant.send(world.now).unwrap();
    let len = 14 + Message::parse(&frame[14..]).unwrap().emit().len();
    for at in 0..len {
        let mut forged = frame.clone();
        forged[at] ^= 1;
        assert_eq!(world.hand(forged), Vec::<Vec<u8>>::new(), "byte {at}");
    }
    assert_eq!(world.progress(), [Progress::AwaitsHost]);
    assert!(world.drops(DropReason::SarpEnrolTag) > 300, "{}", world.drops(DropReason::SarpEnrolTag));
    // A token of another site, with this one's number and distributors.
    let master = identity::distributor::RequestMaster::from_bytes([66; 32]);
    let stranger = Token::new(&master, token.number(), b"x", "desk", token.distributors());
    world.now = world.now + SECOND;
    let before = world.drops(DropReason::SarpEnrolTag);
    assert!(world.hand(machine(&stranger, 7).applicant.send(Instant::from_millis(1000)).unwrap()).is_empty());
    assert_eq!(world.drops(DropReason::SarpEnrolTag), before + 1);
}

/// Broke `Applicant::hear` by comparing the number only: the recorded answer ended the enrolment.
#[test]
fn only_the_answer_to_the_open_question_counts() {
    let mut world = world();
    let token = world.token();
    let mut machine = machine(&token, 7);
    let asked = machine.applicant.send(world.now).unwrap();
    let answer = world.hand(asked).remove(0);
    for at in 0..answer.len() {
        let mut forged = answer.clone();
        forged[at] ^= 1;
        // The source address is the carrier's, not the distributor's to prove; padding is nobody's.
        let is_unproved = (6..12).contains(&at) || at >= 14 + 40 + 29 + 16;
        assert!(is_unproved || machine.applicant.hear(world.now, &forged).is_none(), "byte {at}");
    }
    assert_eq!(machine.applicant.hear(world.now, &answer), Some(News::Applied));
    assert_eq!(machine.applicant.hear(world.now, &answer), None, "once");
    world.site.refuse("desk", NOW_UNIX_S).unwrap();
    let News::Ended(State::Refused) = world.exchange(&mut self::machine(&token, 7), none_lost()) else { panic!("?") };
    // A refusal that another machine was told is not for this one.
    let mut other = self::machine(&token, 7);
    let refusal = world.hand(other.applicant.send(world.now).unwrap()).remove(0);
    world.now = machine.applicant.deadline().unwrap();
    machine.applicant.send(world.now).unwrap();
    assert_eq!(machine.applicant.hear(world.now, &refusal), None);
    let replayed = answer;
    assert_eq!(machine.applicant.hear(world.now, &replayed), None);
}

/// Broke `EnrolmentGate::admit` by leaving out the number, then the budget: tags were checked.
#[test]
fn a_forger_buys_no_more_tags_than_the_budget() {
    let mut world = world();
    let (token, frame) = {
        let token = world.token();
        let frame = machine(&token, 7).applicant.send(world.now).unwrap();
        (token, frame)
    };
    // Numbers that nobody made, in the tail of which the right check stands; then bits of the right one.
    let number_at = 14 + 40;
    let forged = |change: &dyn Fn(&mut [u8])| {
        let mut forged = frame.clone();
        change(&mut forged[number_at..number_at + 8]);
        forged
    };
    for guess in 0..1000_u64 {
        world.hand(forged(&|number| number[..5].copy_from_slice(&guess.to_be_bytes()[3..])));
    }
    (0..64).for_each(|bit| drop(world.hand(forged(&|number| number[bit / 8] ^= 1 << (bit % 8)))));
    assert_eq!(world.drops(DropReason::SarpEnrolNumber), 1064);

    // The right number, overheard, and no secret.
    let mut overheard = frame.clone();
    *overheard.get_mut(14 + 40 + 24).unwrap() ^= 1;
    (0..5000).for_each(|_| assert!(world.hand(overheard.clone()).is_empty()));
    let limit = u64::from(sarp::limits::ENROLMENT_CHECKS_PER_TOKEN_PER_SECOND);
    let spent = [DropReason::SarpEnrolTag, DropReason::SarpEnrolBudget].map(|reason| world.drops(reason));
    assert_eq!(spent, [limit, 5000 - limit]);
    assert!(world.hand(frame.clone()).is_empty(), "this token's share is spent");
    assert_eq!(world.drops(DropReason::SarpEnrolTag), limit);
    // Another token has its own, and a second later so has this one.
    let other = world.site.invite(&invitation("table"), &mut random(99), NOW_UNIX_S).unwrap();
    assert_eq!(world.hand(machine(&other, 8).applicant.send(world.now).unwrap()).len(), 1);
    world.now = world.now + SECOND;
    assert_eq!(world.exchange(&mut machine(&token, 7), none_lost()), News::Applied);
}

#[test]
fn a_flood_under_one_token_is_bounded() {
    let mut world = world();
    let token = world.token();
    let frame = machine(&token, 7).applicant.send(world.now).unwrap();
    let answered: usize = (0..500).map(|_| world.hand(frame.clone()).len()).sum();
    assert_eq!(answered, 20);
    assert_eq!(world.drops(DropReason::SarpBudget), 480);
    world.now = world.now + SECOND;
    assert_eq!(world.hand(frame).len(), 1);
}

#[test]
fn a_distributor_without_time_or_repository_says_nothing() {
    let mut world = world();
    let token = world.token();
    let frame = machine(&token, 7).applicant.send(world.now).unwrap();
    world.trust = ClockTrust::Wrong;
    assert!(world.hand(frame.clone()).is_empty());
    assert_eq!(world.drops(DropReason::SarpNoClock), 1);
    (world.trust, world.records.fails) = (ClockTrust::Plausible, true);
    assert!(world.hand(frame).is_empty());
}

#[test]
fn each_try_goes_to_the_next_distributor() {
    let world = world();
    let token = world.token();
    let mut settings = Settings {
        mac: DESK,
        key: token.key(),
        distributors: token.distributors().to_vec(),
        sealing_key: [9; 32],
        request: vec![1],
    };
    let second = identity::token::Place { ip: [10, 0, 0, 8].into(), mac: MacAddress([2, 0, 0, 0, 0, 8]) };
    settings.distributors.push(second);
    let mut applicant = Applicant::new(settings, Generator::from_seed([1; 32]), world.now);
    let mut asked = Vec::new();
    let mut nonces = std::collections::BTreeSet::new();
    for _ in 0..4 {
        let now = applicant.deadline().unwrap();
        let frame = applicant.send(now).unwrap();
        assert!(applicant.send(now).is_none(), "not twice at once");
        asked.push(frame[5]);
        let message = Message::parse(&frame[14..]).unwrap();
        assert_eq!(message.kind, Kind::Apply);
        nonces.insert(Application::parse(message.data).unwrap().question.nonce);
    }
    assert_eq!((asked, nonces.len(), applicant.tries()), (vec![9, 8, 9, 8], 1, 4));
}

#[test]
fn the_largest_application_fits_what_distributors_take() {
    let place = identity::token::Place { ip: [10, 0, 0, 9].into(), mac: KEYS };
    let master = identity::distributor::RequestMaster::from_bytes([1; 32]);
    let name = "n".repeat(authority::limits::MAX_NAME_LEN);
    let token = Token::new(&master, 1, b"authority", &name, &[place]);
    let addresses = (1..=16).map(|last| [10, 0, 0, last].into()).collect::<Vec<_>>();
    let applying = Applying::begin(&token, DESK, &addresses, &mut random(7)).unwrap();
    let settings = Settings {
        mac: DESK,
        key: token.key(),
        distributors: vec![place],
        sealing_key: applying.sealing_key(),
        request: applying.request().to_vec(),
    };
    let mut applicant = Applicant::new(settings, Generator::from_seed([1; 32]), Instant::from_millis(1));
    let frame = applicant.send(Instant::from_millis(1)).unwrap();
    assert!(frame.len() <= sarp::limits::ARP_FRAME_MAX_BYTES, "{} bytes", frame.len());
}
