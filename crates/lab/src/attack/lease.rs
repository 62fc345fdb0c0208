//! The DHCP programs of an attack's LAN: a server whose leases and a client whose belief can be read.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use wire::MacAddress;

use crate::attack::scene::Scene;
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::{Host, Running, process};

/// How long a program may take to its start or to its lease. A server that first pings what it offers takes 3 s.
const LIMIT: Duration = Duration::from_secs(12);
/// How long an answer may take on a loaded machine.
const ANSWER_LIMIT: Duration = Duration::from_millis(600);

/// A DHCP server.
pub(super) struct Server {
    process: Running,
    file: PathBuf,
}

impl Server {
    /// Starts dnsmasq on `host` for the addresses 10.77.0.`numbers`; `more` are further options.
    pub(super) fn start(scene: &Scene<'_>, host: &Host, numbers: [u8; 2], more: &[&str]) -> Result<Server, Failure> {
        let file = scene.file(&format!("leases-{}", host.name));
        // Each LAN is new, but its directory is not.
        std::fs::write(&file, "").map_err(Failure::file("emptying", &file))?;
        let [first, last] = numbers.map(|number| Ipv4Addr::new(10, 77, 0, number));
        let mut command = host.namespace.command("dnsmasq");
        command.args(["--no-daemon", "--port=0", "--bind-interfaces", "--user=root", "--conf-file=/dev/null"]);
        command.arg(format!("--interface={INTERFACE}")).arg(format!("--dhcp-range={first},{last},10m"));
        command.arg(format!("--dhcp-leasefile={}", file.display()));
        command.arg(format!("--dhcp-option=option:dns-server,{}", host.ip)).args(more);
        let mut process = Running::start(command, &scene.file(&format!("dnsmasq-{}.log", host.name)))?;
        process.await_output("DHCP, IP range", LIMIT)?;
        Ok(Server { process, file })
    }

    /// Makes it read its file of options again.
    pub(super) fn reread(&self) -> Result<(), Failure> {
        let times = || self.process.output().matches("dhcp: read ").count();
        let before = times();
        self.process.signal(Signal::HUP);
        process::until("the new options of dnsmasq", LIMIT, || Ok(times() > before))
    }

    /// How many addresses it has offered so far.
    pub(super) fn offers(&self) -> usize {
        self.process.output().matches("DHCPOFFER").count()
    }

    /// Who has which address, by the server's own file.
    pub(super) fn leases(&self) -> Result<Vec<(MacAddress, Ipv4Addr)>, Failure> {
        let text = std::fs::read_to_string(&self.file).map_err(Failure::file("reading", &self.file))?;
        Ok(leases_in(&text))
    }

    /// Whether it has a lease for `mac`.
    pub(super) fn knows(&self, mac: MacAddress) -> Result<bool, Failure> {
        Ok(self.leases()?.iter().any(|(holder, _)| *holder == mac))
    }
}

/// The leases in a file of dnsmasq's: end, hardware address, address, name, client identifier.
fn leases_in(text: &str) -> Vec<(MacAddress, Ipv4Addr)> {
    let lease = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    text.lines().filter_map(lease).collect()
}

/// A DHCP client that has its lease.
pub(super) struct Client {
    process: Running,
    diary: PathBuf,
    host: Host,
    /// What it was given.
    pub(super) ip: Ipv4Addr,
}

impl Client {
    /// Starts udhcpc on `host` and waits for its lease.
    pub(super) fn start(scene: &Scene<'_>, host: &Host) -> Result<Client, Failure> {
        let diary = scene.file("diary");
        let script = write_script(scene, &diary)?;
        let process = Running::start(command(host, &["-t", "10", "-T", "2"], &script), &scene.file("udhcpc.log"))?;
        let mut client = Client { process, diary, host: host.clone(), ip: Ipv4Addr::UNSPECIFIED };
        process::until("the lease of the honest client", LIMIT, || {
            client.process.ensure_alive()?;
            Ok(client.wrote("bound")? > 0)
        })?;
        let words = client.last("bound")?;
        let ip = words.get(1).and_then(|word| word.parse().ok());
        client.ip = ip.ok_or_else(|| Failure::Unreadable(format!("udhcpc has a lease of {words:?}")))?;
        Ok(client)
    }

