//! The hosts that have proved themselves, beyond the end of the daemon: in mode `prefer` none of them is heard in clear again.
//!
//! The link layer says who proved himself; this is the file in the state directory in which that is kept. It holds no secret, but
//! who can write it can have a host locked out or heard in clear again, so it belongs to root alone.

use std::path::Path;

use cll::ProvedHost;
use cll::limits::PROVED_MAX;
use serde::{Deserialize, Serialize};
use wire::MacAddress;

use crate::failure::Failure;
use crate::monitor::{Disk, Kept};

const REMEDY: &str = "remove the file; hosts are then remembered anew when they next prove themselves";

/// The file's content.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Content {
    /// The one that proved itself last stands last.
    hosts: Vec<Entry>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    mac: String,
    addresses: Vec<std::net::IpAddr>,
}

/// The hosts that have proved themselves, and their file.
pub(super) struct Known {
    disk: Disk,
    hosts: Vec<ProvedHost>,
}

impl Known {
    /// Reads the file, if there is one.
    pub(super) fn open(disk: &Disk) -> Result<Known, Failure> {
        let file = disk.path(&Kept::Peers).filter(|file| file.exists());
        let hosts = file.map(|file| read(&file)).transpose()?.unwrap_or_default();
        Ok(Known { disk: disk.clone(), hosts })
    }

    /// Nobody, to be written over what is in the file.
    pub(super) fn anew(disk: &Disk) -> Known {
        Known { disk: disk.clone(), hosts: Vec::new() }
    }

    pub(super) fn hosts(&self) -> &[ProvedHost] {
        &self.hosts
    }

    /// A host has proved itself. An error means that it is not known beyond the end of this daemon.
    pub(super) fn remember(&mut self, host: ProvedHost) -> Result<(), Failure> {
        self.hosts.retain(|other| other.mac != host.mac);
        // Its addresses are no other host's any more: the newer proof counts.
        for other in &mut self.hosts {
            other.addresses.retain(|ip| !host.addresses.contains(ip));
        }
        if self.hosts.len() < PROVED_MAX {
            self.hosts.push(host);
        }
        self.save()
    }

    /// Forgets the hosts that are called `who`, by name or hardware address; which those were.
    pub(super) fn forget(&mut self, who: &str) -> Result<Vec<ProvedHost>, Failure> {
        let mac: Option<MacAddress> = who.parse().ok();
        let is_meant = |host: &mut ProvedHost| host.name == who || Some(host.mac) == mac;
        let gone: Vec<ProvedHost> = self.hosts.extract_if(.., is_meant).collect();
        if !gone.is_empty() {
            self.save()?;
        }
        Ok(gone)
    }

    fn save(&self) -> Result<(), Failure> {
        let entry = |host: &ProvedHost| Entry {
            name: host.name.clone(),
            mac: host.mac.to_string(),
            addresses: host.addresses.clone(),
        };
        let content = Content { hosts: self.hosts.iter().map(entry).collect() };
        let text = serde_json::to_string_pretty(&content).map_err(Failure::new)?;
        self.disk.write(&Kept::Peers, &text).map_err(Failure::new)
    }
}

fn read(file: &Path) -> Result<Vec<ProvedHost>, Failure> {
    let broken = |error: &dyn std::fmt::Display| Failure::file(file, error, REMEDY);
    let text = std::fs::read_to_string(file).map_err(|error| broken(&error))?;
    let content: Content = serde_json::from_str(&text).map_err(|error| broken(&error))?;
    if content.hosts.len() > PROVED_MAX {
        return Err(broken(&format!("{} hosts, of which {PROVED_MAX} may be", content.hosts.len())));
    }
    let host = |entry: Entry| {
        let mac = entry.mac.parse().map_err(|_| broken(&format!("{} is no hardware address", entry.mac)))?;
        Ok(ProvedHost { name: entry.name, mac, addresses: entry.addresses })
    };
    content.hosts.into_iter().map(host).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn host(number: u8, addresses: &[u8]) -> ProvedHost {
        let addresses = addresses.iter().map(|&last| [10, 0, 0, last].into()).collect();
        ProvedHost { name: format!("h{number}"), mac: MacAddress([2, 0, 0, 0, 0, number]), addresses }
    }

    #[test]
    fn who_has_proved_itself_is_known_after_a_restart_until_it_is_forgotten() {
        let place = tempfile::tempdir().expect("directory");
        let disk = Disk::of_interface(place.path(), "eth0");
        let open = || Known::open(&disk).expect("readable");
        let mut known = open();
        assert!(known.hosts().is_empty());
        for one in [host(1, &[1, 11]), host(2, &[2]), host(3, &[3, 11])] {
            known.remember(one).expect("kept");
        }
        let file = place.path().join("eth0.peers.json");
        assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(open().hosts(), [host(1, &[1]), host(2, &[2]), host(3, &[3, 11])]);
        let mut known = open();
        assert_eq!(known.forget("h2").expect("kept"), [host(2, &[2])]);
        assert_eq!(known.forget("02:00:00:00:00:01").expect("kept"), [host(1, &[1])]);
        assert!(known.forget("h9").expect("nobody").is_empty());
        assert_eq!(open().hosts(), [host(3, &[3, 11])]);
    }

    #[test]
    fn a_damaged_file_is_named_with_the_way_out() {
        let place = tempfile::tempdir().expect("directory");
        let file = place.path().join("eth0.peers.json");
        let disk = Disk::of_interface(place.path(), "eth0");
        for text in
            ["", "{}", "{\"hosts\":[{\"name\":\"a\",\"mac\":\"x\",\"addresses\":[]}]}", "{\"hosts\":[],\"more\":1}"]
        {
            std::fs::write(&file, text).expect("written");
            let line = Known::open(&disk).map(drop).expect_err("damaged").to_string();
            assert!(
                line.contains("eth0.peers.json") && line.contains("remove the file") && !line.contains('\n'),
                "{line}"
            );
        }
        assert!(Known::anew(&disk).hosts().is_empty());
    }
}
