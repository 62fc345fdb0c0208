//! A LAN from cold: twelve hosts start at once, get their addresses by DHCP, guarded ones with certificates, and each pings every
//! other one until it has answered.
//!
//! All hosts share the processors of one machine, so the time is that of the machine's work and not of a LAN of twelve machines.

use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use wire::MacAddress;

use super::dhcp::{self, Part};
use super::mode::NAME;
use super::row::Row;
use super::stats::Series;
use super::{Schedule, cpu, echo, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{DHCP_SERVER, Daemon, Site};
use crate::net::{Forwarding, Host, Lan, LanPlan, process};

/// The hosts that start.
const CLIENTS: [&str; 12] = ["a", "b", "c", "e", "f", "g", "h", "i", "j", "k", "l", "m"];
/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(90);

/// Whether the hosts are guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    Cll,
}

/// Everything seen of one way, one entry per round, in milliseconds.
#[derive(Default)]
struct Found {
    /// Until the last host had its address.
    leases: Series,
    /// Until the last pair had answered.
    pairs: Series,
}

/// What the LAN, or one host of it, took since all were started.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    leased: Duration,
    answered: Duration,
}

/// Starts the LAN plain and guarded in turn; returns the rows.
///
/// # Errors
/// The LAN cannot be made, or the lab is interrupted.
pub fn measure(run: &Run, site: Option<&Site>, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    if !dhcp::installed("a LAN from cold") {
        return Ok(Vec::new());
    }
    let hosts: Vec<_> = CLIENTS.into_iter().chain([DHCP_SERVER]).collect();
    let lan = Lan::create(run, &LanPlan { hosts, forwarding: Forwarding::Switch, ..LanPlan::default() })?;
    lan.hosts.iter().try_for_each(dhcp::complete_checksums)?;
    let (mut plain, mut guarded) = (Found::default(), Found::default());
    for round in 0..schedule.pairs {
        eprintln!("ringwall-lab: a LAN from cold, round {} of {}", round + 1, schedule.pairs);
        plain.push(twice("a plain LAN from cold", || converge(&lan, site, Way::Plain))?);
        if site.is_some() {
            guarded.push(twice("a guarded LAN from cold", || converge(&lan, site, Way::Cll))?);
        }
    }
    Ok(rows(&plain, &guarded))
}

/// Starts all hosts but the server, which is there already, and waits until each has answered each.
fn converge(lan: &Lan, site: Option<&Site>, way: Way) -> Result<Taken, Failure> {
    let clients: Vec<&Host> = CLIENTS.iter().map(|name| lan.host(name)).collect::<Result<_, _>>()?;
    clients.iter().try_for_each(|host| dhcp::strip(host))?;
    let site = site.filter(|_| way == Way::Cll);
    let server = lan.host(DHCP_SERVER)?;
    let mut guard = site.map(|site| Part::Server.guard(site, lan, server)).transpose()?;
    guard.iter_mut().try_for_each(Daemon::await_ready)?;
    let macs: Vec<MacAddress> = clients.iter().map(|host| host.mac).collect();
    let _server = dhcp::serve(server, &lan.directory, &macs)?;
    // Identities are made before, as they are in a site.
    if let Some(site) = site {
        clients.iter().try_for_each(|host| site.issue_anew(host, &[]))?;
    }
    cpu::settle()?;
    let start = Instant::now();
    let daemons = clients.iter().map(|host| site.map(|site| Part::Client.launch(site, lan, host)).transpose());
    let daemons: Vec<Option<Daemon>> = daemons.collect::<Result<_, _>>()?;
    thread::scope(|scope| {
        let begin = |(host, daemon)| scope.spawn(move || come_up(&lan.directory, host, daemon, start));
        let threads: Vec<_> = clients.iter().copied().zip(daemons).map(begin).collect();
        let taken: Result<Vec<Up>, Failure> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause)))
            .collect();
        taken.map(|hosts| last_of(hosts.iter().map(|up| up.taken)))
    })
}

/// A host that has reached all others. Its daemon stays until all have.
struct Up {
    taken: Taken,
    _daemon: Option<Daemon>,
}

/// Gets `host` its address, as soon as its daemon is there if it has one, and pings all others.
fn come_up(directory: &Path, host: &Host, mut daemon: Option<Daemon>, start: Instant) -> Result<Up, Failure> {
    daemon.iter_mut().try_for_each(Daemon::await_socket)?;
    let script = dhcp::write_script(host, directory, ":")?;
    let mut client = dhcp::client(host, &script);
    client.args(["-n", "-q"]);
    process::must(client)?;
    let leased = start.elapsed();
    let others: Vec<Ipv4Addr> =
        (0..).zip(CLIENTS).filter(|(_, name)| *name != host.name).map(|(number, _)| dhcp::reserved(number)).collect();
    host.namespace.enter(|| echo::sweep(&others, LIMIT))?;
    Ok(Up { taken: Taken { leased, answered: start.elapsed() }, _daemon: daemon })
}

fn last_of(hosts: impl Iterator<Item = Taken>) -> Taken {
    hosts.fold(Taken::default(), |last, host| Taken {
        leased: last.leased.max(host.leased),
        answered: last.answered.max(host.answered),
    })
}

impl Found {
    fn push(&mut self, taken: Option<Taken>) {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        self.leases.push(taken.map(|taken| milliseconds(taken.leased)));
        self.pairs.push(taken.map(|taken| milliseconds(taken.answered)));
    }
}

/// A part of a row's name, and what it shows.
type Quantity = (&'static str, fn(&Found) -> &Series);

fn rows(plain: &Found, guarded: &Found) -> Vec<Row> {
    let mut rows = Vec::new();
    let quantities: [Quantity; 2] = [("leases", |found| &found.leases), ("pairs", |found| &found.pairs)];
    for (name, series) in quantities {
        for (way, found) in [("plain", plain), ("cll", guarded)] {
            let row = Row::new(NAME, format!("convergence/{name}/{way}"), "ms", series(found));
            rows.extend(row.map(|row| row.against_plain(series(found), series(plain))));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lan_is_there_when_its_last_host_is() {
        let host = |leased, answered| Taken {
            leased: Duration::from_millis(leased),
            answered: Duration::from_millis(answered),
        };
        let all = last_of([host(5, 90), host(20, 40)].into_iter());
        assert_eq!((all.leased.as_millis(), all.answered.as_millis()), (20, 90));
    }

    #[test]
    fn guarded_rounds_stand_beside_plain_ones() {
        let (mut plain, mut guarded) = (Found::default(), Found::default());
        let round = |ms| Some(Taken { leased: Duration::from_millis(ms), answered: Duration::from_millis(2 * ms) });
        plain.push(round(100));
        guarded.push(round(300));
        let rows = rows(&plain, &guarded);
        assert_eq!(rows.len(), 4);
        assert_eq!((rows[3].row.as_str(), rows[3].median, rows[3].ratio), ("convergence/pairs/cll", 600.0, Some(3.0)));
    }
}
