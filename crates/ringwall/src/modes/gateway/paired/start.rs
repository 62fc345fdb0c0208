//! What a gateway of a pair needs before its first frame: the key, the machine, the sync link.

use std::fs::File;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pair::{Cards, Pair, Secret, Settings};
use scrub::Keys;
use scrub::keys::KEY_LEN;
use system::clock::Clock;
use system::takeover::{Gateway, Role};
use wire::MacAddress;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::modes::gateway::config::PairSection;
use crate::randomness;

/// Hexadecimal digits of the key, and a line's end.
const DIGITS: usize = 64;
const REMEDY: &str =
    "write 64 hexadecimal digits to it, as of `openssl rand -hex 32`, with mode 0600, the same on both";

/// A gateway that is one of a pair.
pub(crate) struct Joined {
    pub(super) machine: Pair,
    /// The sync link, for the data path, which sends.
    pub(super) socket: UdpSocket,
    /// The hardware addresses of the trusted and the untrusted card.
    pub(super) cards: [MacAddress; 2],
}

/// The key in `file`.
pub(crate) fn secret(file: &Path) -> Result<Secret, Failure> {
    read(file).map(Secret::from_bytes).map_err(|error| Failure::file(file, error, REMEDY))
}

fn read(file: &Path) -> io::Result<[u8; DIGITS / 2]> {
    let mut opened = File::open(file)?;
    if opened.metadata()?.mode() & 0o077 != 0 {
        return Err(io::Error::other("others than root may read it"));
    }
    let mut text = Zeroizing::new([0; DIGITS]);
    opened.read_exact(&mut text[..]).map_err(|_| io::Error::other("it is too short"))?;
    let mut rest = Zeroizing::new(Vec::new());
    opened.take(8).read_to_end(&mut rest)?;
    let mut key = [0; DIGITS / 2];
    for (byte, pair) in key.iter_mut().zip(text.as_chunks::<2>().0) {
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (high, low) = digit(pair[0]).zip(digit(pair[1])).ok_or_else(|| io::Error::other("it is no key"))?;
        *byte = high << 4 | low;
    }
    let is_end = rest.iter().all(u8::is_ascii_whitespace);
    if is_end { Ok(key) } else { Err(io::Error::other("it is too long")) }
}

/// The scrubber's keys that both gateways derive alike, so that shifts agree.
pub(crate) fn keys(secret: &Secret) -> Keys {
    let key = |purpose: &[u8]| *secret.derive::<KEY_LEN>(purpose);
    Keys { tables: key(b"tables"), sequence: key(b"sequence"), identification: key(b"identification") }
}

/// Opens the sync link and begins on standby; the other socket is for the supervisor, which hears.
pub(crate) fn join(section: &PairSection, secret: Secret, gateway: &Gateway) -> Result<(Joined, UdpSocket), Failure> {
    let failed = |error: io::Error| {
        let what = format!("pair.local {} to pair.peer {}: {error}", section.local, section.peer);
        Failure::new(format!("{what}; give the sync interface that address"))
    };
    let open = || {
        let socket = UdpSocket::bind(section.local)?;
        socket.connect(section.peer)?;
        socket.set_nonblocking(true)?;
        let other = socket.try_clone()?;
        Ok((socket, other))
    };
    let (socket, hears) = open().map_err(failed)?;
    let settings = Settings {
        priority: section.priority,
        preempt: section.preempt,
        heartbeat: section.heartbeat(),
        records_per_s: u32::try_from(section.records_per_s.get()).unwrap_or(u32::MAX),
    };
    let now = Clock::new().now().since_boot;
    let machine = Pair::new(settings, secret, randomness::generator()?, now, cards(gateway));
    let address = |role| gateway.card(role).map_or(MacAddress::ZERO, |card| card.mac);
    let cards = [address(Role::Trusted), address(Role::Untrusted)];
    Ok((Joined { machine, socket, cards }, hears))
}

/// Which cards have a link.
pub(crate) fn cards(gateway: &Gateway) -> Cards {
    let has_link = |role| gateway.card(role).is_some_and(|card| card.carrier);
    Cards { trusted: has_link(Role::Trusted), untrusted: has_link(Role::Untrusted) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_file_is_64_digits_for_root_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pair.key");
        let write = |text: &str, mode: u32| {
            std::fs::write(&file, text).expect("ours");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("ours");
            secret(&file).map(|secret| keys(&secret)).map_err(|failure| failure.to_string())
        };
        let digits = "0123456789abcdefABCDEF0123456789".repeat(2);
        let first = write(&format!("{digits}\n"), 0o600).expect("a key");
        let again = write(&digits, 0o600).expect("a key");
        assert_eq!((first.tables, first.sequence), (again.tables, again.sequence));
        assert_ne!(first.tables, first.sequence);
        let wrong = [
            (digits.clone(), 0o640, "others than root"),
            (digits[1..].to_owned(), 0o600, "too short"),
            (format!("{digits}00"), 0o600, "too long"),
            (digits.replace('0', "g"), 0o600, "no key"),
        ];
        for (text, mode, what) in wrong {
            let line = write(&text, mode).expect_err("refused");
            assert!(line.contains(what) && line.contains("openssl rand -hex 32"), "{line}");
            assert!(!line.contains("abcdef"), "no digit of it shows: {line}");
        }
    }
}
