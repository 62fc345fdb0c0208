//! `ringwall site backup` and `restore`.

use std::path::PathBuf;

use authority::audit::Act;
use authority::directory::{self, Restored, acting, note, token_of};
use authority::key::TokenUri;
use clap::Args;
use serde_json::json;

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
    /// The token that has the authority's key, as for `site init`; it may be another than the one of
    /// then, with the same key
    #[arg(long, value_name = "URI")]
    key: Option<TokenUri>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn backup(arguments: &BackupArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let BackupArguments { dir, file, json } = arguments;
    let directory = surroundings.open(dir)?;
    if file.symlink_metadata().is_ok() {
        let remedy = "choose another name or remove it; a backup never replaces a file";
        return Err(Failure::file(file, "the file exists", remedy));
    }
    note(&directory, Act::BackedUp, &file.display().to_string(), "", surroundings.unix_s)?;
    directory.backup(file)?;
    let name = directory.site().name();
    let what = match token_of(dir)? {
        None => "who reads it is the authority, so keep it secret",
        Some(_) => "the authority's key is in its token and not here; keep it secret, for the keys of hosts",
    };
    let text = format!("site {name} is in {}; {what}", file.display());
    surroundings.print(*json, &json!({"site": name, "file": file}), &text)
}

pub(super) fn restore(arguments: &RestoreArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RestoreArguments { dir, file, repository_in_file, key, json } = arguments;
    let restored = if *repository_in_file { Restored::InFile } else { Restored::AsItWas };
    let directory = acting(directory::restore(file, dir, restored, key.as_ref())?, &surroundings.actor.by);
    let lost = "what was done after that backup is not here";
    note(&directory, Act::Restored, &file.display().to_string(), lost, surroundings.unix_s)?;
    let name = directory.site().name();
    let text = format!(
        "site {name} is in {}; before you change anything, take back what was done after the backup: `ringwall site \
         recover`; operators and keys of hosts are as they were then",
        dir.display()
    );
    surroundings.print(*json, &json!({"site": name, "directory": dir}), &text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::{new_site, order, policy, run};

    #[test]
    fn a_site_is_backed_up_and_restored() {
        let place = new_site();
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        run(place.path(), issue).expect("issued");
        let printed = run(place.path(), "site backup --dir @/site @/kept").expect("kept");
        assert!(printed.starts_with("site lab is in @/kept; "), "{printed}");
        let there = run(place.path(), "site backup --dir @/site @/kept").expect_err("there");
        assert!(there.contains("kept: the file exists; ") && !there.contains("--force"), "{there}");
        let listed = run(place.path(), "site list --dir @/site");
        fs::remove_dir_all(place.path().join("site")).expect("lost");
        let restored = run(place.path(), "site restore --dir @/site @/kept --json").expect("restored");
        assert_eq!(restored, "{\"directory\":\"@/site\",\"site\":\"lab\"}\n");
        assert_eq!(run(place.path(), "site list --dir @/site"), listed);
        let wrong = run(place.path(), "site restore --dir @/other @/a.pem").expect_err("no backup");
        assert!(wrong.contains("a.pem: the file is no backup of a site; "), "{wrong}");
    }

    #[test]
    fn a_backup_has_the_policy() {
        let place = new_site();
        order(place.path(), "policy legacy add --ip 10.0.0.9 --mac 02:00:00:00:00:09").expect("added");
        let before = policy(place.path());
        run(place.path(), "site backup --dir @/site @/kept").expect("kept");
        fs::remove_dir_all(place.path().join("site")).expect("lost");
        run(place.path(), "site restore --dir @/site @/kept").expect("restored");
        assert_eq!(policy(place.path()).bytes(), before.bytes());
    }
}
