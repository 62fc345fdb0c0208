//! A host's certificate is renewed while it talks: by files and through a command, without a restart and without a lost datagram.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use identity::certificate::Role;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::talk::{Mailbox, reach};
use ringwall_lab::net::{Host, Running, process};
use rustix::process::Signal;

use crate::sarp::sign;
use crate::stage::{Guarded, Plan, SOON, Stage, perform, program};
use crate::wire::{PORT, await_datagram};

/// A certificate that ends soon enough to be warned of.
const SHORT: Duration = Duration::from_secs(600);
/// One that is in its second half from the start, because it begins five minutes before its issue.
const DUE: Duration = Duration::from_secs(180);
/// What a thief's certificate still has when its host is started: time for handshakes on a busy
/// machine.
const LEFT: Duration = Duration::from_secs(30);
/// Behind the last second of a certificate: what it proved has been swept away.
const SWEPT_S: u64 = 3;
/// Datagrams sent behind that.
const SENT_LATE: usize = 20;
/// For what comes of itself, on a machine that does much else.
const PATIENT: Duration = Duration::from_secs(60);

#[test]
fn a_certificate_is_renewed_by_files_and_associations_live_on() {
    perform(&["a", "b"], |stage| {
        let (near, far) = two(stage, Plan::default(), SHORT)?;
        let (request, bundle) = (stage.file("a.csr"), stage.file("a.bundle"));
        let pings = start_pings(stage)?;
        must(&near, &["host", "renew", "request", "--out", text(&request)])?;
        assert_eq!((days_left(&near)?, warnings(&near)?), (0, 1));
        let order = format!("renew --force --request {} --out {}", text(&request), text(&bundle));
        // In its first half, where only the manager's word brings another one.
        stage.site.order(&order)?;
        let same = near.ask(&["host", "renew", "install", "--bundle", text(&bundle)])?;
        assert!(!same.status.success() && same.stderr.contains("holds what this host has"), "{}", same.stderr);
        stage.site.order(&format!("{order} --early"))?;
        let said = must(&near, &["host", "renew", "install", "--bundle", text(&bundle)])?;
        assert!(said.contains("a is renewed until") && said.contains("peers see it with new keys"), "{said}");
        far.await_event("new keys with a", SOON)?;
        near.await_event("this host's certificate is renewed until", SOON)?;
        assert!(days_left(&near)? >= 364);
        assert_eq!(warnings(&near)?, 0);
        assert_eq!(rollovers(&far)?, Some(1), "the association lives on");
        let said = pings.stop(Signal::INT);
        assert!(said.contains(" 0% packet loss"), "{said}");
        // The bundle has served, and the site renews nobody whom it has taken back.
        let again = near.ask(&["host", "renew", "install", "--bundle", text(&bundle)])?;
        assert!(!again.status.success() && again.stderr.contains("ends no later"), "{}", again.stderr);
        stage.site.revoke("a")?;
        let refused = stage.site.order(&order);
        assert!(refused.is_err_and(|failure| failure.to_string().contains("no certificate that is still good")));
        Ok(())
    });
}

