//! S-DHCP beside other people's DHCP programs: every server with every client, a rogue server, and a host that is not enrolled.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use authority::repository::{SqliteStore, Store};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Host, Running, process};
use rustix::process::Signal;

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform, program};

/// How long a client may take to its lease: dhclient waits seconds before it asks, and longer before it asks again.
const LEASE_LIMIT: Duration = Duration::from_secs(60);
/// The clients, by the name of the program.
pub const CLIENTS: [&str; 3] = ["dhclient", "udhcpc", "dhcpcd"];
/// What each server gives to the clients of its test: addresses 10.77.0.20 to 10.77.0.49.
const POOL: [u8; 2] = [20, 49];
/// What the attacker's server gives.
const ROGUE_POOL: [u8; 2] = [200, 210];

/// Sets the address that a client was given; understands dhclient and udhcpc. dhcpcd does so itself.
const SCRIPT: &str = "#!/bin/sh
case \"$1$reason\" in
bound|renew|BOUND|RENEW|REBIND|REBOOT)
    command ip addr replace \"${new_ip_address:-$ip}/24\" dev \"$interface\" ;;
esac
exit 0
";

#[test]
fn every_client_gets_its_lease_from_dnsmasq() {
    with_server("dnsmasq", dnsmasq);
}

#[test]
fn every_client_gets_its_lease_from_kea() {
    with_server("kea-dhcp4", kea);
}

#[test]
fn every_client_gets_its_lease_from_dhcpd() {
    with_server("dhcpd", dhcpd);
}

#[test]
fn a_lease_is_renewed_and_given_back_and_a_revoked_host_gets_none() {
    if !["udhcpc", "dnsmasq"].into_iter().all(process::installed) {
        eprintln!("SKIPPED renewal under S-DHCP: needs udhcpc, dnsmasq");
        return;
    }
    perform(&["k", "d", "a", "b"], |stage| {
        let site = Site::guard(stage)?;
        let directory = stage.file("server");
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let server = dnsmasq(stage.host("d"), &directory, POOL)?;
        let client = Client::start(stage, "a", "udhcpc")?;
        process::until("the lease at the server", SOON, || Ok(site.remaining_s()?.is_some()))?;
        process::pause(Duration::from_secs(2))?;
        let before = site.remaining_s()?;
        client.process.signal(Signal::USR1);
        process::until("the renewal", SOON, || Ok(site.remaining_s()? > before))?;
        assert_eq!(addresses_in_repository(stage, "a"), [client.address]);
        client.process.signal(Signal::USR2);
        process::until("the release", SOON, || Ok(site.remaining_s()?.is_none()))?;
        process::until("the release in the repository", SOON, || Ok(addresses_in_repository(stage, "a").is_empty()))?;
        assert!(site.a.status()?["sarp"]["leases"].is_null(), "host a speaks for the address no more");
        client.stop();
        let mut revoke = Command::new(program());
        revoke.args(["site", "revoke", "--name", "b", "--dir"]).arg(stage.site.directory());
        process::must(revoke)?;
        let mut command = stage.host("b").namespace.command("udhcpc");
        command.args(["-f", "-n", "-q", "-t", "3", "-T", "1", "-i", INTERFACE, "-s", "/bin/true"]);
        assert!(!process::ask(command, &[])?.status.success(), "a revoked host got a lease");
        site.d.await_event("is revoked, or its time is over", SOON)?;
        server.stop(Signal::TERM);
        Ok(())
    });
}

/// What the site's repository knows of host `name`.
fn addresses_in_repository(stage: &Stage, name: &str) -> Vec<Ipv4Addr> {
    let store = SqliteStore::open(&stage.site.directory().join("hosts.db")).expect("a repository");
    store.by_name(name).expect("asked").expect("enrolled").addresses
}

