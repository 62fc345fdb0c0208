//! The repository of a site in a cluster, as a process that acts again and again keeps it: with its
//! connections, and which member answered last. A member that is switched off keeps the first act
//! waiting and no other.

use std::path::Path;
use std::sync::PoisonError;

use super::stamp::Stamp;
use super::{Cache, Directory, SHARED};
use crate::repository::EtcdStore;
use crate::repository::etcd::Access;
use crate::{Error, files};

/// One cluster, and what it was reached with.
#[derive(Debug)]
pub(super) struct Cluster {
    access: Access,
    /// Of the files that protect the way: who renews his certificate replaces them.
    stamps: Vec<Option<Stamp>>,
    store: EtcdStore,
}

/// How the cluster is reached that keeps the repository of the site in `path`, if one does.
///
/// # Errors
/// What is wrong with the setting, or what the operating system says.
pub fn repository_access(path: &Path) -> Result<Option<Access>, Error> {
    let path = path.join(SHARED);
    if !path.exists() {
        return Ok(None);
    }
    let access = serde_json::from_str(&files::read(&path)?);
    access.map(Some).map_err(|error| Error::BadSetting(error.to_string()).with_file(&path))
}

impl Cache {
    /// The repository of `directory` in the cluster that `access` leads to.
    pub(super) fn cluster(&self, directory: &Directory, access: &Access) -> Result<EtcdStore, Error> {
        let stamps: Vec<Option<Stamp>> = access.files().map(|file| Stamp::of(file).ok()).collect();
        let mut kept = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(kept) if kept.access == *access && kept.stamps == stamps => Ok(kept.store.clone()),
            _ => {
                let store = EtcdStore::new(access, &directory.site.anchor().site_name())?;
                *kept = Some(Cluster { access: access.clone(), stamps, store: store.clone() });
                Ok(store)
            }
        }
    }
}
