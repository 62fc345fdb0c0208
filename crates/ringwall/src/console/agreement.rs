//! Counts agree: what was dropped for which reason is the same number in the command line, in JSON,
//! in metrics, in the console, and, as a sum, in a report to the site.

use std::collections::BTreeMap;

use bump::DropReason;
use proptest::prelude::*;

use super::tests::{look_answering, told};
use super::{Question, Reply, What, pages};
use crate::metrics::tests::{prometheus, signed_arp};
use crate::modes::part::Account as _;
use crate::protocol::{Answer, Measured};
use crate::report::tests::of_status;
use crate::status::Status;

type Counts = BTreeMap<String, u64>;

/// A host's state with these counts. Its mode shows no other counts by reason.
fn status(counts: &Counts) -> Status {
    let Answer::Status(status) = *signed_arp().status else { panic!("a host") };
    Status { drops: counts.clone(), ..*status }
}

fn is_reason(word: &str) -> bool {
    DropReason::ALL.iter().any(|reason| reason.word() == word)
}

/// Reasons that occurred; zeros are shown in some places and left out in others.
fn occurred(found: impl Iterator<Item = (String, u64)>) -> Counts {
    let mut counts = Counts::new();
    for (reason, count) in found.filter(|(reason, count)| *count > 0 && is_reason(reason)) {
        assert_eq!(counts.insert(reason.clone(), count), None, "{reason} stands there twice");
    }
    counts
}

fn in_command_line(status: &Status) -> Counts {
    occurred(status.lines().iter().filter_map(|line| {
        let (count, reason) = line.trim().split_once("  ")?;
        Some((reason.to_owned(), count.parse().ok()?))
    }))
}

fn in_json(status: &Status) -> Counts {
    let value = serde_json::to_value(Answer::Status(Box::new(status.clone()))).expect("JSON");
    let drops = value["drops"].as_object().expect("counts").clone();
    occurred(drops.into_iter().map(|(reason, count)| (reason, count.as_u64().expect("a number"))))
}

fn in_metrics(status: &Status) -> Counts {
    let told = Box::new(Answer::Status(Box::new(status.clone())));
    let text = prometheus(&Measured { status: told, ..signed_arp() });
    occurred(text.lines().filter(|line| line.starts_with("ringwall_dropped_frames")).filter_map(|line| {
        let (_, rest) = line.split_once("reason=\"")?;
        let (reason, rest) = rest.split_once('"')?;
        Some((reason.to_owned(), rest.rsplit_once(' ')?.1.parse().expect("a number")))
    }))
}

fn in_console(status: &Status) -> Counts {
    let answer = Answer::Status(Box::new(status.clone()));
    let look = look_answering(move |question| match question {
        Question::Daemons => Reply::Daemons(vec!["e1".to_owned()]),
        Question::Ask { what: What::Status, .. } => told(&answer),
        _ => Reply::Silent("nothing else".to_owned()),
    });
    let page = pages::drops(&look).expect("a page");
    occurred(page.lines().filter_map(|line| {
        let (reason, rest) = line.strip_prefix("<h2>")?.split_once(" <span class=\"count\">")?;
        let count = rest.split_once('<')?.0.replace('\u{202f}', "");
        Some((reason.to_owned(), count.parse().expect("a number")))
    }))
}

/// All reasons, some of which occurred: seldom, often, or so often that a float would round.
fn counts() -> impl Strategy<Value = Counts> {
    let count = prop_oneof![Just(0), 1_u64..1000, 1_u64 << 40..1 << 55];
    proptest::collection::vec(count, DropReason::ALL.len())
        .prop_map(|counts| DropReason::ALL.iter().map(|reason| reason.word().to_owned()).zip(counts).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_counts_by_reason_are_the_same_wherever_they_are_read(counts in counts()) {
        let status = status(&counts);
        let wanted = occurred(counts.into_iter());
        prop_assert_eq!(&in_command_line(&status), &wanted);
        prop_assert_eq!(&in_json(&status), &wanted);
        prop_assert_eq!(&in_metrics(&status), &wanted);
        prop_assert_eq!(&in_console(&status), &wanted);
        prop_assert_eq!(of_status(&status).dropped, Some(wanted.values().sum::<u64>()));
    }
}
