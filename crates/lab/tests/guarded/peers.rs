//! Who may speak with whom: suites, requirements, certificates, other sites, legacy hosts, routers.

use std::time::Duration;

use identity::certificate::Role;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::{Mailbox, reach};
use ringwall_lab::net::{Frame, Host, Namespace, process};
use wire::EtherType;

use crate::stage::{Guarded, Outcome, Plan, SOON, Site, Stage, ip, perform};
use crate::wire::*;

/// Known bytes in a payload.
const SECRET: &[u8] = b"the quick brown fox jumps over the lazy dog";

#[test]
fn each_side_chooses_the_suite_it_sends_with() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let near = stage.guard("a", Plan::default().cll("send_suite = \"aes-128-gcm\""))?;
        let far = stage.guard("b", Plan::default().cll("send_suite = \"chacha20-poly1305\""))?;
        reach(&a.namespace, b.ip, SOON)?;
        reach(&b.namespace, a.ip, SOON)?;
        for (guarded, sends, receives) in
            [(&near, "aes-128-gcm", "chacha20-poly1305"), (&far, "chacha20-poly1305", "aes-128-gcm")]
        {
            let peers = guarded.json(&["peers"])?;
            assert_eq!((&peers[0]["sends"], &peers[0]["receives"]), (&sends.into(), &receives.into()), "{peers}");
        }
        let stream = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
        stream.await_progress(1 << 22, SOON)
    });
}

#[test]
fn a_payload_is_readable_on_the_wire_only_without_confidentiality() {
    perform(&["a", "b"], |stage| {
        for (confidentiality, readable) in [(true, false), (false, true)] {
            let plan = || Plan::default().cll(&format!("confidentiality = {confidentiality}"));
            let (a, b) = (stage.host("a"), stage.host("b"));
            let _guarded = (stage.guard("a", plan())?, stage.guard("b", plan())?);
            let (sender, receiver) = (Mailbox::open(a, PORT)?, Mailbox::open(b, PORT)?);
            await_datagram(&sender, b, &receiver, SOON)?;
            let sent = watch_sent(stage, a)?;
            sender.send(b, PORT, SECRET);
            process::until("the payload's arrival", SOON, || {
                Ok(receiver.take()?.iter().any(|(_, payload)| payload == SECRET))
            })?;
            let sent = sent.stop()?;
            assert_eq!(sent.iter().any(|frame| frame.contains(SECRET)), readable);
            assert!(sent.iter().all(|frame| frame.is(EtherType::CLL)));
        }
        Ok(())
    });
}

#[test]
fn who_offers_less_than_is_required_is_refused_by_name() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let near = stage.guard("a", Plan::default().cll("require_confidentiality = true"))?;
        let far = stage.guard("b", Plan::default().cll("confidentiality = false"))?;
        assert!(!pings(&a.namespace, b.ip, "")? && !pings(&b.namespace, a.ip, "")?);
        near.await_drops("weak-offer", 1)?;
        near.await_event("weak-offer", SOON)?;
        assert_no_association(&[&near, &far])
    });
}

#[test]
fn a_suite_that_is_not_accepted_is_refused_by_name() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let near = stage.guard("a", Plan::default().cll("require_suites = [\"aes-256-gcm\"]"))?;
        // What a host demands of its peers need not hold for itself.
        let far = Plan::default().cll("send_suite = \"aes-128-gcm\"\nrequire_suites = [\"aes-256-gcm\"]");
        let far = stage.guard("b", far)?;
        assert!(!pings(&b.namespace, a.ip, "")?);
        near.await_drops("weak-offer", 1)?;
        assert!(!pings(&a.namespace, b.ip, "")?);
        assert_no_association(&[&near, &far])
    });
}

fn assert_no_association(hosts: &[&Guarded]) -> Outcome {
    for guarded in hosts {
        assert_eq!(guarded.status()?["peers"], 0, "{}", guarded.json(&["peers"])?);
    }
    Ok(())
}