#[test]
fn what_cannot_work_is_said_before_the_interface_is_touched() {
    perform(&["k", "a"], |stage| {
        let (k, a) = (stage.host("k"), stage.host("a"));
        stage.site.issue("k", &format!("--mac {} --ip {} --role akd", k.mac, k.ip))?;
        let mac = a.mac;
        for (tail, options, word) in [
            ("[dhcp]\nclient = true\n", format!("--mac {mac} --subnet 10.77.0.0/24"), "names no DHCP server"),
            ("[dhcp]\nserver = true\n", format!("--mac {mac} --ip {}", a.ip), "role is not dhcp"),
            ("", format!("--mac {mac} --subnet 10.77.0.0/24"), "names no IP address"),
        ] {
            let identity = stage.site.issue("a", &options)?;
            let plan = Plan::default().host("mode = \"sarp\"").tail(tail).identity(identity);
            let answer = stage.prepare("a", plan)?.ask(&["host", "run"])?;
            assert!(!answer.status.success() && answer.stderr.contains(word), "{}", answer.stderr);
            assert!(a.namespace.ip(&format!("addr show dev {INTERFACE}"))?.contains(&a.ip.to_string()), "untouched");
        }
        Ok(())
    });
}

/// Starts a server that gives the addresses between these numbers, with its files in a directory.
pub type Server = fn(&Host, &Path, [u8; 2]) -> Result<Running, Failure>;

fn with_server(program: &'static str, server: Server) {
    let missing: Vec<&str> =
        CLIENTS.into_iter().chain([program, "dnsmasq"]).filter(|program| !process::installed(program)).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED S-DHCP with {program}: needs {}", missing.join(", "));
        return;
    }
    perform(&["k", "d", "a", "b", "m", "u"], |stage| {
        let site = Site::guard(stage)?;
        let directory = stage.file("server");
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let server = server(stage.host("d"), &directory, POOL)?;
        site.outsiders_get_nothing(stage)?;
        let rogue_directory = stage.file("rogue");
        std::fs::create_dir_all(&rogue_directory).map_err(Failure::file("making", &rogue_directory))?;
        let rogue = dnsmasq(stage.host("m"), &rogue_directory, ROGUE_POOL)?;
        let other = Client::start(stage, "b", "udhcpc")?;
        for client in CLIENTS {
            site.client_speaks(stage, client, other.address)?;
        }
        assert!(site.a.drops("dhcp-unsigned")? > 0, "the rogue server has answered");
        let given = site.d.status()?;
        assert!(given["sarp"]["leases"].as_array().is_some_and(|leases| leases.len() > 1), "{given}");
        other.stop();
        rogue.stop(Signal::TERM);
        server.stop(Signal::TERM);
        Ok(())
    });
}

/// A distributor, a DHCP server and two clients, all guarded.
struct Site {
    d: Guarded,
    a: Guarded,
    _b: Guarded,
    _k: Guarded,
}

