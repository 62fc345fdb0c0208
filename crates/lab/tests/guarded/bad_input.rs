//! Whatever is wrong with what an operator gives, the program says it in one line that names the file or interface, the
//! key and the remedy, ends with an error, and leaves everything as it was.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use identity::certificate::Role;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::process::{self, Answer};

use crate::stage::{Guarded, Outcome, Plan, Site, Stage, perform, program};
use crate::takeover::{assert_nothing_left, assert_same, furnish, picture};

/// The answer is one line with all of `words` in it, and an error.
pub fn assert_one_line(answer: &Answer, words: &[&str]) {
    assert!(!answer.status.success(), "it succeeded: {}", answer.stdout);
    let text = answer.stderr.trim_end();
    assert!(!text.contains('\n') && text.starts_with("ringwall: "), "not one line: {text}");
    for word in words {
        assert!(text.contains(word), "\"{word}\" is not in: {text}");
    }
}

/// Runs the daemon, which must refuse with all of `words`, and checks that nothing is changed.
pub fn assert_refused(guarded: &Guarded, words: &[&str]) -> Outcome {
    let before = picture(&guarded.host)?;
    let answer = guarded.ask(&[guarded.task, "run"])?;
    assert_one_line(&answer, words);
    assert_same(&before, &picture(&guarded.host)?, &answer.stderr);
    assert_nothing_left(guarded)
}

/// The daemon with this identity must refuse with all of `words` and the name of the file.
fn assert_identity_refused(stage: &Stage, identity: PathBuf, words: &[&str]) -> Outcome {
    let guarded = stage.prepare("a", Plan::default().identity(identity.clone()))?;
    let mut words = words.to_vec();
    let file = identity.display().to_string();
    words.push(&file);
    assert_refused(&guarded, &words)
}

pub fn write(file: &Path, text: &str) -> PathBuf {
    std::fs::write(file, text).expect("a writable directory");
    file.to_owned()
}

pub fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("a readable file")
}

/// The PEM blocks of an identity file.
pub fn blocks(file: &Path) -> Vec<String> {
    let text = read(file);
    text.split("-----BEGIN ").skip(1).map(|block| format!("-----BEGIN {block}")).collect()
}

pub fn block<'a>(blocks: &'a [String], label: &str, number: usize) -> &'a str {
    blocks.iter().filter(|block| block.contains(&format!("BEGIN {label}-"))).nth(number).expect("it has this block")
}

fn identity_of(stage: &Stage, name: &str) -> Result<PathBuf, Failure> {
    let host = stage.host("a");
    stage.site.issue(name, &format!("--mac {} --ip {}", host.mac, host.ip))
}

#[test]
fn an_interface_that_is_not_there() {
    perform(&["a"], |stage| {
        let guarded = stage.prepare("a", Plan::default())?;
        let text = read(&guarded.config).replace("interface = \"e0\"", "interface = \"nope0\"");
        write(&guarded.config, &text);
        assert_refused(&guarded, &["nope0", "no such interface", "ip link"])
    });
}

#[test]
fn an_interface_that_cannot_be_taken() {
    perform(&["a"], |stage| {
        furnish(stage.host("a"))?;
        let guarded = stage.prepare("a", Plan::default())?;
        let (text, network) = (read(&guarded.config), &guarded.host.namespace);
        write(&guarded.config, &text.replace("interface = \"e0\"", "interface = \"lo\""));
        assert_refused(&guarded, &["lo", "Ethernet"])?;
        write(&guarded.config, &text);
        network.ip("link add br9 type bridge")?;
        network.ip("link set e0 master br9")?;
        assert_refused(&guarded, &["e0", "br9", "nomaster"])?;
        network.ip("link set e0 nomaster")?;
        network.ip("link set e0 mtu 600")?;
        assert_refused(&guarded, &["e0", "600", "raise"])
    });
}

#[test]
fn an_output_that_nobody_reads_or_that_is_full() {
    perform(&["a"], |stage| {
        let guarded = stage.prepare("a", Plan::default())?;
        let show = || {
            let mut command = Command::new(program());
            command.args(["config", "show", "--config"]).arg(&guarded.config).stderr(Stdio::piped());
            command
        };
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let unread = show().stdout(writer).output().expect("it runs");
        assert!(unread.status.success() && unread.stderr.is_empty(), "{unread:?}");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let full = show().stdout(full).output().expect("it runs");
        assert_eq!(full.status.code(), Some(1));
        assert!(
            String::from_utf8_lossy(&full.stderr).starts_with("ringwall: the output cannot be written"),
            "{full:?}"
        );
        Ok(())
    });
}

