//! What is looked at before anything changes. What is wrong is told with one remedy each.

use std::fs;
use std::path::Path;

use identity::token::Token;
use system::takeover::{self, state};

use super::account::{Account, Outcome};
use super::{Joining, described};
use crate::failure::Failure;
use crate::modes::cll::config::MigrationName;
use crate::modes::file::Config;

/// The oldest kernel that keeps a card closed in both directions: major and minor version.
const KERNEL_MIN: (u32, u32) = (5, 16);
/// Where programs of an administrator are, beside those of the search path.
const SYSTEM_PATHS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// What a package of ours tells managers of networks, so that they leave our devices alone.
const MANAGER_RULES: [&str; 3] = [
    "/usr/lib/udev/rules.d/70-ringwall.rules",
    "/lib/udev/rules.d/70-ringwall.rules",
    "/etc/udev/rules.d/70-ringwall.rules",
];
/// Managers of networks, each with a place that is there while it runs.
const MANAGERS: [(&str, &str); 4] = [
    ("NetworkManager", "/run/NetworkManager"),
    ("systemd-networkd", "/run/systemd/netif/links"),
    ("ifupdown", "/run/network/ifstate"),
    ("dhcpcd", "/run/dhcpcd"),
];

/// Looks at everything, tells what is wrong, and how many things are.
pub(super) fn look(joining: &Joining<'_>, token: Option<&Token>, account: &mut Account) -> Result<usize, Failure> {
    let mut found: Vec<(String, String)> = Vec::new();
    found.extend(of_the_system());
    found.extend(of_the_card(joining)?);
    found.extend(of_the_identity(joining, token));
    found.extend(of_the_configuration(joining));
    for (what, remedy) in &found {
        account.wrong(what, remedy);
    }
    if found.is_empty() {
        account.step("look", Outcome::Good, &format!("{} can be guarded", joining.interface));
    }
    for note in notes() {
        account.step("look", Outcome::Note, &note);
    }
    Ok(found.len())
}

fn wrong(what: impl Into<String>, remedy: impl Into<String>) -> Option<(String, String)> {
    Some((what.into(), remedy.into()))
}

fn of_the_system() -> Vec<(String, String)> {
    let root = (!is_root()).then(|| wrong("this command needs root", "give it with sudo")).flatten();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = match version(&release) {
        Some(found) if found < KERNEL_MIN => wrong(
            format!("the kernel is {}, and {}.{} is needed", release.trim(), KERNEL_MIN.0, KERNEL_MIN.1),
            "boot a newer one",
        ),
        _ => None,
    };
    let nft = (!is_installed("nft")).then(|| wrong("the program nft is missing", "install nftables")).flatten();
    let tun = !Path::new("/dev/net/tun").exists();
    let tun = tun.then(|| wrong("/dev/net/tun is missing", "load it: modprobe tun")).flatten();
    [root, kernel, nft, tun].into_iter().flatten().collect()
}

/// Whether the effective user is root, by what the kernel says of this process.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_path = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    of_path || SYSTEM_PATHS.iter().any(|directory| Path::new(directory).join(program).is_file())
}

fn of_the_card(joining: &Joining<'_>) -> Result<Option<(String, String)>, Failure> {
    let Some(card) = takeover::card(&joining.interface)? else { return Ok(None) };
    let remedy = format!("switch it on: ip link set {} up", joining.interface);
    Ok((!card.is_up).then(|| wrong(format!("{} is switched off", joining.interface), remedy)).flatten())
}

fn of_the_identity(joining: &Joining<'_>, token: Option<&Token>) -> Option<(String, String)> {
    let arguments = joining.arguments;
    if arguments.force {
        return (token.is_none() && !arguments.identity.exists())
            .then(|| wrong("there is no identity and no token", "ask the manager for a token"))
            .flatten();
    }
    match (joining.installed(), token) {
        (Err(failure), _) => wrong(failure.to_string(), "see above"),
        (Ok(None), None) => wrong("there is no identity and no token", "ask the manager for one: ringwall site token"),
        (Ok(None), Some(_)) => of_the_trial(joining),
        (Ok(Some(identity)), _) if joining.serves(&identity, token) => None,
        (Ok(Some(identity)), _) => wrong(
            format!("another identity is here: {}", described(&identity, &arguments.identity)),
            "replace it with --force, or name another file with --identity",
        ),
    }
}

/// Nobody can enrol where a daemon speaks for the card.
fn of_the_trial(joining: &Joining<'_>) -> Option<(String, String)> {
    let taken = state::load(&joining.arguments.places.state_dir, &joining.interface).ok().flatten();
    taken.and_then(|_| {
        wrong(format!("{} is guarded, without an identity", joining.interface), "give it back: ringwall leave")
    })
}

fn of_the_configuration(joining: &Joining<'_>) -> Option<(String, String)> {
    let (file, arguments) = (&joining.config, joining.arguments);
    if arguments.force || !file.exists() {
        return None;
    }
    let other = |what: String| {
        wrong(format!("{}: {what}", file.display()), "replace it with --force, or name another with --config")
    };
    match Config::load(file) {
        Err(failure) => wrong(failure.to_string(), "put it right, or replace it with --force"),
        Ok(config) if config.host.interface != joining.interface => {
            other(format!("it is for the interface {}", config.host.interface))
        }
        Ok(config) if config.host.identity != arguments.identity => {
            other(format!("it names the identity {}", config.host.identity.display()))
        }
        Ok(config) if config.host.mode != arguments.mode => other(format!("it says mode {}", config.host.mode.word())),
        Ok(config) if arguments.migration.as_deref().is_some_and(|word| word != migration(&config)) => {
            let reload = format!("change it there, then `ringwall host reload --config {}`", file.display());
            wrong(format!("{}: it says migration {}", file.display(), migration(&config)), reload)
        }
        Ok(_) => None,
    }
}

fn migration(config: &Config) -> &'static str {
    match config.cll.migration {
        MigrationName::Observe => "observe",
        MigrationName::Prefer => "prefer",
        MigrationName::Enforce => "enforce",
    }
}

/// What is no hindrance, and good to know.
fn notes() -> Vec<String> {
    let running = |(name, place): &(&'static str, &str)| Path::new(place).exists().then_some(*name);
    let managers: Vec<&str> = MANAGERS.iter().filter_map(running).collect();
    if managers.is_empty() {
        return Vec::new();
    }
    let names = managers.join(", ");
    if MANAGER_RULES.iter().any(|file| Path::new(file).exists()) {
        return vec![format!("{names} goes on managing addresses and routes")];
    }
    vec![format!(
        "{names} runs, and nothing tells it to leave our devices alone; install the package, or `make install`"
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_apart_by_two_numbers() {
        assert_eq!(version("6.1.0-28-amd64\n"), Some((6, 1)));
        assert_eq!(version("5.16.0"), Some(KERNEL_MIN));
        assert!(version("5.4.0-200-generic").expect("a version") < KERNEL_MIN);
        assert_eq!(version("none"), None);
    }
}
