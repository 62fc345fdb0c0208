//! A site whose authority's key is in a token behind PKCS#11: SoftHSM, which many test against.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use ringwall_lab::cleanup::Run;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;

use crate::site_signer::{ask, is_enrolled_once, signer_command, start_signer, told};
use crate::stage::{Outcome, SOON, Site, perform_bare};

const LIBRARY: &str = "/usr/lib/softhsm/libsofthsm2.so";
const PIN: &str = "765432";

/// A token in files of its own.
struct Token {
    place: PathBuf,
}

impl Token {
    fn make(run: &Run) -> Result<Token, Failure> {
        let token = Token { place: run.directory().join("token") };
        fs::create_dir_all(token.files()).map_err(Failure::file("making", &token.place))?;
        let setting = format!("directories.tokendir = {}\nobjectstore.backend = file\n", token.files().display());
        fs::write(token.setting(), setting).map_err(Failure::file("writing", &token.setting()))?;
        token.put_pin(PIN, 0o600)?;
        let mut make = Command::new("softhsm2-util");
        make.env("SOFTHSM2_CONF", token.setting());
        make.args(["--init-token", "--free", "--label", "ring wall", "--so-pin", "12345678", "--pin", PIN]);
        process::must(make)?;
        Ok(token)
    }

    fn files(&self) -> PathBuf {
        self.place.join("files")
    }

    fn setting(&self) -> PathBuf {
        self.place.join("softhsm2.conf")
    }

    fn pin(&self) -> PathBuf {
        self.place.join("pin")
    }

    fn put_pin(&self, pin: &str, mode: u32) -> Outcome {
        let wrote = fs::write(self.pin(), format!("{pin}\n"));
        let set = wrote.and_then(|()| fs::set_permissions(self.pin(), fs::Permissions::from_mode(mode)));
        set.map_err(Failure::file("writing", &self.pin()))
    }

    /// Takes the private key of this name out of it, in another process.
    fn forget_key(&self, object: &str) -> Outcome {
        let mut tool = Command::new("pkcs11-tool");
        tool.env("SOFTHSM2_CONF", self.setting());
        tool.args(["--module", LIBRARY, "--login", "--pin", PIN, "--delete-object", "--type", "privkey"]);
        tool.args(["--label", object]);
        process::must(tool).map(drop)
    }

    fn uri(&self, token: &str, object: &str) -> String {
        let (pin, files) = (self.pin(), self.files());
        let query = format!("module-path={LIBRARY}&pin-source=file:{}&x-files={}", pin.display(), files.display());
        format!("pkcs11:token={token};object={object}?{query}")
    }

    /// A site whose key it makes.
    fn found(&self, run: &'static Run, name: &str) -> Result<Site, Failure> {
        let uri = self.uri("ring%20wall", name);
        Site::found_among(run, name, &["--key", &uri], vec![("SOFTHSM2_CONF", self.setting())])
    }
}

#[test]
fn an_authority_in_a_token_does_all_that_one_in_a_file_does_and_its_key_never_leaves() {
    const NAME: &str = "an_authority_in_a_token_does_all_that_one_in_a_file_does_and_its_key_never_leaves";
    perform_bare(NAME, &["softhsm2-util", "openssl"], |run| {
        let token = Token::make(run)?;
        let site = token.found(run, "in-token")?;
        site.issue("a", "--mac 02:00:00:00:00:0a --ip 10.0.0.10")?;
        site.issue("b", "--mac 02:00:00:00:00:0b --ip 10.0.0.11")?;
        site.revoke("b")?;
        site.order("policy legacy add --ip 10.0.0.99 --mac 02:00:00:00:00:99")?;
        site.order(&format!("operator add ann --role manager --out {}", token.place.join("ann.pem").display()))?;
        site.order("audit verify")?;
        let mut verify = Command::new("openssl");
        verify.arg("verify").arg("-CAfile").arg(site.directory().join("ca.crt.pem")).arg(site.certificate("a")?);
        process::must(verify)?;
        let backup = token.place.join("backup");
        site.order(&format!("backup {}", backup.display()))?;
        let key = fs::read_to_string(site.directory().join("ca.key.pem")).expect("there");
        assert!(key.starts_with("pkcs11:") && !key.contains(PIN), "{key}");
        let kept = String::from_utf8_lossy(&fs::read(&backup).expect("there")).into_owned();
        assert!(!kept.contains("PRIVATE KEY") && !kept.contains(PIN), "the backup has a private key");
        fs::remove_dir_all(site.directory()).expect("removed");
        let refused = site.order(&format!("restore {}", backup.display())).expect_err("the backup names a library");
        assert!(refused.to_string().contains("say with --key which one to use"), "{refused}");
        site.order(&format!("restore {} --key {}", backup.display(), token.uri("ring%20wall", "in-token")))?;
        site.issue("c", "--mac 02:00:00:00:00:0c --ip 10.0.0.12")?;
        site.order("audit verify").map(drop)
    });
}

