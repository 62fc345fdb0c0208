//! The bump of a daemon behind a boundary: a panic costs a frame or a job, and too many of them the
//! daemon.

use std::marker::PhantomData;

use bump::{Batch, Instant, Ledger, Now, Side, Sink, Ticket};
use system::boundary::{Beyond, Boundary, contain};

use super::guard::{Described, Guard, Kind};
use super::jobs::Jobs;
use crate::protocol::About;

/// A bump that the run loop drives.
pub(crate) struct Bounded<K, G> {
    guard: G,
    boundary: Boundary,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind, G: Guard<K>> Bounded<K, G> {
    pub(super) fn new(guard: G) -> Bounded<K, G> {
        Bounded { guard, boundary: Boundary::default(), kind: PhantomData }
    }

    pub(super) fn process(
        &mut self,
        now: Now,
        from: Side,
        batch: &mut dyn Batch,
        sink: &mut dyn Sink,
    ) -> Result<(), Beyond> {
        self.boundary.process(&mut self.guard, now, from, batch, sink)
    }

    pub(super) fn complete(
        &mut self,
        now: Now,
        ticket: Ticket,
        completion: G::Completion,
        sink: &mut dyn Sink,
    ) -> Result<(), Beyond> {
        self.boundary.call(&mut self.guard, now, sink, |guard, sink| guard.complete(now, ticket, completion, sink))
    }

    pub(super) fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink) -> Result<(), Beyond> {
        self.boundary.call(&mut self.guard, now, sink, |guard, sink| guard.tick(now, budget, sink))
    }

    pub(super) fn obey(&mut self, now: Now, order: K::Order, sink: &mut dyn Sink) -> Result<(), Beyond> {
        self.boundary.call(&mut self.guard, now, sink, |guard, sink| guard.obey(now, order, sink))
    }

    /// Runs a job on this thread; one that panics is a lost one.
    pub(super) fn run_job<J: Jobs<G>>(
        &mut self,
        now: Instant,
        job: G::Job,
        jobs: &mut J,
    ) -> Result<Option<G::Completion>, Beyond> {
        match contain(|| jobs.run(job)) {
            Ok(completion) => Ok(Some(completion)),
            Err(place) => self.boundary.count(now, place).map(|()| J::lost()),
        }
    }

    pub(super) fn next_event(&mut self) -> Option<Described> {
        let fault = self.boundary.next_fault();
        fault
            .map(|fault| Described { word: "internal-error", text: fault.to_string(), about: About::default() })
            .or_else(|| self.guard.next_event().map(|event| G::describe(&event)))
    }

    pub(super) fn ledger(&self) -> Ledger {
        let mut ledger = self.guard.ledger();
        self.boundary.add_to_ledger(&mut ledger);
        ledger
    }

    pub(super) fn report(&self, now: Instant) -> K::Report {
        self.guard.report(now)
    }

    /// For what handles no frame: a panic there ends the daemon.
    pub(super) fn guard_mut(&mut self) -> &mut G {
        &mut self.guard
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.guard.deadline()
    }
}

/// Ends the daemon as a crash would: nothing gives the interface back, so it stays closed, and the
/// service manager starts anew.
pub(super) fn fail_closed(beyond: Beyond) -> ! {
    tracing::error!("{beyond}: the interface stays closed");
    std::process::abort()
}

#[cfg(test)]
pub(super) mod tests {
    use std::convert::Infallible;

    use bump::sink::Collected;
    use bump::{Bump, DropReason, Fate, Frame, Meta, Torn};
    use system::boundary::FAULTS_PER_MINUTE_MAX;

    use super::*;

    const NOW: Now = Now { since_boot: Instant::from_millis(1), wall: None };

    /// Swallows frames, panics on those that begin with 0, and has a job of number 0 that panics.
    #[derive(Default)]
    pub(crate) struct Brittle {
        books: Ledger,
        completed: Vec<Option<u8>>,
    }

    impl Bump for Brittle {
        type Job = u8;
        type Completion = Option<u8>;
        type Effect = Infallible;
        type Event = Infallible;

        fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, _: &mut dyn Sink) {
            while let Some(frame) = batch.next_frame() {
                self.books.receive(from);
                assert_ne!(frame.bytes[0], 0, "a secret of the frame");
                self.books.settle(now.since_boot, from, Fate::Consumed, frame.bytes);
            }
        }

        fn complete(&mut self, _: Now, _: Ticket, completion: Option<u8>, _: &mut dyn Sink) {
            self.completed.push(completion);
        }

        fn tick(&mut self, _: Now, _: usize, _: &mut dyn Sink) {}

        fn mend(&mut self, _: Now, _: Torn, _: &mut dyn Sink) {}

        fn deadline(&self) -> Option<Instant> {
            None
        }

        fn next_job(&mut self) -> Option<(Ticket, u8)> {
            None
        }

        fn next_effect(&mut self) -> Option<Infallible> {
            None
        }

        fn next_event(&mut self) -> Option<Infallible> {
            None
        }

        fn add_to_ledger(&self, total: &mut Ledger) {
            total.add(&self.books);
        }
    }

    /// Who does its jobs.
    pub(crate) struct OfBrittle;

    impl Jobs<Brittle> for OfBrittle {
        fn run(&mut self, job: u8) -> Option<u8> {
            assert_ne!(job, 0, "a secret of the job");
            Some(job)
        }

        fn is_urgent(&self, _: &u8) -> bool {
            true
        }

        fn lost() -> Option<Option<u8>> {
            Some(None)
        }
    }

    impl Kind for OfBrittle {
        type Order = ();
        type Report = ();
        type Effect = Infallible;
    }

    impl Guard<OfBrittle> for Brittle {
        fn describe(event: &Infallible) -> Described {
            match *event {}
        }

        fn obey(&mut self, _: Now, (): (), _: &mut dyn Sink) {}

        fn report(&self, _: Instant) {}
    }

    fn process(bounded: &mut Bounded<OfBrittle, Brittle>, first_bytes: &[u8]) -> Result<(), Beyond> {
        let mut frames: Vec<_> = first_bytes.iter().map(|first| (vec![*first; 60], Meta::plain())).collect();
        bounded.process(NOW, Side::WIRE, &mut bump::frame::Frames::new(&mut frames), &mut Collected::new())
    }

    #[test]
    fn a_frame_that_panics_is_one_drop_and_one_event_without_its_bytes() {
        let mut bounded = Bounded::<OfBrittle, _>::new(Brittle::default());
        assert_eq!(process(&mut bounded, &[1, 0, 2, 3]), Ok(()));
        let books = bounded.ledger();
        assert_eq!((books.consumed[1], books.drops(DropReason::InternalError), books.balance()), (3, 1, 0));
        let event = bounded.next_event().expect("an event");
        assert_eq!(event.word, "internal-error");
        assert!(event.text.ends_with("frames lost: 1") && !event.text.contains("secret"), "{}", event.text);
        assert!(bounded.next_event().is_none());
    }

    #[test]
    fn the_daemon_ends_after_so_many_in_a_minute_as_it_may_live_with() {
        let mut bounded = Bounded::<OfBrittle, _>::new(Brittle::default());
        assert_eq!(process(&mut bounded, &[0; FAULTS_PER_MINUTE_MAX]), Ok(()));
        assert!(process(&mut bounded, &[0]).is_err());
    }

    #[test]
    fn a_job_that_panics_on_the_data_path_is_a_lost_one() {
        let mut bounded = Bounded::<OfBrittle, _>::new(Brittle::default());
        let mut run = |job| bounded.run_job(NOW.since_boot, job, &mut OfBrittle).expect("borne").expect("a completion");
        assert_eq!([run(7), run(0), run(8)], [Some(7), None, Some(8)]);
        assert_eq!(bounded.next_event().expect("an event").word, "internal-error");
        let mut frame = [1; 60];
        let mut batch = Some(Frame { bytes: &mut frame, meta: Meta::plain() });
        assert_eq!(bounded.process(NOW, Side::STACK, &mut batch, &mut Collected::new()), Ok(()));
    }
}
