//! A site that moves its repository from the file into a cluster.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use authority::directory::{Delivery, Sharing};
use authority::files::Overwrite;
use authority::repository::etcd::Access;
use authority::repository::{EtcdStore, Standing, Store, StoreError};
use authority::{Directory, Error, Request};
use ringwall_lab::net::etcd::Cluster;
use wire::MacAddress;

use crate::run_for;

const NOW_UNIX_S: u64 = 1_800_000_000;

fn random(seed: u8) -> impl FnMut(&mut [u8]) {
    let mut generator = bump::Generator::from_seed([seed; 32]);
    move |bytes| bytes.fill_with(|| generator.bytes::<1>()[0])
}

fn found(place: &Path, name: &str) -> Directory {
    let year = Duration::from_secs(365 * 24 * 60 * 60);
    Directory::init(&place.join(name), name, year, identity::Profile::Modern, &mut random(1), NOW_UNIX_S)
        .expect("a site")
}

fn issue(site: &Directory, place: &Path, name: &str, last: u8) {
    let request = Request::new(name, MacAddress([2, 0, 0, 0, 0, last]), vec![Ipv4Addr::new(10, 0, 0, last)]);
    let request = request.and_then(|request| request.with_validity(Duration::from_secs(3600))).expect("a request");
    let output = place.join(format!("{name}.pem"));
    let delivery = Delivery { output: &output, overwrite: Overwrite::Force, sharing: Sharing::Refused };
    site.issue_identity(&request, &delivery, &mut random(last), NOW_UNIX_S).expect("issued");
}

fn refusal(error: Error) -> StoreError {
    match error {
        Error::In(_, inner) => refusal(*inner),
        Error::Repository(error) => error.reason().clone(),
        other => unreachable!("{other}"),
    }
}

/// Broke `import_repository` by writing the setting before the hosts were moved: after a failure the site had lost its file.
#[test]
fn a_site_moves_its_repository_whole_or_keeps_it() {
    let Some(run) = run_for("a_site_moves_its_repository_whole_or_keeps_it") else { return };
    let cluster = Cluster::start(run, "m", Ipv4Addr::LOCALHOST, None, |_| Ok(())).expect("a cluster");
    cluster.move_here().expect("entered");
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let site = found(place, "lab");
    issue(&site, place, "a", 1);
    let before = site.repository().expect("a file").list().expect("listed");

    let nowhere = Access { members: vec!["http://127.0.0.1:9".to_owned()], ..Access::default() };
    let error = refusal(site.import_repository(&nowhere).expect_err("nobody is there"));
    assert!(matches!(error, StoreError::Unreachable(_)), "{error}");
    assert_eq!(site.repository().expect("the file still").list(), Ok(before.clone()));
    assert_eq!(refusal(site.use_repository(&cluster.access()).expect_err("empty")), StoreError::NotShared);

    assert_eq!(site.import_repository(&cluster.access()).expect("moved"), 1);
    assert!(!place.join("lab/hosts.db").exists() && place.join("lab/hosts.db.moved").is_file());
    let distributor = EtcdStore::new(&cluster.access(), "lab").expect("an access");
    assert_eq!(distributor.list(), Ok(before));
    issue(&site, place, "b", 2);
    assert_eq!(distributor.find([10, 0, 0, 2].into()).expect("asked").map(|host| host.number), Some(2));
    assert_eq!(
        Directory::open(&place.join("lab")).expect("opened").repository().expect("shared").revoke("a"),
        Ok(true)
    );
    let standing = distributor.by_name("a").expect("asked").map(|host| host.standing);
    assert_eq!(standing, Some(Standing::Revoked));

    let again = site.import_repository(&cluster.access()).expect_err("it is there");
    assert!(matches!(again.reason(), Error::Shared), "{again}");
    refusal(site.use_repository(&nowhere).expect_err("nobody is there"));
    let fewer = Access { members: cluster.access().members[1..].to_vec(), ..cluster.access() };
    site.use_repository(&fewer).expect("the same cluster");
    assert_eq!(site.repository().expect("shared").list().expect("listed").len(), 2);

    // Another site in the same cluster has nothing to do with it.
    let other = found(place, "other");
    assert_eq!(refusal(other.use_repository(&cluster.access()).expect_err("not its own")), StoreError::NotShared);
    assert_eq!(other.import_repository(&cluster.access()).expect("moved"), 0);
    assert_eq!(distributor.list().expect("listed").len(), 2);
}
