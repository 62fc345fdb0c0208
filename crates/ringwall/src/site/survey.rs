//! `ringwall site survey` and `ringwall site import`: from what a network shows of itself to a
//! table, and from the table to tokens and a legacy list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use authority::Directory;
use authority::directory::Invitation;
use authority::files::{self, Overwrite, Secrecy};
use authority::limits::HOST_VALIDITY;
use bump::Batch;
use clap::Args;
use identity::certificate::Role;
use serde_json::{Value, json};
use system::port::{PacketOptions, PacketPort, Receiver};
use system::takeover::{self, Kept};
use system::wait::{PollFd, PollFlags, wait};

use super::stock::{self, Sighting};
use super::table::{self, Kind, Row};
use super::{DAY, DEFAULT_DIRECTORY, Surroundings, many, policy, whole_days};
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::join::cards::default_gateways;

/// The kernel's table of neighbours.
const NEIGHBOURS: &str = "/proc/net/arp";
/// Where leases are on Debian, and how each is read.
const DNSMASQ: &str = "/var/lib/misc/dnsmasq.leases";
const KEA: &str = "/var/lib/kea/kea-leases4.csv";
/// Where Debian's ieee-data has the list of makers.
const MAKERS: [&str; 2] = ["/usr/share/ieee-data/oui.txt", "/usr/share/ieee-data/oui.csv"];
/// Most pairs of a card and an address that are heard.
const HEARD_MAX: usize = 16_384;
/// The lists beside the tokens: of mode `cll`, and of mode `sarp`.
const LEGACY: &str = "legacy.toml";
const KNOWN: &str = "known.toml";

/// Arguments of `site survey`.
#[derive(Debug, Args)]
pub(crate) struct SurveyArguments {
    /// Leases of dnsmasq; repeat it for several. Without this and --kea those of this machine
    #[arg(long, value_name = "FILE")]
    dnsmasq: Vec<PathBuf>,
    /// Leases of Kea (kea-leases4.csv); repeat it for several
    #[arg(long, value_name = "FILE")]
    kea: Vec<PathBuf>,
    /// What `ip neigh` prints on another machine; repeat it for several
    #[arg(long, value_name = "FILE")]
    neigh: Vec<PathBuf>,
    /// A table that there is already: what it says of a hardware address stays; repeat it for
    /// several
    #[arg(long, value_name = "FILE")]
    table: Vec<PathBuf>,
    /// Listen for ARP on --interface for so long: 30s, 5m; sends nothing, and needs root
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "interface")]
    listen: Option<Duration>,
    /// Where to listen
    #[arg(long, value_name = "NAME", requires = "listen")]
    interface: Option<String>,
    /// Leave out the neighbours of this machine
    #[arg(long)]
    without_neighbours: bool,
    /// The IEEE's list of makers; without it that of Debian's ieee-data, if it is there
    #[arg(long, value_name = "FILE")]
    oui: Option<PathBuf>,
    /// Print a table that `site import` and `site token --csv` take
    #[arg(long)]
    csv: bool,
    /// Print a list of JSON objects
    #[arg(long, conflicts_with = "csv")]
    json: bool,
}

/// Arguments of `site import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// The table, as `site survey --csv` writes it
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A directory for the tokens and the legacy list
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Hosts enrol over the site's service (`ringwall join --service`)
    #[arg(long)]
    by_service: bool,
    /// Put printers and routers into the site's policy as well, for all hosts at once; a site whose
    /// policy has no group yet begins in observe
    #[arg(long)]
    policy: bool,
    /// How long certificates last
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(HOST_VALIDITY))]
    days: u32,
    /// How long the tokens serve: 30m, 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_time)]
    valid: Duration,
    /// Say what would be made, and make nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn survey(arguments: &SurveyArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let makers = makers(arguments.oui.as_deref())?;
    let mut rows = stock::proposal(&seen(arguments)?, &makers, &default_gateways());
    for file in &arguments.table {
        keep(&mut rows, table::read(file)?);
    }
    if arguments.csv {
        return surroundings.print(false, &Value::Null, table::text(&rows)?.trim_end());
    }
    let value = Value::Array(rows.iter().map(row_json).collect());
    surroundings.print(arguments.json, &value, &in_columns(&rows))
}

