//! DHCP under the link layer beside other people's DHCP programs (CLL paper, section 6): every server with every client, and what
//! comes with a lease: an address that peers believe, and its end.

use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Running, process};
use rustix::process::Signal;

use crate::dhcp::{CLIENTS, Client, Server, dhcpd, dnsmasq, kea, kea_for};
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform};

/// The addresses that are given: 10.77.0.32 to 10.77.0.47, which is a subnet, so that the server's authority is for no others.
const POOL: [u8; 2] = [32, 47];
const SERVED: &str = "10.77.0.32/28";
/// What a server gives that has nothing to give.
const ROGUE_POOL: [u8; 2] = [200, 210];
/// Short enough to see a lease end.
const SHORT_LEASE_S: u32 = 20;

#[test]
fn every_client_gets_its_certificate_with_its_lease_from_dnsmasq() {
    with_server("dnsmasq", dnsmasq);
}

#[test]
fn every_client_gets_its_certificate_with_its_lease_from_kea() {
    with_server("kea-dhcp4", kea);
}

#[test]
fn every_client_gets_its_certificate_with_its_lease_from_dhcpd() {
    with_server("dhcpd", dhcpd);
}

#[test]
fn a_host_booted_in_1970_gets_its_lease_and_speaks() {
    needing(&["udhcpc", "dnsmasq"], &["d", "a", "b"], |stage| {
        let site = Site::guard(stage, Plan::default().clock_offset_s(-1_795_000_000))?;
        let server = start(stage, "d", "server", dnsmasq, POOL)?;
        let a = Client::start(stage, "a", "udhcpc")?;
        // Host a knows no more of the time than when its certificate begins; b's begins in a later second.
        process::pause(Duration::from_millis(1100))?;
        let b = Client::start(stage, "b", "udhcpc")?;
        reach(&stage.host("a").namespace, b.address, SOON)?;
        reach(&stage.host("b").namespace, a.address, SOON)?;
        assert!(site.a.drops("dhcp-stale")? == 0 && site.d.drops("dhcp-stale")? == 0);
        [a, b].into_iter().for_each(Client::stop);
        server.stop(Signal::TERM);
        Ok(())
    });
}

#[test]
fn a_lease_is_renewed_with_its_certificate_and_ends_with_it() {
    needing(&["udhcpc", "kea-dhcp4"], &["d", "a", "b"], |stage| {
        let site = Site::guard(stage, Plan::default())?;
        let server =
            start(stage, "d", "server", |host, directory, pool| kea_for(host, directory, pool, SHORT_LEASE_S), POOL)?;
        let (a, b) = (Client::start(stage, "a", "udhcpc")?, Client::start(stage, "b", "udhcpc")?);
        reach(&stage.host("a").namespace, b.address, SOON)?;
        for (guarded, given) in [(&site.a, false), (&site.d, true)] {
            shows_lease(guarded, stage, &a, given)?;
        }
        let certified = || Ok::<usize, Failure>(site.d.events()?.matches("by DHCP, with a certificate").count());
        let before = certified()?;
        a.process.signal(Signal::USR1);
        process::until("another certificate", SOON, || Ok(certified()? > before))?;
        // The peers see it at once: new keys through the association that there is, without another handshake.
        site.b.await_event("new keys with a", SOON)?;
        reach(&stage.host("b").namespace, a.address, SOON)?;
        let (address, lost) = (a.address.to_string(), format!("has lost {}", a.address));
        a.stop();
        site.a.await_event(&lost, Duration::from_secs(u64::from(SHORT_LEASE_S) + 10))?;
        process::until("the end of b's association with a", SOON, || {
            Ok(!site.b.ask(&["peers"])?.stdout.contains(&stage.host("a").mac.to_string()))
        })?;
        for guarded in [&site.a, &site.d] {
            let status = guarded.status()?;
            assert!(lease_of(&status, &address).is_none(), "it is over: {status}");
        }
        b.process.signal(Signal::USR2);
        site.b.await_event(&format!("has lost {}", b.address), SOON)?;
        site.b.await_drops("dhcp-given-back", 1)?;
        b.stop();
        server.stop(Signal::TERM);
        Ok(())
    });
}

#[test]
fn a_revoked_host_gets_no_lease() {
    needing(&["udhcpc", "dnsmasq"], &["d", "a", "b"], |stage| {
        let site = Site::guard(stage, Plan::default())?;
        let server = start(stage, "d", "server", dnsmasq, POOL)?;
        Client::start(stage, "b", "udhcpc")?.stop();
        stage.site.revoke("a")?;
        site.d.await_event("revo", SOON)?;
        lease_is_refused(stage, "a")?;
        site.d.await_drops("dhcp-certificate", 1)?;
        server.stop(Signal::TERM);
        Ok(())
    });
}

#[test]
fn what_cannot_work_is_said_before_the_interface_is_touched() {
    perform(&["a"], |stage| {
        let a = stage.host("a");
        let mac = a.mac;
        let (client, server) = ("[dhcp]\nclient = true\n", "[dhcp]\nserver = true\n");
        for (ipv6, tail, options, word) in [
            (true, client, format!("--mac {mac} --ip {}", a.ip), "the certificate names an IP address"),
            (true, server, format!("--mac {mac} --ip {} --role dhcp", a.ip), "--serves SUBNET"),
            (false, "", format!("--mac {mac}"), "names no IP address"),
        ] {
            let identity = stage.site.issue("a", &options)?;
            let plan = Plan::default().cll(&format!("ipv6 = {ipv6}")).tail(tail).identity(identity);
            let answer = stage.prepare("a", plan)?.ask(&["host", "run"])?;
            assert!(!answer.status.success() && answer.stderr.contains(word), "{}", answer.stderr);
            assert!(a.namespace.ip(&format!("addr show dev {INTERFACE}"))?.contains(&a.ip.to_string()), "untouched");
        }
        Ok(())
    });
}

