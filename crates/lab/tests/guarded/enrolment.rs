//! Machines become hosts by token while others attack, managers approve, refuse, replace keys and restore a lost site. The
//! machines' clocks show 1970 unless a test says otherwise, and they have no address that anybody answers.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use authority::repository::{SqliteStore, Store};
use identity::HostIdentity;
use identity::distributor::RequestMaster;
use identity::own_keys::{OwnKey, OwnKeys};
use identity::token::{Place, Token};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::process::{self, Answer};
use ringwall_lab::net::talk::{Ping, reach};
use ringwall_lab::net::{Host, Running};
use rustix::process::Signal;
use serde_json::Value;
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::sarp::data::Question;
use wire::sarp::enrolment::{Application, Enrolment, Piece, State};
use wire::sarp::{Kind, Message};
use wire::{EtherType, MacAddress};

use crate::sarp::*;
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform};

/// A machine that has no identity yet and thinks it is 1970.
pub fn machine(stage: &Stage, name: &str) -> Result<Guarded, Failure> {
    stage.prepare(name, of_1970(stage, name))
}

fn of_1970(stage: &Stage, name: &str) -> Plan {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let since_1970 = -i32::try_from(since_epoch.as_secs()).expect("before 2038");
    Plan::sarp().identity(identity_of(stage, name)).clock_offset_s(since_1970)
}

pub fn identity_of(stage: &Stage, name: &str) -> PathBuf {
    stage.file(&format!("{name}.enrolled.pem"))
}

/// A token for host `name`, with these further options.
fn token(stage: &Stage, name: &str, options: &str) -> Result<Value, Failure> {
    let Host { ip, .. } = stage.host(name);
    let made = stage.site.order(format!("token --name {name} --ip {ip} --json {options}").trim_end())?;
    serde_json::from_str(&made).map_err(|error| Failure::Unreadable(format!("{error}: {made}")))
}

pub fn text(token: &Value) -> &str {
    token["token"].as_str().expect("a token has its text")
}

/// `host enroll --token` on `machine`, to its end.
fn enrol(machine: &Guarded, token: &str, options: &[&str]) -> Result<Answer, Failure> {
    machine.ask(&[&["host", "enroll", "--token", token], options].concat())
}

/// The same, going on beside the test once it has applied.
pub fn apply(machine: &Guarded, token: &str, options: &[&str]) -> Result<Running, Failure> {
    let command = machine.command(&[&["host", "enroll", "--token", token], options].concat());
    let mut enrolling = Running::start(command, &machine.directory.join("enrol.log"))?;
    enrolling.await_output("waiting for the manager", SOON)?;
    Ok(enrolling)
}

/// Enrols host `name` whole.
fn join(stage: &Stage, machine: &Guarded, options: &[&str]) -> Result<HostIdentity, Failure> {
    let made = token(stage, machine.host.name, "")?;
    let enrolling = apply(machine, text(&made), options)?;
    stage.site.order(&format!("approve {}", machine.host.name))?;
    finish(stage, machine, enrolling)
}

pub fn finish(stage: &Stage, machine: &Guarded, mut enrolling: Running) -> Result<HostIdentity, Failure> {
    enrolling.await_output("of site lab is in", SOON)?;
    let file = identity_of(stage, machine.host.name);
    let identity = std::fs::read_to_string(&file).map_err(Failure::file("reading", &file))?;
    Ok(HostIdentity::from_pem(&identity).expect("an identity"))
}

fn pending(stage: &Stage) -> Result<Value, Failure> {
    let listed = stage.site.order("pending --json")?;
    serde_json::from_str(&listed).map_err(|error| Failure::Unreadable(format!("{error}: {listed}")))
}

