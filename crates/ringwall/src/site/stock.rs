//! What is known of a network before anybody is guarded: neighbours, leases, tables, and whose card
//! has which maker.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use authority::limits::MAX_NAME_LEN;
use wire::arp::Arp;
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

use super::table::{Kind, Row};

/// Makers whose things on a LAN are printers, phones or cameras, in small letters.
const LEGACY_MAKERS: [&str; 17] = [
    "axis communications",
    "brother",
    "canon",
    "epson",
    "grandstream",
    "hikvision",
    "konica",
    "kyocera",
    "lexmark",
    "oki",
    "polycom",
    "ricoh",
    "sharp",
    "snom",
    "xerox",
    "yealink",
    "zebra",
];
/// How names of printers, phones and cameras begin that nobody has named.
const LEGACY_NAMES: [&str; 12] =
    ["brn", "brw", "cam", "copier", "epson", "hplj", "ip-phone", "lp", "mfp", "npi", "phone", "print"];
/// Set in a hardware address that no maker has given.
const LOCAL: u8 = 2;
/// Set in the address of a group.
const GROUP: u8 = 1;

/// One sighting of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) mac: MacAddress,
    pub(super) ip: Ipv4Addr,
    pub(super) name: String,
    /// Where it was seen, in a word.
    pub(super) source: &'static str,
}

/// All that is known of one card.
#[derive(Clone, Debug, Default)]
struct Card {
    addresses: BTreeSet<Ipv4Addr>,
    name: String,
    sources: BTreeSet<&'static str>,
}

/// The kernel's table of neighbours (`/proc/net/arp`), those that have answered.
pub(super) fn neighbours(text: &str) -> Vec<Sighting> {
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [ip, _, flags, mac, ..] = fields[..] else { return None };
        let is_known = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()? & 2 != 0;
        is_known.then_some(())?;
        sighting(mac, ip, "", "neighbour")
    };
    text.lines().filter_map(of_line).collect()
}

/// What `ip neigh` prints, on this machine or another.
pub(super) fn ip_neigh(text: &str) -> Vec<Sighting> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let ip = words.next()?;
        let mac = words.skip_while(|word| *word != "lladdr").nth(1)?;
        let is_over = line.ends_with("FAILED") || line.ends_with("INCOMPLETE");
        if is_over { None } else { sighting(mac, ip, "", "neighbour") }
    };
    text.lines().filter_map(of_line).collect()
}

/// Leases of dnsmasq: when one ends, hardware address, address, name, client.
pub(super) fn dnsmasq(text: &str) -> Vec<Sighting> {
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, mac, ip, name, ..] = fields[..] else { return None };
        sighting(mac, ip, name, "lease")
    };
    text.lines().filter_map(of_line).collect()
}

/// Leases of Kea's memfile: a table, of which later rows take the place of earlier ones.
pub(super) fn kea(text: &str) -> Vec<Sighting> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let headings = reader.headers().cloned().unwrap_or_default();
    let column = |name: &str| headings.iter().position(|heading| heading == name);
    let (ip, mac, name, state) = (column("address"), column("hwaddr"), column("hostname"), column("state"));
    let mut leases = BTreeMap::new();
    for record in reader.records().flatten() {
        let field = |column: Option<usize>| column.and_then(|column| record.get(column)).unwrap_or_default();
        // 0 is a lease in force; 1 was declined, 2 was given back.
        let is_over = !matches!(field(state), "" | "0");
        match sighting(field(mac), field(ip), field(name), "lease") {
            Some(seen) if !is_over => leases.insert(seen.ip, seen),
            Some(seen) => leases.remove(&seen.ip),
            None => None,
        };
    }
    leases.into_values().collect()
}

/// Who says in a frame of ARP that he has an address. Only what he says of himself counts, and a
/// probe (RFC 5227) says nothing yet.
pub(super) fn heard(frame: &[u8]) -> Option<Sighting> {
    let (header, payload) = Header::parse(frame).ok()?;
    let arp = Arp::parse(payload).ok().filter(|_| header.ethertype == EtherType::ARP)?;
    let is_himself = header.source == arp.sender_mac && !arp.sender_ip.is_unspecified();
    let is_card = arp.sender_mac != MacAddress::ZERO && arp.sender_mac.0[0] & GROUP == 0;
    let seen = Sighting { mac: arp.sender_mac, ip: arp.sender_ip, name: String::new(), source: "arp" };
    (is_himself && is_card).then_some(seen)
}

/// Nothing if it is no card's.
fn sighting(mac: &str, ip: &str, name: &str, source: &'static str) -> Option<Sighting> {
    let (mac, ip): (MacAddress, Ipv4Addr) = (mac.parse().ok()?, ip.parse().ok()?);
    let is_card = mac != MacAddress::ZERO && mac.0[0] & GROUP == 0;
    is_card.then(|| Sighting { mac, ip, name: host_name(name), source })
}

