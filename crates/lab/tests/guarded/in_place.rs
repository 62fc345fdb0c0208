//! The card stays where it is: what programs and managers had of it goes on, and packets of the wire's MTU arrive
//! although a sealed frame has less room.

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::{INTERFACE, set_offloads};
use ringwall_lab::net::talk::{Mailbox, reach};
use ringwall_lab::net::{Frame, Host, Watch, link, process};
use rustix::process::Signal;

use crate::attacks::spoof;
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform};
use crate::wire::*;

/// Bytes over TCP that need many full segments each way.
const BULK: u64 = 8 << 20;

fn guard_both(stage: &Stage, far: &str) -> Result<(Guarded, Guarded), Failure> {
    let plan = |way| Plan::way(way).cll("trains = \"off\"");
    let guarded = (stage.guard("a", plan("in-place"))?, stage.guard("b", plan(far))?);
    reach(&stage.host("a").namespace, stage.host("b").ip, SOON)?;
    Ok(guarded)
}

/// What `ip` says of the interface: number, address, flags and MTU.
fn device(host: &Host) -> Result<String, Failure> {
    let line = host.namespace.ip(&format!("-o link show dev {INTERFACE}"))?;
    // A program in front of the card shows between MTU and queue.
    Ok(line
        .split_whitespace()
        .filter(|word| !word.starts_with("xdp") && !word.starts_with("prog/"))
        .collect::<Vec<_>>()
        .join(" "))
}

#[test]
fn what_was_open_before_goes_on_and_the_device_is_the_same() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (before, routes) = (device(a)?, a.namespace.ip("route")?);
        // Opened before, by number and by name.
        let (ears, mouth) = (Mailbox::open(a, PORT)?, Mailbox::open(b, PORT)?);
        let (mut near, _far) = guard_both(stage, "in-place")?;
        assert!(device(a)?.contains("mtu 1500"), "{}", device(a)?);
        await_datagram(&mouth, a, &ears, SOON)?;
        assert_eq!(near.status()?["takeover"]["way"], "in-place");
        near.stop(Signal::KILL);
        assert!(!pings(&a.namespace, b.ip, "-W 1")?, "a dead daemon lets a ping through");
        near.launch(&[])?;
        near.await_ready()?;
        await_datagram(&mouth, a, &ears, SOON)?;
        assert_eq!(near.status()?["takeover"]["adopted"], true);
        near.release()?;
        assert_eq!((device(a)?, a.namespace.ip("route")?), (before, routes));
        assert!(!a.namespace.ip("link")?.contains("rw."), "the TAP is left");
        Ok(())
    });
}

/// Also from and to a host whose card is in a namespace, and whose stack knows the smaller MTU.
#[test]
fn packets_of_the_wires_mtu_arrive_or_their_sender_is_told() {
    for far in ["in-place", "namespace"] {
        perform(&["a", "b"], |stage| {
            let (a, b) = (stage.host("a"), stage.host("b"));
            let (near, _far) = guard_both(stage, far)?;
            // May not be cut: the stack learns once, and what fits then arrives.
            let mut command = a.namespace.command("ping");
            command.args(["-M", "do", "-c", "2", "-W", "1", "-s", "1472", &b.ip.to_string()]);
            let said = process::ask(command, &[])?;
            let told = [&said.stdout[..], &said.stderr[..]].concat();
            assert!(told.contains("mtu = 1463") || told.contains("mtu=1463"), "{told}");
            assert!(pings(&a.namespace, b.ip, "-M do -s 1435")?, "what fits arrives");
            a.namespace.ip("route flush cache")?;
            assert!(pings(&a.namespace, b.ip, "-M dont -s 1472")?, "one that may be cut");
            assert!(pings(&a.namespace, b.ip, "-M dont -s 20000")?, "one that the stack cuts first");
            let frames = &near.status()?["frames"];
            assert!(frames["answered"].as_u64() >= Some(1), "{frames}");
            tcp_both_ways(a, b)
        });
    }
}

