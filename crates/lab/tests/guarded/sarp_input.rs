//! Mistakes around signed ARP: each is one line with file, reason and remedy, and the interface stays as it was.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use identity::certificate::Role;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;

use crate::bad_input::{assert_one_line, assert_refused, blocks, read, write};
use crate::stage::{Guarded, Outcome, Plan, Site, Stage, perform};
use crate::takeover::{assert_nothing_left, assert_same, furnish, picture};

/// The distributor `k` and host `a` are issued; returns the identity of `a`.
fn issue(stage: &Stage) -> Result<PathBuf, Failure> {
    let (k, a) = (stage.host("k"), stage.host("a"));
    stage.site.issue("k", &format!("--mac {} --ip {} --role akd", k.mac, k.ip))?;
    stage.site.issue("a", &format!("--mac {} --ip {}", a.mac, a.ip))
}

/// The daemon on host `name` must refuse this plan with all of `words` and the name of `file`.
fn assert_plan_refused(stage: &Stage, name: &str, plan: Plan, file: &Path, words: &[&str]) -> Outcome {
    let guarded = stage.prepare(name, plan)?;
    let file = file.display().to_string();
    let words: Vec<&str> = words.iter().copied().chain([file.as_str()]).collect();
    assert_refused(&guarded, &words)
}

/// The identity without its blocks whose label has `word`.
fn without(stage: &Stage, identity: &Path, word: &str) -> PathBuf {
    let mut kept = blocks(identity);
    let count = kept.len();
    kept.retain(|block| !block.lines().next().is_some_and(|line| line.contains(word)));
    assert!(kept.len() < count, "{word} is not in {}", identity.display());
    write(&stage.file("without.pem"), &kept.concat())
}

#[test]
fn an_identity_that_does_not_serve_for_signed_arp() {
    perform(&["k", "a"], |stage| {
        furnish(stage.host("a"))?;
        let good = issue(stage)?;
        let poor = without(stage, &good, "REQUEST KEY");
        let words = ["RINGWALL REQUEST KEY", "ringwall site issue"];
        assert_plan_refused(stage, "a", Plan::sarp().identity(poor.clone()), &poor, &words)?;
        if process::installed("openssl") {
            let rsa = enrol_with_rsa(stage)?;
            assert_plan_refused(stage, "a", Plan::sarp().identity(rsa.clone()), &rsa, &["RSA", "Ed25519"])?;
        } else {
            eprintln!("SKIPPED the RSA key of an_identity_that_does_not_serve_for_signed_arp: needs openssl");
        }
        let a = stage.host("a");
        let nobody = stage.site.issue("nobody", &format!("--mac {}", a.mac))?;
        assert_plan_refused(stage, "a", Plan::sarp().identity(nobody.clone()), &nobody, &["no IP address", "issue"])
    });
}

/// What `openssl req` needs to ask for an address and, as RFC 9549 has it, a hardware address.
const RSA_REQUEST: &str = "[req]\nprompt = no\ndistinguished_name = subject\nreq_extensions = wanted\n\
    [subject]\nCN = rsa\n[wanted]\nsubjectAltName = @names\n\
    [names]\nIP.1 = ADDRESS\notherName.1 = 1.3.6.1.5.5.7.8.12;FORMAT:HEX,OCT:MAC\n";

/// A host's identity with an RSA key of its own, which mode `cll` takes. This program makes none.
fn enrol_with_rsa(stage: &Stage) -> Result<PathBuf, Failure> {
    let [key, request, bundle, identity] = ["rsa.key", "rsa.csr", "rsa.bundle", "rsa.pem"].map(|name| stage.file(name));
    let a = stage.host("a");
    let text = RSA_REQUEST.replace("ADDRESS", &a.ip.to_string()).replace("MAC", &a.mac.to_string().replace(':', ""));
    let wishes = write(&stage.file("rsa.cnf"), &text);
    let mut make = Command::new("openssl");
    make.args(["req", "-new", "-newkey", "rsa:2048", "-noenc", "-sha256", "-config"]).arg(&wishes);
    make.arg("-keyout").arg(&key).arg("-out").arg(&request);
    process::must(make)?;
    let mut grant = Command::new(crate::stage::program());
    grant.args(["site", "issue", "--dir"]).arg(stage.site.directory()).arg("--request").arg(&request);
    grant.args(["--allow-shared-addresses", "--out"]).arg(&bundle);
    process::must(grant)?;
    let mut install = Command::new(crate::stage::program());
    install.args(["host", "enroll", "install", "--key"]).arg(&key).arg("--bundle").arg(&bundle);
    install.arg("--out").arg(&identity);
    process::must(install)?;
    Ok(identity)
}

