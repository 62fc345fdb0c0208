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

use super::arguments::whole_days;
use super::stock::{self, Sighting};
use super::table::{self, Kind, Row};
use super::{DAY, DEFAULT_DIRECTORY, Surroundings, many, policy};
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
    let directory = surroundings.open(&arguments.dir)?;
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
    let Surroundings { unix_s, random, output, actor, .. } = surroundings;
    let output: &mut dyn std::io::Write = if arguments.json { &mut unheard } else { &mut **output };
    let mut quiet = Surroundings { unix_s: *unix_s, random: &mut **random, output, actor: actor.clone(), person: None };
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

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::super::testing::{new_site, order, policy, run};

    #[test]
    fn a_table_becomes_tokens_and_a_legacy_list() {
        let place = new_site();
        let keys = "site issue --dir @/site --role akd --name k --mac 02:00:00:00:00:09 --ip 10.0.0.9 --out @/k.pem";
        run(place.path(), keys).expect("issued");
        let table = "kind,name,mac,ip\nhost,a,02:00:00:00:00:01,10.0.0.1\nrouter,r,,10.0.0.254\n\
            printer,lp1,02:00:00:00:00:50,10.0.0.50\nunknown,,02:00:00:00:00:60,10.0.0.60\n";
        fs::write(place.path().join("hosts.csv"), table).expect("written");
        let import = "site import @/hosts.csv --dir @/site --out @/tokens";
        let planned = run(place.path(), &format!("{import} --dry-run")).expect("a plan");
        assert!(
            planned.starts_with("2 hosts get a token, 0 are enrolled already, 1 go on the legacy list"),
            "{planned}"
        );
        assert!(planned.contains("1 are unknown") && !place.path().join("tokens").exists(), "{planned}");
        run(place.path(), import).expect("imported");
        let legacy = fs::read_to_string(place.path().join("tokens/legacy.toml")).expect("there");
        assert!(legacy.ends_with("[[cll.legacy]]\nip = \"10.0.0.50\"\nmac = \"02:00:00:00:00:50\"\n"), "{legacy}");
        let known = fs::read_to_string(place.path().join("tokens/known.toml")).expect("there");
        assert_eq!(known.matches("[[sarp.known_hosts]]").count(), 1, "the router has no hardware address: {known}");
        let token: identity::token::Token =
            fs::read_to_string(place.path().join("tokens/a.token")).expect("there").trim().parse().expect("a token");
        assert_eq!(token.name(), "a");
        let pending: Value =
            serde_json::from_str(&run(place.path(), "site pending --dir @/site --json").expect("listed"))
                .expect("JSON");
        let told = |name: &str| pending.as_array().expect("a list").iter().find(|one| one["name"] == name).cloned();
        let (host, router) = (told("a").expect("a"), told("r").expect("r"));
        assert_eq!((&host["preapproved"], &host["role"]), (&true.into(), &"host".into()));
        // Anybody could come in the place of one whose hardware address nobody has written down.
        assert_eq!((&router["preapproved"], &router["role"]), (&false.into(), &"router".into()));

        run(place.path(), "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem")
            .expect("issued");
        // Another line draws other numbers here.
        let again = run(place.path(), &format!("{import} --days 30")).expect("imported again");
        assert!(again.starts_with("1 hosts get a token, 1 are enrolled already"), "{again}");
        let many = "site token --dir @/site --csv @/hosts.csv --out-csv @/tokens.csv --days 20";
        assert!(run(place.path(), many).expect("made").starts_with("2 tokens are in @/tokens.csv"));
        let made = fs::read_to_string(place.path().join("tokens.csv")).expect("there");
        assert!(made.starts_with("name,mac,ip,token\na,02:00:00:00:00:01,10.0.0.1,"), "{made}");
        let unseen = run(place.path(), "site token --dir @/site b c").expect_err("two tokens");
        assert!(unseen.contains("several tokens are not printed"), "{unseen}");
        fs::write(place.path().join("hosts.csv"), format!("{table}host,b,02:00:00:00:00:02,10.0.0.1\n"))
            .expect("written");
        let refused = run(place.path(), import).expect_err("an address of two");
        assert!(refused.contains("the address 10.0.0.1 is there 2 times: a, b; say in the table"), "{refused}");
    }

    #[test]
    fn a_survey_is_a_table_that_is_taken_again() {
        let place = tempfile::tempdir().expect("directory");
        let leases = "1795590772 00:1b:21:00:00:17 192.0.2.17 desk-17 *\n1795590772 00:80:77:00:00:09 192.0.2.9 * *\n";
        fs::write(place.path().join("leases"), leases).expect("written");
        fs::write(place.path().join("oui"), "00-80-77   (hex)\t\tBrother industries, LTD.\n").expect("written");
        let survey = "site survey --without-neighbours --dnsmasq @/leases --oui @/oui";
        let shown = run(place.path(), survey).expect("shown");
        let line = "printer  -        192.0.2.9   00:80:77:00:00:09  Brother industries, LTD.  by lease";
        assert!(shown.starts_with("printer") && shown.contains("host     desk-17  192.0.2.17"), "{shown}");
        assert!(shown.lines().any(|one| one == line), "{shown}");
        fs::write(place.path().join("hosts.csv"), run(place.path(), &format!("{survey} --csv")).expect("a table"))
            .expect("written");
        let table =
            fs::read_to_string(place.path().join("hosts.csv")).expect("there").replace("printer,,", "printer,lp1,");
        fs::write(place.path().join("hosts.csv"), table).expect("written");
        let again = run(place.path(), &format!("{survey} --table @/hosts.csv --json")).expect("again");
        let rows: Value = serde_json::from_str(&again).expect("JSON");
        assert_eq!(rows.as_array().map(Vec::len), Some(2), "{rows}");
        assert_eq!(rows[0]["name"], "lp1", "what a manager has written stays");

        // Somebody claims the address of a host that the manager knows, and has a name, too.
        let claimed = format!("{leases}1795590772 00:1b:21:00:00:66 192.0.2.17 desk-66 *\n");
        fs::write(place.path().join("leases"), claimed).expect("written");
        let survey = format!("{survey} --table @/hosts.csv");
        let rows: Value =
            serde_json::from_str(&run(place.path(), &format!("{survey} --json")).expect("again")).expect("JSON");
        let of = |mac: &str| rows.as_array().expect("a list").iter().find(|row| row["mac"] == mac).expect("seen");
        assert_eq!(of("00:1b:21:00:00:17")["addresses"], json!(["192.0.2.17"]));
        let other = of("00:1b:21:00:00:66");
        assert_eq!((&other["kind"], &other["addresses"]), (&json!("unknown"), &json!([])), "{other}");
        let note = other["note"].as_str().expect("a note");
        assert!(note.ends_with("CLAIMS 192.0.2.17, which is that of desk-17"), "{note}");
    }

    #[test]
    fn a_table_becomes_a_policy_and_one_that_is_taken_in_again_changes_nothing() {
        let place = new_site();
        let table = "kind,name,mac,ip\nhost,a,02:00:00:00:00:01,10.0.0.1\nrouter,r,02:00:00:00:00:fe,10.0.0.254\n\
            printer,lp1,02:00:00:00:00:50,10.0.0.50\nprinter,lp2,02:00:00:00:00:51,10.0.0.51\n";
        fs::write(place.path().join("hosts.csv"), table).expect("written");
        let import = "site import @/hosts.csv --dir @/site --out @/tokens --policy --by-service";
        run(place.path(), &format!("{import} --dry-run")).expect("a plan");
        assert!(!place.path().join("site/policy.pem").exists(), "nothing is made");
        run(place.path(), import).expect("imported");
        let content = policy(place.path()).content().clone();
        let of_legacy: Vec<String> = content.legacy.iter().map(|one| format!("{} {}", one.ip, one.mac)).collect();
        assert_eq!(of_legacy, ["10.0.0.50 02:00:00:00:00:50", "10.0.0.51 02:00:00:00:00:51"]);
        assert_eq!((content.version, content.known.len(), content.groups.len()), (1, 3, 1));
        let everybody = &content.groups[0];
        assert_eq!((everybody.patterns.join(","), everybody.mode), ("*".to_owned(), identity::policy::Mode::Observe));

        // What a manager has said since stays; what the table says anew counts.
        let broadcast = "policy legacy add --ip 10.0.0.50 --mac 02:00:00:00:00:50 --broadcast";
        order(place.path(), broadcast).expect("changed");
        run(place.path(), "site policy mode * prefer --dir @/site").expect("changed");
        run(place.path(), &format!("{import} --days 30")).expect("imported again");
        let content = policy(place.path()).content().clone();
        assert_eq!((content.version, content.groups[0].mode), (3, identity::policy::Mode::Prefer));
        assert!(content.legacy.iter().any(|one| one.broadcast));
        let other = table.replace("02:00:00:00:00:51", "02:00:00:00:00:52");
        fs::write(place.path().join("hosts.csv"), other).expect("written");
        run(place.path(), &format!("{import} --days 31")).expect("imported again");
        let content = policy(place.path()).content().clone();
        assert_eq!((content.version, content.legacy.len(), content.known.len()), (4, 2, 3), "one was replaced");

        // Who has a certificate is not heard in clear, and then nothing at all is made.
        run(place.path(), "site issue --dir @/site --name b --mac 02:00:00:00:00:02 --ip 10.0.0.2 --out @/b.pem")
            .expect("issued");
        fs::write(place.path().join("hosts.csv"), format!("{table}printer,lp3,02:00:00:00:00:02,10.0.0.3\n"))
            .expect("written");
        let refused = run(place.path(), import).expect_err("a host");
        assert!(refused.contains("host \"b\" has a certificate for"), "{refused}");
        assert_eq!(policy(place.path()).version(), 4);
    }

    #[test]
    fn a_host_whose_certificate_is_revoked_gets_a_token_of_a_table() {
        let place = new_site();
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        run(place.path(), issue).expect("issued");
        fs::write(place.path().join("hosts.csv"), "kind,name,mac,ip\nhost,a,02:00:00:00:00:01,10.0.0.1\n")
            .expect("written");
        let import = "site import @/hosts.csv --dir @/site --out @/tokens --dry-run";
        assert!(run(place.path(), import).expect("a plan").starts_with("0 hosts get a token, 1 are enrolled"));
        run(place.path(), "site revoke --dir @/site --name a").expect("revoked");
        assert!(run(place.path(), import).expect("a plan").starts_with("1 hosts get a token, 0 are enrolled"));
    }
}
