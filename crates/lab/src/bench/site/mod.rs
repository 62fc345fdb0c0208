//! `bench site`: the site's service under the reports of a whole site. What a minute of thousands
//! of hosts costs it, how long each waits for its answer, how soon all have a changed policy, and
//! how soon machines have joined and hosts are renewed meanwhile, and how long operators wait then.
//!
//! The service is the real one, in a namespace of its own. Hosts are simulated: each has a key, a
//! certificate and an address of its own, and opens one connection a report, with TLS and both
//! certificates, as `ringwall report` does.

mod client;
mod load;
mod operators;
mod shared;
mod signed;
mod talk;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use authority::Directory;
use bump::Generator;

use self::client::Client;
use self::load::{Pace, Seen};
use self::operators::Operators;
use self::shared::Shared;
use self::signed::{Asker, GoesOn, Newcomer, Renewing, Signed, have_signed};
use super::row::Row;
use super::stats::{Series, quantile_of};
use super::{Found, cpu};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::{Namespace, Running, process};

const NAME: &str = "site";
const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOSTS_SIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 9478;
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long the service is asked as fast as it answers.
const UNLIMITED: Duration = Duration::from_secs(10);
const SEED: [u8; 32] = [0x51; 32];
const SEED_OF_NEWCOMERS: [u8; 32] = [0x52; 32];

/// How large, and how long.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Plan {
    /// Simulated hosts.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u16).range(1..=20_000))]
    hosts: u16,
    /// Reports of each host; the policy changes before the last.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=60))]
    rounds: u32,
    /// Seconds between two reports of a host; its timer has 60, and the service takes one in two
    /// seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(3..=600))]
    every: u64,
    /// Machines that join by token at once, and as many hosts that renew, while the others report;
    /// a site has room for 1024 tokens, and an operator orders one
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(0..=1023))]
    signed: u16,
    /// Keep the repository in three members of etcd, of which one is killed 20 s after machines begin
    /// to join, and after hosts begin to renew
    #[arg(long)]
    etcd: bool,
}

/// Measures; returns the rows.
///
/// # Errors
/// The site cannot be founded, the service does not start, or the lab is interrupted.
pub fn run(run: &Run, program: &Path, plan: Plan) -> Found {
    if plan.signed >= plan.hosts {
        return Err(Failure::Usage(format!("--signed is to be less than --hosts, {}", plan.hosts)));
    }
    let stage = Stage::set(run, program)?;
    let mut hosts = stage.enrol(plan.hosts)?;
    let operators = Operators::enter(&stage)?;
    let shared = if plan.etcd { Some(Shared::start(&stage)?) } else { None };
    let beside = Beside { operators: &operators, shared: shared.as_ref() };
    let service = stage.serve()?;
    let (every, all) = (Duration::from_secs(plan.every), f64::from(plan.hosts));
    let mut rows = Vec::new();
    let steady = service.under(&mut hosts, Pace::Every(every, plan.rounds - 1))?;
    rows.extend(service.rows("steady", &steady)?);
    stage.add_printer(2)?;
    let changed = service.under(&mut hosts, Pace::Every(every, 1))?;
    rows.extend(service.rows("changed", &changed)?);
    let fetched = row("changed/policy_after", "s", &changed.seen.fetched_s);
    rows.extend(
        fetched.map(|row| row.with_stat("hosts_that_have_it", Some(changed.seen.fetched_s.len() as f64 / all))),
    );
    let unlimited = service.under(&mut hosts, Pace::Unlimited(UNLIMITED))?;
    rows.extend(service.rows("unlimited", &unlimited)?);
    if plan.signed > 0 {
        let mut newcomers = stage.invite(plan.hosts, plan.signed)?;
        rows.extend(service.under_signing(("joins", beside), &mut hosts, every, &mut newcomers)?);
        stage.check_certificates(newcomers.iter().map(Newcomer::name), 1)?;
        let others = hosts.len().saturating_sub(plan.signed.into());
        let (others, some) = hosts.split_at_mut(others);
        let mut renewing: Vec<Renewing> = some.iter_mut().map(Renewing::new).collect();
        rows.extend(service.under_signing(("renewals", beside), others, every, &mut renewing)?);
        stage.check_certificates(some.iter().map(Client::name), 2)?;
    }
    Ok(rows)
}

/// The site, and two namespaces with a cable between them.
struct Stage {
    program: PathBuf,
    run: Run,
    directory: PathBuf,
    service: Namespace,
    hosts: Namespace,
}

impl Stage {
    fn set(run: &Run, program: &Path) -> Result<Stage, Failure> {
        let (service, hosts) = (Namespace::create(run, "s")?, Namespace::create(run, "h")?);
        service.ip(&format!("link add e0 type veth peer name e0 netns {}", hosts.name()))?;
        for (namespace, address) in [(&service, SERVICE), (&hosts, HOSTS_SIDE)] {
            namespace.ip(&format!("addr add {address}/24 dev e0"))?;
            namespace.ip("link set e0 up")?;
        }
        service.ip(&format!("route add {} via {HOSTS_SIDE}", client::SUBNET))?;
        hosts.ip(&format!("route add local {} dev lo", client::SUBNET))?;
        let directory = run.directory();
        let stage = Stage { program: program.to_owned(), run: run.clone(), directory, service, hosts };
        stage.order(&["init", "--name", "load"])?;
        let out = stage.file("s.pem");
        let ip = SERVICE.to_string();
        stage.order(&["issue", "--name", "s", "--mac", "02:00:00:00:00:01", "--ip", &ip, "--out", &out])?;
        stage.add_printer(1)?;
        Ok(stage)
    }

