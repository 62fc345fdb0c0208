//! The site's signer: hosts join and renew over the service while nobody types anything at the
//! authority, and whatever is killed, nothing that was granted is lost or granted twice.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use authority::enrolment::by_service::{Application, Outcome as Enrolled};
use authority::enrolment::by_token::Applying;
use identity::certificate::Role;
use identity::token::Token;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::process::{self, Answer};
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Host, Running};
use rustix::process::Signal;
use serde_json::{Value, json};
use wire::MacAddress;

use crate::enrolment::{identity_of, text};
use crate::stage::{Guarded, Outcome, Plan, SOON, Site, Stage, perform, perform_bare, program};

const PORT: u16 = 9478;
/// One that is in its second half from the start, because it begins five minutes before its issue.
const DUE: Duration = Duration::from_secs(180);
/// For what is tried again until it comes, on a machine that does much else.
const PATIENT: Duration = Duration::from_secs(60);
/// Calls before each of which a signer is killed: all that change a disk, and the answer.
const CALLS: [&str; 9] = ["fsync", "fdatasync", "rename", "link", "write", "pwrite64", "unlink", "ftruncate", "sendto"];
/// More of one kind than a question makes.
const CALLS_MAX: usize = 60;

pub fn signer_command(site: &Site, socket: &Path) -> Command {
    let mut command = site.program();
    command.args(["site", "signer", "--dir"]).arg(site.directory()).arg("--socket").arg(socket);
    command
}

pub fn start_signer(mut command: Command, stage_log: &Path) -> Result<Running, Failure> {
    command.env("RUST_BACKTRACE", "0");
    let mut running = Running::start(command, stage_log)?;
    running.await_output("is signed for at", SOON)?;
    Ok(running)
}

fn socket_of(stage: &Stage) -> PathBuf {
    stage.file("signer.socket")
}

pub fn signer(stage: &Stage) -> Result<Running, Failure> {
    start_signer(signer_command(&stage.site, &socket_of(stage)), &stage.file("signer.log"))
}

fn service_of(host: &Host) -> String {
    format!("{}:{PORT}", host.ip)
}

/// The service on host `a`, with an identity of its own.
pub fn service(stage: &Stage) -> Result<Running, Failure> {
    let host = stage.host("a");
    let mut command = host.namespace.command(&program().to_string_lossy());
    command.args(["site", "serve", "--listen", &service_of(host), "--dir"]).arg(stage.site.directory());
    command.arg("--identity").arg(stage.site.directory().with_extension("a.pem"));
    command.arg("--signer").arg(socket_of(stage));
    let mut running = Running::start(command, &stage.file("service.log"))?;
    running.await_output("hosts report to", SOON)?;
    Ok(running)
}

pub fn issue_service(stage: &Stage) -> Outcome {
    let Host { ip, mac, .. } = stage.host("a");
    stage.site.issue("a", &format!("--mac {mac} --ip {ip}")).map(drop)
}

fn token(stage: &Stage, name: &str) -> Result<Value, Failure> {
    let Host { ip, mac, .. } = stage.host(name);
    let made = stage.site.order(&format!("token {name} --ip {ip} --mac {mac} --preapproved --by-service --json"))?;
    Ok(serde_json::from_str(&made).expect("JSON"))
}

/// A machine without an identity that knows its interface.
fn machine(stage: &Stage, name: &str) -> Result<Guarded, Failure> {
    stage.prepare(name, Plan::default().identity(identity_of(stage, name)))
}

fn enrol(stage: &Stage, machine: &Guarded, token: &str, options: &[&str]) -> Result<Answer, Failure> {
    let service = service_of(stage.host("a"));
    machine.ask(&[&["host", "enroll", "--token", token, "--service", &service], options].concat())
}

