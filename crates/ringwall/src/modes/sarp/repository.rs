//! Where a distributor looks the site's keys up (the AKD of the S-ARP paper).

use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use authority::repository::enrolment::{self, Answer, Applicant};
use authority::repository::etcd::Access;
use authority::repository::{EtcdStore, Holder, HostEntry, SqliteStore, Standing, Store, StoreError};
use identity::certificate::Role;
use sarp::akd::{Binding, Grant, HostLookup, Lookup, Member, Outcome, RecordKey, Records};
use system::clock::Clock;
use wire::MacAddress;
use wire::sarp::data::Refusal;
use wire::sarp::enrolment::{Application, State};

use super::config::{Akd, Keeper};
use crate::failure::Failure;

/// How soon after a failure was told another one is, so that a repository that comes and goes does
/// not fill the log.
const QUIET: Duration = Duration::from_secs(10);

/// How often a distributor looks whether the site still stands by it.
const STANDING_CHECKED: Duration = Duration::from_secs(5);

/// What a distributor wants of its repository. A disk that is full refuses the one and allows the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Read,
    Write,
}

impl Purpose {
    fn failing(self) -> &'static str {
        match self {
            Purpose::Read => "the repository cannot be read, so hosts have to ask another distributor",
            Purpose::Write => {
                "the repository cannot be changed, so new keys and leases are left to another distributor"
            }
        }
    }

    fn working(self) -> &'static str {
        match self {
            Purpose::Read => "the repository can be read again",
            Purpose::Write => "the repository can be changed again",
        }
    }
}

/// What the log knows of a trouble.
#[derive(Debug, Default)]
struct Told {
    began_at: Option<Instant>,
    is_over: bool,
}

/// What an outcome is worth saying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    None,
    Fails,
    Works,
}

impl Told {
    fn note(&mut self, fails: bool) -> News {
        let is_told = self.began_at.is_some() && !self.is_over;
        match (fails, is_told) {
            (true, false) if self.began_at.is_none_or(|began_at| began_at.elapsed() >= QUIET) => {
                (self.began_at, self.is_over) = (Some(Instant::now()), false);
                News::Fails
            }
            (false, true) => {
                self.is_over = true;
                News::Works
            }
            _ => News::None,
        }
    }
}

#[derive(Debug, Default)]
struct Trouble {
    reading: Told,
    writing: Told,
}

/// The site's repository as a distributor asks it.
pub(crate) struct Repository {
    store: Box<dyn Store>,
    /// Whether it is on this machine, so that a look into it takes no time.
    is_at_hand: bool,
    clock: Mutex<Clock>,
    trouble: Mutex<Trouble>,
    /// The distributor's own number in it.
    own: u64,
    own_standing: Mutex<OwnStanding>,
}

/// Whether the site stands by this distributor, when that was last looked at.
#[derive(Debug)]
struct OwnStanding {
    checked_at: Option<Instant>,
    is_good: bool,
}

impl Default for OwnStanding {
    fn default() -> Self {
        OwnStanding { checked_at: None, is_good: true }
    }
}

impl Repository {
    /// The repository of `site`, of which `own` is the number of this distributor.
    pub(crate) fn open(section: &Akd, site: &str, own: u64, clock: Clock) -> Result<Repository, Failure> {
        let repository = match section.keeper() {
            Keeper::File(file) => {
                Repository::new(Box::new(SqliteStore::open(file).map_err(Failure::new)?), true, clock)
            }
            Keeper::Cluster(access) => Repository::new(Box::new(reach(&access, site)?), false, clock),
        };
        Ok(Repository { own, ..repository })
    }

