//! `ringwall site recover`: what the site did after the backup from which it was restored comes
//! back from its hosts (record 0124).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::Directory;
use authority::directory::{Brought, Missing, missing, policy, recover as take_back};
use authority::files;
use authority::rollout::forecast::count;
use authority::rollout::told::Row;
use clap::Args;
use identity::HostIdentity;
use identity::certificate::utc_text;
use serde_json::{Value, json};

use super::serve::brought::Sort;
use super::serve::kept::{BroughtBy, Reports};
use super::{DEFAULT_DIRECTORY, Surroundings};
use crate::failure::Failure;

/// Arguments of `site recover`.
#[derive(Debug, Args)]
pub(crate) struct RecoverArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// The identity of a host that has later site keys than the site: these are taken as well
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Take it; without this it is only shown
    #[arg(long)]
    apply: bool,
    /// Also while most hosts have not reported
    #[arg(long, requires = "apply")]
    anyway: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `ringwall site recover`
pub(super) fn recover(arguments: &RecoverArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RecoverArguments { dir, identity, apply, anyway, json } = arguments;
    let mut directory = surroundings.open(dir)?;
    let identity = identity.as_deref().map(|file| read_identity(file, &directory)).transpose()?;
    let reports = Reports::look(dir)?.ok_or_else(|| {
        let remedy = "start ringwall-site, and wait until they have";
        Failure::file(dir, "no host has reported since the site was restored", remedy)
    })?;
    let [policies, lists, certificates] =
        [Sort::Policy, Sort::Revoked, Sort::Certificate].map(|sort| reports.brought(sort));
    let (policies, lists, certificates) = (policies?, lists?, certificates?);
    let brought = Brought {
        policy: policies.last().map(|one| one.what.text.as_str()),
        revoked: lists.last().map(|one| one.what.text.as_str()),
        certificates: certificates.iter().map(|one| one.what.text.as_str()).collect(),
        identity: identity.as_ref(),
    };
    let found = missing(&directory, &brought, surroundings.unix_s)?;
    let by = |of: &[BroughtBy]| of.last().map(|one| one.host.clone()).unwrap_or_default();
    let rows = reports.all()?;
    let view = View {
        heard: Heard::of(&directory, &found, &rows, surroundings.unix_s)?,
        by: [by(&policies), by(&lists)],
        own: Own::of(&directory)?,
        found,
    };
    let is_taken = *apply && !view.found.is_empty();
    if is_taken {
        view.heard.check(*anyway)?;
    }
    if *apply {
        // Also where nothing is missing: an earlier attempt may have ended in the middle.
        take_back(&mut directory, &brought, surroundings.unix_s)?;
        reports.forget_brought(policies.iter().chain(&lists).chain(&certificates))?;
    }
    surroundings.print(*json, &view.json(is_taken), &view.lines(is_taken).join("\n"))
}

fn read_identity(file: &Path, directory: &Directory) -> Result<HostIdentity, Failure> {
    let remedy = "name the identity file of a host of this site";
    let identity = HostIdentity::from_pem(&files::read(file)?).map_err(|error| Failure::file(file, error, remedy))?;
    if directory.site().anchor().is_same_authority(identity.anchor()) {
        return Ok(identity);
    }
    Err(Failure::file(file, format!("it is of another site, {}", identity.site_name()), remedy))
}

/// What the site itself has.
struct Own {
    policy: Option<u64>,
    revoked: Option<u64>,
    generation: u32,
}

impl Own {
    fn of(directory: &Directory) -> Result<Own, Failure> {
        Ok(Own {
            policy: policy(directory)?.map(|own| own.version()),
            revoked: directory.revocation_list()?.map(|own| own.issued_unix()),
            generation: directory.site().site_keys().newest().0.generation.0,
        })
    }
}

/// A host whose certificates are over for longer is taken for one that is gone.
const GONE_AFTER: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Who has said what he has.
struct Heard {
    /// Hosts with a certificate, here or brought, that is not taken back or long over.
    hosts: usize,
    /// Of these, those that have reported.
    reported: usize,
    /// Of these, those with later site keys than are here or are being taken.
    with_later_keys: usize,
    /// The newest policy that one of these says it has.
    policy: Option<u64>,
}

