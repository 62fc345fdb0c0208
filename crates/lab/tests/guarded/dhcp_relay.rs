//! S-DHCP through relay agents of other people: the clients' LAN and the servers' LAN are two, joined by a router that runs the
//! relay. Each LAN has a key distributor, because ARP does not pass routers.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::repository::{SqliteStore, Store};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::{INTERFACE, Lan};
use ringwall_lab::net::{Host, Running, process};
use rustix::process::Signal;

use crate::dhcp::{Client, dnsmasq_giving};
use crate::distributors::await_time;
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform};

/// The router's interface in the clients' LAN, and its addresses there.
const INNER: &str = "e1";
const GIADDR: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
const INNER_MAC: &str = "02:00:00:77:01:01";
/// The distributor in the clients' LAN.
const DISTRIBUTOR: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 10);
/// What the server gives to clients behind the relay.
const RANGE: &str = "10.77.1.20,10.77.1.49,255.255.255.0,5m";

#[test]
fn a_client_behind_dnsmasqs_relay_gets_renews_and_gives_back_its_lease() {
    through("dnsmasq", |router, server, directory| {
        let mut command = router.namespace.command("dnsmasq");
        command.args(["--no-daemon", "--port=0", "--user=root", "--conf-file=/dev/null", "--log-dhcp"]);
        command.arg(format!("--dhcp-relay={GIADDR},{}", server.ip));
        let mut relay = Running::start(command, &directory.join("log"))?;
        relay.await_output("DHCP relay from", SOON)?;
        Ok(relay)
    });
}

/// This one adds option 82, which names the circuit (RFC 3046).
#[test]
fn a_client_behind_iscs_relay_gets_renews_and_gives_back_its_lease() {
    through("dhcrelay", |router, server, directory| {
        let mut command = router.namespace.command("dhcrelay");
        command.args(["-4", "-d", "-a", "-pf"]).arg(directory.join("pid"));
        command.args(["-id", INNER, "-iu", INTERFACE, &server.ip.to_string()]);
        let mut relay = Running::start(command, &directory.join("log"))?;
        relay.await_output("Sending on", SOON)?;
        Ok(relay)
    });
}

/// Starts a relay on the router for the server, with its files in a directory.
type Relay = fn(&Host, &Host, &Path) -> Result<Running, Failure>;

/// The same client through the same relay: nothing while the relay is not listed, all of a lease's life once it is.
fn through(program: &'static str, relay: Relay) {
    let missing: Vec<&str> =
        [program, "dnsmasq", "udhcpc"].into_iter().filter(|program| !process::installed(program)).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED S-DHCP through {program}: needs {}", missing.join(", "));
        return;
    }
    perform(&["a", "d", "e", "j", "k"], |stage| {
        let mut lans = Lans::part(stage)?;
        let [server_files, relay_files] = ["server", "relay"].map(|name| stage.file(name));
        for directory in [&server_files, &relay_files] {
            std::fs::create_dir_all(directory).map_err(Failure::file("making", directory))?;
        }
        let relay = relay(stage.host("e"), stage.host("d"), &relay_files)?;
        let server = dnsmasq_giving(stage.host("d"), &server_files, RANGE)?;
        lans.an_unlisted_relay_is_not_heard(stage)?;
        lans.serve(stage, true)?;
        lans.client_lives(stage)?;
        relay.stop(Signal::TERM);
        server.stop(Signal::TERM);
        Ok(())
    });
}

/// Two LANs: k distributes and d serves in one, j distributes and a asks in the other; e routes between them.
struct Lans {
    a: Guarded,
    d: Option<Guarded>,
    /// The server's identity, which the client's names.
    server: PathBuf,
    _distributors: [Guarded; 2],
}

impl Lans {
    fn part(stage: &Stage) -> Result<Lans, Failure> {
        let (router, bridge) = (stage.host("e"), &stage.lan.bridge);
        bridge.ip("link add br1 type bridge mcast_snooping 0")?;
        bridge.ip("link set br1 up")?;
        for host in ["a", "j"] {
            bridge.ip(&format!("link set {} master br1", Lan::port(stage.host(host))))?;
        }
        bridge.ip(&format!("link add p-inner type veth peer name {INNER} netns {}", router.namespace.name()))?;
        bridge.ip("link set p-inner master br1 up")?;
        router.namespace.ip(&format!("link set {INNER} address {INNER_MAC} up"))?;
        router.namespace.ip(&format!("address add {GIADDR}/24 dev {INNER}"))?;
        router.namespace.set_kernel_parameter_if_there("ipv4/ip_forward", "1")?;
        let d = stage.host("d");
        d.namespace.ip(&format!("route add 10.77.1.0/24 via {} dev {INTERFACE}", router.ip))?;
        stage.host("a").namespace.ip(&format!("address flush dev {INTERFACE}"))?;
        stage.host("j").namespace.ip(&format!("address flush dev {INTERFACE}"))?;
        stage.host("j").namespace.ip(&format!("address add {DISTRIBUTOR}/24 dev {INTERFACE}"))?;
        Lans::guard(stage)
    }

