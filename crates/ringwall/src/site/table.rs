//! A table of hosts as managers keep it: one row each, in a file of comma-separated values with a
//! line of headings.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;

use authority::directory::Invitation;
use authority::repository::Subnet;
use csv::{ReaderBuilder, StringRecord, Trim};
use identity::certificate::Role;
use wire::MacAddress;

use crate::failure::Failure;

/// Columns that are understood. Another one is a mistake: what is misspelt would be left out in
/// silence.
pub(super) const COLUMNS: [&str; 8] = ["kind", "name", "mac", "ip", "subnet", "role", "vendor", "note"];
/// Most rows that are read; ten times the hosts of one site.
const ROWS_MAX: usize = 65_536;

/// What something on the network is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It gets a certificate.
    Host,
    /// It gets one, and forwards for others.
    Router,
    /// It will never be enrolled, and is spoken to in clear.
    Legacy,
    /// Nobody has decided yet.
    Unknown,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Host => "host",
            Kind::Router => "router",
            Kind::Legacy => "printer",
            Kind::Unknown => "unknown",
        }
    }

    fn of(word: &str) -> Option<Kind> {
        match word {
            "" | "host" | "server" => Some(Kind::Host),
            "router" => Some(Kind::Router),
            "legacy" | "printer" | "phone" | "camera" => Some(Kind::Legacy),
            "unknown" => Some(Kind::Unknown),
            _ => None,
        }
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) mac: Option<MacAddress>,
    pub(super) addresses: Vec<Ipv4Addr>,
    pub(super) subnets: Vec<Subnet>,
    pub(super) role: Option<Role>,
    pub(super) vendor: String,
    pub(super) note: String,
}

impl Row {
    /// Whether it gets a token.
    pub(super) fn is_enrolled(&self) -> bool {
        matches!(self.kind, Kind::Host | Kind::Router)
    }

    /// What it says, in the place of what `usual` says.
    pub(super) fn invitation(&self, usual: Invitation) -> Invitation {
        let role = self.role.unwrap_or(if self.kind == Kind::Router { Role::Router } else { usual.role });
        let subnets = if self.subnets.is_empty() { usual.subnets } else { self.subnets.clone() };
        Invitation { mac: self.mac, addresses: self.addresses.clone(), role, subnets, ..usual }
    }
}

