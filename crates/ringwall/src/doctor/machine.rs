//! Checks of what all interfaces share.

use bump::ClockTrust;

use super::Finding;
use super::facts::Machine;

/// The oldest kernel that a card can be closed on.
const KERNEL_MIN: (u32, u32) = (5, 16);
/// The oldest on which a card can stay in place.
const KERNEL_IN_PLACE: (u32, u32) = (5, 18);
/// From here on the kernel counts no program against `optmem_max`.
const KERNEL_WITHOUT_OPTMEM: (u32, u32) = (6, 7);
/// What every kernel has had for it, in bytes.
const OPTMEM_MIN: u64 = 20_480;

/// The first two numbers of a version.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn kernel(machine: &Machine) -> Finding {
    let release = &machine.kernel;
    match version(release) {
        None => Finding::unknown(format!("\"{release}\" is no version of Linux"), "see `uname -r`"),
        Some(found) if found < KERNEL_MIN => {
            Finding::critical(format!("Linux {release} is too old"), "use Linux 5.16 or newer")
        }
        Some(found) if found < KERNEL_IN_PLACE => {
            let what = format!("Linux {release} cannot guard a card in place");
            Finding::warning(what, "use Linux 5.18 or newer, or host.takeover = \"namespace\"")
        }
        Some(_) => Finding::good(format!("Linux {release}")),
    }
}

pub(super) fn tun(machine: &Machine) -> Finding {
    if machine.has_tun {
        return Finding::good("/dev/net/tun is there");
    }
    Finding::critical("/dev/net/tun is missing", "load the module tun; in a container, hand the device in")
}

pub(super) fn landlock(machine: &Machine) -> Finding {
    match &machine.security_modules {
        Err(why) => Finding::unknown(format!("the security modules: {why}"), "mount securityfs, or ask as root"),
        Ok(modules) if modules.trim().split(',').any(|module| module == "landlock") => Finding::good("Landlock is on"),
        Ok(_) => Finding::warning(
            "the kernel has Landlock off, which is one of four fences",
            "add landlock to lsm= on the kernel's command line",
        ),
    }
}

pub(super) fn tools(machine: &Machine) -> Finding {
    let missing = &machine.missing_tools;
    let names = missing.join(", ");
    match &missing[..] {
        [] => Finding::good("nft, ip and tc are there"),
        ["tc"] => Finding::warning("tc is missing, which in-place needs", "install iproute2"),
        _ => Finding::critical(format!("{names} missing"), "install nftables and iproute2"),
    }
}

pub(super) fn optmem(machine: &Machine) -> Finding {
    if version(&machine.kernel).is_some_and(|version| version >= KERNEL_WITHOUT_OPTMEM) {
        return Finding::good("this kernel has room for the checks, whatever net.core.optmem_max is");
    }
    match &machine.optmem_max {
        Err(why) => Finding::unknown(format!("net.core.optmem_max: {why}"), "see `sysctl net.core.optmem_max`"),
        Ok(bytes) if *bytes < OPTMEM_MIN => Finding::warning(
            format!("net.core.optmem_max is {bytes}: the kernel has no room for the checks"),
            format!("sysctl -w net.core.optmem_max={OPTMEM_MIN}, and keep it in /etc/sysctl.d"),
        ),
        Ok(bytes) => Finding::good(format!("net.core.optmem_max is {bytes}")),
    }
}

pub(super) fn account(machine: &Machine) -> Finding {
    match &machine.account {
        Ok(true) => Finding::good("there is an account ringwall"),
        Ok(false) => Finding::warning(
            "there is no account ringwall: daemons take a number without a name",
            "systemd-sysusers ringwall.conf, or useradd --system ringwall",
        ),
        Err(why) => Finding::critical(format!("daemons cannot start: {why}"), "make an account ringwall of its own"),
    }
}

pub(super) fn clock(machine: &Machine) -> Finding {
    match machine.clock {
        ClockTrust::Synchronised => Finding::good("the kernel says that the clock is synchronised"),
        ClockTrust::Plausible => Finding::warning(
            "nobody says that the clock is right, and certificates go by it",
            "run a time service: systemd-timesyncd or chrony",
        ),
        ClockTrust::Wrong => Finding::critical(
            "the clock shows a time before this program was written",
            "set it, and run a time service: systemd-timesyncd or chrony",
        ),
    }
}
