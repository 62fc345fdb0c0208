//! A file of lines in the form of Suricata's EVE: for each record of an attack an `alert`; where it
//! opens a `drop` for the frame that is its sample, and an `anomaly` where packets contradicted
//! each other.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bump::record::{Kind, Phase};
use serde_json::{Map, Value, json};

use super::time::with_offset;
use crate::protocol::attacks::Attack;

/// The first of our numbers of signatures, in the range that Suricata leaves to local ones.
const SIGNATURE_BASE: u64 = 1_900_000;

/// The lines of one record.
pub(super) fn lines(attack: &Attack) -> Vec<Value> {
    let mut lines = vec![line(attack, "alert", alert(attack))];
    if attack.phase != Phase::Opened.word() {
        return lines;
    }
    if !attack.sample_base64.is_empty() {
        lines.push(line(attack, "drop", json!({ "reason": attack.reason })));
    }
    if attack.sort.kind == Kind::Evasion.word() {
        lines.push(line(attack, "anomaly", json!({ "type": "stream", "event": attack.reason })));
    }
    lines
}

/// One line: `event_type` names it, and is the key under which `details` stand.
fn line(attack: &Attack, event_type: &str, details: Value) -> Value {
    let mut event = Map::new();
    let mut put = |key: &str, value: Option<Value>| _ = value.map(|value| event.insert(key.to_owned(), value));
    put("timestamp", Some(json!(with_offset(attack.span.last_unix_ms))));
    put("event_type", Some(json!(event_type)));
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
    put(event_type, Some(details));
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
        let mut text = Vec::new();
        for line in lines(attack) {
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
        }
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
    use std::process::{Command, Stdio};

    use super::super::process::tests::attack;
    use super::*;
    use crate::protocol::attacks::FlowOf;

    #[test]
    fn an_alert_has_the_fields_that_readers_of_eve_look_for() {
        let line = lines(&attack()).remove(0);
        assert_eq!(line["event_type"], "alert");
        assert_eq!(line["ether"]["src_mac"], "02:00:00:00:00:66");
        assert_eq!(line["timestamp"], "2026-09-21T14:13:20.000+0000");
        assert_eq!((&line["src_ip"], &line["dest_ip"]), (&json!("192.0.2.11"), &json!("192.0.2.10")));
        assert_eq!(line["alert"]["action"], "blocked");
        assert!(line["alert"]["signature"].as_str().is_some_and(|text| text.starts_with("RINGWALL arp-spoofing: 02:")));
        let tags = line["alert"]["metadata"]["tag"].as_array().expect("tags");
        assert!(tags.contains(&json!("claimed_name=desk-11")) && tags.contains(&json!("count=200")), "{tags:?}");
    }

    /// A record with everything that one can have.
    fn full(kind: Kind) -> Attack {
        let mut attack = attack();
        attack.sort.kind = kind.word().to_owned();
        attack.sample_base64 = "AAECAwQF".to_owned();
        attack.flow = FlowOf {
            protocol: Some("TCP".to_owned()),
            source_port: Some(40_000),
            target_port: Some(80),
            community_id: Some("1:x".to_owned()),
        };
        attack
    }

    #[test]
    fn a_frame_that_was_dropped_and_packets_that_contradict_each_other_have_lines_of_their_own() {
        let types = |kind| lines(&full(kind)).iter().map(|line| line["event_type"].clone()).collect::<Vec<_>>();
        assert_eq!(types(Kind::Evasion), ["alert", "drop", "anomaly"]);
        assert_eq!(types(Kind::ArpSpoofing), ["alert", "drop"]);
        let dropped = lines(&full(Kind::Evasion)).remove(1);
        assert_eq!(dropped["drop"]["reason"], "plain-arp");
        assert_eq!((&dropped["community_id"], &dropped["dest_port"]), (&json!("1:x"), &json!(80)));
        assert!(dropped.get("alert").is_none());
        let grown = Attack { phase: "growing".to_owned(), ..full(Kind::Evasion) };
        assert_eq!(lines(&grown).len(), 1, "the frame is the same");
        let mut bare = attack();
        bare.sample_base64.clear();
        assert_eq!(lines(&bare).len(), 1, "without a frame there is none to tell of");
    }

    /// Has Python's jsonschema judge `line`; none where that or OISF's schema is missing.
    fn judged(line: &Value) -> Option<(bool, String)> {
        let schema = std::env::var_os("RINGWALL_EVE_SCHEMA")?;
        let program = "import json, sys, jsonschema\n\
                       jsonschema.validate(json.load(sys.stdin), json.load(open(sys.argv[1])))";
        let mut python = Command::new("python3");
        python.args(["-c", program]).arg(schema).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = python.spawn().ok()?;
        child.stdin.take().expect("a pipe").write_all(line.to_string().as_bytes()).expect("read");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (!said.contains("No module named 'jsonschema'")).then_some((output.status.success(), said))
    }

    #[test]
    fn every_line_is_valid_by_the_schema_that_suricata_publishes() {
        let name = "every_line_is_valid_by_the_schema_that_suricata_publishes";
        for kind in Kind::ALL {
            for line in lines(&full(*kind)) {
                let Some((is_valid, said)) = judged(&line) else {
                    let needed = "python3-jsonschema, and etc/schema.json of Suricata named by RINGWALL_EVE_SCHEMA";
                    eprintln!("SKIPPED {name}: needs {needed}");
                    return;
                };
                assert!(is_valid, "{line}: {said}");
                let mut wrong = line;
                wrong["src_port"] = json!("eighty");
                assert_eq!(judged(&wrong).map(|(is_valid, _)| is_valid), Some(false), "it would say so");
            }
        }
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
        assert_eq!((lines(&moved), lines(&name)), (4, 2), "an alert and a drop each");
    }
}
