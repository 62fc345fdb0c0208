//! Checks of one interface.

use system::takeover::Way;

use super::Finding;
use super::facts::{Daemon, Found, Guarded, Identity, Machine};
use crate::modes::file::Config;
use crate::modes::part::Account;
use crate::modes::{ConfigFile, of};
use crate::protocol::Peer;
use crate::verdict::{self, Verdict};

const DAY_S: u64 = 86_400;
/// How long before its end a certificate is worth a warning.
const CERTIFICATE_WARN_S: u64 = 30 * DAY_S;
const AUTHORITY_WARN_S: u64 = 180 * DAY_S;
const AUTHORITY_CRITICAL_S: u64 = 30 * DAY_S;
/// The smallest MTU on which a kernel speaks IPv6.
const MTU_MIN: u32 = 1280;
/// Plain hosts that are named in one line.
const NAMED_MAX: usize = 3;
const FREE_CRITICAL: u64 = 1 << 20;
const FREE_WARN: u64 = 50 << 20;

const AS_ROOT: &str = "ask as root";

/// The configuration, where it is one of a host.
fn host(guarded: &Guarded) -> Option<&Config> {
    match &guarded.config {
        Ok(ConfigFile::Host(config)) => Some(config),
        _ => None,
    }
}

/// In which way the card is, or will be, kept from the stack.
fn way(guarded: &Guarded) -> Option<&str> {
    match (&guarded.daemon, host(guarded)) {
        (Daemon::Host(status, _), _) => Some(&status.takeover.way),
        (_, Some(config)) => Some(config.way().0.word()),
        _ => None,
    }
}

pub(super) fn configuration(_: &Machine, guarded: &Guarded) -> Finding {
    match &guarded.config {
        Err(why) => Finding::critical(why.clone(), "see ringwall.toml(5)"),
        Ok(config) => match config.warnings().as_slice() {
            [] => Finding::good(format!("{} has no mistake", guarded.file.display())),
            [first, rest @ ..] => {
                let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
                Finding::warning(format!("{first}{more}"), "see `ringwall config check`")
            }
        },
    }
}

pub(super) fn card(_: &Machine, guarded: &Guarded) -> Finding {
    let name = &guarded.name;
    let Some(card) = &guarded.card else {
        let is_away = matches!(&guarded.daemon, Daemon::Gate(_));
        return match is_away {
            true => Finding::good("the gateway holds it"),
            false => Finding::critical(format!("there is no interface {name}"), "see `ip link`, and host.interface"),
        };
    };
    match (&card.master, card.has_carrier) {
        (Some(master), _) => Finding::warning(
            format!("{name} belongs to {master}, whose traffic does not pass Ringwall as it is meant to"),
            format!("guard {master}, or take it out of there"),
        ),
        (None, false) => Finding::warning(format!("{name} has no carrier"), "look at cable and switch"),
        (None, true) => Finding::good(format!("{name} is there and has a carrier")),
    }
}

pub(super) fn xdp(_: &Machine, guarded: &Guarded) -> Finding {
    let Some(card) = &guarded.card else { return Finding::good("no card to look at") };
    let Some(number) = card.xdp else { return Finding::good("no XDP program is at the card") };
    let ours = Finding::good(format!("the XDP program {number} at the card is Ringwall's guard"));
    let foreign = || {
        Finding::warning(
            format!("an XDP program of somebody else (number {number}) is at the card and sees frames first"),
            format!(
                "whose it is: `bpftool prog show id {number}`; take it off: `ip link set {} xdp off`",
                guarded.name
            ),
        )
    };
    match &guarded.daemon {
        Daemon::Host(status, _) if status.takeover.way == Way::InPlace.word() => ours,
        Daemon::Host(..) | Daemon::Gate(_) => foreign(),
        // What stays while no daemon runs keeps the card closed.
        Daemon::Absent { is_taken: Ok(true) } if way(guarded) == Some(Way::InPlace.word()) => ours,
        Daemon::Absent { is_taken: Ok(_) } => foreign(),
        Daemon::Absent { is_taken: Err(_) } | Daemon::Unasked(_) => {
            Finding::unknown(format!("an XDP program (number {number}) is at the card; whose is not known"), AS_ROOT)
        }
    }
}

