//! The run loop of one queue: frames in, frames out, results, timers. It contains no decision about any frame.
//!
//! One thread polls both sides and runs each batch to its end; that halves the latency of two threads and costs nothing
//! in throughput. It never spins: when nothing is left to do it sleeps until a descriptor or a deadline wakes it.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use bump::{Ledger, Now, Side, Ticket};
use system::clock::Clock;
use system::port::{Backlog, Port, Ports, ReceiveCounters, Receiver as _, SendCounters, Sender as _, TapPort};
use system::wait::{PollFd, PollFlags, Waker, wait};

use super::bounded::{Bounded, fail_closed};
use super::bulk::Bulk;
use super::gather::Gather;
use super::guard::{Described, Guard, Kind};
use super::jobs::Jobs;
use super::precedence::Precedence;
use super::queue::{Inbox, Outbox, Reply};
use super::quiet::Quiet;
use super::worker::Worker;

/// Pieces of due work in one turn of the loop, so that timers never starve frames.
const TICK_BUDGET: usize = 64;
/// Longest sleep; a lost wake-up would cost no more than this.
const SLEEP_MAX: Duration = Duration::from_secs(5);
/// Until the next try to hand over what another thread was in the way of.
const HAND_OVER_AGAIN: Duration = Duration::from_millis(1);

/// What the supervisor asks of the data path.
pub(crate) enum Command<K: Kind> {
    /// Answer with a snapshot.
    Snapshot(Reply<Snapshot<K>>),
    /// The wire carries packets of this size from now on, in bytes.
    WireMtu(u16),
    /// Have the bump carry out an order.
    Order(K::Order),
    /// End.
    Stop,
}

/// What the data path tells the supervisor.
pub(crate) enum News<K: Kind> {
    /// Something for the operator.
    Event(Described),
    /// Something for the machine.
    Effect(K::Effect),
}

/// The state of the data path at one moment.
pub(crate) struct Snapshot<K: Kind> {
    pub(crate) now: Now,
    pub(crate) ledger: Ledger,
    pub(crate) report: K::Report,
    /// What passed the port of the stack or the trusted side.
    pub(crate) inner: (ReceiveCounters, SendCounters),
    /// What passed the port of the wire or the untrusted side.
    pub(crate) outer: (ReceiveCounters, SendCounters),
    pub(crate) news_lost: u64,
    /// Frames may leave in trains.
    pub(crate) may_couple: bool,
    /// The data path's real-time priority, or why it has none, where it should have one.
    pub(crate) precedence: Option<String>,
}

/// The run loop of one queue.
pub(crate) struct DataPath<K: Kind, G: Guard<K>, J, S = TapPort> {
    pub(crate) guard: Bounded<K, G>,
    pub(crate) ports: Ports<S>,
    pub(crate) clock: Clock,
    pub(crate) worker: Worker<G>,
    pub(super) commands: Inbox<Command<K>>,
    /// Rings when a command or a result is there.
    pub(crate) waker: Waker,
    pub(super) news: Outbox<News<K>>,
    /// Rings the supervisor.
    pub(crate) supervisor: Waker,
    pub(crate) news_lost: u64,
    /// For jobs that are run here.
    pub(crate) jobs: J,
    pub(crate) quiet: Quiet,
    pub(crate) gather: Gather,
    pub(crate) bulk: Bulk,
    /// Whether this thread runs before the rest of the machine.
    pub(crate) precedence: Precedence,
}

