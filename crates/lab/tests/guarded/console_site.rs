//! The whole LAN in the console: a real service of the site, two hosts that report to it, and an
//! operator who may only look.

use std::fs;
use std::path::Path;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;
use ringwall_lab::net::talk::{Mailbox, reach};
use rustix::process::Signal;

use crate::console::Console;
use crate::site_service::{PATIENCE, PRINTING, report_all, serve, service_of};
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform, program};

/// The hosts; the first is the authority's machine.
const GUARDED: [&str; 2] = ["a", "b"];

fn guard_all(stage: &Stage) -> Result<Vec<Guarded>, Failure> {
    let section = format!("[site]\nservice = \"{}\"\n", service_of(stage.host("a")));
    let guard = |name: &&'static str| stage.guard(name, Plan::default().cll("migration = \"observe\"").tail(&section));
    GUARDED.iter().map(guard).collect()
}

/// A console of `near` that asks the site's service.
fn start<'a>(stage: &Stage, near: &'a Guarded, operator: &Path) -> Result<Console<'a>, Failure> {
    let (service, operator) = (service_of(stage.host("a")), operator.to_string_lossy());
    let further = ["--site", &service, "--as", &operator];
    Console::start_with(near, &further, &stage.file("history.db"), &stage.file("console.log"))
}

/// Waits until the page has all of these, and none of those.
fn await_page(console: &Console<'_>, cookie: &str, wanted: &[&str], not: &[&str]) -> Result<String, Failure> {
    let mut last = String::new();
    let seen = process::until(&format!("the page has {wanted:?}"), PATIENCE, || {
        last = console.page("/site", cookie)?;
        Ok(wanted.iter().all(|text| last.contains(text)) && !not.iter().any(|text| last.contains(text)))
    });
    seen.map(|()| last.clone()).inspect_err(|_| eprintln!("{last}"))
}

#[test]
fn the_console_shows_all_hosts_of_the_site_and_says_what_is_old() {
    perform(&["a", "b", "p"], |stage| -> Outcome {
        let [a, b, p] = ["a", "b", "p"].map(|name| stage.host(name));
        let all = guard_all(stage)?;
        let operator = stage.file("eye.pem");
        stage.site.order(&format!("operator add eye --role viewer --out {}", operator.display()))?;
        stage.site.issue("gone", "--mac 02:00:00:00:00:77 --ip 192.0.2.77")?;
        let service = serve(stage)?;
        reach(&a.namespace, b.ip, SOON)?;
        let mailbox = Mailbox::open(p, PRINTING)?;
        for guarded in &all {
            reach(&p.namespace, guarded.host.ip, SOON)?;
            mailbox.send(&guarded.host, PRINTING, b"printed");
        }
        process::until("both have heard the printer", SOON, || {
            let heard = |guarded: &Guarded| Ok(guarded.json(&["forecast"])?.to_string().contains("udp/9100"));
            let heard = all.iter().map(heard).collect::<Result<Vec<_>, Failure>>()?;
            Ok(heard.iter().all(|heard| *heard))
        })?;
        report_all(&all)?;

        let console = start(stage, &all[1], &operator)?;
        let cookie = console.sign_in()?;
        let told = [
            "3 hosts",
            &a.mac.to_string(),
            &b.ip.to_string(),
            "cll observe",
            "MISSING</span> never",
            &p.mac.to_string(),
            "udp/9100",
        ];
        let page = await_page(&console, &cookie, &told, &["AWAY", "(old)"])?;
        assert!(page.contains("aria-current=\"page\">Site<"), "{page}");
        assert!(console.page("/site?standing=missing", &cookie)?.contains("1 found"));
        assert!(console.page("/site?standing=lenient&q=b", &cookie)?.contains("1 found"));
        assert!(console.page("/", &cookie)?.contains("href=\"/site\""));
        keys_are_with_nobody_who_listens(&console)?;

        // Who lists the printer sees it listed here.
        stage.site.order(&format!("policy legacy add --ip {} --mac {} --broadcast", p.ip, p.mac))?;
        await_page(&console, &cookie, &["version 1", "a host</li>"], &[])?;
        let before = console.page("/site", &cookie)?;
        assert!(before.contains(&format!("<span class=\"code\">{}</span>, a host", p.mac)), "{before}");

        service.stop(Signal::TERM);
        let old = await_page(&console, &cookie, &["AWAY", "says nothing since", "What is shown is old"], &[])?;
        assert!(old.contains(&a.mac.to_string()) && old.contains("(old)"), "what was known stays: {old}");
        let service = serve(stage)?;
        await_page(&console, &cookie, &["3 hosts"], &["AWAY", "(old)"])?;
        stage.site.order("operator remove eye")?;
        await_page(&console, &cookie, &["AWAY", "the site has put eye out"], &[])?;
        service.stop(Signal::TERM);
        console.stop();
        Ok(())
    });
}

/// The door has no descriptor of the service's, and all that hear a network are no root.
fn keys_are_with_nobody_who_listens(console: &Console<'_>) -> Outcome {
    let reader = console.id();
    let children = fs::read_to_string(format!("/proc/{reader}/task/{reader}/children")).expect("its children");
    let children: Vec<&str> = children.split_whitespace().collect();
    assert_eq!(children.len(), 2, "door and asker");
    for child in children {
        let state = fs::read_to_string(format!("/proc/{child}/status")).expect("it runs");
        assert!(state.contains("CapEff:\t0000000000000000") && !state.contains("\nUid:\t0\t"), "{state}");
    }
    Ok(())
}

#[test]
fn whose_file_does_more_than_look_or_is_none_is_refused() {
    perform(&["a"], |stage| -> Outcome {
        let host = stage.host("a");
        let manager = stage.file("mia.pem");
        stage.site.order(&format!("operator add mia --role manager --out {}", manager.display()))?;
        let refused = |words: &[&str], wanted: &str| -> Outcome {
            let mut command = host.namespace.command(&program().to_string_lossy());
            command.args(["console", "--run-dir"]).arg(stage.file("run")).args(words);
            let answer = process::ask(command, &[])?;
            assert!(!answer.status.success() && answer.stderr.contains(wanted), "{answer:?}");
            Ok(())
        };
        let authority = stage.site.directory().join("ca.crt.pem");
        let site = service_of(host);
        refused(&["--site", &site, "--as", &manager.to_string_lossy()], "mia is manager, and a console only looks")?;
        refused(&["--site", &site, "--as", &authority.to_string_lossy()], "name the file of an operator with --as")?;
        refused(&["--site", &site], "--as <FILE>")
    });
}
