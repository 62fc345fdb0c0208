//! The record of what was done: what is in it, and that no change of it goes unnoticed.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::audit::{Act, Doubt};
use authority::directory::{Delivery, Invitation, Pace, Record, Restored, Sharing, acting, change_policy, note};
use authority::files::Overwrite;
use authority::limits::{AUDIT_FILE_LEN, AUDIT_FILES, SITE_VALIDITY};
use authority::{Directory, Error, Request};
use common::random;
use identity::Profile;
use identity::certificate::Role;
use proptest::prelude::*;
use tempfile::TempDir;
use wire::MacAddress;

/// 2027-01-15T08:00:00Z.
const NOW_UNIX_S: u64 = 1_800_000_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct Stage {
    place: TempDir,
    site: Directory,
}

impl Stage {
    fn set() -> Stage {
        let place = tempfile::tempdir().expect("directory");
        let path = place.path().join("site");
        let site = Directory::init(&path, "lab", SITE_VALIDITY, Profile::Modern, &mut random(1), NOW_UNIX_S);
        Stage { site: acting(site.expect("site"), "tester"), place }
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("site")
    }

    fn issue(&self, name: &str, last: u8, role: Role) {
        let file = self.place.path().join(format!("{name}.pem"));
        let delivery = Delivery { output: &file, overwrite: Overwrite::Force, sharing: Sharing::Refused };
        let request = Request::new(name, MacAddress([2, 0, 0, 0, 0, last]), vec![[10, 0, 0, last].into()]);
        let request = request.expect("a request").with_role(role);
        self.site.issue_identity(&request, &delivery, &mut random(last), NOW_UNIX_S).expect("issued");
    }

    fn note(&self, about: &str) {
        note(&self.site, Act::Policy, about, "a change", NOW_UNIX_S).expect("noted");
    }

    fn check(&self) -> Result<Vec<(String, String, String)>, Doubt> {
        let checked = Record::from(&self.site).check(None).expect("read")?;
        Ok(checked.entries.into_iter().map(|kept| (kept.entry.by, kept.entry.act, kept.entry.about)).collect())
    }
}

#[test]
fn every_act_is_told_with_who_did_it_and_refused_ones_are_not() {
    let mut stage = Stage::set();
    assert_eq!(stage.check(), Ok(Vec::new()));
    stage.issue("keys", 9, Role::Distributor);
    stage.issue("a", 1, Role::Host);
    let invitation = Invitation {
        name: "b".to_owned(),
        role: Role::Host,
        mac: None,
        addresses: Vec::new(),
        subnets: Vec::new(),
        preapproved: false,
        by_service: false,
        validity: DAY,
        valid: DAY,
    };
    stage.site.invite(&invitation, &mut random(3), NOW_UNIX_S).expect("a token");
    stage.site.refuse("b", NOW_UNIX_S).expect("refused");
    stage.site.refuse("b", NOW_UNIX_S).expect_err("refused already");
    change_policy(&stage.site, NOW_UNIX_S, |_| Ok::<(), Error>(())).expect("a policy");
    change_policy(&stage.site, NOW_UNIX_S, |_| Err(Error::NoSite)).expect_err("no policy");
    stage.site.revoke("a", NOW_UNIX_S).expect("revoked");
    stage.site.revoke("nobody", NOW_UNIX_S).expect("nothing to do");
    stage.site.rekey_shared(Pace::default(), &mut random(4), NOW_UNIX_S).expect("other keys");
    let told = stage.check().expect("whole");
    let told: Vec<(&str, &str)> = told.iter().map(|(_, act, about)| (act.as_str(), about.as_str())).collect();
    let wanted = [
        ("issued", "keys"),
        ("issued", "a"),
        ("invited", "b"),
        ("refused", "b"),
        ("policy", "version 1"),
        ("revoked", "a"),
        ("shared-keys", "generation 1"),
    ];
    assert_eq!(told, wanted);
    assert!(stage.check().expect("whole").iter().all(|(by, ..)| by == "tester"));
}

