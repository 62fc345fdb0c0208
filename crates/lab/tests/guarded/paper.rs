//! The paper profile with the real program: hosts that sign with DSA and SHA-1 find each other, others seal in the suites of the CLL
//! paper, everybody is told what they are, and a modern host has nothing to do with them.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use authority::repository::{SqliteStore, Store};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Running, process};
use rustix::process::Signal;

use crate::bad_input::{assert_one_line, assert_refused, read, write};
use crate::dhcp::{Client, dnsmasq_giving};
use crate::sarp::{assert_metrics, assert_says, await_time, resolve_anew, sign};
use crate::stage::{Guarded, Outcome, Plan, SOON, Site, Stage, name_of, perform, program};
use crate::takeover::furnish;
use crate::wire::Stream;

/// Bytes that a stream brings over before it counts as flowing.
const BULK: u64 = 2 << 20;

/// What a paper host's configuration must say.
fn paper(plan: Plan) -> Plan {
    plan.host("profile = \"paper\"")
}

/// As [`perform`], with a program that has the profile, which the one that is installed has not.
fn perform_with_paper<T: FnOnce(&Stage) -> Outcome>(hosts: &[&'static str], test: T) {
    // What this names cannot be founded anywhere; a program without the profile refuses the word before it looks.
    let mut probe = std::process::Command::new(program());
    probe.args(["site", "init", "--name", "probe", "--profile", "paper", "--dir", "/proc/nowhere/site"]);
    let answer = process::ask(probe, &[]).expect("the program runs");
    if answer.stderr.contains("no paper profile") {
        let name = name_of(&test);
        eprintln!("SKIPPED {name}: needs a program with the paper profile (--features ringwall/paper)");
        return;
    }
    perform(hosts, test);
}

/// A site of the paper profile whose distributor is `k`, and the identities of `k`, `a` and `b`.
fn found(stage: &Stage) -> Result<(Site, [PathBuf; 3]), Failure> {
    let site = Site::found_with(stage.run, "paper", &["--profile", "paper"])?;
    let issue = |name: &str, more: &str| {
        let host = stage.host(name);
        site.issue(name, &format!("--mac {} --ip {}{more}", host.mac, host.ip))
    };
    let identities = [issue("k", " --role akd")?, issue("a", " --dsa-bits 1024")?, issue("b", " --dsa-bits 512")?];
    Ok((site, identities))
}

/// The distributor of `site`, with this identity.
fn distribute(stage: &Stage, site: &Site, identity: PathBuf) -> Result<Guarded, Failure> {
    let mut distributor = stage.prepare("k", paper(Plan::distributor()).identity(identity))?;
    // The stage writes down its own site's repository.
    let own = stage.site.repository().display().to_string();
    write(&distributor.config, &read(&distributor.config).replace(&own, &site.repository().display().to_string()));
    distributor.start(&[])?;
    await_time(&distributor)?;
    Ok(distributor)
}

#[test]
fn hosts_with_dsa_keys_find_each_other_and_say_what_they_are() {
    perform_with_paper(&["k", "a", "b"], |stage| {
        let (site, [k, a, b]) = found(stage)?;
        let distributor = distribute(stage, &site, k)?;
        let near = sign(stage, "a", paper(Plan::sarp()).identity(a))?;
        let far = sign(stage, "b", paper(Plan::sarp()).identity(b))?;
        for (one, other) in [("a", "b"), ("b", "a"), ("a", "k"), ("k", "b")] {
            reach(&stage.host(one).namespace, stage.host(other).ip, SOON)?;
            resolve_anew(stage.host(one), stage.host(other))?;
        }
        for guarded in [&distributor, &near, &far] {
            let status = guarded.status()?;
            assert!(status["sarp"]["signatures"].as_u64() >= Some(1), "{status}");
            assert_eq!(status["profile"], "paper");
            assert_says(guarded, &["status"], &["NOT PROTECTED: profile paper", "DSA", "NOT for real use"])?;
            assert_says(guarded, &["config", "check"], &["NOT for real use"])?;
            assert!(guarded.log().contains("NOT for real use"), "{}", guarded.log());
            assert_metrics(guarded, &[("weakened_layers", 1.0)])?;
        }
        Ok(())
    });
}

#[test]
fn profiles_that_do_not_fit_are_refused_in_one_line() {
    perform_with_paper(&["k", "a", "b"], |stage| {
        furnish(stage.host("a"))?;
        let (_site, [_, a, _]) = found(stage)?;
        let refuses = |plan: Plan, words: &[&str]| -> Outcome { assert_refused(&stage.prepare("a", plan)?, words) };
        let file = a.display().to_string();
        // A host that does not say `profile = "paper"`, in either mode.
        refuses(
            Plan::sarp().identity(a.clone()),
            &[&file, "paper profile", "NOT for real use", "profile = \"paper\""],
        )?;
        refuses(Plan::default().identity(a.clone()), &[&file, "paper profile", "NOT for real use"])?;
        // One that says so with a modern identity.
        let modern = stage.site.issue("a", &format!("--mac {} --ip {}", stage.host("a").mac, stage.host("a").ip))?;
        let file = modern.display().to_string();
        refuses(paper(Plan::sarp()).identity(modern), &[&file, "modern profile", "site init --profile paper"])?;
        // The link layer wants another key.
        refuses(paper(Plan::default()).identity(a.clone()), &["signs with RSA", "--rsa-bits 1024"])?;
        // Suites go with their profile.
        let old = |plan: Plan| plan.cll("send_suite = \"twofish-128-hmac-md5\"");
        let new = |plan: Plan| plan.cll("send_suite = \"aes-256-gcm\"");
        for (plan, words) in [
            (old(Plan::default()).identity(a.clone()), ["twofish-128-hmac-md5", "is of the paper profile"]),
            (new(paper(Plan::default())).identity(a), ["aes-256-gcm", "is of the modern profile"]),
        ] {
            let wrong = stage.prepare("a", plan)?;
            assert_refused(&wrong, &words)?;
            assert_one_line(&wrong.ask(&["config", "check"])?, &words);
        }
        Ok(())
    });
}

/// Twofish with HMAC-MD5 one way, as in the paper's tables, SEED with HMAC-HAS-160 the other; keys from group 14.
#[test]
fn hosts_with_rsa_keys_seal_in_the_papers_suites() {
    perform_with_paper(&["a", "b"], |stage| {
        let site = Site::found_with(stage.run, "paper", &["--profile", "paper"])?;
        let guard = |name: &str, options: &str, suite: &str| {
            let host = stage.host(name);
            let identity = site.issue(name, &format!("--mac {} --ip {} {options}", host.mac, host.ip))?;
            stage.guard(name, paper(Plan::default()).identity(identity).cll(&format!("send_suite = \"{suite}\"")))
        };
        let near = guard("a", "--rsa-bits 1024", "twofish-128-hmac-md5")?;
        let far = guard("b", "--rsa-bits 2048 --rsa-hash ripemd160", "seed-128-hmac-has160")?;
        for (one, other) in [("a", "b"), ("b", "a")] {
            reach(&stage.host(one).namespace, stage.host(other).ip, SOON)?;
        }
        let (a, b) = (stage.host("a"), stage.host("b"));
        let up = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
        let down = Stream::start(&b.namespace, &a.namespace, a.ip, 5002)?;
        up.await_progress(BULK, SOON)?;
        down.await_progress(BULK, SOON)?;
        for guarded in [&near, &far] {
            let status = guarded.status()?;
            assert_eq!((&status["profile"], &status["peers"]), (&"paper".into(), &1.into()), "{status}");
            assert_says(guarded, &["status"], &["NOT PROTECTED: profile paper", "CBC and HMAC", "NOT for real use"])?;
            assert_says(guarded, &["config", "check"], &["NOT for real use"])?;
            assert!(guarded.log().contains("NOT for real use"), "{}", guarded.log());
            let gauge = format!("ringwall_weakened_layers{{interface=\"{INTERFACE}\"}} 1");
            assert_says(guarded, &["metrics"], &[&gauge])?;
        }
        assert_says(&near, &["peers"], &["twofish-128-hmac-md5", "seed-128-hmac-has160"])?;
        Ok(())
    });
}

/// A modern site has no such keys, and a paper site takes no keys from its hosts.
#[test]
fn a_site_keeps_to_its_profile() {
    perform_with_paper(&["a"], |stage| {
        let a = stage.host("a");
        let refused = stage.site.issue("a", &format!("--mac {} --ip {} --dsa-bits 1024", a.mac, a.ip));
        let line = refused.expect_err("modern").to_string();
        assert!(line.contains("'site init --profile paper'"), "{line}");
        Ok(())
    });
}

/// What the DHCP server of a paper site gives.
const RANGE: &str = "10.77.0.20,10.77.0.49,5m";

/// S-DHCP in the order of section 3.5.2 with other people's programs: the server program answers, its ACK waits until the
/// distributor has agreed, and what is refused then the program believes in all the same.
#[test]
fn leases_are_agreed_when_the_server_program_has_answered() {
    let missing: Vec<&str> =
        ["dnsmasq", "udhcpc", "dhclient"].into_iter().filter(|program| !process::installed(program)).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED S-DHCP in the paper's order: needs {}", missing.join(", "));
        return;
    }
    perform_with_paper(&["k", "d", "a", "b"], |stage| {
        let [a, b, d] = ["a", "b", "d"].map(|name| stage.host(name));
        let paper = PaperDhcp::guard(stage)?;
        let directory = stage.file("server");
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let server = dnsmasq_giving(d, &directory, RANGE)?;
        for program in ["udhcpc", "dhclient"] {
            let client = Client::start(stage, "a", program)?;
            assert!((20..=49).contains(&client.address.octets()[3]), "{program} has {}", client.address);
            assert_eq!(paper.addresses("a"), [client.address], "{program}: the distributor has agreed");
            reach(&d.namespace, client.address, SOON)?;
            assert_eq!(d.neighbour(client.address)?.map(|found| found.mac), Some(a.mac), "{program}");
            if program == "udhcpc" {
                paper.is_renewed(&client)?;
            }
            client.stop();
            a.namespace.ip(&format!("addr flush dev {INTERFACE}"))?;
        }
        paper.refusal_comes_after_the_answer(stage, &server)?;
        assert_eq!(paper.addresses("b"), <[Ipv4Addr; 0]>::default());
        assert!(b.namespace.ip(&format!("-4 addr show dev {INTERFACE}"))?.is_empty(), "b has no address");
        server.stop(Signal::TERM);
        Ok(())
    });
}

