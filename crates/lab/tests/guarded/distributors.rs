//! Two key distributors over one cluster of etcd: hosts find each other whatever fails, one thing of each kind at a time.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringwall_lab::failure::Failure;
use ringwall_lab::net::etcd::{Cluster, MEMBERS as MEMBER_COUNT};
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::{Host, Namespace, process};
use rustix::process::Signal;
use serde_json::Value;

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform, program, span};

pub const DISTRIBUTORS: [&str; 2] = ["j", "k"];
const HOSTS: [&str; 3] = ["a", "b", "c"];
/// The members' address on a network of their own, which only the distributors are on besides.
pub const MEMBERS: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
/// How often a ping is tried before it counts as failed, each time for [`PING_LIMIT_S`].
const TRIES: u32 = 5;
const PING_LIMIT_S: &str = "2";
/// How long all may take to find each other again once all members are back, with room for a loaded machine.
const HEALED_MAX: Duration = Duration::from_secs(20);

/// Broke `Client::order` by asking the first member only: every ping that needed a key was without an answer. And killed both
/// distributors: a host that was started anew did not get the time.
#[test]
fn two_distributors_over_three_members_outlive_one_of_each() {
    if !process::installed("etcd") {
        eprintln!("SKIPPED two_distributors_over_three_members_outlive_one_of_each: needs etcd (Debian: etcd-server)");
        return;
    }
    perform(&["a", "b", "c", "j", "k"], |stage| {
        let mut cluster = Cluster::start(stage.run, "etcd", MEMBERS, None, |members| connect(stage, members))?;
        let site = SharedSite::found(stage, &cluster)?;
        let mut distributors: Vec<Guarded> =
            DISTRIBUTORS.iter().map(|name| site.distribute(name, &cluster)).collect::<Result<_, _>>()?;
        let mut hosts: Vec<Guarded> = HOSTS.iter().map(|name| site.guard(name)).collect::<Result<_, _>>()?;
        let third = span(Duration::from_secs(3), Duration::from_secs(20));
        let mut tally = Tally::default();
        tally.run("all there", &mut hosts, third)?;
        // The one that is asked first.
        cluster.kill_member(0);
        tally.run("without one member", &mut hosts, third)?;
        distributors[1].stop(Signal::KILL);
        tally.run("without one member and one distributor", &mut hosts, third)?;
        assert_eq!(tally.failed, 0, "pings without an answer after {TRIES} tries");
        site.revocation_is_heard(&mut hosts)?;
        starts_without_the_cluster(&mut cluster, &mut distributors, &mut hosts)
    });
}

/// Puts the members on a network with the distributors.
pub fn connect(stage: &Stage, members: &Namespace) -> Outcome {
    members.ip("link add br0 type bridge")?;
    members.ip(&format!("address add {MEMBERS}/24 dev br0"))?;
    members.ip("link set br0 up")?;
    for (number, name) in (2..).zip(DISTRIBUTORS) {
        let inside = &stage.host(name).namespace;
        members.ip(&format!("link add to-{name} type veth peer name r0 netns {}", inside.name()))?;
        members.ip(&format!("link set to-{name} master br0 up"))?;
        inside.ip(&format!("address add 10.98.0.{number}/24 dev r0"))?;
        inside.ip("link set r0 up")?;
    }
    Ok(())
}

/// The stage's site with its repository in the cluster, where the manager is as well.
pub struct SharedSite<'a> {
    stage: &'a Stage,
    manager: Namespace,
}

impl<'a> SharedSite<'a> {
    pub fn found(stage: &'a Stage, cluster: &Cluster) -> Result<Self, Failure> {
        let site = SharedSite { stage, manager: cluster.namespace().clone() };
        site.order("revoke --name nobody").expect_err("nobody is there");
        for name in DISTRIBUTORS {
            site.issue(stage.host(name), "--role akd")?;
        }
        // The first is issued to again, so that it knows the other. Certificates of one second have no order.
        process::pause(Duration::from_millis(1100))?;
        site.issue(stage.host(DISTRIBUTORS[0]), "--role akd")?;
        let members: String = cluster.access().members.iter().map(|member| format!(" --etcd {member}")).collect();
        site.order(&format!("repository import --unprotected{members}"))?;
        Ok(site)
    }

    /// Runs `ringwall site` with these words where the members can be reached.
    pub fn order(&self, words: &str) -> Result<String, Failure> {
        let mut command = self.manager.command(&program().to_string_lossy());
        command.arg("site").args(words.split(' ')).arg("--dir").arg(self.stage.site.directory());
        process::must(command)
    }

    pub fn issue(&self, host: &Host, more: &str) -> Result<PathBuf, Failure> {
        self.issue_with(host, format!("--ip {} {more}", host.ip).trim_end())
    }

    /// Issues an identity with these options; the host's address is one of them.
    pub fn issue_with(&self, host: &Host, options: &str) -> Result<PathBuf, Failure> {
        let file = self.stage.file(&format!("{}.pem", host.name));
        let Host { name, mac, .. } = host;
        let out = file.display();
        self.order(&format!("issue --name {name} --mac {mac} --force --out {out} {options}"))?;
        Ok(file)
    }