impl Heard {
    fn of(directory: &Directory, found: &Missing, rows: &[Row], unix_s: u64) -> Result<Heard, Failure> {
        let is_listed = |serial: &str| found.revoked.as_ref().is_some_and(|list| list.names_serial(serial));
        let is_here = |until: u64| until.saturating_add(GONE_AFTER.as_secs()) >= unix_s;
        let recorded = directory.list()?.into_iter().filter(|one| !one.revoked && is_here(one.not_after_unix));
        let recorded = recorded.map(|one| (one.serial, one.name));
        let other = found.certificates.iter().filter(|one| is_here(one.not_after_unix()));
        let both = recorded.chain(other.map(|one| (one.serial_hex(), one.name().to_owned())));
        let hosts: BTreeSet<String> = both.filter(|(serial, _)| !is_listed(serial)).map(|(_, name)| name).collect();
        let reported = rows.iter().filter(|row| hosts.contains(&row.host));
        let keys = found.site_keys.as_ref().unwrap_or(directory.site().site_keys());
        let own = keys.newest().0.generation.0;
        let with_later_keys = reported.clone().filter(|row| row.report.site_key_generation > Some(own)).count();
        let policy = reported.clone().filter_map(|row| row.report.policy.version).max();
        Ok(Heard { hosts: hosts.len(), reported: reported.count(), with_later_keys, policy })
    }

    /// What nobody has brought yet stays lost, so most hosts are waited for.
    fn check(&self, anyway: bool) -> Result<(), Failure> {
        let Heard { hosts, reported, .. } = self;
        if anyway || 2 * reported > *hosts {
            return Ok(());
        }
        let what = format!("{reported} of {} have reported, which are not most of them", count(*hosts, "host"));
        Err(Failure::new(format!("{what}; wait for others, or give --anyway; nothing changed")))
    }
}

struct View {
    heard: Heard,
    /// Who has brought the newest policy, and the newest list.
    by: [String; 2],
    own: Own,
    found: Missing,
}

impl View {
    fn lines(&self, is_taken: bool) -> Vec<String> {
        let View { heard, by: [policy_by, list_by], own, found } = self;
        let mut lines = vec![format!("{} of {} have reported", heard.reported, count(heard.hosts, "host"))];
        let number = |number: Option<u64>| number.map_or("none".to_owned(), |number| number.to_string());
        let time = |unix_s: Option<u64>| unix_s.map_or("none".to_owned(), utc_text);
        lines.extend(found.policy.as_ref().map(|policy| {
            let version = policy.version();
            if own.policy == Some(version) {
                return format!("another policy version {version}, which {policy_by} has: the next one, in its place");
            }
            format!("policy version {version} (here: {}), which {policy_by} has", number(own.policy))
        }));
        lines.extend(found.revoked.as_ref().map(|list| {
            let (of, own) = (utc_text(list.issued_unix()), time(own.revoked));
            let len = count(list.len(), "certificate");
            format!("revocation list of {of} with {len} (here: {own}), which {list_by} has")
        }));
        let names: BTreeSet<&str> = found.certificates.iter().map(|one| one.name()).collect();
        if let Some(name) = names.first() {
            let certificates = count(found.certificates.len(), "certificate");
            lines.push(format!("{certificates} of {}, such as {name}", count(names.len(), "host")));
        }
        lines.extend(
            found
                .site_keys
                .as_ref()
                .map(|keys| format!("site key generation {} (here: {})", keys.newest().0.generation, own.generation)),
        );
        if heard.with_later_keys > 0 {
            let hosts = count(heard.with_later_keys, "host");
            lines.push(format!("later site keys at {hosts}; give the identity of one with --identity"));
        }
        let newest = found.policy.as_ref().map(|policy| policy.version()).max(own.policy);
        lines.extend(heard.policy.filter(|version| Some(*version) > newest).map(|version| {
            format!("a host has policy version {version}, which none has brought: update Ringwall there")
        }));
        if is_taken && (!found.certificates.is_empty() || found.site_keys.is_some()) {
            lines
                .push("run `ringwall site rekey-shared`: what hosts prove themselves with is of the backup".to_owned());
        }
        lines.push(match (found.is_empty(), is_taken) {
            (true, _) => "nothing that hosts have brought is newer than what is here".to_owned(),
            (false, true) => "all of it is taken".to_owned(),
            (false, false) => "all of it is newer than what is here; --apply takes it".to_owned(),
        });
        lines
    }