#[test]
fn a_configuration_with_a_mistake() {
    perform(&["a"], |stage| {
        let guarded = stage.prepare("a", Plan::default())?;
        let text = read(&guarded.config);
        let file = guarded.config.display().to_string();
        for (from, to, words) in [
            ("run_dir", "rundir", ["did you mean \"run_dir\"", "ringwall.toml(5)"]),
            ("[cll]\n", "[cll]\nconfidentialty = true\n", ["did you mean \"confidentiality\"", "ringwall.toml(5)"]),
            ("[cll]\n", "[cll]\nsend_suite = \"rot13\"\n", ["cll.send_suite", "aes-256-gcm"]),
            ("[cll]\n", "[cll]\nlifetime_s = 1\n", ["cll.lifetime_s", "at least"]),
            ("[cll]\n", "[cll]\nconfidentiality = \"yes\"\n", ["expected a boolean", "ringwall.toml(5)"]),
            ("[cll]\n", "takeover = \"magic\"\n[cll]\n", ["magic", "namespace"]),
            ("[cll]\n", "mode = \"null\"\n[cll]\n", ["mode = \"null\"", "profile"]),
            ("interface = \"e0\"", "interface = \"a/b\"", ["host.interface", "ip link"]),
            ("[cll]\n", "[cll\n", ["unclosed table", "ringwall.toml(5)"]),
        ] {
            let mistaken = text.replace(from, to);
            write(&guarded.config, &mistaken);
            let words = [words[0], words[1], &file];
            assert_refused(&guarded, &words)?;
            for command in [["config", "check"], ["config", "show"], ["host", "release"], ["host", "confirm"]] {
                assert_one_line(&guarded.ask(&command)?, &words);
            }
        }
        Ok(())
    });
}

#[test]
fn a_file_that_is_missing() {
    perform(&["a"], |stage| {
        let guarded = stage.prepare("a", Plan::default())?;
        let missing = stage.file("missing.pem");
        let file = guarded.config.display().to_string();
        assert_identity_refused(stage, missing, &["No such file", "host.identity"])?;
        std::fs::remove_file(&guarded.config).expect("it is there");
        assert_refused(&guarded, &[&file, "No such file", "--config"])?;
        assert_one_line(&guarded.ask(&["status"])?, &[&file, "--config"]);
        write(&guarded.config, "");
        Ok(())
    });
}

#[test]
fn an_identity_that_is_none() {
    perform(&["a"], |stage| {
        let good = identity_of(stage, "a")?;
        let blocks = blocks(&good);
        let cut = &read(&good)[..400];
        for (text, words) in [
            ("", ["no PEM block", "host.identity"]),
            ("-----BEGIN CERTIFICATE-----\n???\n-----END CERTIFICATE-----\n", ["PEM", "host.identity"]),
            (cut, ["cut short", "host.identity"]),
            (block(&blocks, "CERTIFICATE", 0), ["missing", "host.identity"]),
        ] {
            let file = write(&stage.file("bad.pem"), text);
            assert_identity_refused(stage, file, &words)?;
        }
        Ok(())
    });
}

#[test]
fn the_key_of_another_host() {
    perform(&["a"], |stage| {
        let (own, other) = (identity_of(stage, "a")?, identity_of(stage, "other")?);
        let (own, other) = (blocks(&own), blocks(&other));
        let mixed = own.concat().replace(block(&own, "PRIVATE KEY", 0), block(&other, "PRIVATE KEY", 0));
        let file = write(&stage.file("mixed.pem"), &mixed);
        assert_identity_refused(stage, file, &["PRIVATE KEY", "host.identity"])
    });
}

#[test]
fn the_certificate_of_another_site() {
    perform(&["a"], |stage| {
        let host = stage.host("a");
        let foreign = Site::found(stage.run, "foreign")?;
        let theirs = blocks(&foreign.issue("a", &format!("--mac {} --ip {}", host.mac, host.ip))?);
        let ours = blocks(&identity_of(stage, "a")?);
        // The host's certificate comes before the authority's.
        let mixed = theirs.concat().replace(block(&theirs, "CERTIFICATE", 1), block(&ours, "CERTIFICATE", 1));
        let file = write(&stage.file("mixed.pem"), &mixed);
        assert_identity_refused(stage, file, &["authority", "host.identity"])
    });
}