/// A distributor, a DHCP server in the paper's order, and two clients.
struct PaperDhcp {
    site: Site,
    d: Guarded,
    _others: [Guarded; 3],
}

impl PaperDhcp {
    fn guard(stage: &Stage) -> Result<PaperDhcp, Failure> {
        let site = Site::found_with(stage.run, "paper", &["--profile", "paper"])?;
        let issue = |name: &str, more: &str| site.issue(name, &format!("--mac {} {more}", stage.host(name).mac));
        let of_k = issue("k", &format!("--role akd --ip {}", stage.host("k").ip))?;
        let of_d = issue("d", &format!("--role dhcp --ip {}", stage.host("d").ip))?;
        let k = distribute(stage, &site, of_k)?;
        let server = "[dhcp]\nserver = true\norder = \"paper\"\n";
        let d = sign(stage, "d", paper(Plan::sarp()).tail(server).identity(of_d))?;
        let client = |name: &str, options: &str| {
            stage.host(name).namespace.ip(&format!("addr flush dev {INTERFACE}"))?;
            let identity = issue(name, options)?;
            sign(stage, name, paper(Plan::sarp()).tail("[dhcp]\nclient = true\n").identity(identity))
        };
        let a = client("a", "--dsa-bits 512 --subnet 10.77.0.0/24")?;
        // A distributor knows b's key, and agrees to no address that this server gives.
        let b = client("b", "--dsa-bits 1024 --subnet 10.88.0.0/24")?;
        Ok(PaperDhcp { site, d, _others: [k, a, b] })
    }

