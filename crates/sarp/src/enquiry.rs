//! What this host has asked distributors: only an answer to one of these moves the clock or the ring (section 3.5.1).

use std::net::Ipv4Addr;

use bump::Instant;
use identity::shared_keys::IN_FORCE_MAX;
use wire::sarp::Kind;
use wire::sarp::data::NONCE_LEN;

use crate::limits::{ENQUIRIES_MAX, ENQUIRIES_RESERVED, ENQUIRY_REPEAT, ENQUIRY_TRIES, LEASE_ENQUIRIES_MAX};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The time.
    Time,
    /// The key of this address.
    Key(Ipv4Addr),
    /// That our own key be replaced.
    Change,
    /// A DHCP client and its address: the question with this number.
    Lease(u64),
}

impl About {
    /// Whose key it is.
    pub(crate) fn address(self) -> Option<Ipv4Addr> {
        match self {
            About::Time | About::Change | About::Lease(_) => None,
            About::Key(ip) => Some(ip),
        }
    }

    /// Whether `kind` answers this.
    pub(crate) fn is_answered_by(self, kind: Kind) -> bool {
        match self {
            About::Time => kind == Kind::TimeReply,
            About::Change => matches!(kind, Kind::KeyChanged | Kind::KeyNotFound | Kind::KeyInvalid),
            About::Lease(_) => matches!(kind, Kind::LeaseAgreed | Kind::LeaseRefused),
            About::Key(_) => matches!(kind, Kind::KeyReply | Kind::KeyNotFound | Kind::KeyInvalid),
        }
    }
}

/// An open request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enquiry {
    pub(crate) about: About,
    pub(crate) nonce: [u8; NONCE_LEN],
    tries: u32,
    next_try: Instant,
}

/// A request to be sent, to the distributor with this place in the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) about: About,
    pub(crate) nonce: [u8; NONCE_LEN],
    pub(crate) distributor: usize,
    /// How often each distributor was asked before: one that is silent may know another of our keys.
    pub(crate) round: usize,
}

/// All open requests.
#[derive(Debug, Default)]
pub(crate) struct Enquiries {
    open: Vec<Enquiry>,
    /// The distributor that answered last is asked first.
    preferred: usize,
}

impl Enquiries {
    pub(crate) fn is_open(&self, about: About) -> bool {
        self.open.iter().any(|enquiry| enquiry.about == about)
    }

    /// Opens a request, to be sent at once; false when too many are open.
    pub(crate) fn begin(&mut self, now: Instant, about: About, nonce: [u8; NONCE_LEN]) -> bool {
        let (most, counted) = match about {
            About::Key(_) => (ENQUIRIES_MAX - ENQUIRIES_RESERVED, self.open.len()),
            About::Lease(_) => (LEASE_ENQUIRIES_MAX, self.open.iter().filter(|one| is_about_lease(one)).count()),
            About::Time | About::Change => (ENQUIRIES_MAX, self.open.len()),
        };
        if counted >= most || self.open.len() >= ENQUIRIES_MAX {
            return false;
        }
        self.open.push(Enquiry { about, nonce, tries: 0, next_try: now });
        true
    }

    /// The next request to send. Each try goes to another of `distributors`.
    pub(crate) fn due(&mut self, now: Instant, distributors: usize) -> Option<Due> {
        let preferred = self.preferred;
        let enquiry = self.open.iter_mut().find(|one| one.next_try <= now && one.tries < ENQUIRY_TRIES)?;
        let (tries, distributors) = (enquiry.tries as usize, distributors.max(1));
        let distributor = (preferred + tries) % distributors;
        // Where there are many, half of them hear one key and half the other.
        let round = tries / distributors.min(ENQUIRY_TRIES as usize / IN_FORCE_MAX);
        enquiry.tries += 1;
        enquiry.next_try = now + ENQUIRY_REPEAT;
        Some(Due { about: enquiry.about, nonce: enquiry.nonce, distributor, round })
    }

    /// Takes out a request that nobody answered.
    pub(crate) fn given_up(&mut self, now: Instant) -> Option<About> {
        let at = self.open.iter().position(|one| one.next_try <= now && one.tries >= ENQUIRY_TRIES)?;
        Some(self.open.swap_remove(at).about)
    }

    pub(crate) fn find(&self, nonce: &[u8; NONCE_LEN]) -> Option<&Enquiry> {
        self.open.iter().find(|enquiry| enquiry.nonce == *nonce)
    }

    /// Takes out the request that `distributor` answered.
    pub(crate) fn close(&mut self, nonce: &[u8; NONCE_LEN], distributor: Option<usize>) -> Option<Enquiry> {
        let at = self.open.iter().position(|enquiry| enquiry.nonce == *nonce)?;
        self.preferred = distributor.unwrap_or(self.preferred);
        Some(self.open.swap_remove(at))
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(|enquiry| enquiry.next_try).min()
    }

    /// The place in the list of the distributor that is asked first.
    pub(crate) fn preferred(&self) -> usize {
        self.preferred
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}

fn is_about_lease(enquiry: &Enquiry) -> bool {
    matches!(enquiry.about, About::Lease(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_go_round_the_distributors_and_end() {
        let mut enquiries = Enquiries::default();
        let mut now = Instant::from_millis(1);
        let about = About::Key(Ipv4Addr::new(10, 0, 0, 1));
        assert!(enquiries.begin(now, about, [1; NONCE_LEN]) && enquiries.is_open(about));
        let mut asked = Vec::new();
        while enquiries.len() > 0 {
            asked.extend(enquiries.due(now, 3).map(|due| due.distributor));
            assert!(enquiries.due(now, 3).is_none(), "not twice at once");
            now = enquiries.deadline().expect("it is open");
            if let Some(given_up) = enquiries.given_up(now) {
                assert_eq!(given_up, about);
            }
        }
        assert_eq!(asked, [0, 1, 2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn who_answered_is_asked_first() {
        let mut enquiries = Enquiries::default();
        let now = Instant::from_millis(1);
        enquiries.begin(now, About::Time, [1; NONCE_LEN]);
        assert!(enquiries.close(&[2; NONCE_LEN], Some(1)).is_none());
        assert!(enquiries.close(&[1; NONCE_LEN], Some(2)).is_some());
        enquiries.begin(now, About::Time, [3; NONCE_LEN]);
        assert_eq!(enquiries.due(now, 3).map(|due| due.distributor), Some(2));
    }
}
