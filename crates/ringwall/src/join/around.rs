//! Who answers on the network: looked at before the interface is taken over, and compared with
//! afterwards.
//!
//! What did not answer before need not answer afterwards, so a dead name server stops no joining.
//! What was found is kept in a file until the end, because a joining that goes on finds the
//! interface guarded already.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use authority::files::{self, Overwrite, Secrecy};
use serde::{Deserialize, Serialize};
use system::takeover::{self, state};

use super::account::{Account, Outcome};
use super::cards;
use crate::client;
use crate::failure::Failure;
use crate::modes::contract::Told;
use crate::modes::file::Config;
use crate::modes::of;
use crate::protocol::{Answer, Ask};

/// The kernel's table of neighbours, and the flag of those whose hardware address is known.
const NEIGHBOURS: &str = "/proc/net/arp";
const IS_COMPLETE: u32 = 2;
/// Nobody listens there (RFC 863); what counts is the question for the hardware address before it.
const DISCARD_PORT: u16 = 9;
const DNS_PORT: u16 = 53;
/// How long a neighbour may take to answer. A switch may take seconds to believe a new port.
const NEIGHBOUR_TIME: Duration = Duration::from_secs(8);
/// How long somebody may take to prove himself, if it is not needed; and if it is.
const PROOF_TIME: Duration = Duration::from_secs(4);
const PROOF_TIME_NEEDED: Duration = Duration::from_secs(15);
const DNS_TIME: Duration = Duration::from_secs(1);
const DNS_TRIES: u32 = 3;
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// How many neighbours are spoken to, so that those who seal show themselves.
const NEIGHBOURS_MAX: usize = 32;
/// How many name servers of the machine's own list are tried; the C library reads no more.
const NAME_SERVERS_MAX: usize = 3;
/// A question for the name servers of the root: the smallest that any name server answers, even if
/// it refuses.
const QUESTION: [u8; 17] = [0x52, 0x57, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];

/// What is kept in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Found {
    gateways: Vec<Ipv4Addr>,
    name_servers: Vec<Ipv4Addr>,
    peers: Vec<Ipv4Addr>,
    neighbours: Vec<Ipv4Addr>,
    silent: Vec<String>,
}

/// Who answered before.
pub(super) struct Before {
    found: Found,
    file: PathBuf,
}

impl Before {
    /// Looks, or reads what an earlier run has seen before the interface was taken over.
    pub(super) fn of(config: &Config, name_servers: &[Ipv4Addr], peers: &[Ipv4Addr]) -> Result<Before, Failure> {
        let (interface, state_dir) = (&config.host.interface, &config.host.state_dir);
        let file = file_of(state_dir, interface);
        let is_guarded = state::load(state_dir, interface)?.is_some();
        if let Some(found) = kept(&file).filter(|_| is_guarded) {
            return Ok(Before { found, file });
        }
        let found = look(interface, name_servers, peers)?;
        super::make_directory_of(&file)?;
        let text = serde_json::to_string(&found).map_err(Failure::new)?;
        files::write(&file, &text, Secrecy::Secret, Overwrite::Force)?;
        Ok(Before { found, file })
    }

    /// Forgets what was seen.
    pub(super) fn forget(&self) {
        let _ = fs::remove_file(&self.file);
    }

    /// Tries everybody who answered before, tells each, and fails if somebody does not answer any
    /// more.
    pub(super) fn compare(&self, config: &Config, account: &mut Account) -> Result<(), Failure> {
        let interface = &config.host.interface;
        let mut silent = Vec::new();
        let mut judge = |who: String, answers: bool, account: &mut Account| {
            let (outcome, text) =
                if answers { (Outcome::Good, "answers") } else { (Outcome::Failed, "does not answer any more") };
            account.step("self-check", outcome, &format!("{who} {text}"));
            if !answers {
                silent.push(who);
            }
        };
        for (what, hosts) in [("gateway", &self.found.gateways), ("host", &self.found.peers)] {
            hosts.iter().for_each(|ip| judge(format!("{what} {ip}"), is_neighbour(interface, *ip), account));
        }
        let servers = &self.found.name_servers;
        servers.iter().for_each(|ip| judge(format!("name server {ip}"), resolves(*ip), account));
        for who in &self.found.silent {
            account.step("self-check", Outcome::Note, &format!("{who} did not answer before, and is not waited for"));
        }
        self.await_proof(config, account, &mut silent)?;
        match silent.len() {
            0 => Ok(()),
            _ => Err(Failure::new(format!(
                "{interface} was not kept: {} was not reached; {}",
                silent.join(", "),
                of(config.host.mode).remedy()
            ))),
        }
    }

