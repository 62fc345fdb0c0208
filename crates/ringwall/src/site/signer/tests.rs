//! What a signer signs, and what it does not, with the site's own service in its place.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use authority::directory::{Delivery, Invitation, Sharing, Terms, acting};
use authority::enrolment;
use authority::enrolment::by_service::{Application, Outcome};
use authority::enrolment::by_token::Applying;
use authority::files::{self, Overwrite};
use authority::{Directory, Request};
use identity::Profile;
use identity::certificate::Role;
use identity::token::Token;
use wire::MacAddress;

use super::{Answer, Question, Refusal, Signer};
use crate::report::unix_s;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 7]);

fn now() -> u64 {
    unix_s().expect("a clock")
}

fn random() -> impl FnMut(&mut [u8]) {
    let mut secrets = crate::randomness::secrets().expect("randomness");
    move |bytes: &mut [u8]| secrets.fill(bytes)
}

struct Stage {
    place: tempfile::TempDir,
    terms: Terms,
}

impl Stage {
    fn set() -> Stage {
        let place = tempfile::tempdir().expect("directory");
        let path = place.path().join("site");
        Directory::init(&path, "lab", 3650 * DAY, Profile::Modern, &mut random(), now() - 10_000_000).expect("founded");
        Stage { place, terms: Terms { validity: 30 * DAY, early: false, late: Duration::ZERO } }
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("site")
    }

    fn site(&self) -> Directory {
        acting(Directory::open(&self.path()).expect("opened"), "tester")
    }

    fn signer(&self) -> Signer {
        Signer::new(self.path(), self.terms, Instant::now())
    }

    /// The identity of a host whose certificate is in its second half.
    fn due(&self, name: &str, last: u8, role: Role) -> String {
        self.issued_days_ago(name, last, role, 6)
    }

    /// That of one whose certificate of ten days began so many days ago.
    fn issued_days_ago(&self, name: &str, last: u8, role: Role, days: u64) -> String {
        let file = self.place.path().join(format!("{name}.pem"));
        let delivery = Delivery { output: &file, overwrite: Overwrite::Force, sharing: Sharing::Refused };
        let request = Request::new(name, MacAddress([2, 0, 0, 0, 0, last]), vec![Ipv4Addr::new(192, 0, 2, last)]);
        let request = request.and_then(|request| request.with_role(role).with_validity(10 * DAY)).expect("a request");
        let then = now() - days * DAY.as_secs();
        self.site().issue_identity(&request, &delivery, &mut random(), then).expect("issued");
        files::read(&file).expect("an identity").to_string()
    }

    fn invite(&self, role: Role, preapproved: bool) -> Token {
        let invitation = Invitation {
            name: "desk".to_owned(),
            role,
            mac: Some(MAC),
            addresses: vec![Ipv4Addr::new(192, 0, 2, 7)],
            subnets: Vec::new(),
            preapproved,
            by_service: true,
            validity: DAY,
            valid: DAY,
        };
        self.site().invite(&invitation, &mut random(), now()).expect("a token")
    }

    fn issued_to(&self, name: &str) -> usize {
        self.site().list().expect("listed").iter().filter(|entry| entry.name == name).count()
    }
}

fn renewal(host: &str, identity: &str) -> Question {
    Question::Renewal { host: Some(host.to_owned()), request: enrolment::renewal(identity).expect("a request") }
}

fn enrolment(token: &Token, applying: &Applying, mac: MacAddress, has_installed: bool) -> Question {
    Question::Enrolment(Box::new(Application::new(token, applying, mac, has_installed)))
}

fn begin(token: &Token) -> Applying {
    Applying::begin(token, MAC, &[], &mut random()).expect("begun")
}

