//! What the first checks of requests are made with (record 0048): a key for each host, by its number, made when the host is first
//! named and kept, so that a forged request buys no more than one such key for each number that there can be.

use identity::distributor::{CheckKey, RequestMaster};
use identity::limits::MAX_HOST_NUMBER;
use shield::limits::KERNEL_HOST_NUMBER_MAX;
use shield::sarp::Outpost;

/// Places for all numbers, of seventeen bytes.
const PLACES: usize = MAX_HOST_NUMBER as usize + 1;
const _: () = assert!(MAX_HOST_NUMBER == KERNEL_HOST_NUMBER_MAX as u64, "the kernel has room for every host");

/// The keys of checks by hosts' numbers.
pub(super) struct Checks(Vec<Option<CheckKey>>);

impl Checks {
    pub(super) fn new() -> Checks {
        // All at once: what grows leaves copies of keys behind. The kernel gives memory for what is used.
        Checks(Vec::with_capacity(PLACES))
    }

    /// The key of the checks of `host`, of which `outpost` is told when it is made; `None` beyond the highest number.
    pub(super) fn key_of(
        &mut self,
        master: &RequestMaster,
        host: u64,
        outpost: Option<&mut (dyn Outpost + 'static)>,
    ) -> Option<&CheckKey> {
        let place = usize::try_from(host).ok().filter(|place| *place < PLACES)?;
        if place >= self.0.len() {
            self.0.resize(place + 1, None);
        }
        Some(self.0[place].get_or_insert_with(|| {
            let key = master.key_of(host).check_key();
            if let Some(outpost) = outpost {
                outpost.know(host, key.bytes());
            }
            key
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_own_key_and_none_is_beyond_the_highest() {
        let master = RequestMaster::from_bytes([3; 32]);
        let mut checks = Checks::new();
        let room = checks.0.capacity();
        let mut key = |host| checks.key_of(&master, host, None).map(|key| **key.bytes());
        let (last, first) = (key(MAX_HOST_NUMBER), key(1));
        assert_eq!(first, Some(**master.key_of(1).check_key().bytes()));
        assert!(first != last && last.is_some() && key(1) == first);
        assert_eq!([MAX_HOST_NUMBER + 1, 1 << 32, u64::MAX].map(key), [None; 3]);
        assert_eq!(checks.0.capacity(), room, "it never moves");
    }
}
