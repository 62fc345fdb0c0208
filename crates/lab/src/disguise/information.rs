//! How much the fields that nmap measures tell about a host, in bits: over nmap's own list as it is, and as the gateway would leave
//! it.
//!
//! Every fingerprint of the list counts alike. A field's alternatives share its weight; a range counts as one value. What leaves
//! is modelled ([`leave`]), not measured: each value of the list is given what the rules make of it. A field that is missing
//! because the host did not answer has the value "silent". So the bits of single fields overlap, as they say the same thing
//! several times; what all say together is the entropy of whole fingerprints, which no observer can exceed.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::failure::Failure;

/// Where Debian's nmap-common has nmap's list.
pub const LIST: &str = "/usr/share/nmap/nmap-os-db";
/// The hop limit that leaves, in nmap's hexadecimal.
const HOP_LIMIT: &str = "38";
/// Length of an error that quotes a header and 8 bytes.
const ERROR_LEN: &str = "38";
/// Segment size on Ethernet and window under the rule `tcp-initial-window`.
const MSS_MAX: u32 = 1456;
const WINDOW_MAX: u32 = 4001;
const SILENT: &str = "silent";

/// Under which rules values leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Bare,
    Balanced,
    Strict,
}

const VIEWS: [View; 3] = [View::Bare, View::Balanced, View::Strict];

/// The tests of nmap and their fields.
const TESTS: [(&str, &[&str]); 13] = [
    ("SEQ", &["SP", "GCD", "ISR", "TI", "CI", "II", "SS", "TS"]),
    ("OPS", &["O1", "O2", "O3", "O4", "O5", "O6"]),
    ("WIN", &["W1", "W2", "W3", "W4", "W5", "W6"]),
    ("ECN", &["R", "DF", "T", "TG", "W", "O", "CC", "Q"]),
    ("T1", &["R", "DF", "T", "TG", "S", "A", "F", "RD", "Q"]),
    ("T2", &["R", "DF", "T", "TG", "W", "S", "A", "F", "O", "RD", "Q"]),
    ("T3", &["R", "DF", "T", "TG", "W", "S", "A", "F", "O", "RD", "Q"]),
    ("T4", &["R", "DF", "T", "TG", "W", "S", "A", "F", "O", "RD", "Q"]),
    ("T5", &["R", "DF", "T", "TG", "W", "S", "A", "F", "O", "RD", "Q"]),
    ("T6", &["R", "DF", "T", "TG", "W", "S", "A", "F", "O", "RD", "Q"]),
    ("T7", &["R", "DF", "T", "TG", "W", "S", "A", "F", "O", "RD", "Q"]),
    ("U1", &["R", "DF", "T", "TG", "IPL", "UN", "RIPL", "RID", "RIPCK", "RUCK", "RUD"]),
    ("IE", &["R", "DFI", "T", "TG", "CD"]),
];

/// Bits without the gateway, behind its preset `balanced`, and behind `strict`.
pub type Bits = [f64; 3];

/// What the list tells.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Fingerprints in the list.
    pub fingerprints: usize,
    /// Of each field, in nmap's order.
    pub fields: Vec<(String, Bits)>,
    /// Of all fields, each counted by itself.
    pub sum: Bits,
    /// Of whole fingerprints.
    pub together: Bits,
}

/// One system of the list: the values of its tests.
type Fingerprint = BTreeMap<String, BTreeMap<String, String>>;

/// Reads the list in `file` and counts.
///
/// # Errors
/// It cannot be read, or there is no fingerprint in it.
pub fn count(file: &Path) -> Result<Report, Failure> {
    let bytes = std::fs::read(file).map_err(Failure::file("reading", file))?;
    let list = parse(&String::from_utf8_lossy(&bytes));
    if list.is_empty() {
        return Err(Failure::Unreadable(format!("{}: no fingerprint in it", file.display())));
    }
    let mut fields = Vec::new();
    for (test, names) in TESTS {
        for name in names {
            fields.push((format!("{test}.{name}"), VIEWS.map(|view| field_bits(&list, test, name, view))));
        }
    }
    let sum = [0, 1, 2].map(|view| fields.iter().map(|(_, bits)| bits[view]).sum());
    Ok(Report { fingerprints: list.len(), sum, together: VIEWS.map(|view| whole_bits(&list, view)), fields })
}

