//! The operators of a site: who is one, since when, and until when.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use authority::directory::{
    KnownOperator, Record, Restored, acting, add_operator, add_operator_by_request, begin_order, remove_operator,
};
use authority::files::Overwrite;
use authority::limits::MAX_OPERATORS;
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
