//! Hosts whose stacks hand over frames beyond 64 KiB ("BIG TCP") reach each other through the
//! gateway.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpStream};

use ringwall_lab::failure::Failure;

use super::{HOST_INTERFACE, Path, TRUSTED_V6, perform_between};
use crate::stage::Outcome;

const BULK: usize = 32 << 20;
/// Linux's example of a length beyond what IPv6 can say.
const RAISE: &str = "gso_max_size 185000 gro_max_size 185000";

fn pattern() -> Vec<u8> {
    (0..BULK as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

/// Sends the pattern from one end to the other, which must read just that.
fn carry(from: &mut TcpStream, to: &mut TcpStream) -> Outcome {
    let sent = pattern();
    let heard = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut heard = vec![0; BULK];
            to.read_exact(&mut heard).map(|()| heard)
        });
        from.write_all(&sent).map_err(Failure::io("sending"))?;
        reading.join().expect("the reader ends well").map_err(Failure::io("reading"))
    })?;
    assert!(heard == sent, "the stream itself");
    Ok(())
}

/// Frames that either port of the gateway could not read.
fn unreadable(path: &Path) -> Result<u64, Failure> {
    let status = path.status()?;
    let count = |port: &str| status["ports"][format!("{port}_received_unreadable")].as_u64().expect("a counter");
    Ok(count("trusted") + count("untrusted"))
}

#[test]
fn frames_beyond_64_kib_are_cut_and_not_lost() {
    perform_between("", |path| {
        for host in [&path.trusted, &path.untrusted] {
            host.ip(&format!("link set dev {HOST_INTERFACE} {RAISE}"))?;
        }
        let at: Ipv6Addr = TRUSTED_V6.parse().expect("an address");
        let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, at, 5001)?;
        carry(&mut client, &mut server)?;
        carry(&mut server, &mut client)?;
        // The first of them had no room, and so show that the hosts make them.
        let met = unreadable(path)?;
        assert!(met > 0, "no frame was longer than usual");
        carry(&mut client, &mut server)?;
        carry(&mut server, &mut client)?;
        assert_eq!(unreadable(path)?, met, "all of them have room now");
        assert_eq!(path.status()?["drops"]["ip-header"].as_u64().unwrap_or(0), 0);
        Ok(())
    });
}
