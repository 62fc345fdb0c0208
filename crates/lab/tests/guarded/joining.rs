//! A machine becomes a guarded host by one command, whatever interrupts it, and stops being one by
//! another. What fails leaves the network as it was.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::process::{self, Answer};
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Host, Running};
use rustix::process::Signal;
use serde_json::Value;

use crate::enrolment::{identity_of, text};
use crate::sarp::{forget, sign};
use crate::stage::{Guarded, Outcome, Plan, SOON, Site, Stage, perform, program};
use crate::takeover::{assert_nothing_left, assert_same, picture};

/// How long a whole joining may take, with its looks at the network and room for a loaded machine.
const JOINED: Duration = Duration::from_secs(90);

/// A machine that has nothing of the site yet.
fn machine(stage: &Stage, name: &str) -> Result<Guarded, Failure> {
    let prepared = stage.prepare(name, Plan::default().identity(identity_of(stage, name)))?;
    std::fs::remove_file(&prepared.config).map_err(Failure::file("removing", &prepared.config))?;
    Ok(prepared)
}

/// `ringwall join` or `leave` on `machine`, away from the files and units of the machine that
/// tests.
fn command(machine: &Guarded, words: &[&str]) -> Command {
    let mut command = machine.command(words);
    for (option, place) in [("--state-dir", "state"), ("--run-dir", "run")] {
        command.arg(option).arg(machine.directory.join(place));
    }
    command.args(["--no-units", "--interface", INTERFACE]);
    command
}

fn join_command(stage: &Stage, machine: &Guarded, options: &[&str]) -> Command {
    let mut command = command(machine, &["join"]);
    command.arg("--identity").arg(identity_of(stage, machine.host.name)).args(options);
    // What resolves names on the machine that tests is nobody's name server here.
    command.args(["--name-server", "10.77.0.250"]);
    command
}

/// Joins, the token coming by the standard input.
fn join(stage: &Stage, machine: &Guarded, token: &str, options: &[&str]) -> Result<Answer, Failure> {
    let mut command = join_command(stage, machine, options);
    command.args(["-", "--json"]);
    process::ask(command, format!("{token}\n").as_bytes())
}