#[test]
fn a_certificate_that_no_entry_tells_of_is_found_and_so_is_a_record_that_is_gone() {
    let stage = Stage::set();
    stage.issue("a", 1, Role::Host);
    let before = pictures(&stage.path());
    stage.issue("b", 2, Role::Host);
    let whole = pictures(&stage.path());
    // Somebody puts the record back as it was before, head and all.
    restore(&stage.path(), &before);
    assert!(matches!(stage.check(), Err(Doubt::Untold(_))), "{:?}", stage.check());
    restore(&stage.path(), &[]);
    assert_eq!(stage.check(), Err(Doubt::Empty));
    restore(&stage.path(), &whole);
    assert_eq!(stage.check().map(|told| told.len()), Ok(2));
}

#[test]
fn an_entry_that_was_noted_elsewhere_is_found_again_or_missed() {
    let stage = Stage::set();
    stage.note("1");
    let before = pictures(&stage.path());
    stage.note("2");
    let noted = Record::from(&stage.site).check(None).expect("read").expect("whole");
    stage.note("3");
    let check = |number, digest: &str| Record::from(&stage.site).check(Some((number, digest))).expect("read").map(drop);
    assert_eq!(check(2, &noted.digest), Ok(()));
    assert_eq!(check(1, &noted.digest), Err(Doubt::Noted(1)));
    restore(&stage.path(), &before);
    assert_eq!(check(2, &noted.digest), Err(Doubt::Noted(2)), "cut off with an older head");
    restore(&stage.path(), &[]);
    assert_eq!(check(2, &noted.digest), Err(Doubt::Noted(2)), "gone");
}

/// What a machine that goes down leaves: a line in part, or a whole one that the head lacks.
#[test]
fn a_crash_between_line_and_head_costs_nothing_that_was_told() {
    let stage = Stage::set();
    stage.note("1");
    let (log, head) = (stage.path().join("audit.jsonl"), stage.path().join("audit.head"));
    let (one, head_of_one) = (fs::read(&log).expect("there"), fs::read(&head).expect("there"));
    stage.note("2");
    let two = fs::read(&log).expect("there");
    for cut in one.len()..=two.len() {
        fs::write(&log, &two[..cut]).expect("written");
        fs::write(&head, &head_of_one).expect("written");
        stage.note("next");
        let about: Vec<String> = stage.check().expect("whole").into_iter().map(|(_, _, about)| about).collect();
        let wanted: &[&str] = if cut == two.len() { &["1", "2", "next"] } else { &["1", "next"] };
        assert_eq!(about, wanted, "{cut} of {} bytes", two.len());
    }
}

/// A damaged head is no reason to lose what was told, or to tell no more.
#[test]
fn without_its_head_it_goes_on_behind_the_last_entry() {
    let stage = Stage::set();
    stage.note("1");
    stage.note("2");
    let head = stage.path().join("audit.head");
    for damage in [&b"{}"[..], &[0xff; 10], b""] {
        fs::write(&head, damage).expect("written");
        assert_eq!(stage.check(), Err(Doubt::Head));
    }
    fs::remove_file(&head).expect("removed");
    assert_eq!(stage.check(), Err(Doubt::Head));
    stage.note("3");
    assert_eq!(stage.check().map(|told| told.len()), Ok(3));
}

#[test]
fn the_highest_number_in_a_changed_head_or_line_is_a_doubt() {
    let stage = Stage::set();
    let (log, head) = (stage.path().join("audit.jsonl"), stage.path().join("audit.head"));
    ["1", "2"].iter().for_each(|about| stage.note(about));
    let (whole_log, whole_head) = (fs::read_to_string(&log).expect("there"), fs::read_to_string(&head).expect("there"));
    let highest = |text: &str, number: u64| {
        let changed = text.replace(&format!("\"number\":{number},"), &format!("\"number\":{},", u64::MAX));
        assert_ne!(changed, text);
        changed
    };
    let page = || Record::from(&stage.site).acts_before(None, 9).expect("read").map(|found| found.len());
    fs::write(&head, highest(&whole_head, 2)).expect("written");
    assert_eq!((stage.check(), page()), (Err(Doubt::End(u64::MAX, 2)), Err(Doubt::End(u64::MAX, 2))));
    stage.note("3");
    stage.note("4");
    let doubt = Doubt::Missing(3, u64::MAX);
    assert_eq!((stage.check(), page()), (Err(doubt.clone()), Err(doubt)), "and goes on behind it");
    fs::write(&head, &whole_head).expect("put back");
    for (number, doubt) in [(1, Doubt::Signature(u64::MAX)), (2, Doubt::Missing(2, u64::MAX))] {
        fs::write(&log, highest(&whole_log, number)).expect("written");
        assert_eq!((stage.check(), page()), (Err(doubt.clone()), Err(doubt)), "line {number}");
    }
    fs::write(&log, &whole_log).expect("put back");
    assert_eq!(page(), Ok(2));
}