/// The table as text, which [`read`] takes.
pub(super) fn text(rows: &[Row]) -> Result<String, Failure> {
    let broken = |what: &dyn std::fmt::Display| Failure::new(format!("the table: {what}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).map_err(|error| broken(&error))?;
    for row in rows {
        let joined = |parts: Vec<String>| parts.join(" ");
        let fields = [
            row.kind.word().to_owned(),
            row.name.clone(),
            row.mac.map(|mac| mac.to_string()).unwrap_or_default(),
            joined(row.addresses.iter().map(ToString::to_string).collect()),
            joined(row.subnets.iter().map(ToString::to_string).collect()),
            row.role.map(|role| role.name().to_owned()).unwrap_or_default(),
            row.vendor.clone(),
            row.note.clone(),
        ];
        writer.write_record(fields).map_err(|error| broken(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| broken(&error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What is in two rows and must be in one: names, addresses and hardware addresses, each with the
/// rows' names.
pub(super) fn twice(rows: &[Row]) -> Vec<String> {
    let mut holders: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for row in rows {
        let named = (!row.name.is_empty()).then(|| format!("the name {}", row.name));
        let macs = row.mac.map(|mac| format!("the hardware address {mac}"));
        let addresses = row.addresses.iter().map(|ip| format!("the address {ip}"));
        let shown = if row.name.is_empty() { "a row without a name" } else { row.name.as_str() };
        named.into_iter().chain(macs).chain(addresses).for_each(|what| holders.entry(what).or_default().push(shown));
    }
    let several = holders.into_iter().filter(|(_, names)| names.len() > 1);
    several.map(|(what, names)| format!("{what} is there {} times: {}", names.len(), names.join(", "))).collect()
}

/// Reads a table whole, and names row and column of the first mistake.
pub(super) fn read(file: &Path) -> Result<Vec<Row>, Failure> {
    let opened = File::open(file).map_err(|error| Failure::file(file, error, "name the right file"))?;
    parse(opened).map_err(|what| Failure::file(file, what, "put it right, and give the command again"))
}

fn parse(text: impl std::io::Read) -> Result<Vec<Row>, String> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).flexible(true).comment(Some(b'#')).from_reader(text);
    let headings = reader.headers().map_err(|error| error.to_string())?.clone();
    let headings: Vec<String> = headings.iter().map(str::to_ascii_lowercase).collect();
    let known = || COLUMNS.join(", ");
    if let Some(other) = headings.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
        return Err(format!("there is no column {other:?}; the first line has some of {}", known()));
    }
    if !headings.iter().any(|name| name == "name") {
        return Err(format!("the column name is missing; the first line has some of {}", known()));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        if rows.len() >= ROWS_MAX {
            return Err(format!("there are more than {ROWS_MAX} rows"));
        }
        rows.push(row(&headings, &record).map_err(|what| format!("line {line}: {what}"))?);
    }
    Ok(rows)
}

fn row(headings: &[String], record: &StringRecord) -> Result<Row, String> {
    if record.len() > headings.len() {
        return Err("it has more fields than the first line".to_owned());
    }
    let field = |name: &str| {
        let column = headings.iter().position(|heading| heading == name);
        column.and_then(|column| record.get(column)).unwrap_or_default()
    };
    let several = |name: &str| {
        let parts = field(name).split([' ', ';', ',']).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect::<Vec<String>>()
    };
    let kind = field("kind").to_ascii_lowercase();
    let kind = Kind::of(&kind).ok_or_else(|| format!("{kind:?} is no kind; use host, router, printer or unknown"))?;
    let mac = match field("mac") {
        "" => None,
        text => Some(text.parse().map_err(|_| format!("{text:?} is no hardware address, such as 02:00:00:00:00:11"))?),
    };
    let addresses = several("ip").into_iter().map(|ip| ip.parse().map_err(|_| format!("{ip:?} is no IPv4 address")));
    let subnets = several("subnet").into_iter().map(|text| text.parse().map_err(|_| format!("{text:?} is no subnet")));
    let role = match field("role") {
        "" => None,
        word => Some(Role::from_name(word).ok_or_else(|| format!("{word:?} is no role; use host or router"))?),
    };
    let name = field("name").to_owned();
    if name.is_empty() && matches!(kind, Kind::Host | Kind::Router) {
        return Err("it has no name".to_owned());
    }
    Ok(Row {
        kind,
        name,
        mac,
        addresses: addresses.collect::<Result<_, _>>()?,
        subnets: subnets.collect::<Result<_, _>>()?,
        role,
        vendor: field("vendor").to_owned(),
        note: field("note").to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_whatever_the_order_of_its_columns() {
        let text =
            "MAC,name,ip,kind\n02:00:00:00:00:11, desk-17 ,192.0.2.17;192.0.2.18,\n# old\n,gate,192.0.2.1,router\n";
        let rows = parse(text.as_bytes()).expect("a table");
        assert_eq!(rows[0].name, "desk-17");
        assert_eq!(rows[0].mac, Some(MacAddress([2, 0, 0, 0, 0, 0x11])));
        assert_eq!(rows[0].addresses, [Ipv4Addr::new(192, 0, 2, 17), Ipv4Addr::new(192, 0, 2, 18)]);
        assert_eq!((rows[1].kind, rows[1].mac), (Kind::Router, None));
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn what_is_written_is_read_again_and_what_is_there_twice_is_named() {
        let text_of = "name,mac,ip,kind,note\na,02:00:00:00:00:01,192.0.2.1 192.0.2.2,router,\"one, two\"\n\
            b,02:00:00:00:00:01,192.0.2.2,printer,\n,,192.0.2.9,unknown,\n";
        let rows = parse(text_of.as_bytes()).expect("a table");
        assert_eq!(parse(text(&rows).expect("text").as_bytes()), Ok(rows.clone()));
        let [address, mac] = &twice(&rows)[..] else { panic!("{:?}", twice(&rows)) };
        assert_eq!(address, "the address 192.0.2.2 is there 2 times: a, b");
        assert_eq!(mac, "the hardware address 02:00:00:00:00:01 is there 2 times: a, b");
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        for (text, words) in [
            ("name,hwaddr\na,b\n", "no column \"hwaddr\""),
            ("mac,ip\n,\n", "the column name is missing"),
            ("name,mac\na,02:00:00:00:00:01\nb,0200\n", "line 3: \"0200\" is no hardware address"),
            ("name,ip\na,192.0.2.9/24\n", "line 2: \"192.0.2.9/24\" is no IPv4 address"),
            ("name,kind\na,toaster\n", "line 2: \"toaster\" is no kind"),
            ("name,kind\n,host\n", "line 2: it has no name"),
            ("name,role\na,king\n", "line 2: \"king\" is no role"),
            ("name\na,b\n", "line 2: it has more fields"),
        ] {
            let told = parse(text.as_bytes()).expect_err(text);
            assert!(told.contains(words), "{told}");
        }
    }
}
