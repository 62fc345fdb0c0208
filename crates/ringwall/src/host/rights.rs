//! What the unit of systemd lets a daemon do, and what its configuration asks for (record 0106).
//!
//! The units of hosts cannot make or enter a namespace, and no unit of a daemon speaks IP. A
//! generator of systemd, which runs at boot and with each `daemon-reload`, gives that to the units
//! that need it, and says how long a boot waits for a card. A daemon that finds out at its start
//! that it needs a namespace ends with a status of its own, for which systemd runs the generator
//! again (`ringwall-rights@`).

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use authority::directory::{repository_access, token_of};
use authority::files::{self, Overwrite, Secrecy};
use system::takeover::{Way, state};

use crate::config::{LocalAddress, Records, SyslogAddress};
use crate::failure::Failure;
use crate::modes::any_file::ConfigFile;
use crate::modes::file::Config;
use crate::modes::gateway::config::GateConfig;
use crate::modes::sarp::config::Keeper;

/// Set by a unit that cannot make or enter a namespace.
const CONFINED: &str = "RINGWALL_CONFINED";
/// How a daemon ends that needs what its unit forbids (`EX_NOPERM`, sysexits.h). The unit names it.
pub(crate) const MISSING: u8 = 77;
/// Units of hosts, and of gateways.
const HOSTS: &[&str] = &["ringwall", "ringwall-akd"];
const GATEWAYS: &[&str] = &["ringwall-gate"];
// Behind `in-place.conf`, which administrators of the version before have copied there.
const DROP_IN: &str = "zz-ringwall-namespace.conf";
/// Lets a unit speak IP with the addresses of its configuration.
const PEERS: &str = "zz-ringwall-peers.conf";
/// Lets the signer reach a token in files, and others of the site neither that nor its PIN.
const TOKEN: &str = "zz-ringwall-token.conf";
const KEYLESS: &[&str] =
    &["ringwall-site.service.d", "ringwall-report@.service.d", "ringwall-akd@.service.d", "ringwall-renew@.service.d"];
/// The unit of the site's signer, and the folder of the site beside the configurations.
const SIGNER: &str = "ringwall-signer.service.d";
const SITE: &str = "site";
/// Bounds how long a boot waits for a card that is not plugged in, where systemd has 90 s. One that
/// comes later is closed and guarded by a rule of udev (record 0120).
const WAITING: (&str, &str) = ("ringwall.conf", "[Unit]\nJobRunningTimeoutSec=15s\n");

/// Whether a daemon of this configuration needs a namespace: it has one since an earlier start, or
/// would make one.
fn needs_namespace(config: &Config) -> Result<bool, Failure> {
    let host = &config.host;
    if let Some(state) = state::load(&host.state_dir, &host.interface)? {
        return Ok(state.way != Way::InPlace);
    }
    // Early in the boot that directory may not be mounted yet, and a start that fails is seconds late.
    let may_go_over = host.takeover.is_open() && (note(config).exists() || !host.state_dir.exists());
    Ok(config.way().0 != Way::InPlace || may_go_over)
}

/// Says to the generator that this card cannot stay in place. Only root writes there, before it
/// gives its privileges up.
fn note(config: &Config) -> PathBuf {
    config.host.state_dir.join(format!("{}.not-in-place", config.host.interface))
}

fn is_confined() -> bool {
    std::env::var_os(CONFINED).is_some()
}

fn missing(config: &Config, why: &str) -> Failure {
    let interface = &config.host.interface;
    let line = format!("{interface}: {why}, and this unit must not make or enter one; ringwall-rights@ allows it");
    Failure::new(line).with_status(MISSING)
}

/// Ends a start that cannot succeed in this unit, before anything is touched.
pub(super) fn check(config: &Config) -> Result<(), Failure> {
    match is_confined() && needs_namespace(config)? {
        true => Err(missing(config, "it is taken over by namespace")),
        false => Ok(()),
    }
}

/// The card cannot stay in place. Where this unit has no other way, the next start is to have one.
pub(super) fn go_over(config: &Config, reason: &str) -> Result<(), Failure> {
    if !is_confined() {
        return Ok(());
    }
    write(config, reason)?;
    Err(missing(config, "another way than in place takes a namespace"))
}

