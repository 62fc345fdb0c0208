//! The console at real daemons under an attack: over plain HTTP, in Chromium, and in lynx.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use ringwall_lab::failure::Failure;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{LanPlan, Namespace, Running, process};
use rustix::process::Signal;

use crate::attacks::spoof;
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform, perform_bare, program};

const ADDRESS: &str = "127.0.0.1:9479";
const PAGES: [&str; 9] =
    ["/", "/peers", "/map", "/attacks", "/drops", "/history", "/certificates", "/gateway", "/about"];
/// Hosts beside these, so that a page has something to show: twelve on the LAN.
const OTHERS: [&str; 9] = ["c", "d", "e", "f", "g", "h", "i", "j", "l"];
/// Names the file of axe-core (npm package axe-core, `axe.min.js`).
const AXE_VARIABLE: &str = "RINGWALL_AXE";
/// Where pictures of the pages go, if anywhere.
const PICTURES_VARIABLE: &str = "RINGWALL_PICTURES";
/// Signs in with the link, then has axe-core judge each page in light and dark colours, with the
/// keyboard alone to the first link, and says when the first paint was.
const BROWSER: &str = include_str!("../../browser/console.py");

/// A console beside the daemon of one host.
pub(crate) struct Console<'a> {
    near: &'a Guarded,
    process: Running,
}

impl<'a> Console<'a> {
    fn start(near: &'a Guarded, history: &Path, log: &Path) -> Result<Console<'a>, Failure> {
        Console::start_with(near, &[], history, log)
    }

    /// With these words more.
    pub(crate) fn start_with(
        near: &'a Guarded,
        further: &[&str],
        history: &Path,
        log: &Path,
    ) -> Result<Console<'a>, Failure> {
        let mut command = near.host.namespace.command(&program().to_string_lossy());
        command.args(["console", "--listen", ADDRESS, "--run-dir"]).arg(near.directory.join("run"));
        command.arg("--history").arg(history).args(further);
        let mut process = Running::start(command, log)?;
        process.await_output("the console is at", SOON)?;
        Ok(Console { near, process })
    }

    /// The process that it began as.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn stop(self) {
        self.process.stop(Signal::TERM);
    }

    /// What `ringwall console login` prints.
    fn link(&self) -> Result<String, Failure> {
        let mut command = self.near.host.namespace.command(&program().to_string_lossy());
        command.args(["console", "login", "--run-dir"]).arg(self.near.directory.join("run"));
        Ok(process::must(command)?.trim().to_owned())
    }

    fn token(&self) -> Result<String, Failure> {
        let link = self.link()?;
        let (begin, token) = link.split_once("token=").expect("a link with a token");
        assert_eq!((begin, token.len()), ("http://127.0.0.1:9479/sign-in?", 43), "{link}");
        Ok(token.to_owned())
    }

    /// The head and the body of the answer to these lines.
    fn ask(&self, lines: &str, body: &str) -> Result<(String, String), Failure> {
        let request = format!("{lines}\r\nHost: {ADDRESS}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        self.exchange(&request)
    }

    fn exchange(&self, request: &str) -> Result<(String, String), Failure> {
        let ask = || {
            let mut stream = TcpStream::connect(ADDRESS)?;
            stream.set_read_timeout(Some(SOON))?;
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let namespace: &Namespace = &self.near.host.namespace;
        let answer = namespace.enter(|| ask().map_err(Failure::io("asking the console")))?;
        let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
        Ok((head.to_owned(), body.to_owned()))
    }

    /// Signs in; the cookie.
    pub(crate) fn sign_in(&self) -> Result<String, Failure> {
        let (head, _) = self.ask("POST /sign-in HTTP/1.1", &format!("token={}", self.token()?))?;
        assert!(head.starts_with("HTTP/1.1 303 "), "{head}");
        let cookie = head.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).expect("a cookie");
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        Ok(cookie.split(';').next().expect("a value").to_owned())
    }

    pub(crate) fn page(&self, path: &str, cookie: &str) -> Result<String, Failure> {
        let (head, body) = self.ask(&format!("GET {path} HTTP/1.1\r\nCookie: {cookie}"), "")?;
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        for field in ["Cache-Control: no-store", "X-Content-Type-Options: nosniff", "frame-ancestors 'none'"] {
            assert!(head.contains(field), "{path}: {field}: {head}");
        }
        assert!(!body.contains(" style=") && !body.contains("<style"), "{path}");
        Ok(body)
    }
}