    /// What the site's repository knows of host `name`.
    fn addresses(&self, name: &str) -> Vec<Ipv4Addr> {
        let store = SqliteStore::open(&self.site.repository()).expect("a repository");
        store.by_name(name).expect("asked").expect("enrolled").addresses
    }

    fn is_renewed(&self, client: &Client) -> Outcome {
        let remaining_s = || Ok::<_, Failure>(self.d.status()?["sarp"]["leases"][0]["remaining_s"].as_u64());
        process::until("the lease at the server", SOON, || Ok(remaining_s()?.is_some()))?;
        process::pause(std::time::Duration::from_secs(2))?;
        let before = remaining_s()?;
        client.process.signal(Signal::USR1);
        process::until("the renewal", SOON, || Ok(remaining_s()? > before))
    }

    /// Broke it by the order "request": the server program saw no REQUEST of b and gave no ACK.
    fn refusal_comes_after_the_answer(&self, stage: &Stage, server: &Running) -> Outcome {
        let b = stage.host("b");
        let mut command = b.namespace.command("udhcpc");
        command.args(["-f", "-n", "-q", "-t", "3", "-T", "1", "-i", INTERFACE, "-s", "/bin/true"]);
        assert!(!process::ask(command, &[])?.status.success(), "a host got an address outside its subnets");
        self.d.await_event("outside the subnets of its profile", SOON)?;
        let given = |line: &str| line.contains("DHCPACK") && line.contains(&b.mac.to_string());
        assert!(server.output().lines().any(given), "the program has given it: {}", server.output());
        Ok(())
    }
}