/// The lease of client a, in the status of the host that has or gave it.
fn shows_lease(guarded: &Guarded, stage: &Stage, client: &Client, given: bool) -> Outcome {
    let (address, mac) = (client.address.to_string(), stage.host("a").mac.to_string());
    let status = guarded.status()?;
    let lease = lease_of(&status, &address).unwrap_or_else(|| panic!("no lease of {address}: {status}"));
    assert!(lease["mac"] == mac && lease["given"] == given, "{lease}");
    assert!(
        lease["remaining_s"].as_u64().is_some_and(|left| (1..=u64::from(SHORT_LEASE_S)).contains(&left)),
        "{lease}"
    );
    let whose = if given { format!("given to {mac}") } else { "this host's".to_owned() };
    let said = guarded.ask(&["status"])?.stdout;
    assert!(said.contains(&format!("lease: {address}, {whose}, ")), "{said}");
    Ok(())
}

fn lease_of<'a>(status: &'a serde_json::Value, address: &str) -> Option<&'a serde_json::Value> {
    status["leases"].as_array()?.iter().find(|lease| lease["address"] == address)
}

/// Runs `test` on a LAN of `hosts` where these programs are there, else says by name that it cannot.
fn needing<T: FnOnce(&Stage) -> Outcome>(programs: &[&str], hosts: &[&'static str], test: T) {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !process::installed(program)).collect();
    if missing.is_empty() {
        return perform(hosts, test);
    }
    eprintln!("SKIPPED DHCP under the link layer: needs {}", missing.join(", "));
}

fn start(
    stage: &Stage,
    host: &str,
    directory: &str,
    server: impl FnOnce(&ringwall_lab::net::Host, &std::path::Path, [u8; 2]) -> Result<Running, Failure>,
    pool: [u8; 2],
) -> Result<Running, Failure> {
    let directory = stage.file(directory);
    std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
    server(stage.host(host), &directory, pool)
}

fn with_server(program: &'static str, server: Server) {
    let programs: Vec<&str> = CLIENTS.into_iter().chain([program, "dnsmasq"]).collect();
    needing(&programs, &["d", "a", "b", "m", "u"], |stage| {
        let site = Site::guard(stage, Plan::default())?;
        let server = start(stage, "d", "server", server, POOL)?;
        lease_is_refused(stage, "u")?;
        site.d.await_drops("unsealed", 3)?;
        let rogue = start(stage, "m", "rogue", dnsmasq, ROGUE_POOL)?;
        let other = Client::start(stage, "b", "udhcpc")?;
        for client in CLIENTS {
            site.client_speaks(stage, client, &other)?;
        }
        other.stop();
        let heard = rogue.stop(Signal::TERM);
        assert!(!heard.contains("DHCPDISCOVER"), "the rogue server has heard a client: {heard}");
        server.stop(Signal::TERM);
        Ok(())
    });
}

/// A client on this host asks and gets nothing.
fn lease_is_refused(stage: &Stage, name: &str) -> Outcome {
    let mut command = stage.host(name).namespace.command("udhcpc");
    command.args(["-f", "-n", "-q", "-t", "3", "-T", "1", "-i", INTERFACE, "-s", "/bin/true"]);
    let answer = process::ask(command, &[])?;
    assert!(!answer.status.success(), "{name} got a lease: {}", answer.stderr);
    Ok(())
}

/// A DHCP server and two clients, all guarded, none of the clients with an address.
struct Site {
    d: Guarded,
    a: Guarded,
    b: Guarded,
}

impl Site {
    /// With host a by this plan.
    fn guard(stage: &Stage, plan_of_a: Plan) -> Result<Site, Failure> {
        let d = stage.host("d");
        let options = format!("--mac {} --ip {} --role dhcp --serves {SERVED}", d.mac, d.ip);
        let identity = stage.site.issue("d", &options)?;
        let list = format!("revocation_list = \"{}\"", stage.site.directory().join("revoked.crl.pem").display());
        let plan = Plan::default().cll(&list).tail("[dhcp]\nserver = true\n").identity(identity);
        let d = stage.guard("d", plan)?;
        let client = |name: &'static str, plan: Plan| -> Result<Guarded, Failure> {
            let host = stage.host(name);
            host.namespace.ip(&format!("addr flush dev {INTERFACE}"))?;
            let identity = stage.site.issue(name, &format!("--mac {}", host.mac))?;
            stage.guard(name, plan.tail("[dhcp]\nclient = true\n").identity(identity))
        };
        Ok(Site { d, a: client("a", plan_of_a)?, b: client("b", Plan::default())? })
    }

    /// A client on host a gets its lease and speaks with host b, each by the certificate that came with its lease.
    fn client_speaks(&self, stage: &Stage, program: &'static str, other: &Client) -> Outcome {
        let client = Client::start(stage, "a", program)?;
        assert!((POOL[0]..=POOL[1]).contains(&client.address.octets()[3]), "{program} has {}", client.address);
        self.a.await_event(&format!("this host has {} by DHCP", client.address), SOON)?;
        let (a, b) = (stage.host("a"), stage.host("b"));
        reach(&a.namespace, other.address, SOON)?;
        reach(&b.namespace, client.address, SOON)?;
        let peers = self.b.ask(&["peers"])?.stdout;
        assert!(peers.contains(&client.address.to_string()), "{program}: {peers}");
        client.stop();
        a.namespace.ip(&format!("addr flush dev {INTERFACE}"))?;
        Ok(())
    }
}
