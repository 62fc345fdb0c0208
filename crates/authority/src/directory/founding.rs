//! A site begins: its directory is made whole or not at all.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use identity::Profile;
use identity::dhcp_key::DhcpMaster;
use identity::distributor::RequestMaster;
use tempfile::Builder;

use super::{
    CERTIFICATE, Cache, DHCP_MASTER, Directory, INDEX, INDEX_HEADER, ISSUED, KEY, NOBODY_NAMED, REPOSITORY,
    REQUEST_MASTER, REVOKED, SITE_KEY, revoking,
};
use crate::files::{self, Overwrite, Secrecy, directory_of, sync_directory};
use crate::key::{BadUri, TokenUri};
use crate::repository::SqliteStore;
use crate::{Error, Random, Site, random_bytes};

/// As [`Directory::init`], with a key that the token at `key` has, or makes, and keeps.
///
/// # Errors
/// As there, and [`Error::Token`].
pub fn init_in_token(
    path: &Path,
    name: &str,
    terms: (Duration, Profile),
    key: &TokenUri,
    random: &mut Random<'_>,
    unix_s: u64,
) -> Result<Directory, Error> {
    // No key is made in the token for a site that cannot be.
    if is_there(path) {
        return Err(Error::SiteExists.with_file(path));
    }
    found(path, Site::create_in_token(key, name, terms, random, unix_s)?, random, unix_s)
}

pub(super) fn found(path: &Path, site: Site, random: &mut Random<'_>, unix_s: u64) -> Result<Directory, Error> {
    let masters = (RequestMaster::from_bytes(*random_bytes(random)), DhcpMaster::from_bytes(*random_bytes(random)));
    store_new(path, &site, &masters, unix_s).map_err(|error| error.with_file(path))?;
    Ok(Directory { path: path.to_owned(), site, by: NOBODY_NAMED.to_owned(), cache: Cache::default() })
}

/// The key of the site in `path`, if it is in a token; it need not be there now.
///
/// # Errors
/// What is wrong with the file.
pub fn token_of(path: &Path) -> Result<Option<TokenUri>, Error> {
    let file = path.join(KEY);
    let text = files::read(&file)?;
    if !TokenUri::is_meant(&text) {
        return Ok(None);
    }
    let uri = text.trim().parse();
    uri.map(Some).map_err(|bad: BadUri| Error::BadSetting(bad.to_string()).with_file(&file))
}

/// Whether something has the place of a site already.
pub(super) fn is_there(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) || path.is_file()
}

/// Builds the directory beside its place and renames it, so that it is there whole or not at all.
fn store_new(path: &Path, site: &Site, masters: &(RequestMaster, DhcpMaster), unix_s: u64) -> Result<(), Error> {
    if is_there(path) {
        return Err(Error::SiteExists);
    }
    let parent = directory_of(path);
    fs::create_dir_all(parent)?;
    let building = Builder::new().prefix(".new-site-").permissions(Permissions::from_mode(0o700)).tempdir_in(parent)?;
    let inside = building.path();
    fs::create_dir(inside.join(ISSUED))?;
    let never = Overwrite::Never;
    files::write(&inside.join(CERTIFICATE), &site.certificate_pem(), Secrecy::Public, never)?;
    files::write(&inside.join(KEY), &site.key_text(), Secrecy::Secret, never)?;
    files::write(&inside.join(SITE_KEY), &site.site_keys().to_pem(), Secrecy::Secret, never)?;
    files::write(&inside.join(REQUEST_MASTER), &masters.0.to_pem(), Secrecy::Secret, never)?;
    files::write(&inside.join(DHCP_MASTER), &masters.1.to_pem(), Secrecy::Secret, never)?;
    files::write(&inside.join(REVOKED), &revoking::first_list(site, unix_s)?, Secrecy::Public, never)?;
    drop(SqliteStore::create(&inside.join(REPOSITORY))?);
    files::write(&inside.join(ISSUED).join(INDEX), INDEX_HEADER, Secrecy::Public, never)?;
    fs::rename(inside, path)?;
    // The name it was built under is gone; nothing is left to remove.
    drop(building.keep());
    Ok(sync_directory(parent)?)
}
