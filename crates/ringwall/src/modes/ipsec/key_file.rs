//! The file that one end of a pair has: which end it is, the keys of one epoch or two, and under
//! which it sends.
//!
//! TOML, readable for its owner only. Both ends have the same keys; they differ in `end`, and may
//! differ in `send`.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bump::ErasingGenerator;
use serde::{Deserialize, Serialize};
use shield::ipsec::limits::EPOCHS_MAX;
use shield::ipsec::{End, EpochKey, KEY_LEN, PairKeys};
use zeroize::{Zeroize, Zeroizing};

use crate::failure::Failure;
use crate::monitor::Disk;

const AGAIN: &str = "make the pair's files again with `ringwall shield keys make`";
const HEAD: &str =
    "# What one end of a pair of shields has; whoever reads it can pass the shield. See `ringwall shield keys`.\n";

/// The file as it is written.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyFile {
    end: Letter,
    /// The epoch that this end sends under.
    pub(super) send: u32,
    /// All epochs that it takes, the oldest first.
    pub(super) epochs: Vec<Epoch>,
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Letter {
    A,
    B,
}

/// A key and the number by which people call it.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Epoch {
    pub(super) number: u32,
    /// 32 hexadecimal digits.
    key: String,
}

impl std::fmt::Debug for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Epoch {}", self.number)
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl Epoch {
    /// A key of its own.
    pub(super) fn fresh(number: u32, secrets: &mut ErasingGenerator) -> Epoch {
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        secrets.fill(&mut bytes[..]);
        let mut key = String::with_capacity(2 * KEY_LEN);
        for byte in bytes.iter() {
            for digit in [byte >> 4, byte & 0x0f] {
                key.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
            }
        }
        Epoch { number, key }
    }

    fn key(&self) -> Option<EpochKey> {
        let digits = self.key.as_bytes();
        if digits.len() != 2 * KEY_LEN {
            return None;
        }
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        let mut epoch = EpochKey { number: self.number, key: [0; KEY_LEN] };
        for (at, byte) in epoch.key.iter_mut().enumerate() {
            *byte = (digit(2 * at)? << 4 | digit(2 * at + 1)?) as u8;
        }
        Some(epoch)
    }
}

impl KeyFile {
    /// The files of both ends of a new pair.
    pub(super) fn pair(secrets: &mut ErasingGenerator) -> [KeyFile; 2] {
        let first = Epoch::fresh(1, secrets);
        [Letter::A, Letter::B].map(|end| KeyFile { end, send: 1, epochs: vec![first.clone()] })
    }

    /// Reads and checks `file`.
    pub(super) fn read(file: &Path) -> Result<KeyFile, Failure> {
        KeyFile::read_from(&Disk::own(None), file)
    }

    fn read_from(disk: &Disk, file: &Path) -> Result<KeyFile, Failure> {
        let text = read_private(disk, file).map_err(|error| Failure::file(file, error, AGAIN))?;
        let parsed: KeyFile = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            // Not the library's message, which may quote the key.
            Failure::file(file, format!("line {line} is none of a key file"), AGAIN)
        })?;
        parsed.check().map_err(|what| Failure::file(file, what, AGAIN))?;
        Ok(parsed)
    }

    fn check(&self) -> Result<(), String> {
        if self.epochs.is_empty() || self.epochs.len() > EPOCHS_MAX {
            return Err(format!("it has {} epochs, and there may be 1 to {EPOCHS_MAX}", self.epochs.len()));
        }
        if self.epochs.windows(2).any(|pair| pair[0].number >= pair[1].number) {
            return Err("its epochs are not in order".to_owned());
        }
        if let Some(epoch) = self.epochs.iter().find(|epoch| epoch.key().is_none()) {
            return Err(format!("the key of epoch {} is not {} hexadecimal digits", epoch.number, 2 * KEY_LEN));
        }
        match self.epochs.iter().any(|epoch| epoch.number == self.send) {
            true => Ok(()),
            false => Err(format!("send = {} is none of its epochs", self.send)),
        }
    }

    /// Whether `other` is the file of the other end, with the same keys.
    pub(super) fn fits(&self, other: &KeyFile) -> bool {
        let same = |(mine, theirs): (&Epoch, &Epoch)| (mine.number, &mine.key) == (theirs.number, &theirs.key);
        let keys = self.epochs.len() == other.epochs.len() && self.epochs.iter().zip(&other.epochs).all(same);
        keys && self.end != other.end
    }

    /// Writes `file`, in place of what is there if `replace`.
    pub(super) fn write(&self, file: &Path, replace: bool) -> Result<(), Failure> {
        let text = Zeroizing::new(format!("{HEAD}{}", toml::to_string(self).map_err(Failure::new)?));
        let written = if replace { replace_private(file, &text) } else { create_private(file, &text) };
        written.map_err(|error| Failure::file(file, error, "name a file that is not there, in a directory that is"))
    }

    /// The same for the bump.
    fn keys(&self) -> PairKeys {
        PairKeys {
            end: match self.end {
                Letter::A => End::A,
                Letter::B => End::B,
            },
            epochs: self.epochs.iter().filter_map(Epoch::key).collect(),
            send: self.send,
        }
    }
}

