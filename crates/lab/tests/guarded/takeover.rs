//! The interface is taken over: nobody but the daemon hears or speaks on the wire, whatever becomes of the daemon, and
//! what was taken is given back exactly.

use std::time::{Duration, Instant};

use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::{Mailbox, reach};
use ringwall_lab::net::{Direction, Frame, Host, Lan, Watch, process};
use rustix::process::{Signal, kill_process_group};
use serde_json::Value;
use wire::EtherType;

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, ip, mounts_below, perform, span};
use crate::wire::*;

/// How long a stack is given for what it must not do.
const PATIENCE: Duration = Duration::from_millis(1200);
/// The next start restores traffic within this on a machine that has other things to do, where TCP
/// waits longer with each try.
const RESTORED_MAX: Duration = Duration::from_secs(60);

#[test]
fn plain_frames_reach_nobody_behind_a_namespace() {
    perform(&["a", "c"], |stage| plain_frames_reach_nobody(stage, "namespace"));
}

#[test]
fn plain_frames_reach_nobody_in_place() {
    perform(&["a", "c"], |stage| plain_frames_reach_nobody(stage, "in-place"));
}

fn plain_frames_reach_nobody(stage: &Stage, way: &str) -> Outcome {
    let (a, c) = (stage.host("a"), stage.host("c"));
    let (victim, sender) = (Mailbox::open(a, PORT)?, Mailbox::open(c, PORT)?);
    c.pin_neighbour(a)?;
    await_datagram(&sender, a, &victim, SOON)?;
    assert!(answers_arp(c, a.ip)?, "without Ringwall a plain host answers ARP");

    let guarded = stage.guard("a", Plan::way(way))?;
    let later = Mailbox::open(a, PORT + 1)?;
    let (arriving, stack) = (watch_arriving(stage, a)?, watch_stack(stage, a)?);
    victim.take()?;
    for port in [PORT, PORT, PORT + 1, PORT + 1] {
        sender.send(a, port, b"in clear");
    }
    assert!(!answers_arp(c, a.ip)?, "a plain ARP request was answered");
    await_frames(&arriving, "plain UDP on the wire", 4, |frame| frame.contains(b"in clear"))?;
    await_frames(&arriving, "plain ARP on the wire", 1, |frame| frame.is(EtherType::ARP))?;
    guarded.await_drops("unsealed", 4)?;
    guarded.await_drops("plain-arp", 1)?;
    assert_eq!(stack.stop()?, Vec::<Frame>::new(), "the stack was given something");
    assert_eq!((victim.take()?.len(), later.take()?.len()), (0, 0));
    Ok(())
}

#[test]
fn the_wire_carries_only_ringwall_behind_a_namespace() {
    perform(&["a", "c"], |stage| the_wire_carries_only_ringwall(stage, "namespace"));
}

#[test]
fn the_wire_carries_only_ringwall_in_place() {
    perform(&["a", "c"], |stage| the_wire_carries_only_ringwall(stage, "in-place"));
}

fn the_wire_carries_only_ringwall(stage: &Stage, way: &str) -> Outcome {
    let a = stage.host("a");
    a.namespace.set_kernel_parameter("ipv6/conf/all/disable_ipv6", "0")?;
    a.namespace.set_kernel_parameter("ipv6/conf/default/disable_ipv6", "0")?;
    let unguarded = watch_sent(stage, a)?;
    speak(stage, a)?;
    await_frames(&unguarded, "a plain host's frames", 5, is_clear)?;
    await_frames(&unguarded, "a plain host's IPv6", 1, |frame| frame.is(EtherType::IPV6))?;
    unguarded.stop()?;

    let mut guarded = stage.guard("a", Plan::way(way))?;
    let sent = watch_sent(stage, a)?;
    let end = Instant::now() + span(Duration::from_secs(8), Duration::from_secs(30));
    while Instant::now() < end {
        speak(stage, a)?;
        guarded.ensure_alive()?;
    }
    let sent = sent.stop()?;
    let clear: Vec<_> = sent.iter().filter(|frame| is_clear(frame)).collect();
    assert!(clear.is_empty(), "{} frames that Ringwall did not make, first {:02x?}", clear.len(), clear[0].0);
    assert!(!sent.is_empty(), "the host never tried");
    Ok(())
}