/// The serial numbers of all certificates of a name.
pub fn certificates(site: &Site, name: &str) -> Result<BTreeSet<String>, Failure> {
    let listed: Value = serde_json::from_str(&site.order("list --json")?).expect("JSON");
    let of_name = listed.as_array().expect("a list").iter().filter(|entry| entry["name"] == name);
    Ok(of_name.map(|entry| entry["serial"].as_str().expect("a number").to_owned()).collect())
}

/// What the record says of a name, and that it is whole.
pub fn told(site: &Site, name: &str) -> Result<Vec<(String, String)>, Failure> {
    site.order("audit verify")?;
    let told: Value = serde_json::from_str(&site.order("audit --json")?).expect("JSON");
    let word = |entry: &Value, key: &str| entry[key].as_str().expect("a word").to_owned();
    let of_name = told["entries"].as_array().expect("a list").iter().filter(|entry| entry["about"] == name);
    Ok(of_name.map(|entry| (word(entry, "act"), word(entry, "by"))).collect())
}

#[test]
fn a_host_joins_and_renews_over_the_service_and_nobody_types_anything_at_the_authority() {
    perform(&["a", "b", "h"], |stage| {
        issue_service(stage)?;
        joins_and_renews(stage)
    });
}

/// Host `h` joins and host `b` renews, by the service on host `a`.
pub fn joins_and_renews(stage: &Stage) -> Outcome {
    let made = token(stage, "h")?;
    let short = stage.site.issue_for(stage.host("b"), Role::Host, DUE)?;
    let (_signer, _service) = (signer(stage)?, service(stage)?);
    let near = machine(stage, "h")?;
    let joined = enrol(stage, &near, text(&made), &["--timeout", "30s"])?;
    assert!(joined.status.success() && joined.stdout.contains("h of site lab is in"), "{joined:?}");
    assert_eq!(certificates(&stage.site, "h")?.len(), 1);
    let section = format!("[site]\nservice = \"{}\"\n", service_of(stage.host("a")));
    let renewing = stage.guard("b", Plan::default().identity(short).cll("migration = \"observe\"").tail(&section))?;
    let renewed = renewing.ask(&["host", "renew"])?;
    assert!(renewed.status.success() && renewed.stdout.contains("b is renewed until"), "{renewed:?}");
    assert!(renewing.status()?["identity"]["certificate_days_left"].as_u64().is_some_and(|days| days >= 364));
    let again = renewing.ask(&["host", "renew"])?;
    assert!(again.stdout.contains("generation 0, as before"), "not due: the shared keys alone, {again:?}");
    assert_eq!(certificates(&stage.site, "b")?.len(), 2);
    let acts = told(&stage.site, "h")?;
    assert_eq!(acts[1], ("enrolled".to_owned(), "who has the token, by the service".to_owned()));
    let acts = told(&stage.site, "b")?;
    assert_eq!(acts.last(), Some(&("renewed".to_owned(), "host b, by the service".to_owned())));
    what_is_worth_nothing(stage, &near, &renewing, text(&made))
}

/// A token after its use, and the certificate of a host that is revoked.
fn what_is_worth_nothing(stage: &Stage, near: &Guarded, renewing: &Guarded, token: &str) -> Outcome {
    let elsewhere = stage.file("thief.pem");
    let out = ["--out", elsewhere.to_str().expect("text"), "--timeout", "20s"];
    let thief = enrol(stage, near, token, &out)?;
    assert!(!thief.status.success() && thief.stderr.contains("the token was used already"), "{thief:?}");
    let thief = enrol(stage, renewing, token, &out)?;
    assert!(!thief.status.success(), "a host that is guarded, {thief:?}");
    assert!(!elsewhere.exists());
    assert_eq!(certificates(&stage.site, "h")?.len(), 1);
    stage.site.revoke("b")?;
    // The service looks at the list again after a moment.
    process::until("b is turned away", PATIENT, || {
        let refused = renewing.ask(&["host", "renew"])?;
        Ok(refused.stderr.contains("refused (403): revoked"))
    })?;
    assert_eq!(certificates(&stage.site, "b")?.len(), 2);
    Ok(())
}

