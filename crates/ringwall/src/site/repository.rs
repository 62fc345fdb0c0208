//! `ringwall site repository`: where the repository of hosts is kept.

use std::path::PathBuf;

use authority::audit::Act;
use authority::directory::note;
use authority::repository::etcd::{Access, BadAccess};
use clap::{Args, Subcommand};
use serde_json::json;

use super::{DEFAULT_DIRECTORY, Surroundings};
use crate::failure::Failure;

/// What the site's service needs then, where it runs.
const RESTART: &str = "\nwhere ringwall-signer runs: systemctl daemon-reload && systemctl restart ringwall-signer";

/// What can be done with the repository.
#[derive(Debug, Subcommand)]
pub(crate) enum RepositoryCommand {
    /// Move the hosts from the file into a cluster of etcd, and work with that from now on
    ///
    /// End the distributors first, since a key that a host changes meanwhile would be lost.
    /// Afterwards give them akd.etcd in the place of akd.repository. The file stays as
    /// hosts.db.moved. The signer of the site's service finds the cluster after
    ///   systemctl daemon-reload && systemctl restart ringwall-signer
    ///
    /// Example: ringwall site repository import --etcd https://10.0.0.21:2379 --etcd https://10.0.0.22:2379 \
    ///     --etcd https://10.0.0.23:2379 --ca etcd-ca.pem --certificate site.pem --key site.key
    #[command(verbatim_doc_comment)]
    Import(RepositoryArguments),
    /// Work with the repository that is in a cluster already, or reach it in another way
    Use(RepositoryArguments),
}

/// Arguments of `site repository`.
#[derive(Debug, Args)]
pub(crate) struct RepositoryArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// A member of the cluster, https://ADDRESS:PORT; repeat it for all of them
    #[arg(long, value_name = "URL", required = true)]
    etcd: Vec<String>,
    /// Certificates of the authority that the members' certificates come from
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// This machine's certificate for the members
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// The key of that certificate
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Let http leave this machine, because something else protects it
    #[arg(long)]
    unprotected: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn import(arguments: &RepositoryArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RepositoryArguments { dir, etcd, json, .. } = arguments;
    let (directory, access) = (surroundings.open(dir)?, access(arguments)?);
    note(&directory, Act::Repository, "import", &etcd.join(" "), surroundings.unix_s)?;
    let hosts = directory.import_repository(&access)?;
    let value = json!({"etcd": etcd, "hosts": hosts});
    let text = format!("{hosts} hosts are in etcd now; give every distributor akd.etcd and start it{RESTART}");
    surroundings.print(*json, &value, &text)
}

pub(super) fn use_cluster(arguments: &RepositoryArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RepositoryArguments { dir, etcd, json, .. } = arguments;
    let (directory, access) = (surroundings.open(dir)?, access(arguments)?);
    note(&directory, Act::Repository, "use", &etcd.join(" "), surroundings.unix_s)?;
    directory.use_repository(&access)?;
    let text = format!("the site works with the repository in etcd{RESTART}");
    surroundings.print(*json, &json!({"etcd": etcd}), &text)
}

/// The way to the cluster, which later commands take from wherever they are started.
fn access(arguments: &RepositoryArguments) -> Result<Access, Failure> {
    let absolute = |file: &Option<PathBuf>| {
        let file = file.as_deref().map(|file| std::path::absolute(file).map_err(|error| (file, error)));
        file.transpose().map_err(|(file, error)| Failure::file(file, error, "give the right path"))
    };
    let access = Access {
        members: arguments.etcd.clone(),
        ca: absolute(&arguments.ca)?,
        certificate: absolute(&arguments.certificate)?,
        key: absolute(&arguments.key)?,
        unprotected: arguments.unprotected,
    };
    let wrong = |bad: BadAccess| Failure::new(format!("--{}: {bad}; {}", bad.setting(), bad.remedy()));
    access.check().map_err(wrong)?;
    Ok(access)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{new_site, run};

    #[test]
    fn a_cluster_that_cannot_be_meant_is_refused_before_it_is_asked() {
        let place = new_site();
        for (options, wanted) in [
            ("--etcd http://10.0.0.21:2379", "--etcd: http://10.0.0.21:2379 leaves this machine in clear"),
            ("--etcd https://10.0.0.21:2379", "--ca: https without an authority to believe; name the file"),
            ("--etcd https://10.0.0.21:2379 --ca @/ca.pem", "@/ca.pem: No such file"),
        ] {
            let refused = run(place.path(), &format!("site repository use --dir @/site {options}")).expect_err(wanted);
            let refused = refused.replace(&place.path().display().to_string(), "@");
            assert!(refused.starts_with(wanted) && refused.contains("; ") && !refused.contains('\n'), "{refused}");
        }
        let refused = run(place.path(), "site repository import --dir @/site").expect_err("no members");
        assert!(refused.contains("--etcd <URL>"), "{refused}");
    }
}
