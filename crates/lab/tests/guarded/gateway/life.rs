//! A gateway starts, dies, comes back and goes, and falls shut in between.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;
use rustix::process::Signal;

use super::{PATIENCE, Path, TRUSTED, UNTRUSTED, perform_between, perform_with};
use crate::stage::{Outcome, SOON};

/// Sends `word` from one end to the other.
pub fn say(from: &mut TcpStream, to: &mut TcpStream, word: &[u8]) -> std::io::Result<()> {
    from.write_all(word)?;
    let mut heard = vec![0; word.len()];
    to.read_exact(&mut heard)?;
    assert_eq!(heard, word);
    Ok(())
}

fn kill_and_start(path: &mut Path) -> Outcome {
    path.stop(Signal::KILL);
    assert!(!path.pings("")?, "nothing passes without a daemon");
    assert!(!crate::wire::pings(&path.trusted, super::UNTRUSTED, "")?, "the other way neither");
    path.start()?;
    assert_eq!(path.status()?["adopted"], true);
    assert!(path.pings("")?);
    Ok(())
}

#[test]
fn nothing_passes_a_killed_gateway_and_adopted_connections_go_on() {
    perform_between("adopt = true", |path| {
        let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
        say(&mut client, &mut server, b"before").map_err(Failure::io("talking"))?;
        kill_and_start(path)?;
        // The trusted side shows that it knows the connection.
        say(&mut server, &mut client, b"here I am").map_err(Failure::io("talking after the restart"))?;
        say(&mut client, &mut server, b"and so am I").map_err(Failure::io("talking after the restart"))?;
        Ok(())
    });
}

/// Whether the end of a connection has heard that it is over; what it hears before that is a failure.
fn is_reset(end: &mut TcpStream) -> Result<bool, Failure> {
    end.set_nonblocking(true).map_err(Failure::io("looking at a connection"))?;
    match end.read(&mut [0; 64]) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(true),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        other => panic!("{other:?} after the keys were lost"),
    }
}

/// Waits until each end has heard that its connection is over.
pub(super) fn await_resets(mut waiting: Vec<TcpStream>) -> Outcome {
    process::until("the end of connections at all hosts", PATIENCE, || {
        let mut failed = Ok(());
        waiting.retain_mut(|end| {
            is_reset(end).map(|reset| !reset).unwrap_or_else(|failure| {
                failed = Err(failure);
                true
            })
        });
        failed.map(|()| waiting.is_empty())
    })
}

#[test]
fn without_adoption_older_connections_end_and_new_ones_pass() {
    perform_between("adopt = false", |path| {
        let [mut client, server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
        kill_and_start(path)?;
        client.write_all(b"is anybody there").map_err(Failure::io("talking"))?;
        await_resets(vec![client, server])?;
        let events = path.ask(&["events"])?.stdout;
        assert!(events.contains("older-ended"), "{events}");
        let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5002)?;
        say(&mut client, &mut server, b"a new one").map_err(Failure::io("talking on a new connection"))
    });
}

#[test]
fn release_gives_the_interfaces_back_and_leaves_the_keys_only() {
    perform_between("", |path| {
        assert!(!path.gate.ip("-br link")?.contains("in0"), "the card has left");
        let said = path.ask(&["gate", "release"])?;
        assert!(said.status.success(), "{}", said.stderr);
        let links = path.gate.ip("-br link")?;
        assert!(links.contains("in0@") && links.contains("out0@"), "{links}");
        let left: Vec<_> = std::fs::read_dir(path.directory.join("run"))
            .map_err(Failure::io("reading"))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        assert_eq!(left, ["in0.keys"]);
        path.start()
    });
}

#[test]
fn prometheus_scrapes_a_gateway() {
    perform_with(&["prometheus", "promtool"], crate::metrics::LISTEN_LINES, |path| {
        process::until("an answered ping", SOON, || path.pings(""))?;
        let prometheus = crate::metrics::Prometheus::start(&path.gate, &path.directory)?;
        prometheus.assert_well()
    });
}

#[test]
fn an_operator_is_told_what_it_does() {
    perform_between("real_time_priority = 12\n[gate.rules]\ntcp-fin = \"sever\"", |path| {
        assert!(path.pings("")?);
        let status = path.ask(&["status"])?.stdout;
        let told = ["trusted: in0", "untrusted: out0", "preset: balanced, but tcp-fin = sever", "on exit closed"];
        for words in told.into_iter().chain(["real-time priority: 12"]) {
            assert!(status.contains(words), "{words}: {status}");
        }
        let json = path.status()?;
        assert!(json["frames"]["forwarded_to_trusted"].as_u64() > Some(0), "{json}");
        assert_eq!(json["rules"]["tcp-fin"], 0, "{json}");
        let metrics = path.ask(&["metrics"])?.stdout;
        assert!(metrics.contains("ringwall_carrier{interface=\"in0\",card=\"untrusted\"} 1"), "{metrics}");
        path.hang_up("read again: ")?;
        // The gateway lets no two echo replies of one pair pass within a short time.
        process::until("a ping after the hangup", SOON, || path.pings(""))?;
        path.trusted.ip("link set e0 down")?;
        process::until("the event", SOON, || Ok(path.ask(&["events"])?.stdout.contains("in0 (trusted): carrier off")))?;
        assert!(path.ask(&["explain"])?.status.success());
        let peers = path.ask(&["peers"])?;
        assert!(!peers.status.success() && peers.stderr.contains("has no peers"), "{}", peers.stderr);
        Ok(())
    });
}