impl Site {
    fn guard(stage: &Stage) -> Result<Site, Failure> {
        let (k, d) = (stage.host("k"), stage.host("d"));
        let distributor = stage.site.issue("k", &format!("--mac {} --ip {} --role akd", k.mac, k.ip))?;
        let server = stage.site.issue("d", &format!("--mac {} --ip {} --role dhcp", d.mac, d.ip))?;
        let repository = stage.site.directory().join("hosts.db");
        let akd = format!("[akd]\nrepository = \"{}\"\n", repository.display());
        let plan = |tail: &str| Plan::default().host("mode = \"sarp\"").tail(tail);
        let mut k = stage.prepare("k", plan(&akd).identity(distributor))?;
        let command = k.command(&["akd", "run"]);
        k.launch_command(command)?;
        k.await_ready()?;
        let client = |name: &'static str| -> Result<Guarded, Failure> {
            let host = stage.host(name);
            host.namespace.ip(&format!("addr flush dev {INTERFACE}"))?;
            let identity = stage.site.issue(name, &format!("--mac {} --subnet 10.77.0.0/24", host.mac))?;
            stage.guard(name, plan("[dhcp]\nclient = true\n").identity(identity))
        };
        let d = stage.guard("d", plan("[dhcp]\nserver = true\n").identity(server))?;
        let site = Site { d, a: client("a")?, _b: client("b")?, _k: k };
        for guarded in [&site.d, &site.a, &site._b] {
            process::until(&format!("the time on {}", guarded.host.name), SOON, || {
                Ok(!guarded.status()?["sarp"]["clock_unix_s"].is_null())
            })?;
        }
        Ok(site)
    }

    /// How long the only lease that the server gave still lasts.
    fn remaining_s(&self) -> Result<Option<u64>, Failure> {
        Ok(self.d.status()?["sarp"]["leases"][0]["remaining_s"].as_u64())
    }

    /// A host that is not part of the site asks and hears nothing.
    fn outsiders_get_nothing(&self, stage: &Stage) -> Outcome {
        let mut command = stage.host("u").namespace.command("udhcpc");
        command.args(["-f", "-n", "-q", "-t", "3", "-T", "1", "-i", INTERFACE, "-s", "/bin/true"]);
        let answer = process::ask(command, &[])?;
        assert!(!answer.status.success(), "it got a lease: {}", answer.stderr);
        self.d.await_drops("dhcp-unsigned", 3)
    }

    /// A client on host a gets its lease and speaks with host b, whose address it finds by signed ARP and by no other.
    fn client_speaks(&self, stage: &Stage, program: &'static str, other: Ipv4Addr) -> Outcome {
        let client = Client::start(stage, "a", program)?;
        assert!((POOL[0]..=POOL[1]).contains(&client.address.octets()[3]), "{program} has {}", client.address);
        self.a.await_event(&format!("this host has {} by DHCP", client.address), SOON)?;
        let (a, b) = (stage.host("a"), stage.host("b"));
        reach(&a.namespace, other, SOON)?;
        reach(&b.namespace, client.address, SOON)?;
        assert_eq!(a.neighbour(other)?.map(|found| found.mac), Some(b.mac), "{program}");
        assert_eq!(b.neighbour(client.address)?.map(|found| found.mac), Some(a.mac), "{program}");
        client.stop();
        a.namespace.ip(&format!("addr flush dev {INTERFACE}"))?;
        Ok(())
    }
}

/// A DHCP client that has its lease.
pub struct Client {
    pub process: Running,
    pub address: Ipv4Addr,
}

impl Client {
    pub fn start(stage: &Stage, name: &str, program: &str) -> Result<Client, Failure> {
        let host = stage.host(name);
        let directory = stage.file(&format!("client-{name}-{program}"));
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let script = directory.join("script");
        std::fs::write(&script, SCRIPT).map_err(Failure::file("writing", &script))?;
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, executable).map_err(Failure::file("opening", &script))?;
        let command = client_command(host, program, &directory, &script);
        let mut process = Running::start(command, &directory.join("log"))?;
        let mut address = None;
        let leased = process::until(&format!("the lease of {program}"), LEASE_LIMIT, || {
            process.ensure_alive()?;
            address = address_of(host)?;
            Ok(address.is_some())
        });
        let Some(address) = address else {
            let said = process.stop(Signal::TERM);
            return Err(leased.err().unwrap_or(Failure::Unreadable(said)));
        };
        Ok(Client { process, address })
    }

    /// Ends the program; its lease stays.
    pub fn stop(self) {
        // Some give it back when they are asked to end.
        self.process.stop(Signal::KILL);
    }
}

fn client_command(host: &Host, program: &str, directory: &Path, script: &Path) -> Command {
    // dhcpcd keeps leases and sockets in fixed places, and helpers beside itself: it gets places and processes of its own,
    // which end with it.
    let own = ["--mount", "--pid", "--fork", "--kill-child", "--", "sh", "-c"];
    let places = "mount -t tmpfs none /run && mount -t tmpfs none /var/lib && mkdir /var/lib/dhcpcd && exec \"$@\"";
    let mut command = host.namespace.command(if program == "dhcpcd" { "unshare" } else { program });
    match program {
        "dhclient" => {
            command.args(["-4", "-d", "-1", "-sf"]).arg(script);
            command.arg("-lf").arg(directory.join("leases")).arg("-pf").arg(directory.join("pid")).arg(INTERFACE)
        }
        "udhcpc" => command.args(["-f", "-t", "10", "-T", "3", "-i", INTERFACE, "-s"]).arg(script),
        _ => {
            command.args(own).args([places, "sh", "dhcpcd"]);
            let options =
                ["-4", "-B", "-d", "-t", "0", "-c", "/bin/true", "--nohook", "resolv.conf", "-f", "/dev/null"];
            command.args(options).arg(INTERFACE)
        }
    };
    command
}