/// As [`service`], where the keys of the authority are out of reach, as its unit has it.
fn service_without_keys(stage: &Stage) -> Result<Running, Failure> {
    let host = stage.host("a");
    let (directory, identity) = (stage.site.directory(), stage.site.directory().with_extension("a.pem"));
    let hidden = ["ca.key.pem", "site.key.pem", "request.key.pem", "dhcp.key.pem", "hosts.db"];
    let hidden: Vec<String> =
        hidden.iter().map(|name| format!("mount --bind /dev/null {}/{name}", directory.display())).collect();
    let script = format!(
        "{} && exec {} site serve --listen {} --dir {} --identity {} --signer {}",
        hidden.join(" && "),
        program().display(),
        service_of(host),
        directory.display(),
        identity.display(),
        socket_of(stage).display()
    );
    let mut command = host.namespace.command("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    let mut running = Running::start(command, &stage.file("service.log"))?;
    running.await_output("hosts report to", SOON)?;
    Ok(running)
}

/// Makes the site anew, with an authority that ends after `validity`; the second at which it does.
fn found_briefly(stage: &Stage, validity: Duration) -> Result<u64, Failure> {
    let directory = stage.site.directory();
    fs::remove_dir_all(directory).map_err(Failure::file("removing", directory))?;
    let mut random = random(77);
    let site = authority::Directory::init(directory, "lab", validity, identity::Profile::Modern, &mut random, unix_s());
    Ok(site.expect("founded").site().anchor().not_after_unix())
}

fn unix_s() -> u64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since_epoch.expect("after 1970").as_secs()
}

/// Three hosts of an authority that ends within a minute: one renews under the new certificate while
/// it talks with one that has the old, the others come back after the end, and none is visited.
#[test]
fn an_authority_is_replaced_under_way_and_who_was_away_comes_back() {
    perform(&["a", "b", "h", "z"], |stage| {
        let ends = found_briefly(stage, Duration::from_secs(60))?;
        issue_service(stage)?;
        // The service is on a machine without a guard; all others seal.
        let Host { ip, mac, .. } = stage.host("a");
        let section = format!("[[cll.legacy]]\nip = \"{ip}\"\nmac = \"{mac}\"\n[site]\nservice = \"{ip}:{PORT}\"\n");
        let plan = |name: &str| {
            // As long as the authority lasts, which is in its second half: it began five minutes before.
            let identity = stage.site.issue_for(stage.host(name), Role::Host, Duration::from_secs(600))?;
            Ok::<_, Failure>(Plan::default().identity(identity).tail(&section))
        };
        let (early, late) = (stage.guard("b", plan("b")?)?, stage.guard("h", plan("h")?)?);
        // Switched off until after the end.
        let mut away = stage.prepare("z", plan("z")?)?;
        let talk = |from: &str, to: &str| reach(&stage.host(from).namespace, stage.host(to).ip, PATIENT);
        talk("b", "h")?;
        let mut command = signer_command(&stage.site, &socket_of(stage));
        command.args(["--late", "1"]);
        let _signer = start_signer(command, &stage.file("signer.log"))?;
        stage.site.order("renew-authority")?;
        // The service's own identity first.
        issue_service(stage)?;
        let _service = service(stage)?;
        let renewed = early.ask(&["host", "renew"])?;
        assert!(renewed.status.success() && renewed.stdout.contains("b is renewed until"), "{renewed:?}");
        let days = |guarded: &Guarded| Ok::<_, Failure>(guarded.status()?["identity"]["authority_days_left"].as_u64());
        assert!(days(&early)? >= Some(3648) && days(&late)? == Some(0), "one of them has the old one");
        // New keys under the new certificate, judged by who has the old one.
        late.await_event("new keys with b", SOON)?;
        talk("h", "b")?;
        process::until("the first certificate is over", PATIENT * 2, || Ok(unix_s() > ends + 1))?;
        for guarded in [&late, &away] {
            let back = guarded.ask(&["host", "renew"])?;
            assert!(back.status.success() && back.stdout.contains("is renewed until"), "{back:?}");
        }
        assert!(days(&late)? >= Some(3648));
        away.start(&[])?;
        talk("h", "b")?;
        talk("z", "h")?;
        stage.site.order("audit verify").map(drop)
    });
}

