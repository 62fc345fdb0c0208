//! The site's revocation list, from peer to peer.

mod common;

use std::sync::Arc;
use std::time::Duration;

use bump::DropReason;
use cll::Effect;
use cll::limits::{LIST_FETCH_MAX, LIST_SUSPECT_FOR};
use common::{Lan, START_UNIX_S, Site, mac, settings};
use identity::revocation::RevocationList;
use identity::{HostIdentity, Verified};

/// Lists that host `host` was given.
fn given(lan: &Lan, host: usize) -> Vec<Vec<u8>> {
    let list = |effect: &Effect| match effect {
        Effect::CheckRevocationList { der, .. } => Some(der.clone()),
        _ => None,
    };
    lan.hosts[host].effects.iter().filter_map(list).collect()
}

fn three() -> (Site, Vec<Arc<HostIdentity>>, Lan) {
    let mut site = Site::new(1);
    let identities: Vec<_> = (1..=4).map(|number| site.identity(number)).collect();
    let lan = Lan::new(identities[..3].iter().map(|identity| settings(Arc::clone(identity))));
    (site, identities, lan)
}

/// A list that takes more than one piece, and takes back the certificate of `identity`.
fn long_list(site: &Site, identity: &HostIdentity, issued_unix: u64) -> Arc<Verified<RevocationList>> {
    site.long_revocation_of(identity, 60, issued_unix)
}

#[test]
fn a_list_comes_with_the_first_association_and_goes_on_to_all_peers() {
    let (site, identities, mut lan) = three();
    let list = long_list(&site, &identities[3], START_UNIX_S);
    assert!(list.der().len() > 2 * 1024, "several pieces");
    lan.revoke(0, &list);
    lan.ask(1, 1);
    assert_eq!(given(&lan, 1), [list.der()]);
    // Host 3 knows host 2 alone, and hears of it once host 2 has it in force.
    lan.ask(2, 2);
    assert!(given(&lan, 2).is_empty());
    lan.revoke(1, &list);
    assert_eq!(given(&lan, 2), [list.der()]);
    // Nobody asks for what he has.
    lan.revoke(2, &list);
    lan.pass(Duration::from_secs(60));
    assert_eq!([0, 1, 2].map(|host| given(&lan, host).len()), [0, 1, 1]);
}

#[test]
fn an_older_list_is_not_asked_for() {
    let (site, identities, mut lan) = three();
    lan.revoke(0, &long_list(&site, &identities[3], START_UNIX_S));
    lan.revoke(1, &long_list(&site, &identities[3], START_UNIX_S + 1));
    lan.ask(1, 1);
    assert!(given(&lan, 1).is_empty());
    assert_eq!(given(&lan, 0).len(), 1);
}

#[test]
fn a_peer_that_offers_and_does_not_give_is_left_and_another_is_asked() {
    let (site, identities, mut lan) = three();
    let list = long_list(&site, &identities[3], START_UNIX_S);
    lan.ask(1, 1);
    lan.ask(1, 3);
    // The offer arrives, and from then on host 1 is silent.
    let mut carried = 0;
    lan.wire = Box::new(move |_, from, _| {
        carried += usize::from(from == 0);
        from != 0 || carried <= 2
    });
    lan.revoke(0, &list);
    lan.pass(LIST_FETCH_MAX);
    assert!(given(&lan, 1).is_empty());
    lan.revoke(2, &list);
    lan.pass(Duration::from_secs(1));
    assert_eq!(given(&lan, 1).len(), 1);
}

#[test]
fn a_list_that_comes_to_nothing_makes_its_giver_suspect_for_a_while() {
    let (site, identities, mut lan) = three();
    lan.ask(1, 1);
    lan.revoke(0, &long_list(&site, &identities[3], START_UNIX_S));
    assert_eq!(given(&lan, 1).len(), 1);
    // The program around host 2 did not have it in force, so it was no list of the site.
    lan.revoke(0, &long_list(&site, &identities[3], START_UNIX_S + 1));
    assert_eq!(given(&lan, 1).len(), 1, "not asked again");
    let newest = long_list(&site, &identities[3], START_UNIX_S + 2);
    lan.revoke(1, &long_list(&site, &identities[3], START_UNIX_S));
    lan.revoke(0, &newest);
    assert_eq!(given(&lan, 1).len(), 2, "what it gave first was good after all");
    lan.pass(LIST_SUSPECT_FOR);
}

#[test]
fn a_lost_piece_is_asked_for_again() {
    let (site, identities, mut lan) = three();
    let list = long_list(&site, &identities[3], START_UNIX_S);
    lan.ask(1, 1);
    let mut long_frames = 0;
    lan.wire = Box::new(move |frame, from, to| {
        let is_piece = from == 0 && to == 1 && frame.len() > 1000;
        long_frames += usize::from(is_piece);
        !(is_piece && long_frames % 2 == 1)
    });
    lan.revoke(0, &list);
    lan.pass(LIST_FETCH_MAX);
    assert_eq!(given(&lan, 1), [list.der()]);
}

#[test]
fn a_revoked_host_is_out_everywhere_once_the_list_is_in_force() {
    let (site, identities, mut lan) = three();
    lan.ask(1, 1);
    lan.ask(1, 3);
    assert!(lan.hosts[1].established_with(3));
    let list = long_list(&site, &identities[2], START_UNIX_S);
    lan.revoke(0, &list);
    let der = given(&lan, 1).remove(0);
    assert_eq!(der, list.der());
    lan.revoke(1, &list);
    assert!(!lan.hosts[1].established_with(3) && lan.hosts[1].established_with(1));
    lan.ask(2, 2);
    assert!(lan.hosts[1].drops(DropReason::BadCertificate) > 0);
    assert_eq!(lan.hosts[1].cll.control.established_with(mac(3)), 0);
}