    fn new(store: Box<dyn Store>, is_at_hand: bool, clock: Clock) -> Repository {
        let (trouble, own_standing) = (Mutex::default(), Mutex::default());
        Repository { store, is_at_hand, clock: Mutex::new(clock), trouble, own: 0, own_standing }
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the repository, and tells the log when it begins to fail and when it serves again.
    fn ask<T>(
        &self,
        purpose: Purpose,
        question: impl FnOnce(&dyn Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let outcome = question(&*self.store);
        // What is wrong with what was asked says nothing about the repository; what is wrong with
        // that names its place.
        let failure = outcome.as_ref().err().filter(|error| matches!(error, StoreError::In(..)));
        let mut trouble = self.trouble();
        let told = if purpose == Purpose::Read { &mut trouble.reading } else { &mut trouble.writing };
        match (told.note(failure.is_some()), failure) {
            (News::Fails, Some(error)) => tracing::error!("{}: {error}", purpose.failing()),
            (News::Works, _) => tracing::info!("{}", purpose.working()),
            _ => {}
        }
        drop(trouble);
        outcome
    }

    /// Looks whether the site still stands by this distributor. One that is not in the repository
    /// was entered before its hosts had numbers there; a repository that cannot be read says
    /// nothing.
    fn look_at_own_standing(&self, standing: &mut OwnStanding) {
        standing.checked_at = Some(Instant::now());
        let Ok(Some(entry)) = self.ask(Purpose::Read, |store| store.by_number(self.own)) else { return };
        let is_good = is_good(entry.standing, entry.not_after_unix, self.unix_s());
        match (standing.is_good, is_good) {
            (true, false) => {
                tracing::error!(
                    "this distributor was revoked or its time is over: it answers nobody; end it with `host release`"
                );
            }
            (false, true) => tracing::info!("this distributor belongs to the site again and answers"),
            _ => {}
        }
        standing.is_good = is_good;
    }

    /// The time, if the clock is believable.
    fn unix_s(&self) -> Option<u64> {
        let now = self.clock.lock().unwrap_or_else(PoisonError::into_inner).now();
        now.trusted_unix_ms().map(|unix_ms| unix_ms / 1000)
    }
}

/// Whether a host belongs to the site at `unix_s`. Without a believable clock nobody can say that
/// its time is over.
fn is_good(standing: Standing, not_after_unix: u64, unix_s: Option<u64>) -> bool {
    standing == Standing::Good && unix_s.is_none_or(|unix_s| unix_s <= not_after_unix)
}

/// What is said of an address with this holder.
fn lookup(holder: Option<Holder>, unix_s: Option<u64>) -> Lookup {
    match holder {
        Some(holder) if is_good(holder.standing, holder.not_after_unix, unix_s) => {
            Lookup::Good { algorithm: holder.algorithm, key: holder.key.to_vec(), mac: holder.mac }
        }
        Some(_) => Lookup::Invalid,
        None => Lookup::NotFound,
    }
}

/// What becomes of an address that could not be given or taken.
fn not_bound(error: &StoreError) -> Binding {
    match error.reason() {
        StoreError::NotGood(_) => Binding::Refused(Refusal::NotGood),
        StoreError::OutsideSubnets { .. } | StoreError::BadNames(_) => Binding::Refused(Refusal::OutsideSubnets),
        StoreError::AddressTaken { .. } => Binding::Refused(Refusal::Taken),
        _ => Binding::Failed,
    }
}

/// A cluster that cannot be reached yet may be later; one that holds no repository of this site is
/// the wrong one.
fn reach(access: &Access, site: &str) -> Result<EtcdStore, Failure> {
    let store = EtcdStore::new(access, site).map_err(Failure::new)?;
    match store.probe() {
        Err(error) if matches!(error.reason(), StoreError::Unreachable(_)) => {
            tracing::warn!("hosts get no answer until the repository is there: {error}");
            Ok(store)
        }
        outcome => outcome.map(|()| store).map_err(Failure::new),
    }
}

impl Records for Repository {
    fn find(&self, ip: Ipv4Addr) -> Lookup {
        self.find_all(&[ip]).pop().unwrap_or(Lookup::Failed)
    }

    fn find_all(&self, ips: &[Ipv4Addr]) -> Vec<Lookup> {
        if ips.is_empty() {
            return Vec::new();
        }
        let unix_s = self.unix_s();
        match self.ask(Purpose::Read, |store| store.holders(ips)) {
            Ok(holders) => holders.into_iter().map(|holder| lookup(holder, unix_s)).collect(),
            Err(_) => vec![Lookup::Failed; ips.len()],
        }
    }

    fn is_at_hand(&self) -> bool {
        self.is_at_hand
    }

    fn may_answer(&self, may_wait: bool) -> bool {
        let mut standing = self.own_standing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = standing.checked_at.is_none_or(|at| at.elapsed() >= STANDING_CHECKED);
        if is_due && (may_wait || self.is_at_hand) {
            self.look_at_own_standing(&mut standing);
        }
        standing.is_good
    }

    fn replace(&self, ip: Ipv4Addr, old: &[u8], new: RecordKey<'_>) -> bool {
        let replace = |store: &dyn Store| store.replace_key(ip, old, new.algorithm, new.key);
        self.ask(Purpose::Write, replace).unwrap_or(false)
    }

    fn host(&self, number: u64) -> HostLookup {
        match self.ask(Purpose::Read, |store| store.by_number(number)) {
            Ok(Some(entry)) if is_good(entry.standing, entry.not_after_unix, self.unix_s()) => {
                let HostEntry { algorithm, key, mac, role, .. } = entry;
                HostLookup::Good(Member { algorithm, key, mac, serves_dhcp: role == Role::DhcpServer })
            }
            Ok(_) => HostLookup::NotGood,
            Err(_) => HostLookup::Failed,
        }
    }

    fn lease(&self, grant: &Grant) -> Binding {
        let Grant { host, ip, time, only_if_held } = *grant;
        let Some(now_unix_s) = self.unix_s() else { return Binding::Failed };
        let until_unix_s = time.map_or(u64::MAX, |time| now_unix_s.saturating_add(time.as_secs()));
        let lease = |store: &dyn Store| {
            if only_if_held && !store.by_number(host)?.is_some_and(|entry| entry.addresses.contains(&ip)) {
                return Ok(Binding::Refused(Refusal::NotHeld));
            }
            store.lease(host, ip, until_unix_s, now_unix_s).map(|()| Binding::Done)
        };
        self.ask(Purpose::Write, lease).unwrap_or_else(|error| not_bound(&error))
    }

    /// Only what was given is taken back, never what a certificate names.
    fn unbind(&self, host: u64, ip: Ipv4Addr) -> Binding {
        let unbind = |store: &dyn Store| match store.by_number(host)? {
            Some(entry) if entry.subnets.iter().any(|subnet| subnet.contains(ip)) => store.unbind(host, ip),
            _ => Ok(false),
        };
        match self.ask(Purpose::Write, unbind) {
            Ok(true) => Binding::Done,
            Ok(false) => Binding::Refused(Refusal::NotHeld),
            Err(error) => not_bound(&error),
        }
    }

    fn apply(&self, application: &Application<'_>, mac: MacAddress) -> Option<Outcome> {
        let Application { question, sealing_key, request } = *application;
        let asked_unix_s = self.unix_s()?;
        let applicant = Applicant { mac, sealing_key, request: request.to_vec(), asked_unix_s };
        let apply = |store: &dyn Store| enrolment::apply(store, question.host, &applicant, asked_unix_s);
        self.ask(Purpose::Write, apply).ok().map(outcome)
    }

    fn fetch(&self, token: u64) -> Option<Outcome> {
        let now_unix_s = self.unix_s()?;
        self.ask(Purpose::Read, |store| enrolment::ask(store, token, now_unix_s)).ok().map(outcome)
    }

    fn close(&self, token: u64) -> Option<Outcome> {
        let now_unix_s = self.unix_s()?;
        self.ask(Purpose::Write, |store| enrolment::close(store, token, now_unix_s)).ok().map(outcome)
    }
}

/// What a host that enrols is told.
fn outcome(answer: Answer) -> Outcome {
    let state = match answer {
        Answer::Approved(sealed) => return Outcome { state: State::Approved, sealed },
        Answer::Waiting => State::Waiting,
        Answer::Refused => State::Refused,
        Answer::Fetched => State::Fetched,
        Answer::NotOpen => State::NotOpen,
        Answer::NotApplied => State::NotApplied,
        Answer::OtherKey => State::OtherKey,
        Answer::OtherMac => State::OtherMac,
        Answer::BadRequest => State::BadRequest,
    };
    state.into()
}

#[cfg(test)]
mod tests {
    use authority::directory::Sharing;
    use authority::repository::{Enrolment, NewHost};

    use super::*;

    /// A repository that answers everything with this error.
    struct Away(StoreError);

    impl Away {
        fn answer<T>(&self) -> Result<T, StoreError> {
            Err(self.0.clone())
        }
    }

    impl Store for Away {
        fn add(&self, _: &NewHost, _: Sharing, _: u64) -> Result<u64, StoreError> {
            self.answer()
        }
        fn find(&self, _: Ipv4Addr) -> Result<Option<HostEntry>, StoreError> {
            self.answer()
        }
        fn by_name(&self, _: &str) -> Result<Option<HostEntry>, StoreError> {
            self.answer()
        }
        fn by_number(&self, _: u64) -> Result<Option<HostEntry>, StoreError> {
            self.answer()
        }
        fn list(&self) -> Result<Vec<HostEntry>, StoreError> {
            self.answer()
        }
        fn replace_key(&self, _: Ipv4Addr, _: &[u8], _: u8, _: &[u8]) -> Result<bool, StoreError> {
            self.answer()
        }
        fn rekey(&self, _: &str, _: u8, _: &[u8]) -> Result<bool, StoreError> {
            self.answer()
        }
        fn revoke(&self, _: &str) -> Result<bool, StoreError> {
            self.answer()
        }
        fn bind(&self, _: u64, _: Ipv4Addr, _: u64) -> Result<(), StoreError> {
            self.answer()
        }
        fn lease(&self, _: u64, _: Ipv4Addr, _: u64, _: u64) -> Result<(), StoreError> {
            self.answer()
        }
        fn unbind(&self, _: u64, _: Ipv4Addr) -> Result<bool, StoreError> {
            self.answer()
        }
        fn enrolments(&self) -> Result<Vec<Enrolment>, StoreError> {
            self.answer()
        }
        fn enrolment(&self, _: u64) -> Result<Option<Enrolment>, StoreError> {
            self.answer()
        }
        fn change_enrolment(&self, _: Option<&Enrolment>, _: Option<&Enrolment>) -> Result<bool, StoreError> {
            self.answer()
        }
    }

    /// Broke `note` by not looking whether the trouble was told: each question was a line.
    #[test]
    fn a_trouble_is_told_when_it_begins_and_when_it_is_over() {
        let mut told = Told::default();
        let news = [false, true, true, false, false, true, true, false].map(|fails| told.note(fails));
        let [calm, begun, over] = [News::None, News::Fails, News::Works];
        // It failed again within moments: nothing of that is told.
        assert_eq!(news, [calm, begun, calm, over, calm, calm, calm, calm]);
        told.began_at = Instant::now().checked_sub(QUIET);
        assert_eq!([true, true, false].map(|fails| told.note(fails)), [begun, calm, over]);
    }

    /// Broke `may_answer` by never looking: the revoked distributor went on.
    #[test]
    fn a_distributor_that_was_revoked_answers_nobody() {
        let place = tempfile::tempdir().expect("a directory");
        let store = SqliteStore::create(&place.path().join("hosts.db")).expect("created");
        let host = NewHost {
            name: "k".to_owned(),
            role: Role::Distributor,
            mac: None,
            addresses: vec![Ipv4Addr::new(10, 0, 0, 9)],
            algorithm: 1,
            key: vec![1; 32],
            not_before_unix: 0,
            not_after_unix: 4_000_000_000,
            subnets: Vec::new(),
        };
        let own = store.add(&host, Sharing::Refused, 1_800_000_000).expect("added");
        let records = Repository { own, ..Repository::new(Box::new(store), true, Clock::new()) };
        assert!(records.may_answer(false));
        records.store.revoke("k").expect("revoked");
        // As if the time until the next look were over.
        records.own_standing.lock().expect("unused").checked_at = None;
        assert!(!records.may_answer(false));
        let known = Lookup::Invalid;
        assert_eq!(
            records.find(Ipv4Addr::new(10, 0, 0, 9)),
            known,
            "what it answers from goes on for the start to read"
        );
    }

    /// Broke `ask` by taking every error for a trouble: what one host asked in vain was told as the
    /// repository's.
    #[test]
    fn what_a_host_may_not_have_is_no_trouble_of_the_repository() {
        let store = Box::new(Away(StoreError::NotGood(7)));
        let records = Repository::new(store, true, Clock::new());
        assert_eq!(records.unbind(7, Ipv4Addr::new(10, 0, 0, 1)), Binding::Refused(Refusal::NotGood));
        assert!(records.trouble().writing.began_at.is_none());
    }
}