/// Guards `a` and `b`, and has `x` forge ARP between them.
fn attacked(stage: &Stage) -> Result<(Guarded, Guarded, PathBuf), Failure> {
    let [a, b, x] = ["a", "b", "x"].map(|name| stage.host(name));
    let history = stage.file("history.db");
    let lines = format!("[records]\nhistory_file = \"{}\"\n", history.display());
    let near = stage.guard("a", Plan::way("namespace").tail(&lines))?;
    let far = stage.guard("b", Plan::way("namespace"))?;
    reach(&a.namespace, b.ip, SOON)?;
    spoof(x, a, b)?;
    near.await_event("arp-spoofing", SOON)?;
    Ok((near, far, history))
}

#[test]
fn a_person_signs_in_once_reads_every_page_and_orders_nothing() {
    perform(&["a", "b", "x"], |stage| -> Outcome {
        let (mut near, _far, history) = attacked(stage)?;
        let [b, x] = ["b", "x"].map(|name| stage.host(name));
        let console = Console::start(&near, &history, &stage.file("console.log"))?;

        let (head, _) = console.ask("GET / HTTP/1.1", "")?;
        assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
        let token = format!("token={}", console.token()?);
        // Looking at a link, as a mail filter does, does not use it up.
        console.page(&format!("/sign-in?{token}"), "a=b")?;
        let (head, _) = console.ask("POST /sign-in HTTP/1.1\r\nOrigin: http://attacker.example", &token)?;
        assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
        let (head, _) = console.ask("POST /sign-in HTTP/1.1", &token)?;
        assert!(head.starts_with("HTTP/1.1 303 "), "{head}");
        let (head, _) = console.ask("POST /sign-in HTTP/1.1", &token)?;
        assert!(head.starts_with("HTTP/1.1 403 ") && !head.contains("Set-Cookie"), "once: {head}");

        let cookie = console.sign_in()?;
        for path in PAGES {
            let page = console.page(path, &cookie)?;
            assert!(page.contains("<h1>") && page.contains("aria-current=\"page\"") || path == "/gateway", "{page}");
        }
        let first = console.page("/", &cookie)?;
        assert!(first.contains("ATTACKED (arp-spoofing)") && first.contains(&x.mac.to_string()), "{first}");
        assert!(first.contains("What to do:</strong> Nobody here believed it."), "{first}");
        let peers = console.page("/peers?group=sealed&q=b", &cookie)?;
        assert!(peers.contains("1 found") && peers.contains(&b.mac.to_string()), "{peers}");
        assert!(console.page("/peers?q=nobody-has-this", &cookie)?.contains("0 found"));
        let host = console.page(&format!("/host?who={}", b.mac), &cookie)?;
        assert!(host.contains("certificate ends") && host.contains("<h1>Host b</h1>"), "{host}");
        process::until("the history has it", SOON, || {
            let page = console.page("/attacks?kind=arp-spoofing", &cookie)?;
            Ok(page.contains("class=\"bar\"") && page.contains("goes on"))
        })?;
        assert!(console.page("/drops", &cookie)?.contains("plain-arp"));
        assert!(console.page("/certificates", &cookie)?.contains("authority of"));

        for method in ["PUT", "DELETE", "PATCH", "POST", "HEAD", "OPTIONS", "TRACE", "CONNECT"] {
            let (head, _) = console.ask(&format!("{method} / HTTP/1.1\r\nCookie: {cookie}"), "")?;
            assert!(head.starts_with("HTTP/1.1 405 "), "{method}: {head}");
        }
        let rebound = format!("GET / HTTP/1.1\r\nHost: attacker.example\r\nCookie: {cookie}\r\n\r\n");
        let (head, _) = console.exchange(&rebound)?;
        assert!(head.starts_with("HTTP/1.1 421 "), "{head}");
        let (head, _) = console.ask(&format!("POST /sign-out HTTP/1.1\r\nCookie: {cookie}"), "")?;
        assert!(head.starts_with("HTTP/1.1 303 "), "{head}");
        let (head, _) = console.ask(&format!("GET / HTTP/1.1\r\nCookie: {cookie}"), "")?;
        assert!(head.starts_with("HTTP/1.1 401 "), "signed out: {head}");

        // Both processes have nothing that they do not need.
        let tree = process::must({
            let mut command = std::process::Command::new("pgrep");
            command.args(["-P", &console.process.id().to_string()]);
            command
        })?;
        let door = tree.trim();
        let state = std::fs::read_to_string(format!("/proc/{door}/status")).expect("the door runs");
        assert!(state.contains("CapEff:\t0000000000000000") && !state.contains("\nUid:\t0\t"), "{state}");
        let state = std::fs::read_to_string(format!("/proc/{}/status", console.process.id())).expect("it runs");
        assert!(state.contains("CapEff:\t0000000000000000"), "{state}");

        let cookie = console.sign_in()?;
        console.process.stop(Signal::TERM);
        let words = format!("/proc/{door}/cmdline");
        process::until("the door is gone", SOON, || Ok(std::fs::read(&words).unwrap_or_default().is_empty()))?;
        let console = Console::start(&near, &history, &stage.file("console.log"))?;
        let (head, _) = console.ask(&format!("GET / HTTP/1.1\r\nCookie: {cookie}"), "")?;
        assert!(head.starts_with("HTTP/1.1 401 "), "no session outlives it: {head}");
        let cookie = console.sign_in()?;
        let process = console.process;
        near.stop(Signal::TERM);
        let console = Console { near: &near, process };
        process::until("nobody answers", SOON, || Ok(!console.page("/", &cookie)?.contains("ATTACKED")))?;
        let past = console.page("/attacks", &cookie)?;
        assert!(past.contains("class=\"bar\"") && past.contains("Nobody attacks now."), "the history stays: {past}");
        console.process.stop(Signal::TERM);
        Ok(())
    });
}