#[test]
fn what_is_wrong_is_said_in_one_line_and_nothing_is_taken() {
    perform_between("", |path| {
        path.stop(Signal::TERM);
        process::must(path.command(&["gate", "release"]))?;
        path.gate.ip("address add 192.0.2.1/24 dev out0")?;
        let cases: [(&[&str], &str); 4] = [
            (&["gate", "run"], "out0: has the address 192.0.2.1"),
            (&["gate", "run", "--untrusted", "nosuch0"], "nosuch0: no such interface"),
            (&["gate", "run", "--untrusted", "in0"], "in0 is named twice"),
            (&["gate", "run", "--preset", "soft"], "paper, balanced or strict"),
        ];
        for (words, part) in cases {
            let said = path.ask(words)?;
            assert!(!said.status.success(), "{words:?}");
            assert!(said.stderr.contains(part), "{words:?}: {}", said.stderr);
            let links = path.gate.ip("-br link")?;
            assert!(links.contains("in0@") && links.contains("out0@"), "{links}");
        }
        Ok(())
    });
}

#[test]
fn a_connection_is_listed_and_ended_by_the_operator() {
    perform_between("", |path| {
        let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
        say(&mut client, &mut server, b"hello").map_err(Failure::io("talking"))?;
        let flows = path.json(&["gate", "flows", "--address", "10.6.0.2", "--state", "established"])?;
        let [flow] = &flows.as_array().expect("a list")[..] else { panic!("{flows}") };
        assert_eq!((&flow["trusted"], &flow["bytes_from_untrusted"]), (&"10.6.0.1:5001".into(), &5.into()), "{flow}");
        let ends = [flow["trusted"].as_str().expect("text"), flow["untrusted"].as_str().expect("text")];
        process::must(path.command(&["gate", "block", ends[0], ends[1]]))?;
        assert_eq!(path.json(&["gate", "block"])?[0]["untrusted"], ends[1], "it is listed");
        client.write_all(b"anybody there?").map_err(Failure::io("talking"))?;
        assert_eq!(hung_up(&mut client), ErrorKind::ConnectionReset);
        assert_eq!(hung_up(&mut server), ErrorKind::ConnectionReset);
        process::must(path.command(&["gate", "block", "--undo", ends[0], ends[1]]))?;
        assert_eq!(path.json(&["gate", "block"])?, serde_json::json!([]));
        let again = path.ask(&["gate", "block", "--undo", ends[0], ends[1]])?;
        assert!(again.stderr.contains("is not blocked"), "{}", again.stderr);
        Ok(())
    });
}

/// No intrusion detection system of Suricata's kind is to be had here: its alert is written in its
/// documented form, with the source and the destination as it sees them on the wire.
#[test]
fn a_connection_that_an_ids_condemns_ends_whichever_side_began() {
    perform_between("", |path| {
        let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
        let [mut other, mut other_server] = path.connect(&path.trusted, &path.untrusted, UNTRUSTED, 5002)?;
        let [mut spared, mut spared_server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5003)?;
        let pairs = [(&mut client, &mut server), (&mut other, &mut other_server), (&mut spared, &mut spared_server)];
        for (one, end) in pairs {
            say(one, end, b"hello").map_err(Failure::io("talking"))?;
        }
        let alerts = [alert(&client, 1, 3001)?, alert(&other, 3, 3002)?, alert(&spared, 2, 3003)?];
        let nobody = r#"{"event_type":"alert","src_ip":"10.6.0.9","src_port":1,"dest_ip":"10.6.0.8","dest_port":2,
            "proto":"TCP","alert":{"severity":1,"signature_id":9}}"#;
        let nobody = nobody.replace('\n', "");
        let text = format!("{}\n{}\n{}\n{nobody}\nnoise\n", alerts[0], alerts[1], alerts[2]);
        let words = ["gate", "respond", "--eve", "-", "--severity", "1", "--signature", "3002"];
        let told = process::ask(path.command(&words), text.as_bytes())?;
        assert!(told.status.success(), "{}", told.stderr);
        let counted = "2 ended; alerts that ended nothing: 1 not chosen, 1 of connections that are unknown";
        assert!(told.stdout.contains(counted), "{}", told.stdout);
        assert!(told.stdout.contains("1 lines malformed"), "{}", told.stdout);
        client.write_all(b"anybody there?").map_err(Failure::io("talking"))?;
        other.write_all(b"anybody there?").map_err(Failure::io("talking"))?;
        for end in [&mut client, &mut server, &mut other, &mut other_server] {
            assert_eq!(hung_up(end), ErrorKind::ConnectionReset);
        }
        say(&mut spared, &mut spared_server, b"still here").map_err(Failure::io("talking"))?;
        path.stop(Signal::TERM);
        let told = process::ask(path.command(&words), text.as_bytes())?;
        assert!(told.stdout.contains("3 that the gateway did not take"), "{} {}", told.stdout, told.stderr);
        Ok(())
    });
}

fn alert(end: &TcpStream, severity: u8, signature: u32) -> Result<String, Failure> {
    let (from, to) =
        (end.local_addr().map_err(Failure::io("asking"))?, end.peer_addr().map_err(Failure::io("asking"))?);
    let ends = format!(
        r#""src_ip":"{}","src_port":{},"dest_ip":"{}","dest_port":{}"#,
        from.ip(),
        from.port(),
        to.ip(),
        to.port()
    );
    let alert =
        format!(r#"{{"action":"allowed","severity":{severity},"signature_id":{signature},"signature":"TEST"}}"#);
    Ok(format!(r#"{{"event_type":"alert",{ends},"proto":"TCP","alert":{alert}}}"#))
}

fn hung_up(end: &mut TcpStream) -> ErrorKind {
    end.read(&mut [0]).map_or_else(|error| error.kind(), |_| ErrorKind::Other)
}
