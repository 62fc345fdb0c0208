//! A file of lines in the form of Suricata's EVE, event type `alert`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::time::with_offset;
use crate::protocol::attacks::Attack;

/// The first of our numbers of signatures, in the range that Suricata leaves to local ones.
const SIGNATURE_BASE: u64 = 1_900_000;

/// One attack as a line.
pub(super) fn line(attack: &Attack) -> Value {
    let mut event = Map::new();
    let mut put = |key: &str, value: Option<Value>| _ = value.map(|value| event.insert(key.to_owned(), value));
    put("timestamp", Some(json!(with_offset(attack.span.last_unix_ms))));
    put("event_type", Some(json!("alert")));
    put("host", Some(json!(attack.place.host)));
    put("in_iface", Some(json!(attack.place.interface)));
    put("src_ip", attack.source.ip.as_ref().or(attack.claimed.ip.as_ref()).map(|ip| json!(ip)));
    put("dest_ip", attack.target.ip.as_ref().map(|ip| json!(ip)));
    put("proto", attack.flow.protocol.as_ref().map(|protocol| json!(protocol)));
    put("src_port", attack.flow.source_port.map(|port| json!(port)));
    put("dest_port", attack.flow.target_port.map(|port| json!(port)));
    put("community_id", attack.flow.community_id.as_ref().map(|id| json!(id)));
    let macs = [("src_mac", &attack.source.mac), ("dest_mac", &attack.target.mac)];
    let macs: Map<_, _> =
        macs.iter().filter_map(|(key, mac)| Some(((*key).to_owned(), json!(mac.as_ref()?)))).collect();
    put("ether", (!macs.is_empty()).then_some(Value::Object(macs)));
    put("alert", Some(alert(attack)));
    put("packet", (!attack.sample_base64.is_empty()).then(|| json!(attack.sample_base64)));
    put("packet_info", (!attack.sample_base64.is_empty()).then(|| json!({ "linktype": 1 })));
    Value::Object(event)
}

/// What has no field of its own in EVE stands among the tags.
fn alert(attack: &Attack) -> Value {
    let claimed = &attack.claimed;
    let tags = [
        ("kind", Some(attack.sort.kind.clone())),
        ("phase", Some(attack.phase.clone())),
        ("reason", Some(attack.reason.clone())),
        ("count", Some(attack.count.to_string())),
        ("first", Some(attack.span.first.clone())),
        ("mode", Some(attack.place.mode.clone())),
        ("source_name", attack.source.name.clone()),
        ("claimed_ip", claimed.ip.clone()),
        ("claimed_mac", claimed.mac.clone()),
        ("claimed_name", claimed.name.clone()),
    ];
    let tags: Vec<_> = tags.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value?))).collect();
    json!({
        "action": "blocked",
        "gid": 1,
        "signature_id": SIGNATURE_BASE + attack.sort.kind_number,
        "rev": 1,
        "signature": format!("RINGWALL {}: {}", attack.sort.kind, attack.sentence),
        "category": "Attempted deception on the local network",
        "severity": if attack.sort.severity == "error" { 1 } else { 2 },
        "metadata": { "tag": tags },
    })
}

/// The file, with one older one beside it.
pub(super) struct EveFile {
    name: PathBuf,
    max_bytes: u64,
    file: Option<File>,
    written: u64,
}

impl EveFile {
    pub(super) fn new(name: &Path, max_bytes: u64) -> EveFile {
        EveFile { name: name.to_owned(), max_bytes, file: None, written: 0 }
    }

    pub(super) fn reopen(&mut self) {
        self.file = None;
    }

    pub(super) fn write(&mut self, attack: &Attack) -> io::Result<()> {
        let mut text = serde_json::to_vec(&line(attack))?;
        text.push(b'\n');
        let len = text.len() as u64;
        self.open()?;
        if self.written + len > self.max_bytes && self.written > 0 {
            fs::rename(&self.name, older(&self.name))?;
            self.file = None;
            self.open()?;
        }
        if let Some(file) = &mut self.file {
            file.write_all(&text)?;
            self.written += len;
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            let file = OpenOptions::new().append(true).create(true).mode(0o640).open(&self.name)?;
            self.written = file.metadata()?.len();
            self.file = Some(file);
        }
        Ok(())
    }
}

fn older(name: &Path) -> PathBuf {
    let mut older = name.as_os_str().to_owned();
    older.push(".1");
    older.into()
}

#[cfg(test)]
mod tests {
    use super::super::process::tests::attack;
    use super::*;

    #[test]
    fn an_alert_has_the_fields_that_readers_of_eve_look_for() {
        let line = line(&attack());
        assert_eq!(line["event_type"], "alert");
        assert_eq!(line["ether"]["src_mac"], "02:00:00:00:00:66");
        assert_eq!(line["timestamp"], "2026-09-21T14:13:20.000+0000");
        assert_eq!((&line["src_ip"], &line["dest_ip"]), (&json!("192.0.2.11"), &json!("192.0.2.10")));
        assert_eq!(line["alert"]["action"], "blocked");
        assert!(line["alert"]["signature"].as_str().is_some_and(|text| text.starts_with("RINGWALL arp-spoofing: 02:")));
        let tags = line["alert"]["metadata"]["tag"].as_array().expect("tags");
        assert!(tags.contains(&json!("claimed_name=desk-11")) && tags.contains(&json!("count=200")), "{tags:?}");
    }

    #[test]
    fn a_flood_of_records_fills_two_files_and_no_more() {
        let place = tempfile::tempdir().expect("a directory");
        let name = place.path().join("eve.json");
        let mut file = EveFile::new(&name, 10_000);
        for _ in 0..1000 {
            file.write(&attack()).expect("written");
        }
        let sizes: Vec<u64> = fs::read_dir(place.path())
            .expect("there")
            .map(|one| one.expect("it").metadata().expect("it").len())
            .collect();
        assert!(sizes.len() == 2 && sizes.iter().all(|size| (1..=10_000).contains(size)), "{sizes:?}");
        let text = fs::read_to_string(&name).expect("there");
        assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    }

    #[test]
    fn a_file_that_was_moved_away_is_opened_anew() {
        let place = tempfile::tempdir().expect("a directory");
        let (name, moved) = (place.path().join("eve.json"), place.path().join("moved"));
        let mut file = EveFile::new(&name, 100_000);
        file.write(&attack()).expect("written");
        fs::rename(&name, &moved).expect("moved");
        file.write(&attack()).expect("written");
        file.reopen();
        file.write(&attack()).expect("written");
        let lines = |name: &Path| fs::read_to_string(name).expect("there").lines().count();
        assert_eq!((lines(&moved), lines(&name)), (2, 1));
    }
}