/// What no configuration lets in: behind a tag of a VLAN.
const NEVER: &str = r#"
import socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("e0", 0))
own = wire.getsockname()[4]
victim = bytes.fromhex(sys.argv[1].replace(":", ""))
for _ in range(int(sys.argv[2])):
    wire.send(victim + own + bytes.fromhex("810000070800") + b"never let in" * 5)
"#;
const NEVER_TIMES: usize = 50;

fn send_never(from: &Host, to: &Host) -> Outcome {
    python(from, NEVER, &[&to.mac.to_string(), &NEVER_TIMES.to_string()]).map(drop)
}

/// Forges answers, and waits until the wire has brought one of them. A witness misses some of many.
fn spoof_seen(liar: &Host, victim: &Host, owner: &Host, arriving: &Watch) -> Outcome {
    let is_forged = |frame: &Frame| frame.claims(owner.ip, liar.mac);
    let before = arriving.so_far()?.iter().filter(|frame| is_forged(frame)).count();
    spoof(liar, victim, owner)?;
    await_frames(arriving, "forged ARP on the wire", before + 1, is_forged)
}

/// A program that listens from before the start on hears nothing that the daemon has not let in,
/// also where it lets some in, and when it is dead.
#[test]
fn programs_hear_nothing_in_clear_that_was_not_judged() {
    for lets_in in ["migration = \"observe\"", "migration = \"prefer\"", "", "legacy"] {
        perform(&["a", "b", "c", "x"], |stage| {
            let [a, b, c, x] = ["a", "b", "c", "x"].map(|name| stage.host(name));
            let (ears, arriving) = (watch_stack(stage, a)?, watch_arriving(stage, a)?);
            let (mouth, mailbox) = (Mailbox::open(c, PORT)?, Mailbox::open(a, PORT)?);
            let is_spoofed = |frame: &Frame| frame.claims(b.ip, x.mac);
            let is_never = |frame: &Frame| frame.contains(b"never let in");
            spoof(x, a, b)?;
            await_frames(&ears, "ARP before the start", 1, is_spoofed)?;
            a.namespace.ip(&format!("neigh flush dev {INTERFACE}"))?;
            let legacy = format!("[[cll.legacy]]\nip = \"{}\"\nmac = \"{}\"\n", c.ip, c.mac);
            let plan = || match lets_in {
                "legacy" => Plan::default().tail(&legacy),
                mode => Plan::default().cll(mode),
            };
            let (mut near, _far) = (stage.guard("a", plan())?, stage.guard("b", plan())?);
            assert_eq!(near.status()?["takeover"]["way"], "in-place", "by itself");
            reach(&a.namespace, b.ip, SOON)?;
            let before = ears.so_far()?.len();
            if !lets_in.is_empty() {
                await_datagram(&mouth, a, &mailbox, SOON)?;
            }
            send_never(x, a)?;
            near.await_drops("vlan-tagged", 1)?;
            if lets_in != "migration = \"observe\"" {
                spoof_seen(x, a, b, &arriving)?;
            }
            near.stop(Signal::KILL);
            send_never(x, a)?;
            await_frames(&arriving, "what is never let in, on the wire", 1, is_never)?;
            spoof_seen(x, a, b, &arriving)?;
            let heard = ears.stop()?;
            let bad = heard[before..].iter().filter(|frame| is_spoofed(frame) || is_never(frame));
            assert_eq!(bad.count(), 0, "{lets_in}: a program has heard what was not judged, or not let in");
            assert!(heard.len() > before || lets_in.is_empty(), "{lets_in}: it hears what is let in");
            Ok(())
        });
    }
}

/// Frames of one flood.
const FLOOD: u64 = 20_000;

