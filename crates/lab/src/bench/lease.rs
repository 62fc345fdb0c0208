//! What a lease takes under the link layer (CLL paper, section 6), beside a plain one: from the DISCOVER to the ACK, to the first
//! answer to a ping, and a renewal.
//!
//! All times are those of the client's plain side, where both ways have the same plain messages of
//! the same programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use wire::dhcp::{MessageType, View};

use super::dhcp::{self, Part};
use super::first_ping::microseconds;
use super::mode::NAME;
use super::row::Row;
use super::stats::Series;
use super::{Schedule, cpu, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{DHCP_SERVER, Daemon, Site};
use crate::net::lan::INTERFACE;
use crate::net::{Direction, Forwarding, Frame, Host, Lan, LanPlan, Running, Watch, process};

/// Leases per pair and way: single events scatter more than series.
const ROUNDS: u32 = 3;
/// How long a client may take to its lease and its first answer.
const LIMIT: Duration = Duration::from_secs(20);
/// After this the daemon of a client knows that its lease was given back.
const GIVEN_BACK: Duration = Duration::from_millis(300);
/// What tcpdump is to see.
const WATCHED: &str = "icmp or udp port 67 or udp port 68";

/// How a client gets its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// From a server without Ringwall.
    Plain,
    /// With a certificate.
    Certified,
    /// With a certificate, while its clock stands at 1970, so that its server challenges it.
    Challenged,
    /// With the first certificate of daemons that have just started; the server has never heard of the client and challenges it.
    First,
}

impl Way {
    const ALL: [Way; 4] = [Way::Plain, Way::Certified, Way::Challenged, Way::First];

    fn name(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::Certified => "cll",
            Way::Challenged => "cll/challenged",
            Way::First => "cll/first",
        }
    }

    /// Names of server and client.
    fn hosts(self) -> [&'static str; 2] {
        match self {
            Way::Plain => ["a", "b"],
            Way::Certified | Way::First => [DHCP_SERVER, "e"],
            Way::Challenged => [DHCP_SERVER, "f"],
        }
    }
}

/// What one client's lease took.
#[derive(Clone, Copy, Debug)]
struct Seen {
    lease: Duration,
    first_ping: Duration,
    renewal: Duration,
}

/// Gives addresses by all ways in turn; returns the rows.
///
/// # Errors
/// The LAN cannot be made, or the lab is interrupted.
pub fn measure(run: &Run, site: Option<&Site>, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    if !dhcp::installed("leases") {
        return Ok(Vec::new());
    }
    let mut scene = Scene::open(run, site)?;
    let mut found: BTreeMap<Way, Vec<Option<Seen>>> = BTreeMap::new();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: leases, pair {} of {}", pair + 1, schedule.pairs);
        for _ in 0..ROUNDS {
            for way in Way::ALL.into_iter().filter(|way| *way == Way::Plain || site.is_some()) {
                let seen = twice(&format!("lease, {}", way.name()), || scene.lease(way))?;
                found.entry(way).or_default().push(seen);
            }
        }
    }
    Ok(rows(&found))
}

/// A client and who watches its interface.
struct Client {
    host: Host,
    server: Host,
    script: PathBuf,
    watch: Watch,
}

/// Servers and clients, guarded and not, on one LAN.
struct Scene {
    /// By the name of the host.
    clients: BTreeMap<&'static str, Client>,
    _servers: Vec<Running>,
    /// Dropped before the LAN.
    daemons: BTreeMap<&'static str, Daemon>,
    lan: Lan,
}

