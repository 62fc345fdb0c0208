//! A LAN moves to sealed frames step by step and back, under constant traffic between all pairs, with a printer that never will.

use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Host, Running, process};
use rustix::process::Signal;

use crate::bad_input::write;
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform};
use crate::wire::*;

/// The hosts that move.
const MOVING: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
/// The printer, on everybody's legacy list.
const PRINTER: &str = "k";
/// Each pair asks and answers as often in a second.
const PROBES_PER_SECOND: u32 = 5;
/// No step may cost a pair more answers in a row than that: 3 s.
const LOST_IN_A_ROW_MAX: u32 = 3 * PROBES_PER_SECOND;
/// How long a quiet LAN is watched.
const QUIET: Duration = Duration::from_secs(5);

/// Within this after a step nothing of it is left to be done.
const SETTLED: Duration = Duration::from_secs(3);

/// Sends each of the others a numbered question all the time, answers theirs, and says how many answers in a row did not come.
const PROBE: &str = r#"
import select, socket, struct, sys, time
pause, others = 1 / float(sys.argv[1]), sys.argv[2:]
port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
port.bind(("0.0.0.0", 4100))
last, number, due = {}, 0, time.monotonic()
while True:
    left = due - time.monotonic()
    if left <= 0:
        number, due = number + 1, max(due + pause, time.monotonic())
        for other in others:
            try:
                port.sendto(struct.pack("!cQ", b"Q", number), (other, 4100))
            except OSError:
                pass
        if number % 5 == 0:
            print("now", number, *(f"{other}={last.get(other, 0)}" for other in others), flush=True)
        continue
    if not select.select([port], [], [], left)[0]:
        continue
    try:
        packet, (source, _) = port.recvfrom(100)
    except OSError:
        continue
    kind, heard = struct.unpack("!cQ", packet[:9])
    if kind == b"Q":
        try:
            port.sendto(struct.pack("!cQ", b"A", heard), (source, 4100))
        except OSError:
            pass
    elif source in others:
        before = last.get(source)
        if before is not None and heard > before + 1:
            print("lost", source, heard - before - 1, flush=True)
        last[source] = max(heard, before or 0)
"#;

/// Everybody asks everybody.
struct Probes<'a> {
    stage: &'a Stage,
    running: Vec<(&'static str, Running)>,
    /// How much of each output was looked at.
    read: Vec<usize>,
}

