//! Who was told of an attack: the attack records that daemons have opened, and whether one of them
//! names the attacker.

use std::time::{Duration, Instant};

use serde_json::Value;
use wire::MacAddress;

use crate::failure::Failure;
use crate::guard::Daemon;
use crate::net::{Lan, process};

/// How long a daemon may take from a dropped frame to the record of it, on a loaded machine.
const TOLD_WITHIN: Duration = Duration::from_secs(15);
/// The same, where no record may name the attacker and perhaps there is none.
const TOLD_ANONYMOUSLY_WITHIN: Duration = Duration::from_millis(2500);
/// Hosts from which attacks come.
const ATTACKERS: [&str; 2] = ["m", "i"];

/// An attack record of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Name of the host whose daemon opened it.
    pub by: &'static str,
    /// Kind of attack, as docs/records.md lists them.
    pub kind: String,
    /// From which hardware address the attack came, as far as the daemon knows.
    pub source: Option<String>,
    /// Whether that is the attacker's own.
    pub is_attacker: bool,
}

/// The attack records of `daemons`. Waits for one that names the attacker, or for any if none can.
///
/// # Errors
/// A daemon does not answer.
pub fn told(daemons: &[Daemon], lan: &Lan, is_anonymous: bool) -> Result<Vec<Told>, Failure> {
    let attackers: Vec<MacAddress> = ATTACKERS.iter().filter_map(|name| Some(lan.host(name).ok()?.mac)).collect();
    let limit = if is_anonymous { TOLD_ANONYMOUSLY_WITHIN } else { TOLD_WITHIN };
    let end = Instant::now() + limit;
    loop {
        let mut all = Vec::new();
        for daemon in daemons.iter().filter(|daemon| !ATTACKERS.contains(&daemon.host.name)) {
            all.extend(records(&daemon.status()?, daemon.host.name, &attackers));
        }
        let is_enough = all.iter().any(|told| is_anonymous || told.is_attacker);
        if is_enough || Instant::now() > end {
            return Ok(all);
        }
        process::pause(Duration::from_millis(200))?;
    }
}

fn records(status: &Value, by: &'static str, attackers: &[MacAddress]) -> Vec<Told> {
    let open = status["attacks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let record = |attack: &Value| {
        let source = attack["source"]["mac"].as_str().map(str::to_owned);
        let address = source.as_deref().and_then(|text| text.parse::<MacAddress>().ok());
        let is_attacker = address.is_some_and(|address| attackers.contains(&address));
        Told { by, kind: attack["kind"].as_str().unwrap_or_default().to_owned(), source, is_attacker }
    };
    open.iter().map(record).collect()
}

/// Whether a record names the attacker.
#[must_use]
pub fn names_attacker(all: &[Told]) -> bool {
    all.iter().any(|told| told.is_attacker)
}

/// The records in a few words, for the evidence of a row; `anonymous` says why none can name the
/// attacker.
#[must_use]
pub fn sentence(all: &[Told], anonymous: Option<&str>) -> String {
    if let Some(told) = all.iter().find(|told| told.is_attacker) {
        let source = told.source.as_deref().unwrap_or_default();
        return format!("{} tells of {} by {source}, the attacker", told.by, told.kind);
    }
    let known = all.iter().map(|told| match &told.source {
        Some(source) => format!("{} tells of {} by {source}", told.by, told.kind),
        None => format!("{} tells of {} by somebody", told.by, told.kind),
    });
    let mut known: Vec<String> = known.collect();
    known.sort();
    known.dedup();
    let known = if known.is_empty() { "no attack record".to_owned() } else { known.join(", ") };
    let why = anonymous.unwrap_or("nobody was told who it is");
    format!("{known}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x6d]);

    fn status(sources: &[Option<&str>]) -> Value {
        let attack = |mac: &Option<&str>| serde_json::json!({ "kind": "arp-spoofing", "source": { "mac": mac } });
        serde_json::json!({ "attacks": sources.iter().map(attack).collect::<Vec<_>>() })
    }

    #[test]
    fn the_attacker_is_named_by_his_own_address_only() {
        let own = records(&status(&[None, Some("02:00:00:00:00:6d")]), "a", &[M]);
        assert!(names_attacker(&own), "{own:?}");
        assert_eq!(sentence(&own, None), "a tells of arp-spoofing by 02:00:00:00:00:6d, the attacker");
        for other in [&[Some("02:00:00:00:00:0b")][..], &[None], &[]] {
            assert!(!names_attacker(&records(&status(other), "a", &[M])), "{other:?}");
        }
    }

    #[test]
    fn where_nobody_can_know_him_the_reason_is_said() {
        let other = records(&status(&[Some("02:00:00:00:00:0b"), Some("02:00:00:00:00:0b")]), "a", &[M]);
        let why = "he sends with the address of b";
        assert_eq!(
            sentence(&other, Some(why)),
            "a tells of arp-spoofing by 02:00:00:00:00:0b: he sends with the address of b"
        );
        assert_eq!(sentence(&[], Some(why)), "no attack record: he sends with the address of b");
        assert_eq!(sentence(&[], None), "no attack record: nobody was told who it is");
    }
}
