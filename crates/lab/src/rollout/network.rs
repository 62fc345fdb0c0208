//! The LAN of the rollout: who is on it, what is a host of the site and what never will be.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::lan::{INTERFACE, set_offloads};
use crate::net::process::{self, Running};
use crate::net::{Host, Lan, LanPlan};

/// Workplaces, of which as many take part as are asked for.
const WORKPLACES: [&str; 30] = [
    "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9", "h10", "h11", "h12", "h13", "h14", "h15", "h16", "h17",
    "h18", "h19", "h20", "h21", "h22", "h23", "h24", "h25", "h26", "h27", "h28", "h29", "h30",
];
/// Beside them on every LAN: the authority's machine, the router, and two DHCP servers.
pub(super) const AUTHORITY: &str = "s";
pub(super) const ROUTER: &str = "r";
pub(super) const DHCP_SERVERS: [&str; 2] = ["d1", "d2"];
/// What never gets Ringwall. The last one has its address by DHCP.
pub(super) const PRINTERS: [&str; 3] = ["p1", "p2", "p3"];
/// Takes the place of the first printer.
pub(super) const NEW_PRINTER: &str = "p4";
pub(super) const ATTACKER: &str = "m";
/// Where a printer takes its jobs.
const PRINTING: u16 = 9100;
/// Fewest hosts of the site: all servers and two workplaces.
pub const HOSTS_MIN: usize = 6;
/// Most hosts of the site.
pub const HOSTS_MAX: usize = 34;
/// What each DHCP server gives to who has no reservation there.
const POOLS: [[u8; 2]; 2] = [[48, 55], [56, 63]];
/// What the attacker's DHCP server gives.
pub(super) const FORGED: [u8; 2] = [112, 119];
const START_LIMIT: Duration = Duration::from_secs(10);
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// Where a DHCP server of the site may certify addresses: those that it gives.
pub(super) fn served(number: usize) -> String {
    format!("10.77.0.{}/29", POOLS[number][0])
}

/// The LAN with all that runs on it beside Ringwall.
pub(super) struct Network {
    pub(super) lan: Lan,
    /// Names of the hosts of the site.
    pub(super) members: Vec<&'static str>,
    pub(super) directory: PathBuf,
    _running: Vec<Running>,
    printing: Vec<TcpListener>,
}

impl Network {
    /// Makes a LAN with `hosts` hosts of the site, and has its servers and printers work.
    pub(super) fn set(run: &Run, hosts: usize) -> Result<Network, Failure> {
        let workplaces = hosts.saturating_sub(HOSTS_MIN - 2);
        let servers = [AUTHORITY, ROUTER].into_iter().chain(DHCP_SERVERS);
        let members: Vec<&str> = servers.chain(WORKPLACES.into_iter().take(workplaces)).collect();
        let others = PRINTERS.into_iter().chain([NEW_PRINTER, ATTACKER]);
        let plan = LanPlan { hosts: members.iter().copied().chain(others).collect(), ..LanPlan::default() };
        let lan = Lan::create(run, &plan)?;
        let directory = lan.directory.clone();
        // A test that came before has cleared away what was there.
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let mut network = Network { lan, members, directory, _running: Vec::new(), printing: Vec::new() };
        network.lan.unplug(network.host(NEW_PRINTER)?)?;
        for name in PRINTERS.into_iter().chain([NEW_PRINTER]) {
            network.printing.push(network.host(name)?.namespace.enter(listen)?);
        }
        let router = network.host(ROUTER)?.ip;
        for name in network.members.iter().filter(|name| **name != ROUTER) {
            network.host(name)?.namespace.ip(&format!("route add default via {router}"))?;
        }
        network.serve_dhcp()?;
        Ok(network)
    }

    pub(super) fn host(&self, name: &str) -> Result<&Host, Failure> {
        self.lan.host(name)
    }

    pub(super) fn member_hosts(&self) -> Vec<&Host> {
        self.lan.hosts.iter().filter(|host| self.members.contains(&host.name)).collect()
    }

    /// The file into which a DHCP server writes its leases.
    pub(super) fn leases(&self, server: &str) -> PathBuf {
        self.directory.join(format!("{server}.leases"))
    }