impl<'a> Probes<'a> {
    fn start(stage: &'a Stage) -> Result<Probes<'a>, Failure> {
        let script = write(&stage.file("probe.py"), PROBE).display().to_string();
        let mut running = Vec::new();
        for host in &stage.lan.hosts {
            let others = stage.lan.hosts.iter().filter(|other| other.name != host.name);
            let others: Vec<String> = others.map(|other| other.ip.to_string()).collect();
            let mut command = host.namespace.command("/usr/bin/python3");
            command.arg("-u").arg(&script).arg(PROBES_PER_SECOND.to_string()).args(others);
            running.push((host.name, Running::start(command, &stage.file(&format!("probe-{}.log", host.name)))?));
        }
        let read = vec![0; running.len()];
        Ok(Probes { stage, running, read })
    }

    /// Waits until every pair answers.
    fn await_all(&self, when: &str) -> Outcome {
        process::until(&format!("answers between all pairs {when}"), SOON, || {
            Ok(self.running.iter().all(|(_, probe)| is_answered(&probe.output())))
        })
    }

    /// The most answers in a row that any pair missed since the last look, and whose they were.
    fn worst(&mut self) -> (u32, String) {
        let mut worst = (0, "nobody".to_owned());
        for ((name, probe), read) in self.running.iter().zip(&mut self.read) {
            let output = probe.output();
            // The last line may still be on its way.
            let end = output.rfind('\n').map_or(0, |end| end + 1);
            for line in output[*read..end].lines().filter(|line| line.starts_with("lost ")) {
                let mut words = line.split(' ').skip(1);
                let (whose, count) =
                    (words.next().unwrap_or_default(), words.next().and_then(|word| word.parse().ok()));
                let count: u32 = count.expect("a number");
                if count > worst.0 {
                    worst = (count, format!("{name} to {whose}"));
                }
            }
            *read = end;
        }
        worst
    }

    /// A step is done: everybody answers, and nobody was out for long.
    fn check(&mut self, step: &str, most: u32) -> Outcome {
        self.await_all(step)?;
        let (lost, whose) = self.worst();
        eprintln!("{step}: at most {lost} answers in a row missing ({whose})");
        assert!(lost <= most, "{step}: {lost} answers in a row missing from {whose}");
        let _stage_lives = &self.stage;
        Ok(())
    }

    /// Nothing is changed for a while, and nothing is lost.
    fn watch(&mut self, state: &str) -> Outcome {
        // The last step ends when the last pair has found out how it talks now.
        process::pause(SETTLED)?;
        self.check(&format!("before {state}"), LOST_IN_A_ROW_MAX)?;
        process::pause(QUIET)?;
        self.check(state, 0)
    }

    fn stop(self) {
        self.running.into_iter().for_each(|(_, probe)| drop(probe.stop(Signal::TERM)));
    }
}

/// Whether the last word of a probe says that all others have answered within the last second.
fn is_answered(output: &str) -> bool {
    let Some(line) = output.lines().rfind(|line| line.starts_with("now ")) else { return false };
    let mut words = line.split(' ').skip(1);
    let now: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
    words.all(|word| {
        let last = word.split_once('=').and_then(|(_, last)| last.parse::<u64>().ok());
        last.is_some_and(|last| last > 0 && last + u64::from(PROBES_PER_SECOND) >= now)
    })
}

fn moving(printer: &Host, mode: &str) -> Plan {
    let legacy = format!("[[cll.legacy]]\nip = \"{}\"\nmac = \"{}\"\n", printer.ip, printer.mac);
    Plan::default().cll(&format!("migration = \"{mode}\"")).tail(&legacy)
}

/// Writes another mode into the host's configuration.
fn set_mode(guarded: &Guarded, from: &str, to: &str) {
    let text = std::fs::read_to_string(&guarded.config).expect("written before");
    let other = text.replace(&format!("migration = \"{from}\""), &format!("migration = \"{to}\""));
    assert_ne!(text, other, "the mode was {from}");
    write(&guarded.config, &other);
}

/// Changes the mode of a running daemon.
fn change_mode(guarded: &Guarded, from: &str, to: &str) -> Outcome {
    set_mode(guarded, from, to);
    let said = guarded.ask(&["host", "reload"])?;
    assert!(said.status.success() && said.stdout.contains(&format!("mode {to} (it was {from})")), "{}", said.stdout);
    assert_eq!(guarded.status()?["migration"]["mode"], to);
    Ok(())
}

#[test]
fn ten_hosts_move_to_sealed_frames_and_back_one_by_one_and_no_pair_is_out_for_three_seconds() {
    let hosts: Vec<&str> = MOVING.into_iter().chain([PRINTER]).collect();
    perform(&hosts, |stage| {
        let mut probes = Probes::start(stage)?;
        probes.await_all("at the start")?;
        probes.worst();
        let printer = stage.host(PRINTER);
        let mut guarded = Vec::new();
        for name in MOVING {
            guarded.push(stage.guard(name, moving(printer, "observe"))?);
            probes.check(&format!("{name} to observe"), LOST_IN_A_ROW_MAX)?;
            if name == "e" {
                probes.watch("half of them in observe")?;
            }
        }
        probes.watch("all in observe")?;
        for (from, to) in [("observe", "prefer"), ("prefer", "enforce")] {
            for one in &guarded {
                change_mode(one, from, to)?;
                probes.check(&format!("{} to {to}", one.host.name), LOST_IN_A_ROW_MAX)?;
            }
            probes.watch(&format!("all in {to}"))?;
        }
        for one in &guarded {
            assert_eq!(one.status()?["peers"], MOVING.len() - 1, "everybody seals with everybody");
        }
        // A restart is a change of mode, too.
        let first = &mut guarded[0];
        set_mode(first, "enforce", "prefer");
        first.stop(Signal::TERM);
        first.start(&[])?;
        probes.check("a to prefer by a restart", LOST_IN_A_ROW_MAX)?;
        for one in &guarded[1..] {
            change_mode(one, "enforce", "prefer")?;
            probes.check(&format!("{} back to prefer", one.host.name), LOST_IN_A_ROW_MAX)?;
        }
        for one in &guarded {
            change_mode(one, "prefer", "observe")?;
            probes.check(&format!("{} back to observe", one.host.name), LOST_IN_A_ROW_MAX)?;
        }
        for one in &mut guarded {
            one.release()?;
            probes.check(&format!("{} back to clear", one.host.name), LOST_IN_A_ROW_MAX)?;
        }
        probes.watch("all in clear")?;
        probes.stop();
        Ok(())
    });
}

/// In the name of the host whose address and hardware address it is given: ARP replies and datagrams, from both hardware addresses.
const FORGE: &str = r#"
import socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("e0", 0))
own = wire.getsockname()[4]
victim_mac, victim_ip, forged_mac, forged_ip = sys.argv[1:5]
mac = lambda text: bytes.fromhex(text.replace(":", ""))
ip = socket.inet_aton
for source in (own, mac(forged_mac)):
    for claimed in (own, mac(forged_mac)):
        arp = bytes.fromhex("0001080006040002") + claimed + ip(forged_ip) + mac(victim_mac) + ip(victim_ip)
        wire.send(mac(victim_mac) + source + bytes.fromhex("0806") + arp + bytes(18))
    header = bytes.fromhex("450000280000000040110000") + ip(forged_ip) + ip(victim_ip)
    total = sum(int.from_bytes(header[at:at + 2], "big") for at in range(0, 20, 2))
    total = (total & 0xffff) + (total >> 16)
    total = 0xffff - ((total & 0xffff) + (total >> 16))
    header = header[:10] + total.to_bytes(2, "big") + header[12:]
    wire.send(mac(victim_mac) + source + bytes.fromhex("0800") + header + bytes.fromhex("0fa00fa000140000") + b"forged again")
