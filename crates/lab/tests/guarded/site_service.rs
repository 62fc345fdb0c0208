//! The site's service: hosts that observe report what they let pass, the forecast names the printer
//! and what it is used for, the site lists it, and when all enforce nothing has broken.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::talk::{Mailbox, reach};
use ringwall_lab::net::{Host, Running, process};
use rustix::process::Signal;
use serde_json::Value;

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform, program};

/// The hosts; the first is the authority's machine.
const GUARDED: [&str; 3] = ["a", "b", "c"];
const PRINTER: &str = "p";
/// What printers are reached by.
pub(crate) const PRINTING: u16 = 9100;
const PORT: u16 = 9478;
/// A host may report every two seconds, and a policy has reached all by then.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn service_of(host: &Host) -> String {
    format!("{}:{PORT}", host.ip)
}

/// All hosts observe and know where to report; those without the site's directory follow a policy
/// file of their own.
fn guard_all(stage: &Stage) -> Result<Vec<Guarded>, Failure> {
    let section = format!("[site]\nservice = \"{}\"\n", service_of(stage.host("a")));
    let guard = |name: &&'static str| {
        let policy =
            if *name == "a" { stage.site.directory().join("policy.pem") } else { stage.file(name).join("policy.pem") };
        fs::create_dir_all(policy.parent().expect("a directory")).expect("a directory of our own");
        let plan = Plan::default().host(&format!("policy = \"{}\"", policy.display())).cll("migration = \"observe\"");
        stage.guard(name, plan.tail(&section))
    };
    GUARDED.iter().map(guard).collect()
}

/// The service, on the authority's machine.
pub(crate) fn serve(stage: &Stage) -> Result<Running, Failure> {
    let host = stage.host("a");
    let mut command = host.namespace.command(&program().to_string_lossy());
    command.args(["site", "serve", "--listen", &service_of(host), "--dir"]).arg(stage.site.directory());
    command.arg("--identity").arg(stage.site.directory().with_extension("a.pem"));
    let mut running = Running::start(command, &stage.file("service.log"))?;
    running.await_output("hosts report to", SOON)?;
    Ok(running)
}

/// Has every host report, each as soon as it may.
pub(crate) fn report_all(all: &[Guarded]) -> Outcome {
    for guarded in all {
        process::until(&format!("{} has reported", guarded.host.name), PATIENCE, || {
            let answer = guarded.ask(&["report"])?;
            let is_too_often = answer.stderr.contains("too-often");
            assert!(answer.status.success() || is_too_often, "{}", answer.stderr);
            Ok(answer.status.success())
        })?;
    }
    Ok(())
}

fn forecast(stage: &Stage) -> Result<Value, Failure> {
    let told: Value = serde_json::from_str(&stage.site.order("forecast --json")?).expect("JSON");
    assert_eq!(told["groups"].as_array().map(Vec::len), Some(1), "{told}");
    Ok(told["groups"][0].clone())
}

/// The users of the processes that the service consists of.
fn users(keeper: u32) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).expect("its children");
    let all = std::iter::once(keeper.to_string()).chain(children.split_whitespace().map(str::to_owned));
    let user = |id: String| {
        let status = fs::read_to_string(Path::new("/proc").join(id).join("status")).expect("running");
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("a user");
        line.split_whitespace().next().expect("a number").to_owned()
    };
    all.map(user).collect()
}

/// The printer speaks to every host, as printers do.
fn print(stage: &Stage, all: &[Guarded]) -> Outcome {
    let printer = stage.host(PRINTER);
    let mailbox = Mailbox::open(printer, PRINTING)?;
    for guarded in all {
        reach(&printer.namespace, guarded.host.ip, SOON)?;
        mailbox.send(&guarded.host, PRINTING, b"printed");
    }
    Ok(())
}

#[test]
fn the_forecast_names_the_printer_until_the_site_lists_it_and_then_enforcing_breaks_nothing() {
    perform(&["a", "b", "c", PRINTER], |stage| {
        let printer = stage.host(PRINTER);
        stage.site.order("policy mode * observe")?;
        let all = guard_all(stage)?;
        let service = serve(stage)?;
        let users = users(service.id());
        assert!(users.len() == 2 && users[0] == "0" && users[1] != "0", "only who hears no network is root: {users:?}");
        for pair in all.windows(2) {
            reach(&pair[0].host.namespace, pair[1].host.ip, SOON)?;
        }
        print(stage, &all)?;
        process::until("every host has heard the printer", SOON, || {
            let heard = |guarded: &Guarded| Ok(guarded.json(&["forecast"])?.to_string().contains("udp/9100"));
            let heard = all.iter().map(heard).collect::<Result<Vec<_>, Failure>>()?;
            Ok(heard.iter().all(|heard| *heard))
        })?;
        report_all(&all)?;
        let told = forecast(stage)?;
        assert_eq!((&told["is_complete"], &told["enforcing"]), (&true.into(), &Value::Array(Vec::new())), "{told}");
        let sources = told["forecast"]["sources"].as_array().expect("a list");
        let [only] = &sources[..] else { panic!("the printer alone: {sources:?}") };
        assert_eq!(only["mac"], printer.mac.to_string());
        assert_eq!(only["heard_by"], serde_json::json!(GUARDED));
        assert!(only["addresses"].as_array().is_some_and(|all| all.contains(&printer.ip.to_string().into())), "{only}");
        let protocols = told["forecast"]["protocols"].to_string();
        for protocol in ["\"arp\"", "\"ip/1\"", "\"udp/9100\""] {
            assert!(protocols.contains(protocol), "{protocols}");
        }
        let text = stage.site.order("forecast")?;
        assert!(text.contains("if 3 hosts of * enforced now, 1 host and "), "{text}");
        let refused = stage.site.order("enforce *").expect_err("not while something would break").to_string();
        assert!(refused.contains("1 host and ") && refused.contains(" would break; "), "{refused}");
        stage.site.order(&format!("policy legacy add --ip {} --mac {} --broadcast", printer.ip, printer.mac))?;
        nothing_breaks(stage, &all)?;
        service.stop(Signal::TERM);
        Ok(())
    });
}