/// The first label of a name, as far as a host of a site may be called so.
fn host_name(text: &str) -> String {
    let label = text.trim_matches('*').split('.').next().unwrap_or_default();
    let taken = label.chars().filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    taken.take(MAX_NAME_LEN).collect::<String>().trim_matches('-').to_ascii_lowercase()
}

/// Makers by the first three bytes, from the IEEE's list as text or as a table.
pub(super) fn makers(text: &str) -> BTreeMap<[u8; 3], String> {
    let digits = |digits: &str| {
        let number = u32::from_str_radix(&digits.replace('-', ""), 16).ok().filter(|_| digits.len() >= 6)?;
        let [_, first, second, third] = number.to_be_bytes();
        Some([first, second, third])
    };
    if text.starts_with("Registry,") {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let of_record = |record: csv::StringRecord| Some((digits(record.get(1)?)?, record.get(2)?.trim().to_owned()));
        return reader.records().flatten().filter_map(of_record).collect();
    }
    let of_line = |line: &str| {
        let (prefix, name) = line.split_once("(hex)")?;
        Some((digits(prefix.trim())?, name.trim().to_owned()))
    };
    text.lines().filter_map(of_line).collect()
}

/// One row for each card, in the order of addresses, with what it seems to be; `gateways` are this
/// machine's own.
pub(super) fn proposal(seen: &[Sighting], makers: &BTreeMap<[u8; 3], String>, gateways: &[Ipv4Addr]) -> Vec<Row> {
    let mut cards: BTreeMap<[u8; 6], Card> = BTreeMap::new();
    for one in seen {
        let card = cards.entry(one.mac.0).or_default();
        card.addresses.insert(one.ip);
        card.sources.insert(one.source);
        if card.name.is_empty() {
            card.name.clone_from(&one.name);
        }
    }
    let mut rows: Vec<Row> = cards.iter().map(|(mac, card)| row(*mac, card, makers, gateways)).collect();
    rows.sort_by(|one, other| one.addresses.cmp(&other.addresses));
    for index in 0..rows.len() {
        let others = doubled(&rows, index);
        if !others.is_empty() {
            let note = [rows[index].note.as_str(), &others].into_iter().filter(|part| !part.is_empty());
            rows[index].note = note.collect::<Vec<_>>().join("; ");
        }
    }
    rows
}

fn row(mac: [u8; 6], card: &Card, makers: &BTreeMap<[u8; 3], String>, gateways: &[Ipv4Addr]) -> Row {
    let is_local = mac[0] & LOCAL != 0;
    let vendor = makers.get(&mac[..3]).filter(|_| !is_local).cloned().unwrap_or_default();
    let is_gateway = card.addresses.iter().any(|ip| gateways.contains(ip));
    let of_maker = LEGACY_MAKERS.iter().any(|maker| vendor.to_ascii_lowercase().contains(maker));
    let of_name = LEGACY_NAMES.iter().any(|begins| card.name.starts_with(begins));
    let kind = match (is_gateway, of_maker || of_name, card.name.is_empty()) {
        (true, ..) => Kind::Router,
        (_, true, _) => Kind::Legacy,
        (.., true) => Kind::Unknown,
        _ => Kind::Host,
    };
    let name = match (is_gateway, card.name.is_empty()) {
        (true, true) => "gateway".to_owned(),
        _ => card.name.clone(),
    };
    let mut notes: Vec<String> = vec![format!("by {}", card.sources.iter().copied().collect::<Vec<_>>().join(" and "))];
    if is_local {
        notes.push("hardware address of no maker".to_owned());
    }
    if kind == Kind::Unknown {
        notes.push("has no name".to_owned());
    }
    Row {
        kind,
        name,
        mac: Some(MacAddress(mac)),
        addresses: card.addresses.iter().copied().collect(),
        subnets: Vec::new(),
        role: None,
        vendor,
        note: notes.join("; "),
    }
}

/// Which other cards have an address or the name of this one.
fn doubled(rows: &[Row], index: usize) -> String {
    let mine = &rows[index];
    let others = rows.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, row)| row);
    let mut notes = Vec::new();
    for other in others {
        let mac = other.mac.unwrap_or_default();
        for ip in mine.addresses.iter().filter(|ip| other.addresses.contains(ip)) {
            notes.push(format!("DUPLICATE {ip}, also at {mac}"));
        }
        if !mine.name.is_empty() && mine.name == other.name {
            notes.push(format!("the name is also that of {mac}"));
        }
    }
    notes.join("; ")
}

#[cfg(test)]
mod tests {
    use wire::arp::Operation;

    use super::*;

