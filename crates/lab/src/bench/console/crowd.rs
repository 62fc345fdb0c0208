//! Guarded hosts whose daemons know thousands of others, as daemons of one machine, and a history of
//! long ago.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use system::port::Sender as _;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::ethernet::{EtherType, Header};

use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{Daemon, Site};
use crate::net::lan::INTERFACE;
use crate::net::{Frame, Host, Lan, LanPlan, Namespace, link, process};

/// Whose daemons are asked; the first is the machine of the console. Each knows at most 1,024 hosts
/// that it has no association with.
const GUARDED: [&str; 10] = ["a", "b", "c", "g", "h", "i", "j", "l", "n", "o"];
/// Who speaks for all others.
const CROWD: &str = "x";
/// How many speak at a time, and how long the daemons have until the next.
const HANDFUL: usize = 32;
const PAUSE: Duration = Duration::from_millis(60);
const KNOWN_LIMIT: Duration = Duration::from_secs(120);
/// Addresses that are not the LAN's own.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 80, 0, 0]);
/// Milliseconds between the records of the history.
const APART_MS: u32 = 20_000;

/// The LAN, its daemons, and where a console finds them.
pub(super) struct Crowd {
    // They give their cards back before the LAN goes.
    daemons: Vec<Daemon>,
    lan: Lan,
    run_dir: PathBuf,
}

impl Crowd {
    /// Has the daemons know `peers` and the history have `records`.
    pub(super) fn gather(run: &Run, program: &Path, peers: u32, records: u32) -> Result<Crowd, Failure> {
        let hosts = GUARDED.into_iter().chain([CROWD]).collect();
        let lan = Lan::create(run, &LanPlan { hosts, ..LanPlan::default() })?;
        let (site, run_dir) = (Site::found(run, program)?, lan.directory.join("sockets"));
        std::fs::create_dir_all(&run_dir).map_err(Failure::file("making", &run_dir))?;
        let mut daemons = Vec::new();
        for name in GUARDED {
            let mut daemon = site.launch(&lan, lan.host(name)?, configuration)?;
            daemon.await_ready()?;
            let socket = lan.directory.join(format!("host-{name}/run/{INTERFACE}.sock"));
            let link = run_dir.join(format!("{name}.sock"));
            symlink(&socket, &link).map_err(Failure::file("making", &link))?;
            daemons.push(daemon);
        }
        let crowd = Crowd { daemons, lan, run_dir };
        let share = peers.div_ceil(GUARDED.len() as u32);
        for (at, daemon) in crowd.daemons.iter().enumerate() {
            let first = at as u32 * share;
            crowd.meet(daemon, first..peers.min(first + share))?;
        }
        crowd.remember(records)?;
        Ok(crowd)
    }

    pub(super) fn namespace(&self) -> &Namespace {
        &self.daemons[0].host.namespace
    }

    pub(super) fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    pub(super) fn history(&self) -> PathBuf {
        self.file(&format!("host-{}/history.db", GUARDED[0]))
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.lan.directory.join(name)
    }

    /// The hosts with these numbers ask for the daemon's host until it knows them all.
    fn meet(&self, daemon: &Daemon, numbers: std::ops::Range<u32>) -> Result<(), Failure> {
        let frames: Vec<Frame> = numbers.map(|number| question(number, &daemon.host)).collect();
        let crowd = self.lan.host(CROWD)?;
        let mut port = crowd.namespace.enter(|| link::open_to_send(INTERFACE))?;
        process::until(&format!("{} knows {} hosts", daemon.host.name, frames.len()), KNOWN_LIMIT, || {
            for handful in frames.chunks(HANDFUL) {
                handful.iter().for_each(|frame| link::put(&mut port, frame));
                port.sender.flush();
                process::pause(PAUSE)?;
            }
            let known = daemon.peers()?;
            let known = known.as_array().map_or(0, Vec::len);
            Ok(known >= frames.len())
        })
    }

    /// Enters records of long ago: addresses that hosts had, and an attack in each four of them.
    fn remember(&self, records: u32) -> Result<(), Failure> {
        let file = self.history();
        let unreadable = |error: rusqlite::Error| Failure::Unreadable(format!("{}: {error}", file.display()));
        let connection = Connection::open(&file).map_err(unreadable)?;
        connection.busy_timeout(KNOWN_LIMIT).map_err(unreadable)?;
        connection.execute(ENTER, [records, APART_MS]).map_err(unreadable)?;
        Ok(())
    }
}

/// `?1` records that end `?2` milliseconds apart.
const ENTER: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
    INSERT INTO entry (key, kind, interface, first_ms, last_ms, is_open, count, ip, mac, name, text) \
    SELECT 'bench ' || i, CASE i % 4 WHEN 0 THEN 'arp-spoofing' ELSE 'address' END, 'e0', \
    now.ms - (i + 3) * ?2, now.ms - i * ?2, 0, 1 + i % 900, \
    '10.80.' || (i / 256 % 256) || '.' || (i % 256), \
    printf('02:10:00:00:%02x:%02x', i / 256 % 256, i % 256), 'host-' || (i % 10000), \
    CASE i % 4 WHEN 0 THEN 'somebody claimed 10.80.0.' || (i % 256) || ' against a host of this LAN' ELSE '' END \
    FROM n, (SELECT unixepoch() * 1000 AS ms) AS now";

/// The question of the host with this number for that of a daemon.
fn question(number: u32, to: &Host) -> Frame {
    let [_, _, high, low] = number.to_be_bytes();
    let mac = MacAddress([0x02, 0x10, 0, 0, high, low]);
    let sender_ip = (FIRST_ADDRESS + number).into();
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: mac,
        sender_ip,
        target_mac: MacAddress::ZERO,
        target_ip: to.ip,
    };
    let header = Header { destination: to.mac, source: mac, ethertype: EtherType::ARP };
    let mut bytes = [header.emit().as_slice(), &arp.emit()].concat();
    bytes.resize(60, 0);
    Frame(bytes)
}

/// A host that lets others in in clear and remembers.
fn configuration(identity: &Path, directory: &Path) -> String {
    let (identity, directory) = (identity.display(), directory.display());
    format!(
        "[host]\ninterface = \"{INTERFACE}\"\nmode = \"cll\"\nidentity = \"{identity}\"\nrun_dir = \
         \"{directory}/run\"\nstate_dir = \"{directory}/state\"\n\n[cll]\nmigration = \"observe\"\n\n[records]\n\
         history_file = \"{directory}/history.db\"\n"
    )
}