#[test]
fn a_host_is_renewed_as_what_it_is_and_another_or_a_revoked_one_is_not() {
    let stage = Stage::set();
    let (a, router) = (stage.due("a", 1, Role::Host), stage.due("r", 2, Role::Router));
    let server = stage.due("k", 3, Role::Distributor);
    let mut signer = stage.signer();
    for (name, identity) in [("a", &a), ("r", &router)] {
        let Answer::Renewed(answer) = signer.answer(renewal(name, identity)) else { panic!("{name} is renewed") };
        let (_, renewed) = enrolment::renewed(identity, &answer, now()).expect("for that host alone");
        let role = if name == "r" { Role::Router } else { Role::Host };
        assert_eq!((renewed.certificate().name(), renewed.certificate().role()), (name, role));
    }
    let again = signer.answer(renewal("a", &a));
    assert!(matches!(again, Answer::Renewed(_)) && stage.issued_to("a") == 2, "the same once more");
    assert_eq!(signer.answer(renewal("b", &a)), Answer::Refused(Refusal::Request), "whom the service has not seen");
    let refused = signer.answer(renewal("k", &server));
    assert!(matches!(refused, Answer::Refused(Refusal::NotRenewed(_))), "others name its certificate: {refused:?}");
    stage.site().revoke("a", now()).expect("revoked");
    let refused = signer.answer(renewal("a", &a));
    assert!(matches!(refused, Answer::Refused(Refusal::NotRenewed(_))), "{refused:?}");
    assert_eq!((stage.issued_to("a"), stage.issued_to("k")), (2, 1));
    let question = Question::Renewal { host: Some("a".to_owned()), request: "no request".to_owned() };
    assert_eq!(signer.answer(question), Answer::Refused(Refusal::Request));
}

#[test]
fn a_token_is_good_once_for_who_came_first_and_what_a_manager_wants_to_see_waits() {
    let stage = Stage::set();
    let mut signer = stage.signer();
    let token = stage.invite(Role::Host, true);
    let (host, thief) = (begin(&token), begin(&token));
    let elsewhere = enrolment(&token, &host, MacAddress([2, 0, 0, 0, 0, 8]), false);
    assert_eq!(signer.answer(elsewhere), Answer::Enrolment(Outcome::OtherMac));
    let Answer::Enrolment(Outcome::Approved(sealed)) = signer.answer(enrolment(&token, &host, MAC, false)) else {
        panic!("approved")
    };
    host.install(&token, sealed.bytes(), now()).expect("its identity");
    thief.install(&token, sealed.bytes(), now()).expect_err("another's");
    let outcomes =
        [(&thief, false, Outcome::OtherKey), (&host, true, Outcome::Fetched), (&thief, false, Outcome::Fetched)];
    for (applying, has_installed, wanted) in outcomes {
        let answer = signer.answer(enrolment(&token, applying, MAC, has_installed));
        assert_eq!(answer, Answer::Enrolment(wanted));
    }
    assert_eq!(stage.issued_to("desk"), 1);
    for (role, preapproved) in [(Role::Host, false), (Role::Router, true)] {
        let token = stage.invite(role, preapproved);
        let answer = stage.signer().answer(enrolment(&token, &begin(&token), MAC, false));
        assert_eq!(answer, Answer::Enrolment(Outcome::Waiting), "{role:?}");
    }
    assert_eq!(stage.issued_to("desk"), 1);
    let foreign = Stage::set().invite(Role::Host, true);
    let answer = stage.signer().answer(enrolment(&foreign, &begin(&foreign), MAC, false));
    assert_eq!(answer, Answer::Refused(Refusal::Token), "of another site");
}

#[test]
fn one_host_cannot_have_the_authority_sign_without_end() {
    let stage = Stage::set();
    let a = stage.due("a", 1, Role::Host);
    let mut signer = stage.signer();
    let answers: Vec<Answer> = (0..12).map(|_| signer.answer(renewal("a", &a))).collect();
    assert!(answers.contains(&Answer::Refused(Refusal::TooOften)), "{answers:?}");
    assert_eq!(stage.issued_to("a"), 2);
}

#[test]
fn strangers_who_make_tokens_up_keep_no_host_from_its_renewal() {
    let stage = Stage::set();
    let (a, token) = (stage.due("a", 1, Role::Host), Stage::set().invite(Role::Host, true));
    let mut signer = stage.signer();
    let genuine = serde_json::to_value(enrolment(&token, &begin(&token), MAC, false)).expect("JSON");
    let mut made_up = |number: u64| {
        let mut question = genuine.clone();
        question["enrolment"]["number"] = number.into();
        signer.answer(serde_json::from_value(question).expect("a question"))
    };
    let exhausted = (1..2000).any(|number| made_up(number) == Answer::Refused(Refusal::TooOften));
    assert!(exhausted, "so many strangers have a limit");
    assert!(matches!(signer.answer(renewal("a", &a)), Answer::Renewed(_)));
}