/// The address of the guarded interface.
fn address_of(host: &Host) -> Result<Option<Ipv4Addr>, Failure> {
    let text = host.namespace.ip(&format!("-4 -json addr show dev {INTERFACE} scope global"))?;
    let table: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("`ip -json addr`: {error}")))?;
    Ok(table[0]["addr_info"][0]["local"].as_str().and_then(|local| local.parse().ok()))
}

fn pool(numbers: [u8; 2]) -> [String; 2] {
    numbers.map(|number| format!("10.77.0.{number}"))
}

pub fn dnsmasq(host: &Host, directory: &Path, numbers: [u8; 2]) -> Result<Running, Failure> {
    let [first, last] = pool(numbers);
    dnsmasq_giving(host, directory, &format!("{first},{last},5m"))
}

/// The same for any range, as dnsmasq writes it.
pub fn dnsmasq_giving(host: &Host, directory: &Path, range: &str) -> Result<Running, Failure> {
    let mut command = host.namespace.command("dnsmasq");
    command.args(["--no-daemon", "--port=0", "--bind-interfaces", "--dhcp-authoritative", "--no-ping", "--log-dhcp"]);
    command.args(["--user=root", "--conf-file=/dev/null", "--leasefile-ro"]);
    command.arg(format!("--interface={INTERFACE}")).arg(format!("--dhcp-range={range}"));
    let mut server = Running::start(command, &directory.join("log"))?;
    server.await_output("DHCP, IP range", SOON)?;
    Ok(server)
}

pub fn kea(host: &Host, directory: &Path, numbers: [u8; 2]) -> Result<Running, Failure> {
    kea_for(host, directory, numbers, 300)
}

/// The same for so many seconds.
pub fn kea_for(host: &Host, directory: &Path, numbers: [u8; 2], lease_s: u32) -> Result<Running, Failure> {
    let [first, last] = pool(numbers);
    let file = directory.join("kea.json");
    let text = format!(
        "{{\"Dhcp4\": {{\"interfaces-config\": {{\"interfaces\": [\"{INTERFACE}\"]}},\n\
         \"lease-database\": {{\"type\": \"memfile\", \"persist\": false}}, \"valid-lifetime\": {lease_s},\n\
         \"subnet4\": [{{\"subnet\": \"10.77.0.0/24\", \"pools\": [{{\"pool\": \"{first} - {last}\"}}]}}],\n\
         \"loggers\": [{{\"name\": \"kea-dhcp4\", \"output_options\": [{{\"output\": \"stdout\"}}],\n\
         \"severity\": \"INFO\"}}]}}}}\n"
    );
    std::fs::write(&file, text).map_err(Failure::file("writing", &file))?;
    let mut command = host.namespace.command("kea-dhcp4");
    command.arg("-c").arg(&file).env("KEA_PIDFILE_DIR", directory).env("KEA_LOCKFILE_DIR", directory);
    let mut server = Running::start(command, &directory.join("log"))?;
    server.await_output("DHCP4_STARTED", SOON)?;
    Ok(server)
}

pub fn dhcpd(host: &Host, directory: &Path, numbers: [u8; 2]) -> Result<Running, Failure> {
    let [first, last] = pool(numbers);
    let (file, leases) = (directory.join("dhcpd.conf"), directory.join("leases"));
    let text = format!(
        "authoritative;\ndefault-lease-time 300;\nmax-lease-time 300;\nping-check false;\n\
         subnet 10.77.0.0 netmask 255.255.255.0 {{ range {first} {last}; }}\n"
    );
    for (file, text) in [(&file, text.as_str()), (&leases, "")] {
        std::fs::write(file, text).map_err(Failure::file("writing", file))?;
    }
    let mut command = host.namespace.command("dhcpd");
    command.args(["-4", "-f", "-d", "-user", "root", "-group", "root", "-cf"]).arg(&file);
    command.arg("-lf").arg(&leases).arg("-pf").arg(directory.join("pid")).arg(INTERFACE);
    let mut server = Running::start(command, &directory.join("log"))?;
    server.await_output("Listening on", SOON)?;
    Ok(server)
}