/// In its sandbox, where it logs in before the fences stand.
#[test]
fn a_signer_signs_with_a_token_and_ends_when_that_is_gone() {
    const NAME: &str = "a_signer_signs_with_a_token_and_ends_when_that_is_gone";
    perform_bare(NAME, &["softhsm2-util", "pkcs11-tool"], |run| {
        let token = Token::make(run)?;
        let site = token.found(run, "in-token")?;
        let (socket, log) = (token.place.join("s"), token.place.join("signer.log"));
        let mut signer = start_signer(signer_command(&site, &socket), &log)?;
        is_enrolled_once(&site, 1, &mut |question| ask(&socket, question))?;
        assert_eq!(told(&site, "h1")?.last().map(|(act, _)| act.clone()), Some("enrolled".to_owned()));
        let file = site.issue("r", "--mac 02:00:00:00:00:0e --ip 10.0.0.14")?;
        let identity = fs::read_to_string(&file).map_err(Failure::file("reading", &file))?;
        // From now on what hosts are given of them is signed.
        site.order("rekey-shared")?;
        let request = authority::enrolment::shared_keys(&identity).expect("a request");
        let asked = serde_json::json!({"renewal": {"host": "r", "request": request}});
        assert!(ask(&socket, &asked).is_some_and(|answer| answer["renewed"].is_string()));
        token.forget_key("in-token")?;
        assert_eq!(ask(&socket, &asked), Some(serde_json::json!({"refused": "failed"})));
        process::until("the signer ends", SOON, || Ok(signer.ensure_alive().is_err()))?;
        let said = fs::read_to_string(&log).expect("there");
        assert!(
            said.contains("the authority's key does not sign any more; start the signer again")
                && said.contains("pkcs11:"),
            "{said}"
        );
        Ok(())
    });
}

#[test]
fn what_is_wrong_with_a_token_is_said_in_a_line_and_nothing_is_left() {
    perform_bare("what_is_wrong_with_a_token_is_said_in_a_line_and_nothing_is_left", &["softhsm2-util"], |run| {
        let token = Token::make(run)?;
        let directory = run.directory().join("none");
        let refused = |uri: &str, wanted: &str| -> Outcome {
            let found = Site::found_among(run, "none", &["--key", uri], vec![("SOFTHSM2_CONF", token.setting())]);
            let Err(failure) = found else { panic!("a site at {uri}") };
            assert!(failure.to_string().contains(wanted), "{failure}");
            assert!(!directory.exists());
            Ok(())
        };
        refused(&token.uri("other", "k"), "there is no token \"other\"")?;
        refused(&token.uri("ring%20wall", "k").replace("softhsm2.so", "none.so"), "cannot open shared object file")?;
        token.put_pin(PIN, 0o644)?;
        refused(&token.uri("ring%20wall", "k"), "others may read the PIN; chmod 600")?;
        fs::remove_file(token.pin()).expect("removed");
        refused(&token.uri("ring%20wall", "k"), "No such file")?;
        token.put_pin("1111", 0o600)?;
        refused(&token.uri("ring%20wall", "k"), "it lets nobody in")?;
        // It is not tried again, though the PIN is right now: it might be locked at the next time.
        token.put_pin(PIN, 0o600)?;
        refused(&token.uri("ring%20wall", "k"), "the token has heard a wrong PIN")
    });
}