fn seen(arguments: &SurveyArguments) -> Result<Vec<Sighting>, Failure> {
    let read =
        |file: &Path| fs::read_to_string(file).map_err(|error| Failure::file(file, error, "name the right file"));
    let mut seen = Vec::new();
    if !arguments.without_neighbours {
        seen.extend(stock::neighbours(&fs::read_to_string(NEIGHBOURS).unwrap_or_default()));
    }
    for (files, parse) in [
        (&arguments.neigh, stock::ip_neigh as fn(&str) -> Vec<Sighting>),
        (&arguments.dnsmasq, stock::dnsmasq),
        (&arguments.kea, stock::kea),
    ] {
        for file in files {
            seen.extend(parse(&read(file)?));
        }
    }
    if let (Some(time), Some(interface)) = (arguments.listen, &arguments.interface) {
        seen.extend(listen(interface, time)?);
    }
    if arguments.dnsmasq.is_empty() && arguments.kea.is_empty() {
        seen.extend(stock::dnsmasq(&fs::read_to_string(DNSMASQ).unwrap_or_default()));
        seen.extend(stock::kea(&fs::read_to_string(KEA).unwrap_or_default()));
    }
    Ok(seen)
}

/// Who speaks ARP on `interface` meanwhile. Whoever makes up addresses fills the list and no more.
fn listen(interface: &str, time: Duration) -> Result<Vec<Sighting>, Failure> {
    let broken = |error: &dyn std::fmt::Display| Failure::new(format!("{interface}: {error}; listen as root"));
    let card = takeover::card(interface)?;
    let card = card.ok_or_else(|| Failure::new(format!("{interface}: no such Ethernet interface; name another")))?;
    let mut port = PacketPort::open(&PacketOptions::kept(Kept::Arp, card.index)).map_err(|error| broken(&error))?;
    let end = Instant::now() + time;
    let mut seen = BTreeMap::new();
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        wait(&mut [PollFd::new(&port, PollFlags::IN)], Some(left)).map_err(|error| broken(&error))?;
        // Whoever floods does not make it longer.
        while Instant::now() < end && port.receiver.fill().map_err(|error| broken(&error))? {
            while let Some(frame) = port.receiver.next_frame() {
                let one = stock::heard(frame.bytes).filter(|_| seen.len() < HEARD_MAX);
                one.map(|one| seen.insert((one.mac.0, one.ip), one));
            }
        }
    }
    Ok(seen.into_values().collect())
}

fn makers(named: Option<&Path>) -> Result<BTreeMap<[u8; 3], String>, Failure> {
    let text = match named {
        Some(file) => fs::read(file).map_err(|error| Failure::file(file, error, "name the right file"))?,
        None => MAKERS.iter().find_map(|file| fs::read(file).ok()).unwrap_or_default(),
    };
    Ok(stock::makers(&String::from_utf8_lossy(&text)))
}

/// What a manager has written takes the place of what was seen of the same card, and who has an
/// address there has it, whoever else claims it on the wire.
fn keep(rows: &mut Vec<Row>, written: Vec<Row>) {
    for row in written {
        for other in rows.iter_mut().filter(|one| row.mac.is_some() && one.mac != row.mac) {
            give_up(other, &row);
        }
        match rows.iter_mut().find(|one| one.mac.is_some() && one.mac == row.mac) {
            Some(one) => *one = row,
            None => rows.push(row),
        }
    }
}

/// Takes the addresses of `owner` from a card that was seen with them. Who it is nobody has said,
/// so it gets no token.
fn give_up(seen: &mut Row, owner: &Row) {
    for ip in seen.addresses.extract_if(.., |ip| owner.addresses.contains(ip)) {
        seen.kind = Kind::Unknown;
        let note = format!("CLAIMS {ip}, which is that of {}", owner.name);
        seen.note = if seen.note.is_empty() { note } else { format!("{}; {note}", seen.note) };
    }
}

fn row_json(row: &Row) -> Value {
    json!({
        "kind": row.kind.word(),
        "name": row.name,
        "mac": row.mac.map(|mac| mac.to_string()),
        "addresses": row.addresses,
        "vendor": row.vendor,
        "note": row.note,
    })
}

fn addresses(row: &Row) -> String {
    row.addresses.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>().join(" ")
}