fn told(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// Each step with what became of it; of several of one name the last.
fn steps(told: &Value) -> BTreeMap<&str, &str> {
    let steps = told["steps"].as_array().expect("a list").iter();
    steps.map(|one| (one["step"].as_str().expect("a name"), one["outcome"].as_str().expect("a word"))).collect()
}

fn preapproved(stage: &Stage, name: &str) -> Result<Value, Failure> {
    let Host { ip, mac, .. } = stage.host(name);
    let made = stage.site.order(&format!("token {name} --ip {ip} --mac {mac} --preapproved --json"))?;
    Ok(serde_json::from_str(&made).expect("JSON"))
}

/// The manager, who approves whom he has approved beforehand.
fn manager(stage: &Stage) -> Result<Running, Failure> {
    let mut watch = Command::new(program());
    stage.run.mark(&mut watch);
    watch.args(["site", "approve", "--watch", "--dir"]).arg(stage.site.directory());
    Running::start(watch, &stage.file("manager.log"))
}

/// Everybody's way out, which makes its next hop a gateway.
fn route_through(host: &Host, gateway: &Host) -> Outcome {
    host.namespace.ip(&format!("route add default via {}", gateway.ip)).map(drop)
}

fn leave(machine: &Guarded, options: &[&str]) -> Result<Answer, Failure> {
    let mut leave = command(machine, &["leave"]);
    leave.args(options);
    process::ask(leave, &[])
}

/// The interface is as `before`, in clear, and nothing of ours is left.
fn assert_clear(stage: &Stage, machine: &Guarded, before: &[(&'static str, Value)], when: &str) -> Outcome {
    assert_same(before, &picture(&machine.host)?, when);
    forget(&machine.host)?;
    reach(&machine.host.namespace, stage.host("b").ip, SOON).map(drop)
}

fn mode_of(file: &Path) -> u32 {
    std::fs::metadata(file).expect("there").permissions().mode() & 0o777
}

/// Broke it by leaving `state::confirm` out: the daemon still counted down.
#[test]
fn a_machine_joins_by_one_command_talks_sealed_and_leaves_nothing() {
    perform(&["k", "a", "b"], |stage| {
        let [a, b] = ["a", "b"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let _gateway = stage.guard("b", Plan::default().cll("migration = \"observe\""))?;
        route_through(a, b)?;
        let near = machine(stage, "a")?;
        let before = picture(a)?;
        let made = preapproved(stage, "a")?;
        let _manager = manager(stage)?;
        let answer = join(stage, &near, text(&made), &[])?;
        let said = told(&answer);
        assert!(answer.status.success(), "{answer:?}");
        assert_eq!(
            (&said["joined"], &said["name"], &said["site"]),
            (&true.into(), &"a".into(), &"lab".into()),
            "{said}"
        );
        assert!(said.to_string().contains("gateway 10.77.0.2 answers"), "{said}");
        assert!(said.to_string().contains("name server 10.77.0.250 did not answer before"), "{said}");
        assert!(said.to_string().contains("b seals with this host"), "{said}");
        let identity = identity_of(stage, "a");
        assert_eq!((mode_of(&identity), mode_of(&near.config)), (0o600, 0o644));
        let status = near.status()?;
        assert_eq!((&status["state"], &status["mode"]), (&"running".into(), &"cll".into()));
        assert!(status["takeover"]["reverts_in_s"].is_null(), "confirmed: {status}");
        assert_eq!(status["migration"]["mode"], "observe");
        reach(&a.namespace, b.ip, SOON)?;

        // Given again it finds all done, and changes nothing.
        let again = told(&join(stage, &near, text(&made), &[])?);
        let [enrolled, configured, tried] = ["enrolment", "configuration", "trial"].map(|step| steps(&again)[step]);
        assert_eq!([enrolled, configured, tried], ["there already"; 3], "{again}");

        // What the file says is not passed over, and another one counts at once.
        let other = join(stage, &near, text(&made), &["--migration", "prefer"])?;
        assert!(!other.status.success() && other.stdout.contains("it says migration observe; change it"), "{other:?}");
        assert_eq!(near.status()?["migration"]["mode"], "observe");
        let other = join(stage, &near, text(&made), &["--migration", "prefer", "--force"])?;
        assert!(other.status.success(), "{other:?}");
        assert_eq!(near.status()?["migration"]["mode"], "prefer");

        let plan = told(&leave(&near, &["--dry-run", "--json"])?);
        assert_eq!(steps(&plan)["release"], "would be");
        assert_eq!(near.status()?["state"], "running", "nothing was done");
        let answer = leave(&near, &["--forget"])?;
        assert!(answer.status.success(), "{answer:?}");
        assert!(!identity.exists() && !near.config.exists());
        assert_nothing_left(&near)?;
        assert_clear(stage, &near, &before, "left")?;
        let again = leave(&near, &["--forget"])?;
        assert!(again.status.success() && again.stdout.contains("is not guarded"), "{again:?}");
        Ok(())
    });
}

/// Where a joining is killed: once this was told.
const KILLED_AT: [&str; 8] = [
    "a key distributor is asked",
    "waiting for the manager",
    "enrolment: done",
    "configuration: ",
    "is taken over ...",
    "trial: ",
    "self-check: ",
    "confirmed: ",
];

#[test]
fn a_joining_that_is_killed_anywhere_goes_on_when_it_is_given_again() {
    perform(&["k", "a", "b"], |stage| {
        let [a, b] = ["a", "b"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let _gateway = stage.guard("b", Plan::default().cll("migration = \"observe\""))?;
        route_through(a, b)?;
        let near = machine(stage, "a")?;
        let before = picture(a)?;
        let made = preapproved(stage, "a")?;
        let token = stage.file("a.token");
        std::fs::write(&token, text(&made)).map_err(Failure::file("writing", &token))?;
        let token = token.to_string_lossy();
        let begin = |log: &str, options: &[&str]| {
            let options = [&["--token-file", &token], options].concat();
            Running::start(join_command(stage, &near, &options), &stage.file(log))
        };
        let mut manager_there = None;
        for (number, words) in KILLED_AT.into_iter().enumerate() {
            let mut joining = begin(&format!("killed-{number}.log"), &[])?;
            joining.await_output(words, JOINED)?;
            joining.stop(Signal::KILL);
            // Until somebody approves, it cannot come further than to wait.
            if words == "waiting for the manager" {
                manager_there = Some(manager(stage)?);
            }
        }
        let answer = process::ask(join_command(stage, &near, &["--token-file", &token, "--json"]), &[])?;
        assert!(answer.status.success(), "{answer:?}");
        assert_eq!(steps(&told(&answer))["trial"], "there already");
        assert!(near.status()?["takeover"]["reverts_in_s"].is_null());
        reach(&a.namespace, b.ip, SOON)?;
        drop(manager_there);

        // Killed on trial and left alone it is as if nothing had been, and the next try goes on
        // from there.
        assert!(leave(&near, &[])?.status.success());
        assert_clear(stage, &near, &before, "left, identity kept")?;
        let mut joining = begin("reverted.log", &["--revert-after", "5s"])?;
        joining.await_output("trial: done", JOINED)?;
        joining.stop(Signal::KILL);
        process::until("the way back", JOINED, || {
            Ok(!near.directory.join(format!("state/{INTERFACE}.takeover.json")).exists())
        })?;
        assert_clear(stage, &near, &before, "taken back")?;
        let answer = join(stage, &near, text(&made), &[])?;
        assert!(answer.status.success(), "{answer:?}");
        reach(&a.namespace, b.ip, SOON).map(drop)
    });
}

#[test]
fn a_host_that_would_be_alone_is_given_back_at_once() {
    perform(&["k", "a", "b"], |stage| {
        let [a, b] = ["a", "b"].map(|name| stage.host(name));
        let distributor = sign(stage, "k", Plan::distributor())?;
        // A gateway that nobody guards is nobody to a host that enforces.
        route_through(a, b)?;
        let near = machine(stage, "a")?;
        let before = picture(a)?;
        let made = preapproved(stage, "a")?;
        let _manager = manager(stage)?;
        let answer = join(stage, &near, text(&made), &["--migration", "enforce"])?;
        let said = told(&answer);
        assert!(!answer.status.success());
        assert_eq!((&said["joined"], steps(&said)["trial"]), (&false.into(), "FAILED"), "{said}");
        assert!(said["error"].as_str().expect("a line").contains("gateway 10.77.0.2"), "{said}");
        assert_clear(stage, &near, &before, "taken back")?;
        // What it has of the site it keeps, and the next try needs no token.
        assert!(identity_of(stage, "a").exists());
        let mut again = join_command(stage, &near, &["--migration", "observe", "--force", "--json"]);
        again.args(["--peer", "10.77.0.2"]);
        let answer = process::ask(again, &[])?;
        assert!(answer.status.success() && answer.stdout.contains("host 10.77.0.2 answers"), "{answer:?}");
        drop(distributor);
        Ok(())
    });
}

#[test]
fn what_must_not_be_is_refused_before_anything_changes() {
    perform(&["k", "a", "b", "d"], |stage| {
        let [a, k, d] = ["a", "k", "d"].map(|name| stage.host(name));
        let mut distributor = sign(stage, "k", Plan::distributor())?;
        let near = machine(stage, "a")?;
        let before = picture(a)?;
        let refused = |answer: Answer, words: &str| {
            let line = answer.stderr.lines().last().unwrap_or_default().to_owned();
            assert!(
                !answer.status.success() && format!("{line}{}", answer.stdout).contains(words),
                "{words}: {answer:?}"
            );
            assert!(!near.config.exists(), "{words}");
        };
        let made = preapproved(stage, "a")?;
        let dry = join(stage, &near, text(&made), &["--dry-run"])?;
        assert!(dry.status.success() && told(&dry).to_string().contains("would be"), "{dry:?}");
        assert!(!near.config.exists() && !identity_of(stage, "a").exists());
        let state = near.directory.join("state");
        let state = state.to_string_lossy();
        let on = |interface: &str| {
            let places = ["--interface", interface, "--state-dir", &state];
            process::ask(near.command(&[&["join", text(&made), "--no-units"], &places[..]].concat()), &[])
        };
        refused(on("lo")?, "speaks no Ethernet");
        refused(on("e7")?, "there is no such interface; name one of e0");
        refused(join(stage, &near, &text(&made)[..50], &[])?, "no whole token");
        let nothing = process::ask(join_command(stage, &near, &[]), &[])?;
        refused(nothing, "no identity and no token");

        // Over, used, of another machine, and of another site.
        let short = stage.site.order("token a --valid 1s --json")?;
        let short: Value = serde_json::from_str(&short).expect("JSON");
        process::pause(Duration::from_millis(2100))?;
        refused(join(stage, &near, text(&short), &[])?, "the token is over");
        let others = preapproved(stage, "d")?;
        refused(join(stage, &near, text(&others), &[])?, "another hardware address");
        let far = machine(stage, "d")?;
        let _manager = manager(stage)?;
        assert!(join(stage, &far, text(&others), &[])?.status.success());
        assert!(leave(&far, &["--forget"])?.status.success());
        let used = join(stage, &far, text(&others), &[])?;
        assert!(!used.status.success() && used.stderr.contains("was used already"), "{used:?}");
        let elsewhere = Site::found(stage.run, "elsewhere")?;
        elsewhere.issue("k", &format!("--mac {} --ip {} --role akd", k.mac, k.ip))?;
        let foreign = elsewhere.order(&format!("token a --mac {} --json", a.mac))?;
        let foreign: Value = serde_json::from_str(&foreign).expect("JSON");
        refused(join(stage, &near, text(&foreign), &[])?, "no key distributor of the token's site answered");
        distributor.ensure_alive()?;
        assert_clear(stage, &near, &before, "refused")?;

        // What somebody wrote is his.
        std::fs::write(&far.config, "[host]\ninterface = \"e9\"\n").map_err(Failure::file("writing", &far.config))?;
        let made = preapproved(stage, "d")?;
        let kept = join(stage, &far, text(&made), &[])?;
        assert!(
            !kept.status.success() && kept.stdout.contains("it is for the interface e9; replace it with --force"),
            "{kept:?}"
        );
        assert!(join(stage, &far, text(&made), &["--force"])?.status.success());
        reach(&d.namespace, stage.host("b").ip, SOON).map(drop)
    });
}

#[test]
fn three_machines_of_a_table_join_at_once_with_nobody_at_the_keyboard() {
    perform(&["k", "a", "b", "d", "m"], |stage| {
        let _distributor = sign(stage, "k", Plan::distributor())?;
        // A gateway that nobody has guarded yet is believed by whom the table tells of it.
        let [gateway, d] = ["m", "d"].map(|name| stage.host(name));
        route_through(d, gateway)?;
        let mut table = format!("name,mac,ip,kind\nm,{},{},router\n", gateway.mac, gateway.ip);
        for name in ["a", "b", "d"] {
            let Host { ip, mac, .. } = stage.host(name);
            table.push_str(&format!("{name},{mac},{ip},host\n"));
        }
        table.push_str("lp1,02:00:00:00:00:99,10.77.0.99,printer\n");
        let (file, place) = (stage.file("hosts.csv"), stage.file("tokens"));
        std::fs::write(&file, table).map_err(Failure::file("writing", &file))?;
        let order = format!("import {} --out {}", file.display(), place.display());
        assert!(stage.site.order(&order)?.contains("4 tokens are in"));
        let token_of = |name: &str| -> PathBuf { place.join(format!("{name}.token")) };
        assert_eq!((mode_of(&place), mode_of(&token_of("a")), token_of("lp1").exists()), (0o700, 0o600, false));
        let open: Value = serde_json::from_str(&stage.site.order("pending --json")?).expect("JSON");
        assert!(open.as_array().expect("a list").iter().all(|one| one["preapproved"] == true), "{open}");
        // Without a hardware address nobody is approved beforehand.
        let refused = stage.site.order("token e --preapproved").expect_err("anybody's");
        assert!(refused.to_string().contains("say which it has"), "{refused}");

        let _manager = manager(stage)?;
        let machines: Vec<Guarded> =
            ["a", "b", "d"].into_iter().map(|name| machine(stage, name)).collect::<Result<_, _>>()?;
        let mut joining = Vec::new();
        for machine in &machines {
            let token = token_of(machine.host.name);
            // Two seal, one signs ARP.
            let (mode, list) = if machine.host.name == "d" { ("sarp", "known") } else { ("cll", "legacy") };
            let list = place.join(format!("{list}.toml"));
            let options =
                ["--token-file", &token.to_string_lossy(), "--mode", mode, "--append", &list.to_string_lossy()];
            let log = stage.file(&format!("{}.join.log", machine.host.name));
            joining.push(Running::start(join_command(stage, machine, &options), &log)?);
        }
        for one in &mut joining {
            one.await_output("the daemon runs now; have `ringwall host run", JOINED)?;
        }
        let modes: Vec<Value> =
            machines.iter().map(|one| one.status().map(|status| status["mode"].clone())).collect::<Result<_, _>>()?;
        assert_eq!(modes, ["cll", "cll", "sarp"]);
        assert!(joining[2].output().contains("key distributor k has answered"), "{}", joining[2].output());
        let gateway = format!("gateway {} answers", gateway.ip);
        assert!(joining[2].output().contains(&gateway), "{}", joining[2].output());
        let config =
            std::fs::read_to_string(&machines[0].config).map_err(Failure::file("reading", &machines[0].config))?;
        assert!(config.contains("[[cll.legacy]]\nip = \"10.77.0.99\""), "{config}");
        let [a, b] = ["a", "b"].map(|name| stage.host(name));
        reach(&a.namespace, b.ip, SOON).map(drop)
    });
}

#[test]
fn whoever_speaks_on_the_wire_is_in_the_survey() {
    perform(&["a", "b", "m"], |stage| {
        let [a, b, m] = ["a", "b", "m"].map(|name| stage.host(name));
        let mut survey = m.namespace.command(&program().to_string_lossy());
        survey.args(["site", "survey", "--without-neighbours", "--listen", "8s", "--interface", INTERFACE, "--json"]);
        // What the machine that tests has leased is no part of this network.
        survey.arg("--dnsmasq").arg("/dev/null");
        let surveying = std::thread::scope(|scope| {
            let asked = scope.spawn(|| process::ask(survey, &[]));
            for _ in 0..6 {
                let mut asking = a.namespace.command("arping");
                asking.args(["-c", "1", "-w", "1", "-I", INTERFACE, &b.ip.to_string()]);
                process::told(asking)?;
                process::pause(Duration::from_millis(300))?;
            }
            asked.join().expect("no panic")
        })?;
        let rows: Value =
            serde_json::from_str(&surveying.stdout).unwrap_or_else(|error| panic!("{error}: {surveying:?}"));
        let heard = |host: &Host| {
            let rows = rows.as_array().into_iter().flatten();
            rows.filter(|row| row["mac"] == host.mac.to_string()).any(|row| row["addresses"][0] == host.ip.to_string())
        };
        assert!(heard(a), "{rows}");
        // It has said nothing to everybody.
        assert!(!heard(m), "{rows}");
        Ok(())
    });
}
