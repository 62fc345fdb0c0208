//! The shield in front of strongSwan that knows nothing of it: what the wire shows, what forged packets come to, rekeying under
//! traffic, peers without a shield.

mod attacker;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use ringwall_lab::cleanup::Run;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::strongswan::{SPI_AT, SPI_MAX, SPI_MIN, Swan, Tunnel, forged, inner_address, is_esp};
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Frame, Host, LanPlan, process};
use rustix::process::Signal;

use crate::bad_input::assert_refused;
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, name_of, perform_bare, program};
use crate::takeover::assert_nothing_left;
use crate::wire::*;

/// How long a tunnel may take to come up, with room for a loaded machine.
const TUNNEL_LIMIT: Duration = Duration::from_secs(30);

/// Runs `test` on two hosts and a third that attacks, if strongSwan is installed.
fn perform<T: FnOnce(&Stage) -> Outcome>(test: T) {
    let name = name_of(&test);
    if !Swan::is_installed() {
        eprintln!("SKIPPED {name}: needs strongSwan (packages strongswan-charon, strongswan-swanctl and its plugins)");
        return;
    }
    perform_bare(name, &["tcpreplay", "unshare"], |run| test(&set(run, vec!["a", "b", "m"])?));
}

fn set(run: &'static Run, hosts: Vec<&'static str>) -> Result<Stage, Failure> {
    Stage::set(run, &LanPlan { hosts, ..LanPlan::default() })
}

/// Makes the key files of a pair, for `a` and `b`.
fn make_keys(stage: &Stage) -> Outcome {
    let mut make = stage.host("a").namespace.command(&program().to_string_lossy());
    make.args(["shield", "keys", "make"]).arg(stage.file("a.keys")).arg(stage.file("b.keys"));
    process::must(make).map(drop)
}

/// Guards host `name`, whose peer has `address` and a shield if there are `keys`.
fn shield(stage: &Stage, name: &str, address: IpAddr, keys: bool) -> Result<Guarded, Failure> {
    let mut guarded = prepare(stage, name, address, keys, "")?;
    guarded.start(&[])?;
    Ok(guarded)
}

/// The same with these lines in `[shield]`, and not started.
fn prepare(stage: &Stage, name: &str, address: IpAddr, keys: bool, lines: &str) -> Result<Guarded, Failure> {
    let keys =
        if keys { format!("keys = \"{}\"\n", stage.file(&format!("{name}.keys")).display()) } else { String::new() };
    let section = format!("[shield]\n{lines}[[shield.peers]]\naddress = \"{address}\"\n{keys}");
    let mut guarded = stage.prepare(name, Plan::default().host("mode = \"shield\"").tail(&section))?;
    guarded.task = "shield";
    Ok(guarded)
}

/// Both ends behind shields, and the tunnel between them.
struct Pair {
    a: Guarded,
    b: Guarded,
    swans: [Swan; 2],
}

fn pair(stage: &Stage, rekey: Option<Duration>) -> Result<Pair, Failure> {
    pair_with(stage, rekey, "")
}

/// The same with these lines in `[shield]` of both.
fn pair_with(stage: &Stage, rekey: Option<Duration>, lines: &str) -> Result<Pair, Failure> {
    make_keys(stage)?;
    let [near, far] = ["a", "b"].map(|name| IpAddr::from(stage.host(name).ip));
    let (mut a, mut b) = (prepare(stage, "a", far, true, lines)?, prepare(stage, "b", near, true, lines)?);
    a.start(&[])?;
    b.start(&[])?;
    let swans = tunnel(stage, rekey)?;
    Ok(Pair { a, b, swans })
}

fn tunnel(stage: &Stage, rekey: Option<Duration>) -> Result<[Swan; 2], Failure> {
    let outer = ["a", "b"].map(|name| IpAddr::from(stage.host(name).ip));
    tunnel_between(stage, outer, rekey)
}

