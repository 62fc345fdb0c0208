//! `ringwall site backup` and `restore`.

use std::path::PathBuf;

use authority::Directory;
use authority::audit::Act;
use authority::directory::{Restored, acting, note};
use clap::Args;
use serde_json::json;

use super::auditing::manager;
use super::{DEFAULT_DIRECTORY, Surroundings};
use crate::failure::Failure;

/// Arguments of `site backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// The new file
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `site restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// Where the site shall be kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// The file that `site backup` made
    file: PathBuf,
    /// Keep the repository in a file even if it was in etcd: the cluster is lost
    #[arg(long)]
    repository_in_file: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn backup(arguments: &BackupArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let BackupArguments { dir, file, json } = arguments;
    let directory = super::open(dir)?;
    if file.symlink_metadata().is_ok() {
        let remedy = "choose another name or remove it; a backup never replaces a file";
        return Err(Failure::file(file, "the file exists", remedy));
    }
    note(&directory, Act::BackedUp, &file.display().to_string(), "", surroundings.unix_s)?;
    directory.backup(file)?;
    let name = directory.site().name();
    let text = format!("site {name} is in {}; who reads it is the authority, so keep it secret", file.display());
    surroundings.print(*json, &json!({"site": name, "file": file}), &text)
}

pub(super) fn restore(arguments: &RestoreArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RestoreArguments { dir, file, repository_in_file, json } = arguments;
    let restored = if *repository_in_file { Restored::InFile } else { Restored::AsItWas };
    let directory = acting(Directory::restore(file, dir, restored)?, &manager());
    let lost = "what was done after that backup is not here";
    note(&directory, Act::Restored, &file.display().to_string(), lost, surroundings.unix_s)?;
    let name = directory.site().name();
    let text = format!(
        "site {name} is in {}; hosts whose key was changed after the backup have to enrol again (`ringwall site rekey`)",
        dir.display()
    );
    surroundings.print(*json, &json!({"site": name, "directory": dir}), &text)
}