    pub fn distribute(&self, name: &str, cluster: &Cluster) -> Result<Guarded, Failure> {
        let section = format!("[akd]\netcd = {:?}\netcd_unprotected = true\n", cluster.access().members);
        let plan =
            Plan::default().host("mode = \"sarp\"").tail(&section).identity(self.stage.file(&format!("{name}.pem")));
        let mut guarded = self.stage.prepare(name, plan)?;
        guarded.launch_command(guarded.command(&["akd", "run"]))?;
        guarded.await_ready()?;
        Ok(guarded)
    }

    pub fn guard(&self, name: &str) -> Result<Guarded, Failure> {
        let identity = self.issue(self.stage.host(name), "")?;
        let guarded = self.stage.guard(name, Plan::default().host("mode = \"sarp\"").identity(identity))?;
        await_time(&guarded)?;
        Ok(guarded)
    }

    /// What the manager enters reaches hosts through the distributor that is left.
    fn revocation_is_heard(&self, hosts: &mut [Guarded]) -> Outcome {
        let [a, b] = [0, 1].map(|at| hosts[at].host.clone());
        self.order(&format!("revoke --name {}", b.name))?;
        restart(&mut hosts[0])?;
        forget(&a)?;
        assert_eq!(ping(&a, &b)?, None, "a revoked host is not found");
        hosts[0].await_drops("sarp-no-key", 1)
    }
}

/// A distributor that starts while no member is there tells the time, and of hosts as soon as the members are back.
fn starts_without_the_cluster(cluster: &mut Cluster, distributors: &mut [Guarded], hosts: &mut [Guarded]) -> Outcome {
    (0..MEMBER_COUNT).for_each(|member| cluster.kill_member(member));
    let [first, second] = distributors else { return Ok(()) };
    first.stop(Signal::KILL);
    second.launch_command(second.command(&["akd", "run"]))?;
    second.await_ready()?;
    restart(&mut hosts[0])?;
    let (a, c) = (hosts[0].host.clone(), hosts[2].host.clone());
    forget(&a)?;
    assert_eq!(ping(&a, &c)?, None, "nobody can say whose key it is");
    (0..MEMBER_COUNT).try_for_each(|member| cluster.start_member(member))?;
    let began_at = Instant::now();
    process::until("an answer once the members are back", HEALED_MAX, || Ok(ping(&a, &c)?.is_some()))?;
    eprintln!("found {:?} after all members were started again", began_at.elapsed());
    Ok(())
}

/// Under S-ARP a host says nothing before it has the time.
pub fn await_time(guarded: &Guarded) -> Outcome {
    let has_time = |status: &Value| !status["sarp"]["clock_unix_s"].is_null();
    process::until(&format!("the time on {}", guarded.host.name), SOON, || {
        Ok(guarded.status().is_ok_and(|one| has_time(&one)))
    })
}

/// A host that was restarted knows no key.
fn restart(guarded: &mut Guarded) -> Outcome {
    guarded.stop(Signal::TERM);
    guarded.start(&[])?;
    await_time(guarded)
}

fn forget(host: &Host) -> Outcome {
    host.namespace.ip(&format!("neighbour flush dev {INTERFACE}")).map(drop)
}

/// One ping, resolution of the address included.
fn ping(from: &Host, to: &Host) -> Result<Option<Duration>, Failure> {
    let mut command = from.namespace.command("ping");
    command.args(["-n", "-c", "1", "-W", PING_LIMIT_S, &to.ip.to_string()]);
    let answer = process::ask(command, &[])?.stdout;
    let text = answer.split_once("time=").and_then(|(_, rest)| rest.split(' ').next());
    Ok(text.and_then(|text| text.parse().ok()).map(|ms: f64| Duration::from_secs_f64(ms / 1000.0)))
}

/// How pings went.
#[derive(Default)]
struct Tally {
    failed: usize,
}

impl Tally {
    /// Restarts the hosts in turn, and each time lets all resolve each other anew.
    fn run(&mut self, what: &str, hosts: &mut [Guarded], time: Duration) -> Outcome {
        let began_at = Instant::now();
        let (mut asked, mut known, mut repeated) = (Vec::new(), Vec::new(), 0);
        let mut turn = 0;
        while began_at.elapsed() < time || turn < hosts.len() {
            let fresh = turn % hosts.len();
            restart(&mut hosts[fresh])?;
            turn += 1;
            for (from, to) in (0..hosts.len()).flat_map(|from| (0..hosts.len()).map(move |to| (from, to))) {
                if from == to {
                    continue;
                }
                let (near, far) = (&hosts[from].host, &hosts[to].host);
                forget(near)?;
                forget(far)?;
                let begun_at = Instant::now();
                let mut tries = 1;
                let mut answer = ping(near, far)?;
                while answer.is_none() && tries < TRIES {
                    tries += 1;
                    answer = ping(near, far)?;
                }
                repeated += usize::from(tries > 1);
                let list = if from == fresh { &mut asked } else { &mut known };
                match answer {
                    Some(took) if tries == 1 => list.push(took),
                    Some(_) => list.push(begun_at.elapsed()),
                    None => self.failed += 1,
                }
            }
        }
        show(&format!("{what}, key asked of a distributor"), asked);
        show(&format!("{what}, key known"), known);
        eprintln!("{what}: {repeated} pings were repeated, {} failed so far", self.failed);
        Ok(())
    }
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (count, middle) = (times.len(), times.get(times.len() / 2));
    eprintln!("{what}: {count} pings, min {:?}, median {middle:?}, max {:?}", times.first(), times.last());
}