/// Whoever floods in clear is counted in front of the card, and the daemon has little to do with
/// it.
#[test]
fn of_a_flood_in_clear_the_daemon_is_given_a_sample_and_all_is_counted() {
    perform(&["a", "x"], |stage| {
        let (a, x) = (stage.host("a"), stage.host("x"));
        let near = stage.guard("a", Plan::way("in-place"))?;
        let (begun, before) = (std::time::Instant::now(), near.status()?);
        let frame = [&a.mac.0[..], &x.mac.0, &[8, 0], &[7; 46]].concat();
        let mut port = x.namespace.enter(|| link::open_to_send(INTERFACE))?;
        for _ in 0..FLOOD {
            link::put(&mut port, &Frame(frame.clone()));
            system::port::Sender::flush(&mut port.sender);
        }
        near.await_drops("unsealed", before["drops"]["unsealed"].as_u64().unwrap_or(0) + FLOOD)?;
        let after = near.status()?;
        let seconds = begun.elapsed().as_secs() + 1;
        let read = |status: &serde_json::Value| status["ports"]["wire_received_frames"].as_u64().expect("a number");
        let sample = read(&after) - read(&before);
        assert!((1..=16 + 20 * seconds).contains(&sample), "{sample} in {seconds} s");
        let explained = near.ask(&["explain", "unsealed"])?.stdout;
        assert!(explained.contains(&x.mac.to_string()), "an example: {explained}");
        Ok(())
    });
}

fn tcp_both_ways(a: &Host, b: &Host) -> Outcome {
    let up = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
    let down = Stream::start(&b.namespace, &a.namespace, a.ip, 5002)?;
    up.await_progress(BULK, SOON)?;
    down.await_progress(BULK, SOON)
}

/// As nftables.service does with each start.
#[test]
fn who_flushes_all_rules_opens_nothing_and_the_next_start_mends_it() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (mut near, _far) = guard_both(stage, "in-place")?;
        let clear = watch_sent_in_clear(stage, a)?;
        let mut flush = a.namespace.command("nft");
        flush.args(["flush", "ruleset"]);
        process::must(flush)?;
        assert!(!pings(&a.namespace, b.ip, "-W 1")?, "nobody takes what the stack says");
        process::until("the daemon ends", SOON, || Ok(near.ensure_alive().is_err()))?;
        assert!(near.log().contains("somebody took nftables' rules away"), "{}", near.log());
        near.stop(Signal::TERM);
        near.launch(&[])?;
        near.await_ready()?;
        reach(&a.namespace, b.ip, SOON)?;
        assert_eq!(clear.stop()?, Vec::<Frame>::new());
        Ok(())
    });
}

/// Datagrams that sealed frames travel in pass the guard, and packets leave room for their headers.
#[test]
fn bulk_travels_in_trains() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let plan = || Plan::way("in-place").cll("trains = \"always\"");
        let (near, far) = (stage.guard("a", plan())?, stage.guard("b", plan())?);
        reach(&a.namespace, b.ip, SOON)?;
        tcp_both_ways(a, b)?;
        for guarded in [&near, &far] {
            let status = guarded.status()?;
            let ports = &status["ports"];
            assert_eq!(status["takeover"]["inner_mtu"], 1435);
            assert!(ports["wire_sent_joined"].as_u64() > Some(100), "few frames rode in trains: {ports}");
            assert!(ports["wire_received_segments"].as_u64() > Some(100), "few were unloaded: {ports}");
            assert_eq!(guarded.drops("unsealed")?, 0);
        }
        Ok(())
    });
}

/// Without any offload every segment is a frame, and nothing joins what arrives.
#[test]
fn streams_pass_without_offloads_and_with_another_mtu() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        for host in [a, b] {
            set_offloads(&host.namespace, INTERFACE, &["tso", "off", "gso", "off", "gro", "off", "tx", "off"])?;
        }
        let (near, far) = guard_both(stage, "in-place")?;
        tcp_both_ways(a, b)?;
        for (mtu, inner) in [(1400, 1363), (1500, 1463)] {
            for (host, guarded) in [(a, &near), (b, &far)] {
                host.namespace.ip(&format!("link set {INTERFACE} mtu {mtu}"))?;
                process::until(
                    "the MTU is followed",
                    SOON,
                    || Ok(guarded.status()?["takeover"]["inner_mtu"] == inner),
                )?;
            }
            tcp_both_ways(a, b)?;
            assert!(pings(&a.namespace, b.ip, &format!("-M dont -s {}", mtu - 28))?, "{mtu}");
        }
        Ok(())
    });
}