#[test]
fn it_is_rotated_and_the_earliest_entries_go_by_an_entry_that_says_so() {
    let stage = Stage::set();
    let (log, head) = (stage.path().join("audit.jsonl"), stage.path().join("audit.head"));
    // Files are full sooner than in the life of a site: blanks would be found, so the head alone
    // says that there is more, as it does before a rotation.
    for number in 0..=AUDIT_FILES + 2 {
        stage.note(&number.to_string());
        let text = fs::read_to_string(&head).expect("there");
        let length = fs::metadata(&log).expect("there").len();
        let full = text.replace(&format!("\"length\":{length}}}"), &format!("\"length\":{AUDIT_FILE_LEN}}}"));
        assert_ne!(text, full);
        fs::write(&head, full).expect("written");
        fill(&log);
    }
    stage.note("last");
    let files = fs::read_dir(stage.path()).expect("listed").filter_map(Result::ok);
    let files = files.filter(|file| file.file_name().to_string_lossy().starts_with("audit.0")).count();
    assert_eq!(files, AUDIT_FILES);
    unfill(&stage.path());
    let told = stage.check().expect("whole");
    assert_eq!(told.last().map(|(_, _, about)| about.as_str()), Some("last"));
    // Each file has one or two, so the newest ones are in several.
    for count in [1, 2, 10, told.len(), told.len() + 1] {
        let newest = Record::from(&stage.site).acts_before(None, count).expect("read").expect("whole");
        let about: Vec<String> = newest.into_iter().map(|kept| kept.entry.about).collect();
        let wanted = told[told.len().saturating_sub(count)..].iter().map(|(_, _, about)| about.clone());
        assert_eq!(about, wanted.collect::<Vec<_>>());
    }
    let first = told.len() as u64;
    let first =
        Record::from(&stage.site).acts_before(None, 1).expect("read").expect("whole")[0].entry.number + 1 - first;
    for (before, count) in [(first, 5), (first + 1, 5), (first + 4, 2), (first + 9, 100), (first + 60, 3)] {
        let page = Record::from(&stage.site).acts_before(Some(before), count).expect("read").expect("whole");
        let numbers: Vec<u64> = page.into_iter().map(|kept| kept.entry.number).collect();
        assert_eq!(numbers, (first.max(before.saturating_sub(count as u64))..before).collect::<Vec<_>>());
    }
    let shortened: Vec<_> = told.iter().filter(|(_, act, _)| act == "shortened").collect();
    assert!(!shortened.is_empty());
    let first = fs::read_dir(stage.path()).expect("listed").filter_map(Result::ok).map(|file| file.file_name());
    let first = first.filter(|name| name.to_string_lossy().starts_with("audit.0")).min().expect("one");
    fs::remove_file(stage.path().join(first)).expect("removed");
    assert!(matches!(stage.check(), Err(Doubt::Beginning(_))), "{:?}", stage.check().map(drop));
    let newest = |count| Record::from(&stage.site).acts_before(None, count).expect("read").map(|found| found.len());
    assert_eq!(newest(2), Ok(2), "what was taken away is before these");
    assert!(matches!(newest(told.len()), Err(Doubt::Beginning(_))), "{:?}", newest(told.len()));
}

