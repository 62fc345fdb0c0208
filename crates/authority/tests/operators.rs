//! The operators of a site: who is one, since when, and until when.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use authority::audit::{Doubt, RefusedOrders};
use authority::directory::{
    KnownOperator, Record, Restored, acting, add_operator, add_operator_by_request, begin_order, put_down_refused,
    remove_operator,
};
use authority::files::Overwrite;
use authority::limits::{MAX_OPERATORS, MAX_REFUSED_COMMANDS, MAX_REFUSED_OPERATORS};
use authority::{Directory, Error, enrolment};
use identity::certificate::OperatorRequest;
use identity::certificate::OperatorRole::{self, Manager, Viewer};
use identity::order::Operator;
use identity::{Profile, pem};

const NOW: u64 = 1_800_000_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct Stage {
    place: tempfile::TempDir,
    site: Directory,
}

impl Stage {
    fn set() -> Stage {
        let place = tempfile::tempdir().expect("directory");
        let path = place.path().join("site");
        let site = Directory::init(&path, "lab", 3650 * DAY, Profile::Modern, &mut random(), NOW).expect("founded");
        Stage { site: acting(site, "tester"), place }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(format!("{name}.pem"))
    }

    fn add(&self, name: &str, role: OperatorRole) -> Result<KnownOperator, Error> {
        let output = self.file(name);
        add_operator(&self.site, (name, role), 90 * DAY, (&output, Overwrite::Force), &mut random(), NOW)
    }

    fn names(&self) -> Vec<String> {
        let found = Record::from(&self.site).operators().expect("read");
        found.iter().map(|one| format!("{} {}", one.certificate.role(), one.certificate.name())).collect()
    }
}

impl Stage {
    fn refuse(&self, known: &KnownOperator, command: &str, detail: &str, unix_s: u64) -> Result<(), Error> {
        put_down_refused(&self.site, &known.certificate, (command, detail), unix_s)
    }

    fn refused(&self, of: Option<&str>) -> Vec<RefusedOrders> {
        Record::from(&self.site).refused_orders(of, usize::MAX).expect("read").expect("signed")
    }

    fn check(&self) -> Result<usize, Doubt> {
        Record::from(&self.site).check(None).expect("read").map(|checked| checked.entries.len())
    }
}

