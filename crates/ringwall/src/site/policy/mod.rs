//! `ringwall site policy`: what the site decides for all its hosts, one signed version after the
//! other.

#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use authority::directory::{change_policy, policy, policy_file};
use authority::{Directory, Entry};
use clap::{Args, Subcommand};
use identity::certificate::{unix_of_utc, utc_text};
use identity::policy::{Content, Exception, Group, KnownHost, LegacyHost, Mode, SitePolicy};
use serde_json::{Value, json};
use wire::MacAddress;

use super::table::Row;
use super::{DEFAULT_DIRECTORY, Surroundings};
use crate::config::duration::parse_time;
use crate::failure::Failure;

/// The group of all hosts.
const EVERYBODY: &str = "*";

/// What can be done with the policy.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show the policy in force
    Show(Place),
    /// Hosts that all others admit in clear, such as printers
    #[command(subcommand)]
    Legacy(LegacyCommand),
    /// Hosts without signed ARP that hosts of mode sarp know by the policy
    #[command(subcommand)]
    Known(KnownCommand),
    /// Hosts towards which all others are otherwise strict
    #[command(subcommand)]
    Exception(ExceptionCommand),
    /// Say how strict the hosts of a group are: observe, prefer or enforce; none takes the group
    /// out
    ///
    /// A group is names of hosts with commas between them, in which * stands for any letters. Of
    /// the groups that mean a host the one with the most exact pattern counts, and of several the
    /// strictest. A host's own file may be stricter. With --at and --for a new group goes by the mode
    /// of group '*' before, or afterwards.
    ///
    /// Examples:
    ///   ringwall site policy mode 'desk-*' prefer
    ///   ringwall site policy mode 'desk-*' enforce --at 2027-03-01T06:00:00Z
    ///   ringwall site policy mode gate,files enforce --for 1h
    #[command(verbatim_doc_comment)]
    Mode(ModeArguments),
}

/// Which site, and how it is printed.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A host by both its addresses.
#[derive(Debug, Args)]
pub(crate) struct Pair {
    /// Its hardware address
    #[arg(long, value_name = "MAC")]
    pub(super) mac: MacAddress,
    /// Its IPv4 address
    #[arg(long, value_name = "IP")]
    pub(super) ip: Ipv4Addr,
}

/// What can be done with legacy hosts.
#[derive(Debug, Subcommand)]
pub(crate) enum LegacyCommand {
    /// Have all hosts admit a host in clear; one with the same address or hardware address is
    /// replaced
    ///
    /// Example: ringwall site policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:09 --broadcast
    #[command(verbatim_doc_comment)]
    Add {
        #[command(flatten)]
        pair: Pair,
        /// It is a plain router, so its packets may have any source
        #[arg(long)]
        router: bool,
        /// Its broadcasts and multicasts are let in, too
        #[arg(long)]
        broadcast: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Take a host out, by its address or hardware address
    Remove(Removal),
}

/// Whom to take out of a list.
#[derive(Debug, clap::Args)]
pub(crate) struct Removal {
    /// IPv4 address or hardware address
    pub(super) which: String,
    #[command(flatten)]
    pub(super) place: Place,
}

/// What can be done with known hosts.
#[derive(Debug, Subcommand)]
pub(crate) enum KnownCommand {
    /// Have all hosts of mode sarp know a host; one with the same address is replaced
    Add {
        #[command(flatten)]
        pair: Pair,
        #[command(flatten)]
        place: Place,
    },
    /// Take a host out, by its address or hardware address
    Remove(Removal),
}

/// What can be done with exceptions.
#[derive(Debug, Subcommand)]
pub(crate) enum ExceptionCommand {
    /// Have all hosts treat this one by another mode
    Set {
        /// Its hardware address
        mac: MacAddress,
        /// observe, prefer or enforce
        #[arg(value_parser = parse_mode)]
        mode: Mode,
        #[command(flatten)]
        place: Place,
    },
    /// Take it out
    Remove {
        /// Its hardware address
        mac: MacAddress,
        #[command(flatten)]
        place: Place,
    },
}

/// Arguments of `site policy mode`.
#[derive(Debug, Args)]
pub(crate) struct ModeArguments {
    /// Names of hosts, with commas between them; * stands for any letters
    group: String,
    /// observe, prefer, enforce or none
    #[arg(value_parser = parse_wanted)]
    mode: Wanted,
    /// From when on, as 2027-03-01T06:00:00Z; at once without it
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    at: Option<u64>,
    /// For how long, as 30m, 1h or 2d; afterwards the mode is what it was
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time, conflicts_with = "at")]
    lasts: Option<Duration>,
    #[command(flatten)]
    pub(super) place: Place,
}