/// Lets a host do whatever makes a stack speak: resolve, ping, join groups, announce, probe, go down and up.
fn speak(stage: &Stage, host: &Host) -> Outcome {
    let network = host.namespace.clone();
    let anything = [
        "ping -c 1 -W 1 10.77.0.3",
        "ping -c 1 -W 1 10.77.0.200",
        "ping -b -c 1 -W 1 10.77.0.255",
        "ping -c 1 -W 1 224.0.0.1",
        "ping -6 -c 1 -W 1 ff02::1%e0",
        "arping -q -c 1 -w 1 -I e0 10.77.0.3",
        "arping -q -c 1 -U -I e0 10.77.0.1",
        "arping -q -D -c 1 -w 1 -I e0 10.77.0.77",
    ];
    // They run side by side: nobody answers most of them.
    let mut running = Vec::new();
    for (number, line) in anything.iter().enumerate() {
        let mut words = line.split(' ');
        let mut command = network.command(words.next().unwrap_or_default());
        command.args(words);
        running.push(ringwall_lab::net::Running::start(command, &stage.file(&format!("speak-{number}.log")))?);
    }
    python(host, JOIN, &[])?;
    network.ip(&format!("address add 10.77.0.88/24 dev {INTERFACE}"))?;
    network.ip(&format!("address del 10.77.0.88/24 dev {INTERFACE}"))?;
    network.ip(&format!("link set {INTERFACE} down"))?;
    network.ip(&format!("link set {INTERFACE} up"))?;
    process::pause(PATIENCE)
}

/// Joins multicast groups of both families and sends to them and to everybody.
const JOIN: &str = r#"
import socket, struct
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
four.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
four.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"e0")
four.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.1.2.3") + socket.inet_aton("10.77.0.1"))
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
index = socket.if_nametoindex("e0")
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, "ff02::1:3") + struct.pack("@I", index))
for one, to in ((four, ("239.1.2.3", 9)), (four, ("255.255.255.255", 9)), (four, ("10.77.0.3", 9)),
                (six, ("ff02::1:3", 9, 0, index))):
    try:
        one.sendto(b"hello", to)
    except OSError:
        pass
"#;

#[test]
fn a_kill_under_load_leaks_nothing_behind_a_namespace() {
    perform(&["a", "b"], |stage| a_kill_under_load_leaks_nothing(stage, "namespace"));
}

#[test]
fn a_kill_under_load_leaks_nothing_in_place() {
    perform(&["a", "b"], |stage| a_kill_under_load_leaks_nothing(stage, "in-place"));
}

