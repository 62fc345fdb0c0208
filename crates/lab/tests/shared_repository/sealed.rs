//! TLS to the members, with certificates that openssl made.

use std::net::Ipv4Addr;

use authority::directory::Sharing;
use authority::repository::etcd::Access;
use authority::repository::{EtcdStore, Store, StoreError};
use ringwall_lab::net::authority::Authority;
use ringwall_lab::net::etcd::Cluster;
use ringwall_lab::net::process;

use crate::rules::host;
use crate::{repository, run_for};

/// Broke `tls` by not verifying, then by leaving the client's certificate out: the cluster of another authority was believed,
/// and the own one refused.
#[test]
fn a_sealed_cluster_is_believed_and_believes_by_certificate() {
    const TEST: &str = "a_sealed_cluster_is_believed_and_believes_by_certificate";
    let Some(run) = run_for(TEST) else { return };
    if !process::installed("openssl") {
        eprintln!("SKIPPED {TEST}: needs openssl");
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let [own, foreign] = ["own", "foreign"].map(|name| Authority::found(place.path(), name).expect("founded"));
    let seal = own.issue("member", Ipv4Addr::LOCALHOST).expect("issued");
    let cluster = Cluster::start(run, "t", Ipv4Addr::LOCALHOST, Some(seal), |_| Ok(())).expect("a cluster");
    cluster.move_here().expect("entered");
    let store = repository(&cluster, "lab");
    assert_eq!(store.add(&host("alpha", 1), Sharing::Refused, 1_800_000_000), Ok(1));
    assert_eq!(store.find([10, 0, 0, 1].into()).expect("asked").map(|host| host.number), Some(1));

    let stranger = foreign.issue("stranger", Ipv4Addr::LOCALHOST).expect("issued");
    let access = cluster.access();
    for (what, access) in [
        ("an authority that did not make the members", Access { ca: Some(stranger.ca.clone()), ..access.clone() }),
        ("no certificate", Access { certificate: None, key: None, ..access.clone() }),
        (
            "a certificate of another authority",
            Access { certificate: Some(stranger.certificate), key: Some(stranger.key), ..access.clone() },
        ),
        (
            "another address than the certificate's",
            Access {
                members: access.members.iter().map(|url| url.replace("127.0.0.1", "127.0.0.2")).collect(),
                ..access.clone()
            },
        ),
    ] {
        let error = EtcdStore::new(&access, "lab").expect("an access").list().expect_err(what);
        assert!(matches!(error.reason(), StoreError::Unreachable(_)), "{what}: {error}");
        eprintln!("{what}: {error}");
    }
    for (access, file) in [
        (Access { ca: access.key.clone(), ..access.clone() }, "member.key"),
        (Access { key: access.ca.clone(), ..access.clone() }, "ca.pem"),
        (Access { ca: Some(place.path().join("missing.pem")), ..access.clone() }, "missing.pem"),
    ] {
        let error = EtcdStore::new(&access, "lab").expect_err("no access").to_string();
        assert!(error.contains(&format!("{file}: ")) && error.contains("; ") && !error.contains('\n'), "{error}");
    }
}
