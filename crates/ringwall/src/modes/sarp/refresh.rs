//! The key that this host signs ARP with, and its change for another one from time to time (S-ARP
//! paper, section 3.2).
//!
//! The configuration below /etc is never written by the daemon, so what it makes itself lies in the
//! state directory. A new key is on disk before a distributor hears of it, and both keys stay there
//! until one has said which counts. After a crash at any point the host asks for the same change
//! again: a distributor that has entered the new key already says so (docs/s-arp.md, section 6).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use authority::files;
use bump::Instant;
use identity::certificate::Role;
use identity::own_keys::{OwnKey, OwnKeys};
use identity::signing::SigningKey;
use identity::{HostIdentity, KeyError, Profile};

use crate::failure::Failure;
use crate::modes::file::Config;
use crate::monitor::{Disk, Home, Kept};

/// How long a change that was refused, or could not begin, is left alone.
const RETRY: Duration = Duration::from_secs(10 * 60);

/// The host's own key.
pub(super) struct Refresh {
    identity: Arc<HostIdentity>,
    disk: Disk,
    file: PathBuf,
    every: Option<Duration>,
    keys: OwnKeys,
    /// Nothing is begun before this.
    not_before: Instant,
}

/// How it stands with the host's own key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnKeyStanding {
    /// How old it is, by the S-ARP clock.
    pub(super) age: Option<Duration>,
    /// When the host changes it, if it does by itself.
    pub(super) changes_in: Option<Duration>,
    /// Whether the distributors are being asked to take another one.
    pub(super) is_changing: bool,
}

impl Refresh {
    /// Reads the keys that this host made for itself, if it has.
    pub(super) fn open(config: &Config, identity: &Arc<HostIdentity>, disk: &Disk) -> Result<Refresh, Failure> {
        let every = config.sarp.refresh_key_every();
        let role = identity.certificate().role();
        if every.is_some() && matches!(role, Role::Distributor | Role::DhcpServer) {
            let what = format!("sarp.refresh_key_every with the role {role}, whose key is in others' identities");
            return Err(Failure::file(&config.host.identity, what, "remove it, and renew this host by `site issue`"));
        }
        if every.is_some() && identity.profile() == Profile::Paper {
            let what = "sarp.refresh_key_every with an identity of the paper profile, whose key the authority made";
            return Err(Failure::file(&config.host.identity, what, "remove it, and renew this host by `site issue`"));
        }
        let file = Home::new(&config.host.state_dir, &config.host.interface).path(&Kept::OwnKeys);
        let mut keys = OwnKeys::default();
        if file.exists() {
            let remedy =
                "restore it, or remove it and have the manager give this host another key (`ringwall site rekey`)";
            let text = files::read(&file)?;
            let read = OwnKeys::from_pem(&text, identity.certificate());
            keys = read.map_err(|error| Failure::file(&file, error, remedy))?;
        }
        let (identity, disk) = (Arc::clone(identity), disk.clone());
        Ok(Refresh { identity, disk, file, every, keys, not_before: Instant::default() })
    }

    /// What counts, as far as this host knows.
    pub(super) fn signing_key(&self) -> Result<Arc<SigningKey>, Failure> {
        match &self.keys.current {
            Some(key) => key.signing_key().map(Arc::new).map_err(|error| self.unusable(&error)),
            None => Ok(self.identity.record_signing_key()),
        }
    }

    fn unusable(&self, error: &KeyError) -> Failure {
        Failure::file(&self.file, error, "have the manager give this host another key (`ringwall site rekey`)")
    }

    /// Does what is to be done about the key; what is returned is to be entered at the
    /// distributors.
    pub(super) fn step(&mut self, report: &sarp::Report, now: Instant) -> Option<Arc<SigningKey>> {
        if self.keys.next.as_ref().is_some_and(|next| next.is(&report.own_key)) {
            self.keys.advance();
            // Else both keys stay on disk, and the next start asks once more.
            self.save();
        }
        let clock_unix_s = u64::from(report.clock_unix_s?);
        if report.key_is_changing || now < self.not_before {
            return None;
        }
        if self.keys.next.is_none() && !self.make_next(clock_unix_s) {
            return None;
        }
        self.not_before = now + RETRY;
        self.keys.next.as_ref()?.signing_key().map(Arc::new).ok()
    }