fn a_kill_under_load_leaks_nothing(stage: &Stage, way: &str) -> Outcome {
    let (a, b) = (stage.host("a"), stage.host("b"));
    let (mut near, _far) = (stage.guard("a", Plan::way(way))?, stage.guard("b", Plan::way(way))?);
    // Another way out, as a second card with a default route would be.
    for line in [
        "link add other type veth peer name beyond",
        "link set other up",
        "link set beyond up",
        "address add 192.0.2.1/24 dev other",
        "route add default via 192.0.2.2",
    ] {
        a.namespace.ip(line)?;
    }
    let upload = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
    let download = Stream::start(&b.namespace, &a.namespace, a.ip, 5002)?;
    upload.await_progress(1 << 22, SOON)?;
    download.await_progress(1 << 22, SOON)?;
    let clear = watch_sent_in_clear(stage, a)?;
    let directory = stage.run.directory();
    let expression = format!("host {}", b.ip);
    let astray = Watch::start_matching(&a.namespace, "other", Direction::Out, &directory, "astray", &expression)?;

    near.stop(Signal::KILL);
    assert!(!pings(&a.namespace, b.ip, "-W 1")?, "a dead daemon lets a ping through");
    assert!(!pings(&b.namespace, a.ip, "-W 1")?, "a dead daemon lets a ping in");
    let route = a.namespace.ip(&format!("route get {}", b.ip))?;
    assert!(route.contains(&format!("dev {INTERFACE} ")), "the route left the dead device: {route}");
    assert_eq!(clear.stop()?, Vec::<Frame>::new(), "in clear after the daemon died");
    assert_eq!(astray.stop()?, Vec::<Frame>::new(), "by another way after the daemon died");

    let clear = watch_sent_in_clear(stage, a)?;
    near.launch(&[])?;
    upload.await_progress(1 << 20, RESTORED_MAX)?;
    download.await_progress(1 << 20, RESTORED_MAX)?;
    assert_eq!(clear.stop()?, Vec::<Frame>::new(), "in clear while the daemon started again");
    assert_eq!(near.status()?["takeover"]["adopted"], true);

    // The witness would have seen it: what is given back speaks in clear.
    let clear = watch_sent_in_clear(stage, a)?;
    near.release()?;
    assert!(!pings(&a.namespace, b.ip, "-W 1")?, "the other host still speaks CLL only");
    await_frames(&clear, "frames in clear after the release", 1, is_clear)
}

#[test]
fn a_release_restores_all_behind_a_namespace() {
    perform(&["a", "c"], |stage| a_release_restores_all(stage, "namespace"));
}

#[test]
fn a_release_restores_all_in_place() {
    perform(&["a", "c"], |stage| a_release_restores_all(stage, "in-place"));
}

fn a_release_restores_all(stage: &Stage, way: &str) -> Outcome {
    let (a, c) = (stage.host("a"), stage.host("c"));
    furnish(a)?;
    let before = picture(a)?;
    let mut guarded = stage.prepare("a", Plan::way(way))?;
    for ending in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        guarded.start(&[])?;
        assert!(!pings(&c.namespace, a.ip, "-W 1")?, "it is guarded");
        if let Some(signal) = ending {
            guarded.stop(signal);
        }
        guarded.release()?;
        assert_same(&before, &picture(a)?, &format!("{ending:?}"));
        assert_nothing_left(&guarded)?;
        reach(&c.namespace, a.ip, SOON)?;
        guarded.stop(Signal::KILL);
    }
    Ok(())
}

/// Addresses, routes, a permanent neighbour and settings that a release must bring back.
pub fn furnish(host: &Host) -> Outcome {
    for line in [
        "address add 10.77.0.41/24 dev e0",
        "address add 192.0.2.41/32 dev e0 scope link",
        "route add default via 10.77.0.3 metric 100",
        "route add 198.51.100.0/24 via 10.77.0.3 src 10.77.0.41 table 77 mtu lock 1400",
        "neigh add 10.77.0.99 lladdr 02:00:00:00:00:99 dev e0 nud permanent",
        "link set e0 txqueuelen 777",
    ] {
        host.namespace.ip(line)?;
    }
    host.namespace.set_kernel_parameter("ipv4/conf/e0/rp_filter", "2")
}

/// The interface with its addresses, routes, permanent neighbours and settings, as `ip` and `sysctl` tell them.
pub fn picture(host: &Host) -> Result<Vec<(&'static str, Value)>, ringwall_lab::failure::Failure> {
    let questions = [
        "-j link show dev e0",
        "-j address show dev e0",
        "-j route show table all",
        "-j -6 route show table all",
        "-j neigh show dev e0 nud permanent",
    ];
    let mut answers = Vec::new();
    for question in questions {
        let text = host.namespace.ip(question)?;
        answers
            .push((question, serde_json::from_str(if text.trim().is_empty() { "[]" } else { &text }).expect("JSON")));
    }
    let mut settings = host.namespace.command("sysctl");
    settings.args(["-a", "-r", r"net\.ipv[46]\.conf\.e0\."]);
    answers.push(("settings", Value::String(process::must(settings)?)));
    Ok(answers)
}

