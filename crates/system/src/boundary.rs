//! A panic in a bump costs the frame that it met and what it may have left half done, not the
//! daemon.
//!
//! [`contain`] catches it and says where it was; [`Boundary`] has the bump mend its state, drops
//! the frame by name and goes on with the rest of the batch. Whatever panics outside of a boundary
//! ends the process, see [`install`]. The payload of a panic is printed by nobody within a
//! boundary: it may quote what a stranger sent. Record 0068 has the reasons.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::time::Duration;

use bump::{Batch, Bump, DropReason, Fate, Frame, Instant, Ledger, Now, Side, Sink, Torn};

/// Panics in a minute that a daemon lives with: whoever found a frame that causes one shall not end
/// it with a few of them, and a state that is beyond mending shall.
pub const FAULTS_PER_MINUTE_MAX: usize = 16;
/// Panics in a daemon's life: each may cost a little memory or a place in some table that nobody
/// gives back.
pub const FAULTS_MAX: u64 = 1024;
/// Faults that are remembered until they are told.
const UNTOLD_MAX: usize = FAULTS_PER_MINUTE_MAX;

const MINUTE: Duration = Duration::from_mins(1);

thread_local! {
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// Where in the source a panic was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    file: String,
    line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Has every panic noted that [`contain`] contains. All others are reported as before and then
/// handed to `beyond`.
pub fn install(beyond: impl Fn() + Send + Sync + 'static) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if IS_CONTAINED.get() {
            note(info);
        } else {
            usual(info);
            beyond();
        }
    }));
}

fn note(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|at| Place { file: at.file().to_owned(), line: at.line() });
    // A thread that ends has no place to note it in any more.
    let _ = PLACE.try_with(|noted| noted.replace(place));
}

/// Runs `work`.
///
/// # Errors
/// It panicked there. What `work` could write to is as the panic left it, so the caller must mend
/// it or let go of it.
pub fn contain<T>(work: impl FnOnce() -> T) -> Result<T, Place> {
    let before = IS_CONTAINED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_CONTAINED.set(before);
    let unnoted = || Place { file: "a place that nobody noted".to_owned(), line: 0 };
    outcome.map_err(|_payload| PLACE.take().unwrap_or_else(unnoted))
}

/// A panic that was contained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    place: Place,
    frames: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program failed at {}; frames lost: {}", self.place, self.frames)
    }
}

/// Too many panics, or one while the state was mended: the daemon must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beyond(Place);

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program failed at {}, too often or beyond mending", self.0)
    }
}

/// Drives one bump, and knows how often it panicked.
#[derive(Debug, Default)]
pub struct Boundary {
    /// The panics of the last minute, oldest first.
    recent: VecDeque<Instant>,
    faults: u64,
    untold: VecDeque<Fault>,
    /// The fates of frames that went with a panic.
    lost: Ledger,
}

impl Boundary {
    /// Has `bump` process `batch`. A frame that makes it panic is dropped, and the rest goes on.
    ///
    /// # Errors
    /// The daemon must end.
    pub fn process<B: Bump + ?Sized>(
        &mut self,
        bump: &mut B,
        now: Now,
        from: Side,
        batch: &mut dyn Batch,
        sink: &mut dyn Sink,
    ) -> Result<(), Beyond> {
        let mut watched = Watched { batch, head: Head::default(), len: 0 };
        while let Err(place) = contain(|| bump.process(now, from, &mut watched, sink)) {
            let head = &watched.head[..watched.len.min(watched.head.len())];
            self.mend(bump, now, Torn::by_frame(from, head), &place, sink)?;
            self.enter(bump, now, from, head, place);
        }
        Ok(())
    }

    /// Calls into `bump` for something else than a frame.
    ///
    /// # Errors
    /// The daemon must end.
    pub fn call<B: Bump + ?Sized>(
        &mut self,
        bump: &mut B,
        now: Now,
        sink: &mut dyn Sink,
        act: impl FnOnce(&mut B, &mut dyn Sink),
    ) -> Result<(), Beyond> {
        if let Err(place) = contain(|| act(bump, sink)) {
            self.mend(bump, now, Torn::Anything, &place, sink)?;
            self.enter(bump, now, Side::WIRE, &[], place);
        }
        Ok(())
    }

