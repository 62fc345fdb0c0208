//! All metrics of all kinds of daemons: their document, Prometheus' own opinion, and that no two
//! texts differ.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::daemon;
use super::family::{Families, Format};
use crate::protocol::Measured;

/// Set, the document is written instead of compared (packaging/pages.sh).
const WRITE_VARIABLE: &str = "RINGWALL_WRITE_PAGES";

fn frames() -> Value {
    let names = [
        "received_from_stack",
        "received_from_wire",
        "forwarded_to_wire",
        "forwarded_to_stack",
        "answered",
        "consumed",
        "held",
        "dropped",
        "made_for_wire",
        "made_for_stack",
        "emitted_to_wire",
        "emitted_to_stack",
    ];
    counted(&names)
}

fn gate_frames() -> Value {
    let names = [
        "received_from_trusted",
        "received_from_untrusted",
        "forwarded_to_untrusted",
        "forwarded_to_trusted",
        "answered",
        "consumed",
        "held",
        "dropped",
        "made_for_untrusted",
        "made_for_trusted",
    ];
    counted(&names)
}

/// Each of them a number that no other has.
fn counted(names: &[&str]) -> Value {
    names.iter().zip(101_u64..).map(|(name, value)| ((*name).to_owned(), Value::from(value))).collect()
}