/// A card that an earlier start has taken over by namespace, as "auto" lets it: the next boot is to
/// have the rights for that at once.
pub(super) fn stays_over(config: &Config) -> Result<(), Failure> {
    match config.host.takeover.is_open() && config.way().0 == Way::InPlace && !note(config).exists() {
        true => write(config, "an earlier start has taken it over by namespace"),
        false => Ok(()),
    }
}

fn write(config: &Config, reason: &str) -> Result<(), Failure> {
    files::write(&note(config), &format!("{reason}\n"), Secrecy::Secret, Overwrite::Force).map_err(Failure::new)
}

/// The card stays in place, or is given back: the next start tries that way first.
pub(super) fn forget(config: &Config) -> Result<(), Failure> {
    let note = note(config);
    match fs::remove_file(&note) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::file(&note, error, "remove it")),
        _ => Ok(()),
    }
}

/// What a daemon needs beyond its unit's file.
#[derive(Default)]
struct Needs {
    units: &'static [&'static str],
    namespace: bool,
    /// With whom it, or a process that it starts, speaks IP.
    peers: BTreeSet<IpAddr>,
}

impl Needs {
    fn of(file: &Path) -> Result<Needs, Failure> {
        match ConfigFile::load(file)? {
            ConfigFile::Host(config) => Needs::of_host(&config),
            ConfigFile::Gate(config) => Ok(Needs::of_gate(&config)),
        }
    }

    fn of_host(config: &Config) -> Result<Needs, Failure> {
        let mut peers = of_records(&config.records);
        if let Some(Keeper::Cluster(access)) = config.akd.as_ref().map(|akd| akd.keeper()) {
            peers.extend(access.sockets().map(|member| member.ip()));
        }
        Ok(Needs { units: HOSTS, namespace: needs_namespace(config)?, peers })
    }

    /// Its unit may use namespaces.
    fn of_gate(config: &GateConfig) -> Needs {
        let mut peers = of_records(&config.records);
        peers.extend(config.pair.as_ref().map(|pair| pair.peer.ip()));
        Needs { units: GATEWAYS, namespace: false, peers }
    }

    /// Writes the drop-ins of all units of `instance` in `directory`.
    fn write(&self, instance: &str, directory: &Path, namespace: &Path) -> io::Result<()> {
        for unit in self.units {
            self.grant(&directory.join(format!("{unit}@{instance}.service.d")), namespace)?;
        }
        if self.units != HOSTS || self.namespace {
            return Ok(());
        }
        let device = directory.join(format!("sys-subsystem-net-devices-{instance}.device.d"));
        fs::create_dir_all(&device)?;
        fs::write(device.join(WAITING.0), WAITING.1)
    }

    /// Writes the drop-ins of the unit at `place`.
    fn grant(&self, place: &Path, namespace: &Path) -> io::Result<()> {
        if self.namespace || !self.peers.is_empty() {
            fs::create_dir_all(place)?;
        }
        if self.namespace {
            symlink(namespace, place.join(DROP_IN))?;
        }
        if self.peers.is_empty() {
            return Ok(());
        }
        fs::write(place.join(PEERS), speaking_with(&self.peers))
    }
}

/// What lets a unit speak IP with these and with nobody else.
fn speaking_with(peers: &BTreeSet<IpAddr>) -> String {
    let peers: Vec<String> = peers.iter().map(IpAddr::to_string).collect();
    format!("[Service]\nRestrictAddressFamilies=AF_INET AF_INET6\nIPAddressAllow={}\n", peers.join(" "))
}

