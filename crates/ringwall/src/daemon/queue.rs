//! What the data path and the threads beside it hand to each other.
//!
//! The data path may have a real-time priority, the other thread has none, and both may share a processor. A channel of the standard
//! library does not do there: where its other end was interrupted in the middle of a slot it yields until that is done, a real-time
//! thread yields to no ordinary one, and frames stand still until the kernel gives the other its few hundredths of the second. So each
//! queue is a list behind a lock that the data path only *tries*. While the other end has it the data path goes on and looks again
//! later: who puts something in rings afterwards, and what could not be handed over stays in the [`Outbox`] for the next turn.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

use system::wait::Waker;

struct Shared<T> {
    list: Mutex<List<T>>,
    /// For threads that wait here until there is something.
    filled: Condvar,
}

struct List<T> {
    items: VecDeque<T>,
    /// Nothing more will come.
    is_closed: bool,
}

impl<T> Shared<T> {
    fn new() -> Arc<Shared<T>> {
        Arc::new(Shared { list: Mutex::new(List { items: VecDeque::new(), is_closed: false }), filled: Condvar::new() })
    }

    /// For the threads beside the data path. A thread that panicked has left whole items behind.
    fn lock(&self) -> MutexGuard<'_, List<T>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For the data path: what a lock guards, unless another thread has it.
fn at_once<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A queue into the data path, for at most `items_max` that it has not taken. `waker` is to wake it.
pub(super) fn inbound<T>(items_max: usize, waker: &Waker) -> (Feed<T>, Inbox<T>) {
    let shared = Shared::new();
    let feed = Feed { shared: Arc::clone(&shared), items_max, waker: waker.clone() };
    (feed, Inbox { shared, taken: VecDeque::new() })
}

/// A queue out of the data path. At most `items_max` wait in it, and as many for it.
pub(super) fn outbound<T>(items_max: usize) -> (Outbox<T>, Drain<T>) {
    let shared = Shared::new();
    (Outbox { shared: Arc::clone(&shared), waiting: VecDeque::new(), items_max }, Drain { shared })
}

/// The other thread's end of a queue into the data path.
pub(super) struct Feed<T> {
    shared: Arc<Shared<T>>,
    items_max: usize,
    waker: Waker,
}

impl<T> Clone for Feed<T> {
    fn clone(&self) -> Feed<T> {
        Feed { shared: Arc::clone(&self.shared), items_max: self.items_max, waker: self.waker.clone() }
    }
}

impl<T> Feed<T> {
    /// Puts items in, all or none, and wakes the data path. Says whether there was room.
    pub(super) fn put(&self, items: impl ExactSizeIterator<Item = T>) -> bool {
        let mut list = self.shared.lock();
        let has_room = list.items.len() + items.len() <= self.items_max;
        if has_room {
            list.items.extend(items);
        }
        // Before the ring: whoever is woken must not find the lock held.
        drop(list);
        self.waker.wake();
        has_room
    }
}

/// The data path's end of a queue into it.
pub(super) struct Inbox<T> {
    shared: Arc<Shared<T>>,
    /// Out of the shared list, so that one look is enough for many.
    taken: VecDeque<T>,
}

impl<T> Inbox<T> {
    /// The next item. There is none also while another thread puts something in, which then wakes the data path.
    pub(super) fn next(&mut self) -> Option<T> {
        if self.taken.is_empty()
            && let Some(mut list) = at_once(&self.shared.list)
        {
            std::mem::swap(&mut list.items, &mut self.taken);
        }
        self.taken.pop_front()
    }

    /// Whether nobody is left who could put something in.
    pub(super) fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

/// The data path's end of a queue out of it.
pub(super) struct Outbox<T> {
    shared: Arc<Shared<T>>,
    /// What is yet to be handed over.
    waiting: VecDeque<T>,
    items_max: usize,
}

impl<T> Outbox<T> {
    /// Takes an item for the next [`hand_over`](Outbox::hand_over), or gives it back when too many wait.
    pub(super) fn post(&mut self, item: T) -> Result<(), T> {
        if self.waiting.len() >= self.items_max {
            self.hand_over();
        }
        if self.waiting.len() >= self.items_max {
            return Err(item);
        }
        self.waiting.push_back(item);
        Ok(())
    }

    /// Hands over what waits, as far as there is room and the other thread does not hold the queue.
    pub(super) fn hand_over(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let Some(mut list) = at_once(&self.shared.list) else { return };
        let room = self.items_max.saturating_sub(list.items.len()).min(self.waiting.len());
        list.items.extend(self.waiting.drain(..room));
        drop(list);
        self.shared.filled.notify_all();
    }