/// A mode, or that no group is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Mode(Mode),
    None,
}

impl PolicyCommand {
    pub(super) fn run_in(&self, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
        match self {
            PolicyCommand::Show(place) => show(place, surroundings),
            PolicyCommand::Legacy(command) => command.run_in(surroundings),
            PolicyCommand::Known(KnownCommand::Add { pair, place }) => {
                let known = KnownHost { ip: pair.ip, mac: pair.mac };
                change(place, surroundings, |content, directory, unix_s| {
                    check_free(directory, pair, unix_s)?;
                    content.known.retain(|one| one.ip != known.ip);
                    content.known.push(known);
                    Ok(format!("{} at {} is known to hosts of mode sarp", pair.ip, pair.mac))
                })
            }
            PolicyCommand::Known(KnownCommand::Remove(Removal { which, place })) => {
                change(place, surroundings, |content, _, _| {
                    let is_meant = |one: &KnownHost| names(which, one.mac, one.ip);
                    remove(&mut content.known, which, is_meant)
                })
            }
            PolicyCommand::Exception(ExceptionCommand::Set { mac, mode, place }) => {
                change(place, surroundings, |content, _, _| {
                    content.exceptions.retain(|one| one.mac != *mac);
                    content.exceptions.push(Exception { mac: *mac, mode: *mode });
                    Ok(format!("{mac} is treated by mode {}", mode.word()))
                })
            }
            PolicyCommand::Exception(ExceptionCommand::Remove { mac, place }) => {
                change(place, surroundings, |content, _, _| {
                    remove(&mut content.exceptions, &mac.to_string(), |one| one.mac == *mac)
                })
            }
            PolicyCommand::Mode(arguments) => arguments.run_in(surroundings),
        }
    }
}

impl LegacyCommand {
    fn run_in(&self, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
        match self {
            LegacyCommand::Add { pair, router, broadcast, place } => {
                let Pair { mac, ip } = *pair;
                let legacy = LegacyHost { mac, ip, router: *router, broadcast: *broadcast };
                change(place, surroundings, |content, directory, unix_s| {
                    check_free(directory, pair, unix_s)?;
                    let is_other = |one: &LegacyHost| one.mac != mac && one.ip != ip;
                    let replaced: Vec<LegacyHost> = content.legacy.extract_if(.., |one| !is_other(one)).collect();
                    content.legacy.push(legacy);
                    let replaced: Vec<String> =
                        replaced.iter().map(|one| format!(", in the place of {} at {}", one.ip, one.mac)).collect();
                    Ok(format!("{ip} at {mac} is admitted in clear{}", replaced.concat()))
                })
            }
            LegacyCommand::Remove(Removal { which, place }) => change(place, surroundings, |content, _, _| {
                remove(&mut content.legacy, which, |one| names(which, one.mac, one.ip))
            }),
        }
    }
}

impl ModeArguments {
    fn run_in(&self, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
        let mut patterns: Vec<String> = self.group.split(',').map(|pattern| pattern.trim().to_owned()).collect();
        patterns.sort_unstable();
        patterns.dedup();
        change(&self.place, surroundings, |content, _, unix_s| {
            let everybody = content.groups.iter().find(|group| group.patterns == [EVERYBODY]).cloned();
            let before = content.groups.extract_if(.., |group| group.patterns == patterns).next();
            match (self.mode, before) {
                (Wanted::None, None) => Err(Failure::new(format!("no group \"{}\" is in the policy", self.group))),
                (Wanted::None, Some(_)) => Ok(format!("group \"{}\" is out of the policy", self.group)),
                (Wanted::Mode(mode), before) => {
                    // A new group goes by what is said of everybody until something else is said of it.
                    let group = self.group(patterns, mode, before.or(everybody), unix_s)?;
                    let text = format!("group \"{}\": {}", self.group, group_text(&group));
                    content.groups.push(group);
                    Ok(text)
                }
            }
        })
    }

