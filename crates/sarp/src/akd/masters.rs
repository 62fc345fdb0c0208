//! The masters in force (record 0074), and what the first checks of requests are made with (record
//! 0048): keys for each host, by its number, made when the host is first named and kept, so that a
//! forged request buys no more than these for each number that there can be.

use identity::Succession;
use identity::distributor::{CheckKey, RequestKey, RequestMaster};
use identity::limits::MAX_HOST_NUMBER;
use identity::shared_keys::IN_FORCE_MAX;
use identity::token::NumberKey;
use shield::limits::KERNEL_HOST_NUMBER_MAX;
use shield::sarp::{Key, MASTERS_MAX, Outpost};
use wire::sarp::REQUEST_HEAD_LEN;
use wire::sarp::data::CHECK_LEN;

/// Places for all numbers, of a key for each master.
const PLACES: usize = MAX_HOST_NUMBER as usize + 1;
const _: () = assert!(MAX_HOST_NUMBER == KERNEL_HOST_NUMBER_MAX as u64, "the kernel has room for every host");
const _: () = assert!(MASTERS_MAX == IN_FORCE_MAX, "and for every master");

/// A host's keys, in the order of the masters.
type CheckKeys = [Option<CheckKey>; IN_FORCE_MAX];

/// What is in front of a distributor, if anything is.
pub(super) type InFront<'a> = Option<&'a mut (dyn Outpost + 'static)>;

/// One of those in force.
struct InForce {
    master: RequestMaster,
    numbers: NumberKey,
}

/// All masters that this distributor was given, and those of them that count now.
pub(super) struct Masters {
    given: Succession<RequestMaster>,
    in_force: Vec<InForce>,
    /// By hosts' numbers.
    checks: Vec<Option<CheckKeys>>,
}

impl Masters {
    /// All of them are in force until the time is known.
    pub(super) fn new(given: Succession<RequestMaster>) -> Masters {
        // All at once: what grows leaves copies of keys behind. The kernel gives memory for what is used.
        let mut masters = Masters { given, in_force: Vec::new(), checks: Vec::with_capacity(PLACES) };
        masters.settle(0);
        masters
    }

    /// Other ones were given. Those that still count go on.
    pub(super) fn share(&mut self, given: Succession<RequestMaster>, in_front: InFront<'_>) {
        self.given = given;
        self.settle(0);
        self.tell(in_front);
    }

    /// Goes by what counts at `unix_s`.
    pub(super) fn follow(&mut self, unix_s: u64, in_front: InFront<'_>) {
        // Only the older one may be over, so their number says which they are.
        if self.given.accepted(unix_s).count() != self.in_force.len() {
            self.settle(unix_s);
            self.tell(in_front);
        }
    }

    fn settle(&mut self, unix_s: u64) {
        let in_force = |master: &RequestMaster| InForce { master: master.clone(), numbers: NumberKey::of(master) };
        self.in_force = self.given.accepted(unix_s).map(|(_, master)| in_force(master)).collect();
        self.checks.clear();
    }

    fn tell(&self, in_front: InFront<'_>) {
        if let Some(outpost) = in_front {
            let numbers: Vec<Key> = self.in_force.iter().map(|one| one.numbers.bytes().clone()).collect();
            outpost.begin_anew(&numbers);
        }
    }

    /// The key under which `check` is that of a request of `host` which begins with `head`. What is
    /// `in_front` is told of the host's keys when they are made.
    pub(super) fn key_of_check(
        &mut self,
        host: u64,
        head: &[u8; REQUEST_HEAD_LEN],
        check: &[u8; CHECK_LEN],
        in_front: InFront<'_>,
    ) -> Option<RequestKey> {
        let keys = self.check_keys(host, in_front)?;
        let is_right = |key: &Option<CheckKey>| key.as_ref().is_some_and(|key| key.verify(head, check));
        let at = keys.iter().position(is_right)?;
        self.in_force.get(at).map(|one| one.master.key_of(host))
    }

    /// `None` beyond the highest number.
    fn check_keys(&mut self, host: u64, in_front: InFront<'_>) -> Option<&CheckKeys> {
        let place = usize::try_from(host).ok().filter(|place| *place < PLACES)?;
        if place >= self.checks.len() {
            self.checks.resize(place + 1, None);
        }
        let in_force = &self.in_force;
        Some(self.checks[place].get_or_insert_with(|| {
            let key_at = |at: usize| in_force.get(at).map(|one| one.master.key_of(host).check_key());
            let keys: CheckKeys = std::array::from_fn(key_at);
            if let Some(outpost) = in_front {
                let bytes: Vec<Key> = keys.iter().flatten().map(|key| key.bytes().clone()).collect();
                outpost.know(host, &bytes);
            }
            keys
        }))
    }

    /// The key of a host under the master that counts first.
    pub(super) fn key_of(&self, host: u64) -> RequestKey {
        self.in_force.first().map_or(self.given.newest().1, |one| &one.master).key_of(host)
    }

    /// The master under which this is the number of a token.
    pub(super) fn of_number(&self, token: u64) -> Option<&RequestMaster> {
        self.in_force.iter().find(|one| one.numbers.knows(token)).map(|one| &one.master)
    }
}

#[cfg(test)]
mod tests {
    use identity::shared_keys::NO_END;
    use identity::{Generation, Term};

    use super::*;

    const CHANGE: u64 = 1_800_000_000;
    const END: u64 = CHANGE + 100;
    const HEAD: [u8; REQUEST_HEAD_LEN] = [7; REQUEST_HEAD_LEN];

    fn master(seed: u8) -> RequestMaster {
        RequestMaster::from_bytes([seed; 32])
    }

    /// Whether a request of the host is taken that it made under this master.
    fn takes(masters: &mut Masters, seed: u8, host: u64) -> bool {
        let key = master(seed).key_of(host);
        let found = masters.key_of_check(host, &HEAD, &key.check_key().check(&HEAD), None);
        found.is_some_and(|found| found.tag(b"x") == key.tag(b"x"))
    }

    fn two() -> Succession<RequestMaster> {
        let older = Term { until_unix_s: END, ..Term::FIRST };
        let newest = Term { generation: Generation(1), from_unix_s: CHANGE, until_unix_s: NO_END };
        Succession::new(vec![(older, master(3)), (newest, master(4))]).expect("in order")
    }

    #[test]
    fn each_number_has_its_own_key_and_none_is_beyond_the_highest() {
        let mut masters = Masters::new(master(3).into());
        let room = masters.checks.capacity();
        assert!([MAX_HOST_NUMBER, 1, 1].map(|host| takes(&mut masters, 3, host)).iter().all(|taken| *taken));
        let of_other = master(3).key_of(1).check_key().check(&HEAD);
        assert!(masters.key_of_check(2, &HEAD, &of_other, None).is_none());
        assert_eq!([MAX_HOST_NUMBER + 1, 1 << 32, u64::MAX].map(|host| takes(&mut masters, 3, host)), [false; 3]);
        assert_eq!(masters.checks.capacity(), room, "it never moves");
    }

    #[test]
    fn both_masters_count_until_the_older_one_is_over() {
        let mut masters = Masters::new(two());
        let fates = |masters: &mut Masters| [3, 4, 5].map(|seed| takes(masters, seed, 1));
        assert_eq!(fates(&mut masters), [true, true, false], "before the time is known");
        for unix_s in [CHANGE - 1, CHANGE, END] {
            masters.follow(unix_s, None);
            assert_eq!(fates(&mut masters), [true, true, false], "{unix_s}");
        }
        masters.follow(END + 1, None);
        assert_eq!(fates(&mut masters), [false, true, false]);
        let numbers = [3, 4].map(|seed| NumberKey::of(&master(seed)).number([9; 5]));
        assert_eq!(numbers.map(|number| masters.of_number(number).is_some()), [false, true]);
        // A clock that was ahead, and was set.
        masters.follow(CHANGE, None);
        assert_eq!(fates(&mut masters), [true, true, false]);
    }

    #[test]
    fn another_master_counts_as_soon_as_it_is_given() {
        let mut masters = Masters::new(master(3).into());
        assert!(takes(&mut masters, 3, 1) && !takes(&mut masters, 4, 1));
        masters.share(two(), None);
        assert!(takes(&mut masters, 3, 1) && takes(&mut masters, 4, 1));
    }
}