#[test]
fn a_host_that_was_away_comes_back_as_late_as_the_manager_lets_it_and_a_revoked_one_never() {
    let mut stage = Stage::set();
    let [near, far, out] = [("near", 1, 39), ("far", 2, 42), ("out", 3, 39)]
        .map(|(name, last, days)| stage.issued_days_ago(name, last, Role::Host, days));
    stage.site().revoke("out", now()).expect("revoked");
    let nameless =
        |identity: &str| Question::Renewal { host: None, request: enrolment::renewal(identity).expect("a request") };
    let refused = |answer: Answer| matches!(answer, Answer::Refused(Refusal::NotRenewed(_)));
    assert!(refused(stage.signer().answer(nameless(&near))), "nobody has said that he may");
    stage.terms.late = 31 * DAY;
    let mut signer = stage.signer();
    let Answer::Renewed(answer) = signer.answer(nameless(&near)) else { panic!("it is renewed") };
    let (_, renewed) = enrolment::renewed(&near, &answer, now()).expect("for that host alone");
    assert_eq!(renewed.certificate().name(), "near");
    for (identity, why) in [(&far, "later than he may"), (&out, "the site has put it out")] {
        assert!(refused(signer.answer(nameless(identity))), "{why}");
    }
    // Another has got its address meanwhile.
    stage.issued_days_ago("gone", 4, Role::Host, 30);
    let gone = files::read(&stage.place.path().join("gone.pem")).expect("an identity").to_string();
    let (file, heir) = (stage.place.path().join("heir.pem"), Ipv4Addr::new(192, 0, 2, 4));
    let request = Request::new("heir", MacAddress([2, 0, 0, 0, 0, 9]), vec![heir]).expect("a request");
    let delivery = Delivery { output: &file, overwrite: Overwrite::Force, sharing: Sharing::Refused };
    stage.site().issue_identity(&request, &delivery, &mut random(), now()).expect("issued");
    assert!(matches!(signer.answer(nameless(&gone)), Answer::Refused(_)));
    assert_eq!(
        (stage.issued_to("near"), stage.issued_to("far"), stage.issued_to("out"), stage.issued_to("gone")),
        (2, 1, 1, 1)
    );
}

#[test]
fn a_stranger_has_nothing_read_and_takes_no_hosts_turn() {
    let mut stage = Stage::set();
    let near = stage.issued_days_ago("near", 1, Role::Host, 40);
    let out = stage.issued_days_ago("out", 2, Role::Host, 40);
    stage.site().revoke("out", now()).expect("revoked");
    let nameless = |request: String| Question::Renewal { host: None, request };
    let claim = |name: &str| {
        let request = Request::new(name, MAC, Vec::new()).expect("a request");
        nameless(enrolment::request(&request, &mut random()).expect("made").request_pem)
    };
    // Whoever reads the certificates stumbles over this one.
    let broken = stage.path().join("issued/00.pem");
    std::fs::write(&broken, "none").expect("written");
    let own = || nameless(enrolment::renewal(&near).expect("a request"));
    let refused = |answer: Answer| matches!(answer, Answer::Refused(Refusal::NotRenewed(_)));
    assert!(refused(stage.signer().answer(own())), "nobody has said that he may come back late");
    stage.terms.late = 31 * DAY;
    assert_eq!(stage.signer().answer(own()), Answer::Refused(Refusal::Failed), "it is read for him");
    let mut signer = stage.signer();
    for _ in 0..20 {
        assert!(refused(signer.answer(claim("near"))), "another key");
        assert!(refused(signer.answer(claim("nobody"))), "no host");
    }
    assert!(refused(signer.answer(nameless(enrolment::renewal(&out).expect("a request")))), "revoked");
    std::fs::remove_file(broken).expect("removed");
    assert!(matches!(signer.answer(own()), Answer::Renewed(_)), "his turns are his");
}

proptest::proptest! {
    /// Nothing that a service sends is more than a question, and none ends the signer.
    #[test]
    fn no_line_is_taken_for_a_question_that_it_is_not(line in "[ -~]{0,200}") {
        proptest::prop_assert!(serde_json::from_str::<Question>(&line).is_err());
    }
}