/// Compares two pictures, question by question.
pub fn assert_same(before: &[(&str, Value)], after: &[(&str, Value)], when: &str) {
    for ((question, was), (_, is)) in before.iter().zip(after) {
        assert_eq!(was, is, "{question} ({when})");
    }
}

/// No namespace, mount, table, state file, lock or socket of this host's daemon is there. Only who has proved himself is remembered:
/// a host that is guarded again must know whom it need not hear in clear.
pub fn assert_nothing_left(guarded: &Guarded) -> Outcome {
    assert_eq!(mounts_below(&guarded.directory), Vec::<std::path::PathBuf>::new());
    for directory in ["run", "state"] {
        let entries = std::fs::read_dir(guarded.directory.join(directory)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name()).filter(|name| *name != *format!("{INTERFACE}.peers.json"));
        let names: Vec<_> = names.collect();
        assert!(names.is_empty(), "left in {directory}: {names:?}");
    }
    let mut tables = guarded.host.namespace.command("nft");
    tables.args(["list", "tables"]);
    assert_eq!(process::must(tables)?, "");
    Ok(())
}

#[test]
fn on_exit_restore_gives_back_at_the_end_behind_a_namespace() {
    perform(&["a", "c"], |stage| on_exit_restore_gives_back_at_the_end(stage, "namespace"));
}

#[test]
fn on_exit_restore_gives_back_at_the_end_in_place() {
    perform(&["a", "c"], |stage| on_exit_restore_gives_back_at_the_end(stage, "in-place"));
}

fn on_exit_restore_gives_back_at_the_end(stage: &Stage, way: &str) -> Outcome {
    let (a, c) = (stage.host("a"), stage.host("c"));
    furnish(a)?;
    let before = picture(a)?;
    let mut guarded = stage.prepare("a", Plan::way(way).host("on_exit = \"restore\""))?;
    for signal in [Signal::TERM, Signal::INT] {
        guarded.start(&[])?;
        guarded.stop(signal);
        assert_same(&before, &picture(a)?, &format!("{signal:?}"));
        assert_nothing_left(&guarded)?;
        reach(&c.namespace, a.ip, SOON)?;
    }
    Ok(())
}

#[test]
fn on_exit_closed_lets_nothing_through_after_the_end() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (mut near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        reach(&a.namespace, b.ip, SOON)?;
        near.stop(Signal::TERM);
        let sent = watch_sent(stage, a)?;
        assert!(!pings(&a.namespace, b.ip, "-W 1")? && !pings(&b.namespace, a.ip, "-W 1")?);
        assert_eq!(sent.stop()?, Vec::<Frame>::new());
        Ok(())
    });
}

/// What may happen to a daemon while its guard waits for the confirmation.
#[derive(Clone, Copy, Debug)]
enum Ending {
    None,
    Killed,
    /// All that runs in the terminal hears it, as with Ctrl-C.
    TerminalGone,
}

#[test]
fn without_confirmation_the_interface_is_given_back() {
    perform(&["a", "c"], |stage| {
        let (a, c) = (stage.host("a"), stage.host("c"));
        let before = picture(a)?;
        let mut guarded = stage.prepare("a", Plan::default())?;
        for ending in [Ending::None, Ending::Killed, Ending::TerminalGone] {
            guarded.start(&["--revert-after", "3s"])?;
            assert!(guarded.status()?["takeover"]["reverts_in_s"].is_u64());
            match ending {
                Ending::None => {}
                Ending::Killed => guarded.stop(Signal::KILL),
                Ending::TerminalGone => {
                    kill_process_group(guarded.pid(), Signal::HUP).expect("it runs");
                    guarded.stop(Signal::KILL);
                }
            }
            let state = guarded.directory.join("state/e0.takeover.json");
            process::until("the revert", Duration::from_secs(20), || Ok(!state.exists()))?;
            reach(&c.namespace, a.ip, SOON)?;
            assert_same(&before, &picture(a)?, &format!("{ending:?}"));
            let is_there = |name: &str| guarded.directory.join("run").join(name).exists();
            process::until("the end of files", SOON, || Ok(!is_there("e0.lock") && !is_there("e0.sock")))?;
            assert_nothing_left(&guarded)?;
            guarded.stop(Signal::KILL);
        }
        Ok(())
    });
}

