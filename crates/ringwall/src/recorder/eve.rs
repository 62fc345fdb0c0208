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
use crate::protocol::flow_record::FlowRecord;

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

/// The line of a connection of the gateway on `host` that is over.
pub(super) fn flow(flow: &FlowRecord, host: &str, interface: &str) -> Value {
    let ((client, client_port), (server, server_port)) = (&flow.client, &flow.server);
    let mut event = json!({
        "timestamp": with_offset(flow.end_unix_ms),
        "flow_id": flow.id,
        "host": host,
        "in_iface": interface,
        "event_type": "flow",
        "src_ip": client,
        "src_port": client_port,
        "dest_ip": server,
        "dest_port": server_port,
        "proto": "TCP",
        "community_id": flow.community_id,
        "flow": {
            "pkts_toserver": flow.packets[0],
            "pkts_toclient": flow.packets[1],
            "bytes_toserver": flow.bytes[0],
            "bytes_toclient": flow.bytes[1],
            "start": with_offset(flow.start_unix_ms),
            "end": with_offset(flow.end_unix_ms),
            "age": flow.end_unix_ms.saturating_sub(flow.start_unix_ms) / 1000,
            "state": flow.state,
            "reason": flow.reason,
            "alerted": false,
        },
    });
    if !flow.vlans.is_empty() {
        event["vlan"] = json!(flow.vlans);
    }
    if flow.is_cut {
        event["flow"]["action"] = json!("drop");
    }
    event
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

    /// Writes lines that belong together.
    pub(super) fn write(&mut self, lines: &[Value]) -> io::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
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

    fn flow_record() -> FlowRecord {
        FlowRecord {
            id: 7,
            community_id: "1:x".to_owned(),
            client: ("198.51.100.2".to_owned(), 40_000),
            server: ("192.0.2.1".to_owned(), 80),
            vlans: vec![5, 7],
            packets: [4, 3],
            bytes: [40, 30],
            start_unix_ms: 1_789_999_990_000,
            end_unix_ms: 1_790_000_000_000,
            state: "closed".to_owned(),
            reason: "severed".to_owned(),
            is_cut: true,
        }
    }

    /// What may stand in a line of a flow, and of what type it is: by Suricata's schema
    /// (etc/schema.json, 7.0), beside `in_iface` and `host`, which it writes of live traffic.
    #[test]
    fn a_flow_has_keys_of_the_schema_only_each_of_its_type() {
        const TOP: [(&str, &str); 13] = [
            ("timestamp", "string"),
            ("flow_id", "integer"),
            ("in_iface", "string"),
            ("host", "string"),
            ("event_type", "string"),
            ("vlan", "array"),
            ("src_ip", "string"),
            ("src_port", "integer"),
            ("dest_ip", "string"),
            ("dest_port", "integer"),
            ("proto", "string"),
            ("community_id", "string"),
            ("flow", "object"),
        ];
        const FLOW: [(&str, &str); 11] = [
            ("action", "string"),
            ("age", "integer"),
            ("alerted", "boolean"),
            ("bytes_toclient", "integer"),
            ("bytes_toserver", "integer"),
            ("end", "string"),
            ("pkts_toclient", "integer"),
            ("pkts_toserver", "integer"),
            ("reason", "string"),
            ("start", "string"),
            ("state", "string"),
        ];
        let type_of = |value: &Value| match value {
            Value::String(_) => "string",
            Value::Number(number) if number.is_u64() => "integer",
            Value::Bool(_) => "boolean",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            _ => "another",
        };
        let line = flow(&flow_record(), "gate-1", "in0");
        for (object, known) in [(&line, &TOP[..]), (&line["flow"], &FLOW[..])] {
            let object = object.as_object().expect("an object");
            assert_eq!(object.len(), known.len());
            for (key, kind) in known {
                assert_eq!(object.get(*key).map(type_of), Some(*kind), "{key}");
            }
        }
        assert_eq!((&line["flow"]["age"], &line["flow"]["pkts_toserver"]), (&json!(10), &json!(4)));
        assert_eq!(
            (&line["flow"]["start"], &line["src_port"]),
            (&json!("2026-09-21T14:13:10.000+0000"), &json!(40_000))
        );
        let plain = FlowRecord { vlans: Vec::new(), is_cut: false, ..flow_record() };
        let line = flow(&plain, "gate-1", "in0");
        assert!(line.get("vlan").is_none() && line["flow"].get("action").is_none());
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

    /// Has the schema of OISF judge `line`, and what is wrong about it; none where the schema or what
    /// reads it is missing.
    fn judged(line: &Value) -> Option<(bool, String)> {
        let schema = std::env::var_os("RINGWALL_EVE_SCHEMA")?;
        let mut judge = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/eve-test.py"));
        judge.arg(schema).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = judge.spawn().ok()?;
        child.stdin.take().expect("a pipe").write_all(format!("{line}\n").as_bytes()).expect("read");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code() != Some(3)).then_some((output.status.success(), said))
    }

    #[test]
    fn every_line_is_valid_by_the_schema_that_suricata_publishes() {
        let name = "every_line_is_valid_by_the_schema_that_suricata_publishes";
        let of_attacks = Kind::ALL.iter().map(|kind| lines(&full(*kind)));
        for lines in of_attacks.chain([vec![flow(&flow_record(), "gate-1", "in0")]]) {
            for line in lines {
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
            file.write(&lines(&attack())).expect("written");
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
        file.write(&lines(&attack())).expect("written");
        fs::rename(&name, &moved).expect("moved");
        file.write(&lines(&attack())).expect("written");
        file.reopen();
        file.write(&lines(&attack())).expect("written");
        let lines = |name: &Path| fs::read_to_string(name).expect("there").lines().count();
        assert_eq!((lines(&moved), lines(&name)), (4, 2), "an alert and a drop each");
    }
}