/// Gives the signer of the site at `site` the way to the cluster that has its repository (record
/// 0095) and to the files of the token that has its key (record 0121), if there are any. Where the
/// site cannot be read, the signer says so when it starts.
fn grant_signer(site: &Path, directory: &Path) -> io::Result<()> {
    let place = directory.join(SIGNER);
    if let Some(cluster) = repository_access(site).ok().flatten() {
        let members = cluster.sockets().map(|member| member.ip()).collect();
        fs::create_dir_all(&place)?;
        fs::write(place.join(PEERS), format!("{}PrivateNetwork=no\n", speaking_with(&members)))?;
    }
    let Some(token) = token_of(site).ok().flatten() else { return Ok(()) };
    // systemd takes a percent sign for the beginning of a specifier.
    let quoted = |sign: &str, path: &Path| format!("\"{sign}{}\"", path.display().to_string().replace('%', "%%"));
    if let Some(files) = &token.files {
        fs::create_dir_all(&place)?;
        fs::write(place.join(TOKEN), format!("[Service]\nReadWritePaths={}\n", quoted("", files)))?;
    }
    let secret: Vec<String> = token.pin_file.iter().chain(&token.files).map(|path| quoted("-", path)).collect();
    let hidden = format!("[Service]\nInaccessiblePaths={}\n", secret.join(" "));
    for unit in if secret.is_empty() { &[][..] } else { KEYLESS } {
        fs::create_dir_all(directory.join(unit))?;
        fs::write(directory.join(unit).join(TOKEN), &hidden)?;
    }
    Ok(())
}

/// With whom the exporter and the recorder speak IP. A command for attacks may speak with anybody,
/// which nobody can read from it.
fn of_records(records: &Records) -> BTreeSet<IpAddr> {
    let mut peers = BTreeSet::new();
    if let Some(SyslogAddress::Udp(address)) = records.syslog_address() {
        peers.insert(address.ip());
    }
    if let Some(LocalAddress::Tcp(address)) = records.metrics_listen.as_deref().and_then(LocalAddress::parse) {
        // Whoever asks another address of 127.0.0.0/8 comes from this one.
        peers.insert(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { address.ip() });
    }
    peers
}