#[test]
fn a_site_without_a_distributor() {
    perform(&["a"], |stage| {
        furnish(stage.host("a"))?;
        let guarded = stage.prepare("a", Plan::sarp())?;
        assert_refused(&guarded, &["site.a.pem", "no key distributor", "--role akd", "sarp.distributors"])
    });
}

#[test]
fn a_distributor_whose_certificate_is_over() {
    perform(&["k", "a"], |stage| {
        furnish(stage.host("a"))?;
        let k = stage.host("k");
        let short = stage.site.issue_for(k, Role::Distributor, Duration::from_secs(1))?;
        let certificate = stage.site.certificate("k")?;
        let a = stage.host("a");
        let named = stage.site.issue("a", &format!("--mac {} --ip {}", a.mac, a.ip))?;
        process::pause(Duration::from_millis(2200))?;
        let unnamed = stage.site.issue("late", &format!("--mac {} --ip {}", a.mac, a.ip))?;
        let by_file = Plan::sarp().sarp_line(&format!("distributors = [\"{}\"]", certificate.display()));
        for (plan, identity) in [
            (Plan::sarp().identity(named.clone()), &named),
            (Plan::sarp().identity(unnamed.clone()), &unnamed),
            (by_file.identity(unnamed.clone()), &unnamed),
        ] {
            let guarded = stage.prepare("a", plan)?;
            let before = picture(&guarded.host)?;
            let answer = guarded.ask(&["host", "run"])?;
            assert_same(&before, &picture(&guarded.host)?, &answer.stderr);
            assert_nothing_left(&guarded)?;
            // A warning of the log may name the distributor first.
            let lines: Vec<_> = answer.stderr.lines().collect();
            let told = lines.iter().filter(|line| line.starts_with("ringwall: ")).collect::<Vec<_>>();
            assert!(!answer.status.success() && told.len() == 1, "{}", answer.stderr);
            for word in ["no key distributor", "--role akd", &identity.display().to_string()] {
                assert!(told[0].contains(word), "no {word} in {}", answer.stderr);
            }
        }
        assert_plan_refused(stage, "k", Plan::distributor().identity(short.clone()), &short, &["expired", "site issue"])
    });
}

#[test]
fn a_file_that_is_no_distributors_certificate() {
    perform(&["k", "a"], |stage| {
        furnish(stage.host("a"))?;
        let identity = issue(stage)?;
        let host = stage.site.certificate("a")?;
        let k = stage.host("k");
        let foreign = Site::found(stage.run, "foreign")?;
        foreign.issue("k", &format!("--mac {} --ip {} --role akd", k.mac, k.ip))?;
        let empty = write(&stage.file("empty.pem"), "");
        for (file, words) in [
            (&host, ["its role is host, not akd", "name the certificate of a distributor"]),
            (&foreign.certificate("k")?, ["authority", "name the certificate of a distributor"]),
            (&empty, ["PEM", "name the certificate of a distributor"]),
            (&stage.file("missing.pem"), ["No such file", "name the certificate of a distributor"]),
        ] {
            let line = format!("distributors = [\"{}\"]", file.display());
            let plan = Plan::sarp().identity(identity.clone()).sarp_line(&line);
            assert_plan_refused(stage, "a", plan, file, &words)?;
        }
        Ok(())
    });
}

