//! Signed ARP beside hosts without it, and what the kernel's neighbour table makes of it: who reaches whom, what an
//! operator is told, probes and announcements, and that a host whose daemon is gone is closed for ARP, too.

use std::io::Write;
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Frame, Host, process};
use rustix::process::Signal;
use serde_json::Value;
use wire::arp::{Arp, Operation};
use wire::ethernet::HEADER_LEN;
use wire::sarp::Message;
use wire::{EtherType, MacAddress};

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform};
use crate::takeover::{assert_nothing_left, assert_same, furnish, picture};
use crate::wire::*;

/// How long a host may take that first hears that its clock or a key is another, with room for a loaded machine.
pub const FOLLOWED: Duration = Duration::from_secs(20);

/// Guards host `name` by signed ARP and waits until a distributor has told it the time.
pub fn sign(stage: &Stage, name: &str, plan: Plan) -> Result<Guarded, Failure> {
    let guarded = stage.guard(name, plan)?;
    await_time(&guarded)?;
    Ok(guarded)
}

/// Waits until a distributor has told the time.
pub fn await_time(guarded: &Guarded) -> Outcome {
    process::until(&format!("the S-ARP clock of {}", guarded.host.name), FOLLOWED, || {
        Ok(guarded.status()?["sarp"]["clock_unix_s"].is_u64())
    })
}

/// Lets the stack of `host` ask anew for every address.
pub fn forget(host: &Host) -> Outcome {
    host.namespace.ip(&format!("neigh flush dev {INTERFACE}")).map(drop)
}

/// Lets the stack of `from` ask anew and waits until `to` answers a ping.
pub fn resolve_anew(from: &Host, to: &Host) -> Outcome {
    forget(from)?;
    reach(&from.namespace, to.ip, FOLLOWED).map(drop)
}

/// `to` does not answer a ping, because its address is not found or it does not find that of `from`.
pub fn assert_apart(from: &Host, to: &Host) -> Outcome {
    assert!(!pings(&from.namespace, to.ip, "-W 1")?, "{} reaches {}", from.name, to.name);
    Ok(())
}

pub fn said(guarded: &Guarded, words: &[&str]) -> Result<String, Failure> {
    let command = guarded.command(words);
    if words.first() == Some(&"status") { process::told(command) } else { process::must(command) }
}

/// All of `words` are in what a command says.
pub fn assert_says(guarded: &Guarded, command: &[&str], words: &[&str]) -> Outcome {
    let text = said(guarded, command)?;
    for word in words {
        assert!(text.contains(word), "{command:?} does not say \"{word}\": {text}");
    }
    Ok(())
}

/// Frames that the daemon has answered in its stack's place.
fn answered(guarded: &Guarded) -> Result<u64, Failure> {
    Ok(guarded.status()?["frames"]["answered"].as_u64().expect("a number"))
}

fn mac_of(from: &Host, to: &Host) -> Result<Option<MacAddress>, Failure> {
    Ok(from.neighbour(to.ip)?.map(|neighbour| neighbour.mac))
}

#[test]
fn in_a_mixed_lan_hosts_reach_whom_they_can_believe() {
    perform(&["k", "a", "b", "c", "d"], |stage| {
        let [k, a, b, c, d] = ["k", "a", "b", "c", "d"].map(|name| stage.host(name));
        let distributor = sign(stage, "k", Plan::distributor())?;
        // `a` knows the plain host `c`; `b` knows nobody; nobody knows `d`.
        let near = sign(stage, "a", Plan::sarp().knowing(c))?;
        let far = sign(stage, "b", Plan::sarp())?;
        for (one, other) in [(a, b), (a, c), (a, k), (b, k), (c, d)] {
            reach(&one.namespace, other.ip, SOON)?;
            resolve_anew(other, one)?;
        }
        for (one, other) in [(a, d), (b, c), (b, d), (k, c)] {
            assert_apart(one, other)?;
            assert_apart(other, one)?;
        }
        // A plain host reads the signed answer; who is not believed is found, and not heard.
        assert_eq!((mac_of(d, a)?, mac_of(c, b)?), (Some(a.mac), Some(b.mac)));
        assert_eq!((mac_of(a, d)?, mac_of(b, c)?, mac_of(a, c)?), (None, None, Some(c.mac)));
        near.await_drops("plain-arp", 1)?;
        far.await_drops("plain-arp", 1)?;
        an_operator_is_told(&near, [b, d])?;
        assert!(distributor.status()?["frames"]["answered"].as_u64() >= Some(2), "{}", distributor.status()?);
        Ok(())
    });
}