fn tunnel_between(stage: &Stage, [near, far]: [IpAddr; 2], rekey: Option<Duration>) -> Result<[Swan; 2], Failure> {
    let (a, b) = (stage.host("a"), stage.host("b"));
    // One end asks for new keys: two that ask at once may leave strongSwan without an association until the next time.
    let directory = stage.run.directory();
    let start = |own, peer, outer, rekey| Swan::start(&directory, own, &[Tunnel { peer, outer, rekey }]);
    let swans = [start(a, b, [near, far], rekey)?, start(b, a, [far, near], None)?];
    swans[0].initiate(b, TUNNEL_LIMIT)?;
    reach(&a.namespace, inner_address(b), TUNNEL_LIMIT)?;
    Ok(swans)
}

fn spi_of(frame: &Frame) -> u32 {
    u32::from_be_bytes(frame.0[SPI_AT..SPI_AT + 4].try_into().expect("four bytes"))
}

/// Pings through the tunnel; how many of `count` were answered.
fn answered(from: &Host, to: &Host, count: u32, interval: &str) -> Result<u32, Failure> {
    let mut command = from.namespace.command("ping");
    command.args(["-n", "-i", interval, "-c", &count.to_string(), "-W", "2"]).arg(inner_address(to).to_string());
    let text = process::ask(command, &[])?.stdout;
    let received = text.split(", ").find_map(|part| part.strip_suffix(" received")?.parse().ok());
    received.ok_or(Failure::Unreadable(text))
}

/// Packets of ESP that the shield of `guarded` counts for its one peer under `name`.
fn packets(guarded: &Guarded, name: &str) -> Result<u64, Failure> {
    let pairs = guarded.json(&["peers"])?;
    pairs[0]["packets"][name].as_u64().ok_or_else(|| Failure::Unreadable(format!("no {name}: {pairs}")))
}

/// Whether the kernel has the hook at which packets of known associations are handed to the stack (Linux 6.6).
fn hands_on(guarded: &Guarded) -> Result<bool, Failure> {
    let status = guarded.status()?;
    Ok(status["takeover"]["probes"]["bulk"].as_str().is_some_and(|bulk| !bulk.contains("no shortcut")))
}

/// What reaches the stack of the guarded host from the peer beside what honest packets make.
fn stack_esp(frames: &[Frame], source: Ipv4Addr) -> Vec<u32> {
    frames.iter().filter(|frame| is_esp(frame, source)).map(spi_of).collect()
}

#[test]
fn a_tunnel_works_behind_shields_and_the_wire_does_not_show_its_spi() {
    perform(|stage| {
        let Pair { a, b, swans } = pair(stage, None)?;
        let (one, other) = (stage.host("a"), stage.host("b"));
        let (wire, inside) = (watch_sent(stage, one)?, watch_stack(stage, other)?);
        assert_eq!(answered(one, other, 20, "0.1")?, 20);
        let seen: Vec<u32> = stack_esp(&wire.stop()?, one.ip);
        let real: Vec<u32> = stack_esp(&inside.stop()?, one.ip);
        assert!(seen.len() >= 20 && real.len() >= 20, "{} and {}", seen.len(), real.len());
        assert!(real.iter().all(|spi| *spi == real[0]), "the stack sees one association: {real:x?}");
        assert!(!seen.contains(&real[0]), "the wire shows {:x}: {seen:x?}", real[0]);
        assert!(swans[1].knows_spi(real[0])?, "strongSwan gave {:x} out", real[0]);
        let mut distinct = seen.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), seen.len(), "an index comes once");

        let stream = Stream::start(&one.namespace, &other.namespace, inner_address(other), 5001)?;
        stream.await_progress(1 << 18, SOON)?;
        drop(stream);
        let learned = packets(&b, "learned")?;
        assert!((1..=2).contains(&learned), "{learned} SPIs");
        // All but the first of each association, where the kernel has a hook for that.
        let (passed, in_kernel) = (packets(&b, "passed")?, packets(&b, "passed_in_kernel")?);
        if hands_on(&b)? {
            assert!(in_kernel > 100 && passed - in_kernel < 20, "{in_kernel} of {passed}");
        }
        assert_eq!((a.drops("shield-spi")?, b.drops("shield-spi")?), (0, 0));
        b.await_event("spi-learned", SOON)?;
        let text = process::told(b.command(&["status"]))?;
        assert!(text.contains("mode shield") && text.contains("shield: 1 peers with one, 0 without"), "{text}");
        Ok(())
    });
}

