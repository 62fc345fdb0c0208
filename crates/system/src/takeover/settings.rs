//! The kernel's settings per interface (`/proc/sys/net/ipv4/conf/eth0` and its like).
//!
//! A new interface starts with the namespace's `default` settings, so only what differs from those is kept and carried
//! over. IPv6's switch is kept always: a former version turned it off on a card behind a filter.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files;

/// The directories that hold settings per interface.
const FAMILIES: [&str; 4] = ["ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"];
/// What is said elsewhere: the link's MTU, which is set together with it, and two times in older
/// units. At their reading the kernel logs that they are deprecated.
const REPEATED: [&str; 3] = ["mtu", "base_reachable_time", "retrans_time"];
/// IPv6's switch.
const DISABLE_IPV6: &str = "disable_ipv6";
/// Settings of one directory that are read; a kernel has some sixty.
const MAX_SETTINGS: usize = 512;

/// One setting of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// Its directory, such as `ipv4/conf`.
    pub(crate) family: String,
    /// Its name.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: String,
}

/// The settings of `interface` that differ from the default of the calling thread's namespace.
pub(crate) fn read(interface: &str) -> Vec<Setting> {
    let mut settings: Vec<Setting> = FAMILIES.iter().flat_map(|family| read_family(family, interface)).collect();
    // IPv6's switch goes first: turned off later it would take addresses away again.
    settings.sort_by_key(|setting| setting.name != DISABLE_IPV6);
    settings
}

/// Writes settings of `interface`; returns a line for each that the kernel refused.
pub(crate) fn write(interface: &str, settings: &[Setting]) -> Vec<String> {
    let mut refused = Vec::new();
    for Setting { family, name, value } in settings {
        // The state file is the owner's, but a path out of it is checked all the same.
        if !FAMILIES.contains(&family.as_str()) || name.contains('/') {
            continue;
        }
        let path = directory(family, interface).join(name);
        if files::read_line(&path).is_ok_and(|present| present == *value) {
            continue;
        }
        if let Err(cause) = files::write_existing(&path, value) {
            refused.push(format!("{}: {cause}", path.display()));
        }
    }
    refused
}

/// Turns IPv6 off on `interface`; a kernel without IPv6 has nothing to turn off.
pub(crate) fn disable_ipv6(interface: &str) -> io::Result<()> {
    match files::write_existing(&directory("ipv6/conf", interface).join(DISABLE_IPV6), "1") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes the calling thread's namespace one in which no interface speaks or learns by itself: no IPv6, no ARP answers, no
/// neighbours from ARP that nobody asked for (a namespace starts with the machine's settings), no forwarding. Done before
/// any card enters it.
pub(crate) fn silence_namespace() -> io::Result<()> {
    for scope in ["all", "default"] {
        disable_ipv6(scope)?;
        files::write_existing(&directory("ipv4/conf", scope).join("arp_ignore"), "8")?;
        files::write_existing(&directory("ipv4/conf", scope).join("arp_accept"), "0")?;
        files::write_existing(&directory("ipv4/conf", scope).join("forwarding"), "0")?;
    }
    Ok(())
}

fn directory(family: &str, interface: &str) -> PathBuf {
    Path::new("/proc/sys/net").join(family).join(interface)
}

fn read_family(family: &str, interface: &str) -> Vec<Setting> {
    let Ok(entries) = std::fs::read_dir(directory(family, interface)) else { return Vec::new() };
    let mut settings = Vec::new();
    for entry in entries.flatten().take(MAX_SETTINGS) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if REPEATED.contains(&name.as_str()) {
            continue;
        }
        let writable = entry.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o200 != 0);
        let Ok(value) = files::read_line(&entry.path()) else { continue };
        let default = files::read_line(&directory(family, "default").join(&name)).ok();
        let kept = name == DISABLE_IPV6 || default.as_deref() != Some(&value);
        if writable && kept {
            settings.push(Setting { family: family.to_owned(), name, value });
        }
    }
    settings.sort_by(|one, other| one.name.cmp(&other.name));
    settings
}