/// What the commands say of a host that believes one of the two and has heard the other in plain.
fn an_operator_is_told(near: &Guarded, [friend, stranger]: [&Host; 2]) -> Outcome {
    assert_says(
        near,
        &["status"],
        &["mode sarp", "S-ARP clock: 1", "key distributor: k (10.77.0.11, ", "asked first", "not protected: "],
    )?;
    let status = near.status()?;
    let sarp = &status["sarp"];
    assert_eq!((&sarp["known_hosts"], &sarp["distributors_silent"]), (&1.into(), &false.into()), "{sarp}");
    assert_eq!((&sarp["asked_first"], &sarp["distributors"][0]["name"]), (&"k".into(), &"k".into()), "{sarp}");
    assert!(sarp["keys"].as_u64() >= Some(2) && status["peers"].as_u64() >= Some(2), "{status}");

    let keys = near.json(&["peers"])?;
    let key = keys.as_array().and_then(|keys| keys.iter().find(|key| key["address"] == friend.ip.to_string()));
    let key = key.expect("the key of whom it reached");
    assert_eq!((&key["mac"], &key["heard"]), (&friend.mac.to_string().into(), &true.into()), "{keys}");
    let text = said(near, &["peers"])?;
    let line = text.lines().find(|line| line.starts_with(&friend.ip.to_string()));
    assert!(line.is_some_and(|line| line.contains(&friend.mac.to_string()) && line.ends_with("yes")), "{text}");
    assert!(!text.contains(&stranger.ip.to_string()), "{text}");

    let source = stranger.mac.to_string();
    assert_says(near, &["explain"], &["plain-arp (", "known host", "do:", &source])?;
    let examples = near.json(&["explain", "plain-arp"])?["examples"].clone();
    assert!(examples.as_array().is_some_and(|all| all.iter().any(|one| one["source"] == source)), "{examples}");

    assert_says(near, &["events"], &["the S-ARP clock is set"])?;
    let lines = said(near, &["events", "--json"])?;
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(events.iter().any(|event| event["event"] == "clock-set"), "{lines}");
    assert_metrics(near, &[("sarp_clock_set", 1.0), ("sarp_distributors_silent", 0.0)])
}

/// Each of these gauges of mode `sarp` has its value.
pub fn assert_metrics(guarded: &Guarded, gauges: &[(&str, f64)]) -> Outcome {
    let text = said(guarded, &["metrics"])?;
    for (name, value) in gauges {
        let start = format!("ringwall_{name}{{interface=\"e0\"}} ");
        let told = text.lines().find_map(|line| line.strip_prefix(&start)).and_then(|rest| rest.parse::<f64>().ok());
        assert_eq!(told, Some(*value), "{name} in {text}");
    }
    Ok(())
}

/// Shortens how long the stack of `host` takes a neighbour for reachable without looking, and how long it waits to look.
fn be_impatient(host: &Host) -> Outcome {
    let set = |key: &str, value| host.namespace.set_kernel_parameter(&format!("ipv4/neigh/e0/{key}"), value);
    // The kernel takes half of this at least; below the time until the first probe an entry never rests.
    set("base_reachable_time_ms", "2500")?;
    set("delay_first_probe_time", "1")
}

