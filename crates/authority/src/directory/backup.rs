//! The whole site in one file, and back.
//!
//! The file is an SQLite Archive, uncompressed (sqlite.org/sqlar.html), so that `sqlite3 -A` lists and
//! unpacks it, too. It holds the authority's key, unless that is in a token: who reads it is the
//! authority.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use tempfile::{Builder, TempDir};
use zeroize::Zeroizing;

use super::cluster::repository_access;
use super::founding::{is_there, token_of};
use super::issued::is_certificate_file;
use super::{
    CERTIFICATE, DHCP_MASTER, Directory, INDEX, ISSUED, KEY, MOVED, OPERATORS, POLICY, REPOSITORY, REQUEST_MASTER,
    RETIRED, REVOKED, SHARED, SITE_KEY,
};
use crate::Error;
use crate::audit::{self, FIRST};
use crate::files::{directory_of, sync_directory};
use crate::key::TokenUri;
use crate::repository::{SqliteStore, StoreError};

const ARCHIVE: &str = "CREATE TABLE sqlar (name TEXT PRIMARY KEY, mode INT, mtime INT, sz INT, data BLOB)";
/// "RwBk": tells a backup of a site from other archives.
const APPLICATION_ID: i64 = 0x5277_426b;

/// Where a restored site works with its repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// Where it was kept when the backup was made.
    AsItWas,
    /// In a file, because the cluster is lost.
    InFile,
}

impl Directory {
    /// Writes the whole site to a new file (0600), as of now, while distributors go on working. Of a repository in a cluster its
    /// contents come along.
    ///
    /// # Errors
    /// [`Error::Exists`], what is wrong with a file or the repository, or what the operating system says.
    pub fn backup(&self, target: &Path) -> Result<(), Error> {
        let _lock = self.lock()?;
        let whole = || {
            if target.symlink_metadata().is_ok() {
                return Err(Error::Exists);
            }
            let place = scratch_beside(target)?;
            let building = place.path().join("backup");
            self.fill(&building, place.path())?;
            fs::set_permissions(&building, Permissions::from_mode(0o600))?;
            fs::hard_link(&building, target)?;
            Ok(sync_directory(directory_of(target))?)
        };
        whole().map_err(|error: Error| error.with_file(target))
    }

    fn fill(&self, archive: &Path, scratch: &Path) -> Result<(), Error> {
        let mut connection = Connection::open(archive).map_err(StoreError::from)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(StoreError::from)?;
        let transaction = connection.transaction().map_err(StoreError::from)?;
        transaction.execute_batch(ARCHIVE).map_err(StoreError::from)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(StoreError::from)?;
        for name in [CERTIFICATE, KEY, SITE_KEY, REQUEST_MASTER, DHCP_MASTER, SHARED, REVOKED, POLICY, OPERATORS, FIRST]
        {
            let file = self.path.join(name);
            // A site of an earlier version may lack a master or the revocation list; most have no
            // cluster, some no policy.
            if file.exists() {
                put(&transaction, name, &file)?;
            }
        }
        for name in audit::parts(&self.path)? {
            put(&transaction, &name, &self.path.join(&name))?;
        }
        for folder in [ISSUED, RETIRED].map(|name| self.path.join(name)).iter().filter(|folder| folder.exists()) {
            put_certificates(&transaction, folder)?;
        }
        let repository = scratch.join(REPOSITORY);
        let kept_as = self.copy_repository(&repository)?;
        put(&transaction, kept_as, &repository)?;
        Ok(transaction.commit().map_err(StoreError::from)?)
    }

    /// Writes a copy of the repository and gives the name under which it belongs into the site.
    fn copy_repository(&self, target: &Path) -> Result<&'static str, Error> {
        if let Some(access) = repository_access(&self.path)? {
            let contents = self.cache.cluster(self, &access)?.contents()?;
            drop(SqliteStore::create_with(target, &contents)?);
            return Ok(MOVED);
        }
        let path = self.path.join(REPOSITORY);
        SqliteStore::open(&path).and_then(|store| store.backup_to(target))?;
        Ok(REPOSITORY)
    }

    /// Makes the site of a backup again in `path`, which must be missing or empty.
    ///
    /// # Errors
    /// [`Error::NoBackup`], [`Error::SiteExists`], what is wrong with the site in it, or what the operating system says. Then nothing
    /// is there.
    pub fn restore(backup: &Path, path: &Path, restored: Restored) -> Result<Directory, Error> {
        self::restore(backup, path, restored, None)
    }
}