    fn json(&self, is_taken: bool) -> Value {
        let View { heard, found, .. } = self;
        let serials: Vec<String> = found.certificates.iter().map(|one| one.serial_hex()).collect();
        json!({
            "hosts": heard.hosts,
            "reported": heard.reported,
            "with_later_keys": heard.with_later_keys,
            "policy_version": found.policy.as_ref().map(|policy| policy.version()),
            "revoked_issued_unix": found.revoked.as_ref().map(|list| list.issued_unix()),
            "certificates": serials,
            "site_key_generation": found.site_keys.as_ref().map(|keys| keys.newest().0.generation.0),
            "applied": is_taken,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use identity::pem;

    use super::super::serve::brought::Brought as Kept;
    use super::super::testing::{load, new_site, order, policy, run};
    use super::*;
    use crate::report::tests::report;

    /// A site that was lost after hosts had joined, one was revoked and the policy changed; and what
    /// it had signed last.
    fn restored() -> (tempfile::TempDir, [String; 2]) {
        let place = new_site();
        let issue = |number: u8| {
            let names = format!("--name d{number} --mac 02:00:00:00:00:0{number} --ip 10.0.0.{number}");
            run(place.path(), &format!("site issue --dir @/site {names} --out @/d{number}.pem")).expect("issued");
        };
        [1, 2].into_iter().for_each(issue);
        run(place.path(), "site backup --dir @/site @/backup").expect("kept");
        issue(3);
        order(place.path(), "policy legacy add --ip 10.0.0.9 --mac 02:00:00:00:00:09").expect("added");
        run(place.path(), "site revoke --dir @/site --name d1").expect("revoked");
        run(place.path(), "site issue --dir @/site --name d4 --mac 02:00:00:00:00:04 --ip 10.0.0.4 --out @/d4.pem")
            .expect("issued");
        let read = |name: &str| fs::read_to_string(place.path().join("site").join(name)).expect("there");
        let signed = ["policy.pem", "revoked.crl.pem"].map(read);
        fs::remove_dir_all(place.path().join("site")).expect("lost");
        run(place.path(), "site restore --dir @/site @/backup").expect("restored");
        (place, signed)
    }

    /// These hosts report to the service, the first with later site keys; one brings what it has.
    fn report_all(place: &Path, names: &[&str], signed: &[String]) {
        let site = place.join("site");
        let reports = Reports::open(&site).expect("opened");
        for name in names {
            reports.keep(name, 5000, &report(1000));
        }
        let directory = Directory::open(&site).expect("opened");
        let anchor = directory.site().anchor();
        for text in signed {
            reports.bring(names[0], 5000, &Kept::read(anchor, text).expect("signed"));
        }
        for name in names {
            let identity = load(&place.join(format!("{name}.pem")));
            let text = pem::encode(pem::CERTIFICATE, identity.certificate().der());
            reports.bring(name, 5000, &Kept::certificate(anchor, &text).expect("signed"));
        }
    }

    #[test]
    fn it_is_shown_and_taken_when_most_hosts_have_reported() {
        let (place, signed) = restored();
        let silent = run(place.path(), "site recover --dir @/site").expect_err("nobody has reported");
        assert!(silent.contains("no host has reported") && silent.contains("ringwall-site"), "{silent}");
        report_all(place.path(), &["d3"], &signed);
        let shown = run(place.path(), "site recover --dir @/site").expect("shown");
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "1 of 2 hosts have reported");
        assert_eq!(lines[1], "policy version 1 (here: none), which d3 has");
        assert!(lines[2].starts_with("revocation list of ") && lines[2].contains(" with 1 certificate "), "{shown}");
        assert_eq!(lines[3], "1 certificate of 1 host, such as d3");
        assert_eq!(lines[4], "later site keys at 1 host; give the identity of one with --identity");
        assert_eq!(lines[5], "a host has policy version 3, which none has brought: update Ringwall there");
        assert_eq!(lines[6], "all of it is newer than what is here; --apply takes it");
        let early = run(place.path(), "site recover --dir @/site --apply").expect_err("too few");
        assert!(early.contains("1 of 2 hosts have reported") && early.contains("--anyway"), "{early}");
        assert!(!place.path().join("site/policy.pem").exists());

        report_all(place.path(), &["d2", "d4"], &[]);
        let taken = run(place.path(), "site recover --dir @/site --identity @/d4.pem --apply --json").expect("taken");
        let taken: Value = serde_json::from_str(&taken).expect("JSON");
        assert_eq!((&taken["hosts"], &taken["reported"], &taken["applied"]), (&3.into(), &3.into(), &true.into()));
        assert_eq!(taken["certificates"].as_array().map(Vec::len), Some(2));
        assert_eq!((policy(place.path()).version(), &taken["site_key_generation"]), (1, &1.into()));
        let listed = run(place.path(), "site list --dir @/site").expect("listed");
        assert!(["d3", "d4"].iter().all(|name| listed.contains(name)), "{listed}");
        let verified = run(place.path(), "site audit verify --dir @/site").expect("verified");
        assert!(verified.contains("are whole"), "{verified}");
        let again = run(place.path(), "site recover --dir @/site --apply").expect("shown");
        assert!(again.contains("nothing that hosts have brought is newer"), "{again}");
    }

    #[test]
    fn keys_come_from_a_host_of_the_site_alone() {
        let (place, signed) = restored();
        report_all(place.path(), &["d2", "d3"], &signed);
        let other = new_site();
        run(other.path(), "site issue --dir @/site --name x --mac 02:00:00:00:00:0a --ip 10.0.0.10 --out @/x.pem")
            .expect("issued");
        fs::copy(other.path().join("x.pem"), place.path().join("x.pem")).expect("copied");
        let refused = run(place.path(), "site recover --dir @/site --identity @/x.pem --apply").expect_err("foreign");
        assert!(refused.contains("it is of another site"), "{refused}");
    }
}