/// Runs the package's script with these words in the host's namespace, where udev has come to nothing.
fn closed(host: &Host, words: &str) -> Result<String, Failure> {
    closed_after(host, "true", words)
}

/// The same after `before`, which has a `/run` of its own.
fn closed_after(host: &Host, before: &str, words: &str) -> Result<String, Failure> {
    let mut script = host.namespace.command("unshare");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/closed.sh");
    let run = format!("mount -t sysfs none /sys && mount -t tmpfs none /run && {before} && exec sh {file} {words}");
    script.args(["--mount", "sh", "-c", &run]);
    process::must(script)
}

/// What a rule of udev does with a card that comes, which is called otherwise until udev has renamed it. It has its new
/// name beside its own by then; another device that has it keeps udev from renaming.
#[test]
fn a_card_that_comes_is_closed_by_the_name_that_it_gets_unless_another_device_has_it() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let appear = || closed(a, &format!("appear ens3 {INTERFACE}"));
        a.namespace.ip("link add ens3 type veth peer name far")?;
        appear()?;
        assert!(pings(&a.namespace, b.ip, "")?, "closed for another device's name");
        a.namespace.ip("link del ens3")?;
        a.namespace.ip(&format!("link property add dev {INTERFACE} altname ens3"))?;
        appear()?;
        for host in [a, b] {
            host.namespace.ip("neigh flush all")?;
        }
        assert!(!pings(&a.namespace, b.ip, "-W 1")?, "open");
        assert_eq!(b.neighbour(a.ip)?, None, "it was asked for its address");
        Ok(())
    });
}

/// A manager that does not wait for udev sends by the device that it has made at once. It finds it
/// closed by its name, from the first frame on, until somebody opens it. The card plays the bond,
/// which not every kernel has.
#[test]
fn what_is_yet_to_be_made_is_closed_by_its_name() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let rename = |from: &str, to: &str| -> Outcome {
            for words in [format!("set {from} down"), format!("set {from} name {to}"), format!("set {to} up")] {
                a.namespace.ip(&format!("link {words}"))?;
            }
            Ok(())
        };
        let is_heard = || {
            b.namespace.ip("neigh flush all")?;
            let answered = pings(&a.namespace, b.ip, "-c 3 -i 0.3 -W 1")?;
            Ok::<_, Failure>((answered, b.neighbour(a.ip)?.is_some()))
        };
        closed(a, "ahead bond0")?;
        assert_eq!(is_heard()?, (true, true), "another name was closed");
        rename(INTERFACE, "bond0")?;
        assert_eq!(is_heard()?, (false, false), "open before anybody has shut the device");
        // From here on the device itself is closed, and nothing by its name.
        closed(a, "made bond0 9999")?;
        assert_eq!(is_heard()?, (false, false), "open between both");
        closed(a, "open bond0")?;
        assert_eq!(is_heard()?, (true, true));
        // Behind udev a daemon may have opened it.
        let behind_udev = "mkdir -p /run/udev/data && : > /run/udev/data/n9999";
        closed_after(a, behind_udev, "made bond0 9999")?;
        assert_eq!(is_heard()?, (true, true), "closed over its daemon's head");
        // What is there is left to udev's rule and to its daemon.
        closed(a, "ahead bond0")?;
        assert_eq!(is_heard()?, (true, true), "a device that is guarded was closed");
        rename("bond0", INTERFACE)?;
        closed(a, "ahead bond0")?;
        rename(INTERFACE, "bond0")?;
        assert_eq!(is_heard()?, (false, false));
        closed(a, "release bond0")?;
        assert_eq!(is_heard()?, (true, true), "the way out does not open");
        rename("bond0", INTERFACE)
    });
}