#[test]
fn the_newest_entries_are_judged_without_those_before_them() {
    let stage = Stage::set();
    let newest = |count| {
        let read = Record::from(&stage.site).acts_before(None, count).expect("read")?;
        Ok(read.into_iter().map(|kept| kept.entry.number).collect::<Vec<_>>())
    };
    assert_eq!(newest(5), Ok(vec![]), "nothing was done yet");
    (1..=9).for_each(|number| stage.note(&number.to_string()));
    assert_eq!(newest(3), Ok(vec![7, 8, 9]));
    assert_eq!(newest(20), Ok((1..=9).collect()));
    let log = stage.path().join("audit.jsonl");
    let whole = fs::read_to_string(&log).expect("there");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let changed = |at: usize| {
        let line = lines[at - 1].replace("a change", "a chance");
        fs::write(&log, [&lines[..at - 1], &[line.as_str()], &lines[at..]].concat().concat()).expect("written");
    };
    changed(6);
    assert_eq!((newest(3), newest(4)), (Ok(vec![7, 8, 9]), Err(Doubt::Signature(6))));
    changed(8);
    assert_eq!(newest(3), Err(Doubt::Signature(8)));
    fs::write(&log, lines[..8].concat()).expect("cut off");
    assert_eq!(newest(3), Err(Doubt::End(9, 8)));
    fs::write(&log, [&lines[..7], &lines[8..]].concat().concat()).expect("one taken out");
    assert_eq!(newest(3), Err(Doubt::Missing(8, 9)));
    fs::write(&log, "").expect("emptied");
    assert_eq!(newest(3), Err(Doubt::Head));
}

#[test]
fn a_page_ends_before_the_entry_that_is_named_and_is_judged_up_to_it() {
    let stage = Stage::set();
    let page = |before, count| {
        let read = Record::from(&stage.site).acts_before(Some(before), count).expect("read")?;
        Ok(read.into_iter().map(|kept| kept.entry.number).collect::<Vec<_>>())
    };
    assert_eq!(page(7, 5), Ok(vec![]), "nothing was done yet");
    (1..=9).for_each(|number| stage.note(&number.to_string()));
    for (before, count, wanted) in [
        (7, 3, vec![4, 5, 6]),
        (4, 3, vec![1, 2, 3]),
        (3, 9, vec![1, 2]),
        (1, 3, vec![]),
        (0, 3, vec![]),
        (9, 2, vec![7, 8]),
        (10, 2, vec![8, 9]),
        (u64::MAX, usize::MAX, (1..=9).collect()),
    ] {
        assert_eq!(page(before, count), Ok(wanted), "{count} before {before}");
    }
    let log = stage.path().join("audit.jsonl");
    let whole = fs::read_to_string(&log).expect("there");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for (changed, wanted) in [(3, Ok(vec![4, 5, 6])), (5, Err(Doubt::Signature(5))), (8, Ok(vec![4, 5, 6]))] {
        let line = lines[changed - 1].replace("a change", "a chance");
        fs::write(&log, [&lines[..changed - 1], &[line.as_str()], &lines[changed..]].concat().concat())
            .expect("written");
        assert_eq!(page(7, 3), wanted, "{changed} was changed");
    }
    // Without the one that has its digest, the last of a page could be another.
    fs::write(&log, [&lines[..6], &lines[7..]].concat().concat()).expect("one taken out");
    assert_eq!((page(7, 3), page(6, 2)), (Err(Doubt::Missing(7, 6)), Ok(vec![4, 5])));
    fs::write(&log, lines[1..].concat()).expect("the first taken out");
    assert_eq!((page(4, 9), page(4, 1)), (Ok(vec![2, 3]), Ok(vec![3])));
}

/// With the file that was read last counted as read, though it was not, this was a doubt.
#[test]
fn the_newest_entries_may_begin_where_a_file_does() {
    let stage = Stage::set();
    let (log, head) = (stage.path().join("audit.jsonl"), stage.path().join("audit.head"));
    stage.note("1");
    let text = fs::read_to_string(&head).expect("there");
    let length = fs::metadata(&log).expect("there").len();
    fs::write(&head, text.replace(&format!(":{length}}}"), &format!(":{AUDIT_FILE_LEN}}}"))).expect("written");
    fill(&log);
    ["2", "3"].into_iter().for_each(|about| stage.note(about));
    unfill(&stage.path());
    let newest = |count| Record::from(&stage.site).acts_before(None, count).expect("read").map(|found| found.len());
    assert_eq!([newest(1), newest(2), newest(3)], [Ok(1), Ok(2), Ok(3)]);
}

/// Makes a file as long as a full one, with a hole behind what it holds.
fn fill(log: &Path) {
    fs::OpenOptions::new().write(true).open(log).and_then(|file| file.set_len(AUDIT_FILE_LEN)).expect("filled");
}

/// Takes the holes out again.
fn unfill(directory: &Path) {
    for (name, bytes) in pictures(directory) {
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        fs::write(directory.join(name), &bytes[..end]).expect("written");
    }
}

