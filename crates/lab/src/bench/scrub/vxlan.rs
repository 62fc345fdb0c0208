//! TCP inside of VXLAN, through the gateway: super-frames in a tunnel, which a careless port forwards at a thousandth of the rate.

use std::net::Ipv4Addr;

use super::track::Track;
use super::turns::{in_turns, rows_of};
use crate::bench::Schedule;
use crate::bench::row::Row;
use crate::bench::tcp::Direction;
use crate::failure::Failure;
use crate::net::Host;
use crate::net::lan::{self, INTERFACE};

/// The tunnel's interface on both hosts.
const TUNNEL: &str = "vx0";
/// Addresses inside of the tunnel.
const TRUSTED: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const UNTRUSTED: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

/// One stream in the tunnel, on all ways in turns: with super-frames, which a bridge passes on as they are and a gateway
/// must cut where the kernel cannot be told what they are (record 0025), and without.
///
/// # Errors
/// `ip` or `ethtool` fails, or the lab is interrupted.
pub fn measure(tracks: &[Track], schedule: Schedule) -> Result<Vec<Row>, Failure> {
    for track in tracks {
        raise(&track.trusted, TRUSTED, track.untrusted.ip)?;
        raise(&track.untrusted, UNTRUSTED, track.trusted.ip)?;
    }
    let mut rows = Vec::new();
    for (name, on, schedule) in [("vxlan_no_offload", "off", schedule.lighter()), ("vxlan", "on", schedule)] {
        tracks.iter().try_for_each(|track| set_offloads(track, on))?;
        let runs = in_turns(tracks, schedule, name, |track| {
            let sample = track.stream_to(TRUSTED, None, Direction::Forward, schedule.seconds)?;
            Ok(sample.goodput_mbit)
        })?;
        rows.extend(rows_of(name, "Mbit/s", &runs));
    }
    Ok(rows)
}

/// Switches offloads of the tunnel's own interfaces, so that the frames in it are super-frames or not.
fn set_offloads(track: &Track, word: &str) -> Result<(), Failure> {
    let settings = ["tx", word, "tso", word, "gso", word];
    let mut hosts = [&track.trusted, &track.untrusted].into_iter();
    hosts.try_for_each(|host| lan::set_offloads(&host.namespace, TUNNEL, &settings))
}

fn raise(host: &Host, inner: Ipv4Addr, remote: Ipv4Addr) -> Result<(), Failure> {
    let ends = format!("local {} remote {remote}", host.ip);
    host.namespace.ip(&format!("link add {TUNNEL} type vxlan id 7 {ends} dstport 4789 dev {INTERFACE}"))?;
    host.namespace.ip(&format!("address add {inner}/24 dev {TUNNEL}"))?;
    host.namespace.ip(&format!("link set {TUNNEL} up")).map(drop)
}