/// Frames with which a stranger would like to apply in another's place, or to be taken for the distributor.
fn forgeries(stranger: &Host, distributor: &Host, victim: &Host, number: u64) -> Vec<Vec<u8>> {
    let question = Question { host: number, nonce: [0x5a; 16] };
    let frame = |to: MacAddress, from: MacAddress, arp: Arp, kind: Kind, data: &[u8]| {
        let message = Message { arp, kind, seconds: 0, data, signature: &[0x5a; 16] };
        [&Header { destination: to, source: from, ethertype: EtherType::ARP }.emit()[..], &message.emit()].concat()
    };
    let arp = |operation, sender: &Host, target: &Host| Arp {
        operation,
        sender_mac: sender.mac,
        sender_ip: sender.ip,
        target_mac: target.mac,
        target_ip: target.ip,
    };
    let application = Application { question, sealing_key: [1; 32], request: &[0x30; 200] }.emit();
    let refusal = Enrolment { question, state: State::Refused, piece: Piece::default() }.emit();
    let asks = arp(Operation::Request, stranger, distributor);
    let answers = arp(Operation::Reply, distributor, victim);
    vec![
        frame(distributor.mac, stranger.mac, asks, Kind::Apply, &application),
        // From its own address: with the distributor's it would lead the switch astray, enrolment or not.
        frame(victim.mac, stranger.mac, answers, Kind::Enrolment, &refusal),
    ]
}

/// Sends each of its arguments, frames as digits, again and again.
const SENDER: &str = "
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
frames = [bytes.fromhex(digits) for digits in sys.argv[2:]]
while True:
    for frame in frames:
        s.send(frame)
    time.sleep(0.002)
";

fn attack(stage: &Stage, stranger: &Host, frames: &[Vec<u8>]) -> Result<Running, Failure> {
    let digits = |frame: &Vec<u8>| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut command = stranger.namespace.command("/usr/bin/python3");
    command.args(["-c", SENDER, INTERFACE]).args(frames.iter().map(digits));
    Running::start(command, &stage.file(&format!("attack-{}.log", frames.len())))
}

fn assert_refused(answer: &Answer, words: &str) {
    let line = answer.stderr.lines().last().unwrap_or_default();
    assert!(!answer.status.success() && line.contains(words) && line.contains("; "), "{words}: {answer:?}");
}

#[test]
fn a_machine_of_1970_enrols_by_token_beside_an_attacker_and_takes_part() {
    perform(&["k", "a", "b", "m"], |stage| {
        let [a, b, k, m] = ["a", "b", "k", "m"].map(|name| stage.host(name));
        let distributor = sign(stage, "k", Plan::distributor())?;
        let _far = sign(stage, "b", Plan::sarp())?;
        let mut near = machine(stage, "a")?;
        let made = token(stage, "a", &format!("--mac {}", a.mac))?;
        let number = u64::from_str_radix(made["number"].as_str().expect("digits"), 16).expect("a number");
        let attacker = attack(stage, m, &forgeries(m, k, a, number))?;
        let enrolling = apply(&near, text(&made), &[])?;

        let listed = pending(stage)?;
        let asked = &listed[0];
        assert_eq!((&asked["state"], &asked["name"]), (&"asked".into(), &"a".into()), "{listed}");
        assert_eq!(asked["mac"], a.mac.to_string());
        let fingerprint = asked["fingerprint"].as_str().expect("a fingerprint");
        assert!(enrolling.output().contains(fingerprint), "what the host shows");
        let wrong = stage.site.order("approve a --fingerprint 0000-0000").expect_err("another key");
        assert!(wrong.to_string().contains(fingerprint), "{wrong}");
        // The token in other hands, on the right machine's hardware address or another.
        let stranger = machine(stage, "m")?;
        assert_refused(&enrol(&stranger, text(&made), &[])?, "another hardware address");
        stage.site.order(&format!("approve a --fingerprint {fingerprint}"))?;
        let identity = finish(stage, &near, enrolling)?;
        drop(attacker);
        distributor.await_drops("sarp-enrol-tag", 1)?;

        assert_eq!((identity.certificate().name(), identity.certificate().addresses()), ("a", &[a.ip][..]));
        let file = identity_of(stage, "a");
        let mode = std::fs::metadata(&file).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert!(!file.with_extension("pem.enrolling").exists());
        assert_eq!(pending(stage)?[0]["state"], "fetched");
        assert_refused(&enrol(&near, text(&made), &["--force"])?, "was used already");
        assert!(file.exists(), "what was installed stays");

        near.start(&[])?;
        await_time(&near)?;
        assert_eq!(near.status()?["clock"], "wrong");
        resolve_anew(a, b)?;
        resolve_anew(b, a)?;
        // Where only a daemon speaks ARP nobody can enrol.
        assert_refused(&enrol(&near, text(&made), &["--force"])?, "host release");
        Ok(())
    });
}