impl Scene {
    fn open(run: &Run, site: Option<&Site>) -> Result<Scene, Failure> {
        let plan = LanPlan {
            hosts: vec!["a", "b", DHCP_SERVER, "e", "f"],
            forwarding: Forwarding::Switch,
            ..LanPlan::default()
        };
        let lan = Lan::create(run, &plan)?;
        let mut scene = Scene { clients: BTreeMap::new(), _servers: Vec::new(), daemons: BTreeMap::new(), lan };
        scene.separate()?;
        scene.open_way(Way::Plain)?;
        if let Some(site) = site {
            for (name, part) in [(DHCP_SERVER, Part::Server), ("e", Part::Client), ("f", Part::ClientWithoutClock)] {
                let mut daemon = part.guard(site, &scene.lan, scene.lan.host(name)?)?;
                daemon.await_ready()?;
                scene.daemons.insert(name, daemon);
            }
            [Way::Certified, Way::Challenged].into_iter().try_for_each(|way| scene.open_way(way))?;
        }
        Ok(scene)
    }

    /// Puts the plain hosts on a bridge of their own, or the wrong server would answer.
    fn separate(&self) -> Result<(), Failure> {
        let bridge = &self.lan.bridge;
        bridge.ip("link add br-plain type bridge mcast_snooping 0")?;
        bridge.ip("link set br-plain up")?;
        for name in Way::Plain.hosts() {
            let host = self.lan.host(name)?;
            bridge.ip(&format!("link set {} master br-plain", Lan::port(host)))?;
            dhcp::complete_checksums(host)?;
        }
        Ok(())
    }

    /// Starts the server of this way, if it does not run yet, and who watches the client.
    fn open_way(&mut self, way: Way) -> Result<(), Failure> {
        let [server, host] = way.hosts().map(|name| self.lan.host(name).cloned());
        let (server, host) = (server?, host?);
        let directory = &self.lan.directory;
        if way != Way::Challenged {
            self._servers.push(dhcp::serve(&server, directory, &[])?);
        }
        let ping = format!("ping -n -q -c 1 -W 5 {} >/dev/null 2>&1 &", server.ip);
        let script = dhcp::write_script(&host, directory, &ping)?;
        let label = format!("leases-{}", host.name);
        let side = Lan::plain_side(&host);
        let watch = Watch::start_matching(&host.namespace, &side, Direction::Both, directory, &label, WATCHED)?;
        self.clients.insert(host.name, Client { host, server, script, watch });
        Ok(())
    }

    /// Lets the client of this way get an address, renew it, and give it back.
    fn lease(&mut self, way: Way) -> Result<Seen, Failure> {
        let names = way.hosts();
        if way == Way::First {
            names
                .iter()
                .filter_map(|name| self.daemons.get_mut(name).map(Daemon::restart))
                .collect::<Result<(), _>>()?;
        }
        let client = self.clients.get(names[1]);
        client.ok_or_else(|| Failure::Usage(format!("no client {}", names[1])))?.lease(&self.lan)
    }
}

impl Client {
    fn lease(&self, lan: &Lan) -> Result<Seen, Failure> {
        dhcp::strip(&self.host)?;
        self.server.namespace.ip(&format!("neigh flush dev {INTERFACE}"))?;
        cpu::settle()?;
        let before = self.watch.timed()?.len();
        let log = lan.directory.join(format!("udhcpc-{}.log", self.host.name));
        let program = Running::start(dhcp::client(&self.host, &self.script), &log)?;
        let first_ping = self.await_both(before, MessageType::Discover, is_echo_reply, "the first answer to a ping")?;
        let is_ack = |frame: &Frame| is_of(frame, MessageType::Ack);
        let lease = self.await_both(before, MessageType::Discover, is_ack, "the lease")?;
        cpu::settle()?;
        let before = self.watch.timed()?.len();
        program.signal(Signal::USR1);
        let renewal = self.await_both(before, MessageType::Request, is_ack, "the renewal")?;
        program.signal(Signal::USR2);
        process::pause(GIVEN_BACK)?;
        program.stop(Signal::KILL);
        Ok(Seen { lease, first_ping, renewal })
    }

