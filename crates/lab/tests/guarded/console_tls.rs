//! The console beyond its machine: TLS with a certificate of the site, to a real client; and the
//! whole LAN, as a real service of the site tells.

use std::io::Read as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process::{self, Answer};
use ringwall_lab::net::{Host, LanPlan, Running};

use crate::stage::{Outcome, SOON, Stage, perform_bare, program};

const PORT: u16 = 9443;
/// With whom TLS does not stand yet, of one address.
const HANDSHAKES: usize = 8;
/// The longest of them, and a part.
const HANDSHAKE_TIME: Duration = Duration::from_secs(6);

/// A console of host `a`, which no daemon guards.
fn start(stage: &Stage, identity: &Path) -> Result<Running, Failure> {
    let host = stage.host("a");
    let mut command = host.namespace.command(&program().to_string_lossy());
    command.args(["console", "--listen", &format!("{}:{PORT}", host.ip), "--identity"]).arg(identity);
    command.arg("--run-dir").arg(stage.file("run")).arg("--history").arg(stage.file("history.db"));
    let mut running = Running::start(command, &stage.file("console.log"))?;
    running.await_output("the console is at", SOON)?;
    Ok(running)
}

/// What curl gets from host `b`.
fn curl(stage: &Stage, words: &[&str]) -> Result<Answer, Failure> {
    let mut command = stage.host("b").namespace.command("curl");
    command.args(["--silent", "--show-error", "--include", "--max-time", "20"]).args(words);
    process::ask(command, &[])
}

/// The same of who knows the site's authority.
fn browse(stage: &Stage, words: &[&str]) -> Result<String, Failure> {
    let authority = stage.site.directory().join("ca.crt.pem");
    let authority = authority.to_string_lossy();
    let answer = curl(stage, &[&["--cacert", &*authority][..], words].concat())?;
    assert!(answer.status.success(), "{words:?}: {answer:?}");
    Ok(answer.stdout)
}

fn link(stage: &Stage) -> Result<String, Failure> {
    let mut command = stage.host("a").namespace.command(&program().to_string_lossy());
    command.args(["console", "login", "--run-dir"]).arg(stage.file("run"));
    Ok(process::must(command)?.trim().to_owned())
}

/// What openssl says of the certificate at the head of this file.
fn fingerprint(identity: &Path) -> Result<String, Failure> {
    let mut command = std::process::Command::new("openssl");
    command.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(identity);
    let said = process::must(command)?;
    Ok(said.trim().split_once('=').expect("a fingerprint").1.to_owned())
}

fn identity_of(stage: &Stage, host: &Host) -> Result<PathBuf, Failure> {
    stage.site.issue(host.name, &format!("--mac {} --ip {}", host.mac, host.ip))
}

fn perform_with_client(name: &str, test: impl FnOnce(&Stage) -> Outcome) {
    perform_bare(name, &["curl", "openssl"], |run| {
        let stage = Stage::set(run, &LanPlan { hosts: vec!["a", "b"], ..LanPlan::default() })?;
        test(&stage)
    });
}