fn in_columns(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "nothing was seen; name files of leases, or what `ip neigh` prints elsewhere".to_owned();
    }
    let cells = |row: &Row| {
        let mac = row.mac.map(|mac| mac.to_string()).unwrap_or_default();
        let name = if row.name.is_empty() { "-" } else { &row.name };
        [row.kind.word().to_owned(), name.to_owned(), addresses(row), mac, row.vendor.clone(), row.note.clone()]
    };
    let all: Vec<[String; 6]> = rows.iter().map(cells).collect();
    let widths: [usize; 6] = std::array::from_fn(|at| all.iter().map(|row| row[at].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; 6]| {
        let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What a table comes to at a site.
struct Plan {
    invitations: Vec<Invitation>,
    legacy: Vec<Row>,
    /// Routers, which hosts need before they are guarded themselves.
    routers: Vec<Row>,
    /// Names that the site has issued to already.
    enrolled: Vec<String>,
    undecided: usize,
}

pub(super) fn import(arguments: &ImportArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let rows = table::read(&arguments.file)?;
    let twice = table::twice(&rows);
    if !twice.is_empty() {
        let remedy = "say in the table who has it, and give the command again";
        return Err(Failure::file(&arguments.file, twice.join("; "), remedy));
    }
    let directory = super::open(&arguments.dir)?;
    let plan = Plan::of(rows, &directory, arguments, surroundings.unix_s)?;
    let value = json!({
        "tokens": plan.invitations.iter().map(|one| &one.name).collect::<Vec<_>>(),
        "legacy": plan.legacy.len(), "enrolled_already": plan.enrolled, "undecided": plan.undecided,
    });
    surroundings.print(arguments.json, &value, &plan.in_words())?;
    if arguments.dry_run {
        return Ok(());
    }
    if arguments.policy {
        policy::take_in(&directory, &plan.legacy, &plan.known(), surroundings)?;
    }
    let made = directory.invite_all(&plan.invitations, surroundings.random, surroundings.unix_s)?;
    let tokens: Vec<_> = plan.invitations.iter().zip(&made).collect();
    // In JSON one object has been printed, and is all.
    let mut unheard = Vec::new();
    let Surroundings { unix_s, random, output } = surroundings;
    let output: &mut dyn std::io::Write = if arguments.json { &mut unheard } else { &mut **output };
    let mut quiet = Surroundings { unix_s: *unix_s, random: &mut **random, output };
    many::write_files(&arguments.out, &tokens, false, &mut quiet)?;
    let known = plan.known();
    for (name, section, rows) in [(LEGACY, "cll.legacy", &plan.legacy), (KNOWN, "sarp.known_hosts", &known)] {
        files::write(&arguments.out.join(name), &sections(section, rows), Secrecy::Public, Overwrite::Force)?;
    }
    Ok(())
}

impl Plan {
    fn of(rows: Vec<Row>, directory: &Directory, arguments: &ImportArguments, unix_s: u64) -> Result<Plan, Failure> {
        let issued = directory.list()?;
        let good: BTreeSet<&str> =
            issued.iter().filter(|one| one.is_live(unix_s)).map(|one| one.name.as_str()).collect();
        let mut plan = Plan {
            invitations: Vec::new(),
            legacy: Vec::new(),
            routers: Vec::new(),
            enrolled: Vec::new(),
            undecided: 0,
        };
        for row in rows {
            if row.kind == Kind::Router {
                plan.routers.push(row.clone());
            }
            match row.kind {
                Kind::Unknown => plan.undecided += 1,
                Kind::Legacy => plan.legacy.push(row),
                Kind::Host | Kind::Router if good.contains(row.name.as_str()) => plan.enrolled.push(row.name),
                Kind::Host | Kind::Router => plan.invitations.push(row.invitation(Invitation {
                    name: row.name.clone(),
                    role: Role::Host,
                    mac: None,
                    addresses: Vec::new(),
                    subnets: Vec::new(),
                    // Anybody could be whom no hardware address is named of.
                    preapproved: row.mac.is_some(),
                    by_service: arguments.by_service,
                    validity: DAY * arguments.days,
                    valid: arguments.valid,
                })),
            }
        }
        Ok(plan)
    }

    /// Whom hosts of mode `sarp` believe without a proof.
    fn known(&self) -> Vec<Row> {
        self.legacy.iter().chain(&self.routers).cloned().collect()
    }

    fn in_words(&self) -> String {
        let mut lines = vec![format!(
            "{} hosts get a token, {} are enrolled already, {} go on the legacy list ({LEGACY})",
            self.invitations.len(),
            self.enrolled.len(),
            self.legacy.len()
        )];
        if self.undecided > 0 {
            lines.push(format!("{} are unknown and were left out: say in the table what they are", self.undecided));
        }
        lines.join("\n")
    }
}

/// Sections for the configuration of every host.
fn sections(name: &str, rows: &[Row]) -> String {
    let mut text = "# Made by `ringwall site import`, for `ringwall join --append`: what is not guarded.\n".to_owned();
    for row in rows {
        let Some(mac) = row.mac else { continue };
        for ip in &row.addresses {
            // A name in a comment must not end it.
            let shown = format!("{} {}", row.name, row.vendor).replace(char::is_control, " ");
            text.push_str(&format!("# {}\n[[{name}]]\nip = \"{ip}\"\nmac = \"{mac}\"\n", shown.trim()));
        }
    }
    text
}