    /// Waits until both have passed after the first `before` frames; the time between the first of the ones and the next of the
    /// others.
    fn await_both(
        &self,
        before: usize,
        from: MessageType,
        to: fn(&Frame) -> bool,
        what: &str,
    ) -> Result<Duration, Failure> {
        let mut time = None;
        process::until(what, LIMIT, || {
            let frames = self.watch.timed()?;
            time = between(frames.get(before..).unwrap_or_default(), |frame| is_of(frame, from), to);
            Ok(time.is_some())
        })?;
        time.ok_or_else(|| Failure::Unreadable(what.to_owned()))
    }
}

/// The time from the first frame that satisfies `from` to the first one after it that satisfies `to`.
fn between(
    frames: &[(Duration, Frame)],
    from: impl Fn(&Frame) -> bool,
    to: impl Fn(&Frame) -> bool,
) -> Option<Duration> {
    let mut frames = frames.iter();
    let (start, _) = frames.find(|(_, frame)| from(frame))?;
    let (end, _) = frames.find(|(_, frame)| to(frame))?;
    end.checked_sub(*start)
}

fn is_of(frame: &Frame, kind: MessageType) -> bool {
    View::new(&frame.0).is_ok_and(|message| message.kind() == kind)
}

/// ICMP type 0 behind an IPv4 header without options (RFC 792).
fn is_echo_reply(frame: &Frame) -> bool {
    matches!(frame.0.get(14..35), Some(packet) if packet[0] == 0x45 && packet[9] == 1 && packet[20] == 0)
}

/// A part of a row's name, and what it shows.
type Quantity = (&'static str, fn(&Seen) -> Duration);

fn rows(found: &BTreeMap<Way, Vec<Option<Seen>>>) -> Vec<Row> {
    let quantities: [Quantity; 3] =
        [("lease", |seen| seen.lease), ("first_ping", |seen| seen.first_ping), ("renewal", |seen| seen.renewal)];
    let mut rows = Vec::new();
    for (name, quantity) in quantities {
        let series = |way: Way| -> Series {
            let seen = found.get(&way).map(Vec::as_slice).unwrap_or_default();
            seen.iter().map(|seen| seen.as_ref().map(|seen| microseconds(quantity(seen)))).collect()
        };
        for way in Way::ALL {
            let row = Row::new(NAME, format!("dhcp/{name}/{}", way.name()), "us", &series(way));
            rows.extend(row.map(|row| row.against_plain(&series(way), &series(Way::Plain))));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lease_us: u64) -> Option<Seen> {
        let time = Duration::from_micros;
        Some(Seen { lease: time(lease_us), first_ping: time(9), renewal: time(2) })
    }

    #[test]
    fn each_way_stands_beside_the_plain_lease_of_its_round() {
        let found =
            BTreeMap::from([(Way::Plain, vec![seen(100), seen(200)]), (Way::Certified, vec![seen(300), seen(400)])]);
        let rows = rows(&found);
        let names: Vec<&str> = rows.iter().map(|row| row.row.as_str()).collect();
        let [lease, ping, renewal] =
            ["lease", "first_ping", "renewal"].map(|kind| [format!("dhcp/{kind}/plain"), format!("dhcp/{kind}/cll")]);
        assert_eq!(names, [lease, ping, renewal].concat());
        assert_eq!((rows[1].median, rows[1].plain, rows[1].ratio), (350.0, Some(150.0), Some(2.5)));
    }

    #[test]
    fn time_counts_from_the_first_question_to_the_answer_behind_it() {
        let reply = |marked: u8| {
            let mut bytes = vec![0; 42];
            (bytes[14], bytes[23], bytes[34]) = (0x45, 1, marked);
            Frame(bytes)
        };
        let is_question = |frame: &Frame| !is_echo_reply(frame);
        let frames: Vec<(Duration, Frame)> =
            [(1, 0), (2, 8), (5, 8), (9, 0)].map(|(at, kind)| (Duration::from_micros(at), reply(kind))).to_vec();
        assert_eq!(between(&frames, is_question, is_echo_reply), Some(Duration::from_micros(7)));
        assert_eq!(between(&frames[..3], is_question, is_echo_reply), None);
    }
}