#[test]
fn a_tunnel_over_ipv6_works_behind_shields() {
    perform(|stage| {
        let outer: [Ipv6Addr; 2] = ["fd77::1", "fd77::2"].map(|text| text.parse().expect("an address"));
        for (name, address) in ["a", "b"].iter().zip(outer) {
            let network = &stage.host(name).namespace;
            for scope in ["all", "default", "e0"] {
                network.set_kernel_parameter(&format!("ipv6/conf/{scope}/disable_ipv6"), "0")?;
            }
            network.ip(&format!("address add {address}/64 dev e0 nodad"))?;
        }
        make_keys(stage)?;
        let (a, b) = (shield(stage, "a", outer[1].into(), true)?, shield(stage, "b", outer[0].into(), true)?);
        let _swans = tunnel_between(stage, outer.map(IpAddr::from), None)?;
        let (one, other) = (stage.host("a"), stage.host("b"));
        assert_eq!(answered(one, other, 20, "0.05")?, 20);
        assert!(packets(&a, "sealed")? >= 20 && packets(&b, "passed")? >= 20);
        assert_eq!((a.drops("shield-spi")?, b.drops("shield-unreadable")?), (0, 0));
        Ok(())
    });
}

#[test]
fn a_key_file_that_cannot_be_used_is_named_before_anything_is_touched() {
    perform_bare("a_key_file_that_cannot_be_used_is_named_before_anything_is_touched", &[], |run| {
        let stage = set(run, vec!["a", "b"])?;
        let guarded = prepare(&stage, "a", stage.host("b").ip.into(), true, "")?;
        assert_refused(&guarded, &["a.keys", "No such file", "ringwall shield keys make"])?;
        make_keys(&stage)?;
        std::fs::set_permissions(stage.file("a.keys"), std::fs::Permissions::from_mode(0o644))
            .map_err(Failure::io("opening the key file to others"))?;
        assert_refused(&guarded, &["a.keys", "others than its owner may read it"])?;
        Ok(())
    });
}

#[test]
fn forged_and_replayed_packets_end_before_the_stack() {
    perform(|stage| forged_and_replayed_packets(stage, "socket"));
}

#[test]
fn forged_and_replayed_packets_end_in_front_of_the_card() {
    perform(|stage| forged_and_replayed_packets(stage, "xdp"));
}

fn forged_and_replayed_packets(stage: &Stage, hook: &str) -> Outcome {
    let Pair { a: _a, b, swans: _swans } = pair_with(stage, None, &format!("kernel_hook = \"{hook}\"\n"))?;
    let (one, other, intruder) = (stage.host("a"), stage.host("b"), stage.host("m"));
    let wire = watch_sent(stage, one)?;
    assert_eq!(answered(one, other, 5, "0.1")?, 5);
    let recorded = wire.stop()?.into_iter().rfind(|frame| is_esp(frame, one.ip)).expect("ESP was sent");
    let forged = |spi, sequence| forged(&recorded, spi, sequence);
    // What may pass unproved in this second is used up first, so that each kind is seen for itself.
    let flood: Vec<Frame> = (0..2000).map(|n| forged(Some(0x2000_0000 + n), None)).collect();
    attacker::inject(stage, intruder, &flood)?;
    b.await_drops("shield-spi", 1500)?;

    let inside = watch_stack(stage, other)?;
    let recorded_again = vec![forged(None, None); 50];
    attacker::inject(stage, intruder, &recorded_again)?;
    b.await_drops("shield-replay", 50)?;
    assert_eq!(stack_esp(&inside.stop()?, one.ip), Vec::<u32>::new(), "a replay reached the stack");

    let before = b.drops("shield-spi")?;
    let later: Vec<Frame> = (1..=2000).map(|n| forged(None, Some(100_000 + n))).collect();
    let inside = watch_stack(stage, other)?;
    attacker::inject(stage, intruder, &later)?;
    b.await_drops("shield-spi", before + 1000)?;
    let real = stack_esp(&inside.stop()?, one.ip);
    assert!(real.len() <= 400, "{} of 2000 passed unproved, and 100 a second may", real.len());
    assert_eq!(answered(one, other, 10, "0.1")?, 10, "honest traffic lives");
    let layers = b.status()?["layers"].clone();
    assert_eq!([&layers["in_force"], &layers["hook"]], ["kernel", hook], "{layers}");
    let in_kernel = |reason: &str| layers["dropped_in_kernel"][reason].as_u64().unwrap_or_default();
    assert!(in_kernel("shield-spi") >= 2000 && in_kernel("shield-replay") >= 50, "{layers}");
    Ok(())
}