/// An operator's order from host `b`.
fn operate(stage: &Stage, who: &str, words: &str) -> Result<Answer, Failure> {
    // Orders of one operator within a moment are refused as too often.
    process::pause(Duration::from_millis(300))?;
    let mut command = stage.host("b").namespace.command(&program().to_string_lossy());
    command.args(["operate", "--service", &service_of(stage.host("a")), "--as"]);
    command.arg(stage.file(&format!("{who}.pem"))).args(words.split(' '));
    process::ask(command, &[])
}

/// Door, keeper and signer each in its sandbox, and the keeper without a key of the site.
#[test]
fn operators_work_from_another_machine_each_as_far_as_his_role_reaches() {
    perform(&["a", "b"], |stage| {
        issue_service(stage)?;
        stage.site.issue_for(stage.host("b"), Role::Host, DUE)?;
        for (who, role) in [("vic", "viewer"), ("olga", "operator"), ("mia", "manager")] {
            let out = stage.file(&format!("{who}.pem"));
            stage.site.order(&format!("operator add {who} --role {role} --out {}", out.display()))?;
        }
        let (_signer, _service) = (signer(stage)?, service_without_keys(stage)?);
        let done = |who: &str, words: &str, wanted: &str| -> Outcome {
            let answer = operate(stage, who, words)?;
            assert!(answer.status.success() && answer.stdout.contains(wanted), "{who} {words}: {answer:?}");
            Ok(())
        };
        let refused = |who: &str, words: &str, wanted: &str| -> Outcome {
            let answer = operate(stage, who, words)?;
            assert!(!answer.status.success() && answer.stderr.contains(wanted), "{who} {words}: {answer:?}");
            assert_eq!(answer.stdout, "", "{who} {words}");
            Ok(())
        };
        for (words, wanted) in [
            ("list", "host b: "),
            ("hosts --json", "\"schema\":\"ringwall-site-hosts\""),
            ("forecast", "no group (2 hosts"),
            ("pending", "no token is open"),
            ("audit", "operator-added"),
        ] {
            done("vic", words, wanted)?;
        }
        // It reads all that was ever issued, while the keeper answers nobody.
        refused("vic", "audit verify", "refused (order-elsewhere)")?;
        let printer = "policy legacy add --ip 10.0.0.99 --mac 02:00:00:00:00:99";
        refused("vic", printer, "refused (order-role): vic is viewer")?;
        done("olga", printer, "version 1 of the policy is signed")?;
        done("olga", "token h --by-service", "the token of h, good once until")?;
        refused("olga", "revoke --name b", "refused (order-role): olga is operator")?;
        refused("mia", "backup all", "refused (order-elsewhere)")?;
        done("mia", "policy mode * prefer", "version 2 of the policy is signed")?;
        refused("mia", "enforce * --for 5m", "did not report lately")?;
        done("mia", "revoke --name b", "b is revoked")?;
        done("vic", "policy show", "group *: prefer")?;
        stage.site.order("operator remove mia")?;
        refused("mia", "policy mode * observe", "refused (order-removed)")?;
        assert_eq!(told(&stage.site, "vic")?.last().map(|(act, _)| act.clone()), Some("order-refused".to_owned()));
        let by = ("revoked".to_owned(), "manager mia, by the service".to_owned());
        assert!(told(&stage.site, "b")?.contains(&by));
        Ok(())
    });
}