"#;

#[test]
fn who_has_proved_himself_is_not_heard_in_clear_in_mode_prefer_until_he_is_forgotten() {
    perform(&["a", "b", "m"], |stage| {
        let (a, b, attacker) = (stage.host("a"), stage.host("b"), stage.host("m"));
        let prefer = || Plan::default().cll("migration = \"prefer\"");
        let mut near = stage.guard("a", prefer())?;
        let mut far = stage.guard("b", prefer())?;
        reach(&a.namespace, b.ip, SOON)?;
        reach(&a.namespace, attacker.ip, SOON)?;
        reach(&attacker.namespace, a.ip, SOON)?;
        assert_eq!(near.status()?["migration"]["proved"], 1);

        let stack = watch_stack(stage, a)?;
        let forgery = [a.mac.to_string(), a.ip.to_string(), b.mac.to_string(), b.ip.to_string()];
        let arguments = forgery.each_ref().map(String::as_str);
        for _ in 0..3 {
            python(attacker, FORGE, &arguments)?;
        }
        near.await_drops("downgrade", 9)?;
        near.await_event("downgrade", SOON)?;
        // Host b speaks, or the switch would go on to send the attacker what is for b.
        reach(&b.namespace, a.ip, SOON)?;
        assert!(pings(&a.namespace, b.ip, "")?, "the honest traffic lives");
        assert!(stack.stop()?.iter().all(|frame| !frame.contains(b"forged again")));
        assert_eq!(a.neighbour(b.ip)?.map(|entry| entry.mac), Some(b.mac));

        // The memory is in a file, so that a restart changes nothing.
        near.stop(Signal::TERM);
        near.start(&[])?;
        far.stop(Signal::TERM);
        far.release()?;
        assert!(!pings(&b.namespace, a.ip, "-W 2")? && !pings(&a.namespace, b.ip, "-W 2")?);
        assert!(near.drops("downgrade")? > 0);
        let said = near.ask(&["host", "forget", "b"])?;
        assert!(said.stdout.contains("is forgotten"), "{}{}", said.stdout, said.stderr);
        reach(&b.namespace, a.ip, SOON)?;
        let again = near.ask(&["host", "forget", "b"])?;
        assert!(!again.status.success() && again.stderr.contains("has proved itself"), "{}", again.stderr);
        Ok(())
    });
}