    fn group(&self, patterns: Vec<String>, mode: Mode, before: Option<Group>, unix_s: u64) -> Result<Group, Failure> {
        let now = before.map(|group| match group.next {
            Some((at, next)) if at <= unix_s => next,
            _ => group.mode,
        });
        if (self.at.is_some() || self.lasts.is_some()) && now.is_none() {
            let line =
                "this group has no mode yet that counts before or afterwards; give it one without --at and --for";
            return Err(Failure::new(line));
        }
        let now = now.unwrap_or(mode);
        let (mode, next) = match (self.at, self.lasts) {
            (Some(at), _) if at <= unix_s => return Err(Failure::new("--at: this time is over")),
            (Some(at), _) => (now, Some((at, mode))),
            (None, Some(time)) => (mode, Some((unix_s.saturating_add(time.as_secs()), now))),
            (None, None) => (mode, None),
        };
        Ok(Group { patterns, mode, next })
    }
}

/// What a table of the site comes to: `legacy` are admitted in clear, `known` are known to hosts of
/// mode `sarp`, and all observe where no group says anything yet. Who is there with both addresses
/// stays as he is, so a table may be taken in again.
pub(super) fn take_in(
    directory: &Directory,
    legacy: &[Row],
    known: &[Row],
    surroundings: &Surroundings<'_>,
) -> Result<(), Failure> {
    let unix_s = surroundings.unix_s;
    let mut content = policy(directory)?.map(|policy| policy.content().clone()).unwrap_or_default();
    let before = content.clone();
    let apply = |content: &mut Content| {
        for Pair { mac, ip } in pairs(legacy) {
            if !content.legacy.iter().any(|one| (one.mac, one.ip) == (mac, ip)) {
                check_free(directory, &Pair { mac, ip }, unix_s)?;
                content.legacy.retain(|one| one.mac != mac && one.ip != ip);
                content.legacy.push(LegacyHost { mac, ip, router: false, broadcast: false });
            }
        }
        for Pair { mac, ip } in pairs(known) {
            if !content.known.contains(&KnownHost { mac, ip }) {
                content.known.retain(|one| one.ip != ip);
                content.known.push(KnownHost { mac, ip });
            }
        }
        if content.groups.is_empty() {
            content.groups.push(Group { patterns: vec![EVERYBODY.to_owned()], mode: Mode::Observe, next: None });
        }
        Ok::<(), Failure>(())
    };
    apply(&mut content)?;
    if content == before { Ok(()) } else { change_policy(directory, unix_s, apply).map(drop) }
}

/// The cards of a table, once for each of their addresses.
fn pairs(rows: &[Row]) -> impl Iterator<Item = Pair> {
    let of_row = |row: &Row| row.mac.map(|mac| row.addresses.iter().map(move |ip| Pair { mac, ip: *ip }).collect());
    rows.iter().filter_map(of_row).flat_map(|pairs: Vec<Pair>| pairs)
}

/// Makes the next version and says what is new.
fn change(
    place: &Place,
    surroundings: &mut Surroundings<'_>,
    change: impl FnOnce(&mut Content, &Directory, u64) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let directory = surroundings.open(&place.dir)?;
    let (unix_s, mut text) = (surroundings.unix_s, String::new());
    let made = change_policy(&directory, unix_s, |content| {
        text = change(content, &directory, unix_s)?;
        check(content)
    })?;
    let file = policy_file(&directory);
    let mut value = as_json(&made);
    value["file"] = json!(file);
    let text = format!("{text}\nversion {} of the policy is signed, in {}", made.version(), file.display());
    surroundings.print(place.json, &value, &text)
}

/// What a person may have mistyped, before the limits are looked at.
fn check(content: &mut Content) -> Result<(), Failure> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-*".contains(letter);
    let patterns = content.groups.iter().flat_map(|group| &group.patterns);
    for pattern in patterns {
        if pattern.is_empty() || pattern.len() > wire::policy::PATTERN_LEN_MAX || !pattern.chars().all(is_letter) {
            let line =
                format!("\"{pattern}\" is no name of hosts; use letters, digits, dots, hyphens, underscores and *");
            return Err(Failure::new(line));
        }
    }
    Ok(())
}

