//! What the gateway cannot read: tunnels and encrypted protocols, where all may speak them and where only those who are listed.

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;

use super::raw::{await_frame, packet, put, raw};
use super::{Path, perform_between};
use crate::stage::{Outcome, SOON};

const TUNNELS: [(u8, &str); 4] = [(4, "IP in IP"), (41, "IPv6 in IP"), (47, "GRE"), (97, "Ethernet in IP")];
const ENCRYPTED: [(u8, &str); 3] = [(50, "ESP"), (51, "AH"), (253, "nobody's")];
/// Only who is listed may speak either.
const ONLY_LISTED: &str = "[gate.rules]\ntunnels = \"scrub\"\nencrypted = \"scrub\"";
const BOTH_HOSTS: &str = "[[\"10.6.0.1\", \"10.6.0.2/32\"]]";

/// An inner packet with a TCP header in it, as a tunnel carries it, with `mark` at its end.
fn carried(protocol: u8, mark: u8) -> Vec<u8> {
    let mut inner = packet(
        6,
        &[&[0x9c, 0x40, 0, 22, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 1, 0, 0, 0, 0][..], &[7; 900]].concat(),
    );
    inner.extend([mark; 8]);
    match protocol {
        // A GRE header that says IPv4, two bytes of an Ethernet in IP header, or none.
        47 => [&[0, 0, 8, 0], &inner[14..]].concat(),
        97 => [&[0x30, 0], &inner[..]].concat(),
        _ => inner[14..].to_vec(),
    }
}

/// A datagram to the port of VXLAN, without checksum as the tunnels send it (RFC 7348).
fn vxlan(mark: u8) -> Vec<u8> {
    let inner = carried(4, mark);
    let len = (16 + inner.len()) as u16;
    [&[0xc0, 0, 0x12, 0xb5][..], &len.to_be_bytes(), &[0, 0, 8, 0, 0, 0, 0, 0, 9, 0], &inner].concat()
}

/// Each of `kinds` from the untrusted to the trusted host comes out as it went in.
fn pass(path: &Path, kinds: &[(u8, &str)]) -> Outcome {
    let (mut sender, mut hearer) = (raw(&path.untrusted)?, raw(&path.trusted)?);
    for (protocol, name) in kinds {
        let sent = packet(*protocol, &carried(*protocol, 0x30 ^ protocol));
        put(&mut sender, &sent);
        let (tag, heard) = await_frame(&mut hearer, &sent)?;
        assert_eq!((tag, &heard), (None, &sent), "{name}");
    }
    let sent = packet(17, &vxlan(0x33));
    put(&mut sender, &sent);
    assert_eq!(await_frame(&mut hearer, &sent)?.1, sent, "VXLAN");
    Ok(())
}

fn drops(path: &Path) -> Result<u64, Failure> {
    Ok(path.status()?["drops"]["protocol-not-listed"].as_u64().unwrap_or(0))
}

#[test]
fn encrypted_protocols_pass_as_they_are_and_tunnels_where_they_may() {
    let lines = "[gate.rules]\ntunnelled-packets = \"off\"";
    perform_between(lines, |path| pass(path, &[&TUNNELS[..], &ENCRYPTED].concat()));
}

#[test]
fn listed_hosts_may_tunnel_and_encrypt() {
    let lines = format!("encrypted = {BOTH_HOSTS}\ntunnels = {BOTH_HOSTS}\n{ONLY_LISTED}");
    perform_between(&lines, |path| {
        pass(path, &[&TUNNELS[..], &ENCRYPTED].concat())?;
        assert_eq!(drops(path)?, 0);
        Ok(())
    });
}

#[test]
fn nobody_else_may() {
    perform_between(ONLY_LISTED, |path| {
        let mut sender = raw(&path.untrusted)?;
        for (protocol, _) in [&TUNNELS[..], &ENCRYPTED].concat() {
            put(&mut sender, &packet(protocol, &carried(protocol, 0x11)));
        }
        put(&mut sender, &packet(17, &vxlan(0x11)));
        let sent = (TUNNELS.len() + ENCRYPTED.len() + 1) as u64;
        process::until("all of them dropped", SOON, || Ok(drops(path)? >= sent))?;
        // Everything else passes, and an operator is told who it was.
        assert!(path.pings("")?);
        let said = path.ask(&["explain", "protocol-not-listed"])?.stdout;
        assert!(said.contains("10.6.0.2 -> 10.6.0.1, protocol "), "{said}");
        Ok(())
    });
}
