//! The site's policy, from peer to peer, and what changes with it while a host runs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bump::DropReason;
use cll::limits::SPREAD_TO_MAX;
use cll::{Effect, Instruction, Legacy, Migration, ProvedHost, Settings};
use common::{Lan, START_UNIX_S, Site, arp_request, datagram, ip, mac, settings};
use identity::Verified;
use identity::policy::{Content, Group, LegacyHost, Mode, SitePolicy};

const PRINTER: u8 = 99;
const SECOND: Duration = Duration::from_secs(1);

/// A policy of the site that has the printer and, to be longer than one piece, others on its list.
fn policy(site: &Site, version: u64) -> Arc<Verified<SitePolicy>> {
    let host = |number: u8| LegacyHost { mac: mac(number), ip: ip(number), router: false, broadcast: false };
    let all = Group { patterns: vec!["*".to_owned()], mode: Mode::Enforce, next: None };
    let content = Content {
        version,
        issued_unix: START_UNIX_S,
        legacy: (PRINTER..=u8::MAX).map(host).collect(),
        groups: vec![all],
        ..Content::default()
    };
    Arc::new(site.site.policy(&content).unwrap())
}

/// What `host` was given and has not been looked at.
fn given(lan: &mut Lan, host: usize) -> Vec<Vec<u8>> {
    let effects = std::mem::take(&mut lan.hosts[host].effects);
    let bytes = |effect| match effect {
        Effect::CheckPolicy { bytes, .. } => Some(bytes),
        _ => None,
    };
    effects.into_iter().filter_map(bytes).collect()
}

/// Does for every host what the program around does: checks what peers gave, has it in force if it
/// is newer, and goes by it. How many had something new.
fn apply(lan: &mut Lan, anchor: &identity::TrustAnchor, versions: &mut [u64]) -> usize {
    let mut news = 0;
    for (host, own) in versions.iter_mut().enumerate() {
        for bytes in given(lan, host) {
            let policy = anchor.verify_policy(&bytes).expect("what hosts hand on was verified before");
            if policy.version() <= *own {
                continue;
            }
            (*own, news) = (policy.version(), news + 1);
            lan.instruct(host, Instruction::SitePolicy(Arc::new(policy)));
        }
    }
    news
}

#[test]
fn an_edit_reaches_every_host_whoever_talks_with_whom() {
    const HOSTS: u8 = 16;
    let mut site = Site::new(1);
    let identities: Vec<_> = (1..=HOSTS).map(|number| site.identity(number)).collect();
    let proved: Vec<ProvedHost> = identities
        .iter()
        .map(|identity| identity.certificate())
        .map(|own| ProvedHost {
            name: own.name().to_owned(),
            mac: own.mac(),
            addresses: vec![own.addresses()[0].into()],
        })
        .collect();
    // They have met in an earlier run, and nobody has an association now.
    let known = |own: &cll::Settings| proved.iter().filter(|host| host.mac != own.mac).cloned().collect();
    let all = identities.iter().map(|identity| settings(Arc::clone(identity)));
    let mut lan = Lan::new(all.map(|own| Settings { proved: known(&own), ..own }));
    let mut versions = vec![0; usize::from(HOSTS)];
    let first = policy(&site, 1);
    assert!(first.bytes().len() > 1024, "more than one piece");
    lan.instruct(0, Instruction::SitePolicy(Arc::clone(&first)));
    versions[0] = 1;
    let mut seconds = 0;
    while versions.contains(&0) {
        lan.pass(SECOND);
        apply(&mut lan, site.site.anchor(), &mut versions);
        seconds += 1;
        assert!(seconds < 60, "{} of {HOSTS} have it", versions.iter().filter(|version| **version > 0).count());
    }
    // Another comes on the ways that are there now, and the older is worth nothing to anybody.
    lan.instruct(7, Instruction::SitePolicy(policy(&site, 2)));
    versions[7] = 2;
    for _ in 0..60 {
        lan.pass(SECOND);
        apply(&mut lan, site.site.anchor(), &mut versions);
    }
    assert_eq!(versions, vec![2; usize::from(HOSTS)]);
    assert!(lan.hosts[0].cll.control.peers(lan.at).len() >= SPREAD_TO_MAX);
}

#[test]
fn a_policy_and_a_revocation_list_do_not_stand_in_each_others_way() {
    let mut site = Site::new(1);
    let identities: Vec<_> = (1..=3).map(|number| site.identity(number)).collect();
    let mut lan = Lan::new(identities[..2].iter().map(|identity| settings(Arc::clone(identity))));
    lan.ask(0, 2);
    let list = site.long_revocation_of(&identities[2], 60, START_UNIX_S);
    lan.revoke(0, &list);
    let newest = policy(&site, 4);
    lan.instruct(0, Instruction::SitePolicy(Arc::clone(&newest)));
    lan.pass(SECOND);
    let effects = &lan.hosts[1].effects;
    let has = |wanted: &dyn Fn(&Effect) -> bool| effects.iter().any(wanted);
    assert!(has(&|effect| matches!(effect, Effect::CheckRevocationList { der, .. } if der == list.der())));
    assert!(has(&|effect| matches!(effect, Effect::CheckPolicy { bytes, .. } if bytes == newest.bytes())));
    // An older policy with a list that is as old as can be is not asked for.
    lan.hosts[1].effects.clear();
    lan.instruct(1, Instruction::SitePolicy(newest));
    lan.instruct(0, Instruction::SitePolicy(policy(&site, 3)));
    lan.pass(SECOND);
    assert!(given(&mut lan, 1).is_empty());
}

#[test]
fn a_printer_comes_and_goes_while_the_host_runs() {
    let mut site = Site::new(1);
    let mut lan = Lan::new([settings(site.identity(1))]);
    assert_eq!(lan.hosts[0].settings.policy.migration, Migration::Enforce);
    let from_printer = datagram(PRINTER, 1, b"from the printer");
    lan.inject(0, from_printer.clone());
    assert_eq!(lan.hosts[0].drops(DropReason::Unsealed), 1);
    let printer = Legacy { mac: mac(PRINTER), ip: ip(PRINTER), router: false, broadcast: false };
    lan.hosts[0].effects.clear();
    lan.instruct(0, Instruction::Legacy(vec![printer]));
    let set = Effect::PermanentNeighbour { ip: ip(PRINTER), mac: mac(PRINTER) };
    assert_eq!(lan.hosts[0].effects, [set]);
    lan.inject(0, from_printer.clone());
    assert_eq!(lan.hosts[0].delivered.last().unwrap().0, from_printer);
    lan.send(0, arp_request(1, PRINTER));
    let to_printer = datagram(1, PRINTER, b"to the printer");
    lan.send(0, to_printer.clone());
    assert!(lan.seen.iter().any(|(_, frame)| *frame == to_printer), "in clear");
    // Another machine takes its place, and then nobody.
    let other = Legacy { mac: mac(98), ..printer };
    lan.hosts[0].effects.clear();
    lan.instruct(0, Instruction::Legacy(vec![other]));
    let forget = Effect::ForgetNeighbour { ip: ip(PRINTER), mac: mac(PRINTER) };
    let set = Effect::PermanentNeighbour { ip: ip(PRINTER), mac: mac(98) };
    assert_eq!(lan.hosts[0].effects, [forget, set]);
    lan.inject(0, from_printer.clone());
    lan.instruct(0, Instruction::Legacy(Vec::new()));
    lan.inject(0, from_printer);
    assert_eq!(lan.hosts[0].drops(DropReason::Unsealed), 3);
}