    /// Whether something is yet to be handed over.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl<T> Drop for Outbox<T> {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.filled.notify_all();
    }
}

/// The other threads' end of a queue out of the data path.
pub(super) struct Drain<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for Drain<T> {
    fn clone(&self) -> Drain<T> {
        Drain { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drain<T> {
    /// The next item, if there is one.
    pub(super) fn next(&self) -> Option<T> {
        self.shared.lock().items.pop_front()
    }

    /// Waits until there is something and takes at most `items_max` of it; nothing when nothing more will come.
    pub(super) fn wait_for(&self, items_max: usize) -> Vec<T> {
        let wants = |list: &mut List<T>| list.items.is_empty() && !list.is_closed;
        let mut list = self.shared.filled.wait_while(self.shared.lock(), wants).unwrap_or_else(PoisonError::into_inner);
        let count = items_max.min(list.items.len());
        list.items.drain(..count).collect()
    }
}

/// Where the data path puts the answer to one question.
pub(crate) struct Reply<T> {
    slot: Arc<Mutex<Option<T>>>,
    waker: Waker,
}

impl<T> Reply<T> {
    /// Where an answer goes, and where whoever `waker` wakes finds it.
    pub(super) fn new(waker: &Waker) -> (Reply<T>, Arc<Mutex<Option<T>>>) {
        let slot = Arc::new(Mutex::new(None));
        (Reply { slot: Arc::clone(&slot), waker: waker.clone() }, slot)
    }

    /// Answers. Whoever asks looks only when he is woken, so the slot is free, or he does not wait any more.
    pub(crate) fn give(self, answer: T) {
        if let Some(mut slot) = at_once(&self.slot) {
            *slot = Some(answer);
        }
    }
}

/// Whoever asks is woken also where there is no answer.
impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Runs `work` while another thread holds `mutex`, and says whether that thread still held it afterwards.
    fn while_held<T: Send>(mutex: &Mutex<T>, work: impl FnOnce()) -> bool {
        let (held, is_held) = mpsc::channel();
        let (done, is_done) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let holder = scope.spawn(move || {
                let _guard = mutex.lock();
                held.send(()).expect("the test listens");
                is_done.recv_timeout(Duration::from_secs(20)).is_ok()
            });
            is_held.recv().expect("the holder says so");
            work();
            let _ = done.send(());
            holder.join().expect("the holder")
        })
    }

    #[test]
    fn the_data_path_waits_for_nobody_who_puts_something_in() {
        let (feed, mut inbox) = inbound(4, &Waker::new().expect("eventfd"));
        assert!(feed.put([1, 2].into_iter()));
        let shared = Arc::clone(&inbox.shared);
        assert!(while_held(&shared.list, || assert_eq!(inbox.next(), None)));
        assert_eq!([inbox.next(), inbox.next(), inbox.next()], [Some(1), Some(2), None]);
    }

    #[test]
    fn the_data_path_waits_for_nobody_who_takes_something_out() {
        let (mut outbox, drain) = outbound(2);
        let shared = Arc::clone(&outbox.shared);
        let post = |outbox: &mut Outbox<u8>| {
            assert_eq!([outbox.post(1), outbox.post(2), outbox.post(3)], [Ok(()), Ok(()), Err(3)]);
            outbox.hand_over();
        };
        assert!(while_held(&shared.list, || post(&mut outbox)));
        assert!(outbox.waits() && drain.next().is_none());
        outbox.hand_over();
        assert!(!outbox.waits());
        assert_eq!(drain.wait_for(8), [1, 2]);
    }

    #[test]
    fn an_answer_waits_for_nobody() {
        let waker = Waker::new().expect("eventfd");
        let (reply, slot) = Reply::new(&waker);
        assert!(while_held(&slot, || reply.give(1)));
        let (reply, slot) = Reply::new(&waker);
        reply.give(2);
        assert_eq!(slot.lock().expect("nobody panicked").take(), Some(2));
    }

    #[test]
    fn a_queue_holds_no_more_than_it_may() {
        let (feed, mut inbox) = inbound(3, &Waker::new().expect("eventfd"));
        assert!(feed.put([1, 2].into_iter()));
        assert!(!feed.put([3, 4].into_iter()), "all or none");
        assert!(feed.put([5].into_iter()));
        assert_eq!(std::iter::from_fn(|| inbox.next()).collect::<Vec<_>>(), [1, 2, 5]);

        let (mut outbox, drain) = outbound(2);
        let posted = (0..9).filter(|&item| outbox.post(item).is_ok()).count();
        assert_eq!(posted, 4, "two in the queue and two before it");
        outbox.hand_over();
        assert_eq!(drain.wait_for(1), [0]);
        outbox.hand_over();
        assert_eq!(drain.wait_for(8), [1, 2]);
    }

    #[test]
    fn who_waits_hears_of_items_and_of_the_end() {
        let (mut outbox, drain) = outbound(8);
        let waiting = std::thread::spawn(move || (drain.wait_for(1), drain.wait_for(1), drain.wait_for(1)));
        outbox.post(7).expect("room");
        outbox.hand_over();
        outbox.post(8).expect("room");
        outbox.hand_over();
        drop(outbox);
        assert_eq!(waiting.join().expect("the thread"), (vec![7], vec![8], vec![]));
    }

    #[test]
    fn the_data_path_notices_that_nobody_is_left() {
        let (feed, inbox) = inbound::<u8>(1, &Waker::new().expect("eventfd"));
        let other = feed.clone();
        drop(feed);
        assert!(!inbox.is_abandoned());
        drop(other);
        assert!(inbox.is_abandoned());
    }
}