/// Whoever had spoken in another's name in mode observe is sent nothing from the moment on in which
/// a stricter mode is in force, and what the daemon has set for a printer stays.
#[test]
fn what_the_stack_has_learned_in_clear_is_forgotten_when_a_stricter_mode_comes() {
    perform(&["a", "b", "k", "m"], |stage| {
        let (a, b, printer, attacker) = (stage.host("a"), stage.host("b"), stage.host("k"), stage.host("m"));
        let near = stage.guard("a", moving(printer, "observe"))?;
        let _far = stage.guard("b", moving(printer, "observe"))?;
        reach(&a.namespace, b.ip, SOON)?;
        reach(&a.namespace, printer.ip, SOON)?;
        for (from, to) in [("observe", "prefer"), ("prefer", "enforce")] {
            a.namespace.ip(&format!("neigh replace {} lladdr {} dev e0 nud reachable", b.ip, attacker.mac))?;
            change_mode(&near, from, to)?;
            let believed = a.neighbour(b.ip)?.map(|entry| entry.mac);
            assert_ne!(believed, Some(attacker.mac), "{to}");
            let listed = a.neighbour(printer.ip)?.map(|entry| (entry.mac, entry.state));
            assert_eq!(listed, Some((printer.mac, "PERMANENT".to_owned())), "{to}");
            reach(&a.namespace, b.ip, SOON)?;
        }
        // One that lets more pass takes nothing away.
        let before = a.neighbour(b.ip)?.map(|entry| entry.mac);
        change_mode(&near, "enforce", "observe")?;
        assert_eq!((before, a.neighbour(b.ip)?.map(|entry| entry.mac)), (Some(b.mac), Some(b.mac)));
        Ok(())
    });
}

#[test]
fn a_managers_machine_reaches_one_port_of_a_host_that_enforces() {
    perform(&["a", "b", "m"], |stage| {
        let (a, manager) = (stage.host("a"), stage.host("m"));
        let section = format!("[[cll.management]]\nip = \"{}\"\nmac = \"{}\"\nport = 5022\n", manager.ip, manager.mac);
        let near = stage.guard("a", Plan::default().tail(&section))?;
        let stream = Stream::start(&manager.namespace, &a.namespace, a.ip, 5022)?;
        stream.await_progress(1 << 20, SOON)?;
        near.await_event("management-in-clear", SOON)?;
        assert!(!pings(&manager.namespace, a.ip, "-W 1")?, "nothing but that port");
        assert!(!pings(&stage.host("b").namespace, a.ip, "-W 1")?);
        let status = near.status()?;
        let named = status["migration"]["management"][0].as_str().unwrap_or_default();
        assert!(named.contains(&manager.ip.to_string()) && named.contains("5022"), "{status}");
        Ok(())
    });
}

#[test]
fn a_revocation_list_reaches_hosts_that_follow_no_file() {
    perform(&["a", "b", "c"], |stage| {
        let (a, b, c) = (stage.host("a"), stage.host("b"), stage.host("c"));
        let list = stage.site.directory().join("revoked.crl.pem");
        let following = Plan::default().cll(&format!("revocation_list = \"{}\"", list.display()));
        let (_near, mut far) = (stage.guard("a", following)?, stage.guard("b", Plan::default())?);
        let _revoked = stage.guard("c", Plan::default())?;
        reach(&a.namespace, b.ip, SOON)?;
        reach(&b.namespace, c.ip, SOON)?;
        stage.site.revoke("c")?;
        far.await_event("gave a newer list", SOON)?;
        far.await_event("the site has revoked the peer's certificate", SOON)?;
        assert!(!pings(&b.namespace, c.ip, "-W 2")? && !pings(&c.namespace, b.ip, "-W 2")?);
        assert_eq!(far.status()?["revoked"], 1);
        // What a peer gave is kept.
        far.stop(Signal::TERM);
        far.start(&[])?;
        assert_eq!(far.status()?["revoked"], 1);
        reach(&b.namespace, a.ip, SOON).map(drop)
    });
}