#[test]
fn with_confirmation_the_interface_stays_guarded() {
    perform(&["a", "c"], |stage| {
        let (a, c) = (stage.host("a"), stage.host("c"));
        let mut guarded = stage.guard("a", Plan::default().host("on_exit = \"closed\""))?;
        guarded.stop(Signal::TERM);
        guarded.start(&["--revert-after", "2s"])?;
        let confirmed = guarded.ask(&["host", "confirm"])?;
        assert!(confirmed.status.success(), "{}", confirmed.stderr);
        assert!(guarded.status()?["takeover"]["reverts_in_s"].is_null());
        process::pause(Duration::from_secs(4))?;
        guarded.ensure_alive()?;
        assert_eq!(guarded.status()?["state"], "running");
        assert!(!pings(&c.namespace, a.ip, "-W 1")?);
        Ok(())
    });
}

#[test]
fn addresses_added_and_removed_are_kept() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let both = format!("--mac {} --ip {} --ip 10.77.0.51", a.mac, a.ip);
        let identity = stage.site.issue("a", &both)?;
        let mut near = stage.guard("a", Plan::default().identity(identity))?;
        let _far = stage.guard("b", Plan::default())?;
        let added = ip("10.77.0.51");
        for address in [added, ip("10.77.0.52")] {
            a.namespace.ip(&format!("address add {address}/24 dev e0"))?;
        }
        reach(&b.namespace, added, SOON)?;
        near.stop(Signal::KILL);
        near.start(&[])?;
        reach(&b.namespace, added, SOON)?;
        a.namespace.ip("address del 10.77.0.52/24 dev e0")?;
        near.release()?;
        let addresses = a.namespace.ip("-j address show dev e0")?;
        assert!(addresses.contains("10.77.0.51") && !addresses.contains("10.77.0.52"), "{addresses}");
        near.stop(Signal::TERM);
        Ok(())
    });
}

#[test]
fn the_carrier_of_the_card_is_followed_behind_a_namespace() {
    perform(&["a", "b"], the_carrier_of_the_card_is_followed);
}

/// In place the stack has the card's own carrier.
fn the_carrier_of_the_card_is_followed(stage: &Stage) -> Outcome {
    let (a, b) = (stage.host("a"), stage.host("b"));
    let (near, _far) = (stage.guard("a", Plan::way("namespace"))?, stage.guard("b", Plan::way("namespace"))?);
    reach(&a.namespace, b.ip, SOON)?;
    let has_carrier = |wanted: bool| {
        process::until(&format!("carrier {wanted} inside"), SOON, || {
            let link: Value = serde_json::from_str(&a.namespace.ip("-j link show dev e0")?).expect("JSON");
            Ok(link[0]["flags"].as_array().is_some_and(|flags| flags.contains(&"LOWER_UP".into())) == wanted)
        })
    };
    has_carrier(true)?;
    stage.lan.unplug(a)?;
    has_carrier(false)?;
    assert_eq!(near.status()?["takeover"]["carrier"], false);
    stage.lan.bridge.ip(&format!("link set {} up", Lan::port(a)))?;
    has_carrier(true)?;
    reach(&a.namespace, b.ip, SOON)?;
    reach(&b.namespace, a.ip, SOON).map(drop)
}