#[test]
fn a_stale_neighbour_is_looked_for_again_as_usual() {
    perform(&["k", "a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let (_near, far) = (sign(stage, "a", Plan::sarp())?, sign(stage, "b", Plan::sarp())?);
        be_impatient(a)?;
        reach(&a.namespace, b.ip, SOON)?;
        let is = |state: &str| {
            let what = format!("the neighbour in state {state}");
            process::until(&what, SOON, || Ok(a.neighbour(b.ip)?.is_some_and(|neighbour| neighbour.state == state)))
        };
        is("STALE")?;
        let before = answered(&far)?;
        assert!(pings(&a.namespace, b.ip, "")?, "a stale entry is used");
        is("REACHABLE")?;
        assert!(answered(&far)? > before, "the kernel's probe was not answered");
        assert_eq!(mac_of(a, b)?, Some(b.mac));
        Ok(())
    });
}

#[test]
fn the_new_card_of_a_host_is_followed() {
    perform(&["k", "a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let (near, far) = (sign(stage, "a", Plan::sarp())?, sign(stage, "b", Plan::sarp())?);
        be_impatient(a)?;
        reach(&a.namespace, b.ip, SOON)?;
        drop(far);
        let new_mac = MacAddress([2, 0, 0, 0x77, 1, 2]);
        b.namespace.ip(&format!("link set {INTERFACE} address {new_mac}"))?;
        let renewed = stage.site.issue("b", &format!("--mac {new_mac} --ip {}", b.ip))?;
        let _far = sign(stage, "b", Plan::sarp().identity(renewed))?;
        // Nobody flushes a table: the kernel finds out by itself that nobody answers at the old address.
        reach(&a.namespace, b.ip, FOLLOWED)?;
        assert_eq!(mac_of(a, b)?, Some(new_mac));
        near.await_event(&format!("{} has a new key", b.ip), SOON)?;
        let keys = near.json(&["peers"])?;
        let is_new = |key: &Value| key["address"] == b.ip.to_string() && key["mac"] == new_mac.to_string();
        assert!(keys.as_array().is_some_and(|keys| keys.iter().any(is_new)), "{keys}");
        Ok(())
    });
}

/// Probes for `to` from `from`, as a stack does before it takes an address; whether nobody has it, and how long the first
/// answer took as arping tells it.
fn probe(from: &Host, to: std::net::Ipv4Addr) -> Result<(bool, String), Failure> {
    let mut command = from.namespace.command("arping");
    command.args(["-D", "-c", "2", "-w", "2", "-I", INTERFACE, &to.to_string()]);
    let answer = process::ask(command, &[])?;
    let line = answer.stdout.lines().find(|line| line.contains("reply")).unwrap_or_default().to_owned();
    Ok((answer.status.success(), line))
}

