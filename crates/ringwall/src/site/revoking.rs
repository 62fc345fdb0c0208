//! `ringwall site revoke`: a host is taken out.

use std::path::PathBuf;

use authority::directory::Pace;
use clap::Args;
use identity::certificate::Role;
use serde_json::json;

use super::{DEFAULT_DIRECTORY, Surroundings, sharing};
use crate::failure::Failure;

/// Arguments of `site revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Name of the host
    #[arg(long)]
    name: String,
    /// Leave the site key as it is, although the host has it
    #[arg(long)]
    keep_shared_keys: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn revoke(arguments: &RevokeArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RevokeArguments { dir, name, keep_shared_keys, json } = arguments;
    let mut directory = surroundings.open(dir)?;
    let revoked = directory.revoke(name, surroundings.unix_s)?;
    if !revoked.found() {
        let remedy = "see `ringwall site list` for the names that there are";
        let what = format!("no host {name:?} is in the repository, and no certificate of it is still good");
        return Err(Failure::file(dir, what, remedy));
    }
    let roles: Vec<Role> =
        directory.list()?.into_iter().filter(|entry| entry.name == *name).map(|entry| entry.role).collect();
    let serves = roles.iter().any(|role| matches!(role, Role::Distributor | Role::DhcpServer));
    let believed = if serves { "; hosts whose identities name it believe it until these are issued again" } else { "" };
    let list = dir.join("revoked.crl.pem").display().to_string();
    let certificates = revoked.certificates;
    let mut value = json!({
        "name": name, "revoked": true, "in_repository": revoked.in_repository,
        "certificates": certificates, "list": list
    });
    let shared = if *keep_shared_keys {
        "it still has the site key; `ringwall site rekey-shared` changes it".to_owned()
    } else {
        let change = directory.rekey_shared(Pace::default(), surroundings.random, surroundings.unix_s)?;
        value["site_key"] = sharing::value(&change);
        sharing::text(&change)
    };
    let copied = format!(
        "its certificates that were still good: {certificates}, now on {list}; copy that to the hosts of mode \"cll\""
    );
    surroundings.print(*json, &value, &format!("{name} is revoked{believed}\n{copied} (cll.revocation_list)\n{shared}"))
}

#[cfg(test)]
mod tests {
    use authority::Directory;
    use serde_json::{Value, json};

    use super::super::testing::{new_site, run};

    #[test]
    fn a_revoked_host_is_out_until_it_is_issued_again() {
        let place = new_site();
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        run(place.path(), issue).expect("issued");
        let standing = || {
            let site = Directory::open(&place.path().join("site")).expect("opened");
            site.repository().expect("there").by_name("a").expect("read").map(|entry| entry.standing)
        };
        assert_eq!(standing(), Some(authority::repository::Standing::Good));
        let printed = run(place.path(), "site revoke --dir @/site --name a").expect("revoked");
        assert!(printed.contains("still good: 1, now on") && printed.contains("cll.revocation_list"), "{printed}");
        assert_eq!(standing(), Some(authority::repository::Standing::Revoked));
        let listed = run(place.path(), "site list --dir @/site").expect("listed");
        assert!(listed.ends_with(", revoked\n"), "{listed}");
        let again = run(place.path(), &format!("{issue} --force")).expect("issued again");
        assert!(again.contains("\na was revoked, and is good again with this certificate alone\n"), "{again}");
        assert_eq!(standing(), Some(authority::repository::Standing::Good));
        let listed = run(place.path(), "site list --dir @/site --json").expect("listed");
        let listed: Value = serde_json::from_str(&listed).expect("json");
        let states: Vec<(&Value, &Value)> =
            listed.as_array().expect("a list").iter().map(|one| (&one["revoked"], &one["days_left"])).collect();
        assert_eq!(states.len(), 2);
        assert!(states.contains(&(&json!(true), &json!(365))) && states.contains(&(&json!(false), &json!(365))));
        let renewal = run(place.path(), &format!("{issue} --force --days 300")).expect("a renewal");
        assert!(!renewal.contains("was revoked"), "{renewal}");
        let refused = run(place.path(), "site revoke --dir @/site --name b").expect_err("unknown");
        assert!(refused.contains("no host \"b\" is in the repository, and no certificate"), "{refused}");
    }
}