pub(super) fn mtu(_: &Machine, guarded: &Guarded) -> Finding {
    let Some(card) = &guarded.card else { return Finding::good("no card to look at") };
    let found = card.mtu;
    if found < MTU_MIN {
        return Finding::warning(format!("the MTU is {found}, too small for IPv6"), format!("use {MTU_MIN} or more"));
    }
    let Daemon::Host(status, _) = &guarded.daemon else { return Finding::good(format!("the MTU is {found}")) };
    let takeover = &status.takeover;
    let is_in_place = takeover.way == Way::InPlace.word();
    let fits = if is_in_place { takeover.wire_mtu } else { takeover.inner_mtu };
    if found > fits {
        return Finding::critical(
            format!("the MTU is {found}, and {fits} fit: what is longer is lost silently"),
            format!("ip link set {} mtu {fits}, and take the MTU out of the network manager's file", guarded.name),
        );
    }
    Finding::good(format!("the MTU is {found} of {} on the wire", takeover.wire_mtu))
}

pub(super) fn network_manager(machine: &Machine, guarded: &Guarded) -> Finding {
    let managers = machine.managers;
    let is_tap = host(guarded).is_some_and(|config| of(config.host.mode).needs(config).kept.is_none());
    let is_beside = way(guarded) == Some(Way::InPlace.word());
    if managers.network_manager && is_tap && !is_beside {
        return Finding::warning(
            "NetworkManager does not bring up a profile on the inner device: after its next start there is no address",
            "use host.takeover = \"in-place\", or have systemd-networkd or ifupdown manage this interface",
        );
    }
    if managers.network_manager && is_beside && !managers.has_udev_rule {
        return Finding::warning("NetworkManager may manage our TAP", "install 70-ringwall.rules (`make install`)");
    }
    if managers.networkd && is_beside && !managers.has_networkd_file {
        return Finding::warning("networkd may manage our TAP", "install 10-ringwall.network (`make install`)");
    }
    let running = [(managers.network_manager, "NetworkManager"), (managers.networkd, "systemd-networkd")];
    let running: Vec<_> = running.iter().filter(|(runs, _)| *runs).map(|(_, name)| *name).collect();
    match running.is_empty() {
        true => Finding::good("neither NetworkManager nor systemd-networkd runs"),
        false => Finding::good(format!("{} and this interface go together", running.join(", "))),
    }
}

/// The identity, or what is said instead.
fn read(guarded: &Guarded) -> Result<&Identity, Finding> {
    match &guarded.identity {
        None => Err(Finding::good("none is needed")),
        Some(Err(why)) => {
            Err(Finding::unknown(why.clone(), "ask as root, or enrol this host (`ringwall host enroll`)"))
        }
        Some(Ok(identity)) => Ok(identity),
    }
}

/// Critical below the first of `limits`, a warning below the second.
fn by_amount(amount: u64, limits: [u64; 2], what: String, remedy: &str) -> Finding {
    match limits {
        [critical, _] if amount < critical => Finding::critical(what, remedy),
        [_, warning] if amount < warning => Finding::warning(what, remedy),
        _ => Finding::good(what),
    }
}