#[test]
fn who_probes_for_a_taken_address_hears_its_owner() {
    perform(&["k", "a", "b", "c"], |stage| {
        let [a, b, c] = ["a", "b", "c"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let (near, far) = (sign(stage, "a", Plan::sarp())?, sign(stage, "b", Plan::sarp())?);
        for prober in [b, c] {
            let sent = watch_sent(stage, prober)?;
            let (is_free, line) = probe(prober, a.ip)?;
            eprintln!("{} probed for {}: {line}", prober.name, a.ip);
            assert!(!is_free && line.contains(&a.mac.to_string().to_uppercase()), "{}: {line:?}", prober.name);
            let probes = arp_messages(&sent.stop()?);
            let is_signed = probes.iter().all(|(arp, is_signed)| arp.sender_ip.is_unspecified() && *is_signed);
            assert!(!probes.is_empty() && is_signed == (prober.name == "b"), "{probes:?}");
        }
        assert!(answered(&near)? >= 2);
        assert!(far.json(&["peers"])?.to_string().contains(&a.ip.to_string()), "the owner's key was asked for");
        assert!(probe(b, "10.77.0.99".parse().expect("an address"))?.0, "nobody has this address");
        Ok(())
    });
}

#[test]
fn signed_questions_are_answered_by_all() {
    perform(&["k", "a", "b", "c"], |stage| {
        let [a, b, c] = ["a", "b", "c"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let near = sign(stage, "a", Plan::sarp().knowing(c))?;
        let far = sign(stage, "b", Plan::sarp().sarp_line("sign_requests = false"))?;
        reach(&b.namespace, a.ip, SOON)?;
        let sent = watch_sent(stage, a)?;
        for other in [b, c] {
            resolve_anew(a, other)?;
            resolve_anew(other, a)?;
        }
        let questions = arp_messages(&sent.stop()?);
        let questions: Vec<_> = questions.iter().filter(|(arp, _)| arp.operation == Operation::Request).collect();
        // Requests to a distributor have an operation of their own and are not among them.
        assert!(questions.len() >= 2 && questions.iter().all(|(_, is_signed)| *is_signed), "{questions:?}");
        assert_eq!(near.status()?["sarp"]["sign_requests"], true);
        // A signed question teaches whoever has the key already: its stack need not ask.
        forget(b)?;
        forget(a)?;
        let answered_before = answered(&near)?;
        assert!(pings(&a.namespace, b.ip, "")?);
        assert_eq!((mac_of(b, a)?, answered(&near)?), (Some(a.mac), answered_before));
        assert_eq!(far.drops("sarp-signature")? + far.drops("sarp-stale")?, 0);
        Ok(())
    });
}

/// The ARP messages among `frames`, each with whether it is signed.
fn arp_messages(frames: &[Frame]) -> Vec<(Arp, bool)> {
    let arp = frames.iter().filter(|frame| frame.is(EtherType::ARP)).filter_map(|frame| frame.0.get(HEADER_LEN..));
    arp.filter_map(|bytes| {
        let is_signed = Message::is_one(bytes) && Message::parse(bytes).is_ok_and(|it| !it.signature.is_empty());
        Some((Arp::parse(bytes).ok()?, is_signed))
    })
    .collect()
}

#[test]
fn an_announcement_leaves_signed_and_is_believed_by_whoever_knows_the_key() {
    perform(&["k", "a", "b", "c"], |stage| {
        let [a, b, c] = ["a", "b", "c"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let (_near, far) = (sign(stage, "a", Plan::sarp())?, sign(stage, "b", Plan::sarp())?);
        let unacquainted = sign(stage, "c", Plan::sarp())?;
        reach(&b.namespace, a.ip, SOON)?;
        // As a request and as a reply.
        for form in ["-U", "-A"] {
            for host in [b, c] {
                let wrong = format!("neigh replace {} lladdr 02:00:00:00:00:99 dev {INTERFACE} nud stale", a.ip);
                host.namespace.ip(&wrong)?;
            }
            let (sent, unasked) = (watch_sent(stage, a)?, unacquainted.drops("sarp-unasked")?);
            // The kernel overwrites no entry that is younger than a second.
            process::pause(Duration::from_millis(1100))?;
            let mut announce = a.namespace.command("arping");
            announce.args(["-q", form, "-c", "1", "-w", "1", "-I", INTERFACE, &a.ip.to_string()]);
            process::ask(announce, &[])?;
            let what = format!("the announced address after arping {form}");
            process::until(&what, SOON, || Ok(mac_of(b, a)? == Some(a.mac)))?;
            let announced = |arp: &Arp| arp.sender_ip == a.ip && arp.target_ip == a.ip && arp.sender_mac == a.mac;
            let sent = arp_messages(&sent.stop()?);
            let own: Vec<_> = sent.iter().filter(|(arp, _)| announced(arp)).collect();
            assert!(own.iter().all(|(arp, is_signed)| *is_signed && arp.operation == Operation::Request), "{own:?}");
            assert!(!own.is_empty(), "{form}: {sent:?}");
            unacquainted.await_drops("sarp-unasked", unasked + 1)?;
            assert_ne!(mac_of(c, a)?, Some(a.mac), "who does not know the key has nothing to judge by");
        }
        assert_eq!(far.drops("sarp-unasked")?, 0);
        Ok(())
    });
}

#[test]
fn a_host_without_its_daemon_is_closed_for_arp_until_it_is_released_behind_a_namespace() {
    perform(&["k", "a", "c"], |stage| a_host_without_its_daemon_is_closed(stage, "namespace"));
}

#[test]
fn a_host_without_its_daemon_is_closed_for_arp_until_it_is_released_in_place() {
    perform(&["k", "a", "c"], |stage| a_host_without_its_daemon_is_closed(stage, "in-place"));
}

/// Somebody else owns the table that the rules would be in.
#[test]
fn where_a_card_cannot_be_guarded_in_place_it_goes_by_namespace_and_the_reason_is_told() {
    perform(&["k", "a"], |stage| {
        stage.prepare("k", Plan::distributor())?;
        let mut owner = stage.host("a").namespace.command("nft");
        let mut owner = owner.arg("-i").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("nft is there");
        let outcome = a_host_goes_by_namespace(stage, owner.stdin.take().expect("a pipe"));
        owner.wait().expect("it ends with its input");
        outcome
    });
}

fn a_host_goes_by_namespace(stage: &Stage, mut owner: ChildStdin) -> Outcome {
    owner.write_all(b"add table netdev ringwall_e0 { flags owner; }\n").expect("it reads");
    process::until("another's table", FOLLOWED, || {
        let mut list = stage.host("a").namespace.command("nft");
        list.args(["list", "tables"]);
        Ok(process::must(list)?.contains("ringwall_e0"))
    })?;
    let guarded = stage.guard("a", Plan::sarp())?;
    assert_eq!(guarded.status()?["takeover"]["way"], "namespace");
    assert!(guarded.log().contains("taken over by namespace"), "{}", guarded.log());
    Ok(())
}

fn a_host_without_its_daemon_is_closed(stage: &Stage, way: &str) -> Outcome {
    let (a, c) = (stage.host("a"), stage.host("c"));
    let _distributor = sign(stage, "k", Plan::distributor())?;
    furnish(a)?;
    let before = picture(a)?;
    let mut guarded = stage.prepare("a", Plan::sarp().knowing(c).host(&format!("takeover = \"{way}\"")))?;
    for signal in [Signal::TERM, Signal::KILL] {
        guarded.start(&[])?;
        await_time(&guarded)?;
        assert_eq!(guarded.status()?["takeover"]["way"], way);
        reach(&c.namespace, a.ip, SOON)?;
        guarded.stop(signal);
        let sent = watch_sent(stage, a)?;
        forget(a)?;
        assert!(!answers_arp(c, a.ip)?, "{signal:?}: ARP is answered");
        assert_apart(a, c)?;
        assert_eq!(sent.stop()?, Vec::<Frame>::new(), "{signal:?}: it speaks");
        guarded.release()?;
        assert_same(&before, &picture(a)?, &format!("{signal:?}"));
        assert_nothing_left(&guarded)?;
        assert!(answers_arp(c, a.ip)?, "{signal:?}: given back");
    }
    Ok(())
}

#[test]
fn on_exit_restore_gives_a_signing_host_back() {
    perform(&["k", "a", "c"], |stage| {
        let (a, c) = (stage.host("a"), stage.host("c"));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        furnish(a)?;
        let before = picture(a)?;
        let mut guarded = stage.prepare("a", Plan::sarp().host("on_exit = \"restore\""))?;
        guarded.start(&[])?;
        await_time(&guarded)?;
        assert_apart(c, a)?;
        guarded.stop(Signal::TERM);
        assert_same(&before, &picture(a)?, "restored");
        assert_nothing_left(&guarded)?;
        reach(&c.namespace, a.ip, SOON).map(drop)
    });
}

#[test]
fn a_killed_daemon_adopts_what_it_left_and_sessions_go_on() {
    perform(&["k", "a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let (mut near, _far) = (sign(stage, "a", Plan::sarp())?, sign(stage, "b", Plan::sarp())?);
        reach(&a.namespace, b.ip, SOON)?;
        let session = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
        session.await_progress(1 << 20, SOON)?;
        near.stop(Signal::KILL);
        // The kernel carries data between hosts that know each other; nobody finds a anew.
        session.await_progress(1 << 20, SOON)?;
        forget(b)?;
        assert_apart(b, a)?;
        near.start(&[])?;
        session.await_progress(1 << 20, FOLLOWED)?;
        assert_eq!(near.status()?["takeover"]["adopted"], true);
        resolve_anew(b, a)?;
        resolve_anew(a, b)
    });
}

#[test]
fn a_host_changes_its_mode_and_back_across_restarts() {
    perform(&["k", "a", "b", "c"], |stage| {
        let [a, b, c] = ["a", "b", "c"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let before = picture(a)?;
        let mut pair = Vec::new();
        for (round, signal) in [("cll", Signal::TERM), ("sarp", Signal::KILL), ("cll", Signal::TERM)] {
            let plan = |name: &str| {
                let identity = stage.file(&format!("site.{name}.pem"));
                let known = if identity.exists() { Plan::default().identity(identity) } else { Plan::default() };
                known.host(&format!("mode = \"{round}\""))
            };
            // The interface stays closed between the modes; what the last daemon left is adopted by the next.
            let mut near = stage.prepare("a", plan("a").knowing(c))?;
            let mut far = stage.prepare("b", plan("b"))?;
            near.start(&[])?;
            far.start(&[])?;
            let status = near.status()?;
            assert_eq!(status["mode"], round);
            assert_eq!(status["takeover"]["adopted"], !pair.is_empty());
            assert_mtu(a, &status, round)?;
            reach(&a.namespace, b.ip, FOLLOWED)?;
            resolve_anew(b, a)?;
            let reaches_plain = pings(&c.namespace, a.ip, "-W 1")?;
            assert_eq!(reaches_plain, round == "sarp", "the plain host in mode {round}");
            near.stop(signal);
            far.stop(signal);
            pair.push((near, far));
        }
        drop(pair);
        assert_same(&before, &picture(a)?, "given back");
        Ok(())
    });
}

#[test]
fn a_list_of_the_mode_before_teaches_nothing() {
    perform(&["k", "a", "c"], |stage| {
        let (a, c) = (stage.host("a"), stage.host("c"));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        a.namespace.ip("neigh add 10.77.0.99 lladdr 02:00:00:00:00:99 dev e0 nud permanent")?;
        let before = picture(a)?;
        let legacy = format!("[[cll.legacy]]\nip = \"{}\"\nmac = \"{}\"\n", c.ip, c.mac);
        let mut near = stage.guard("a", Plan::default().tail(&legacy))?;
        reach(&a.namespace, c.ip, SOON)?;
        assert_eq!(a.neighbour(c.ip)?.map(|neighbour| neighbour.state), Some("PERMANENT".to_owned()));
        near.release()?;
        assert_same(&before, &picture(a)?, "given back in mode cll");
        near.stop(Signal::TERM);
        near.start(&[])?;
        reach(&a.namespace, c.ip, SOON)?;
        near.stop(Signal::TERM);
        let mut near = stage.prepare("a", Plan::sarp().identity(stage.file("site.a.pem")))?;
        near.start(&[])?;
        await_time(&near)?;
        assert_apart(a, c)?;
        assert_eq!(a.neighbour(c.ip)?, None);
        near.stop(Signal::TERM);
        near.release()?;
        assert_same(&before, &picture(a)?, "given back");
        Ok(())
    });
}

/// The stack is told how much fits: all of it under S-ARP, and less by the seal under CLL. A card that
/// stays in place keeps its MTU, and packets that are too long are answered (record 0070).
fn assert_mtu(host: &Host, status: &Value, mode: &str) -> Outcome {
    let link: Value = serde_json::from_str(&host.namespace.ip(&format!("-j link show {INTERFACE}"))?).expect("JSON");
    let [inner, wire] = ["inner_mtu", "wire_mtu"].map(|key| status["takeover"][key].as_u64().expect("a number"));
    let is_in_place = status["takeover"]["way"] == "in-place";
    assert_eq!(link[0]["mtu"], if is_in_place { wire } else { inner }, "what status says");
    assert_eq!((wire, inner < wire), (1500, mode == "cll"), "mode {mode}");
    Ok(())
}