/// From the listing on: what is reported, and what happens when all enforce.
fn nothing_breaks(stage: &Stage, all: &[Guarded]) -> Outcome {
    let printer = stage.host(PRINTER);
    process::until("the policy is everywhere, and the forecast empty", PATIENCE, || {
        report_all(all)?;
        let told = forecast(stage)?;
        Ok(told["forecast"]["sources"].as_array().is_some_and(Vec::is_empty))
    })?;
    // Who has no peer that tells him gets it from the service.
    let fetched = fs::read(stage.file("c").join("policy.pem")).expect("fetched");
    assert_eq!(fetched, fs::read(stage.site.directory().join("policy.pem")).expect("there"));
    let hosts = stage.site.order("hosts")?;
    assert!(hosts.contains("3 of 3 hosts reported within 5 minutes"), "{hosts}");
    print(stage, all)?;
    stage.site.order("policy mode * enforce")?;
    for guarded in all {
        process::until("it enforces", PATIENCE, || Ok(guarded.status()?["migration"]["mode"] == "enforce"))?;
        reach(&guarded.host.namespace, printer.ip, SOON)?;
    }
    report_all(all)?;
    let told = forecast(stage)?;
    assert_eq!(told["enforcing"], serde_json::json!(GUARDED), "{told}");
    Ok(())
}

/// The version of the policy in force, as the site has it.
fn version(stage: &Stage) -> Result<Value, Failure> {
    let shown: Value = serde_json::from_str(&stage.site.order("policy show --json")?).expect("JSON");
    Ok(shown["version"].clone())
}

fn await_version(of: &Guarded, wanted: u64) -> Outcome {
    process::until(&format!("{} has version {wanted}", of.host.name), PATIENCE, || {
        report_all(std::slice::from_ref(of))?;
        Ok(of.status()?["policy"]["version"] == wanted)
    })
}

#[test]
fn a_site_that_was_restored_takes_back_from_its_hosts_what_it_had_done() {
    perform(&["a", "b", "c", PRINTER], |stage| {
        stage.site.order("policy mode * observe")?;
        let all = guard_all(stage)?;
        let service = serve(stage)?;
        report_all(&all)?;
        let kept = stage.file("site.backup");
        stage.site.order(&format!("backup {}", kept.display()))?;
        let printer = stage.host(PRINTER);
        stage.site.order(&format!("policy legacy add --ip {} --mac {}", printer.ip, printer.mac))?;
        assert_eq!(version(stage)?, 2);
        await_version(&all[2], 2)?;
        service.stop(Signal::TERM);
        fs::remove_dir_all(stage.site.directory()).expect("a site of our own");
        stage.site.order(&format!("restore {}", kept.display()))?;
        assert_eq!(version(stage)?, 1);

        let service = serve(stage)?;
        process::until("a host brings it", PATIENCE, || {
            Ok(all[2].ask(&["report"])?.stdout.contains("has an older policy; it was brought the one in"))
        })?;
        let refused = stage.site.order("recover --apply").expect_err("one of three").to_string();
        assert!(refused.contains("1 of 3 hosts have reported") && refused.contains("--anyway"), "{refused}");
        report_all(&all)?;
        let shown = stage.site.order("recover")?;
        assert!(shown.contains("policy version 2 (here: 1), which c has"), "{shown}");
        assert!(stage.site.order("hosts")?.contains("see `ringwall site recover`"));
        stage.site.order("recover --apply")?;
        assert!(!stage.site.order("hosts")?.contains("site recover"), "the site has it");
        assert_eq!(version(stage)?, 2);
        stage.site.order(&format!("policy legacy remove {}", printer.ip))?;
        await_version(&all[2], 3)?;
        assert!(stage.site.order("audit verify")?.contains("are whole"));
        service.stop(Signal::TERM);
        Ok(())
    });
}