    fn guard(stage: &Stage) -> Result<Lans, Failure> {
        let site = &stage.site;
        let [a, d, j, k] = ["a", "d", "j", "k"].map(|name| stage.host(name));
        let in_clients_lan = site.issue("j", &format!("--mac {} --ip {DISTRIBUTOR} --role akd", j.mac))?;
        let in_servers_lan = site.issue("k", &format!("--mac {} --ip {} --role akd", k.mac, k.ip))?;
        let server = site.issue("d", &format!("--mac {} --ip {} --role dhcp", d.mac, d.ip))?;
        let distributors = [
            stage.guard("j", Plan::distributor().identity(in_clients_lan))?,
            stage.guard("k", Plan::distributor().identity(in_servers_lan))?,
        ];
        let identity = site.issue("a", &format!("--mac {} --subnet 10.77.1.0/24", a.mac))?;
        let router = format!("[dhcp]\nclient = true\n[[sarp.known_hosts]]\nip = \"{GIADDR}\"\nmac = \"{INNER_MAC}\"\n");
        let a = stage.guard("a", Plan::sarp().tail(&router).identity(identity))?;
        await_time(&a)?;
        let mut lans = Lans { a, d: None, server, _distributors: distributors };
        lans.serve(stage, false)?;
        Ok(lans)
    }

    /// Guards the server, which believes the relay or not.
    fn serve(&mut self, stage: &Stage, is_listed: bool) -> Outcome {
        drop(self.d.take());
        let router = stage.host("e");
        let mut tail = "[dhcp]\nserver = true\n".to_owned();
        if is_listed {
            tail.push_str(&format!("[[dhcp.relays]]\nip = \"{GIADDR}\"\nmac = \"{}\"\n", router.mac));
        }
        let guarded = stage.guard("d", Plan::sarp().knowing(router).tail(&tail).identity(self.server.clone()))?;
        await_time(&guarded)?;
        self.d = Some(guarded);
        Ok(())
    }

    fn server(&self) -> &Guarded {
        self.d.as_ref().expect("it is guarded")
    }

    fn an_unlisted_relay_is_not_heard(&self, stage: &Stage) -> Outcome {
        let mut command = stage.host("a").namespace.command("udhcpc");
        command.args(["-f", "-n", "-q", "-t", "3", "-T", "1", "-i", INTERFACE, "-s", "/bin/true"]);
        assert!(!process::ask(command, &[])?.status.success(), "a lease by way of a relay that is not listed");
        self.server().await_drops("dhcp-relay", 1)
    }

    /// How long the only lease that the server gave still lasts.
    fn remaining_s(&self) -> Result<Option<u64>, Failure> {
        Ok(self.server().status()?["sarp"]["leases"][0]["remaining_s"].as_u64())
    }

    /// The client gets its lease, renews it straight by way of the router, and gives it back.
    fn client_lives(&self, stage: &Stage) -> Outcome {
        let client = Client::start(stage, "a", "udhcpc")?;
        assert_eq!(client.address.octets()[..3], GIADDR.octets()[..3], "an address of its own LAN");
        self.a.await_event(&format!("this host has {} by DHCP", client.address), SOON)?;
        assert_eq!(addresses_in_repository(stage), [client.address]);
        stage.host("a").namespace.ip(&format!("route add 10.77.0.0/24 via {GIADDR} dev {INTERFACE}"))?;
        process::pause(Duration::from_secs(2))?;
        let before = self.remaining_s()?;
        client.process.signal(Signal::USR1);
        process::until("the renewal", SOON, || Ok(self.remaining_s()? > before))?;
        client.process.signal(Signal::USR2);
        process::until("the release", SOON, || Ok(self.remaining_s()?.is_none()))?;
        process::until("the release in the repository", SOON, || Ok(addresses_in_repository(stage).is_empty()))?;
        client.stop();
        Ok(())
    }
}

/// What the site's repository knows of host a.
fn addresses_in_repository(stage: &Stage) -> Vec<Ipv4Addr> {
    let store = SqliteStore::open(&stage.site.repository()).expect("a repository");
    store.by_name("a").expect("asked").expect("enrolled").addresses
}