/// What `file` says to the bump.
pub(super) fn load(disk: &Disk, file: &Path) -> Result<PairKeys, Failure> {
    Ok(KeyFile::read_from(disk, file)?.keys())
}

fn read_private(disk: &Disk, file: &Path) -> io::Result<Zeroizing<String>> {
    let read = disk.read(file)?;
    match read.mode & 0o077 {
        0 => Ok(read.text),
        _ => Err(io::Error::other("others than its owner may read it (chmod 600)")),
    }
}

fn create_private(file: &Path, text: &str) -> io::Result<()> {
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()
}

/// By a file beside it, so that a reader finds the one or the other whole.
fn replace_private(file: &Path, text: &str) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    create_private(&beside, text)?;
    std::fs::rename(&beside, file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn line(file: &Path) -> String {
        load(&Disk::own(None), file).expect_err("refused").to_string()
    }

    #[test]
    fn both_ends_read_the_same_keys() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = ["a", "b"].map(|name| directory.path().join(name));
        let pair = KeyFile::pair(&mut ErasingGenerator::from_seed(&[1; 32]));
        for (file, end) in files.iter().zip(&pair) {
            end.write(file, false).expect("written");
            assert!(end.write(file, false).is_err(), "nothing is written over");
        }
        let [a, b] = files.map(|file| load(&Disk::own(None), &file).expect("readable"));
        assert_eq!((a.end, b.end, a.send), (End::A, End::B, 1));
        assert_eq!(a.epochs[0].key, b.epochs[0].key);
        assert_ne!(a.epochs[0].key, [0; KEY_LEN]);
        assert!(pair[0].fits(&pair[1]) && !pair[0].fits(&pair[0]));
    }

    #[test]
    fn a_file_that_cannot_be_trusted_is_refused_in_one_line_that_shows_no_key() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pair.keys");
        assert!(line(&file).contains("pair.keys") && line(&file).contains("shield keys make"));
        let key = "00112233445566778899aabbccddeeff";
        let put = |text: &str| {
            let _ = std::fs::remove_file(&file);
            create_private(&file, text).expect("written");
        };
        let epoch = |number: u32, key: &str| format!("[[epochs]]\nnumber = {number}\nkey = \"{key}\"\n");
        for (text, word) in [
            (format!("end = \"a\"\nsend = 2\n{}", epoch(1, key)), "none of its epochs"),
            (format!("end = \"a\"\nsend = 1\n{}", epoch(1, &key[1..])), "hexadecimal"),
            (format!("end = \"c\"\nsend = 1\n{}", epoch(1, key)), "line 1"),
            (format!("end = \"a\"\nsend = 1\n{}{}", epoch(2, key), epoch(1, key)), "in order"),
            (format!("end = \"a\"\nsend = 1\n{}{}{}", epoch(1, key), epoch(2, key), epoch(3, key)), "3 epochs"),
            ("end = \"a\"\nsend = 1\nepochs = []\n".to_owned(), "0 epochs"),
        ] {
            put(&text);
            let line = line(&file);
            assert!(line.contains(word) && !line.contains(key) && !line.contains('\n'), "{line}");
        }
        put(&format!("end = \"a\"\nsend = 1\n{}", epoch(1, key)));
        assert!(load(&Disk::own(None), &file).is_ok());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("ours");
        assert!(line(&file).contains("chmod 600"));
    }
}
