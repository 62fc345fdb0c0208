//! Files that are there whole or not at all.
//!
//! A file is first *staged*: written under a name of its own in the directory where it shall be, with its final
//! permissions, and synced. *Committing* renames it and syncs the directory. Whatever needs several files stages all of
//! them before it commits the first, so that a full disk or a missing directory shows before anything changed.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};
use zeroize::Zeroizing;

use crate::Error;
use crate::limits::MAX_FILE_LEN;

/// How the names of files begin that do not have their own yet.
const STAGED_PREFIX: &str = ".new-";

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// Its owner only.
    Secret,
    /// Everyone.
    Public,
}

impl Secrecy {
    fn permissions(self) -> Permissions {
        Permissions::from_mode(match self {
            Secrecy::Secret => 0o600,
            Secrecy::Public => 0o644,
        })
    }
}

/// Whether a file that is there may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// It may not.
    Never,
    /// It may.
    Force,
}

/// A file that is written but does not have its name yet; dropping it removes it.
#[derive(Debug)]
pub struct Staged {
    file: NamedTempFile,
    target: PathBuf,
    overwrite: Overwrite,
}

impl Staged {
    /// Writes `text` beside `target`.
    ///
    /// # Errors
    /// [`Error::Exists`] when `target` is there and may not be replaced, or what the operating system says.
    pub fn new(target: &Path, text: &str, secrecy: Secrecy, overwrite: Overwrite) -> Result<Self, Error> {
        Self::write(target, text, secrecy, overwrite).map_err(|error| error.with_file(target))
    }

    fn write(target: &Path, text: &str, secrecy: Secrecy, overwrite: Overwrite) -> Result<Self, Error> {
        if overwrite == Overwrite::Never && target.symlink_metadata().is_ok() {
            return Err(Error::Exists);
        }
        // Asked first for the sake of the message: the error of the next call names a file nobody has heard of.
        directory_of(target).metadata()?;
        let mut file = Builder::new()
            .prefix(STAGED_PREFIX)
            .permissions(secrecy.permissions())
            .tempfile_in(directory_of(target))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(Staged { file, target: target.to_owned(), overwrite })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// [`Error::Exists`] when another program made `target` meanwhile, or what the operating system says.
    pub fn commit(self) -> Result<(), Error> {
        let Staged { file, target, overwrite } = self;
        let persisted = match overwrite {
            Overwrite::Force => file.persist(&target),
            Overwrite::Never => file.persist_noclobber(&target),
        };
        persisted
            .map(drop)
            .map_err(|failed| match failed.error.kind() {
                io::ErrorKind::AlreadyExists => Error::Exists,
                _ => Error::Io(failed.error),
            })
            .and_then(|()| Ok(sync_directory(directory_of(&target))?))
            .map_err(|error| error.with_file(&target))
    }
}

/// Stages and commits one file.
///
/// # Errors
/// As [`Staged::new`] and [`Staged::commit`].
pub fn write(target: &Path, text: &str, secrecy: Secrecy, overwrite: Overwrite) -> Result<(), Error> {
    Staged::new(target, text, secrecy, overwrite)?.commit()
}

/// Removes what programs that were killed had staged in `directory`. For a directory in which nobody else writes now.
///
/// # Errors
/// What the operating system says.
pub fn remove_staged(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(STAGED_PREFIX.as_bytes()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The text of a file, which is overwritten in memory when dropped because it may hold a key.
///
/// # Errors
/// [`Error::TooLong`], or what the operating system says.
pub fn read(path: &Path) -> Result<Zeroizing<String>, Error> {
    let read = || -> Result<Zeroizing<String>, Error> {
        let mut text = Zeroizing::new(String::new());
        File::open(path)?.take(MAX_FILE_LEN + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_FILE_LEN { Err(Error::TooLong) } else { Ok(text) }
    };
    read().map_err(|error| error.with_file(path))
}

/// How many bytes a file has; none if it is not there.
///
/// # Errors
/// What the operating system says.
pub(crate) fn read_len(path: &Path) -> Result<u64, Error> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(Error::from(error).with_file(path)),
    }
}

/// Makes a rename in `directory` last over a power cut.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The directory that holds `path`, which is the current one for a bare name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
