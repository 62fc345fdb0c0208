//! What a LAN needs before an attack on it: IPv6 where the attack is of it, and a link that does to
//! frames what an attacker on the wire would.

use std::time::Duration;

use crate::failure::Failure;
use crate::guard::Guard;
use crate::net::lan::{INTERFACE, Lan};
use crate::net::{Host, ImpairedPort, Impairment, Percent, Place, process};

/// Bytes of the payload by which frames of an attack are known; no other traffic in the lab is as
/// long.
pub const MARKED_LEN: usize = 700;
/// By how many bytes frames are cut or lengthened, in turn: one, a tag, a tag and more, as much as
/// the shortest frame may be padded, and most of what there is.
const RESIZED_BY: [i16; 6] = [-1, 1, -16, -40, 46, -600];
/// How long a host may take to what it does without being asked twice; routers speak every four
/// seconds.
pub(super) const SOON: Duration = Duration::from_secs(15);

/// Switches IPv6 on, on all hosts.
///
/// # Errors
/// The kernel has none.
pub fn switch_ipv6_on(lan: &Lan) -> Result<(), Failure> {
    for host in &lan.hosts {
        for scope in ["all", "default", INTERFACE] {
            host.namespace.set_kernel_parameter(&format!("ipv6/conf/{scope}/disable_ipv6"), "0")?;
        }
    }
    Ok(())
}

/// Waits until all hosts may use the addresses that they made of their hardware addresses.
///
/// # Errors
/// One may not.
pub fn await_addresses(lan: &Lan) -> Result<(), Failure> {
    lan.hosts.iter().try_for_each(|host| await_address(host, &host.link_local().to_string()).map(drop))
}

/// The address of `host` that begins with `prefix`, once it is usable.
pub(super) fn await_address(host: &Host, prefix: &str) -> Result<String, Failure> {
    let mut found = None;
    process::until(&format!("an address {prefix} of host {}", host.name), SOON, || {
        let lines = address_lines(host, prefix)?;
        found = lines.iter().find(|line| !line.contains("tentative")).and_then(|line| address_in(line));
        Ok(found.is_some())
    })?;
    found.ok_or_else(|| Failure::Unreadable("`ip addr show`".to_owned()))
}

/// What `ip` shows of the addresses of `host` that begin with `prefix`, one line each.
pub(super) fn address_lines(host: &Host, prefix: &str) -> Result<Vec<String>, Failure> {
    let shown = host.namespace.ip(&format!("-6 -o addr show dev {INTERFACE}"))?;
    let has_prefix = |line: &&str| line.split_whitespace().nth(3).is_some_and(|address| address.starts_with(prefix));
    Ok(shown.lines().filter(has_prefix).map(str::to_owned).collect())
}

fn address_in(line: &str) -> Option<String> {
    Some(line.split_whitespace().nth(3)?.split('/').next()?.to_owned())
}

/// The attacker on the wire of b in the attack of this `number`. The rest of the traffic shows
/// whether the wire itself works.
pub(super) fn port(number: u16, guard: Guard, seed: u64) -> ImpairedPort {
    let all = Percent::whole(100);
    let impairment = Impairment { only_from_bytes: MARKED_LEN, ..Impairment::default() };
    let impairment = match number {
        43 => Impairment { duplicate: all, reorder: all, ..impairment },
        45 => Impairment { corrupt: all, resize_by: RESIZED_BY.to_vec(), mend_udp: true, ..impairment },
        _ => Impairment { corrupt: all, flip_at: flipped(guard), mend_udp: true, ..impairment },
    };
    ImpairedPort { host: "b", impairment, seed, program: None }
}

/// Where bits are flipped: header, ciphertext and tag take turns.
fn flipped(guard: Guard) -> Vec<Place> {
    match guard {
        Guard::None => vec![Place::Body],
        _ => vec![Place::Header, Place::Body, Place::Tag],
    }
}