    /// Both servers keep its address for the last printer, which asks for it and renews it.
    fn serve_dhcp(&mut self) -> Result<(), Failure> {
        let Some(printer) = PRINTERS.last() else { return Ok(()) };
        let printer = self.host(printer)?.clone();
        set_offloads(&printer.namespace, INTERFACE, &["tx", "off"])?;
        let reservation = format!("--dhcp-host={},{},office-printer", printer.mac, printer.ip);
        for (name, pool) in DHCP_SERVERS.into_iter().zip(POOLS) {
            let server = self.host(name)?;
            set_offloads(&server.namespace, INTERFACE, &["tx", "off"])?;
            let mut command = dnsmasq(server, &self.leases(name), pool);
            command.arg(&reservation);
            self._running.push(start(command, &self.directory.join(format!("dnsmasq-{name}.log")))?);
        }
        let script = write_script(&self.directory)?;
        printer.namespace.ip(&format!("address flush dev {INTERFACE}"))?;
        let mut client = printer.namespace.command("udhcpc");
        client.args(["-f", "-t", "20", "-T", "1", "-A", "1", "-i", INTERFACE, "-s"]).arg(&script);
        let mut client = Running::start(client, &self.directory.join("udhcpc-printer.log"))?;
        client.await_output("obtained", START_LIMIT)?;
        self._running.push(client);
        Ok(())
    }

    /// Puts another printer into the place of the first one, at its address.
    pub(super) fn replace_printer(&self) -> Result<(), Failure> {
        let (old, new) = (self.host(PRINTERS[0])?, self.host(NEW_PRINTER)?);
        self.lan.unplug(old)?;
        new.namespace.ip(&format!("address flush dev {INTERFACE}"))?;
        new.namespace.ip(&format!("address add {}/24 dev {INTERFACE}", old.ip))?;
        self.lan.bridge.ip(&format!("link set {} up", Lan::port(new))).map(drop)
    }

    /// Who of the hosts cannot print at `printer` right now.
    pub(super) fn cannot_print(&self, printer: Ipv4Addr) -> Result<Vec<&'static str>, Failure> {
        let mut failed = Vec::new();
        for host in self.member_hosts() {
            let connect =
                || Ok(TcpStream::connect_timeout(&SocketAddr::from((printer, PRINTING)), CONNECT_LIMIT).is_ok());
            if !host.namespace.enter(connect)? {
                failed.push(host.name);
            }
            self.take_jobs();
        }
        Ok(failed)
    }

    /// The printers take what has come. Where nobody does, the kernel refuses the 130th connection.
    fn take_jobs(&self) {
        for printer in &self.printing {
            while printer.accept().is_ok() {}
        }
    }
}

fn listen() -> Result<TcpListener, Failure> {
    let failed = || Failure::io("opening a printer's port");
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PRINTING)).map_err(failed())?;
    listener.set_nonblocking(true).map_err(failed())?;
    Ok(listener)
}

/// dnsmasq on `host`, which gives the addresses of `pool`.
pub(super) fn dnsmasq(host: &Host, leases: &Path, pool: [u8; 2]) -> Command {
    let mut command = host.namespace.command("dnsmasq");
    command.args(["--no-daemon", "--port=0", "--bind-interfaces", "--dhcp-authoritative", "--no-ping", "--log-dhcp"]);
    command.args(["--user=root", "--conf-file=/dev/null", &format!("--interface={INTERFACE}")]);
    command.arg(format!("--dhcp-leasefile={}", leases.display()));
    command.arg(format!("--dhcp-range=10.77.0.{},10.77.0.{},2m", pool[0], pool[1]));
    command
}

/// Starts dnsmasq.
pub(super) fn start(command: Command, log: &Path) -> Result<Running, Failure> {
    let mut server = Running::start(command, log)?;
    server.await_output("DHCP, IP range", START_LIMIT)?;
    Ok(server)
}

/// What the printer does with its lease.
fn write_script(directory: &Path) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::PermissionsExt;
    let script = directory.join("lease.sh");
    let text = "#!/bin/sh\ncase \"$1\" in\n\
                deconfig) ip address flush dev \"$interface\" ;;\n\
                bound|renew) ip address replace \"$ip/24\" dev \"$interface\" ;;\n\
                esac\n";
    std::fs::write(&script, text).map_err(Failure::file("writing", &script))?;
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, executable).map_err(Failure::file("opening", &script))?;
    Ok(script)
}

/// Whether the tools of the rollout are there.
pub(super) fn check_tools() -> Result<(), Failure> {
    let missing = ["dnsmasq", "udhcpc", "arpspoof", "ethtool"].into_iter().find(|tool| !process::installed(tool));
    missing.map_or(Ok(()), |tool| Err(Failure::MissingTool(tool.to_owned())))
}