#[test]
fn rekeying_under_a_constant_ping_loses_nothing() {
    perform(|stage| {
        let Pair { a, b, swans } = pair(stage, Some(Duration::from_secs(3)))?;
        let (one, other) = (stage.host("a"), stage.host("b"));
        assert_eq!(answered(one, other, 500, "0.03")?, 500);
        let learned = packets(&b, "learned")?;
        assert!(learned >= 3, "{learned} associations in 15 s: {}", swans[0].log());
        assert_eq!((a.drops("shield-spi")?, b.drops("shield-spi")?), (0, 0));
        Ok(())
    });
}

/// The stack gives SPIs out of a narrow range, so hardly any forged packet competes with a new association.
#[test]
fn rekeying_under_a_flood_loses_nothing_where_spis_are_few() {
    perform(|stage| {
        make_keys(stage)?;
        let range = format!("spi_min = {SPI_MIN}\nspi_max = {SPI_MAX}\n");
        let (one, other, intruder) = (stage.host("a"), stage.host("b"), stage.host("m"));
        let mut near = prepare(stage, "a", other.ip.into(), true, &range)?;
        let mut far = prepare(stage, "b", one.ip.into(), true, &range)?;
        near.start(&[])?;
        far.start(&[])?;
        let _swans = tunnel(stage, Some(Duration::from_secs(3)))?;
        let wire = watch_sent(stage, one)?;
        assert_eq!(answered(one, other, 3, "0.1")?, 3);
        let recorded = wire.stop()?.into_iter().rfind(|frame| is_esp(frame, one.ip)).expect("ESP was sent");
        let frames: Vec<Frame> =
            (0..5000_u32).map(|n| forged(&recorded, Some(0x2000_0000 + n.wrapping_mul(40_503)), Some(n))).collect();
        let flood = attacker::flood(stage, intruder, &frames, 5000)?;
        far.await_drops("shield-range", 1000)?;
        let before = packets(&far, "learned")?;
        assert_eq!(answered(one, other, 300, "0.03")?, 300);
        let learned = packets(&far, "learned")? - before;
        flood.stop(Signal::INT);
        assert!(learned >= 2, "{learned} new associations in 9 s");
        assert!(far.drops("shield-range")? >= 20_000, "{}", far.drops("shield-range")?);
        Ok(())
    });
}

#[test]
fn a_peer_without_a_shield_is_served_and_a_stranger_is_not() {
    perform(|stage| {
        let guarded = shield(stage, "b", stage.host("a").ip.into(), false)?;
        let (one, other, intruder) = (stage.host("a"), stage.host("b"), stage.host("m"));
        let _swans = tunnel(stage, None)?;
        let wire = watch_sent(stage, one)?;
        assert_eq!(answered(one, other, 10, "0.1")?, 10);
        let honest = wire.stop()?.into_iter().rfind(|frame| is_esp(frame, one.ip)).expect("ESP was sent");
        let mut stranger = honest.with_ipv4(intruder.ip, other.ip);
        stranger.0[40..42].fill(0);
        attacker::inject(stage, intruder, &vec![stranger; 20])?;
        guarded.await_drops("shield-stranger", 20)?;
        assert_eq!(guarded.drops("shield-replay")?, 0);
        let text = process::must(guarded.command(&["peers"]))?;
        assert!(text.contains("no shield"), "{text}");
        Ok(())
    });
}