#[test]
fn a_host_renews_through_a_command_when_it_is_time_and_takes_nothing_else() {
    perform(&["a", "b"], |stage| {
        let site = format!("{} site renew --dir {}", program().display(), text(stage.site.directory()));
        let plan = Plan::default().host(&format!("renew_through = \"{site} --request - --out -\""));
        let (near, far) = two(stage, plan, DUE)?;
        let early = must(&far, &["host", "renew", "--through", &format!("{site} --request - --out -")])?;
        assert!(early.contains("it is not time yet") && early.contains("generation 0, as before"), "{early}");
        let file = identity_file(stage);
        let before = std::fs::read(&file).expect("there");
        for command in ["cat", "false", "cat /dev/zero"] {
            let refused = near.ask(&["host", "renew", "--through", command])?;
            assert!(!refused.status.success() && refused.stderr.trim().lines().count() == 1, "{}", refused.stderr);
        }
        assert_eq!(std::fs::read(&file).expect("there"), before);
        let said = must(&near, &["host", "renew"])?;
        assert!(said.contains("a is renewed until") && said.contains("peers see it with new keys"), "{said}");
        assert_eq!(file.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        assert!(days_left(&near)? >= 364);
        // A reload finds nothing new, and a restart starts with what there is.
        let reloaded = must(&near, &["host", "reload"])?;
        assert!(!reloaded.contains("renewed") && !reloaded.contains("warning"), "{reloaded}");
        reach(&stage.host("a").namespace, stage.host("b").ip, SOON).map(drop)
    });
}

/// Hosts fetch another site key, and talk on through its change; who was taken out fetches nothing.
#[test]
fn a_site_key_changes_under_way_and_hosts_fetch_it_while_they_talk() {
    perform(&["a", "b", "c"], |stage| {
        let site = format!("{} site renew --dir {}", program().display(), text(stage.site.directory()));
        let through = format!("renew_through = \"{site} --request - --out -\"");
        let plan = || Plan::default().host(&through);
        let (near, far) = (stage.guard("a", plan())?, stage.guard("b", plan())?);
        reach(&stage.host("a").namespace, stage.host("b").ip, SOON)?;
        let pings = start_pings(stage)?;
        let generation = |guarded: &Guarded| Ok::<_, Failure>(guarded.status()?["identity"]["shared_keys"].as_u64());
        assert_eq!(generation(&near)?, Some(0));
        // Under way at once: four seconds to the change, four to the end of the former key.
        stage.site.order("rekey-shared --after 4s --grace 4s")?;
        let began = std::time::Instant::now();
        for host in [&near, &far] {
            let said = must(host, &["host", "renew"])?;
            assert!(said.contains("shared keys of generation 1") && said.contains("sends with it from"), "{said}");
            assert_eq!(generation(host)?, Some(1));
            let again = must(host, &["host", "renew"])?;
            assert!(again.contains("generation 1, as before"), "{again}");
        }
        std::thread::sleep(Duration::from_secs(10).saturating_sub(began.elapsed()));
        let said = pings.stop(Signal::INT);
        assert!(said.contains(" 0% packet loss"), "{said}");
        assert_eq!(rollovers(&far)?, Some(0), "the association lives on, and no keys of it change");
        // A new association, under the new key alone.
        let _third = stage.guard("c", Plan::default())?;
        reach(&stage.host("c").namespace, stage.host("a").ip, SOON)?;
        // b is taken out, which makes another key; it gets none.
        stage.site.revoke("b")?;
        let refused = far.ask(&["host", "renew"])?;
        assert!(!refused.status.success(), "{}", refused.stdout);
        let said = must(&near, &["host", "renew"])?;
        assert!(said.contains("shared keys of generation 2"), "{said}");
        Ok(())
    });
}

/// A distributor and hosts take another request master without a restart, and who has none of it is
/// nobody. With the program of before the distributor went on answering under the former master.
#[test]
fn a_distributor_takes_another_master_while_it_works_and_so_do_its_hosts() {
    perform(&["k", "a", "c"], |stage| {
        let site = format!("{} site renew --dir {}", program().display(), text(stage.site.directory()));
        let through = format!("renew_through = \"{site} --request - --out -\"");
        let distributor = sign(stage, "k", Plan::distributor().host(&through))?;
        let near = sign(stage, "a", Plan::sarp().host(&through))?;
        // Its identity is of before.
        let mut late = stage.prepare("c", Plan::sarp().host(&through))?;
        stage.site.order("rekey-shared --after 0s --grace 0s")?;
        for host in [&distributor, &near] {
            let said = must(host, &["host", "renew"])?;
            assert!(said.contains("shared keys of generation 1"), "{said}");
            assert_eq!(host.status()?["identity"]["shared_keys"].as_u64(), Some(1));
        }
        // What is over at once is accepted to the end of its last second.
        let changed = unix_s();
        process::until("the last second of the former master to end", PATIENT, || Ok(unix_s() > changed))?;
        late.start(&[])?;
        process::until("requests under the former master to be refused", PATIENT, || {
            Ok(distributor.drops("sarp-request-check")? > 0)
        })?;
        assert!(late.status()?["sarp"]["clock_unix_s"].is_null(), "no distributor told it the time");
        must(&late, &["host", "renew"])?;
        process::until("the time", PATIENT, || Ok(late.status()?["sarp"]["clock_unix_s"].is_u64()))?;
        reach(&stage.host("c").namespace, stage.host("a").ip, PATIENT).map(drop)
    });
}

/// A thief has the identity of a host whose certificate is over, and sets his clock back: his own
/// program works, and nobody who has the time takes his word, whoever asks whom.
#[test]
fn a_certificate_that_is_over_opens_nothing_whatever_the_clock_of_its_host_says() {
    for layers in ["kernel", "none"] {
        perform(&["a", "b"], |stage| {
            let [a, b] = ["a", "b"].map(|name| stage.host(name));
            let ago = Duration::from_secs(3600);
            let over = stage.site.issue_ago(a, Role::Host, Duration::from_secs(600), ago)?;
            // Both are good by the thief's clock.
            let good = stage.site.issue_ago(b, Role::Host, 24 * ago, ago)?;
            let _thief = stage.guard("a", Plan::default().identity(over).clock_offset_s(-3500))?;
            let plan = Plan::default().identity(good).cll(&format!("layers = \"{layers}\""));
            let honest = stage.guard("b", plan)?;
            for (from, to) in [(a, b), (b, a)] {
                let before = honest.drops("bad-certificate")?;
                process::until("the certificate to be refused", PATIENT, || {
                    let answered = reach(&from.namespace, to.ip, Duration::from_millis(500)).is_ok();
                    assert!(!answered, "{} reaches {} with a certificate that is over", from.name, to.name);
                    Ok(honest.drops("bad-certificate")? > before)
                })?;
            }
            let peers = honest.json(&["peers"])?;
            let in_use = |peer: &serde_json::Value| peer["state"] == "established";
            assert!(!peers.as_array().is_some_and(|peers| peers.iter().any(in_use)), "{peers}");
            Ok(())
        });
    }
}

/// The same thief has shaken hands while the certificate was good, and both claimed half an hour
/// for the association. It ended with that once, and his frames were opened all the time (review of
/// the protocol, F6).
#[test]
fn an_association_ends_with_its_certificate_whatever_the_clock_of_the_other_end_says() {
    perform(&["a", "b", "c"], |stage| {
        let hosts = ["a", "b", "c"].map(|name| stage.host(name));
        let ago = Duration::from_secs(3600);
        let ending = stage.site.issue_ago(hosts[0], Role::Host, ago + LEFT, ago)?;
        let ends = unix_s() + LEFT.as_secs();
        let honest = |host: &Host, layers: &str| {
            let identity = stage.site.issue_ago(host, Role::Host, 24 * ago, ago)?;
            let plan = Plan::default().identity(identity);
            stage.guard(host.name, plan.cll(&format!("layers = \"{layers}\"")))
        };
        let judges = [honest(hosts[1], "kernel")?, honest(hosts[2], "none")?];
        let _thief = stage.guard("a", Plan::default().identity(ending).clock_offset_s(-3500))?;
        let from = Mailbox::open(hosts[0], PORT)?;
        for judge in &judges {
            let into = Mailbox::open(&judge.host, PORT)?;
            await_datagram(&from, &judge.host, &into, SOON)?;
            assert!(unix_s() < ends, "the certificate was over before the hosts had met");
            assert_eq!(judge.drops("bad-certificate")?, 0);
        }
        let over = "what the certificate proved to end";
        process::until(over, PATIENT, || Ok(unix_s() > ends + SWEPT_S))?;
        for judge in &judges {
            assert_nothing_comes(&from, judge)?;
        }
        Ok(())
    });
}

/// Datagrams of a host whose certificate is over, under an association of before.
fn assert_nothing_comes(from: &Mailbox, judge: &Guarded) -> Result<(), Failure> {
    let into = Mailbox::open(&judge.host, PORT)?;
    for _ in 0..SENT_LATE {
        from.send(&judge.host, PORT, b"after the end");
        process::pause(Duration::from_millis(50))?;
    }
    let came = into.take()?.len();
    eprintln!("{} opened {came} of {SENT_LATE} datagrams of the thief", judge.host.name);
    assert_eq!(came, 0, "{}", judge.json(&["peers"])?);
    // They did come, and the handshake that they had this host begin was refused.
    judge.await_drops("unknown-index", 1)?;
    judge.await_drops("bad-certificate", 1)
}

/// Hosts a and b, which talk; a by this plan, with a certificate that is good for so long.
fn two(stage: &Stage, plan: Plan, validity: Duration) -> Result<(Guarded, Guarded), Failure> {
    let identity = stage.site.issue_for(stage.host("a"), Role::Host, validity)?;
    std::fs::rename(identity, identity_file(stage)).expect("moved");
    let near = stage.guard("a", plan.identity(identity_file(stage)))?;
    let far = stage.guard("b", Plan::default())?;
    reach(&stage.host("a").namespace, stage.host("b").ip, SOON)?;
    Ok((near, far))
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn identity_file(stage: &Stage) -> PathBuf {
    stage.file("identity-of-a.pem")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a test has plain paths")
}

/// What the program says, which must succeed.
fn must(guarded: &Guarded, words: &[&str]) -> Result<String, Failure> {
    process::must(guarded.command(words))
}

fn days_left(guarded: &Guarded) -> Result<i64, Failure> {
    let status = guarded.status()?;
    Ok(status["identity"]["certificate_days_left"].as_i64().expect("a host with an identity"))
}

fn warnings(guarded: &Guarded) -> Result<usize, Failure> {
    Ok(guarded.status()?["warnings"].as_array().map_or(0, Vec::len))
}

/// How often the keys of the association in use were replaced.
fn rollovers(guarded: &Guarded) -> Result<Option<u64>, Failure> {
    let peers = guarded.json(&["peers"])?;
    let in_use = peers.as_array().and_then(|peers| peers.iter().find(|peer| peer["state"] == "established"));
    Ok(in_use.and_then(|peer| peer["rollovers"].as_u64()))
}

/// Twenty pings in a second until it is told to end.
fn start_pings(stage: &Stage) -> Result<Running, Failure> {
    let mut command = stage.host("a").namespace.command("ping");
    command.args(["-n", "-i", "0.05", &stage.host("b").ip.to_string()]);
    Running::start(command, &stage.file("pings.log"))
}
