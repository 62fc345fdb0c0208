//! What is measured, as scrapers see it: the real Prometheus at real daemons, and what a client
//! that misbehaves gets.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Namespace, Running, process};
use serde_json::Value;

use crate::attacks::spoof;
use crate::stage::{Outcome, Plan, SOON, perform, perform_bare};

/// Where daemons answer scrapers in these tests.
pub const LISTEN: &str = "127.0.0.1:9477";
/// The line of a configuration that says so.
pub const LISTEN_LINES: &str = "[records]\nmetrics_listen = \"127.0.0.1:9477\"\n";
/// Where Prometheus answers.
const PROMETHEUS: &str = "127.0.0.1:9090";
/// How often Prometheus scrapes, and how long it waits for an answer: less long than an exporter waits
/// for its daemon, so that a slow machine is told from a fault.
const SCRAPED_EVERY: &str = "5s";
const SCRAPED_WITHIN: &str = "4s";
/// How long Prometheus may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an attack may be told after its last frame: a minute, and the way to an alert that is
/// over.
const OVER: Duration = Duration::from_secs(180);
/// Clients that an exporter has at one time.
const CLIENTS_MAX: usize = 8;

/// The answer to a request, head and body. Who is refused before it was heard may find the
/// connection reset behind the answer.
fn exchange(stream: &mut (impl std::io::Read + std::io::Write), request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    if answer.is_empty() {
        read?;
    }
    String::from_utf8(answer).map_err(std::io::Error::other)
}

fn request(path: &str, accept: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.parse().expect("an address");
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SOON))?;
    Ok(stream)
}

/// What `address` in `namespace` answers.
fn get(namespace: &Namespace, address: &str, path: &str, accept: &str) -> Result<String, Failure> {
    let ask = || connect(address).and_then(|mut stream| exchange(&mut stream, &request(path, accept)));
    namespace.enter(|| ask().map_err(Failure::io(format!("asking {address}"))))
}

/// The body of an answer that says 200.
fn body(answer: &str) -> &str {
    let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body
}

/// Prometheus in a namespace, at a daemon there, with the alerts that are shipped.
pub struct Prometheus<'a> {
    namespace: &'a Namespace,
    process: Running,
}

impl<'a> Prometheus<'a> {
    /// Starts it, with its files in `directory`, and waits until a scrape of the daemon is stored.
    ///
    /// The daemon's exporter answers before that: it starts beside the daemon, and a scrape that it
    /// is too late for would be counted as a failed one for good. Prometheus calls a target healthy
    /// before it stores what it scraped, so only an answer to a query says that there is a sample.
    pub fn start(namespace: &'a Namespace, directory: &Path) -> Result<Prometheus<'a>, Failure> {
        process::until("the exporter", PATIENCE, || {
            Ok(get(namespace, LISTEN, "/metrics", "text/plain").is_ok_and(|page| page.starts_with("HTTP/1.1 200 ")))
        })?;
        let place = directory.join("prometheus");
        std::fs::create_dir_all(&place).map_err(Failure::file("making", &place))?;
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/monitoring/ringwall.rules.yml");
        let config = place.join("prometheus.yml");
        let text = format!(
            "global:\n  scrape_interval: {SCRAPED_EVERY}\n  scrape_timeout: {SCRAPED_WITHIN}\n  \
             evaluation_interval: 1s\nrule_files: [\"{}\"]\nscrape_configs:\n  \
             - job_name: ringwall\n    static_configs: [{{targets: [\"{LISTEN}\"]}}]\n",
            rules.display()
        );
        std::fs::write(&config, text).map_err(Failure::file("writing", &config))?;
        let mut command = namespace.command("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", place.join("data").display()));
        command.arg(format!("--web.listen-address={PROMETHEUS}"));
        // Which names what was wrong with a scrape.
        command.arg("--log.level=debug");
        let process = Running::start(command, &place.join("log"))?;
        let mut started = Prometheus { namespace, process };
        process::until("the first scrape", PATIENCE, || {
            started.process.ensure_alive()?;
            Ok(started.ask("/api/v1/query?query=up").is_ok_and(|up| up["data"]["result"][0]["value"][1] == "1"))
        })?;
        Ok(started)
    }