    /// A panic that touched no state of the bump, such as that of a job.
    ///
    /// # Errors
    /// The daemon must end.
    pub fn count(&mut self, now: Instant, place: Place) -> Result<(), Beyond> {
        self.bear(now, &place)?;
        self.remember(Fault { place, frames: 0 });
        Ok(())
    }

    /// The oldest panic that nobody was told of.
    pub fn next_fault(&mut self) -> Option<Fault> {
        self.untold.pop_front()
    }

    /// Adds the frames that went with a panic to `total`, where the bump's own books have them as
    /// received.
    pub fn add_to_ledger(&self, total: &mut Ledger) {
        if self.faults > 0 {
            total.add(&self.lost);
        }
    }

    fn bear(&mut self, now: Instant, place: &Place) -> Result<(), Beyond> {
        while self.recent.pop_front_if(|at| now.since(*at) >= MINUTE).is_some() {}
        self.faults += 1;
        if self.recent.len() >= FAULTS_PER_MINUTE_MAX || self.faults > FAULTS_MAX {
            return Err(Beyond(place.clone()));
        }
        self.recent.push_back(now);
        Ok(())
    }

    fn mend<B: Bump + ?Sized>(
        &mut self,
        bump: &mut B,
        now: Now,
        torn: Torn,
        place: &Place,
        sink: &mut dyn Sink,
    ) -> Result<(), Beyond> {
        self.bear(now.since_boot, place)?;
        contain(|| bump.mend(now, torn, sink)).map_err(Beyond)
    }

    /// Enters the frames that have no fate: between two calls every other frame has one.
    fn enter<B: Bump + ?Sized>(&mut self, bump: &B, now: Now, from: Side, head: &[u8], place: Place) {
        let mut books = Ledger::new();
        bump.add_to_ledger(&mut books);
        books.add(&self.lost);
        let frames = u64::try_from(books.balance()).unwrap_or(0);
        if frames > 0 {
            self.lost.settle(now.since_boot, from, Fate::Dropped(DropReason::InternalError), head);
            self.lost.dropped[DropReason::InternalError as usize] += frames - 1;
        }
        self.remember(Fault { place, frames });
    }

    fn remember(&mut self, fault: Fault) {
        if self.untold.len() >= UNTOLD_MAX {
            self.untold.pop_front();
        }
        self.untold.push_back(fault);
    }
}

/// An Ethernet header: whom a frame is about.
type Head = [u8; 14];

/// A batch of which it is known what was lent last.
struct Watched<'a> {
    batch: &'a mut dyn Batch,
    head: Head,
    len: usize,
}

