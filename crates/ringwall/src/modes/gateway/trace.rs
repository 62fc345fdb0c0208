//! What became of single frames of a capture: a pcapng with comments, and one flow before and
//! after.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bump::{Bump, DropReason, Ledger, Meta, Side};
use scrub::{Rule, Scrubber};
use system::capture::{CaptureWriter, Note};
use system::port::Sender;

use super::fields::{self, Ends};
use crate::output::{print, say};

/// A capture that is written.
pub(super) type Written = CaptureWriter<io::BufWriter<Box<dyn io::Write>>>;

/// Bytes of a frame that nothing is known of, in a line of a flow before and after.
const SHOWN_BYTES: usize = 16;

/// A frame of the capture.
#[derive(Debug)]
pub(super) struct Seen {
    /// Which one it is, from one on.
    pub(super) number: u64,
    pub(super) interface: u32,
    /// When it was captured, since 1970.
    pub(super) time: Duration,
    pub(super) from: Side,
    /// What the capture says of it.
    pub(super) options: Vec<u8>,
    pub(super) before: Vec<u8>,
    /// Whether its sender left checksums or lengths to his card.
    pub(super) is_begun: bool,
}

/// A frame that left.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) to: Side,
    pub(super) frame: Vec<u8>,
}

/// Who asked for what, and how the books stood before the frame.
pub(super) struct Trace {
    explain: Option<Written>,
    ends: Option<[SocketAddr; 2]>,
    /// Whether the standard output is a capture's, or holds JSON.
    is_taken: bool,
    rules: Vec<u64>,
    ledger: Ledger,
}

/// What the books say of one frame.
struct Account {
    rules: Vec<&'static str>,
    dropped: Option<DropReason>,
    is_held: bool,
}

impl Trace {
    pub(super) fn new(explain: Option<Written>, ends: Option<[SocketAddr; 2]>, is_taken: bool) -> Trace {
        Trace { explain, ends, is_taken, rules: vec![0; Rule::ALL.len()], ledger: Ledger::new() }
    }

    /// Takes over what the capture says beside its frames.
    pub(super) fn note(&mut self, note: &Note) {
        if let Some(explain) = &mut self.explain {
            explain.note(note);
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.explain.map_or(Ok(()), |explain| explain.finish().map(drop))
    }

    /// What fell due left without a frame of the capture.
    pub(super) fn due(&mut self, time: Duration, left: &[Left], scrubber: &Scrubber) {
        // What the books say from here on is of the next frame.
        self.account(scrubber);
        for Left { frame, .. } in left {
            self.write(time, None, frame, "waited in the gateway, and leaves now");
        }
    }

    /// A frame was taken through the scrubber, and `left` is what came out.
    pub(super) fn seen(&mut self, seen: &Seen, left: &[Left], scrubber: &Scrubber) {
        let account = self.account(scrubber);
        let said = account.word(seen, left);
        self.explain(seen, left, &said);
        if self.ends.is_some_and(|ends| Ends::of(&seen.before).is_some_and(|found| found.are(ends))) {
            self.show(seen, left, &said);
        }
    }

    /// Compares the books with how they stood before.
    fn account(&mut self, scrubber: &Scrubber) -> Account {
        let counters = scrubber.counters();
        let rules: Vec<_> = Rule::ALL.iter().map(|rule| counters.of(*rule)).collect();
        let acted = Rule::ALL.iter().zip(rules.iter().zip(&self.rules)).filter(|(_, (now, before))| now > before);
        let acted = acted.map(|(rule, _)| rule.name()).collect();
        let mut ledger = Ledger::new();
        scrubber.add_to_ledger(&mut ledger);
        let dropped = DropReason::ALL.iter().find(|reason| ledger.drops(**reason) > self.ledger.drops(**reason));
        let account = Account { rules: acted, dropped: dropped.copied(), is_held: ledger.held > self.ledger.held };
        (self.rules, self.ledger) = (rules, ledger);
        account
    }

    fn explain(&mut self, seen: &Seen, left: &[Left], said: &str) {
        if left.is_empty() {
            return self.write(seen.time, Some(seen), &seen.before, said);
        }
        for (index, Left { frame, to }) in left.iter().enumerate() {
            let piece = format!("{said} (frame {} of {} that left)", index + 1, left.len());
            let said = if left.len() > 1 { &piece } else { said };
            if *to == seen.from {
                self.write(seen.time, Some(seen), &seen.before, said);
                self.write(seen.time, None, frame, "made by the gateway in answer to the frame before");
            } else {
                self.write(seen.time, Some(seen), frame, said);
            }
        }
    }

    /// Writes a frame with what is said of it, if anything.
    fn write(&mut self, time: Duration, seen: Option<&Seen>, frame: &[u8], said: &str) {
        let Some(explain) = &mut self.explain else { return };
        explain.set_time(time);
        explain.set_options(seen.map_or(&[], |seen| &seen.options));
        explain.set_interface(seen.map_or(0, |seen| seen.interface));
        if !said.is_empty() {
            explain.comment(said);
        }
        let Some(room) = explain.reserve(frame.len()) else { return };
        room[..frame.len()].copy_from_slice(frame);
        explain.commit(frame.len(), Meta::plain());
    }

    /// Prints what differs.
    fn show(&self, seen: &Seen, left: &[Left], said: &str) {
        let side = if seen.from == Side::TRUSTED { "trusted" } else { "untrusted" };
        let said = if said.is_empty() { "unchanged" } else { said };
        let time = format!("{}.{:09}", seen.time.as_secs(), seen.time.subsec_nanos());
        let mut text = format!("frame {}, {time}, from the {side} side: {said}", seen.number);
        let before = fields::of(&seen.before, SHOWN_BYTES);
        for Left { frame, .. } in left {
            let after = fields::of(frame, SHOWN_BYTES);
            for (sign, these, others) in [('-', &before, &after), ('+', &after, &before)] {
                for (name, value) in these.iter().filter(|field| !others.contains(field)) {
                    // Writing into a string does not fail.
                    let _ = write!(text, "\n  {sign} {name} {value}");
                }
            }
        }
        if self.is_taken {
            print(&mut io::stderr(), &text);
        } else {
            say!("{text}");
        }
    }
}

impl Account {
    /// What became of the frame, and by what; nothing if it left as it came.
    fn word(&self, seen: &Seen, left: &[Left]) -> String {
        let by = if self.rules.is_empty() { String::new() } else { format!(" by {}", self.rules.join(", ")) };
        let went_on = left.iter().any(|left| left.to != seen.from);
        let is_same = matches!(left, [left] if left.frame == seen.before);
        if went_on && is_same && self.rules.is_empty() {
            String::new()
        } else if went_on && self.rules.is_empty() && seen.is_begun {
            "changed: checksums and lengths that were left to the sender's card".to_owned()
        } else if went_on {
            format!("changed{by}")
        } else if let Some(reason) = self.dropped {
            format!("dropped{by}: {} ({})", reason.meaning().trim_end_matches('.'), reason.word())
        } else if !left.is_empty() {
            format!("answered{by}")
        } else if self.is_held {
            format!("held{by} until all of its packet is there; else it is dropped")
        } else {
            format!("taken up{by}: what it says leaves with another frame")
        }
    }
}