#[test]
fn beyond_its_machine_it_is_shown_through_tls_with_a_certificate_of_the_site() {
    perform_with_client("beyond_its_machine_it_is_shown_through_tls_with_a_certificate_of_the_site", |stage| {
        let a = stage.host("a");
        let identity = identity_of(stage, a)?;
        let _console = start(stage, &identity)?;
        let log = std::fs::read_to_string(stage.file("console.log")).expect("its log");
        assert!(log.contains(&format!("SHA-256 {}", fingerprint(&identity)?)), "{log}");
        let at = format!("https://{}:{PORT}", a.ip);

        let page = browse(stage, &[&at])?;
        assert!(page.starts_with("HTTP/1.1 401 "), "{page}");
        assert!(page.contains("\nStrict-Transport-Security: max-age=31536000\r\n"), "{page}");
        let link = link(stage)?;
        let (begin, token) = link.split_once("token=").expect("a link with a token");
        assert_eq!(begin, format!("{at}/sign-in?"));
        assert!(browse(stage, &[&link])?.contains("Sign in"), "{link}");
        let origin = format!("Origin: http://{}:{PORT}", a.ip);
        let form = format!("token={token}");
        let signed_in = format!("{at}/sign-in");
        let page = browse(stage, &["--header", &origin, "--data", &form, &signed_in])?;
        assert!(page.starts_with("HTTP/1.1 403 "), "a page in clear is that of another: {page}");
        let page = browse(stage, &["--header", &origin.replace("http", "https"), "--data", &form, &signed_in])?;
        assert!(page.starts_with("HTTP/1.1 303 "), "{page}");
        let cookie = page.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).expect("a cookie");
        let (value, terms) = cookie.split_once("; ").expect("terms");
        assert!(value.starts_with("__Host-ringwall-console="), "{cookie}");
        assert_eq!(terms, "Path=/; Secure; HttpOnly; SameSite=Strict");
        let page = browse(stage, &["--cookie", value, &at])?;
        assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("<h1>Overview</h1>"), "{page}");
        let page = browse(stage, &["--cookie", value, "--header", "Host: attacker.example", &at])?;
        assert!(page.starts_with("HTTP/1.1 421 "), "{page}");
        nothing_else_is_spoken(stage, &at, value)
    });
}

/// Neither clear text nor an older TLS, and who begins and goes no further holds nobody off.
fn nothing_else_is_spoken(stage: &Stage, at: &str, cookie: &str) -> Outcome {
    let in_clear = curl(stage, &["--cookie", cookie, &at.replace("https", "http")])?.stdout;
    assert!(in_clear.starts_with("HTTP/1.1 400 ") && in_clear.contains("https://"), "{in_clear}");
    assert!(!in_clear.contains("Set-Cookie") && !in_clear.contains("Location") && !in_clear.contains("<h1>"));
    let authority = stage.site.directory().join("ca.crt.pem");
    let authority = authority.to_string_lossy();
    let old = curl(stage, &["--cacert", &authority, "--tls-max", "1.2", at])?;
    assert!(!old.status.success() && old.stdout.is_empty(), "{old:?}");
    let strange = curl(stage, &[at])?;
    assert!(strange.stderr.contains("certificate"), "who does not know the authority: {strange:?}");

    let address = at.trim_start_matches("https://").to_owned();
    stage.host("b").namespace.enter(|| {
        let connect = || TcpStream::connect(&address).map_err(Failure::io("connecting"));
        let mut held = (0..HANDSHAKES).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
        let mut one_more = connect()?;
        one_more.set_read_timeout(Some(SOON)).map_err(Failure::io("waiting"))?;
        assert!(matches!(one_more.read(&mut [0]), Ok(0) | Err(_)), "it has its part and is not heard");
        for silent in &mut held {
            silent.set_read_timeout(Some(HANDSHAKE_TIME)).map_err(Failure::io("waiting"))?;
            assert_eq!(silent.read(&mut [0]).map_err(|error| error.kind()), Ok(0), "whoever says nothing is let go");
        }
        Ok(())
    })?;
    let page = browse(stage, &["--cookie", cookie, &format!("{at}/about")])?;
    for word in ["in-clear", "no-tls", "too-many", "gone"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    Ok(())
}

#[test]
fn a_certificate_for_another_address_and_what_is_none_are_refused_with_what_to_do() {
    perform_with_client("a_certificate_for_another_address_and_what_is_none_are_refused", |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let identity = identity_of(stage, a)?;
        let refused = |listen: &str, identity: &Path, wanted: &str| -> Outcome {
            let mut command = a.namespace.command(&program().to_string_lossy());
            command.args(["console", "--listen", listen, "--identity"]).arg(identity);
            let answer = process::ask(command, &[])?;
            assert!(!answer.status.success() && answer.stderr.contains(wanted), "{listen}: {answer:?}");
            assert_eq!(answer.stderr.trim().lines().count(), 1, "{answer:?}");
            Ok(())
        };
        refused(&format!("{}:{PORT}", b.ip), &identity, &format!("with --listen ({})", a.ip))?;
        refused("/run/console", &identity, "a socket needs no --identity")?;
        refused(&format!("{}:{PORT}", a.ip), &stage.site.directory().join("ca.crt.pem"), "certificate, chain and key")
    });
}