#[test]
fn a_peer_whose_certificate_is_over_is_refused_with_an_event() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let short = stage.site.issue_for(b, Role::Host, Duration::from_secs(4))?;
        let issued = std::time::Instant::now();
        let _far = stage.guard("b", Plan::default().identity(short))?;
        let near = stage.guard("a", Plan::default())?;
        process::pause(Duration::from_secs(6).saturating_sub(issued.elapsed()))?;
        assert!(!pings(&b.namespace, a.ip, "")?);
        near.await_drops("bad-certificate", 1)?;
        near.await_event("bad-certificate", SOON)?;
        assert!(near.events()?.contains("expired"), "{}", near.events()?);
        assert!(!pings(&a.namespace, b.ip, "")?);
        assert_no_association(&[&near])
    });
}

#[test]
fn a_host_of_another_site_is_refused_before_any_signature() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let foreign = Site::found(stage.run, "foreign")?;
        let identity = foreign.issue("b", &format!("--mac {} --ip {}", b.mac, b.ip))?;
        let (near, far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default().identity(identity))?);
        assert!(!pings(&a.namespace, b.ip, "")? && !pings(&b.namespace, a.ip, "")?);
        near.await_drops("handshake-site-mac", 1)?;
        far.await_drops("handshake-site-mac", 1)?;
        assert_no_association(&[&near, &far])
    });
}

#[test]
fn an_enrolled_host_with_an_address_of_its_own_choice_is_dropped_by_name() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        reach(&b.namespace, a.ip, SOON)?;
        b.namespace.ip(&format!("address add 10.77.0.66/24 dev {INTERFACE}"))?;
        let stack = watch_stack(stage, a)?;
        assert!(!pings(&b.namespace, a.ip, "-I 10.77.0.66")?);
        let liar = ip("10.77.0.66");
        assert!(stack.stop()?.iter().all(|frame| frame.ipv4_source() != Some(liar)));
        near.await_drops("inner-source", 1)
    });
}

#[test]
fn a_legacy_host_is_reached_both_ways_and_only_under_its_own_address() {
    perform(&["a", "c"], |stage| {
        let (a, printer) = (stage.host("a"), stage.host("c"));
        let guarded = stage.guard("a", Plan::default().tail(&legacy(printer, "host")))?;
        let (inside, outside) = (Mailbox::open(a, PORT)?, Mailbox::open(printer, PORT)?);
        reach(&a.namespace, printer.ip, SOON)?;
        reach(&printer.namespace, a.ip, SOON)?;
        await_datagram(&outside, a, &inside, SOON)?;
        await_datagram(&inside, printer, &outside, SOON)?;
        let stream = Stream::start(&a.namespace, &printer.namespace, printer.ip, 5001)?;
        stream.await_progress(1 << 22, SOON)?;
        let stream = Stream::start(&printer.namespace, &a.namespace, a.ip, 5002)?;
        stream.await_progress(1 << 22, SOON)?;

        printer.namespace.ip(&format!("address add 10.77.0.99/24 dev {INTERFACE}"))?;
        let stack = watch_stack(stage, a)?;
        assert!(!pings(&printer.namespace, a.ip, "-I 10.77.0.99")?, "a spoofed address of a legacy host was answered");
        let spoofed = ip("10.77.0.99");
        assert!(stack.stop()?.iter().all(|frame| frame.ipv4_source() != Some(spoofed)));
        guarded.await_drops("legacy-address", 1)
    });
}

fn legacy(host: &Host, role: &str) -> String {
    format!("[[cll.legacy]]\nip = \"{}\"\nmac = \"{}\"\nrole = \"{role}\"\n", host.ip, host.mac)
}

#[test]
fn what_lies_behind_a_plain_router_on_the_legacy_list_is_reached() {
    perform(&["a", "c"], |stage| {
        let (a, router) = (stage.host("a"), stage.host("c"));
        let beyond = Beyond::put_behind(stage, router)?;
        a.namespace.ip(&format!("route add 10.99.0.0/24 via {}", router.ip))?;
        let _guarded = stage.guard("a", Plan::default().tail(&legacy(router, "router")))?;
        reach(&a.namespace, ip(BEYOND), SOON)?;
        reach(&beyond.0, a.ip, SOON).map(drop)
    });
}