/// Broke `Applying::install` by leaving the fingerprint out: the identity was installed.
#[test]
fn what_is_refused_too_late_or_of_another_authority_is_not_installed() {
    perform(&["k", "a"], |stage| {
        let k = stage.host("k");
        let mut distributor = sign(stage, "k", Plan::distributor())?;
        let near = machine(stage, "a")?;
        let refused = token(stage, "a", "")?;
        let mut enrolling = apply(&near, text(&refused), &[])?;
        stage.site.order("refuse a")?;
        enrolling.await_output("the manager has refused; ", SOON)?;
        drop(enrolling);
        assert_refused(&enrol(&near, text(&refused), &[])?, "the manager has refused");

        let short = token(stage, "a", "--valid 1s")?;
        process::pause(Duration::from_millis(2100))?;
        assert_refused(&enrol(&near, text(&short), &[])?, "the token is over");
        assert_refused(&enrol(&near, &text(&short)[..60], &[])?, "no whole token");

        // The same token, but the machine was told of another authority.
        let made = token(stage, "a", "")?;
        let number = u64::from_str_radix(made["number"].as_str().expect("digits"), 16).expect("a number");
        let master = std::fs::read_to_string(stage.site.directory().join("request.key.pem")).expect("there");
        let master = RequestMaster::from_pem(&master).expect("a master");
        let other = Token::new(&master, number, b"another authority", "a", &[Place { ip: k.ip, mac: k.mac }]);
        let mut enrolling = apply(&near, &other.to_text(), &[])?;
        stage.site.order("approve a")?;
        enrolling.await_output("another authority than the token", SOON)?;
        assert!(!identity_of(stage, "a").exists());

        // Without a distributor it says so, and goes on where it was when there is one again.
        let made = token(stage, "a", "")?;
        assert_refused(&enrol(&near, text(&made), &[])?, "was not finished");
        let applied = apply(&near, text(&made), &["--force"])?;
        applied.signal(Signal::KILL);
        distributor.stop(Signal::KILL);
        stage.site.order("approve a")?;
        assert_refused(&enrol(&near, text(&made), &["--timeout", "2s"])?, "in the time given");
        distributor.start(&[])?;
        let answer = enrol(&near, text(&made), &["--json"])?;
        let said: Value = serde_json::from_str(&answer.stdout).expect("JSON");
        assert_eq!((&said["name"], &said["site"]), (&"a".into(), &"lab".into()), "{answer:?}");
        Ok(())
    });
}