fn parse(text: &str) -> Vec<Fingerprint> {
    let mut list: Vec<Fingerprint> = Vec::new();
    for line in text.lines() {
        if line.starts_with("Fingerprint ") {
            list.push(Fingerprint::new());
        }
        let (Some(current), Some((test, values))) = (list.last_mut(), line.split_once('(')) else { continue };
        if TESTS.iter().any(|(name, _)| *name == test) {
            let pairs = values.trim_end_matches(')').split('%').filter_map(|value| value.split_once('='));
            current.insert(test.to_owned(), pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
        }
    }
    list
}

/// The value of a field as the list writes it; `None` where the list says nothing about it.
fn value<'a>(system: &'a Fingerprint, test: &str, name: &str) -> Option<&'a str> {
    let fields = system.get(test)?;
    let answers = fields.get("R").is_none_or(|value| value != "N");
    match (name, fields.get(name)) {
        (_, Some(value)) => Some(value),
        ("R", None) => Some("Y"),
        // What is computed of several answers is missing where there are too few.
        _ if test == "SEQ" || !answers => Some(SILENT),
        _ => None,
    }
}

fn field_bits(list: &[Fingerprint], test: &str, name: &str, view: View) -> f64 {
    let mut weights: HashMap<String, f64> = HashMap::new();
    for system in list {
        let Some(value) = value(system, test, name) else { continue };
        let values = alternatives(value);
        for alternative in &values {
            let left = leave(system, test, name, alternative, view);
            *weights.entry(left.into_owned()).or_default() += 1.0 / values.len() as f64;
        }
    }
    entropy(weights.into_values())
}

fn whole_bits(list: &[Fingerprint], view: View) -> f64 {
    let mut weights: HashMap<String, f64> = HashMap::new();
    for system in list {
        let mut whole = String::new();
        for (test, names) in TESTS {
            for name in names {
                let Some(value) = value(system, test, name) else { continue };
                let mut left: Vec<_> =
                    alternatives(value).into_iter().map(|value| leave(system, test, name, value, view)).collect();
                left.sort();
                left.dedup();
                whole += &format!("{test}.{name}={};", left.join("|"));
            }
        }
        *weights.entry(whole).or_default() += 1.0;
    }
    entropy(weights.into_values())
}

fn entropy(weights: impl Iterator<Item = f64>) -> f64 {
    let weights: Vec<f64> = weights.collect();
    let all: f64 = weights.iter().sum();
    let bits: f64 = weights.iter().map(|weight| weight / all * (all / weight).log2()).sum();
    // An empty sum is a negative zero.
    if bits > 0.0 { bits } else { 0.0 }
}

/// Splits at the bars outside of brackets.
fn alternatives(value: &str) -> Vec<&str> {
    let mut depth = 0;
    let split = |letter: char| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == '|' && depth == 0
    };
    value.split(split).collect()
}

/// What the gateway makes of one value.
fn leave<'a>(system: &Fingerprint, test: &str, name: &str, value: &'a str, view: View) -> Cow<'a, str> {
    if view == View::Bare {
        return value.into();
    }
    match test {
        // The probes do not belong to a connection and are dropped.
        "T2" | "T3" | "T4" | "T6" | "T7" => if name == "R" { "N" } else { SILENT }.into(),
        "T1" | "T5" if !is_regular(system, test) => if name == "R" { "N" } else { SILENT }.into(),
        _ if value == SILENT || name == "R" => {
            if test == "SEQ" {
                sequence(name, value, view)
            } else {
                value.into()
            }
        }
        "SEQ" => sequence(name, value, view),
        "U1" | "IE" => error_or_echo(name).into(),
        _ => segment(test, name, value, view),
    }
}

/// Whether the answer is one that rules `tcp-handshake` and `tcp-reset` let out: a SYN-ACK or a reset for just this SYN.
fn is_regular(system: &Fingerprint, test: &str) -> bool {
    let acknowledges = value(system, test, "A").is_some_and(|value| alternatives(value).contains(&"S+"));
    let flags = if test == "T1" { "AS" } else { "AR" };
    acknowledges && value(system, test, "F").is_some_and(|value| alternatives(value).contains(&flags))
}

/// Initial sequence numbers and identifications of several answers.
fn sequence<'a>(name: &str, value: &'a str, view: View) -> Cow<'a, str> {
    match name {
        // Small segments carry DF and the identification zero.
        "TI" => "Z".into(),
        // One connection's timestamps cannot be compared with another's.
        "TS" if view == View::Balanced && !matches!(value, SILENT | "U") => "shifted".into(),
        "TS" => "U".into(),
        // Numbers are shifted by connection; of resets and echoes there are too few that can be compared.
        _ => "hidden".into(),
    }
}

fn error_or_echo(name: &str) -> &'static str {
    match name {
        "DF" | "DFI" => "N",
        "T" | "TG" => HOP_LIMIT,
        "IPL" => ERROR_LEN,
        "UN" => "0",
        "CD" => "Z",
        _ => "G",
    }
}

