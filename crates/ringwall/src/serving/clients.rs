//! A thread for each client, and no more of them than may be.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::http::HEAD_BYTES_MAX;
use super::hurried::Hurried;
use super::listener::{Client, Listener, Who};
use super::locked;

/// How long one that is turned away may take to speak, and to hear why.
const REFUSAL_TIME_MAX: Duration = Duration::from_millis(50);

/// So many at one time, and of one address or account a part of them: nobody takes all.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    most_of_one: usize,
    taken: Mutex<BTreeMap<Who, usize>>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// This one has his part of them.
    Share,
    /// All are taken.
    All,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    who: Who,
}

impl Places {
    pub(crate) fn new(most: usize, most_of_one: usize) -> Arc<Places> {
        Arc::new(Places { most, most_of_one, taken: Mutex::default() })
    }

    /// A place for this one.
    ///
    /// # Errors
    /// There is none. Where one may have all of them, nobody has a part.
    pub(crate) fn take(self: &Arc<Places>, who: Who) -> Result<Place, Full> {
        let mut taken = locked(&self.taken);
        let all: usize = taken.values().sum();
        let of_one = taken.get(&who).copied().unwrap_or(0);
        if self.most_of_one < self.most && of_one >= self.most_of_one {
            return Err(Full::Share);
        }
        if all >= self.most {
            return Err(Full::All);
        }
        taken.insert(who, of_one + 1);
        Ok(Place { places: Arc::clone(self), who })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = locked(&self.places.taken);
        if let Some(count) = taken.get_mut(&self.who) {
            *count -= 1;
        }
        taken.retain(|_, count| *count > 0);
    }
}

/// What a door does with those who come.
pub(crate) trait Service: Send + Sync + 'static {
    /// Answers one.
    fn converse(&self, client: Box<dyn Client>, who: Who);

    /// Turns one away for whom there is no place. The next one waits meanwhile, so who has his part
    /// is not waited for: he could come again without an end, and nobody else would get in.
    fn turn_away(&self, client: Box<dyn Client>, full: Full);
}

/// Has each client that comes answered in a thread of its own, without end.
pub(crate) fn serve<S: Service>(listener: &Listener, places: &Arc<Places>, service: &Arc<S>) {
    loop {
        let Ok((client, who)) = listener.accept() else {
            // No descriptor is left, for instance.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let place = match places.take(who) {
            Ok(place) => place,
            Err(full) => {
                service.turn_away(client, full);
                continue;
            }
        };
        let service = Arc::clone(service);
        // Where no thread can be had, the client is closed and its place is free again.
        let _ = std::thread::Builder::new().spawn(move || {
            service.converse(client, who);
            drop(place);
        });
    }
}

/// A client that is turned away, as far as it has spoken: an answer is lost with what was not read.
/// Who has said nothing in that time is told all the same.
pub(crate) fn hear_out(client: Box<dyn Client>) -> Hurried<Box<dyn Client>> {
    let mut client = Hurried::new(client, REFUSAL_TIME_MAX);
    let _ = client.read(&mut [0; HEAD_BYTES_MAX]);
    client.give(REFUSAL_TIME_MAX);
    client
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_account_takes_its_part_and_leaves_the_rest_to_others() {
        let places = Places::new(4, 2);
        let take = |user| places.take(Who::User(user));
        let held = [take(1).expect("one"), take(1).expect("two")];
        assert_eq!(take(1).err(), Some(Full::Share));
        let other = take(2).expect("of another account");
        let last = places.take(Who::Address([127, 0, 0, 1].into())).expect("by another way");
        assert_eq!(take(3).err(), Some(Full::All));
        assert_eq!(take(1).err(), Some(Full::Share), "whether others have the rest or not");
        drop(other);
        assert_eq!(take(1).err(), Some(Full::Share));
        drop(held);
        let again = [take(1).expect("one"), take(1).expect("two")];
        drop((again, last));
        assert!(locked(&places.taken).is_empty(), "nobody is remembered who has no place");
    }

    #[test]
    fn where_one_may_have_all_nobody_has_a_part() {
        let places = Places::new(1, 1);
        let _held = places.take(Who::User(1)).expect("one");
        assert_eq!(places.take(Who::User(1)).err(), Some(Full::All));
    }

    #[test]
    fn who_says_nothing_hears_that_there_is_no_place() {
        use std::io::Write as _;
        let (near, mut far) = std::os::unix::net::UnixStream::pair().expect("a pair");
        hear_out(Box::new(near)).write_all(b"none").expect("there is time left for it");
        let mut heard = String::new();
        far.read_to_string(&mut heard).expect("read");
        assert_eq!(heard, "none");
    }

    proptest! {
        #[test]
        fn there_are_never_more_than_may_be(steps in proptest::collection::vec((0_u32..5, any::<bool>()), 1..200)) {
            let places = Places::new(6, 3);
            let mut held: Vec<Place> = Vec::new();
            for (user, comes) in steps {
                let of_one = |held: &[Place]| held.iter().filter(|place| place.who == Who::User(user)).count();
                if comes {
                    let may = held.len() < 6 && of_one(&held) < 3;
                    let place = places.take(Who::User(user));
                    prop_assert_eq!(place.is_ok(), may);
                    held.extend(place);
                } else if let Some(at) = held.iter().position(|place| place.who == Who::User(user)) {
                    held.remove(at);
                }
            }
        }
    }
}