    /// How old the key is and when it is changed, for `status`. Both are unknown while the S-ARP
    /// clock is not set.
    pub(super) fn standing(&self, report: &sarp::Report, now: Instant) -> OwnKeyStanding {
        let age = report.clock_unix_s.map(|clock_unix_s| self.age(u64::from(clock_unix_s)));
        // What was refused waits longer than its age says.
        let left = |every: Duration, age| every.saturating_sub(age).max(self.not_before.since(now));
        let changes_in = self.every.zip(age).map(|(every, age)| left(every, age));
        OwnKeyStanding { age, changes_in, is_changing: report.key_is_changing }
    }

    /// The age of the key that counts; that of the certificate is as old as the certificate.
    fn age(&self, clock_unix_s: u64) -> Duration {
        let certificate = self.identity.certificate();
        let made_unix_s = self.keys.current.as_ref().map_or(certificate.not_before_unix(), OwnKey::made_unix_s);
        Duration::from_secs(clock_unix_s.saturating_sub(made_unix_s))
    }

    /// Makes another key if it is time; false if it is not, or if it cannot be kept.
    fn make_next(&mut self, clock_unix_s: u64) -> bool {
        let age = self.age(clock_unix_s);
        if self.every.is_none_or(|every| age < every) {
            return false;
        }
        let made = system::random::seed().ok().and_then(|seed| OwnKey::from_seed(&seed, clock_unix_s).ok());
        self.keys.next = made;
        let is_kept = self.keys.next.is_some() && self.save();
        if !is_kept {
            self.keys.next = None;
        }
        is_kept
    }