    fn file(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    /// A command of the manager.
    fn order(&self, words: &[&str]) -> Result<String, Failure> {
        process::must(self.command(words))
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.service.command(&self.program.to_string_lossy());
        command.arg("site").args(words).args(["--dir", &self.file("site")]);
        self.run.mark(&mut command);
        command
    }

    /// One printer more, whose addresses end in this number.
    fn add_printer(&self, last: u8) -> Result<(), Failure> {
        let [ip, mac] = [format!("10.0.1.{last}"), format!("02:00:00:00:01:{last:02x}")];
        self.order(&["policy", "legacy", "add", "--ip", &ip, "--mac", &mac]).map(drop)
    }

    fn enrol(&self, count: u16) -> Result<Vec<Client>, Failure> {
        let directory = Directory::open(Path::new(&self.file("site")));
        let directory = directory.map_err(|error| Failure::Unreadable(error.to_string()))?;
        let (mut random, issued) = (Generator::from_seed(SEED), self.directory.join("site/issued"));
        (0..count).map(|number| Client::enrol(directory.site(), &issued, number, &mut random)).collect()
    }

    /// Machines behind number `first`, each with a token.
    fn invite(&self, first: u16, count: u16) -> Result<Vec<Newcomer>, Failure> {
        let numbers = first..first.saturating_add(count);
        let row = |number| format!("h{number},{},{}\n", client::mac_of(number), client::address_of(number));
        let table = numbers.clone().map(row).fold("name,mac,ip\n".to_owned(), |table, row| table + &row);
        let (hosts, tokens) = (self.file("hosts.csv"), self.file("tokens"));
        std::fs::write(&hosts, table).map_err(Failure::io(format!("writing {hosts}")))?;
        self.order(&["token", "--csv", &hosts, "--preapproved", "--by-service", "--days", "1", "--out", &tokens])?;
        let mut random = Generator::from_seed(SEED_OF_NEWCOMERS);
        let newcomer = |number| {
            let file = format!("{tokens}/h{number}.token");
            let token = std::fs::read_to_string(&file).map_err(Failure::io(format!("reading {file}")))?;
            Newcomer::new(number, &token, &mut random)
        };
        numbers.map(newcomer).collect()
    }

    /// Whether each of these hosts has so many certificates: nothing is granted twice, and nothing
    /// that was acknowledged is lost.
    fn check_certificates<'a>(&self, names: impl Iterator<Item = &'a str>, count: u32) -> Result<(), Failure> {
        let unreadable = |error: authority::Error| Failure::Unreadable(error.to_string());
        let directory = Directory::open(Path::new(&self.file("site"))).map_err(unreadable)?;
        let mut issued: BTreeMap<String, u32> = BTreeMap::new();
        for entry in directory.list().map_err(unreadable)? {
            *issued.entry(entry.name).or_default() += 1;
        }
        for name in names {
            let found = issued.get(name).copied().unwrap_or_default();
            if found != count {
                return Err(Failure::Unreadable(format!("{name} has {found} certificates in place of {count}")));
            }
        }
        Ok(())
    }

    /// The signer, at this socket.
    fn sign(&self, socket: &str) -> Result<Running, Failure> {
        let command = self.command(&["signer", "--socket", socket, "--days", "1"]);
        let mut running = Running::start(command, &self.directory.join("signer.log"))?;
        running.await_output("is signed for at", START_LIMIT)?;
        Ok(running)
    }

    fn serve(&self) -> Result<Service<'_>, Failure> {
        let (listen, socket) = (format!("{SERVICE}:{PORT}"), self.file("signer.socket"));
        let signer = self.sign(&socket)?;
        let identity = self.file("s.pem");
        let command = self.command(&["serve", "--listen", &listen, "--identity", &identity, "--signer", &socket]);
        let mut running = Running::start(command, &self.directory.join("service.log"))?;
        running.await_output("hosts report to", START_LIMIT)?;
        let keeper = running.id();
        let processes = std::iter::once(keeper).chain(cpu::children(keeper)?).collect();
        Ok(Service { stage: self, address: client::service_at(SERVICE, PORT), processes, signer, _running: running })
    }
}

/// The service, as it runs.
struct Service<'a> {
    stage: &'a Stage,
    address: SocketAddr,
    /// Keeper and door.
    processes: Vec<u32>,
    signer: Running,
    _running: Running,
}

/// What else goes on while machines join and hosts renew.
#[derive(Clone, Copy)]
struct Beside<'a> {
    operators: &'a Operators<'a>,
    shared: Option<&'a Shared>,
}

/// What was seen of hosts, and what it cost the service.
struct Under {
    seen: Seen,
    cpu: Duration,
}