/// Other bytes with each call.
fn random() -> impl FnMut(&mut [u8]) {
    static CALLS: AtomicU8 = AtomicU8::new(0);
    common::random(CALLS.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn whoever_has_made_his_key_himself_is_an_operator_and_his_key_was_nowhere_else() {
    let stage = Stage::set();
    let made = enrolment::operator_request("ann", &mut random()).expect("made");
    let asked = OperatorRequest::from_pem(&made.request_pem).expect("signed");
    let output = stage.file("ann");
    let (file, days) = ((output.as_path(), Overwrite::Force), 90 * DAY);
    let by_request = |asked: &OperatorRequest, role| {
        add_operator_by_request(&stage.site, (asked, role), days, file, &mut random(), NOW)
    };
    let known = by_request(&asked, Manager).expect("added");
    assert_eq!((stage.names(), known.certificate.name()), (vec!["manager ann".to_owned()], "ann"));
    let given = fs::read_to_string(&output).expect("there");
    assert!(!given.contains("PRIVATE KEY"));
    let own = Operator::from_pem(&format!("{given}{}", *made.key_pem)).expect("one behind the other");
    let order = own.sign(b"an order").expect("signed");
    let heard = stage.site.site().anchor().verify_order(&order, NOW).expect("his");
    assert!(Record::from(&stage.site).has_operator(&heard).expect("read"));
    // The file serves nobody else, and who has the name again has other keys.
    let other = enrolment::operator_request("ann", &mut random()).expect("made");
    assert!(Operator::from_pem(&format!("{given}{}", *other.key_pem)).is_err());
    stage.add("ann", Viewer).expect("again");
    assert!(!Record::from(&stage.site).has_operator(&heard).expect("read"));
    assert!(enrolment::operator_request("no name", &mut random()).is_err());
}

#[test]
fn a_request_that_its_key_has_not_signed_is_none() {
    let made = enrolment::operator_request("ann", &mut random()).expect("made");
    let der = pem::single(&made.request_pem, pem::CERTIFICATE_REQUEST).expect("one block");
    for at in [der.len() - 1, der.len() / 2, 20] {
        let mut changed = der.to_vec();
        changed[at] ^= 1;
        let text = pem::encode(pem::CERTIFICATE_REQUEST, &changed);
        assert!(OperatorRequest::from_pem(&text).is_err(), "byte {at}");
    }
    assert!(OperatorRequest::from_pem(&made.key_pem).is_err());
}

#[test]
fn an_operator_is_one_from_when_he_is_added_until_he_is_removed() {
    let stage = Stage::set();
    let known = stage.add("ann", Manager).expect("added");
    stage.add("bob", Viewer).expect("added");
    assert_eq!(stage.names(), ["manager ann", "viewer bob"]);
    let own = Operator::from_pem(&fs::read_to_string(stage.file("ann")).expect("there")).expect("his file");
    assert_eq!((own.certificate().name(), own.certificate().role()), ("ann", Manager));
    // As the service has it, which has no key of the site.
    let record = Record::open(&stage.place.path().join("site")).expect("without keys");
    let has = |who: &KnownOperator| record.has_operator(&who.certificate).expect("read");
    assert!(has(&known));
    let again = stage.add("ann", Viewer).expect("with another role");
    assert!(has(&again) && !has(&known), "one certificate for each name");
    assert_eq!(stage.names(), ["viewer ann", "viewer bob"]);
    remove_operator(&stage.site, "ann", NOW).expect("removed");
    assert!(!has(&again) && stage.names() == ["viewer bob"]);
    assert!(matches!(remove_operator(&stage.site, "ann", NOW), Err(Error::NoOperator(_))));
    let acts: Vec<String> = record
        .check(None)
        .expect("read")
        .expect("whole")
        .entries
        .into_iter()
        .map(|kept| format!("{} {}", kept.entry.act, kept.entry.about))
        .collect();
    let wanted = ["operator-added ann", "operator-added bob", "operator-added ann", "operator-removed ann"];
    assert_eq!(acts, wanted);
}

#[test]
fn an_order_is_begun_once_and_an_older_one_never() {
    let stage = Stage::set();
    let ann = stage.add("ann", Manager).expect("added").certificate;
    let bob = stage.add("bob", Manager).expect("added").certificate;
    let begin = |who, at| begin_order(&stage.site, who, at).expect("read");
    assert!(begin(&ann, 1000) && !begin(&ann, 1000) && !begin(&ann, 999) && begin(&bob, 999) && begin(&ann, 1001));
    let again = stage.add("ann", Manager).expect("other keys").certificate;
    assert!(!begin(&ann, 2000), "the certificate before");
    assert!(!begin(&again, 1001) && begin(&again, 1002));
    remove_operator(&stage.site, "ann", NOW).expect("removed");
    assert!(!begin(&again, 3000));
}

#[test]
fn there_are_no_more_than_so_many_and_what_cannot_be_written_down_is_not_done() {
    let stage = Stage::set();
    for number in 0..MAX_OPERATORS {
        stage.add(&format!("o{number}"), Viewer).expect("added");
    }
    assert!(matches!(stage.add("more", Viewer), Err(Error::TooManyOperators(MAX_OPERATORS))));
    stage.add("o7", Manager).expect("in his own place");
    assert_eq!(Record::from(&stage.site).operators().expect("read").len(), MAX_OPERATORS, "and all are read");
    let nowhere = (stage.place.path().join("no/where.pem"), Overwrite::Never);
    let failed = add_operator(&stage.site, ("o8", Manager), 90 * DAY, (&nowhere.0, nowhere.1), &mut random(), NOW);
    assert!(failed.is_err() && stage.names().contains(&"viewer o8".to_owned()));
    remove_operator(&stage.site, "o9", NOW).expect("removed");
    assert!(matches!(stage.add("a b", Viewer), Err(Error::BadName(_))));
}

#[test]
fn operators_come_back_with_a_backup_and_one_whom_no_entry_tells_of_is_found() {
    let stage = Stage::set();
    stage.add("ann", Manager).expect("added");
    let file = stage.place.path().join("backup");
    stage.site.backup(&file).expect("kept");
    let there = stage.place.path().join("again");
    let restored = Directory::restore(&file, &there, Restored::AsItWas).expect("restored");
    assert_eq!(Record::from(&restored).operators().expect("read").len(), 1);
    // Whoever has the authority's key for a moment makes himself one, and takes the entry out.
    let record = Record::from(&restored);
    for name in ["audit.jsonl", "audit.head"] {
        fs::copy(there.join(name), stage.place.path().join(name)).expect("copied");
    }
    let output = stage.file("eve");
    add_operator(&restored, ("eve", Manager), 90 * DAY, (&output, Overwrite::Force), &mut random(), NOW).expect("hers");
    for name in ["audit.jsonl", "audit.head"] {
        fs::copy(stage.place.path().join(name), there.join(name)).expect("copied");
    }
    let doubt = record.check(None).expect("read").expect_err("untold").to_string();
    assert!(doubt.contains("was issued, and no entry says so"), "{doubt}");
    fs::write(there.join("operators.json"), "[]x").expect("damaged");
    assert!(record.operators().is_err());
}

#[test]
fn refused_orders_are_counted_and_what_was_first_stays() {
    let stage = Stage::set();
    let [ann, bob] = ["ann", "bob"].map(|name| stage.add(name, Viewer).expect("added"));
    for turn in 0..50 {
        stage.refuse(&ann, "revoke", &format!("needs manager: revoke --name {turn}"), NOW + turn).expect("counted");
    }
    stage.refuse(&bob, "revoke", "needs manager: revoke --name boss", NOW + 60).expect("counted");
    stage.refuse(&ann, "policy mode", "needs manager: policy mode * none", NOW + 70).expect("counted");
    assert_eq!(stage.check(), Ok(4), "both were added, and the first of each was refused");
    let told: Vec<(String, String, u64, u64, String, u64)> = stage
        .refused(None)
        .iter()
        .map(|one| {
            let (first, newest) = (&one.first.entry, &one.newest.entry);
            let last = newest.detail.rsplit(' ').next().unwrap_or_default().to_owned();
            (one.operator.clone(), one.command().to_owned(), one.count(), first.unix_s, last, newest.unix_s)
        })
        .collect();
    let row = |who: &str, command: &str, count, first_s, last: &str, last_s| {
        (who.to_owned(), command.to_owned(), count, first_s, last.to_owned(), last_s)
    };
    let wanted = [
        row("ann", "revoke", 50, NOW, "49", NOW + 49),
        row("bob", "revoke", 1, NOW + 60, "boss", NOW + 60),
        row("ann", "policy mode", 1, NOW + 70, "none", NOW + 70),
    ];
    assert_eq!(told, wanted);
    assert_eq!(stage.refused(None)[0].first.entry.detail, "needs manager: revoke --name 0");
    assert_eq!((stage.refused(Some("bob")).len(), stage.refused(Some("no/body")).len()), (1, 0));
    // Whoever makes commands up fills his own file, and that to its limit.
    (0..=MAX_REFUSED_COMMANDS).for_each(|one| stage.refuse(&bob, &format!("c{one}"), "made up", NOW).expect("counted"));
    let of_bob = stage.refused(Some("bob"));
    let others = of_bob.iter().find(|one| one.command() == "others").expect("one for the rest");
    assert_eq!((of_bob.len(), others.count(), stage.refused(Some("ann")).len()), (MAX_REFUSED_COMMANDS + 1, 2, 2));
}

#[test]
fn a_change_of_refused_orders_is_found_and_a_backup_has_them() {
    let stage = Stage::set();
    let [ann, bob] = ["ann", "bob"].map(|name| stage.add(name, Viewer).expect("added"));
    for who in [&ann, &ann, &bob] {
        stage.refuse(who, "revoke", "needs manager: revoke --name boss", NOW).expect("counted");
    }
    let kept = stage.place.path().join("backup");
    stage.site.backup(&kept).expect("kept");
    let restored = Directory::restore(&kept, &stage.place.path().join("again"), Restored::AsItWas).expect("restored");
    let again = Record::from(&restored).refused_orders(None, 9).expect("read").expect("signed");
    assert_eq!(again, stage.refused(None));
    let of = |name: &str| stage.place.path().join(format!("site/refused.{name}.jsonl"));
    let whole = fs::read_to_string(of("ann")).expect("there");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let newest = lines[1].replace(r#""number":2"#, r#""number":3"#);
    for (changed, what) in [
        (whole.replace("boss", "desk"), "another order"),
        (lines[0].to_owned() + &newest, "another count"),
        (lines[1].to_owned(), "without the first"),
        (whole.repeat(2), "twice"),
        (fs::read_to_string(of("bob")).expect("there"), "of somebody else"),
        (whole.trim_end().to_owned(), "cut off"),
    ] {
        assert_ne!(changed, whole, "{what}");
        fs::write(of("ann"), &changed).expect("written");
        assert_eq!(stage.check(), Err(Doubt::Refused("ann".to_owned())), "{what}");
        let more = stage.refuse(&ann, "revoke", "needs manager", NOW).expect_err(what);
        assert!(more.to_string().contains("refused.ann.jsonl"), "{more}");
        assert_eq!(fs::read_to_string(of("ann")).expect("there"), changed, "nothing made up is signed");
    }
    let missing = || Err(Doubt::NoRefused("ann".to_owned()));
    fs::write(of("ann"), "").expect("emptied");
    assert_eq!(stage.check(), missing());
    fs::remove_file(of("ann")).expect("removed");
    assert_eq!(stage.check(), missing());
    fs::write(of("ann"), &whole).expect("put back");
    assert_eq!(stage.check(), Ok(4));
}

#[test]
fn a_file_of_refused_orders_that_was_taken_away_is_found_when_there_is_another_one() {
    let stage = Stage::set();
    let ann = stage.add("ann", Viewer).expect("added");
    let refuse = || stage.refuse(&ann, "revoke", "needs manager: revoke --name boss", NOW).expect("counted");
    refuse();
    let file = stage.place.path().join("site/refused.ann.jsonl");
    let earlier = fs::read_to_string(&file).expect("there");
    for removed in [true, false] {
        let take_away = || if removed { fs::remove_file(&file) } else { fs::write(&file, "") };
        take_away().expect("taken away");
        refuse();
        assert_eq!(stage.refused(None).len(), 1);
        assert_eq!(stage.check(), Err(Doubt::EarlierRefused("ann".to_owned())), "removed {removed}");
    }
    fs::write(&file, &earlier).expect("put back");
    assert_eq!(stage.check(), Err(Doubt::EarlierRefused("ann".to_owned())), "those in between are lost");
}

#[test]
fn a_doubt_about_refused_orders_hides_neither_the_acts_nor_a_graver_one() {
    let stage = Stage::set();
    let ann = stage.add("ann", Viewer).expect("added");
    stage.refuse(&ann, "revoke", "needs manager: revoke --name boss", NOW).expect("counted");
    let parts = ["audit.jsonl", "audit.head"].map(|name| stage.place.path().join("site").join(name));
    let before = parts.each_ref().map(|file| fs::read(file).expect("there"));
    fs::write(stage.place.path().join("site/refused.ann.jsonl"), "{}\n").expect("damaged");
    let acts = || Record::from(&stage.site).check_acts(None).expect("read");
    let damaged = Doubt::Refused("ann".to_owned());
    assert_eq!(acts().map(|(checked, doubt)| (checked.entries.len(), doubt)), Ok((2, Some(damaged.clone()))));
    assert_eq!(stage.check(), Err(damaged));
    let error = stage.refuse(&ann, "revoke", "needs manager", NOW).expect_err("damaged").to_string();
    assert!(error.contains("put back the one of a backup"), "{error}");
    stage.add("eve", Manager).expect("added");
    parts.iter().zip(before).for_each(|(file, bytes)| fs::write(file, bytes).expect("put back"));
    assert!(matches!(stage.check(), Err(Doubt::Untold(_))), "{:?}", stage.check());
    assert!(matches!(acts(), Err(Doubt::Untold(_))));
}

#[test]
fn of_operators_whom_the_site_has_no_more_so_many_are_kept() {
    let stage = Stage::set();
    let staying = stage.add("staying", Viewer).expect("added");
    stage.refuse(&staying, "revoke", "needs manager", NOW).expect("counted");
    for turn in 1..=MAX_REFUSED_OPERATORS as u64 {
        let name = format!("o{turn}");
        let known = stage.add(&name, Viewer).expect("added");
        stage.refuse(&known, "revoke", "needs manager", NOW + turn).expect("counted");
        remove_operator(&stage.site, &name, NOW).expect("removed");
    }
    let found: Vec<String> = stage.refused(None).into_iter().map(|one| one.operator).collect();
    assert_eq!((found.len(), found[0].as_str(), found[1].as_str()), (MAX_REFUSED_OPERATORS, "staying", "o2"));
    assert!(stage.check().is_ok(), "and their entries are no doubt");
    // The order of one was on its way when he was removed, and it is older than all.
    let late = stage.add("late", Viewer).expect("added");
    remove_operator(&stage.site, "late", NOW).expect("removed");
    stage.refuse(&late, "revoke", "needs manager", NOW - 1).expect("counted");
    let found: Vec<String> = stage.refused(None).into_iter().map(|one| one.operator).collect();
    let (first, second, third) = (found[0].as_str(), found[1].as_str(), found[2].as_str());
    assert_eq!((found.len(), first, second, third), (MAX_REFUSED_OPERATORS, "late", "staying", "o3"));
    // As a crash leaves it before room is made: the next one makes up for it.
    let file = |name: &str| stage.place.path().join(format!("site/refused.{name}.jsonl"));
    fs::write(file("surplus"), "").expect("written");
    stage.refuse(&stage.add("new", Viewer).expect("added"), "revoke", "needs manager", NOW).expect("counted");
    let found = stage.refused(None);
    let is_there = ["surplus", "late", "o3", "new"].map(|name| file(name).exists());
    assert_eq!((found.len(), is_there), (MAX_REFUSED_OPERATORS, [false, false, true, true]));
}

#[test]
fn no_file_goes_for_a_refusal_that_cannot_be_written() {
    let stage = Stage::set();
    for turn in 0..MAX_REFUSED_OPERATORS as u64 {
        let name = format!("o{turn}");
        let known = stage.add(&name, Viewer).expect("added");
        stage.refuse(&known, "revoke", "needs manager", NOW + turn).expect("counted");
        remove_operator(&stage.site, &name, NOW).expect("removed");
    }
    let new = stage.add("new", Viewer).expect("added");
    // The entry cannot be written where a directory has the head's name.
    let head = stage.place.path().join("site/audit.head");
    fs::rename(&head, stage.place.path().join("head")).expect("moved");
    fs::create_dir(&head).expect("in the way");
    stage.refuse(&new, "revoke", "needs manager", NOW).expect_err("no entry");
    assert!(stage.place.path().join("site/refused.o0.jsonl").exists());
}