/// While the service is killed and started again, a host goes on asking until it is enrolled.
#[test]
fn a_service_that_is_killed_at_any_moment_costs_a_host_nothing_but_time() {
    perform(&["a", "h"], |stage| {
        issue_service(stage)?;
        let _signer = signer(stage)?;
        let near = machine(stage, "h")?;
        for (turn, delay_ms) in [20_u64, 60, 120, 250, 500].into_iter().enumerate() {
            let made = token(stage, "h")?;
            let mut running = service(stage)?;
            let address = service_of(stage.host("a"));
            let words =
                ["host", "enroll", "--force", "--timeout", "60s", "--token", text(&made), "--service", &address];
            let mut enrolling = Running::start(near.command(&words), &stage.file("enrol.log"))?;
            process::pause(Duration::from_millis(delay_ms))?;
            running.signal(Signal::KILL);
            process::until("it is gone", SOON, || Ok(running.ensure_alive().is_err()))?;
            // Its other half hears of it, and gives the port back.
            process::until("it serves again", PATIENT, || {
                let again = service(stage);
                let serves = again.is_ok();
                if let Ok(again) = again {
                    running = again;
                }
                Ok(serves)
            })?;
            enrolling.await_output("h of site lab is in", PATIENT)?;
            assert_eq!(certificates(&stage.site, "h")?.len(), turn + 1, "after {delay_ms} ms");
            running.stop(Signal::TERM);
        }
        let enrolled = told(&stage.site, "h")?.into_iter().filter(|(act, _)| act == "enrolled").count();
        assert_eq!(enrolled, 5);
        Ok(())
    });
}