#[test]
fn a_smaller_mtu_of_the_card_is_followed() {
    perform(&["a", "b"], |stage| the_mtu_of_the_card_is_followed(stage, 1300));
}

#[test]
fn a_larger_mtu_of_the_card_is_followed() {
    perform(&["a", "b"], |stage| the_mtu_of_the_card_is_followed(stage, 4000));
}

fn the_mtu_of_the_card_is_followed(stage: &Stage, wire_mtu: u32) -> Outcome {
    let (a, b) = (stage.host("a"), stage.host("b"));
    let (near, far) = (stage.guard("a", Plan::way("namespace"))?, stage.guard("b", Plan::way("namespace"))?);
    reach(&a.namespace, b.ip, SOON)?;
    largest_ping_passes(a, b)?;
    for host in [a, b] {
        stage.lan.bridge.ip(&format!("link set {} mtu {wire_mtu}", Lan::port(host)))?;
    }
    let inner = near.status()?["takeover"]["inner_mtu"].as_u64().expect("a number");
    let outer = near.status()?["takeover"]["wire_mtu"].as_u64().expect("a number");
    let wanted = u64::from(wire_mtu) - (outer - inner);
    for guarded in [&near, &far] {
        guarded.on_card(&format!("link set CARD mtu {wire_mtu}"))?;
        process::until("the inner device's MTU", SOON, || Ok(u64::from(inner_mtu(&guarded.host)?) == wanted))?;
    }
    largest_ping_passes(a, b)?;
    largest_ping_passes(b, a)?;
    let stream = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
    stream.await_progress(1 << 22, SOON)?;
    let status = near.status()?;
    assert_eq!(status["takeover"]["inner_mtu"], wanted, "what status says");
    Ok(())
}

fn inner_mtu(host: &Host) -> Result<u32, ringwall_lab::failure::Failure> {
    let link: Value = serde_json::from_str(&host.namespace.ip("-j link show dev e0")?).expect("JSON");
    Ok(link[0]["mtu"].as_u64().and_then(|mtu| u32::try_from(mtu).ok()).expect("an MTU"))
}

/// The largest packet that the interface takes arrives; one byte more is refused here and now.
fn largest_ping_passes(from: &Host, to: &Host) -> Outcome {
    // IPv4 and ICMP headers.
    let payload_len = inner_mtu(from)? - 28;
    assert!(pings(&from.namespace, to.ip, &format!("-M do -s {payload_len}"))?, "{payload_len} bytes do not pass");
    let mut more = from.namespace.command("ping");
    more.args(["-n", "-c", "1", "-W", "2", "-M", "do", "-s", &(payload_len + 1).to_string(), &to.ip.to_string()]);
    let answer = process::ask(more, &[])?;
    assert!(!answer.status.success() && format!("{}{}", answer.stdout, answer.stderr).contains("essage too long"));
    Ok(())
}

/// Where the inner device knows the smaller MTU; see `in_place` for where it does not.
#[test]
fn the_largest_packet_passes_and_a_larger_one_is_refused_at_once() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let _guarded = (stage.guard("a", Plan::way("namespace"))?, stage.guard("b", Plan::way("namespace"))?);
        reach(&a.namespace, b.ip, SOON)?;
        largest_ping_passes(a, b)?;
        largest_ping_passes(b, a)
    });
}

#[test]
fn a_second_daemon_on_one_interface_is_refused() {
    perform(&["a", "b"], |stage| {
        let (mut near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        let second = near.ask(&["host", "run"])?;
        assert!(!second.status.success());
        let first = near.id().to_string();
        assert!(second.stderr.lines().count() == 1 && second.stderr.contains(&first), "{}", second.stderr);
        near.ensure_alive()?;
        assert_eq!(near.status()?["state"], "running");
        reach(&stage.host("b").namespace, stage.host("a").ip, SOON).map(drop)
    });
}