fn days(seconds: u64) -> String {
    match seconds / DAY_S {
        0 => format!("{} h", seconds / 3600),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

pub(super) fn identity(machine: &Machine, guarded: &Guarded) -> Finding {
    let identity = match read(guarded) {
        Ok(identity) => identity,
        Err(finding) => return finding,
    };
    let (now, from, until) = (machine.unix_s, identity.not_before_unix, identity.not_after_unix);
    if now < from {
        let what = format!("this host's certificate begins in {}", days(from - now));
        return Finding::warning(what, "look at the clock, here and at the authority");
    }
    let Some(left) = until.checked_sub(now) else {
        let what = format!("this host's certificate is over since {}", days(now - until));
        return Finding::critical(what, "have the authority issue a new one (`ringwall site issue`)");
    };
    let what = format!("this host's certificate has {} left", days(left));
    let warn = CERTIFICATE_WARN_S.min(until.saturating_sub(from) / 3);
    match left {
        0..DAY_S => Finding::critical(what, "renew it now: `ringwall host renew`"),
        _ if left < warn => Finding::warning(what, "renew it: `ringwall host renew`, or enable ringwall-renew@.timer"),
        _ => Finding::good(what),
    }
}

pub(super) fn authority(machine: &Machine, guarded: &Guarded) -> Finding {
    let identity = match read(guarded) {
        Ok(identity) => identity,
        Err(finding) => return finding,
    };
    let remedy =
        "every certificate of the site ends with it: replace it (`ringwall site renew-authority`), and renew hosts";
    let Some(left) = identity.authority_not_after_unix.checked_sub(machine.unix_s) else {
        return Finding::critical("the certificate of the site's authority is over", remedy);
    };
    let what = format!("the certificate of the site's authority has {} left", days(left));
    by_amount(left, [AUTHORITY_CRITICAL_S, AUTHORITY_WARN_S], what, remedy)
}

pub(super) fn site_key(machine: &Machine, guarded: &Guarded) -> Finding {
    let identity = match read(guarded) {
        Ok(identity) => identity,
        Err(finding) => return finding,
    };
    let remedy = "fetch the next one with a new certificate: `ringwall host renew`";
    match identity.site_key_until_unix {
        identity::shared_keys::NO_END => {
            Finding::good(format!("{} site key(s), the last without an end", identity.site_keys))
        }
        until if until < machine.unix_s => {
            Finding::critical("the site has another key, and this host does not have it", remedy)
        }
        until => Finding::warning(format!("the site key ends in {}", days(until - machine.unix_s)), remedy),
    }
}

pub(super) fn unit(machine: &Machine, guarded: &Guarded) -> Finding {
    let name = &guarded.name;
    match (&guarded.units[..], machine.has_systemd) {
        ([], false) => {
            Finding::unknown("systemd does not run here", "see to it that the daemon starts with the machine")
        }
        ([], true) => {
            let what = format!("no unit is enabled for {name}: after the next boot it is not guarded");
            Finding::warning(what, format!("systemctl enable ringwall@{name}"))
        }
        (units, _) => Finding::good(format!("{} is enabled", units.join(", "))),
    }
}

pub(super) fn daemon(_: &Machine, guarded: &Guarded) -> Finding {
    let name = &guarded.name;
    let of = |verdict: Verdict| match verdict.level {
        verdict::Level::Good => Finding::good("it runs, and all is well"),
        level => Finding { level, what: verdict.what, remedy: verdict.remedy },
    };
    match &guarded.daemon {
        Daemon::Host(status, _) => of(status.verdict()),
        Daemon::Gate(status) => of(status.verdict()),
        Daemon::Unasked(why) => Finding::unknown(why.clone(), AS_ROOT),
        Daemon::Absent { .. } if guarded.card.is_none() => Finding::warning(
            format!("none runs, since {name} is not there"),
            format!("plug it in: ringwall@{name} starts by itself if it is enabled"),
        ),
        Daemon::Absent { is_taken: Ok(true) } => Finding::critical(
            format!("none runs, and {name} is closed"),
            format!("systemctl start ringwall@{name}; or give the interface back: `ringwall host release`"),
        ),
        Daemon::Absent { is_taken: Ok(false) } => {
            Finding::warning(format!("none runs: {name} is not guarded"), format!("systemctl start ringwall@{name}"))
        }
        Daemon::Absent { is_taken: Err(why) } => Finding::unknown(format!("none answers: {why}"), AS_ROOT),
    }
}

/// One that speaks in clear, and what of it mode `enforce` drops most.
fn plain(peer: &Peer) -> String {
    let most = peer.in_clear.would_drop.iter().max_by_key(|(_, count)| **count);
    most.map_or_else(|| peer.mac.clone(), |(reason, count)| format!("{} ({count} {reason})", peer.mac))
}

pub(super) fn peers(_: &Machine, guarded: &Guarded) -> Finding {
    let Daemon::Host(_, peers) = &guarded.daemon else {
        return match &guarded.daemon {
            Daemon::Gate(_) => Finding::good("a gateway has none"),
            _ => Finding::unknown("no daemon told of its peers", "start it, and ask as root"),
        };
    };
    let in_clear: Vec<&Peer> = peers.iter().filter(|peer| peer.state == "plain").collect();
    let named: Vec<String> = in_clear.iter().take(NAMED_MAX).map(|peer| plain(peer)).collect();
    match in_clear.len() {
        0 => Finding::good("nobody speaks in clear"),
        count => Finding::warning(
            format!("{count} in clear, and what enforce drops of them: {}", named.join(", ")),
            "enrol them, or list those that cannot be ([[cll.legacy]], cll.exception); `ringwall peers` has all",
        ),
    }
}

pub(super) fn disk(_: &Machine, guarded: &Guarded) -> Finding {
    let free: &Found<u64> = &guarded.free_bytes;
    match free {
        Err(why) => Finding::unknown(why.clone(), AS_ROOT),
        Ok(bytes) => {
            let what = format!("{} MiB are free for what the daemon keeps", bytes >> 20);
            let remedy = "make room where host.state_dir is";
            by_amount(*bytes, [FREE_CRITICAL, FREE_WARN], what, remedy)
        }
    }
}