impl Service<'_> {
    fn under(&self, hosts: &mut [Client], pace: Pace<'_>) -> Result<Under, Failure> {
        let before = cpu::processes(&self.processes)?;
        let seen = self.stage.hosts.enter(|| load::put(hosts, self.address, pace))?;
        Ok(Under { seen, cpu: cpu::processes(&self.processes)?.saturating_sub(before) })
    }

    /// Has all `askers` get what they want while `hosts` report and operators order.
    fn under_signing<A: Asker>(
        &self,
        (what, beside): (&str, Beside<'_>),
        hosts: &mut [Client],
        every: Duration,
        askers: &mut [A],
    ) -> Found {
        let goes_on = AtomicBool::new(true);
        let before = cpu::processes(&[self.signer.id()])?;
        let (under, signed, waited, disturbed) = std::thread::scope(|scope| {
            let ordering = scope.spawn(|| beside.operators.ask_while(&goes_on));
            let disturbing = scope.spawn(|| beside.shared.map_or(Ok(()), |shared| shared.disturb_while(&goes_on)));
            let signing = scope.spawn(|| {
                let _goes_on = GoesOn(&goes_on);
                self.stage.hosts.enter(|| have_signed(askers, self.address))
            });
            let under = self.under(hosts, Pace::While(every, &goes_on));
            (under, signing.join(), ordering.join(), disturbing.join())
        });
        let (under, signed) = (under?, signed.map_err(|_| Failure::Unreadable("who asked panicked".to_owned()))??);
        disturbed.map_err(|_| Failure::Unreadable("who kills members panicked".to_owned()))??;
        let waited = waited.map_err(|_| Failure::Unreadable("an operator panicked".to_owned()))?;
        let cpu = cpu::processes(&[self.signer.id()])?.saturating_sub(before);
        let mut rows = self.rows(&format!("{what}/reports"), &under)?;
        rows.extend(signed_rows(what, &signed));
        rows.extend(waited.rows(what));
        let memory = cpu::resident_bytes(self.signer.id())? / f64::from(1 << 20);
        let share = cpu.as_secs_f64() / under.seen.time_s * 100.0;
        rows.extend(row(&format!("{what}/signer_cpu"), "%", &[share]));
        rows.extend(row(&format!("{what}/signer_memory"), "MiB", &[memory]));
        Ok(rows)
    }

    fn rows(&self, what: &str, under: &Under) -> Found {
        let Under { seen, cpu } = under;
        let count = seen.answers_ms.len() as f64;
        let mut sorted = seen.answers_ms.clone();
        sorted.sort_by(f64::total_cmp);
        let failed: u32 = seen.failed.values().sum();
        let mut answers = row(&format!("{what}/answer"), "ms", &seen.answers_ms);
        for (name, share) in [("p99", 0.99), ("p999", 0.999)] {
            answers = answers.map(|row| row.with_stat(name, quantile_of(&sorted, share)));
        }
        answers =
            answers.map(|row| row.with_stat("failed", Some(failed.into())).with_stat("late_ms", Some(seen.late_ms)));
        for (why, count) in &seen.failed {
            eprintln!("ringwall-lab: {what}: {count} reports failed: {why}");
        }
        let resident: f64 = self.processes.iter().map(|id| cpu::resident_bytes(*id)).sum::<Result<f64, Failure>>()?;
        let single = [
            ("reports", "1/s", count / seen.time_s),
            ("cpu", "%", cpu.as_secs_f64() / seen.time_s * 100.0),
            ("cpu_per_report", "us", cpu.as_secs_f64() * 1e6 / count.max(1.0)),
            ("memory", "MiB", resident / f64::from(1 << 20)),
        ];
        let singles =
            single.into_iter().filter_map(|(name, unit, value)| row(&format!("{what}/{name}"), unit, &[value]));
        let bytes = row(&format!("{what}/bytes_per_report"), "B", &seen.bytes);
        Ok(answers.into_iter().chain(singles).chain(bytes).collect())
    }
}

/// When each had what it wanted, and how long a question took.
fn signed_rows(what: &str, signed: &Signed) -> Vec<Row> {
    for (why, count) in &signed.failed {
        eprintln!("ringwall-lab: {what}: {count} questions failed: {why}");
    }
    let failed: u32 = signed.failed.values().sum();
    let last = signed.granted_s.iter().copied().fold(0.0, f64::max);
    let granted = row(&format!("{what}/granted_after"), "s", &signed.granted_s);
    let granted =
        granted.map(|row| row.with_stat("granted", Some(signed.granted_s.len() as f64)).with_stat("last", Some(last)));
    let answers = row(&format!("{what}/answer"), "ms", &signed.answers_ms);
    let answers = answers
        .map(|row| row.with_stat("failed", Some(failed.into())).with_stat("put_off", Some(signed.put_off.into())));
    granted.into_iter().chain(answers).collect()
}

fn row(name: &str, unit: &'static str, values: &[f64]) -> Option<Row> {
    let series: Series = values.iter().copied().map(Some).collect();
    Row::new(NAME, name, unit, &series)
}