/// As [`Directory::restore`], of a site whose key is in the token at `key`. A backup does not decide
/// by itself which library runs here: who keeps it may have changed it.
///
/// # Errors
/// As there; [`Error::KeyInToken`], [`Error::KeyInBackup`] or [`Error::Token`].
pub fn restore(backup: &Path, path: &Path, restored: Restored, key: Option<&TokenUri>) -> Result<Directory, Error> {
    if is_there(path) {
        return Err(Error::SiteExists.with_file(path));
    }
    let building = (|| {
        fs::create_dir_all(directory_of(path))?;
        scratch_beside(path)
    })();
    let building = building.map_err(|error: Error| error.with_file(path))?;
    unpack(backup, building.path()).map_err(|error| error.with_file(backup))?;
    if restored == Restored::InFile {
        work_with_file(building.path()).map_err(|error| error.with_file(backup))?;
    }
    match (token_of(building.path())?, key) {
        (None, None) => {}
        (None, Some(_)) => return Err(Error::KeyInBackup.with_file(backup)),
        (Some(named), None) => return Err(Error::KeyInToken(named.to_string()).with_file(backup)),
        (Some(_), Some(key)) => write(&building.path().join(KEY), 0o600, format!("{key}\n").as_bytes())?,
    }
    // What cannot be opened is not put in place.
    drop(Directory::open(building.path())?);
    let move_in = || -> Result<(), Error> {
        fs::rename(building.path(), path)?;
        Ok(sync_directory(directory_of(path))?)
    };
    move_in().map_err(|error| error.with_file(path))?;
    // The name it was built under is gone; nothing is left to remove.
    drop(building.keep());
    Directory::open(path)
}

fn scratch_beside(path: &Path) -> Result<TempDir, Error> {
    let mut builder = Builder::new();
    Ok(builder.prefix(".new-site-").permissions(Permissions::from_mode(0o700)).tempdir_in(directory_of(path))?)
}

fn put(archive: &Connection, name: &str, file: &Path) -> Result<(), Error> {
    let read = || -> Result<(Zeroizing<Vec<u8>>, u32), Error> {
        Ok((Zeroizing::new(fs::read(file)?), fs::metadata(file)?.permissions().mode()))
    };
    let (data, mode) = read().map_err(|error| error.with_file(file))?;
    let length = i64::try_from(data.len()).unwrap_or(i64::MAX);
    let row = params![name, mode, 0, length, &*data];
    let statement = "INSERT INTO sqlar (name, mode, mtime, sz, data) VALUES (?1, ?2, ?3, ?4, ?5)";
    archive.prepare_cached(statement).and_then(|mut put| put.execute(row)).map_err(StoreError::from)?;
    Ok(())
}

/// The certificates in one folder of a site, and the index beside them.
fn put_certificates(archive: &Connection, folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(|error| Error::from(error).with_file(folder))? {
        let file = entry?.path();
        let name_of = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if is_certificate_file(&file) || name_of(&file) == INDEX {
            put(archive, &format!("{}/{}", name_of(folder), name_of(&file)), &file)?;
        }
    }
    Ok(())
}

/// Whether a file of this name belongs into a site; no other is ever written.
fn belongs(name: &str) -> bool {
    let is_issued = |rest: &str| {
        let is_serial = |stem: &str| !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
        rest == INDEX || rest.strip_suffix(".pem").is_some_and(is_serial)
    };
    match name.split_once('/') {
        Some((ISSUED | RETIRED, rest)) => is_issued(rest),
        Some(_) => false,
        None => {
            let keys = [CERTIFICATE, FIRST, KEY, SITE_KEY, REQUEST_MASTER, DHCP_MASTER];
            keys.contains(&name)
                || [REVOKED, POLICY, OPERATORS, SHARED, REPOSITORY, MOVED].contains(&name)
                || audit::is_part(name)
        }
    }
}

/// Writes the files of a backup, each synced, secret ones for their owner only.
fn unpack(backup: &Path, place: &Path) -> Result<(), Error> {
    backup.metadata()?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let archive = Connection::open_with_flags(backup, flags).map_err(|_| Error::NoBackup)?;
    let id = archive.pragma_query_value(None, "application_id", |row| row.get::<_, i64>(0));
    if id.optional().ok().flatten() != Some(APPLICATION_ID) {
        return Err(Error::NoBackup);
    }
    let folders = [ISSUED, RETIRED].map(|name| place.join(name));
    folders.iter().try_for_each(fs::create_dir)?;
    let mut files = archive.prepare("SELECT name, mode, sz, data FROM sqlar").map_err(|_| Error::NoBackup)?;
    let mut rows = files.query([]).map_err(StoreError::from)?;
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        let part = || -> rusqlite::Result<(String, u32, i64, Vec<u8>)> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        };
        let (name, mode, length, data) = part().map_err(|_| Error::NoBackup)?;
        let data = Zeroizing::new(data);
        if !belongs(&name) || i64::try_from(data.len()) != Ok(length) {
            return Err(Error::NoBackup);
        }
        write(&place.join(name), mode, &data)?;
    }
    folders.iter().try_for_each(|folder| sync_directory(folder))?;
    Ok(sync_directory(place)?)
}

fn write(path: &Path, mode: u32, data: &[u8]) -> Result<(), Error> {
    fs::write(path, data)?;
    // Whatever the archive says, nobody but the owner writes, and what was secret stays so.
    fs::set_permissions(path, Permissions::from_mode(if mode & 0o044 == 0 { 0o600 } else { 0o644 }))?;
    Ok(fs::File::open(path)?.sync_all()?)
}

/// Lets the site work with the file that holds what was in the cluster.
fn work_with_file(place: &Path) -> Result<(), Error> {
    let [setting, moved, file] = [SHARED, MOVED, REPOSITORY].map(|name| place.join(name));
    if setting.exists() {
        fs::remove_file(setting)?;
        fs::rename(moved, file)?;
    }
    Ok(())
}
