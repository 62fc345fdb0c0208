//! Operators' orders, over the real door, its keeper and its signer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use authority::directory::{Record, Terms, add_operator, number_text, remove_operator};
use authority::rollout::trial::{Outcome as Came, Trial};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use identity::certificate::OperatorRole::{self, Manager, Operator as Daily, Viewer};
use identity::order::{Operator, SignedOrder, open_answer, seal_answer};
use identity::sealing;
use proptest::prelude::*;

use super::super::super::SiteCommand;
use super::super::super::enforcing::{Step, Stepped};
use super::super::super::operate::Asking;
use super::super::super::orders::{NotHeard, Order, Outcome, hear, is_for_keeper, open};
use super::super::super::signer::{Answer, Refusal, Signer};
use super::super::Reply;
use super::*;
use crate::report::ORDER_PATH;
use crate::report::forecast::now_unix_ms;

/// Long enough for the door and the signer to hear the same operator again.
const PAUSE: Duration = Duration::from_millis(300);

impl Site {
    fn operator(&self, name: &str, role: OperatorRole) -> Operator {
        let file = self.place.path().join(format!("{name}.pem"));
        let directory = Directory::open(&self.directory()).expect("opened");
        let output = (file.as_path(), Overwrite::Force);
        add_operator(&directory, (name, role), DAY, output, &mut random(), now()).expect("added");
        Operator::from_pem(&std::fs::read_to_string(&file).expect("there")).expect("his file")
    }

    fn remove(&self, name: &str) {
        remove_operator(&Directory::open(&self.directory()).expect("opened"), name, now()).expect("removed");
    }