    /// Whether udhcpc on `host` gets a lease if it asks three times.
    pub(super) fn is_served(scene: &Scene<'_>, host: &Host) -> Result<bool, Failure> {
        let script = write_script(scene, &scene.file("diary"))?;
        let answer = process::ask(command(host, &["-n", "-q", "-t", "3", "-T", "1"], &script), &[])?;
        Ok(answer.status.success())
    }

    /// Makes it renew its lease and waits for an answer.
    pub(super) fn renew(&self) -> Result<(), Failure> {
        let before = self.answers()?;
        // udhcpc misses an answer that is there before it has closed the socket by which it asked. Told again, it starts anew.
        for limit in [ANSWER_LIMIT, LIMIT] {
            self.process.signal(Signal::USR1);
            if process::within(limit, || Ok(self.answers()? > before))? {
                return Ok(());
            }
        }
        Err(Failure::Late { what: "an answer to the honest client".to_owned(), limit: LIMIT })
    }

    /// How often its server, or who passes for it, has granted or refused what it asked for.
    pub(super) fn answers(&self) -> Result<usize, Failure> {
        Ok(self.wrote("bound")? + self.wrote("renew")? + self.wrote("nak")?)
    }

    /// Makes it give its lease back.
    pub(super) fn release(&self) {
        self.process.signal(Signal::USR2);
    }

    /// How often its script was called for `event`: bound, renew, nak, deconfig.
    pub(super) fn wrote(&self, event: &str) -> Result<usize, Failure> {
        Ok(self.lines()?.iter().filter(|words| words.first().is_some_and(|word| word == event)).count())
    }

    /// The router through which the host sends what is for elsewhere.
    pub(super) fn router(&self) -> Result<Option<Ipv4Addr>, Failure> {
        let table = self.host.namespace.ip("-4 route show default")?;
        Ok(table.split_whitespace().skip_while(|word| *word != "via").nth(1).and_then(|word| word.parse().ok()))
    }

    /// The DNS server that it was told last.
    pub(super) fn resolver(&self) -> Result<Option<Ipv4Addr>, Failure> {
        let told = |words: &Vec<String>| words.get(3).and_then(|word| word.parse().ok());
        Ok(self.lines()?.iter().rev().find_map(told))
    }

    /// Whether the host still has the address that it was given.
    pub(super) fn has_address(&self) -> Result<bool, Failure> {
        let table = self.host.namespace.ip(&format!("-4 address show dev {INTERFACE}"))?;
        Ok(table.contains(&format!("inet {}/", self.ip)))
    }

    fn last(&self, event: &str) -> Result<Vec<String>, Failure> {
        let mut lines = self.lines()?.into_iter().rev();
        Ok(lines.find(|words| words.first().is_some_and(|word| word == event)).unwrap_or_default())
    }

    fn lines(&self) -> Result<Vec<Vec<String>>, Failure> {
        let text = std::fs::read_to_string(&self.diary).map_err(Failure::file("reading", &self.diary))?;
        Ok(text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect())
    }
}

/// Writes the script that sets what udhcpc is told and keeps a diary of it, which it starts anew.
fn write_script(scene: &Scene<'_>, diary: &Path) -> Result<PathBuf, Failure> {
    std::fs::write(diary, "").map_err(Failure::file("emptying", diary))?;
    let text = format!(
        "#!/bin/sh\ncase \"$1\" in\n\
         deconfig) command ip address flush dev \"$interface\" ;;\n\
         bound|renew)\n\
         command ip address replace \"$ip/24\" dev \"$interface\"\n\
         [ -z \"$router\" ] || command ip route replace default via \"${{router%% *}}\" ;;\n\
         esac\n\
         echo \"$1,$ip,$router,$dns\" >> '{}'\n",
        diary.display()
    );
    let script = scene.file("script");
    std::fs::write(&script, text).map_err(Failure::file("writing", &script))?;
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, executable).map_err(Failure::file("opening", &script))?;
    Ok(script)
}

fn command(host: &Host, options: &[&str], script: &Path) -> Command {
    let mut command = host.namespace.command("udhcpc");
    command.args(["-f", "-i", INTERFACE]).args(options).arg("-s").arg(script);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_read_as_dnsmasq_writes_them() {
        let text = "1794000000 02:00:00:77:00:05 10.77.0.33 * 01:02:00:00:77:00:05\n\nduid 00:01\n";
        let mac = MacAddress([2, 0, 0, 0x77, 0, 5]);
        assert_eq!(leases_in(text), [(mac, Ipv4Addr::new(10, 77, 0, 33))]);
    }
}
