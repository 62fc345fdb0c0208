//! From what the service prints to what is kept of it. The answers of who only looks are signed by
//! nobody (record 0108), so all of it has limits.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Clear, Legacy, Told};
use crate::site::{Brief, BriefHost};

/// Hosts that are kept; a service keeps as many reports.
pub(in super::super) const HOSTS_MAX: usize = 20_000;
/// Hosts in clear that are kept.
const CLEAR_MAX: usize = 1000;
/// Hosts on the policy's list that are kept; a policy has no room for more.
const LEGACY_MAX: usize = 1000;
/// Longest text that is kept of a field, in characters.
pub(super) const TEXT_CHARS_MAX: usize = 300;
/// Longest name or address.
const WORD_CHARS_MAX: usize = 64;
/// Protocols, and addresses of one in clear, that are kept.
const WORDS_MAX: usize = 16;
/// Addresses that are kept of an enrolled host.
const ADDRESSES_MAX: usize = 4;

/// Puts a question to the service: a command of `ringwall site`.
pub(super) type Look<'a> = dyn FnMut(&[&str]) -> Result<String, String> + 'a;

#[derive(Deserialize)]
struct Forecasts {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    forecast: Forecast,
}

#[derive(Deserialize)]
struct Forecast {
    sources: Vec<Source>,
    left_out: u64,
}

#[derive(Deserialize)]
struct Source {
    mac: String,
    enrolled_as: Option<String>,
    addresses: Vec<String>,
    uses: Vec<Use>,
    heard_by: Vec<String>,
}

#[derive(Deserialize)]
struct Use {
    protocol: String,
    frames: u64,
    last_unix_ms: u64,
}

#[derive(Deserialize)]
struct Policy {
    legacy: Vec<Legacy>,
}

/// All that is asked for. What cannot be told of the forecast alone is said beside the hosts.
pub(super) fn read(look: &mut Look<'_>) -> Result<Told, String> {
    let mut told = Told::default();
    hosts(look, &mut told)?;
    match look(&["forecast", "--json"]).and_then(|text| parse::<Forecasts>(&text)) {
        Ok(forecasts) => forecast(forecasts, &mut told),
        Err(why) => told.no_forecast = Some(short(&why, TEXT_CHARS_MAX)),
    }
    // There is none where nothing was decided yet.
    let policy = parse::<Option<Policy>>(&look(&["policy", "show", "--json"])?)?;
    let legacy = policy.map(|policy| policy.legacy).unwrap_or_default();
    told.legacy_left_out = legacy.len().saturating_sub(LEGACY_MAX) as u64;
    let kept = |one: &Legacy| Legacy { ip: word(&one.ip), mac: word(&one.mac), router: one.router };
    told.legacy = legacy.iter().take(LEGACY_MAX).map(kept).collect();
    Ok(told)
}

fn hosts(look: &mut Look<'_>, told: &mut Told) -> Result<(), String> {
    loop {
        let after = told.hosts.last().map(|host| format!("--after={}", host.name)).unwrap_or_default();
        let mut words = vec!["hosts", "--json", "--brief"];
        words.extend((!after.is_empty()).then_some(after.as_str()));
        let Brief { policy_version, hosts, more, .. } = parse(&look(&words)?)?;
        told.policy_version = policy_version;
        // Each answer goes on behind the one before, or it would never end.
        let is_next = |host: &BriefHost| told.hosts.last().is_none_or(|last| last.name < host.name);
        let is_further = hosts.first().is_some_and(is_next) && hosts.is_sorted_by(|one, other| one.name < other.name);
        if !hosts.is_empty() && !is_further {
            return Err("the service tells of hosts twice; use one version".to_owned());
        }
        told.is_cut = more && (hosts.is_empty() || told.hosts.len() + hosts.len() >= HOSTS_MAX);
        told.hosts.extend(hosts.iter().map(clipped));
        if !more || told.is_cut {
            told.hosts.truncate(HOSTS_MAX);
            return Ok(());
        }
    }
}