    const ARP: &str = "IP address       HW type     Flags       HW address            Mask     Device\n\
        192.0.2.1        0x1         0x2         00:1b:21:00:00:01     *        eth0\n\
        192.0.2.17       0x1         0x2         00:1b:21:00:00:17     *        eth0\n\
        192.0.2.66       0x1         0x0         00:00:00:00:00:00     *        eth0\n";
    const LEASES: &str = "1795590772 00:1b:21:00:00:17 192.0.2.17 Desk-17.example.org 01:00:1b:21:00:00:17\n\
        1795590772 00:80:77:00:00:09 192.0.2.9 * *\n1795590772 00:1b:21:00:00:18 192.0.2.17 desk-18 *\nduid 00:01\n";
    const KEA: &str = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context\n\
        192.0.2.30,0a:00:00:00:00:30,,3600,1795590772,1,0,0,laptop,0,\n\
        192.0.2.31,00:1b:21:00:00:31,,3600,1795590772,1,0,0,gone,0,\n\
        192.0.2.31,00:1b:21:00:00:31,,0,1795590772,1,0,0,gone,2,\n";
    const OUI: &str =
        "OUI/MA-L\t\t\tOrganization\n00-80-77   (hex)\t\tBROTHER INDUSTRIES, LTD.\n008077     (base 16)\t\tBROTHER\n";
    const OUI_TABLE: &str = "Registry,Assignment,Organization Name,Organization Address\n\
        MA-L,008077,\"Brother industries, LTD.\",\"Nagoya JP\"\n";

    #[test]
    fn what_was_seen_becomes_one_row_for_each_card() {
        let seen: Vec<Sighting> = [neighbours(ARP), dnsmasq(LEASES), kea(KEA)].concat();
        let rows = proposal(&seen, &makers(OUI), &[Ipv4Addr::new(192, 0, 2, 1)]);
        let told: Vec<(Kind, &str, u8)> =
            rows.iter().map(|row| (row.kind, row.name.as_str(), row.addresses[0].octets()[3])).collect();
        let expected = [
            (Kind::Router, "gateway", 1),
            (Kind::Legacy, "", 9),
            (Kind::Host, "desk-17", 17),
            (Kind::Host, "desk-18", 17),
            (Kind::Host, "laptop", 30),
        ];
        assert_eq!(told, expected);
        assert_eq!(rows[1].vendor, "BROTHER INDUSTRIES, LTD.");
        assert!(rows[2].note.contains("by lease and neighbour"), "{}", rows[2].note);
        assert!(rows[2].note.contains("DUPLICATE 192.0.2.17, also at 00:1b:21:00:00:18"), "{}", rows[2].note);
        assert!(rows[4].note.contains("hardware address of no maker"), "{}", rows[4].note);
    }

    #[test]
    fn both_forms_of_the_list_of_makers_say_the_same() {
        let (text, table) = (makers(OUI), makers(OUI_TABLE));
        assert_eq!(text.keys().collect::<Vec<_>>(), table.keys().collect::<Vec<_>>());
        assert_eq!(table[&[0, 0x80, 0x77]], "Brother industries, LTD.");
    }

    #[test]
    fn what_another_machine_printed_of_its_neighbours_is_read() {
        let text = "192.0.2.17 dev eth0 lladdr 00:1b:21:00:00:17 STALE\n192.0.2.66 dev eth0 FAILED\n\
            fe80::1 dev eth0 lladdr 00:1b:21:00:00:01 router REACHABLE\n";
        let seen = ip_neigh(text);
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].ip, Ipv4Addr::new(192, 0, 2, 17));
    }

    #[test]
    fn of_what_is_heard_only_what_somebody_says_of_himself_counts() {
        let [mine, other] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];
        let frame = |source, sender_mac, sender_ip: [u8; 4]| {
            let header = Header { destination: MacAddress::BROADCAST, source, ethertype: EtherType::ARP };
            let operation = Operation::Request;
            let (sender_ip, target_ip) = (sender_ip.into(), [192, 0, 2, 9].into());
            let arp = Arp { operation, sender_mac, sender_ip, target_mac: MacAddress::ZERO, target_ip };
            [&header.emit()[..], &arp.emit()].concat()
        };
        let seen = heard(&frame(mine, mine, [192, 0, 2, 1])).expect("somebody");
        assert_eq!((seen.mac, seen.ip), (mine, Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(heard(&frame(mine, other, [192, 0, 2, 1])), None, "of another");
        assert_eq!(heard(&frame(mine, mine, [0, 0, 0, 0])), None, "a probe");
        assert_eq!(heard(&frame(mine, mine, [192, 0, 2, 1])[..20]), None, "cut");
    }

    #[test]
    fn names_are_such_as_a_host_may_have() {
        assert_eq!(host_name("Desk 17's.example.org"), "desk17s");
        assert_eq!(host_name("*"), "");
        assert_eq!(host_name(&"x".repeat(200)).len(), MAX_NAME_LEN);
    }
}