/// One question to a signer; none if it does not answer.
pub fn ask(socket: &Path, question: &Value) -> Option<Value> {
    let mut stream = UnixStream::connect(socket).ok()?;
    // One that was killed closes its end at once.
    stream.set_read_timeout(Some(PATIENT)).ok()?;
    stream.write_all(format!("{question}\n").as_bytes()).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn random(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let mut generator = bump::Generator::from_seed(bytes);
    move |out: &mut [u8]| out.fill_with(|| generator.bytes::<1>()[0])
}

/// A host that applies with a token of its own.
struct Applicant {
    name: String,
    token: Token,
    applying: Applying,
    mac: MacAddress,
}

impl Applicant {
    fn of(site: &Site, number: usize) -> Result<Applicant, Failure> {
        let (name, last) = (format!("h{number}"), number.to_be_bytes());
        let mac = MacAddress([2, 0, 0, 1, last[6], last[7]]);
        let order =
            format!("token {name} --ip 10.9.{}.{} --mac {mac} --preapproved --by-service --json", last[6], last[7]);
        let made: Value = serde_json::from_str(&site.order(&order)?).expect("JSON");
        let token: Token = text(&made).parse().expect("a token");
        let applying = Applying::begin(&token, mac, &[], &mut random(number as u64)).expect("begun");
        Ok(Applicant { name, token, applying, mac })
    }

    fn question(&self, applying: &Applying, has_installed: bool) -> Value {
        json!({"enrolment": Application::new(&self.token, applying, self.mac, has_installed)})
    }
}

/// A signer that is killed before its call of that kind and number.
fn doomed(site: &Site, socket: &Path, call: &str, number: usize) -> Command {
    let call = if call == "rename" { "rename,renameat,renameat2" } else { call };
    let call = if call == "link" { "link,linkat" } else { call };
    let signer = signer_command(site, socket);
    let mut command = Command::new("strace");
    // Among them the mark by which what is left of a run is found.
    command.envs(signer.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:signal=SIGKILL:when={number}")]).arg(signer.get_program());
    command.args(signer.get_args());
    command
}

/// Kills a signer before each call of each kind while it answers, in a signer that is started again
/// asks once more, and looks what there is. `case` gives the question, and looks at the answer.
pub fn at_every_call(
    site: &Site,
    place: &Path,
    mut case: impl FnMut(usize, &mut dyn FnMut(&Value) -> Option<Value>) -> Outcome,
) -> Result<usize, Failure> {
    let (socket, log) = (place.join("s"), place.join("signer.log"));
    let mut killed = 0;
    let mut number_of_case = 0;
    for call in CALLS {
        for number in 1..=CALLS_MAX {
            let Ok(first) = start_signer(doomed(site, &socket, call, number), &log) else {
                // Killed while it started.
                continue;
            };
            let mut first = Some(first);
            let mut again = None;
            let mut was_killed = false;
            number_of_case += 1;
            case(number_of_case, &mut |question| {
                if let Some(answer) = ask(&socket, question) {
                    return Some(answer);
                }
                was_killed = true;
                drop(first.take());
                // The kernel closes what a killed process listened at a moment after its connections.
                process::until("nobody answers there", SOON, || Ok(UnixStream::connect(&socket).is_err())).ok()?;
                let started = start_signer(signer_command(site, &socket), &log).ok()?;
                again = Some(started);
                ask(&socket, question)
            })?;
            // The signer is the child of strace, which passes no signal on.
            end_children(first.as_ref());
            drop((first, again));
            killed += usize::from(was_killed);
            if !was_killed {
                break;
            }
        }
    }
    Ok(killed)
}

fn end_children(parent: Option<&Running>) {
    let Some(parent) = parent else { return };
    let id = parent.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
        if let Some(child) = rustix::process::Pid::from_raw(child) {
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
    }
}

/// Host `number` applies, and is granted once whatever becomes of the signer that it asks.
pub fn is_enrolled_once(site: &Site, number: usize, ask: &mut dyn FnMut(&Value) -> Option<Value>) -> Outcome {
    let host = Applicant::of(site, number)?;
    let answer = ask(&host.question(&host.applying, false)).expect("an answer, at the second time at least");
    let enrolled: Enrolled = serde_json::from_value(answer["enrolment"].clone()).expect("an outcome");
    let Enrolled::Approved(sealed) = enrolled else { panic!("{}: {answer}", host.name) };
    host.applying.install(&host.token, sealed.bytes(), 0).expect("its own identity");
    assert_eq!(certificates(site, &host.name)?.len(), 1, "{} is granted once", host.name);
    let acts = told(site, &host.name)?;
    // One that was told and not done is of the signer that was killed.
    let enrolled = acts.iter().filter(|(act, _)| act == "enrolled").count();
    assert!((1..=2).contains(&enrolled), "{acts:?}");
    let other = Applying::begin(&host.token, host.mac, &[], &mut random(1000)).expect("begun");
    let mut outcome = |applying: &Applying, has_installed| {
        let answer = ask(&host.question(applying, has_installed)).expect("an answer");
        serde_json::from_value::<Enrolled>(answer["enrolment"].clone()).expect("an outcome")
    };
    assert_eq!(outcome(&other, false), Enrolled::OtherKey, "a thief who is late");
    assert_eq!(outcome(&host.applying, true), Enrolled::Fetched);
    assert_eq!(outcome(&other, false), Enrolled::Fetched, "a thief who is later");
    assert_eq!(certificates(site, &host.name)?.len(), 1);
    Ok(())
}

#[test]
fn a_signer_that_is_killed_before_any_call_enrols_each_host_once() {
    perform_bare("a_signer_that_is_killed_before_any_call_enrols_each_host_once", &["strace"], |run| {
        let place = run.directory().join("killed");
        fs::create_dir_all(&place).map_err(Failure::file("making", &place))?;
        let site = Site::found(run, "killed-site")?;
        let killed = at_every_call(&site, &place, |number, ask| is_enrolled_once(&site, number, ask))?;
        eprintln!("killed {killed} signers");
        assert!(killed > 20, "{killed}");
        Ok(())
    });
}
