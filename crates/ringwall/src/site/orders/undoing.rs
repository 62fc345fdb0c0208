//! What an operator below manager may not order, since it would undo what a manager has done: a host
//! that was put out comes back, a server's name goes to another key, a router is believed no more.
//! The words of an order do not say so; what the site has does.

use std::net::{IpAddr, Ipv4Addr};

use authority::directory::{Directory, is_revoked, number_text, policy};
use authority::repository::Standing;
use authority::{Entry, Error};
use identity::certificate::Role;
use identity::policy::LegacyHost;
use wire::MacAddress;

use super::super::SiteCommand;
use super::super::joining::ApproveArguments;
use super::super::policy::{KnownCommand, LegacyCommand, Pair, PolicyCommand, names};

/// Whether a manager has decided what `command` would change.
pub(super) fn undoes(site: &Directory, command: &SiteCommand, unix_s: u64) -> Result<bool, Error> {
    match command {
        // A token may be preapproved, so this is the last look at who gets it.
        SiteCommand::Token(one) => is_any_known(site, one.hosts()),
        SiteCommand::Approve(ApproveArguments { which: Some(which), .. }) => is_more(site, which, unix_s),
        // A token that a manager alone could make is no one else's to end.
        SiteCommand::Refuse(one) => is_more(site, &one.which, unix_s),
        SiteCommand::Policy(PolicyCommand::Legacy(LegacyCommand::Add { pair: Pair { mac, ip }, .. })) => {
            Ok(has_router(site, |one| one.mac == *mac || one.ip == *ip)? || is_out(site, *mac, *ip, unix_s)?)
        }
        // Otherwise a router would be replaced in two steps.
        SiteCommand::Policy(PolicyCommand::Legacy(LegacyCommand::Remove(removal))) => {
            has_router(site, |one| names(&removal.which, one.mac, one.ip))
        }
        SiteCommand::Policy(PolicyCommand::Known(KnownCommand::Add { pair: Pair { mac, ip }, .. })) => {
            is_out(site, *mac, *ip, unix_s)
        }
        _ => Ok(false),
    }
}

/// Whether the site has, or has had, a host of one of these names.
fn is_any_known<'a>(site: &Directory, hosts: impl Iterator<Item = &'a String>) -> Result<bool, Error> {
    let (store, issued) = (site.repository()?, site.list()?);
    for host in hosts {
        if issued.iter().any(|entry| entry.name == *host) || store.by_name(host)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the token is for more than a new host.
fn is_more(site: &Directory, which: &str, unix_s: u64) -> Result<bool, Error> {
    let open = site.applications(unix_s)?.into_iter().map(|one| one.enrolment);
    let meant: Vec<_> = open.filter(|one| one.name == which || number_text(one.number) == which).collect();
    Ok(meant.iter().any(|one| one.role != Role::Host) || is_any_known(site, meant.iter().map(|one| &one.name))?)
}

fn has_router(site: &Directory, is_meant: impl Fn(&LegacyHost) -> bool) -> Result<bool, Error> {
    let policy = policy(site)?;
    Ok(policy.is_some_and(|policy| policy.content().legacy.iter().any(|one| one.router && is_meant(one))))
}

/// Whether one of these addresses is a revoked host's. Lists of what was taken back leave out what is
/// over, and the repository has no host whose key S-ARP does not know, so both are asked.
fn is_out(site: &Directory, mac: MacAddress, ip: Ipv4Addr, unix_s: u64) -> Result<bool, Error> {
    let kept = site.repository()?.list()?;
    let mut out = kept.iter().filter(|host| host.standing == Standing::Revoked);
    if out.any(|host| host.mac == Some(mac) || host.addresses.contains(&ip)) {
        return Ok(true);
    }
    let issued = site.list()?;
    let has_it = |entry: &&Entry| entry.mac == mac || entry.addresses.contains(&IpAddr::V4(ip));
    let mut names = issued.iter().filter(has_it).map(|entry| entry.name.as_str());
    Ok(names.any(|name| is_revoked(&issued, name, unix_s)))
}