    /// Answers whoever asks at the socket that the service knows, by a signer that has just begun.
    fn sign(&self) {
        let socket = self.place.path().join("signer");
        let _ = std::fs::remove_file(&socket);
        let terms = Terms { validity: 30 * DAY, early: false, late: Duration::ZERO };
        let listener = UnixListener::bind(socket).expect("bound");
        let mut signer = Signer::new(self.directory(), terms, Instant::now());
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                signer.converse(stream).expect("answered");
            }
        });
    }

    /// What the record says was done, without who issued what before.
    fn acts(&self) -> Vec<String> {
        let checked = Record::open(&self.directory()).expect("opened").check(None).expect("read").expect("whole");
        let entries = checked.entries.into_iter().map(|kept| kept.entry);
        let entries = entries.filter(|entry| !["issued", "operator-added"].contains(&entry.act.as_str()));
        entries.map(|one| format!("{} {} {} ({})", one.act, one.about, one.detail, one.by)).collect()
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn as_operator(operator: &Operator, address: SocketAddr) -> Way {
    let proof = Proof::Operator(Credentials::of_operator(operator, unix_s).expect("credentials"), 1 << 20);
    Way { address, service: Service::At(LOOPBACK.into()), proof }
}

/// What came of an order, or the line that it was refused with.
fn order(operator: &Operator, address: SocketAddr, line: &str) -> Result<String, String> {
    std::thread::sleep(PAUSE);
    let words = words(line);
    let asking = Asking { way: &as_operator(operator, address), operator, words: &words };
    let Outcome { printed, failure } = asking.order(None).map_err(|failure| failure.to_string())?;
    failure.map_or(Ok(printed), Err)
}

fn assert_word(outcome: &Result<String, String>, word: &str) {
    let line = outcome.as_ref().expect_err(word);
    assert!(line.contains(word) && !line.contains('\n'), "{line}");
}

#[test]
fn each_role_orders_what_is_its_to_order_and_what_is_not_is_put_down() {
    let site = Site::found("office");
    site.issue("desk-1", 1, now());
    let [viewer, daily, manager] =
        [("vic", Viewer), ("olga", Daily), ("mia", Manager)].map(|(name, role)| site.operator(name, role));
    site.sign();
    let (_door, address) = start(&site);
    for (line, wanted) in [
        ("list", "host desk-1: "),
        ("hosts", "has never reported"),
        ("forecast", "no group (2 hosts, "),
        ("pending", "no token is open"),
        ("policy show", "there is no policy yet"),
        ("audit --about mia", "operator-added mia"),
    ] {
        let printed = order(&viewer, address, line).expect(line);
        assert!(printed.contains(wanted), "{line}: {printed}");
    }
    assert!(site.acts().is_empty(), "who looks is not put down");
    let add = "policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:09";
    assert_word(&order(&viewer, address, add), "order-role");
    assert!(order(&daily, address, add).expect("his").contains("version 1 of the policy is signed"));
    let invite = "token desk-2 --mac 02:00:00:00:00:02 --ip 192.0.2.2 --by-service --preapproved";
    let token = order(&daily, address, invite).expect("a token");
    assert_eq!(
        token
            .lines()
            .next()
            .and_then(|line| line.parse().ok())
            .map(|one: identity::token::Token| one.name().to_owned()),
        Some("desk-2".to_owned()),
        "sealed for him alone, and whole"
    );
    assert_word(&order(&daily, address, "revoke --name desk-1"), "order-role");
    assert_word(&order(&daily, address, &format!("{add} --router")), "order-role");
    assert!(order(&manager, address, "policy mode desk-* observe").expect("hers").contains("version 2"));
    let failed = order(&manager, address, "revoke --name nobody");
    assert!(failed.expect_err("there is none").contains("no host \"nobody\""));
    assert!(order(&manager, address, "revoke --name desk-1").expect("hers").starts_with("desk-1 is revoked"));
    for line in [
        "backup kept",
        "operator add eve --role manager --out eve.pem",
        "token a --out tokens",
        "approve --all",
        "audit verify",
        "list --all",
    ] {
        assert_word(&order(&manager, address, line), "order-elsewhere");
    }
    let acts = site.acts();
    let kinds: Vec<&str> = acts.iter().map(|act| act.split(' ').next().unwrap_or_default()).collect();
    let wanted =
        ["order-refused", "policy", "invited", "order-refused", "policy", "revoked", "shared-keys", "order-refused"];
    assert_eq!(kinds, wanted, "{acts:?}");
    let first = "the first of his that was refused, done at the authority's machine alone, is manager: backup kept";
    assert!(acts[7].starts_with(&format!("order-refused mia {first}")), "one of six: {acts:?}");
    assert!(acts[0].contains("needs operator, is viewer: policy legacy add"), "{acts:?}");
    assert!(acts[1].ends_with("(operator olga, by the service)"), "{acts:?}");
    assert!(acts[3].contains("needs manager, is operator: revoke --name desk-1"), "{acts:?}");
    assert!(acts[5].ends_with("(manager mia, by the service)"), "{acts:?}");
}

#[test]
fn what_an_operator_is_refused_takes_the_place_of_nothing_that_was_done() {
    let site = Site::found("office");
    let (vic, olga, mia) = (site.operator("vic", Viewer), site.operator("olga", Daily), site.operator("mia", Manager));
    let refused = |who: &Operator, line: &str, why| {
        assert_eq!(obeyed(&site, &signed(who, line, now_unix_ms())), Err(Some(why)), "{line}");
    };
    obeyed(&site, &signed(&mia, "policy mode * observe", now_unix_ms())).expect("hers");
    for turn in 1..=9 {
        refused(&vic, &format!("revoke --name desk-{turn}"), NotHeard::Role);
        refused(&vic, "policy mode * none", NotHeard::Role);
        refused(&vic, &format!("backup kept-{turn}"), NotHeard::Elsewhere);
    }
    refused(&olga, "revoke --name desk-1", NotHeard::Role);
    let acts = site.acts();
    let kinds: Vec<&str> = acts.iter().map(|act| act.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(kinds, ["policy", "order-refused", "order-refused"], "the first of each: {acts:?}");
    let shown = |line: &str| {
        let asked = signed(&vic, line, now_unix_ms());
        let answer = obeyed(&site, &asked).expect(line);
        let Outcome { printed, failure } = open(&[7; 32], &asked.order, answer.as_bytes(), None).expect("his");
        assert_eq!(failure, None, "{line}");
        printed
    };
    let refused: serde_json::Value = serde_json::from_str(&shown("audit --refused --json")).expect("JSON");
    let refused = refused["refused"].as_array().expect("a list").iter();
    let told = |one: &serde_json::Value| {
        let last = one["last"]["detail"].as_str().and_then(|told| told.rsplit(": ").next()).unwrap_or_default();
        format!("{} {} {} {last}", one["operator"], one["count"], one["command"]).replace('"', "")
    };
    let mut refused: Vec<String> = refused.map(told).collect();
    refused.sort_unstable();
    let wanted = [
        "olga 1 revoke revoke --name desk-1",
        "vic 9 backup backup kept-9",
        "vic 9 policy mode policy mode * none",
        "vic 9 revoke revoke --name desk-9",
    ];
    assert_eq!(refused, wanted);
    let of_vic = shown("audit --refused --operator vic");
    assert!(of_vic.contains("vic: revoke, 9 times\n    first ") && !of_vic.contains("olga"), "{of_vic}");
    assert!(of_vic.contains(" needs manager, is viewer: revoke --name desk-1\n    last "), "{of_vic}");
    let hers = shown("audit --operator mia");
    assert!(hers.contains(" policy version 1") && hers.lines().count() == 1, "{hers}");
}

/// Whoever is refused each command of the program still has a line for each.
#[test]
fn there_are_fewer_commands_than_are_counted_apart() {
    let site = Site::found("office");
    let vic = site.operator("vic", Viewer);
    let record = Record::open(&site.directory()).expect("opened");
    let named = |line: &&str| {
        let order = signed(&vic, line, now_unix_ms());
        hear(&record, &order.to_pem(), now_unix_ms()).map(|heard| heard.command_name())
    };
    let names: BTreeSet<String> = COMMANDS.iter().filter_map(|line| named(line).ok()).collect();
    assert!(names.contains("policy legacy add") && names.contains("list"), "{names:?}");
    let all = <SiteCommand as clap::Subcommand>::augment_subcommands(clap::Command::new("site"));
    let count =
        |one: &clap::Command| 1 + one.get_subcommands().map(|two| 1 + two.get_subcommands().count()).sum::<usize>();
    assert!(all.get_subcommands().map(count).sum::<usize>() < authority::limits::MAX_REFUSED_COMMANDS);
}

#[test]
fn below_manager_nobody_undoes_what_a_manager_has_done() {
    let site = Site::found("office");
    site.issue("desk-1", 1, now());
    site.issue("gone", 6, now());
    // The list of what was taken back leaves out what is over; the repository does not.
    site.issue("old", 7, now() - 2 * DAY.as_secs());
    let (olga, mia) = (site.operator("olga", Daily), site.operator("mia", Manager));
    let ask = |who: &Operator, line: &str| {
        std::thread::sleep(Duration::from_millis(2));
        obeyed(&site, &signed(who, line, now_unix_ms())).map(drop)
    };
    for line in [
        "revoke --name gone",
        "revoke --name old",
        "policy legacy add --ip 192.0.2.20 --mac 02:00:00:00:00:20 --router",
        "policy legacy add --ip 192.0.2.21 --mac 02:00:00:00:00:21",
        "token gate --by-service --role router",
        "token desk-1 --by-service --ip 192.0.2.1",
        "token desk-3 --by-service --ip 192.0.2.3",
    ] {
        ask(&mia, line).expect(line);
    }
    let tokens = Directory::open(&site.directory()).expect("opened").applications(now()).expect("read");
    let gate = tokens.iter().find(|one| one.enrolment.name == "gate").expect("its token");
    let by_number = format!("approve {}", number_text(gate.enrolment.number));
    let before = files_of(&site.directory());
    for line in [
        "token desk-1 --by-service --ip 192.0.2.1",
        "token gone --by-service --preapproved --mac 02:00:00:00:00:06 --ip 192.0.2.6",
        "token --name old --by-service --ip 192.0.2.7",
        "approve gate",
        &by_number,
        "refuse gate",
        &by_number.replace("approve", "refuse"),
        "refuse desk-1",
        "approve desk-1",
        "policy legacy add --ip 192.0.2.6 --mac 02:00:00:00:00:aa",
        "policy legacy add --ip 192.0.2.99 --mac 02:00:00:00:00:06 --broadcast",
        "policy legacy add --ip 192.0.2.7 --mac 02:00:00:00:00:aa",
        "policy known add --ip 192.0.2.6 --mac 02:00:00:00:00:06",
        "policy legacy add --ip 192.0.2.20 --mac 02:00:00:00:00:bb",
        "policy legacy add --ip 192.0.2.98 --mac 02:00:00:00:00:20",
        "policy legacy remove 192.0.2.20",
    ] {
        assert_eq!(ask(&olga, line), Err(Some(NotHeard::Role)), "{line}");
    }
    assert!(files_of(&site.directory()) == before, "nothing of it was done");
    let refused = site.acts().into_iter().filter(|act| act.contains("needs manager, is operator: token desk-1"));
    assert_eq!(refused.count(), 1);
    for line in [
        "token desk-4 --by-service --ip 192.0.2.4",
        "approve desk-3",
        "refuse desk-4",
        "policy legacy add --ip 192.0.2.21 --mac 02:00:00:00:00:22",
        "policy legacy remove 192.0.2.21",
    ] {
        ask(&olga, line).expect(line);
    }
    ask(&mia, "token gone --by-service --ip 192.0.2.6").expect("a manager's to decide");
}

#[test]
fn who_was_removed_or_has_another_file_is_refused_at_once() {
    let site = Site::found("office");
    let (first, other) = (site.operator("mia", Manager), site.operator("max", Manager));
    site.sign();
    let (door, address) = start(&site);
    order(&first, address, "list").expect("she is one");
    let second = site.operator("mia", Manager);
    for line in ["list", "policy mode * enforce", "pending"] {
        assert_word(&order(&first, address, line), "order-removed");
        assert!(order(&second, address, line).is_ok(), "{line}");
    }
    site.remove("mia");
    for line in ["list", "policy mode * observe", "pending"] {
        assert_word(&order(&second, address, line), "order-removed");
    }
    order(&other, address, "list").expect("he still is");
    site.await_refused(&door, "order-removed", 6);
    assert_eq!(site.acts().len(), 2, "{:?}", site.acts());
}

fn signed(operator: &Operator, line: &str, made_unix_ms: u64) -> SignedOrder {
    signed_step(operator, words(line), None, made_unix_ms)
}

fn signed_step(operator: &Operator, words: Vec<String>, step: Option<Step>, made_unix_ms: u64) -> SignedOrder {
    let answer_key = sealing::public_half([7; 32]).expect("a key");
    let order = Order { made_unix_ms, answer_key, words, step };
    operator.sign(&serde_json::to_vec(&order).expect("JSON")).expect("signed")
}

#[test]
fn an_order_is_carried_out_once_in_its_time_for_who_signed_it() {
    let site = Site::found("office");
    let (mia, max) = (site.operator("mia", Manager), site.operator("max", Manager));
    site.sign();
    let (door, address) = start(&site);
    let send = |way: Way, order: &SignedOrder| {
        std::thread::sleep(PAUSE);
        let answer = way.ask(ORDER_PATH, Some(order.to_pem().as_bytes()));
        answer.map(|_| String::new()).map_err(|failure| failure.to_string())
    };
    let line = "policy mode * prefer";
    let recorded = signed(&mia, line, now_unix_ms());
    send(as_operator(&mia, address), &recorded).expect("done");
    // Whoever has taken the door over has its orders, and the certificates of operators.
    assert_word(&send(as_operator(&mia, address), &recorded), "order-again");
    site.sign();
    assert_word(&send(as_operator(&mia, address), &recorded), "order-again");
    let minutes = |count: u64| 60_000 * count;
    for made in [now_unix_ms() - minutes(6), now_unix_ms() + minutes(6)] {
        assert_word(&send(as_operator(&mia, address), &signed(&mia, line, made)), "order-time");
    }
    assert_word(&send(as_operator(&max, address), &signed(&mia, line, now_unix_ms())), "order-signature");
    let mut changed = signed(&mia, line, now_unix_ms());
    let at = changed.order.windows(6).position(|window| window == b"prefer").expect("there");
    changed.order[at..at + 6].copy_from_slice(b"enforc");
    assert_word(&send(as_operator(&mia, address), &changed), "order-signature");
    assert_word(&send(as_operator(&mia, address), &signed(&mia, "no such", now_unix_ms())), "order-malformed");
    let host = site.issue("a", 1, now());
    assert_word(&send(way(&host, address), &signed(&mia, line, now_unix_ms())), "no-operator");
    let report = as_operator(&mia, address).ask("/v1/report", Some(&report(1000).bytes()));
    assert!(report.expect_err("for hosts").to_string().contains("no-host"));
    for (word, count) in
        [("order-again", 2), ("order-time", 2), ("order-signature", 2), ("no-operator", 1), ("no-host", 1)]
    {
        site.await_refused(&door, word, count);
    }
    let policies = site.acts().iter().filter(|act| act.starts_with("policy ")).count();
    assert_eq!(policies, 1);
}

#[test]
fn whoever_listens_cannot_say_what_came_of_an_order() {
    let site = Site::found("office");
    let mia = site.operator("mia", Manager);
    let (line, private) = ("policy mode * prefer", [7; 32]);
    let order = signed(&mia, line, now_unix_ms());
    let answer = obeyed(&site, &order).expect("done");
    let open = |text: &[u8], answer: &str| open(&private, text, answer.as_bytes(), Some(mia.anchor()));
    assert!(open(&order.order, &answer).expect("the signer's").printed.contains("version 1"));
    // He knows what the answer is sealed to, and everybody can seal.
    let key = sealing::public_half(private).expect("a key");
    let outcome = br#"{"printed":"done","failure":null}"#;
    let forge = |signature: &[u8]| {
        let length = (signature.len() as u16).to_be_bytes();
        let answer = [&length[..], signature, outcome].concat();
        STANDARD.encode(seal_answer(&key, &order.order, &answer).expect("sealed"))
    };
    let opened = STANDARD.decode(&answer).expect("base64");
    let opened = open_answer(&private, &order.order, &opened).expect("his");
    for signature in [&[][..], &[0; 64], &opened[2..66]] {
        assert!(open(&order.order, &forge(signature)).is_none(), "{signature:?}");
    }
    let keeper = |line: &str, step: Option<&Step>| is_for_keeper(&words(line), step);
    assert!(!keeper(line, None) && !keeper("pending", None) && !keeper("token a", None) && !keeper("none", None));
    assert!(keeper("hosts", None) && keeper("enforce *", Some(&Step::Check)));
    assert!(!keeper("enforce *", Some(&Step::Begin)) && !keeper("backup x", None));
}

/// The steps that `site enforce` and an operator's program take, without the waits between them.
#[test]
fn a_group_enforces_on_trial_and_for_good_by_orders_alone() {
    let site = Site::found("office");
    let desk = site.issue("desk-1", 1, now());
    let mia = site.operator("mia", Manager);
    site.sign();
    let (_door, address) = start(&site);
    order(&mia, address, "policy mode desk-* observe").expect("hers");
    let words = words("enforce desk-* --for 10m");
    let asking = Asking { way: &as_operator(&mia, address), operator: &mia, words: &words };
    let step = |step| {
        std::thread::sleep(PAUSE);
        asking.step(step).map_err(|failure| failure.to_string())
    };
    assert!(step(Step::Check).expect_err("silent").contains("nothing is known of desk-1"));
    let mut lenient = report(now_unix_ms());
    lenient.breaks.clear();
    send_bytes(&desk, address, &lenient.bytes()).expect("kept");
    assert_eq!(step(Step::Check), Ok(Stepped::Ready));
    let Ok(Stepped::Begun(trial)) = step(Step::Begin) else { panic!("begun") };
    assert_eq!(step(Step::Look(trial)), Ok(Stepped::Looked(Came::Open)));
    assert!(step(Step::Begin).expect_err("one at a time").contains("changes its mode already"));
    // As it stands in its second half, when the host has reported that it enforces.
    let later: Trial =
        serde_json::from_value(serde_json::json!({"began_ms": 0, "lasts_ms": 600_000, "version": 2})).expect("one");
    std::thread::sleep(REPORT_EVERY);
    let mut strict = report(now_unix_ms());
    (strict.policy.version, strict.policy.migration) = (Some(2), Some("enforce".to_owned()));
    send_bytes(&desk, address, &strict.bytes()).expect("kept");
    assert_eq!(step(Step::Look(later)), Ok(Stepped::Looked(Came::Kept(1))));
    assert_eq!(step(Step::Keep(trial)), Ok(Stepped::Kept(3)));
    let shown = order(&mia, address, "policy show").expect("hers");
    assert!(shown.contains("group desk-*: enforce") && !shown.contains("from"), "{shown}");
    order(&mia, address, "policy mode desk-* observe").expect("and back");
}

/// Every file of a site, but for the record of what was done, where refusals are put down too.
fn files_of(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for file in std::fs::read_dir(directory).expect("read").map(|file| file.expect("a file").path()) {
        let name = file.file_name().and_then(|name| name.to_str()).expect("text").to_owned();
        if file.is_dir() {
            found.extend(files_of(&file));
        } else if !["audit.", "refused.", "reports.db"].iter().any(|one| name.starts_with(one)) {
            found.insert(file.clone(), std::fs::read(&file).expect("read"));
        }
    }
    found
}

const COMMANDS: &[&str] = &[
    "list",
    "hosts",
    "forecast",
    "pending",
    "audit",
    "audit verify",
    "policy show",
    "init --name x",
    "issue --name x --mac 02:00:00:00:00:07 --ip 192.0.2.7 --out /dev/null --force",
    "revoke --name desk-1",
    "token x --mac 02:00:00:00:00:07 --ip 192.0.2.7 --by-service",
    "token x --by-service --role router",
    "refuse desk-3",
    "approve desk-3",
    "approve --all",
    "rekey desk-1",
    "rekey-shared",
    "rekey-shared --after 1h",
    "policy legacy add --ip 192.0.2.8 --mac 02:00:00:00:00:08",
    "policy legacy remove 192.0.2.9",
    "policy known add --ip 192.0.2.8 --mac 02:00:00:00:00:08",
    "policy exception set 02:00:00:00:00:01 observe",
    "policy exception remove 02:00:00:00:00:06",
    "policy mode * observe",
    "policy mode desk-* none",
    "policy mode desk-* enforce --for 1h",
    "enforce desk-* --for 5m --anyway",
    "operator remove vic",
    "operator add vic --role manager --out /dev/null --force",
    "backup /dev/null",
    "repository use",
    "audit --refused --operator vic --json",
    "audit --before 3 --last 2",
    "renew --request - --out -",
    "import /dev/null --out /dev/null",
    "serve",
    "signer",
    "survey",
];

fn any_step() -> impl Strategy<Value = Option<Step>> {
    let trial: Trial =
        serde_json::from_value(serde_json::json!({"began_ms": 0, "lasts_ms": 0, "version": 1})).expect("one");
    prop_oneof![
        Just(None),
        Just(Some(Step::Check)),
        Just(Some(Step::Begin)),
        Just(Some(Step::Look(trial))),
        Just(Some(Step::Keep(trial))),
    ]
}

/// A site with something in it that each command could change.
fn furnished() -> Site {
    let site = Site::found("office");
    site.issue("desk-1", 1, now());
    site.operator("vic", Viewer);
    let mia = site.operator("mia", Manager);
    for line in [
        "policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:09",
        "policy mode desk-* observe",
        "policy exception set 02:00:00:00:00:06 observe",
        "token desk-3 --by-service",
    ] {
        std::thread::sleep(Duration::from_millis(2));
        obeyed(&site, &signed(&mia, line, now_unix_ms())).expect(line);
    }
    site
}

/// What the keeper makes of an order, with a signer that has just begun.
fn obeyed(site: &Site, order: &SignedOrder) -> Result<String, Option<NotHeard>> {
    site.sign();
    let clerk = Clerk::new(&site.directory(), &site.place.path().join("signer"));
    match clerk.obey(order.to_pem()) {
        Reply::Ordered(Some(Ok(answer))) | Reply::Signed(Some(Answer::Ordered(answer))) => Ok(answer),
        Reply::Ordered(Some(Err(why))) | Reply::Signed(Some(Answer::Refused(Refusal::Order(why)))) => Err(Some(why)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_that_a_viewer_orders_changes_anything() {
    let site = furnished();
    let vic = std::fs::read_to_string(site.place.path().join("vic.pem")).expect("there");
    let vic = Operator::from_pem(&vic).expect("his file");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let line = prop_oneof![
        4 => proptest::sample::select(COMMANDS).prop_map(words),
        1 => proptest::collection::vec("[-a-z*0-9.]{1,9}", 1..6),
        1 => (proptest::sample::select(COMMANDS), "[-a-z*]{1,9}")
            .prop_map(|(line, more)| words(&format!("{line} {more}"))),
    ];
    let before = files_of(&site.directory());
    let done = runner.run(&(line, any_step()), |(words, step)| {
        let order = signed_step(&vic, words.clone(), step, now_unix_ms());
        let _ = obeyed(&site, &order);
        prop_assert!(files_of(&site.directory()) == before, "{:?} {:?}", words, step);
        Ok(())
    });
    done.expect("nothing changed");
    // The same commands change something where a manager orders them, so the files tell.
    let mia = std::fs::read_to_string(site.place.path().join("mia.pem")).expect("there");
    let mia = Operator::from_pem(&mia).expect("her file");
    for line in ["policy legacy remove 192.0.2.9", "refuse desk-3", "rekey-shared", "revoke --name desk-1"] {
        let before = files_of(&site.directory());
        std::thread::sleep(Duration::from_millis(2));
        obeyed(&site, &signed(&mia, line, now_unix_ms())).expect(line);
        assert_ne!(files_of(&site.directory()), before, "{line}");
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(obeyed(&site, &signed(&vic, line, now_unix_ms())), Err(Some(NotHeard::Role)), "{line}");
    }
}