#[test]
fn a_command_that_does_not_fit_the_configuration() {
    perform(&["k", "a"], |stage| {
        furnish(stage.host("k"))?;
        let identity = issue(stage)?;
        let refuses = |mut guarded: Guarded, task, words: &[&str]| {
            guarded.task = task;
            let file = guarded.config.display().to_string();
            let words: Vec<&str> = words.iter().copied().chain([file.as_str()]).collect();
            assert_refused(&guarded, &words)
        };
        let hosts = || stage.prepare("a", Plan::sarp().identity(identity.clone()));
        refuses(hosts()?, "akd", &["[akd] is missing", "repository = "])?;
        refuses(stage.prepare("k", Plan::distributor())?, "host", &["[akd] makes", "ringwall akd run"])?;
        let of_cll = stage.prepare("k", Plan::distributor())?;
        write(&of_cll.config, &read(&of_cll.config).replace("mode = \"sarp\"", "mode = \"cll\""));
        refuses(of_cll, "akd", &["[akd] needs mode = \"sarp\"", "host.mode"])?;

        let k = stage.host("k");
        let as_host = stage.site.issue("plain", &format!("--mac {} --ip {}", k.mac, k.ip))?;
        let plan = Plan::distributor().identity(as_host.clone());
        assert_plan_refused(stage, "k", plan, &as_host, &["role is not akd", "--role akd"])?;
        let poor = without(stage, &stage.file("site.k.pem"), "REQUEST MASTER");
        let plan = Plan::distributor().identity(poor.clone());
        assert_plan_refused(stage, "k", plan, &poor, &["RINGWALL REQUEST MASTER", "--role akd"])
    });
}

#[test]
fn a_repository_that_does_not_serve() {
    perform(&["k", "a"], |stage| {
        furnish(stage.host("k"))?;
        issue(stage)?;
        let foreign = Site::found(stage.run, "foreign")?;
        let a = stage.host("a");
        foreign.issue("a", &format!("--mac {} --ip {}", a.mac, a.ip))?;
        let good = std::fs::read(stage.site.repository()).expect("it is there");
        let torn = stage.file("torn.db");
        std::fs::write(&torn, [&good[..200], &[0xa5; 5000]].concat()).expect("a writable directory");
        let text = write(&stage.file("text.db"), &"not a repository. ".repeat(100));
        let empty = write(&stage.file("empty.db"), "");
        for (file, words) in [
            (stage.file("missing.db"), ["no repository is here", "right path"]),
            (torn, ["the repository is damaged", "backup"]),
            (text, ["no repository of hosts", "right path"]),
            (empty, ["no repository of hosts", "right path"]),
            (foreign.repository(), ["does not have this host", "akd.repository"]),
            (stage.run.directory(), ["repository", "path"]),
        ] {
            let guarded = stage.prepare("k", Plan::distributor().identity(stage.file("site.k.pem")))?;
            let text = read(&guarded.config);
            let own = stage.site.repository().display().to_string();
            assert!(text.contains(&own));
            write(&guarded.config, &text.replace(&own, &file.display().to_string()));
            let file = file.display().to_string();
            assert_refused(&guarded, &[words[0], words[1], &file])?;
        }
        Ok(())
    });
}

#[test]
fn values_of_signed_arp_that_do_not_serve() {
    perform(&["k", "a"], |stage| {
        let identity = issue(stage)?;
        let guarded = stage.prepare("a", Plan::sarp().identity(identity))?;
        let (text, file) = (read(&guarded.config), guarded.config.display().to_string());
        for (lines, words) in [
            ("[sarp]\nwindow_s = 0\n", ["sarp.window_s", "1 to 300"]),
            ("[sarp]\nwindows_s = 5\n", ["windows_s", "ringwall.toml(5)"]),
            (
                "[sarp]\nknown_hosts = [{ ip = \"10.0.0.9\", mac = \"ff:ff:ff:ff:ff:ff\" }]\n",
                ["sarp.known_hosts", "02:"],
            ),
            ("[lab]\nclock_offset_s = 5\n[sarp]\n", ["[lab]", "profile = \"lab\""]),
            ("[lab]\nclock_offset_s = 9876543210\n[sarp]\n", ["9876543210", "ringwall.toml(5)"]),
        ] {
            write(&guarded.config, &text.replace("[sarp]\n", lines));
            let words = [words[0], words[1], &file];
            assert_refused(&guarded, &words)?;
            assert_one_line(&guarded.ask(&["config", "check"])?, &words);
        }
        Ok(())
    });
}