    fn ask(&self, path: &str) -> Result<Value, Failure> {
        // HTTP/1.0 has no chunks.
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        let ask = || connect(PROMETHEUS).and_then(|mut stream| exchange(&mut stream, &request));
        let answer = self.namespace.enter(|| ask().map_err(Failure::io("asking Prometheus")))?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).map_err(|error| Failure::Unreadable(format!("{path}: {error}: {answer}")))
    }

    fn targets(&self) -> Result<Value, Failure> {
        Ok(self.ask("/api/v1/targets")?["data"]["activeTargets"].clone())
    }

    /// No scrape so far found anything wrong. One that this machine was too slow for is none.
    pub fn assert_well(&self) -> Outcome {
        let log = self.process.output();
        let is_late = |line: &str| line.contains("context deadline exceeded");
        let failed: Vec<&str> = log.lines().filter(|line| line.contains("Scrape failed") && !is_late(line)).collect();
        assert_eq!(failed, Vec::<&str>::new());
        let good = self.ask("/api/v1/query?query=max_over_time(up[1h])")?;
        assert_eq!(good["data"]["result"][0]["value"][1], "1", "{good}: {}", self.targets()?);
        Ok(())
    }

    /// The labels of the alerts called `name` that fire.
    fn firing(&self, name: &str) -> Result<Vec<Value>, Failure> {
        let alerts = self.ask("/api/v1/alerts")?["data"]["alerts"].clone();
        let alerts = alerts.as_array().cloned().unwrap_or_default();
        let fires = |alert: &&Value| alert["state"] == "firing" && alert["labels"]["alertname"] == name;
        Ok(alerts.iter().filter(fires).map(|alert| alert["labels"].clone()).collect())
    }
}

/// Prometheus' own tool finds no fault in `text`.
fn assert_checked(text: &str) -> Outcome {
    let mut tool = Command::new("promtool");
    tool.args(["check", "metrics"]);
    let said = process::ask(tool, text.as_bytes())?;
    assert!(
        said.status.success() && said.stdout.is_empty() && said.stderr.is_empty(),
        "{} {}",
        said.stdout,
        said.stderr
    );
    Ok(())
}

/// The exporter that the daemon `parent` has started.
fn exporter_of(parent: u32) -> u32 {
    let all = std::fs::read_dir("/proc").expect("there").flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |id: &u32| {
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"exporter") && status.contains(&format!("PPid:\t{parent}\n"))
    };
    ids.into_iter().find(is_ours).expect("an exporter")
}

#[test]
fn prometheus_hears_of_an_attack_and_of_its_end() {
    perform_bare("prometheus_hears_of_an_attack_and_of_its_end", &["prometheus", "promtool"], |run| {
        let plan = ringwall_lab::net::LanPlan { hosts: vec!["a", "b", "x"], ..Default::default() };
        let stage = crate::stage::Stage::set(run, &plan)?;
        let [a, b, x] = ["a", "b", "x"].map(|name| stage.host(name));
        let near = stage.guard("a", Plan::way("namespace").tail(LISTEN_LINES))?;
        let _far = stage.guard("b", Plan::way("namespace"))?;
        reach(&a.namespace, b.ip, SOON)?;
        let prometheus = Prometheus::start(&a.namespace, &near.directory)?;
        assert_eq!(prometheus.firing("RingwallAttack")?, Vec::<Value>::new());
        spoof(x, a, b)?;
        process::until("the alert", PATIENCE, || Ok(!prometheus.firing("RingwallAttack")?.is_empty()))?;
        let firing = prometheus.firing("RingwallAttack")?;
        assert_eq!((firing.len(), &firing[0]["kind"]), (1, &"arp-spoofing".into()), "{firing:?}");
        process::until("the end of the alert", OVER, || Ok(prometheus.firing("RingwallAttack")?.is_empty()))?;
        let opened = prometheus.ask("/api/v1/query?query=ringwall_attacks_total%7Bkind=%22arp-spoofing%22%7D")?;
        assert_eq!(opened["data"]["result"][0]["value"][1], "1", "{opened}");
        prometheus.assert_well()?;
        assert_checked(body(&get(&a.namespace, LISTEN, "/metrics", "text/plain")?))
    });
}

#[test]
fn prometheus_scrapes_a_distributor() {
    perform_bare("prometheus_scrapes_a_distributor", &["prometheus", "promtool"], |run| {
        let plan = ringwall_lab::net::LanPlan { hosts: vec!["k"], ..Default::default() };
        let stage = crate::stage::Stage::set(run, &plan)?;
        let k = stage.host("k");
        let distributor = stage.guard("k", Plan::distributor().tail(LISTEN_LINES))?;
        let prometheus = Prometheus::start(&k.namespace, &distributor.directory)?;
        prometheus.assert_well()?;
        let page = || get(&k.namespace, LISTEN, "/metrics", "text/plain");
        process::until("a page", SOON, || Ok(page().is_ok_and(|page| page.starts_with("HTTP/1.1 200 "))))?;
        let answer = page()?;
        assert!(body(&answer).contains("ringwall_mode{interface=\"e0\",mode=\"sarp\"} 1\n"), "{answer}");
        assert_checked(body(&answer))
    });
}