/// The generator: in `directory`, the signer gets what its site asks for, and each other unit what
/// its configuration in `configurations` does; `namespace` is the drop-in of those that need one. A
/// file that cannot be read leaves its unit confined, and the daemon says why when it starts.
pub(super) fn generate(configurations: &Path, directory: &Path, namespace: &Path) -> Result<(), Failure> {
    let Ok(entries) = fs::read_dir(configurations) else { return Ok(()) };
    let wrong = |error: io::Error| Failure::file(directory, error, "give a new directory");
    grant_signer(&configurations.join(SITE), directory).map_err(wrong)?;
    for file in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let Some(instance) = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".toml")) else { continue };
        let Ok(needs) = Needs::of(&file) else { continue };
        needs.write(instance, directory, namespace).map_err(wrong)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which instances are loosened, of one whose file says this.
    fn loosened(place: &Path, text: &str) -> Vec<String> {
        let (configurations, units) = (place.join("etc"), place.join("units"));
        let _ = fs::remove_dir_all(&units);
        for directory in [&configurations, &units] {
            fs::create_dir_all(directory).expect("ours");
        }
        fs::write(configurations.join("eth0.toml"), text.replace("STATE", &place.display().to_string())).expect("ours");
        fs::write(configurations.join("eth1.toml.before"), "[host]\ntakeover = \"namespace\"\n").expect("ours");
        let drop_in = place.join("namespace.conf");
        fs::write(&drop_in, "[Service]\n").expect("ours");
        generate(&configurations, &units, &drop_in).expect("written");
        let is_service = |unit: &PathBuf| unit.to_string_lossy().ends_with(".service.d");
        let names = fs::read_dir(&units).expect("there").map(|unit| unit.expect("readable").path());
        let mut names: Vec<String> = names
            .filter(is_service)
            .map(|unit| {
                assert_eq!(fs::read_to_string(unit.join(DROP_IN)).expect("a drop-in"), "[Service]\n");
                unit.file_name().expect("a name").to_string_lossy().into_owned()
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_units_that_need_a_namespace_are_loosened() {
        let place = tempfile::tempdir().expect("a directory");
        let host = "[host]\ninterface = \"rwnone0\"\nstate_dir = \"STATE\"\n";
        let both = ["ringwall-akd@eth0.service.d", "ringwall@eth0.service.d"];
        let wide =
            ["takeover = \"namespace\"\n", "[cll]\nkernel_hook = \"xdp\"\n", "mode = \"null\"\nprofile = \"lab\"\n"];
        for more in wide {
            assert_eq!(loosened(place.path(), &format!("{host}{more}")), both, "{more}");
        }
        let confined = [
            "",
            "mode = \"sarp\"\n",
            "takeover = \"in-place\"\n",
            "takeover = \"filter\"\n",
            "takeover = \"namespac\"\n",
        ];
        for more in confined {
            assert_eq!(loosened(place.path(), &format!("{host}{more}")), [""; 0], "{more}");
        }
        // The disk with the state is not there yet.
        let absent = host.replace("STATE", "/nowhere/at/all");
        assert_eq!(loosened(place.path(), &absent), both);
        // An earlier start has found that the card cannot stay where it is.
        let note = place.path().join("rwnone0.not-in-place");
        fs::write(&note, "a reason\n").expect("ours");
        assert_eq!(loosened(place.path(), host), both);
        assert_eq!(loosened(place.path(), &format!("{host}takeover = \"in-place\"\n")), [""; 0], "it is not asked");
        forget(&Config::read(&note, &host.replace("STATE", &place.path().display().to_string())).expect("valid"))
            .expect("removed");
        assert_eq!(loosened(place.path(), host), [""; 0]);
    }

    /// The addresses that each unit of this file may speak with.
    fn allowed(text: &str) -> Vec<(String, String)> {
        let place = tempfile::tempdir().expect("a directory");
        let (configurations, units) = (place.path().join("etc"), place.path().join("units"));
        fs::create_dir_all(&configurations).expect("ours");
        fs::create_dir_all(&units).expect("ours");
        fs::write(configurations.join("it.toml"), text).expect("ours");
        generate(&configurations, &units, &place.path().join("namespace.conf")).expect("written");
        let read = |unit: fs::DirEntry| {
            let text = fs::read_to_string(unit.path().join(PEERS)).ok()?;
            let rest = text.strip_prefix("[Service]\nRestrictAddressFamilies=AF_INET AF_INET6\nIPAddressAllow=")?;
            Some((unit.file_name().to_string_lossy().into_owned(), rest.trim_end().to_owned()))
        };
        let mut all: Vec<_> =
            fs::read_dir(&units).expect("there").filter_map(|unit| read(unit.expect("readable"))).collect();
        all.sort();
        all
    }

    #[test]
    fn units_speak_ip_with_those_whom_their_files_name_and_with_nobody_else() {
        let both = |peers: &str| {
            ["ringwall-akd@it.service.d", "ringwall@it.service.d"].map(|unit| (unit.to_owned(), peers.to_owned()))
        };
        let host = |rest: &str| allowed(&format!("[host]\ninterface = \"rwnone0\"\n{rest}"));
        assert_eq!(host(""), []);
        assert_eq!(host("[records]\nsyslog = \"/dev/log\"\nmetrics_listen = \"/run/m.sock\"\n"), []);
        assert_eq!(
            host("[records]\nsyslog = \"192.0.2.5:514\"\nmetrics_listen = \"[::1]:9477\"\n"),
            both("192.0.2.5 ::1")
        );
        let cluster = "etcd = [\"http://10.0.0.21:2379\", \"http://10.0.0.22:2379\"]\netcd_unprotected = true\n";
        assert_eq!(host(&format!("mode = \"sarp\"\n[akd]\n{cluster}")), both("10.0.0.21 10.0.0.22"));
        let gate = "[gate]\ntrusted = \"rwnone0\"\nuntrusted = \"rwnone1\"\n";
        assert_eq!(allowed(gate), []);
        let pair = "[pair]\nkey_file = \"/k\"\nlocal = \"10.9.0.1:9479\"\npeer = \"10.9.0.2:9479\"\n";
        let unit = "ringwall-gate@it.service.d".to_owned();
        assert_eq!(allowed(&format!("{gate}{pair}")), [(unit, "10.9.0.2".to_owned())]);
    }

    #[test]
    fn the_signer_speaks_with_the_cluster_that_has_the_repository() {
        let place = tempfile::tempdir().expect("a directory");
        let (site, units) = (place.path().join("etc/site"), place.path().join("units"));
        for one in [&site, &units] {
            fs::create_dir_all(one).expect("ours");
        }
        let granted = || {
            generate(&place.path().join("etc"), &units, &place.path().join("namespace.conf")).expect("written");
            fs::read_to_string(units.join("ringwall-signer.service.d").join(PEERS)).ok()
        };
        assert_eq!(granted(), None, "the repository is in a file");
        fs::write(site.join("etcd.json"), "{").expect("ours");
        assert_eq!(granted(), None);
        let members = r#"{"members": ["https://10.0.0.21:2379", "https://[fd00::1]:2379"], "ca": "/ca.pem"}"#;
        fs::write(site.join("etcd.json"), members).expect("ours");
        let speaks = "RestrictAddressFamilies=AF_INET AF_INET6\nIPAddressAllow=10.0.0.21 fd00::1\nPrivateNetwork=no\n";
        assert_eq!(granted(), Some(format!("[Service]\n{speaks}")));
    }

    #[test]
    fn the_signer_reaches_the_files_of_the_token_that_has_its_key() {
        let place = tempfile::tempdir().expect("a directory");
        let site = place.path().join("site");
        fs::create_dir_all(&site).expect("ours");
        let granted = |key: &str| {
            fs::write(site.join("ca.key.pem"), key).expect("ours");
            generate(place.path(), place.path(), &place.path().join("namespace.conf")).expect("written");
            fs::read_to_string(place.path().join("ringwall-signer.service.d").join(TOKEN)).ok()
        };
        let uri = "pkcs11:token=a;object=b?module-path=/m";
        assert_eq!(granted("-----BEGIN PRIVATE KEY-----"), None);
        assert_eq!(granted(uri), None, "a token that is hardware");
        let wanted = "[Service]\nReadWritePaths=\"/var/lib/softhsm/tokens\"\n".to_owned();
        assert_eq!(granted(&format!("{uri}&pin-source=/p%25in&x-files=/var/lib/softhsm/tokens")), Some(wanted));
        let hidden = "[Service]\nInaccessiblePaths=\"-/p%%in\" \"-/var/lib/softhsm/tokens\"\n";
        for unit in KEYLESS {
            assert_eq!(fs::read_to_string(place.path().join(unit).join(TOKEN)).expect("a drop-in"), hidden, "{unit}");
        }
    }

    /// One in a namespace is closed by nothing but its unit, so a boot waits for it.
    #[test]
    fn a_boot_waits_15_s_for_a_card_that_udev_closes_when_it_comes() {
        let waits = |text: &str| {
            let place = tempfile::tempdir().expect("a directory");
            let text = text.replace("STATE", &place.path().display().to_string());
            fs::write(place.path().join("en-0.toml"), text).expect("ours");
            generate(place.path(), place.path(), &place.path().join("namespace.conf")).expect("written");
            fs::read_to_string(place.path().join("sys-subsystem-net-devices-en-0.device.d/ringwall.conf")).ok()
        };
        let host = "[host]\ninterface = \"rwnone0\"\nstate_dir = \"STATE\"\n";
        let short = Some("[Unit]\nJobRunningTimeoutSec=15s\n".to_owned());
        assert_eq!(waits(host), short);
        assert_eq!(waits(&format!("{host}mode = \"sarp\"\n")), short);
        assert_eq!(waits(&format!("{host}takeover = \"namespace\"\n")), None);
        assert_eq!(waits("[gate]\ntrusted = \"rwnone0\"\nuntrusted = \"rwnone1\"\n"), None);
        assert_eq!(waits("[host]\n"), None);
    }

    #[test]
    fn who_is_over_already_is_loosened_in_the_next_boot() {
        let place = tempfile::tempdir().expect("a directory");
        let host = format!("[host]\ninterface = \"rwnone0\"\nstate_dir = \"{}\"\n", place.path().display());
        for (more, is_noted) in [("takeover = \"namespace\"\n", false), ("", true)] {
            let config = Config::read(&place.path().join("it"), &format!("{host}{more}")).expect("valid");
            stays_over(&config).expect("written");
            assert_eq!(note(&config).exists(), is_noted, "{more}");
        }
    }
}