impl Batch for Watched<'_> {
    fn next_frame(&mut self) -> Option<Frame<'_>> {
        let frame = self.batch.next_frame()?;
        self.len = frame.bytes.len();
        match frame.bytes.first_chunk() {
            Some(head) => self.head = *head,
            None => self.head[..self.len].copy_from_slice(frame.bytes),
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use bump::frame::Frames;
    use bump::sink::Collected;
    use bump::{Meta, Ticket};

    use super::*;
    use crate::null::NullBump;

    /// A null bump that panics on frames of one host, and remembers what it was told to mend.
    #[derive(Default)]
    struct Brittle {
        within: NullBump,
        mended: Vec<Torn>,
        mends_badly: bool,
    }

    const BAD: [u8; 6] = [2, 0, 0, 0, 0, 66];

    impl Bump for Brittle {
        type Job = std::convert::Infallible;
        type Completion = std::convert::Infallible;
        type Effect = std::convert::Infallible;
        type Event = std::convert::Infallible;

        fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
            while let Some(frame) = batch.next_frame() {
                let is_bad = frame.bytes[6..12] == BAD;
                self.within.process(now, from, &mut Some(frame), sink);
                assert!(!is_bad, "a frame that nobody expected");
            }
        }

        fn complete(&mut self, _: Now, _: Ticket, completion: Self::Completion, _: &mut dyn Sink) {
            match completion {}
        }

        fn tick(&mut self, _: Now, _: usize, _: &mut dyn Sink) {
            panic!("nothing is due");
        }

        fn mend(&mut self, _: Now, torn: Torn, _: &mut dyn Sink) {
            assert!(!self.mends_badly, "beyond mending");
            self.mended.push(torn);
        }

        fn deadline(&self) -> Option<Instant> {
            None
        }

        fn next_job(&mut self) -> Option<(Ticket, Self::Job)> {
            None
        }

        fn next_effect(&mut self) -> Option<Self::Effect> {
            None
        }

        fn next_event(&mut self) -> Option<Self::Event> {
            None
        }

        fn add_to_ledger(&self, total: &mut Ledger) {
            // Of its bad frames it knows only that they came.
            self.within.add_to_ledger(total);
            total.forwarded[Side::WIRE as usize] -=
                self.mended.iter().filter(|torn| **torn != Torn::Anything).count() as u64;
        }
    }

    fn frame(source: u8) -> (Vec<u8>, Meta) {
        ([&[2; 6][..], &[2, 0, 0, 0, 0, source], &[0x88, 0xb5], &[0; 46]].concat(), Meta::plain())
    }

    fn at(seconds: u64) -> Now {
        Now { since_boot: Instant::from_millis(seconds * 1000), wall: None }
    }

    #[test]
    fn the_frame_that_met_a_panic_is_dropped_by_name_and_the_rest_goes_on() {
        let (mut boundary, mut bump, mut sink) = (Boundary::default(), Brittle::default(), Collected::new());
        let mut frames = [frame(1), frame(66), frame(2), frame(66)];
        let outcome = boundary.process(&mut bump, at(1), Side::WIRE, &mut Frames::new(&mut frames), &mut sink);
        assert_eq!(outcome, Ok(()));
        assert_eq!(bump.mended, [Torn::Host(BAD), Torn::Host(BAD)]);
        let mut books = Ledger::new();
        bump.add_to_ledger(&mut books);
        boundary.add_to_ledger(&mut books);
        assert_eq!((books.drops(DropReason::InternalError), books.forwarded, books.balance()), (2, [0, 2], 0));
        assert_eq!(books.examples()[0].head, frame(66).0[..14]);
    }

    #[test]
    fn a_fault_names_its_place_and_nothing_of_the_frame() {
        install(|| {});
        let (mut boundary, mut bump, mut sink) = (Boundary::default(), Brittle::default(), Collected::new());
        boundary.process(&mut bump, at(1), Side::WIRE, &mut Frames::new(&mut [frame(66)]), &mut sink).expect("mended");
        let told = boundary.next_fault().expect("a fault").to_string();
        let line = told.strip_prefix("the program failed at crates/system/src/boundary.rs:").expect(&told);
        assert!(line.ends_with("; frames lost: 1") && !line.contains("nobody"), "{told}");
        assert_eq!(boundary.next_fault(), None);
    }

    #[test]
    fn too_many_in_a_minute_are_beyond_it_and_later_ones_are_not() {
        let (mut boundary, mut bump, mut sink) = (Boundary::default(), Brittle::default(), Collected::new());
        let mut tick = |boundary: &mut Boundary, second| {
            boundary.call(&mut bump, at(second), &mut sink, |bump, sink| bump.tick(at(second), 1, sink))
        };
        for count in 0..FAULTS_PER_MINUTE_MAX as u64 {
            assert_eq!(tick(&mut boundary, count), Ok(()));
        }
        assert!(tick(&mut boundary, 59).is_err());
        assert_eq!(tick(&mut boundary, 60), Ok(()), "the first is a minute ago");
        assert!(tick(&mut boundary, 60).is_err());
    }

    #[test]
    fn all_of_a_life_are_counted_too() {
        let mut boundary = Boundary::default();
        let place = || Place { file: "somewhere.rs".to_owned(), line: 1 };
        let borne =
            (1..10_000).take_while(|minute| boundary.count(at(minute * 60).since_boot, place()).is_ok()).count();
        assert_eq!(borne as u64, FAULTS_MAX);
    }

    #[test]
    fn a_state_that_cannot_be_mended_is_beyond_it() {
        let (mut boundary, mut sink) = (Boundary::default(), Collected::new());
        let mut bump = Brittle { mends_badly: true, ..Brittle::default() };
        let outcome = boundary.process(&mut bump, at(1), Side::WIRE, &mut Frames::new(&mut [frame(66)]), &mut sink);
        assert!(outcome.is_err());
    }
}
