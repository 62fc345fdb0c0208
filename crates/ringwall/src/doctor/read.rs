//! Finding out what is there. Nothing is changed, and what cannot be seen is said to be unknown.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bump::ClockTrust;
use identity::HostIdentity;
use system::clock::Clock;
use system::sandbox::User;
use system::takeover::state;

use super::facts::{Card, Daemon, Found, Guarded, Identity, Machine, Managers};
use crate::client;
use crate::config::DIRECTORY;
use crate::modes::ConfigFile;
use crate::protocol::{Answer, Ask};

/// Where units are enabled.
const UNITS: &str = "/etc/systemd/system";
/// Where systemd and udev look for files of packages.
const PACKAGED: [&str; 3] = ["/usr/lib", "/lib", "/usr/local/lib"];

fn text(file: &str) -> Found<String> {
    fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
}

pub(super) fn machine() -> Machine {
    let now = Clock::new().now();
    let optmem = text("/proc/sys/net/core/optmem_max");
    Machine {
        kernel: text("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        has_tun: Path::new("/dev/net/tun").exists(),
        security_modules: text("/sys/kernel/security/lsm"),
        missing_tools: ["nft", "ip", "tc"].into_iter().filter(|tool| !is_installed(tool)).collect(),
        optmem_max: optmem.and_then(|text| text.trim().parse().map_err(|_| format!("\"{text}\" is no number"))),
        account: User::find().map(|user| user.is_named()).map_err(|error| error.to_string()),
        clock: now.wall.map_or(ClockTrust::Wrong, |wall| wall.trust),
        unix_s: now.wall.map_or(0, |wall| wall.unix_ms / 1000),
        managers: managers(),
        has_systemd: Path::new("/run/systemd/system").is_dir(),
    }
}

fn is_installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|directory| directory.join(tool).is_file())
}

fn managers() -> Managers {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names: Vec<String> =
        processes.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok()).collect();
    // The kernel keeps 15 letters of a name.
    let runs = |name: &str| names.iter().any(|found| found.trim() == name);
    let is_there = |file: &str| PACKAGED.iter().any(|directory| Path::new(directory).join(file).exists());
    Managers {
        network_manager: runs("NetworkManager"),
        networkd: runs("systemd-network"),
        has_udev_rule: is_there("udev/rules.d/70-ringwall.rules"),
        has_networkd_file: is_there("systemd/network/10-ringwall.network"),
    }
}

/// The interfaces of `file`, or of all files where files are usual.
pub(super) fn guarded(file: Option<&Path>) -> Vec<Guarded> {
    if let Some(file) = file {
        return vec![one(file)];
    }
    let entries = fs::read_dir(DIRECTORY).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort_unstable();
    let mut found: Vec<Guarded> = files.iter().map(|file| one(file)).collect();
    // A link beside the file is the same interface.
    found.dedup_by(|one, other| fs::canonicalize(&one.file).ok() == fs::canonicalize(&other.file).ok());
    found
}

fn one(file: &Path) -> Guarded {
    let config = ConfigFile::load(file).map_err(|failure| failure.to_string());
    let (name, state_dir) = match &config {
        Ok(ConfigFile::Host(config)) => (config.host.interface.clone(), config.host.state_dir.clone()),
        Ok(ConfigFile::Gate(config)) => {
            (config.gate.trusted.clone().unwrap_or_default(), config.gate.state_dir.clone())
        }
        Err(_) => (file.file_stem().unwrap_or_default().to_string_lossy().into_owned(), PathBuf::new()),
    };
    let identity = match &config {
        Ok(ConfigFile::Host(config)) if config.host.mode.has_identity() => Some(read_identity(&config.host.identity)),
        _ => None,
    };
    Guarded {
        card: card(&name),
        identity,
        units: units(&name),
        daemon: daemon(file, &config, &name, &state_dir),
        free_bytes: free_bytes(&state_dir),
        name,
        file: file.to_owned(),
        config,
    }
}

/// As `ip` has it: /sys may be that of another network namespace than this process's.
fn card(name: &str) -> Option<Card> {
    let mut ip = Command::new("ip");
    ip.args(["-json", "-details", "link", "show", "dev", name]).stdin(Stdio::null());
    let output = ip.output().ok().filter(|output| output.status.success() && !name.is_empty())?;
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(described(&told[0]))
}

fn described(link: &serde_json::Value) -> Card {
    let flags = link["flags"].as_array().into_iter().flatten();
    let xdp = &link["xdp"];
    Card {
        has_carrier: flags.clone().any(|flag| flag == "LOWER_UP"),
        mtu: link["mtu"].as_u64().and_then(|mtu| u32::try_from(mtu).ok()).unwrap_or(0),
        master: link["master"].as_str().map(str::to_owned),
        xdp: xdp["prog"]["id"].as_u64().or_else(|| xdp["attached"][0]["prog"]["id"].as_u64()),
    }
}

fn read_identity(file: &Path) -> Found<Identity> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let identity = HostIdentity::from_pem(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let certificate = identity.certificate();
    Ok(Identity {
        not_before_unix: certificate.not_before_unix(),
        not_after_unix: certificate.not_after_unix(),
        authority_not_after_unix: identity.anchor().not_after_unix(),
        site_key_until_unix: identity.site_keys().iter().map(|(term, _)| term.until_unix_s).max().unwrap_or(0),
        site_keys: identity.site_keys().iter().count(),
    })
}

/// Units of ours that somebody enabled for the interface.
fn units(name: &str) -> Vec<String> {
    let wants = fs::read_dir(UNITS).into_iter().flatten().flatten().map(|entry| entry.path());
    let wants = wants.filter(|path| path.extension().is_some_and(|end| end == "wants" || end == "requires"));
    let names = ["ringwall", "ringwall-akd", "ringwall-gate"].map(|unit| format!("{unit}@{name}.service"));
    let enabled = |directory: PathBuf| {
        let names = names.clone();
        names.into_iter().filter(move |unit| directory.join(unit).symlink_metadata().is_ok())
    };
    wants.flat_map(enabled).collect()
}

fn daemon(file: &Path, config: &Found<ConfigFile>, name: &str, state_dir: &Path) -> Daemon {
    let socket = match config.as_ref().map(|config| config.socket(file)) {
        Ok(Ok(socket)) => socket,
        _ => return Daemon::Unasked("without a configuration nobody knows where it listens".to_owned()),
    };
    match UnixStream::connect(&socket) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            let is_taken = state::load(state_dir, name).map(|state| state.is_some());
            return Daemon::Absent { is_taken: is_taken.map_err(|error| error.to_string()) };
        }
        Err(error) => return Daemon::Unasked(format!("{}: {error}", socket.display())),
    }
    match client::ask(&socket, &Ask::Status) {
        Ok(Answer::Status(status)) => match client::ask(&socket, &Ask::Peers) {
            Ok(Answer::Peers { peers }) => Daemon::Host(status, peers),
            _ => Daemon::Host(status, Vec::new()),
        },
        Ok(Answer::Gate(status)) => Daemon::Gate(status),
        Ok(_) => Daemon::Unasked("it is of another version".to_owned()),
        Err(failure) => Daemon::Unasked(failure.to_string()),
    }
}

/// What is free where `directory` is, or will be.
fn free_bytes(directory: &Path) -> Found<u64> {
    let there = directory.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    system::free_bytes(there).map_err(|error| format!("{}: {error}", there.display()))
}