fn segment<'a>(test: &str, name: &str, value: &'a str, view: View) -> Cow<'a, str> {
    let is_reset = test == "T5";
    match name {
        "DF" => "Y".into(),
        "T" | "TG" => HOP_LIMIT.into(),
        "Q" => "".into(),
        "RD" => "0".into(),
        "A" => "S+".into(),
        "S" => if is_reset { "Z" } else { "O" }.into(),
        "F" => if is_reset { "AR" } else { "AS" }.into(),
        "W" | "O" if is_reset => "0".into(),
        "CC" if view == View::Strict => "N".into(),
        _ if view == View::Strict && name.starts_with('W') => at_most(value, WINDOW_MAX).into(),
        _ if name.starts_with('O') => options(value, view).into(),
        _ => value.into(),
    }
}

/// The value or range in hexadecimal, or `max` where it is no less.
fn at_most(value: &str, max: u32) -> String {
    let lowest = value.trim_start_matches('[').split(['-', '|', ']']).next().unwrap_or_default();
    match u32::from_str_radix(lowest, 16) {
        Ok(lowest) if lowest >= max => format!("{max:X}"),
        _ => value.to_owned(),
    }
}

/// Options in the order in which they leave.
fn options(value: &str, view: View) -> String {
    let mut parts: [String; 4] = Default::default();
    let mut rest = value;
    while let Some(letter) = rest.chars().next() {
        let end = part_len(rest);
        let (part, behind) = rest.split_at(end);
        rest = behind;
        match (letter, view) {
            ('M', View::Strict) => parts[0] = format!("M{}", at_most(&part[1..], MSS_MAX)),
            ('M', _) => parts[0] = part.to_owned(),
            ('S', View::Balanced) => parts[1] = "S".to_owned(),
            // A shifted timestamp is not zero.
            ('T', View::Balanced) => parts[2] = "T11".to_owned(),
            ('W', View::Balanced) => parts[3] = part.to_owned(),
            _ => {}
        }
    }
    parts.concat()
}

/// Length of the option at the beginning of `text`: a letter of nmap's and its value, which may be a list in brackets.
fn part_len(text: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in text.char_indices().skip(1) {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        if depth == 0 && "MNWTSL".contains(letter) {
            return at;
        }
    }
    text.len()
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "information in nmap's fields over the {} fingerprints of its list, in bits", self.fingerprints)?;
        writeln!(out, "{:10} {:>8} {:>9} {:>8}", "field", "without", "balanced", "strict")?;
        let mut line = |name: &str, [without, balanced, strict]: Bits| {
            writeln!(out, "{name:10} {without:8.2} {balanced:9.2} {strict:8.2}")
        };
        for (name, bits) in &self.fields {
            line(name, *bits)?;
        }
        line("sum", self.sum)?;
        line("together", self.together)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# a comment (not a test)\nFingerprint A\nClass x\nSEQ(SP=0-5%TI=I%TS=7)\n\
        OPS(O1=M5B4NNSW0NNNT01%O2=M5B4)\nWIN(W1=8000)\nT1(R=Y%DF=Y%T=FA-104%S=O%A=S+%F=AS%RD=0%Q=)\nT2(R=N)\n\n\
        Fingerprint B\nSEQ(SP=0-5%TI=RI|Z%TS=U)\nOPS(O1=M5B4ST11NW0%O2=M[100-200]NW3)\nWIN(W1=400-500)\n\
        T1(R=Y%DF=N%T=3B-45%S=O%A=O|S+%F=AS%RD=0%Q=)\nT2(R=Y%W=0)\n";

    fn bits(test: &str, name: &str) -> Bits {
        VIEWS.map(|view| field_bits(&parse(TWO), test, name, view))
    }

    #[test]
    fn two_systems_that_differ_are_one_bit() {
        assert_eq!(bits("SEQ", "SP"), [0.0, 0.0, 0.0]);
        assert_eq!(bits("T1", "DF"), [1.0, 0.0, 0.0]);
        assert_eq!(bits("T1", "T"), [1.0, 0.0, 0.0]);
        assert_eq!(bits("SEQ", "TS"), [1.0, 1.0, 0.0]);
        assert_eq!(bits("WIN", "W1"), [1.0, 1.0, 1.0], "a window is never raised");
        assert_eq!(bits("T2", "R"), [1.0, 0.0, 0.0]);
        assert_eq!(bits("OPS", "O1"), [1.0, 0.0, 0.0], "the same options in another order");
        assert_eq!(bits("SEQ", "TI"), [1.5, 0.0, 0.0], "alternatives share their system's weight");
        assert_eq!(VIEWS.map(|view| whole_bits(&parse(TWO), view)), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn options_leave_in_one_order() {
        assert_eq!(options("M5B4NNSW0NNNT01", View::Balanced), "M5B4ST11W0");
        assert_eq!(options("M5B4NNSW0NNNT01", View::Strict), "M5B0");
        assert_eq!(options("M[100-200]W[2|3]L", View::Balanced), "M[100-200]W[2|3]");
        assert_eq!(alternatives("W[2|3]|M5B4"), ["W[2|3]", "M5B4"]);
    }
}