impl<K: Kind, G: Guard<K>, J: Jobs<G>, S: Port + AsFd> DataPath<K, G, J, S>
where
    G::Job: Send + 'static,
    G::Completion: Send + 'static,
{
    /// Runs until it is told to stop or a port breaks.
    pub(crate) fn run(mut self) -> io::Result<()> {
        self.jobs.self_test(self.guard.guard_mut()).map_err(io::Error::other)?;
        loop {
            let now = self.clock.now();
            self.choose_carriage(now);
            let mut busy = self.take_from_wire(now)?;
            busy |= self.take_from_stack(now)?;
            self.take_results(now);
            self.run_timers(now);
            self.run_jobs(now);
            self.ports.flush();
            self.tell_news();
            if self.obey() {
                return Ok(());
            }
            match self.gather.pause_after(now.since_boot, self.ports.counters(Side::WIRE).0) {
                Some(pause) => _ = wait(&mut [], Some(pause))?,
                None if busy => {}
                None => self.sleep()?,
            }
        }
    }

    /// Frames in trains, or one by one.
    fn choose_carriage(&mut self, now: Now) {
        let sender = &mut self.ports.wire.sender;
        let bytes = sender.counters().bytes;
        sender.couple(self.bulk.is_bulk(now.since_boot, bytes));
    }

    /// Frames of the wire towards the stack, which takes them as a rule; what it does not take at once is handed over again.
    fn take_from_wire(&mut self, now: Now) -> io::Result<bool> {
        let (receiver, mut sinks) = self.ports.from_wire();
        if !receiver.fill()? {
            return Ok(false);
        }
        self.guard.process(now, Side::WIRE, receiver, &mut sinks).unwrap_or_else(|beyond| fail_closed(beyond));
        sinks.flush();
        Ok(true)
    }

    /// Frames of the stack towards the wire. While the wire is full they stay in the stack's own queue, which slows its
    /// senders down instead of losing what they send.
    fn take_from_stack(&mut self, now: Now) -> io::Result<bool> {
        if self.ports.backlog(Side::WIRE).waits() {
            return Ok(false);
        }
        let (receiver, mut sinks) = self.ports.from_stack();
        if !receiver.fill()? {
            return Ok(false);
        }
        self.guard.process(now, Side::STACK, receiver, &mut sinks).unwrap_or_else(|beyond| fail_closed(beyond));
        sinks.flush();
        Ok(true)
    }

    fn take_results(&mut self, now: Now) {
        while let Some((ticket, completion)) = self.worker.result() {
            self.complete(now, ticket, completion);
        }
    }

    fn complete(&mut self, now: Now, ticket: Ticket, completion: G::Completion) {
        let outcome = self.guard.complete(now, ticket, completion, &mut self.ports.sinks());
        outcome.unwrap_or_else(|beyond| fail_closed(beyond));
    }

    fn run_timers(&mut self, now: Now) {
        if self.guard.deadline().is_some_and(|deadline| deadline <= now.since_boot) {
            let outcome = self.guard.tick(now, TICK_BUDGET, &mut self.ports.sinks());
            outcome.unwrap_or_else(|beyond| fail_closed(beyond));
        }
    }

    /// Jobs to the worker, or done here while nothing waits behind them.
    fn run_jobs(&mut self, now: Now) {
        let frames = self.ports.counters(Side::STACK).0.frames + self.ports.counters(Side::WIRE).0.frames;
        let quiet = self.quiet.is_quiet(now.since_boot, frames);
        while let Some((ticket, job)) = self.guard.guard_mut().next_job() {
            if quiet && self.jobs.is_urgent(&job) {
                let outcome = self.guard.run_job(now.since_boot, job, &mut self.jobs);
                if let Some(completion) = outcome.unwrap_or_else(|beyond| fail_closed(beyond)) {
                    self.complete(now, ticket, completion);
                }
            } else {
                self.delegate(now, ticket, job);
            }
        }
        self.worker.hand_over();
    }

    /// News to the supervisor, after the frames: waking it takes longer than sending one.
    fn tell_news(&mut self) {
        while let Some(effect) = self.guard.guard_mut().next_effect() {
            self.tell(News::Effect(effect));
        }
        while let Some(event) = self.guard.next_event() {
            self.tell(News::Event(event));
        }
        if self.news.waits() {
            self.news.hand_over();
            self.supervisor.wake();
        }
    }

    fn delegate(&mut self, now: Now, ticket: Ticket, job: G::Job) {
        let refused = self.worker.accept(ticket, job).err();
        if let (Some(ticket), Some(lost)) = (refused, J::lost()) {
            self.complete(now, ticket, lost);
        }
    }

    /// News never hold the data path up: what the supervisor does not take in time is counted and gone.
    fn tell(&mut self, news: News<K>) {
        self.news_lost += u64::from(self.news.post(news).is_err());
    }

    /// Whether to stop.
    fn obey(&mut self) -> bool {
        while let Some(command) = self.commands.next() {
            match command {
                Command::Snapshot(reply) => reply.give(self.snapshot()),
                Command::WireMtu(wire_mtu) => {
                    self.guard.guard_mut().set_wire_mtu(wire_mtu);
                    self.ports.wire.sender.set_wire_mtu(wire_mtu);
                }
                Command::Order(order) => self.carry_out(order),
                Command::Stop => return true,
            }
        }
        self.commands.is_abandoned()
    }

    /// Begins with its jobs at once, because nothing else may wake this loop for a while.
    fn carry_out(&mut self, order: K::Order) {
        let now = self.clock.now();
        let outcome = self.guard.obey(now, order, &mut self.ports.sinks());
        outcome.unwrap_or_else(|beyond| fail_closed(beyond));
        self.run_jobs(now);
        self.ports.flush();
    }

    fn snapshot(&mut self) -> Snapshot<K> {
        let now = self.clock.now();
        self.ports.count_kernel_drops();
        Snapshot {
            now,
            ledger: self.guard.ledger(),
            report: self.guard.report(now.since_boot),
            inner: self.ports.counters(Side::STACK),
            outer: self.ports.counters(Side::WIRE),
            news_lost: self.news_lost,
            may_couple: self.ports.wire.sender.may_couple(),
            precedence: self.precedence.told(),
        }
    }

    /// Sleeps until a frame, a result, a command or the next deadline.
    fn sleep(&mut self) -> io::Result<()> {
        let now = self.clock.now().since_boot;
        let mut timeout = self.guard.deadline().map_or(SLEEP_MAX, |deadline| deadline.since(now)).min(SLEEP_MAX);
        let (wire, stack) = (self.ports.backlog(Side::WIRE), self.ports.backlog(Side::STACK));
        for backlog in [wire, stack] {
            if let Backlog::After(pause) = backlog {
                timeout = timeout.min(pause);
            }
        }
        if self.worker.waits() || self.news.waits() {
            timeout = timeout.min(HAND_OVER_AGAIN);
        }
        let room_wanted = |backlog| if backlog == Backlog::UntilWritable { PollFlags::OUT } else { PollFlags::empty() };
        let wire_flags = PollFlags::IN | room_wanted(wire);
        // What the stack sends is not looked at while the wire is full, so it waits there.
        let heard = if wire.waits() { PollFlags::empty() } else { PollFlags::IN };
        let stack_flags = heard | room_wanted(stack);
        let beside = self.ports.wire.beside();
        let mut watched = [
            PollFd::new(&self.waker, PollFlags::IN),
            PollFd::new(&self.ports.wire, wire_flags),
            PollFd::new(&beside, PollFlags::IN),
            PollFd::new(&self.ports.stack, stack_flags),
        ];
        wait(&mut watched, Some(timeout))?;
        if !watched[0].revents().is_empty() {
            self.waker.drain();
        }
        Ok(())
    }
}
