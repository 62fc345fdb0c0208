//! The hosts that have proved themselves, beyond the end of the daemon: in mode `prefer` none of
//! them is heard in clear again. With each stands the newest time that it has said in a handshake,
//! so that after a restart recordings of it are told from requests.
//!
//! The link layer says who proved himself; this is the file in the state directory in which that is
//! kept. It holds no secret, but who can write it can have a host locked out or heard in clear
//! again, so it belongs to root alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bump::Instant;
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
    /// The newest time in a verified handshake, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heard_unix_ms: Option<u64>,
}

/// Times are written this often at most: each handshake brings one, and the whole file is written.
/// What a daemon that is killed has not written yet are times of the last seconds.
const TIMES_SAVED_EVERY: Duration = Duration::from_secs(10);

/// The hosts that have proved themselves, and their file.
pub(super) struct Known {
    disk: Disk,
    hosts: Vec<ProvedHost>,
    heard: BTreeMap<MacAddress, u64>,
    /// When times were last written, or found unchanged.
    times_saved: Instant,
    times_changed: bool,
}

impl Known {
    /// Reads the file, if there is one.
    pub(super) fn open(disk: &Disk) -> Result<Known, Failure> {
        let mut known = Known::anew(disk);
        if let Some(file) = disk.path(&Kept::Peers).filter(|file| file.exists()) {
            (known.hosts, known.heard) = read(&file)?;
        }
        Ok(known)
    }

    /// Nobody, to be written over what is in the file.
    pub(super) fn anew(disk: &Disk) -> Known {
        let (hosts, heard) = (Vec::new(), BTreeMap::new());
        Known { disk: disk.clone(), hosts, heard, times_saved: Instant::default(), times_changed: false }
    }

    /// The newest time that each host has said, in milliseconds since 1970.
    pub(super) fn heard(&self) -> impl Iterator<Item = (MacAddress, u64)> {
        self.heard.iter().map(|(mac, unix_ms)| (*mac, *unix_ms))
    }

    /// A host has said this time in a handshake that was verified. It is written once the host has
    /// proved itself, which its first frame does.
    pub(super) fn remember_time(&mut self, mac: MacAddress, unix_ms: u64) {
        if self.heard.len() >= PROVED_MAX && !self.heard.contains_key(&mac) {
            return;
        }
        let heard = self.heard.entry(mac).or_default();
        self.times_changed |= unix_ms > *heard;
        *heard = unix_ms.max(*heard);
    }

    /// Writes times that have changed, if it is time.
    pub(super) fn save_times(&mut self, now: Instant) -> Result<(), Failure> {
        if !self.times_changed || now.since(self.times_saved) < TIMES_SAVED_EVERY {
            return Ok(());
        }
        self.times_saved = now;
        self.save()
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
            gone.iter().for_each(|host| _ = self.heard.remove(&host.mac));
            self.save()?;
        }
        Ok(gone)
    }

    fn save(&mut self) -> Result<(), Failure> {
        self.times_changed = false;
        let entry = |host: &ProvedHost| Entry {
            name: host.name.clone(),
            mac: host.mac.to_string(),
            addresses: host.addresses.clone(),
            heard_unix_ms: self.heard.get(&host.mac).copied(),
        };
        let content = Content { hosts: self.hosts.iter().map(entry).collect() };
        let text = serde_json::to_string_pretty(&content).map_err(Failure::new)?;
        self.disk.write(&Kept::Peers, &text).map_err(Failure::new)
    }
}

/// What a file holds: the hosts, and the newest time that each has said.
type Read = (Vec<ProvedHost>, BTreeMap<MacAddress, u64>);

fn read(file: &Path) -> Result<Read, Failure> {
    let broken = |error: &dyn std::fmt::Display| Failure::file(file, error, REMEDY);
    let text = std::fs::read_to_string(file).map_err(|error| broken(&error))?;
    let content: Content = serde_json::from_str(&text).map_err(|error| broken(&error))?;
    if content.hosts.len() > PROVED_MAX {
        return Err(broken(&format!("{} hosts, of which {PROVED_MAX} may be", content.hosts.len())));
    }
    let (mut hosts, mut heard) = (Vec::new(), BTreeMap::new());
    for entry in content.hosts {
        let mac = entry.mac.parse().map_err(|_| broken(&format!("{} is no hardware address", entry.mac)))?;
        heard.extend(entry.heard_unix_ms.map(|unix_ms| (mac, unix_ms)));
        hosts.push(ProvedHost { name: entry.name, mac, addresses: entry.addresses });
    }
    Ok((hosts, heard))
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
    fn what_a_hosts_clock_showed_outlives_a_restart_and_goes_with_the_host() {
        let place = tempfile::tempdir().expect("directory");
        let disk = Disk::of_interface(place.path(), "eth0");
        let open = || Known::open(&disk).expect("readable");
        let heard = |known: &Known| known.heard().collect::<Vec<_>>();
        let at = |seconds: u64| Instant::from_millis(seconds * 1000);
        let mut known = open();
        known.remember(host(1, &[1])).expect("kept");
        for unix_ms in [500, 700, 600] {
            known.remember_time(host(1, &[]).mac, unix_ms);
        }
        known.remember_time(host(2, &[]).mac, 900);
        known.save_times(at(100)).expect("kept");
        assert_eq!(heard(&open()), [(host(1, &[]).mac, 700)], "the newest, and of nobody who has not proved itself");
        known.remember_time(host(1, &[]).mac, 800);
        known.save_times(at(109)).expect("not yet");
        assert_eq!(heard(&open()), [(host(1, &[]).mac, 700)]);
        known.save_times(at(110)).expect("kept");
        assert_eq!(heard(&open()), [(host(1, &[]).mac, 800)]);
        known.forget("h1").expect("kept");
        assert!(heard(&open()).is_empty());
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