#[test]
fn a_machine_that_enrolled_by_token_can_seal_frames_as_well() {
    perform(&["k", "a", "b"], |stage| {
        let [a, b] = ["a", "b"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        for name in ["a", "b"] {
            join(stage, &machine(stage, name)?, &[])?;
        }
        let guard = |name| stage.guard(name, Plan::default().identity(identity_of(stage, name)));
        let _guarded = (guard("a")?, guard("b")?);
        reach(&a.namespace, b.ip, SOON)?;
        reach(&b.namespace, a.ip, SOON).map(drop)
    });
}

#[test]
fn a_host_whose_key_is_no_longer_its_own_alone_gets_another_by_token() {
    perform(&["k", "a", "b", "d"], |stage| {
        let [a, b, d] = ["a", "b", "d"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let (near, new) = (sign(stage, "a", Plan::sarp())?, sign(stage, "d", Plan::sarp())?);
        let mut far = machine(stage, "b")?;
        let first = join(stage, &far, &[])?;
        far.start(&[])?;
        resolve_anew(a, b)?;
        let made: Value = serde_json::from_str(&stage.site.order("rekey b --json")?).expect("JSON");
        // The old key is out at once for whoever asks.
        assert_apart(d, b)?;
        new.await_drops("sarp-no-key", 1)?;

        far.stop(Signal::TERM);
        far.release()?;
        let enrolling = apply(&far, text(&made), &["--force"])?;
        stage.site.order("approve b")?;
        let second = finish(stage, &far, enrolling)?;
        assert_ne!(first.certificate().record_key(), second.certificate().record_key());
        let number = |identity: &HostIdentity| identity.request_key().map(identity::distributor::RequestKey::host);
        assert_eq!(number(&first), number(&second));
        far.start(&[])?;
        reach(&d.namespace, b.ip, FOLLOWED)?;
        reach(&a.namespace, b.ip, FOLLOWED)?;
        resolve_anew(b, d)?;
        resolve_anew(a, b)?;
        near.await_event(&format!("{} has a new key", b.ip), SOON)
    });
}

#[test]
fn a_site_that_was_lost_comes_back_from_its_backup_and_hosts_go_on() {
    perform(&["k", "a", "b", "d"], |stage| {
        let [a, b, d] = ["a", "b", "d"].map(|name| stage.host(name));
        let mut distributor = sign(stage, "k", Plan::distributor())?;
        let mut hosts = ["a", "b"].map(|name| sign(stage, name, Plan::sarp()).expect("guarded"));
        let late = machine(stage, "d")?;
        let made = token(stage, "d", "")?;
        let enrolling = apply(&late, text(&made), &[])?;
        let backup = stage.file("site.backup");
        stage.site.order(&format!("backup {}", backup.display()))?;
        assert_eq!(std::fs::metadata(&backup).expect("there").permissions().mode() & 0o777, 0o600);
        distributor.stop(Signal::TERM);
        std::fs::remove_dir_all(stage.site.directory()).map_err(Failure::file("losing", stage.site.directory()))?;

        stage.site.order(&format!("restore {}", backup.display()))?;
        distributor.start(&[])?;
        await_time(&distributor)?;
        // Nobody has a key of the other in memory any more.
        for host in &mut hosts {
            host.stop(Signal::TERM);
            host.start(&[])?;
            await_time(host)?;
        }
        resolve_anew(a, b)?;
        resolve_anew(b, a)?;
        // Who was enrolling meanwhile goes on, too.
        stage.site.order("approve d")?;
        finish(stage, &late, enrolling)?;
        let mut late = late;
        late.start(&[])?;
        await_time(&late)?;
        reach(&d.namespace, a.ip, FOLLOWED)?;
        let outcome: Outcome = reach(&a.namespace, d.ip, FOLLOWED).map(drop);
        outcome
    });
}

/// How far the network's clock is ahead of the certificates, where keys are to be changed every hour.
const TWO_HOURS_S: i32 = 7200;
const NEW_KEY: &str = "this host signs with its new key";

#[test]
fn a_host_changes_its_key_by_itself_and_no_ping_is_lost() {
    perform(&["k", "a", "b"], |stage| {
        let [a, b] = ["a", "b"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor().clock_offset_s(TWO_HOURS_S))?;
        let near = sign(stage, "a", Plan::sarp())?;
        // With its first key, so that others know that one.
        let mut far = sign(stage, "b", Plan::sarp())?;
        resolve_anew(a, b)?;
        far.stop(Signal::TERM);
        // A key that was fetched within the last two seconds is not fetched again for a signature that fails.
        process::pause(Duration::from_millis(2100))?;
        let identity = stage.file("site.b.pem");
        let plan = Plan::sarp().identity(identity).sarp_line("refresh_key_every = \"1h\"");
        let mut far = stage.prepare("b", plan)?;
        let own_key = |far: &Guarded| Ok::<_, Failure>(far.status()?["sarp"]["own_key"].clone());
        let traffic = Ping::start(a, b, &stage.run.directory())?;
        far.start(&[])?;
        far.await_event(NEW_KEY, FOLLOWED)?;
        resolve_anew(a, b)?;
        near.await_event(&format!("{} has a new key", b.ip), SOON)?;
        process::pause(Duration::from_secs(1))?;
        let tally = traffic.stop()?;
        let key = own_key(&far)?;
        let (age_s, left_s) = (key["age_s"].as_u64().expect("an age"), key["changes_in_s"].as_u64().expect("a time"));
        assert!(age_s < 600 && (3000..=3600 - age_s).contains(&left_s), "a key just made: {key}");
        // The last one may still have been under way.
        assert!(tally.received + 1 >= tally.sent && tally.received > 5, "{tally:?}");

        let file = far.directory.join(format!("state/{INTERFACE}.keys.pem"));
        assert_eq!(std::fs::metadata(&file).expect("kept").permissions().mode() & 0o777, 0o600);
        // After a crash it goes on with the key that counts, and changes it no more.
        far.stop(Signal::KILL);
        far.start(&[])?;
        await_time(&far)?;
        resolve_anew(a, b)?;
        assert_eq!(near.drops("sarp-signature")?, 0, "the first signature after a change is tried again, not refused");
        assert!(!far.events()?.contains(NEW_KEY), "{}", far.events()?);
        Ok(())
    });
}

/// What a crash leaves: the next key on disk, and the distributor has it, or has not.
#[test]
fn a_host_that_crashed_while_its_key_was_changed_learns_which_counts() {
    perform(&["k", "a", "b"], |stage| {
        let [a, b] = ["a", "b"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let _near = sign(stage, "a", Plan::sarp())?;
        for (seed, is_entered) in [(1, false), (2, true)] {
            let mut far = stage.prepare("b", Plan::sarp())?;
            let identity = std::fs::read_to_string(stage.file("site.b.pem")).expect("issued");
            let identity = HostIdentity::from_pem(&identity).expect("an identity");
            let next = OwnKey::from_seed(&[seed; 32], 1_800_000_000).expect("a key");
            let signing = next.signing_key().expect("a key");
            let (algorithm, public) = signing.record_key().expect("Ed25519");
            let keys = OwnKeys { current: None, next: Some(next) };
            let state = far.directory.join("state");
            std::fs::create_dir_all(&state).map_err(Failure::file("making", &state))?;
            let file = state.join(format!("{INTERFACE}.keys.pem"));
            std::fs::write(&file, keys.to_pem(identity.certificate())).map_err(Failure::file("writing", &file))?;
            let store = SqliteStore::open(&stage.site.repository()).expect("there");
            if is_entered {
                assert_eq!(store.rekey("b", algorithm, public), Ok(true));
            }
            far.start(&[])?;
            far.await_event(NEW_KEY, FOLLOWED)?;
            resolve_anew(a, b)?;
            assert_eq!(store.by_name("b").expect("read").expect("there").key, public);
            far.stop(Signal::TERM);
        }
        Ok(())
    });
}

#[test]
fn a_distributor_keeps_its_key() {
    perform(&["k"], |stage| {
        let distributor = stage.prepare("k", Plan::distributor().sarp_line("refresh_key_every = \"30d\""))?;
        let refused = distributor.ask(&["akd", "run"])?;
        assert_refused(&refused, "refresh_key_every with the role akd");
        Ok(())
    });
}