#[test]
fn a_certificate_that_is_over() {
    perform(&["a"], |stage| {
        let short = stage.site.issue_for(stage.host("a"), Role::Host, Duration::from_secs(1))?;
        process::pause(Duration::from_millis(2200))?;
        assert_identity_refused(stage, short, &["expired", "site issue"])
    });
}

#[test]
fn a_certificate_for_another_card() {
    perform(&["a"], |stage| {
        furnish(stage.host("a"))?;
        let other = stage.site.issue("a", "--mac 02:00:00:00:00:42 --ip 10.77.0.1")?;
        let mac = stage.host("a").mac.to_string();
        assert_identity_refused(stage, other, &["02:00:00:00:00:42", &mac, "e0", "issue"])
    });
}

#[test]
fn directories_that_cannot_be_used() {
    perform(&["a"], |stage| {
        furnish(stage.host("a"))?;
        let guarded = stage.prepare("a", Plan::default())?;
        let text = read(&guarded.config);
        let blocking = write(&stage.file("blocking"), "a file");
        let blocked = blocking.join("below").display().to_string();
        for key in ["run", "state"] {
            let own = guarded.directory.join(key).display().to_string();
            write(&guarded.config, &text.replace(&format!("\"{own}\""), &format!("\"{blocked}\"")));
            assert_refused(&guarded, &[&blocked, "Not a directory"])?;
        }
        write(&guarded.config, &text);
        Ok(())
    });
}

#[test]
fn a_socket_that_cannot_be_made_undoes_the_take_over() {
    perform(&["a"], |stage| {
        furnish(stage.host("a"))?;
        let guarded = stage.prepare("a", Plan::default())?;
        // A Unix socket's name has at most 107 bytes.
        let long = guarded.directory.join("r".repeat(120));
        let own = guarded.directory.join("run");
        let text = read(&guarded.config);
        write(&guarded.config, &text.replace(&own.display().to_string(), &long.display().to_string()));
        let before = picture(&guarded.host)?;
        let answer = guarded.ask(&["host", "run"])?;
        assert!(!answer.status.success());
        let said: Vec<_> = answer.stderr.lines().filter(|line| line.starts_with("ringwall: ")).collect();
        assert!(said.len() == 1 && said[0].contains(&long.display().to_string()), "{}", answer.stderr);
        assert_same(&before, &picture(&guarded.host)?, "a failed start");
        assert_eq!(std::fs::read_dir(&long).into_iter().flatten().count(), 0);
        assert_nothing_left(&guarded)
    });
}

#[test]
fn a_state_file_that_is_damaged() {
    perform(&["a"], |stage| {
        let guarded = stage.prepare("a", Plan::default())?;
        let state = guarded.directory.join("state/e0.takeover.json");
        std::fs::create_dir_all(state.parent().expect("a directory")).expect("a writable directory");
        write(&state, "{\"version\": 1");
        let before = picture(&guarded.host)?;
        for command in [["host", "run"], ["host", "release"], ["host", "confirm"]] {
            assert_one_line(&guarded.ask(&command)?, &[&state.display().to_string(), "remove it"]);
        }
        assert_same(&before, &picture(&guarded.host)?, "a damaged state file");
        std::fs::remove_file(&state).expect("it is there");
        assert_nothing_left(&guarded)
    });
}

#[test]
fn no_daemon_to_ask() {
    perform(&["a"], |stage| {
        let guarded = stage.prepare("a", Plan::default())?;
        let socket = guarded.directory.join("run/e0.sock").display().to_string();
        for question in ["status", "peers", "events", "explain", "metrics"] {
            assert_one_line(&guarded.ask(&[question])?, &[&socket, "ringwall host run"]);
        }
        assert_one_line(&guarded.ask(&["explain", "nonsense"])?, &["nonsense", "replayed"]);
        assert_one_line(&guarded.ask(&["host", "confirm"])?, &["e0", "not taken"]);
        Ok(())
    });
}

#[test]
fn a_user_without_privileges() {
    perform(&["a"], |stage| {
        let guarded = stage.guard("a", Plan::default())?;
        let unprivileged = |words: &[&str]| {
            let mut command = guarded.host.namespace.command("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
            command.arg(program()).args(words).arg("--config").arg(&guarded.config);
            process::ask(command, &[])
        };
        let socket = guarded.directory.join("run/e0.sock").display().to_string();
        assert_one_line(&unprivileged(&["status"])?, &[&socket, "Permission denied", "root"]);
        assert_one_line(&unprivileged(&["host", "run"])?, &["Permission denied"]);
        assert_eq!(guarded.status()?["state"], "running");
        Ok(())
    });
}