/// A host that groups hear is one row.
fn forecast(forecasts: Forecasts, told: &mut Told) {
    let mut all: BTreeMap<String, Clear> = BTreeMap::new();
    for group in forecasts.groups {
        told.clear_left_out = told.clear_left_out.saturating_add(group.forecast.left_out);
        for source in group.forecast.sources {
            let mac = short(&source.mac, WORD_CHARS_MAX);
            if all.len() >= CLEAR_MAX && !all.contains_key(&mac) {
                told.clear_left_out = told.clear_left_out.saturating_add(1);
                continue;
            }
            enter(all.entry(mac).or_default(), source);
        }
    }
    told.clear = all.into_iter().map(|(mac, clear)| Clear { mac, ..clear }).collect();
}

fn enter(clear: &mut Clear, source: Source) {
    let add = |all: &mut Vec<String>, text: &str| {
        let text = short(text, WORD_CHARS_MAX);
        if all.len() < WORDS_MAX && !all.contains(&text) {
            all.push(text);
        }
    };
    clear.enrolled_as = source.enrolled_as.map(|name| short(&name, WORD_CHARS_MAX)).or(clear.enrolled_as.take());
    source.addresses.iter().for_each(|address| add(&mut clear.addresses, address));
    clear.heard_by = clear.heard_by.saturating_add(source.heard_by.len() as u64);
    for one in &source.uses {
        add(&mut clear.protocols, &one.protocol);
        clear.frames = clear.frames.saturating_add(one.frames);
        clear.last_unix = clear.last_unix.max(one.last_unix_ms / 1000);
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("the service's answer is not understood ({error}); use one version"))
}

/// Without what a terminal obeys, which JSON writes six times as long.
fn short(text: &str, most: usize) -> String {
    let shown = |character: char| if character.is_control() { char::REPLACEMENT_CHARACTER } else { character };
    text.chars().take(most).map(shown).collect()
}

fn word(text: &str) -> String {
    short(text, WORD_CHARS_MAX)
}

