//! A DHCP server and clients for a measurement: other people's programs on the hosts of a LAN, guarded or not.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use wire::MacAddress;

use crate::failure::Failure;
use crate::guard::{Daemon, Site};
use crate::net::lan::{INTERFACE, set_offloads};
use crate::net::{Host, Lan, Running, process};

/// What the programs here need.
const TOOLS: [&str; 3] = ["dnsmasq", "udhcpc", "tcpdump"];
/// Where the addresses lie that are given. The authority of a guarded server is for no others.
pub const SERVED: &str = "10.77.0.32/28";
/// The first and the last of them.
const POOL: [u8; 2] = [33, 46];
/// How long the server may take to its start.
const START_LIMIT: Duration = Duration::from_secs(10);
/// A client asks much more often here than in an office.
const MESSAGES_PER_MINUTE: u32 = 6000;

/// The address that is kept for the client with this number.
pub fn reserved(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, POOL[0] + number)
}

/// Whether the programs are there; says aloud which are not.
pub fn installed(what: &str) -> bool {
    let missing: Vec<&str> = TOOLS.into_iter().filter(|tool| !process::installed(tool)).collect();
    if !missing.is_empty() {
        eprintln!("ringwall-lab: no rows for {what}: needs {}", missing.join(", "));
    }
    missing.is_empty()
}

/// What the daemon of a host has to do with DHCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Gives addresses, each with a certificate.
    Server,
    /// Gets its address.
    Client,
    /// Gets its address while its clock stands at 1970.
    ClientWithoutClock,
}

impl Part {
    /// Issues `host` the identity that this part needs and starts its daemon, which need not be ready yet.
    ///
    /// # Errors
    /// As [`Site::launch`].
    pub fn guard(self, site: &Site, lan: &Lan, host: &Host) -> Result<Daemon, Failure> {
        let ip = host.ip.to_string();
        match self {
            Part::Server => site.issue_anew(host, &["--ip", &ip, "--role", "dhcp", "--serves", SERVED])?,
            Part::Client | Part::ClientWithoutClock => site.issue_anew(host, &[])?,
        }
        self.launch(site, lan, host)
    }

    /// The same with the identity that `host` has.
    ///
    /// # Errors
    /// As [`Site::launch`].
    pub fn launch(self, site: &Site, lan: &Lan, host: &Host) -> Result<Daemon, Failure> {
        site.launch(lan, host, |identity, directory| self.configuration(identity, directory))
    }

    fn configuration(self, identity: &Path, directory: &Path) -> String {
        let (identity, directory) = (identity.display(), directory.display());
        let (profile, dhcp, lab) = match self {
            Part::Server => {
                ("modern", format!("server = true\nmessages_per_minute = {MESSAGES_PER_MINUTE}"), String::new())
            }
            Part::Client => ("modern", "client = true".to_owned(), String::new()),
            Part::ClientWithoutClock => ("lab", "client = true".to_owned(), lab_clock()),
        };
        format!(
            "[host]\ninterface = \"{INTERFACE}\"\nidentity = \"{identity}\"\nprofile = \"{profile}\"\n\
             on_exit = \"closed\"\nrun_dir = \"{directory}/run\"\nstate_dir = \"{directory}/state\"\n\n\
             [dhcp]\n{dhcp}\n{lab}"
        )
    }
}

/// A clock without a battery: as far behind as 1970 is.
fn lab_clock() -> String {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("\n[lab]\nclock_offset_s = -{}\n", since_1970.as_secs())
}

/// Starts dnsmasq on `host`, which keeps an address for each of `clients`, the first for the first.
///
/// # Errors
/// It does not start.
pub fn serve(host: &Host, directory: &Path, clients: &[MacAddress]) -> Result<Running, Failure> {
    let mut command = host.namespace.command("dnsmasq");
    command.args(["--no-daemon", "--port=0", "--bind-interfaces", "--dhcp-authoritative", "--no-ping"]);
    command.args(["--user=root", "--conf-file=/dev/null", "--leasefile-ro"]);
    command.arg(format!("--interface={INTERFACE}"));
    command.arg(format!("--dhcp-range={},{},10m", reserved(0), reserved(POOL[1] - POOL[0])));
    command.args((0..).zip(clients).map(|(number, mac)| format!("--dhcp-host={mac},{}", reserved(number))));
    let mut server = Running::start(command, &directory.join(format!("dnsmasq-{}.log", host.name)))?;
    server.await_output("DHCP, IP range", START_LIMIT)?;
    Ok(server)
}

/// Takes all addresses from `host`, and what its stack has learned.
///
/// # Errors
/// `ip` fails.
pub fn strip(host: &Host) -> Result<(), Failure> {
    host.namespace.ip(&format!("addr flush dev {INTERFACE}"))?;
    host.namespace.ip(&format!("neigh flush dev {INTERFACE}")).map(drop)
}

/// Makes the stack of an unguarded host write whole checksums, as on a wire: clients that read packets look at them.
///
/// # Errors
/// ethtool fails.
pub fn complete_checksums(host: &Host) -> Result<(), Failure> {
    set_offloads(&host.namespace, INTERFACE, &["tx", "off"])
}

/// Writes the script with which a client on `host` sets its address, and then does `more`.
///
/// # Errors
/// The file cannot be written.
pub fn write_script(host: &Host, directory: &Path, more: &str) -> Result<PathBuf, Failure> {
    let script = directory.join(format!("lease-{}.sh", host.name));
    let text = format!(
        "#!/bin/sh\ncase \"$1\" in\n\
         deconfig) command ip address flush dev \"$interface\" ;;\n\
         bound) command ip address replace \"$ip/24\" dev \"$interface\"; {more} ;;\n\
         esac\n"
    );
    std::fs::write(&script, text).map_err(Failure::file("writing", &script))?;
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, executable).map_err(Failure::file("opening", &script))?;
    Ok(script)
}

/// udhcpc on `host`, which asks once a second.
pub fn client(host: &Host, script: &Path) -> Command {
    let mut command = host.namespace.command("udhcpc");
    command.args(["-f", "-t", "20", "-T", "1", "-A", "1", "-i", INTERFACE, "-s"]).arg(script);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_section_and_only_one_is_of_the_lab() {
        let text = |part: Part| part.configuration(Path::new("/x/a.pem"), Path::new("/x"));
        assert!(text(Part::Server).contains("[dhcp]\nserver = true\nmessages_per_minute = "));
        assert!(text(Part::Client).ends_with("[dhcp]\nclient = true\n"));
        let late = text(Part::ClientWithoutClock);
        assert!(late.contains("profile = \"lab\"") && late.contains("[lab]\nclock_offset_s = -1"), "{late}");
    }

    #[test]
    fn what_is_given_lies_where_the_server_may_certify() {
        let served: authority::repository::Subnet = SERVED.parse().expect("a subnet");
        assert!((0..=POOL[1] - POOL[0]).all(|number| served.contains(reserved(number))));
    }
}
