//! The site's signer where the repository of hosts is in a cluster of etcd: what is granted is
//! granted once, whichever member or signer ends meanwhile.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use ringwall_lab::cleanup::Run;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::authority::Authority;
use ringwall_lab::net::etcd::{Cluster, MEMBERS};
use ringwall_lab::net::lan::LanPlan;

use crate::site_signer::{at_every_call, is_enrolled_once, issue_service, joins_and_renews};
use crate::stage::{Outcome, Site, Stage, perform_bare};

/// A member is killed in the midst of each case with a multiple of this, and started again.
const CASES_OF_A_MEMBER: usize = 5;

/// A cluster, by TLS with certificates on both sides, that keeps the repository of `site`. This
/// thread, and what it starts, is where the members are from now on.
fn cluster_of(run: &Run, site: &Site) -> Result<Cluster, Failure> {
    let seal = Authority::found(&run.directory(), "etcd-authority")?.issue("member", Ipv4Addr::LOCALHOST)?;
    let cluster = Cluster::start(run, "etcd", Ipv4Addr::LOCALHOST, Some(seal.clone()), |_| Ok(()))?;
    cluster.move_here()?;
    let members: String = cluster.access().members.iter().map(|member| format!(" --etcd {member}")).collect();
    let [ca, certificate, key] = [&seal.ca, &seal.certificate, &seal.key].map(|file| file.display());
    site.order(&format!("repository import{members} --ca {ca} --certificate {certificate} --key {key}"))?;
    Ok(cluster)
}

#[test]
fn a_host_joins_and_renews_while_a_member_of_the_cluster_is_dead() {
    const NAME: &str = "a_host_joins_and_renews_while_a_member_of_the_cluster_is_dead";
    perform_bare(NAME, &["etcd", "openssl"], |run| {
        let stage = Stage::set(run, &LanPlan { hosts: vec!["a", "b", "h"], ..LanPlan::default() })?;
        let mut cluster = cluster_of(run, &stage.site)?;
        issue_service(&stage)?;
        // The one that is asked first.
        cluster.kill_member(0);
        joins_and_renews(&stage)
    });
}

#[test]
fn a_signer_and_members_that_are_killed_at_any_time_enrol_each_host_once() {
    const NAME: &str = "a_signer_and_members_that_are_killed_at_any_time_enrol_each_host_once";
    perform_bare(NAME, &["strace", "etcd", "openssl"], |run| {
        let place = run.directory().join("killed-shared");
        fs::create_dir_all(&place).map_err(Failure::file("making", &place))?;
        let site = Site::found(run, "killed-shared-site")?;
        let mut cluster = cluster_of(run, &site)?;
        let mut members_killed = 0;
        let killed = at_every_call(&site, &place, |number, ask| {
            if number % CASES_OF_A_MEMBER != 0 {
                return is_enrolled_once(&site, number, ask);
            }
            members_killed += 1;
            // Every second time it is the one that a new signer asks first.
            let member = (number / CASES_OF_A_MEMBER) % 2 * (number % MEMBERS);
            let moment = Duration::from_millis((number as u64 * 37) % 500);
            std::thread::scope(|scope| {
                let cluster = &mut cluster;
                scope.spawn(move || {
                    std::thread::sleep(moment);
                    cluster.kill_member(member);
                });
                is_enrolled_once(&site, number, ask)
            })?;
            back(&mut cluster, member)
        })?;
        eprintln!("killed {killed} signers and {members_killed} members");
        assert!(killed > 20 && members_killed > 2, "{killed} {members_killed}");
        Ok(())
    });
}

fn back(cluster: &mut Cluster, member: usize) -> Outcome {
    cluster.start_member(member)?;
    cluster.await_service()
}
