//! What a card is set to do by itself, by the names that `ethtool -k` has (`linux/ethtool.h`).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
/// The set of names that features have.
const ETH_SS_FEATURES: u32 = 4;
const NAME_LEN: usize = 32;
/// The kernel has some sixty.
const FEATURES_MAX: usize = 1024;
/// Of a block of 32 features: available, requested, active, never changed.
const WORDS_OF_BLOCK: usize = 4;
const ACTIVE: usize = 2;

/// Whether the feature of this name is active at an interface of this network namespace; one that
/// the kernel does not know is not.
///
/// # Errors
/// What the kernel says of the interface.
pub fn is_active(interface: &str, feature: &str) -> io::Result<bool> {
    let names = names(interface)?;
    let Some(at) = names.iter().position(|name| name == feature) else { return Ok(false) };
    let blocks = names.len().div_ceil(32);
    let mut request = vec![0; 2 + blocks * WORDS_OF_BLOCK];
    (request[0], request[1]) = (ETHTOOL_GFEATURES, u32::try_from(blocks).unwrap_or_default());
    ask(interface, &mut request)?;
    Ok(request[2 + at / 32 * WORDS_OF_BLOCK + ACTIVE] >> (at % 32) & 1 == 1)
}

/// The names of all features, in the kernel's order.
fn names(interface: &str) -> io::Result<Vec<String>> {
    // Command, a reserved word, which sets (64 bits), and the length of each.
    let mut info = vec![ETHTOOL_GSSET_INFO, 0, 0, 0, 0];
    let sets = (1_u64 << ETH_SS_FEATURES).to_ne_bytes();
    for (word, bytes) in info[2..4].iter_mut().zip(sets.chunks(4)) {
        *word = u32::from_ne_bytes(bytes.try_into().unwrap_or_default());
    }
    ask(interface, &mut info)?;
    let count = (info[4] as usize).min(FEATURES_MAX);
    let mut request = vec![0; 3 + count * NAME_LEN / 4];
    (request[0], request[1], request[2]) = (ETHTOOL_GSTRINGS, ETH_SS_FEATURES, info[4]);
    if count < info[4] as usize {
        return Err(io::Error::other("the kernel has more features than are read here"));
    }
    ask(interface, &mut request)?;
    let bytes: Vec<u8> = request[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = |bytes: &[u8]| {
        let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    };
    Ok(bytes.chunks(NAME_LEN).map(name).collect())
}

/// Has the kernel read and write `request`, which begins with its command.
fn ask(interface: &str, request: &mut [u32]) -> io::Result<()> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: `ifreq` is plain data for which all zero bytes are valid.
    let mut wanted: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= wanted.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (to, from) in wanted.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    wanted.ifr_ifru.ifru_data = request.as_mut_ptr().cast();
    // SAFETY: SIOCETHTOOL reads the name, and of the memory at `ifru_data` as much as the command and
    // the counts in it say, which `request` has. Both live until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut wanted) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_known_by_its_features() {
        let names = names("lo").expect("names");
        assert!(names.iter().any(|name| name == "rx-gro-list") && names.len() > 30, "{names:?}");
        assert!(is_active("lo", "rx-gro").expect("read"), "the kernel's preset");
        assert!(!is_active("lo", "rx-gro-list").expect("read"));
        assert!(!is_active("lo", "no-such-feature").expect("read"));
        assert!(is_active("no-such-card", "rx-gro").is_err() && is_active(&"x".repeat(40), "rx-gro").is_err());
    }
}