#[test]
fn what_lies_behind_a_router_is_reached_with_the_role_and_not_without() {
    perform(&["a", "b"], |stage| {
        let (a, router) = (stage.host("a"), stage.host("b"));
        let beyond = Beyond::put_behind(stage, router)?;
        a.namespace.ip(&format!("route add 10.99.0.0/24 via {}", router.ip))?;
        let near = stage.guard("a", Plan::default())?;
        let target = ip(BEYOND);

        let plain = stage.guard("b", Plan::default())?;
        reach(&a.namespace, router.ip, SOON)?;
        assert!(!pings(&a.namespace, target, "")? && !pings(&beyond.0, a.ip, "")?);
        near.await_drops("inner-source", 1)?;
        drop(plain);

        let role = format!("--mac {} --ip {} --role router", router.mac, router.ip);
        let identity = stage.site.issue("b", &role)?;
        let _router = stage.guard("b", Plan::default().identity(identity))?;
        reach(&a.namespace, target, SOON)?;
        reach(&beyond.0, a.ip, SOON)?;
        let stream = Stream::start(&a.namespace, &beyond.0, target, 5001)?;
        stream.await_progress(1 << 22, SOON)?;
        let stream = Stream::start(&beyond.0, &a.namespace, a.ip, 5002)?;
        stream.await_progress(1 << 22, SOON)
    });
}

/// Address of the host behind the router.
const BEYOND: &str = "10.99.0.2";

/// The stack of a host that is not on the LAN.
struct Beyond(Namespace);

impl Beyond {
    /// Puts it on another network of `router`.
    fn put_behind(stage: &Stage, router: &Host) -> Result<Beyond, Failure> {
        let beyond = Beyond(Namespace::create(stage.run, "z")?);
        router.namespace.ip(&format!("link add r0 type veth peer name e0 netns {}", beyond.0.name()))?;
        router.namespace.ip("address add 10.99.0.1/24 dev r0")?;
        router.namespace.ip("link set r0 up")?;
        router.namespace.set_kernel_parameter("ipv4/ip_forward", "1")?;
        beyond.0.ip(&format!("address add {BEYOND}/24 dev e0"))?;
        beyond.0.ip("link set e0 up")?;
        beyond.0.ip("route add default via 10.99.0.1")?;
        Ok(beyond)
    }
}

impl Drop for Beyond {
    fn drop(&mut self) {
        // What stays is found by the test's own look at what it left.
        let _gone = self.0.delete();
    }
}

#[test]
fn link_discovery_passes_in_clear_only_where_it_is_configured() {
    perform(&["a", "c"], |stage| {
        let (a, c) = (stage.host("a"), stage.host("c"));
        for (plan, passes) in [(Plan::default(), false), (Plan::default().cll("pass = [\"lldp\"]"), true)] {
            let guarded = stage.guard("a", plan)?;
            let (sent, stack) = (watch_sent(stage, a)?, watch_stack(stage, a)?);
            let arriving = watch_arriving(stage, a)?;
            python(a, LLDP, &[])?;
            python(c, LLDP, &[])?;
            let is_lldp = |frame: &Frame| frame.is(EtherType::LLDP);
            await_frames(&arriving, "LLDP on the wire", 1, is_lldp)?;
            let (sent, stack) = (sent.stop()?, stack.stop()?);
            assert_eq!((sent.iter().any(is_lldp), stack.iter().any(is_lldp)), (passes, passes));
            drop(guarded);
        }
        Ok(())
    });
}

/// Sends one frame of the Link Layer Discovery Protocol, to a group address that this bridge forwards.
const LLDP: &str = r#"
import socket
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("e0", 0))
source = wire.getsockname()[4]
wire.send(bytes.fromhex("0180c20000ff") + source + bytes.fromhex("88cc0207040200000000010403023130060200780000") + bytes(30))
"#;