    fn save(&self) -> bool {
        let text = self.keys.to_pem(self.identity.certificate());
        let written = self.disk.write(&Kept::OwnKeys, &text);
        if let Err(error) = &written {
            tracing::error!("this host's new key cannot be kept, so the old one stays: {error}");
        }
        written.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use authority::{Request, Site};

    use super::*;

    const MADE_UNIX_S: u64 = 1_800_000_000;
    const DAY_S: u64 = 86_400;

    fn identity(seed: u8) -> Arc<HostIdentity> {
        let mut next = seed;
        let mut random = |bytes: &mut [u8]| {
            next = next.wrapping_add(1);
            bytes.fill(next);
        };
        let site = Site::create("lab", &mut random, MADE_UNIX_S).expect("site");
        let request = Request::new("a", wire::MacAddress([2, 0, 0, 0, 0, 1]), vec![[10, 0, 0, 1].into()]);
        let text = site.issue_identity(&request.expect("request"), &mut random, MADE_UNIX_S).expect("issued");
        Arc::new(HostIdentity::from_pem(&text).expect("identity"))
    }

    fn open(place: &Path, identity: &Arc<HostIdentity>) -> Refresh {
        let state_dir = place.display();
        let text = format!(
            "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\nstate_dir = \"{state_dir}\"\n[sarp]\nrefresh_key_every = \"30d\"\n"
        );
        let file = place.join("host.toml");
        fs::write(&file, text).expect("written");
        Refresh::open(&Config::load(&file).expect("valid"), identity, &Disk::of_interface(place, "eth0"))
            .expect("opened")
    }

    fn public(key: &SigningKey) -> Vec<u8> {
        key.record_key().expect("Ed25519").1.to_vec()
    }

    /// What the data path says `days` after the certificate was made.
    fn report(key: &SigningKey, days: u64, key_is_changing: bool) -> sarp::Report {
        sarp::Report {
            clock_unix_s: u32::try_from(MADE_UNIX_S + days * DAY_S).ok(),
            open_requests: 0,
            distributors_silent: false,
            preferred_distributor: 0,
            own_key: public(key),
            key_is_changing,
            signatures: 0,
            verifications: 0,
            keys: vec![],
            leases: vec![],
        }
    }

    fn at(minutes: u64) -> Instant {
        Instant::from_millis(minutes * 60_000)
    }

    #[test]
    fn a_key_is_changed_when_it_is_old_and_the_file_always_has_both() {
        let place = tempfile::tempdir().expect("directory");
        let (identity, file) = (identity(1), place.path().join("eth0.keys.pem"));
        let mut refresh = open(place.path(), &identity);
        let first = identity.signing_key();
        assert!(refresh.step(&report(&first, 29, false), at(0)).is_none() && !file.exists());
        let without_time = sarp::Report { clock_unix_s: None, ..report(&first, 31, false) };
        assert!(refresh.step(&without_time, at(0)).is_none());
        let second = refresh.step(&report(&first, 30, false), at(0)).expect("it is time");
        assert_eq!(fs::metadata(&file).expect("kept").permissions().mode() & 0o777, 0o600);

        // A crash here: the same change is asked for again, and until then the old key signs.
        let mut refresh = open(place.path(), &identity);
        assert_eq!(public(&refresh.signing_key().expect("a key")), public(&first));
        let again = refresh.step(&report(&first, 30, false), at(0)).expect("asked again");
        assert_eq!(public(&again), public(&second));
        assert!(refresh.step(&report(&first, 30, true), at(1)).is_none(), "it is under way");
        // Refused: both stay, and it is tried again later.
        assert!(refresh.step(&report(&first, 30, false), at(9)).is_none());
        let later = refresh.step(&report(&first, 30, false), at(10)).expect("once more");
        assert_eq!(public(&later), public(&second));
        // Taken.
        assert!(refresh.step(&report(&second, 30, false), at(11)).is_none());
        let mut refresh = open(place.path(), &identity);
        assert_eq!(public(&refresh.signing_key().expect("a key")), public(&second));
        assert!(refresh.step(&report(&second, 59, false), at(0)).is_none(), "it is young");
        assert!(refresh.step(&report(&second, 60, false), at(0)).is_some());
    }

    /// Broke `age` by taking the certificate's always, and `standing` by leaving out that a refused
    /// change waits.
    #[test]
    fn age_and_next_change_are_those_of_the_key_that_counts() {
        let place = tempfile::tempdir().expect("directory");
        let identity = identity(1);
        let days = |days: u64| Some(Duration::from_secs(days * DAY_S));
        // A certificate begins a little before it is made, for clocks that are behind.
        let head_start = Duration::from_secs(MADE_UNIX_S - identity.certificate().not_before_unix());
        let older = |days: Option<Duration>| Some(days? + head_start);
        let sooner = |days: Option<Duration>| Some(days? - head_start);
        let mut refresh = open(place.path(), &identity);
        let first = identity.signing_key();
        let said = |refresh: &Refresh, report: &sarp::Report, now| {
            let OwnKeyStanding { age, changes_in, is_changing } = refresh.standing(report, now);
            (age, changes_in, is_changing)
        };
        assert_eq!(said(&refresh, &report(&first, 12, false), at(0)), (older(days(12)), sooner(days(18)), false));
        let without_time = sarp::Report { clock_unix_s: None, ..report(&first, 12, false) };
        assert_eq!(said(&refresh, &without_time, at(0)), (None, None, false));

        let second = refresh.step(&report(&first, 31, false), at(0)).expect("it is time");
        assert_eq!(said(&refresh, &report(&first, 31, true), at(0)), (older(days(31)), Some(RETRY), true));
        assert_eq!(said(&refresh, &report(&first, 31, false), at(4)), (older(days(31)), Some(RETRY * 6 / 10), false));
        assert!(refresh.step(&report(&second, 31, false), at(5)).is_none(), "taken");
        assert_eq!(said(&refresh, &report(&second, 33, false), at(20)), (days(2), days(28), false));

        refresh.every = None;
        assert_eq!(said(&refresh, &report(&second, 33, false), at(20)), (days(2), None, false));
    }

    #[test]
    fn another_certificate_begins_with_its_own_key() {
        let place = tempfile::tempdir().expect("directory");
        let (old, new) = (identity(1), identity(100));
        open(place.path(), &old).step(&report(&old.signing_key(), 30, false), at(0)).expect("changed");
        let refresh = open(place.path(), &new);
        assert_eq!(public(&refresh.signing_key().expect("a key")), public(&new.signing_key()));
        assert!(refresh.keys.next.is_none());
    }

    #[test]
    fn what_cannot_be_kept_is_not_asked_for() {
        let place = tempfile::tempdir().expect("directory");
        let identity = identity(1);
        let mut refresh = open(place.path(), &identity);
        refresh.disk = Disk::of_interface(&place.path().join("missing"), "eth0");
        assert!(refresh.step(&report(&identity.signing_key(), 30, false), at(0)).is_none());
        assert!(refresh.keys.next.is_none());
        fs::write(place.path().join("eth0.keys.pem"), "nonsense").expect("written");
        let config = Config::load(&place.path().join("host.toml")).expect("valid");
        let line = Refresh::open(&config, &identity, &refresh.disk).map(drop).expect_err("damaged").to_string();
        assert!(line.contains("eth0.keys.pem: ") && line.contains("site rekey") && !line.contains('\n'), "{line}");
    }
}
