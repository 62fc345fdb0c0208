//! Enrolment by token at two key distributors that share a cluster: what one was told the other knows.

use ringwall_lab::net::etcd::Cluster;
use ringwall_lab::net::process;
use rustix::process::Signal;
use serde_json::Value;

use crate::distributors::{DISTRIBUTORS, MEMBERS, SharedSite, await_time, connect};
use crate::enrolment::{apply, finish, identity_of, machine, text};
use crate::sarp::resolve_anew;
use crate::stage::{Guarded, perform};

/// Only one distributor lives at a time, so nothing that the other one kept to itself can have helped. Broke it by leaving the
/// first dead: the machine waited on.
#[test]
fn a_machine_applies_at_one_distributor_and_fetches_from_the_other() {
    if !process::installed("etcd") {
        eprintln!("SKIPPED enrolment over a cluster: needs etcd (Debian: etcd-server)");
        return;
    }
    perform(&["a", "b", "j", "k"], |stage| {
        let [a, b] = ["a", "b"].map(|name| stage.host(name));
        let cluster = Cluster::start(stage.run, "etcd", MEMBERS, None, |members| connect(stage, members))?;
        let site = SharedSite::found(stage, &cluster)?;
        let mut distributors: Vec<Guarded> =
            DISTRIBUTORS.iter().map(|name| site.distribute(name, &cluster)).collect::<Result<_, _>>()?;
        let _far = site.guard("b")?;
        let json = |words: &str| -> Result<Value, _> { site.order(words).map(|said| parsed(&said)) };

        let made = json(&format!("token --name a --ip {} --json", a.ip))?;
        let mut near = machine(stage, "a")?;
        distributors[0].stop(Signal::KILL);
        let enrolling = apply(&near, text(&made), &[])?;
        distributors[1].stop(Signal::KILL);
        assert_eq!(json("pending --json")?[0]["state"], "asked", "what the other was told is in the cluster");

        let again = distributors[0].command(&["akd", "run"]);
        distributors[0].launch_command(again)?;
        distributors[0].await_ready()?;
        site.order("approve a")?;
        let identity = finish(stage, &near, enrolling)?;
        assert_eq!((identity.certificate().name(), identity.certificate().addresses()), ("a", &[a.ip][..]));
        assert!(identity_of(stage, "a").exists());
        assert_eq!(json("pending --json")?[0]["state"], "fetched");

        near.start(&[])?;
        await_time(&near)?;
        resolve_anew(a, b)?;
        resolve_anew(b, a)
    });
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}
