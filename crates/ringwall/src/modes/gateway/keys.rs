//! The scrubber's secrets: made at the first start and kept in a file that outlives the daemon but
//! not the machine, so that flows whose numbers are shifted survive a restart and nothing links the
//! numbers of two boots.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use scrub::Keys;
use scrub::keys::KEY_LEN;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::randomness;

/// Bytes of the file: the keys one behind the other.
const FILE_LEN: usize = 3 * KEY_LEN;
const REMEDY: &str = "remove it; flows whose numbers are shifted end then";

/// The keys of a gateway.
pub(super) enum Kept {
    /// Those of the run before.
    Before(Keys),
    /// They were made just now: no earlier run had them, or the file in which it kept its own is
    /// lost.
    New(Keys),
}

/// The keys in `file`, which is made if there is none. The caller holds the lock of the gateway.
pub(super) fn load_or_make(file: &Path) -> Result<Kept, Failure> {
    match File::open(file) {
        Ok(opened) => read(opened).map(Kept::Before).map_err(|error| Failure::file(file, error, REMEDY)),
        Err(error) if error.kind() == ErrorKind::NotFound => make(file).map(Kept::New),
        Err(error) => Err(Failure::file(file, error, REMEDY)),
    }
}

/// The keys that both gateways of a pair have, entered in `file`. They count as those of the run
/// before unless that file has others: then connections of this boot were shifted with those.
pub(super) fn shared(file: &Path, keys: Keys) -> Result<Kept, Failure> {
    let same = |other: &Keys| (other.tables, other.sequence) == (keys.tables, keys.sequence);
    match File::open(file) {
        Ok(opened) => {
            if read(opened).as_ref().is_ok_and(same) {
                return Ok(Kept::Before(keys));
            }
            std::fs::remove_file(file).map_err(|error| Failure::file(file, error, REMEDY))?;
            write(file, &bytes_of(&keys))?;
            return Ok(Kept::New(keys));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => write(file, &bytes_of(&keys))?,
        Err(error) => return Err(Failure::file(file, error, REMEDY)),
    }
    Ok(Kept::Before(keys))
}

fn bytes_of(keys: &Keys) -> Zeroizing<[u8; FILE_LEN]> {
    let mut bytes = Zeroizing::new([0; FILE_LEN]);
    let parts = bytes.as_chunks_mut::<KEY_LEN>().0.iter_mut();
    parts.zip([keys.tables, keys.sequence, keys.identification]).for_each(|(part, key)| *part = key);
    bytes
}

fn read(mut file: File) -> io::Result<Keys> {
    if file.metadata()?.mode() & 0o077 != 0 {
        return Err(io::Error::other("others than root may read it"));
    }
    let mut bytes = Zeroizing::new([0; FILE_LEN]);
    file.read_exact(&mut bytes[..]).map_err(|_| io::Error::other("it is too short"))?;
    Ok(keys(&bytes))
}

fn make(file: &Path) -> Result<Keys, Failure> {
    let mut bytes = Zeroizing::new([0; FILE_LEN]);
    randomness::secrets()?.fill(&mut bytes[..]);
    write(file, &bytes)?;
    Ok(keys(&bytes))
}

fn write(file: &Path, bytes: &[u8; FILE_LEN]) -> Result<(), Failure> {
    let written = || {
        let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
        opened.write_all(&bytes[..])
    };
    written().map_err(|error| Failure::file(file, error, "make gate.run_dir writable for root"))
}

fn keys(bytes: &[u8; FILE_LEN]) -> Keys {
    let mut part = bytes.as_chunks::<KEY_LEN>().0.iter().copied();
    let mut next = || part.next().unwrap_or_default();
    Keys { tables: next(), sequence: next(), identification: next() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_outlive_a_restart_and_are_readable_by_root_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("eth1.keys");
        let made = |file: &Path| match load_or_make(file).expect("made") {
            Kept::New(keys) => keys,
            Kept::Before(_) => panic!("nobody had made any"),
        };
        let first = made(&file);
        let Kept::Before(again) = load_or_make(&file).expect("there") else { panic!("the same as before") };
        assert_eq!((first.tables, first.sequence), (again.tables, again.sequence));
        assert_ne!(first.tables, first.sequence);
        let mode = |file: &Path| std::fs::metadata(file).expect("there").mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        let other = made(&directory.path().join("eth2.keys"));
        assert_ne!(other.tables, first.tables);
    }

    #[test]
    fn keys_of_a_pair_count_as_those_before_unless_others_were_in_use() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("eth1.keys");
        let shared_keys = || Keys { tables: [1; KEY_LEN], sequence: [2; KEY_LEN], identification: [3; KEY_LEN] };
        let is_before = || matches!(shared(&file, shared_keys()).expect("written"), Kept::Before(_));
        assert!(is_before() && is_before());
        std::fs::remove_file(&file).expect("there");
        load_or_make(&file).expect("made");
        assert_eq!([is_before(), is_before()], [false, true]);
    }

    #[test]
    fn a_file_that_others_may_read_or_that_is_cut_short_is_refused_by_name() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("eth1.keys");
        let refusal = |file: &Path| load_or_make(file).err().expect("refused").to_string();
        load_or_make(&file).expect("made");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("ours");
        let line = refusal(&file);
        assert!(line.contains("eth1.keys: others than root may read it; remove it"), "{line}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("ours");
        std::fs::write(&file, [0; 47]).expect("ours");
        assert!(refusal(&file).contains("too short"));
    }
}