/// No host of the site holds these addresses: it would be heard in clear.
fn check_free(directory: &Directory, pair: &Pair, unix_s: u64) -> Result<(), Failure> {
    if pair.mac.is_group() || pair.mac == MacAddress::default() {
        return Err(Failure::new(format!("{} is no hardware address of one host", pair.mac)));
    }
    let holds = |entry: &Entry| entry.mac == pair.mac || entry.addresses.contains(&pair.ip.into());
    let holder = directory.list()?.into_iter().find(|entry| entry.is_live(unix_s) && holds(entry));
    holder.map_or(Ok(()), |entry| {
        let name = entry.name;
        let line = format!("host \"{name}\" has a certificate for {} or {}; revoke it first", pair.mac, pair.ip);
        Err(Failure::new(line))
    })
}

pub(super) fn names(which: &str, mac: MacAddress, ip: Ipv4Addr) -> bool {
    which.parse() == Ok(ip) || which.parse::<MacAddress>().is_ok_and(|named| named == mac)
}

fn remove<T>(all: &mut Vec<T>, which: &str, is_meant: impl Fn(&T) -> bool) -> Result<String, Failure> {
    let before = all.len();
    all.retain(|one| !is_meant(one));
    if all.len() == before {
        return Err(Failure::new(format!("{which} is not there; see `ringwall site policy show`")));
    }
    Ok(format!("{which} is out of the policy"))
}

fn show(place: &Place, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let Some(policy) = surroundings.actor.record(&place.dir)?.policy()? else {
        let text = "there is no policy yet; each host goes by its own file alone";
        return surroundings.print(place.json, &Value::Null, text);
    };
    surroundings.print(place.json, &as_json(&policy), &as_text(&policy))
}

fn as_text(policy: &SitePolicy) -> String {
    let Content { version, issued_unix, legacy, known, exceptions, groups } = policy.content();
    let mut lines = vec![format!("version {version}, issued {}", utc_text(*issued_unix))];
    lines.extend(groups.iter().map(|group| format!("group {}: {}", group.patterns.join(","), group_text(group))));
    lines.extend(legacy.iter().map(|one| {
        let role = if one.router { ", router" } else { "" };
        let broadcast = if one.broadcast { ", broadcasts are let in" } else { "" };
        format!("legacy {} at {}{role}{broadcast}", one.ip, one.mac)
    }));
    lines.extend(known.iter().map(|one| format!("known {} at {}", one.ip, one.mac)));
    lines.extend(exceptions.iter().map(|one| format!("exception {}: {}", one.mac, one.mode.word())));
    lines.join("\n")
}

fn as_json(policy: &SitePolicy) -> Value {
    let Content { version, issued_unix, legacy, known, exceptions, groups } = policy.content();
    let group = |group: &Group| {
        let next = group.next.map(|(at, mode)| json!({"at": utc_text(at), "mode": mode.word()}));
        json!({"patterns": group.patterns, "mode": group.mode.word(), "next": next})
    };
    let legacy_host = |one: &LegacyHost| json!({"ip": one.ip, "mac": one.mac.to_string(), "router": one.router, "broadcast": one.broadcast});
    json!({
        "version": version,
        "issued": utc_text(*issued_unix),
        "groups": groups.iter().map(group).collect::<Vec<_>>(),
        "legacy": legacy.iter().map(legacy_host).collect::<Vec<_>>(),
        "known": known.iter().map(|one| json!({"ip": one.ip, "mac": one.mac.to_string()})).collect::<Vec<_>>(),
        "exceptions": exceptions.iter().map(|one| json!({"mac": one.mac.to_string(), "mode": one.mode.word()}))
            .collect::<Vec<_>>(),
    })
}

fn group_text(group: &Group) -> String {
    let next = group.next.map(|(at, mode)| format!(", {} from {} on", mode.word(), utc_text(at)));
    format!("{}{}", group.mode.word(), next.unwrap_or_default())
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    Mode::from_word(text).ok_or_else(|| "a mode is 'observe', 'prefer' or 'enforce'".to_owned())
}

fn parse_wanted(text: &str) -> Result<Wanted, String> {
    if text == "none" { Ok(Wanted::None) } else { parse_mode(text).map(Wanted::Mode) }
}

fn parse_moment(text: &str) -> Result<u64, String> {
    unix_of_utc(text).ok_or_else(|| "write it in UTC, as 2027-03-01T06:00:00Z".to_owned())
}