#[test]
fn a_backup_has_the_record() {
    let stage = Stage::set();
    stage.note("1");
    let backup = stage.place.path().join("backup");
    stage.site.backup(&backup).expect("kept");
    let restored = Directory::restore(&backup, &stage.place.path().join("again"), Restored::AsItWas).expect("restored");
    assert_eq!(Record::from(&restored).check(None).expect("read").expect("whole").entries.len(), 1);
    note(&restored, Act::Restored, "backup", "", NOW_UNIX_S).expect("noted");
    assert_eq!(Record::from(&restored).check(None).expect("read").expect("whole").entries.len(), 2);
}

/// The files of the record with their contents.
fn pictures(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let names = fs::read_dir(directory).expect("listed").filter_map(Result::ok).map(|file| file.file_name());
    let names = names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with("audit."));
    let mut found: Vec<_> = names.map(|name| (fs::read(directory.join(&name)).expect("there"), name)).collect();
    found.sort_by(|one, other| one.1.cmp(&other.1));
    found.into_iter().map(|(bytes, name)| (name, bytes)).collect()
}

fn restore(directory: &Path, pictures_: &[(String, Vec<u8>)]) {
    for (name, _) in pictures(directory) {
        fs::remove_file(directory.join(name)).expect("removed");
    }
    for (name, bytes) in pictures_ {
        fs::write(directory.join(name), bytes).expect("written");
    }
}

/// What somebody without the key does to the record.
#[derive(Clone, Debug)]
enum Tampering {
    Byte(usize, u8),
    Cut(usize),
    Without(usize),
    Swapped(usize, usize),
    Twice(usize),
    HeadByte(usize, u8),
}

fn tampering() -> impl Strategy<Value = Tampering> {
    let any = 0_usize..100_000;
    prop_oneof![
        (any.clone(), 1_u8..).prop_map(|(at, flip)| Tampering::Byte(at, flip)),
        any.clone().prop_map(Tampering::Cut),
        any.clone().prop_map(Tampering::Without),
        (any.clone(), any.clone()).prop_map(|(one, other)| Tampering::Swapped(one, other)),
        any.clone().prop_map(Tampering::Twice),
        (any, 1_u8..).prop_map(|(at, flip)| Tampering::HeadByte(at, flip)),
    ]
}

fn flip(bytes: &mut [u8], at: usize, by: u8) {
    let at = at % bytes.len();
    bytes[at] ^= by;
}

fn tampered(log: &[u8], how: &Tampering) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let count = lines.len();
    match how {
        Tampering::Byte(at, by) => {
            let mut bytes = log.to_vec();
            flip(&mut bytes, *at, *by);
            return bytes;
        }
        Tampering::Cut(at) => return log[..at % log.len()].to_vec(),
        Tampering::Without(one) => drop(lines.remove(one % count)),
        Tampering::Swapped(one, other) => lines.swap(one % count, other % count),
        Tampering::Twice(one) => lines.insert(one % count, lines[one % count]),
        Tampering::HeadByte(..) => {}
    }
    lines.concat()
}

proptest! {
    /// With the check of `before` left out two entries of one number went unnoticed; with that of
    /// the head, a cut.
    #[test]
    fn no_tampering_goes_unnoticed(how in tampering()) {
        thread_local! {
            static STAGE: Stage = {
                let stage = Stage::set();
                (1..=6).for_each(|number| stage.note(&format!("change {number}")));
                stage
            };
        }
        STAGE.with(|stage| {
            let (log, head) = (stage.path().join("audit.jsonl"), stage.path().join("audit.head"));
            let [whole, head_before] = [&log, &head].map(|file| fs::read(file).expect("there"));
            let changed = tampered(&whole, &how);
            fs::write(&log, &changed).expect("written");
            let mut head_now = head_before.clone();
            if let Tampering::HeadByte(at, by) = how {
                flip(&mut head_now, at, by);
                fs::write(&head, &head_now).expect("written");
            }
            let checked = stage.check();
            fs::write(&log, &whole).expect("written");
            fs::write(&head, &head_before).expect("written");
            prop_assert_eq!(checked.is_ok(), changed == whole && head_now == head_before, "{:?}", how);
            prop_assert_eq!(stage.check().map(|told| told.len()), Ok(6));
            Ok(())
        })?;
    }
}