    /// Waits until somebody has proved himself to this host.
    fn await_proof(&self, config: &Config, account: &mut Account, silent: &mut Vec<String>) -> Result<(), Failure> {
        let is_needed = of(config.host.mode).needs_proof(config);
        // Where somebody is missing already it is as good as decided.
        let time = if is_needed && silent.is_empty() { PROOF_TIME_NEEDED } else { PROOF_TIME };
        let end = Instant::now() + time;
        loop {
            self.found.neighbours.iter().chain(&self.found.gateways).for_each(|ip| greet(*ip));
            if let Some(who) = proved(config)? {
                account.step("self-check", Outcome::Good, &who);
                return Ok(());
            }
            if Instant::now() >= end {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        if is_needed {
            account.step("self-check", Outcome::Failed, "nobody of the site has proved himself to this host");
            silent.push("any other host of the site".to_owned());
        } else {
            account.step("self-check", Outcome::Note, "nobody seals with this host yet, as with the first of a site");
        }
        Ok(())
    }
}

/// Where it is kept who answered before.
pub(super) fn file_of(state_dir: &Path, interface: &str) -> PathBuf {
    state_dir.join(format!("{interface}.join.json"))
}

/// Who has proved himself to this host, in words.
fn proved(config: &Config) -> Result<Option<String>, Failure> {
    let socket = config.socket();
    let status = || match client::ask(&socket, &Ask::Status)? {
        Answer::Status(status) => Ok(Some(status)),
        _ => Ok(None),
    };
    let peers = || match client::ask(&socket, &Ask::Peers)? {
        Answer::Peers { peers } => Ok(peers),
        _ => Ok(Vec::new()),
    };
    of(config.host.mode).proved(&Told { status: &status, peers: &peers })
}

fn kept(file: &Path) -> Option<Found> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

fn look(interface: &str, name_servers: &[Ipv4Addr], peers: &[Ipv4Addr]) -> Result<Found, Failure> {
    let mut found = Found { neighbours: neighbours(interface), ..Found::default() };
    found.neighbours.truncate(NEIGHBOURS_MAX);
    // An entry of yesterday is no answer.
    takeover::flush_neighbours(interface)?;
    for ip in cards::gateways(interface) {
        if is_neighbour(interface, ip) { found.gateways.push(ip) } else { found.silent.push(format!("gateway {ip}")) }
    }
    for ip in peers {
        if is_neighbour(interface, *ip) { found.peers.push(*ip) } else { found.silent.push(format!("host {ip}")) }
    }
    let usual = usual_name_servers(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
    for ip in if name_servers.is_empty() { &usual } else { name_servers } {
        if resolves(*ip) { found.name_servers.push(*ip) } else { found.silent.push(format!("name server {ip}")) }
    }
    Ok(found)
}

/// The name servers of a resolv.conf(5) that are somewhere else.
fn usual_name_servers(text: &str) -> Vec<Ipv4Addr> {
    let of_line = |line: &str| line.trim().strip_prefix("nameserver")?.trim().parse::<Ipv4Addr>().ok();
    text.lines().filter_map(of_line).filter(|ip| !ip.is_loopback()).take(NAME_SERVERS_MAX).collect()
}

/// The neighbours on `interface` whose hardware address is known.
fn neighbours(interface: &str) -> Vec<Ipv4Addr> {
    let table = fs::read_to_string(NEIGHBOURS).unwrap_or_default();
    table.lines().skip(1).filter_map(|line| neighbour(line, interface)).collect()
}

fn neighbour(line: &str, interface: &str) -> Option<Ipv4Addr> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [ip, _, flags, _, _, device] = fields[..] else { return None };
    let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
    if device != interface || flags & IS_COMPLETE == 0 { None } else { ip.parse().ok() }
}

/// Makes the stack ask for a neighbour's hardware address.
fn greet(ip: Ipv4Addr) {
    if let Ok(socket) = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) {
        let _ = socket.send_to(&[], (ip, DISCARD_PORT));
    }
}

/// Whether the stack learns the hardware address of `ip` in time.
fn is_neighbour(interface: &str, ip: Ipv4Addr) -> bool {
    let end = Instant::now() + NEIGHBOUR_TIME;
    loop {
        greet(ip);
        std::thread::sleep(LOOK_INTERVAL);
        if neighbours(interface).contains(&ip) {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
    }
}

/// Whether a name server answers, whatever it says.
fn resolves(ip: Ipv4Addr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((ip, DNS_PORT))?;
        socket.set_read_timeout(Some(DNS_TIME))?;
        socket.send(&QUESTION)?;
        let mut answer = [0; 512];
        let len = socket.recv(&mut answer)?;
        Ok(answer[..len].starts_with(&QUESTION[..2]))
    };
    (0..DNS_TRIES).any(|tried| {
        let answers = ask().unwrap_or(false);
        // A refusal of the network comes at once.
        if !answers && tried + 1 < DNS_TRIES {
            std::thread::sleep(LOOK_INTERVAL);
        }
        answers
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_count_once_their_hardware_address_is_known() {
        let line = |flags| format!("192.0.2.1        0x1         {flags}         02:00:00:00:00:01     *        eth0");
        assert_eq!(neighbour(&line("0x2"), "eth0"), Some([192, 0, 2, 1].into()));
        assert_eq!(neighbour(&line("0x6"), "eth0"), Some([192, 0, 2, 1].into()), "a permanent one");
        assert_eq!(neighbour(&line("0x0"), "eth0"), None, "one that did not answer");
        assert_eq!(neighbour(&line("0x2"), "eth1"), None);
    }

    #[test]
    fn name_servers_of_the_machine_itself_are_left_out() {
        let text =
            "# by hand\nsearch example.org\nnameserver 127.0.0.53\nnameserver 192.0.2.3\nnameserver 2001:db8::1\n";
        assert_eq!(usual_name_servers(text), [Ipv4Addr::new(192, 0, 2, 3)]);
    }
}