fn ports(sides: [&str; 2]) -> Value {
    let ends = [
        "received_frames",
        "received_bytes",
        "received_super_frames",
        "received_segments",
        "received_unreadable",
        "kernel_drops",
        "sent_frames",
        "sent_bytes",
        "sent_super_frames",
        "sent_joined",
        "send_backlogs",
        "send_errors",
    ];
    let names = sides.iter().flat_map(|side| ends.map(|end| format!("{side}_{end}"))).chain(["news_lost".to_owned()]);
    let names: Vec<String> = names.collect();
    counted(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn attack() -> Value {
    json!({
        "number": 1, "host": "h", "interface": "e0", "mode": "cll", "kind": "arp-spoofing", "kind_number": 0,
        "severity": "warning", "priority": 4, "advice": "a", "phase": "opened", "source": {}, "target": {},
        "claimed": {}, "is_sum": false, "reason": "plain-arp", "count": 200, "first": "f", "last": "l",
        "first_unix_ms": 1, "last_unix_ms": 2, "sentence": "s", "sample_base64": "",
    })
}

fn common() -> Value {
    json!({
        "version": "0.1.0", "state": "running", "uptime_s": 5, "drops": { "plain-arp": 200, "replayed": 0 },
        "attacks": [attack()], "attacks_opened": 3, "records_lost": 1,
        "attacks_opened_by_kind": { "arp-spoofing": 2, "replay": 1, "rogue-dhcp": 0 }, "warnings": [],
    })
}

fn with(mut base: Value, more: Value) -> Value {
    let (Some(fields), Value::Object(more)) = (base.as_object_mut(), more) else { panic!("objects") };
    fields.extend(more);
    base
}

fn host(interface: &str, mode: &str, more: Value) -> Value {
    let status = json!({
        "answer": "status", "interface": interface, "mode": mode, "profile": "modern", "weakened": [], "peers": 1,
        "takeover": { "way": "in-place", "adopted": false, "on_exit": "closed", "carrier": true, "wire_mtu": 1500,
            "inner_mtu": 1435, "probes": {}, "warnings": [] },
        "identity": { "name": "a", "site": "s", "mac": "02:00:00:00:00:01", "addresses": [], "router": false,
            "certificate_days_left": 300, "authority_days_left": 3000,
            "certificate_not_after_unix": 1_800_000_000_u64, "authority_not_after_unix": 1_900_000_000_u64 },
        "frames": frames(), "ports": ports(["stack", "wire"]), "clock": "synchronised", "not_carried": [],
    });
    with(with(common(), status), more)
}

fn measured(status: Value, known: Value) -> Measured {
    let whole = json!({ "unix_ms": 1_790_000_000_000_u64, "started_unix_ms": 1_789_999_995_000_u64,
        "status": status, "known": known });
    serde_json::from_value(whole).expect("as the protocol has it")
}

/// A host in mode `cll`.
pub(crate) fn link_layer() -> Measured {
    let peer = json!({
        "name": "b", "mac": "02:00:00:00:00:02", "addresses": [], "router": false, "state": "established",
        "initiated": true, "rollovers": 0, "resumed": false, "age_s": 60, "remaining_s": 1, "last_opened_s": 3,
        "sends": "s", "receives": "r", "certificate_not_after_unix": 1,
    });
    let more = json!({
        "migration": { "mode": "prefer", "exceptions": {}, "management": [], "proved": 4, "in_clear": 2,
            "would_drop": { "plain-ip": 9 } },
        "policy": { "version": 4, "origin": "f", "own_file": [], "refused": { "forged": 8 } },
        "layers": { "wanted": "kernel", "in_force": "kernel", "dropped_in_kernel": { "tag": 5 } },
        "compression": { "compressed_frames": 1, "left_frames": 2, "bytes_before": 3, "bytes_after": 4,
            "expanded_frames": 5, "expanded_bytes_before": 6, "expanded_bytes_after": 7 },
    });
    measured(host("e0", "cll", more), json!({ "answer": "peers", "peers": [peer] }))
}

/// The text that Prometheus scrapes.
pub(crate) fn prometheus(measured: &Measured) -> String {
    super::text(measured, Format::Plain).expect("a text")
}

/// A host in mode `sarp`.
pub(crate) fn signed_arp() -> Measured {
    let more = json!({
        "sarp": { "clock_unix_s": 1, "window_s": 60, "sign_requests": true, "keys": 3, "open_requests": 0,
            "distributors_silent": false, "asked_first": null, "known_hosts": 0, "signatures": 8, "verifications": 9,
            "distributors": [{ "name": "k", "address": "192.0.2.9", "mac": "m",
                "certificate_not_after_unix": 1_800_000_001_u64, "certificate_days_left": 1 }] },
    });
    measured(host("e1", "sarp", more), json!({ "answer": "keys", "keys": [] }))
}

fn shield() -> Measured {
    let pair = json!({
        "address": "192.0.2.2", "has_shield": true, "epochs": [1], "known_spis": 2,
        "packets": { "sealed": 1, "passed": 2, "passed_in_kernel": 1, "on_trial": 3, "learned": 4, "unknown": 5,
            "out_of_range": 6, "used": 7, "far": 8, "over_budget": 9 },
    });
    measured(host("e2", "shield", json!({})), json!({ "answer": "pairs", "pairs": [pair] }))
}

fn gateway() -> Measured {
    let card = |name: &str| json!({ "interface": name, "mac": "m", "mtu": 1500, "carrier": true });
    let status = json!({
        "answer": "gate", "interface": "in0", "preset": "balanced", "changed_rules": {}, "trusted": card("in0"),
        "untrusted": card("out0"), "mirror": card("tap0"), "mtu": 1500, "adopted": false, "on_exit": "closed",
        "probes": {}, "frames": gate_frames(), "flows": 12, "flows_half_open": 3,
        "validates_addresses": true, "memory_bytes": 1000, "memory_idle_bytes": 24,
        "rules": { "tcp-overlap": 4 }, "ports": ports(["trusted", "untrusted"]),
        "pair": { "role": "standby", "since_s": 1, "peer": null, "in_sync": false, "lag_ms": 2, "messages_sent": 3,
            "messages_heard": 4, "records_sent": 5, "records_heard": 6, "bad_records": 7, "losses": 8, "stations": 9,
            "refused": { "forged": 10 }, "waited": { "in-vain": 11 } },
    });
    measured(with(common(), status), json!({ "answer": "peers", "peers": [] }))
}

/// One machine with a daemon of each kind.
fn all() -> Families {
    let mut families = Families::new();
    for one in [link_layer(), signed_arp(), shield(), gateway()] {
        daemon::describe(&mut families, &one);
    }
    daemon::silent(&mut families, "e9");
    families
}

/// Has Prometheus' own tool read `text`; none where there is no such tool.
fn promtool(text: &str) -> Option<(bool, String)> {
    let mut tool = Command::new("promtool");
    tool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = tool.spawn().ok()?;
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("read");
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[test]
fn prometheus_finds_no_fault_in_the_metrics_of_any_daemon() {
    let text = all().text(Format::Plain).expect("text");
    let Some((is_well, said)) = promtool(&text) else {
        eprintln!(
            "SKIPPED prometheus_finds_no_fault_in_the_metrics_of_any_daemon: needs promtool (package prometheus)"
        );
        return;
    };
    assert!(is_well && said.is_empty(), "{said}\n{text}");
    let (is_well, said) = promtool("# TYPE a_days gauge\na_days 1\n").expect("it was there");
    assert!(!is_well && said.contains("a_days"), "it would say so: {said}");
}

#[test]
fn two_texts_of_one_state_are_equal_and_samples_are_those_of_the_state() {
    let text = |format| all().text(format).expect("text");
    let plain = text(Format::Plain);
    for format in [Format::Plain, Format::OpenMetrics] {
        assert_eq!(text(format), text(format));
    }
    for line in [
        "ringwall_received_frames_total{interface=\"e0\",side=\"wire\"} 102",
        "ringwall_received_frames_total{interface=\"in0\",side=\"untrusted\"} 102",
        "ringwall_dropped_frames_total{interface=\"e0\",reason=\"plain-arp\"} 200",
        "ringwall_attacks_total{interface=\"e0\",kind=\"arp-spoofing\"} 2",
        "ringwall_attacks_open{interface=\"e0\",kind=\"arp-spoofing\"} 1",
        "ringwall_attacks_open{interface=\"e0\",kind=\"replay\"} 0",
        "ringwall_port_sent_super_frames_total{interface=\"e0\",side=\"stack\"} 109",
        "ringwall_port_sent_frames_total{interface=\"e0\",side=\"stack\"} 107",
        "ringwall_association_heard_timestamp_seconds{interface=\"e0\",name=\"b\",mac=\"02:00:00:00:00:02\"} 1789999997",
        "ringwall_start_time_seconds{interface=\"in0\"} 1789999995",
        "ringwall_up{interface=\"e9\"} 0",
        "ringwall_build_info{version=\"0.1.0\"} 1",
        "ringwall_shield_packets_total{interface=\"e2\",peer=\"192.0.2.2\",fate=\"out-of-range\"} 6",
        "ringwall_gate_memory_bytes{interface=\"in0\",use=\"idle\"} 24",
        "ringwall_gate_pair_records_total{interface=\"in0\",direction=\"heard\"} 6",
        "ringwall_gate_pair_waited_total{interface=\"in0\",fate=\"in-vain\"} 11",
    ] {
        assert!(plain.lines().any(|other| other == line), "{line}\n{plain}");
    }
}

/// Every counter of the ports has a metric of its own, and none is told twice.
#[test]
fn every_counter_of_the_ports_is_told_once() {
    let plain = all().text(Format::Plain).expect("text");
    let of_ports = plain.lines().filter(|line| line.starts_with("ringwall_port_") && line.contains("\"e0\""));
    let mut values: Vec<u64> =
        of_ports.map(|line| line.rsplit_once(' ').expect("a value").1.parse().expect("a number")).collect();
    values.sort_unstable();
    assert_eq!(values, (101..125).collect::<Vec<u64>>());
}

#[test]
fn the_document_names_every_metric() {
    let mut page = String::from(
        "# Metrics\n\nMade by `packaging/pages.sh`; a test compares. How they are scraped is in \
         [the manual](manual/monitoring.md#metrics). Each sample but that of `ringwall_build_info` has the label\n\
         `interface`; of a gateway that is the trusted one. Labels are never free text of strangers.\n\n\
         | metric | meaning |\n|---|---|\n",
    );
    for (name, help) in all().named() {
        let _ = writeln!(page, "| `{name}` | {help} |");
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        std::fs::write(&file, page).expect("written");
    } else {
        assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), page, "run packaging/pages.sh");
    }
}

/// Alerts and dashboard speak of metrics that there are, and read every kind of text that names
/// one.
#[test]
fn alerts_and_dashboard_name_metrics_that_there_are() {
    let named: Vec<String> = all().named().into_iter().map(|(name, _)| name).collect();
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/monitoring");
    for (file, least) in [("ringwall.rules.yml", 10), ("ringwall.dashboard.json", 15)] {
        let text = std::fs::read_to_string(place.join(file)).expect("it is there");
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let metrics: Vec<&str> = words.filter(|word| word.starts_with("ringwall_")).collect();
        assert!(metrics.len() >= least, "{file} has {metrics:?}");
        let unknown: Vec<_> = metrics.iter().filter(|name| !named.iter().any(|other| other == *name)).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    let dashboard = std::fs::read_to_string(place.join("ringwall.dashboard.json")).expect("it is there");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.iter().all(|panel| panel["targets"].as_array().is_some_and(|targets| !targets.is_empty())));
}