#[test]
fn beyond_this_machine_it_does_not_listen() {
    perform(&["a"], |stage| -> Outcome {
        let host = stage.host("a");
        for address in ["0.0.0.0:9479", "192.0.2.1:9479", "[::]:9479", "localhost:9479", "console.sock"] {
            let mut command = host.namespace.command(&program().to_string_lossy());
            command.args(["console", "--listen", address, "--run-dir"]).arg(stage.file("run"));
            let answer = process::ask(command, &[])?;
            let is_refused = !answer.status.success() && answer.stderr.contains("no port of this machine alone");
            let is_helped = answer.stderr.contains("no TLS") && answer.stderr.contains("--identity");
            assert!(is_refused && is_helped, "{address}: {}", answer.stderr);
        }
        Ok(())
    });
}

#[test]
fn pages_are_for_everybody_in_a_browser_and_in_lynx() {
    let name = "pages_are_for_everybody_in_a_browser_and_in_lynx";
    let Some(axe) = std::env::var_os(AXE_VARIABLE).map(PathBuf::from) else {
        eprintln!("SKIPPED {name}: needs axe-core, the file axe.min.js of npm named by {AXE_VARIABLE}");
        return;
    };
    perform_bare(name, &["chromium", "chromedriver", "lynx", "python3"], |run| {
        let plan = LanPlan { hosts: ["a", "b", "x"].into_iter().chain(OTHERS).collect(), ..LanPlan::default() };
        let stage = Stage::set(run, &plan)?;
        let (near, _far, history) = attacked(&stage)?;
        let others = OTHERS.map(|name| stage.guard(name, Plan::way("namespace")));
        let _others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
        OTHERS.iter().try_for_each(|name| reach(&near.host.namespace, stage.host(name).ip, SOON).map(drop))?;
        let console = Console::start(&near, &history, &stage.file("console.log"))?;
        let cookie = console.sign_in()?;
        process::until("the history has it", SOON, || {
            Ok(console.page("/attacks", &cookie)?.contains("class=\"bar\""))
        })?;

        let mut lynx = std::process::Command::new("lynx");
        lynx.args(["-dump", "-stdin", "-force_html", "-width=100", "-nolist"]);
        let text = process::must_with(lynx, console.page("/", &cookie)?.as_bytes())?;
        assert!(text.contains("WARNING e0") && text.contains("What to do:"), "{text}");

        let mut command = near.host.namespace.command("python3");
        let pictures = std::env::var_os(PICTURES_VARIABLE).unwrap_or_default();
        command.args(["-c", BROWSER, &console.link()?]).arg(&axe).arg(&pictures).args(PAGES);
        command.env("HOME", stage.file("browser"));
        let said = process::ask(command, &[])?;
        println!("{}", said.stdout);
        assert!(said.status.success(), "{}\n{}", said.stdout, said.stderr);
        assert_eq!(said.stdout.lines().filter(|line| line.contains(" 0 violations")).count(), 2 * PAGES.len());
        console.process.stop(Signal::TERM);
        Ok(())
    });
}