/// The same with no text that is too long, and no room that was taken for one.
fn clipped(host: &BriefHost) -> BriefHost {
    BriefHost {
        name: word(&host.name),
        mac: word(&host.mac),
        addresses: host.addresses.iter().take(ADDRESSES_MAX).map(|address| word(address)).collect(),
        group: word(&host.group),
        mode: host.mode.as_deref().map(word),
        migration: host.migration.as_deref().map(word),
        ..*host
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn host(number: usize) -> Value {
        json!({
            "name": format!("desk-{number:05}"), "mac": "02:00:00:00:00:01", "addresses": ["192.0.2.1"],
            "group": "*", "certificate_not_after_unix": 9, "is_silent": false,
        })
    }

    /// A service with so many hosts, which tells of so many at a time.
    fn service(total: usize, at_a_time: usize) -> impl FnMut(&[&str]) -> Result<String, String> {
        move |words| match words {
            ["hosts", "--json", "--brief", rest @ ..] => {
                let after = rest.first().and_then(|word| word.strip_prefix("--after=desk-"));
                let begin = after.map_or(0, |number| number.parse::<usize>().expect("a number") + 1);
                let end = (begin + at_a_time).min(total);
                let hosts: Vec<Value> = (begin..end).map(host).collect();
                let value = json!({"policy_version": 4, "hosts": hosts, "more": end < total, "turned_away": []});
                Ok(value.to_string())
            }
            ["forecast", ..] => {
                let source = |mac: &str, by: &str| {
                    json!({
                        "mac": mac, "addresses": ["192.0.2.9"], "heard_by": [by],
                        "uses": [{"protocol": "tcp/9100", "frames": 7, "last_unix_ms": 5000, "last": "x"}],
                    })
                };
                let group = |sources: Vec<Value>| json!({"forecast": {"sources": sources, "left_out": 1}});
                let groups = [group(vec![source("a", "x"), source("b", "x")]), group(vec![source("a", "y")])];
                Ok(json!({"groups": groups}).to_string())
            }
            ["policy", "show", "--json"] => Ok("null".to_owned()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_hosts_of_a_big_site_are_read_in_parts_and_no_more_than_are_kept() {
        let read = |total| read(&mut service(total, 5000)).expect("told");
        let told = read(10_001);
        assert_eq!((told.hosts.len(), told.is_cut, told.policy_version), (10_001, false, Some(4)));
        assert!(told.hosts.is_sorted_by(|one, other| one.name < other.name));
        let told = read(25_000);
        assert_eq!((told.hosts.len(), told.is_cut), (HOSTS_MAX, true));
    }

    #[test]
    fn the_longest_texts_of_all_hosts_fit_into_one_line() {
        for longest in ["\u{1}", "\"", "\u{10ffff}"] {
            let text = longest.repeat(500);
            let address = vec![text.clone(); 500];
            let host = BriefHost {
                name: text.clone(),
                mac: text.clone(),
                addresses: address.clone(),
                group: text.clone(),
                mode: Some(text.clone()),
                migration: Some(text.clone()),
                reported_unix: Some(u64::MAX),
                policy_version: Some(u64::MAX),
                dropped: Some(u64::MAX),
                certificate_not_after_unix: u64::MAX,
                sealed: u64::MAX,
                in_clear: u64::MAX,
                attacks_open: u64::MAX,
                is_silent: false,
            };
            let mut clear = Clear::default();
            for number in 0..2 * WORDS_MAX {
                let different = format!("{number}{text}");
                let uses = vec![Use { protocol: different.clone(), frames: u64::MAX, last_unix_ms: u64::MAX }];
                let source = Source {
                    mac: text.clone(),
                    enrolled_as: Some(text.clone()),
                    addresses: vec![different],
                    uses,
                    heard_by: Vec::new(),
                };
                enter(&mut clear, source);
            }
            let clear = Clear { mac: word(&text), ..clear };
            let legacy = Legacy { ip: word(&text), mac: word(&text), router: false };
            let len = |value: Value| value.to_string().len() + 1;
            let most = HOSTS_MAX * len(json!(clipped(&host)))
                + CLEAR_MAX * len(json!(clear))
                + LEGACY_MAX * len(json!(legacy));
            assert!((most + 4096) as u64 <= super::super::LINE_BYTES_MAX, "{most}");
        }
    }

    #[test]
    fn who_speaks_in_clear_is_one_row_whoever_hears_it() {
        let told = read(&mut service(0, 1)).expect("told");
        let [one, other] = &told.clear[..] else { panic!("{told:?}") };
        assert_eq!((one.mac.as_str(), one.heard_by, one.frames, one.last_unix), ("a", 2, 14, 5));
        assert_eq!((other.mac.as_str(), other.heard_by), ("b", 1));
        assert_eq!(told.clear_left_out, 2);
        assert!(told.legacy.is_empty());
    }

    #[test]
    fn what_is_no_answer_or_has_no_end_is_said_and_what_is_too_long_is_cut() {
        assert!(read(&mut |_: &[&str]| Ok("{}".to_owned())).expect_err("no hosts").contains("not understood"));
        let mut again = service(3, 2);
        let mut forgetful = |words: &[&str]| again(&words[..words.len().min(3)]);
        assert!(read(&mut forgetful).expect_err("the same again").contains("twice"));
        let mut inner = service(1, 1);
        let mut long = |words: &[&str]| match words[0] {
            "forecast" => Err("more than 4 MiB".repeat(100)),
            _ => inner(words).map(|text| text.replace("desk-00000", &"d".repeat(5000))),
        };
        let told = read(&mut long).expect("the hosts are known");
        assert_eq!(told.hosts[0].name.len(), WORD_CHARS_MAX);
        assert_eq!(told.no_forecast.map(|why| why.len()), Some(TEXT_CHARS_MAX));
    }
}
