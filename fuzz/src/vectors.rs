//! The golden vectors, as seeds and as the keys of a site.

use std::collections::BTreeMap;
use std::sync::OnceLock;

const FILES: [&str; 9] = [
    include_str!("../../vectors/site.txt"),
    include_str!("../../vectors/handshake-1.txt"),
    include_str!("../../vectors/handshake-2.txt"),
    include_str!("../../vectors/handshake-3.txt"),
    include_str!("../../vectors/rollover.txt"),
    include_str!("../../vectors/broadcast.txt"),
    include_str!("../../vectors/resumption.txt"),
    include_str!("../../vectors/handshake-5.txt"),
    include_str!("../../vectors/cll-dhcp.txt"),
];

/// The values of one file by name.
pub type Values = BTreeMap<&'static str, Vec<u8>>;

/// The site, three handshakes, rollovers, frames to groups, resumptions, a handshake about IPv6 addresses, and DHCP.
pub fn files() -> &'static [Values] {
    static READ: OnceLock<Vec<Values>> = OnceLock::new();
    READ.get_or_init(|| FILES.iter().map(|text| read(text)).collect())
}

/// Every value of every file whose name ends with `ending`.
pub fn ending_with(ending: &str) -> impl Iterator<Item = &'static [u8]> {
    files().iter().flatten().filter(move |(name, _)| name.ends_with(ending)).map(|(_, value)| value.as_slice())
}

fn read(text: &'static str) -> Values {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once(" =").expect("name = hex"));
    pairs.map(|(name, digits)| (name, bytes_of(digits.trim()))).collect()
}

fn bytes_of(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}