#[test]
fn an_exporter_has_no_privilege_and_bounds_who_asks() {
    perform(&["a"], |stage| {
        let a = stage.host("a");
        let mut near = stage.guard("a", Plan::default().tail(LISTEN_LINES))?;
        let page = || get(&a.namespace, LISTEN, "/metrics", "application/openmetrics-text;version=1.0.0");
        process::until("the first page", SOON, || Ok(page().is_ok()))?;
        let answer = page()?;
        assert!(answer.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{answer}");
        assert!(body(&answer).ends_with("# EOF\n"), "{answer}");
        let exporter = exporter_of(near.id());
        let status = std::fs::read_to_string(format!("/proc/{exporter}/status")).expect("it runs");
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        assert!(field("Uid:").split_whitespace().all(|id| id != "0"), "{status}");
        for set in ["CapEff:", "CapPrm:", "CapBnd:"] {
            assert_eq!(field(set), "0000000000000000", "{status}");
        }
        assert_eq!((field("NoNewPrivs:"), field("Seccomp:")), ("1", "2"), "{status}");

        // Silent ones are closed after some seconds, which may be over when this machine comes to ask.
        let silent = || connect(LISTEN).map_err(Failure::io("connecting"));
        let silent_ones = || a.namespace.enter(|| (0..CLIENTS_MAX).map(|_| silent()).collect::<Result<Vec<_>, _>>());
        process::until("a refusal", SOON, || {
            let _held = silent_ones()?;
            Ok(page().is_ok_and(|page| page.starts_with("HTTP/1.1 503 ")))
        })?;
        process::until("room for others", SOON, || Ok(page().is_ok_and(|page| page.starts_with("HTTP/1.1 200 "))))?;
        let strange = "GET /metrics HTTP/1.1\r\nHost: rebound.example\r\n\r\n";
        let ask = || connect(LISTEN).and_then(|mut stream| exchange(&mut stream, strange));
        let answer = a.namespace.enter(|| ask().map_err(Failure::io("asking")))?;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");

        near.ensure_alive()?;
        near.stop(rustix::process::Signal::TERM);
        process::until("the end of the exporter", SOON, || Ok(!Path::new(&format!("/proc/{exporter}")).exists()))
    });
}

#[test]
fn a_socket_in_the_file_system_is_answered_and_a_busy_port_costs_nothing_else() {
    perform(&["a"], |stage| {
        let socket = stage.file("metrics.sock");
        let line = format!("[records]\nmetrics_listen = \"{}\"\n", socket.display());
        let mut near = stage.guard("a", Plan::default().tail(&line))?;
        let ask = || -> std::io::Result<String> {
            let mut stream = UnixStream::connect(&socket)?;
            stream.set_read_timeout(Some(SOON))?;
            exchange(&mut stream, "GET /metrics HTTP/1.0\r\n\r\n")
        };
        process::until("a page through the socket", SOON, || Ok(ask().is_ok()))?;
        let answer = ask().map_err(Failure::io("asking"))?;
        assert!(body(&answer).contains("ringwall_build_info{"), "{answer}");
        near.stop(rustix::process::Signal::TERM);

        // Somebody else's file is left as it is, and the host is guarded all the same.
        std::fs::remove_file(&socket).map_err(Failure::file("removing", &socket))?;
        std::fs::write(&socket, "not a socket").map_err(Failure::file("writing", &socket))?;
        near.start(&[])?;
        process::until("the complaint", SOON, || Ok(near.log().contains("records.metrics_listen = ")))?;
        assert_eq!(std::fs::read_to_string(&socket).expect("there"), "not a socket");
        near.ensure_alive()
    });
}

#[test]
fn a_file_for_node_exporter_is_written_whole() {
    perform(&["a"], |stage| {
        let near = stage.guard("a", Plan::default())?;
        let file = stage.file("ringwall.prom");
        let words = ["metrics", "--out", file.to_str().expect("a name")];
        process::must(near.command(&words))?;
        let text = std::fs::read_to_string(&file).expect("written");
        assert!(text.contains("ringwall_up{interface=\"e0\"} 1\n") && !text.contains("# EOF"), "{text}");
        Ok(())
    });
}