#[test]
fn a_new_epoch_comes_into_force_while_traffic_goes_on() {
    perform(|stage| {
        let Pair { a, b, swans: _swans } = pair(stage, None)?;
        let (one, other) = (stage.host("a"), stage.host("b"));
        let keys = |words: &[&str], files: &[&str]| {
            let mut command = one.namespace.command(&program().to_string_lossy());
            command.args(["shield", "keys"]).args(words).args(files.iter().map(|name| stage.file(name)));
            process::must(command).map(drop)
        };
        keys(&["next"], &["a.keys", "b.keys"])?;
        for guarded in [&a, &b] {
            await_epochs(guarded, 1, &[1, 2])?;
        }
        assert_eq!(answered(one, other, 10, "0.05")?, 10);
        for (guarded, file) in [(&a, "a.keys"), (&b, "b.keys")] {
            keys(&["send"], &[file])?;
            await_epochs(guarded, 2, &[2, 1])?;
            assert_eq!(answered(one, other, 10, "0.05")?, 10);
        }
        for (guarded, file) in [(&a, "a.keys"), (&b, "b.keys")] {
            keys(&["retire"], &[file])?;
            await_epochs(guarded, 2, &[2])?;
        }
        assert_eq!(answered(one, other, 10, "0.05")?, 10);
        assert_eq!((a.drops("shield-spi")?, b.drops("shield-spi")?), (0, 0));
        Ok(())
    });
}

fn await_epochs(guarded: &Guarded, send: u32, all: &[u32]) -> Outcome {
    process::until(&format!("epochs {all:?} on {}", guarded.host.name), SOON, || {
        let pairs = guarded.json(&["peers"])?;
        Ok(pairs[0]["send_epoch"] == send && pairs[0]["epochs"] == serde_json::json!(all))
    })
}

/// Every `nft` fails, so nothing can carry what is no IPsec.
#[test]
fn where_the_kernel_cannot_join_the_start_says_why_and_gives_the_card_back() {
    perform(|stage| {
        let (one, other) = (stage.host("a"), stage.host("b"));
        let guarded = prepare(stage, "a", other.ip.into(), false, "")?;
        let mut start = one.namespace.command("unshare");
        start.args(["-m", "sh", "-c", "mount --bind /bin/false $(command -v nft) && exec \"$@\"", "sh"]);
        start.arg(program()).args(["shield", "run", "--config"]).arg(&guarded.config);
        let answer = process::ask(start, &[])?;
        assert!(!answer.status.success() && answer.stderr.contains("nft refused the filter"), "{}", answer.stderr);
        reach(&one.namespace, other.ip, SOON)?;
        assert_nothing_left(&guarded)
    });
}

#[test]
fn what_is_no_ipsec_does_not_pass_the_daemon() {
    perform_bare("what_is_no_ipsec_does_not_pass_the_daemon", &[], |run| {
        let stage = set(run, vec!["a", "b"])?;
        let guarded = shield(&stage, "b", stage.host("a").ip.into(), false)?;
        let (one, other) = (stage.host("a"), stage.host("b"));
        assert_eq!(guarded.status()?["takeover"]["probes"]["inner device"], "veth, joined in the kernel");
        reach(&one.namespace, other.ip, SOON)?;
        let received = |side: &str| {
            let status = guarded.status()?;
            status["frames"][side].as_u64().ok_or_else(|| Failure::Unreadable(status.to_string()))
        };
        let before = (received("received_from_wire")?, received("received_from_stack")?);
        let stream = Stream::start(&one.namespace, &other.namespace, other.ip, 5001)?;
        stream.await_progress(1 << 18, SOON)?;
        drop(stream);
        // Neighbour discovery of IPv6 joins groups behind a hop-by-hop header, which the daemon looks at.
        let after = (received("received_from_wire")?, received("received_from_stack")?);
        assert!(after.0 - before.0 < 20 && after.1 - before.1 < 20, "{before:?} {after:?}");
        Ok(())
    });
}
