//! The paper profile: the openssl program as a witness of its signatures, and what marks a site of it.
#![cfg(feature = "paper")]
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

#[allow(dead_code, reason = "other tests need all of it")]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use identity::certificate::{PAPER_SITE_UNIT, SECOND_KEY_EXTENSION};
use identity::distributor::verify_with_record;
use identity::host::IdentityBlock;
use identity::profile::{KEY_RANDOM_LEN, KeyLength, PAIR_RANDOM_LEN};
use identity::signing::SigningKey;
use identity::{HostIdentity, IdentityError, Profile, Refusal, new_key_block, pem};
use rcgen::{CustomExtension, DnType};
use support::{Authority, Host};

/// What signs the message of every test.
fn key(length: KeyLength, seed: u8) -> SigningKey {
    SigningKey::from_paper_block(&new_key_block(length, &[seed; KEY_RANDOM_LEN])).expect("a key")
}

fn openssl(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("openssl")
        .current_dir(directory)
        .args(arguments)
        .output()
        .expect("these tests need the program openssl (Debian package openssl)");
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The two numbers of a signature as the sequence that openssl reads, encoded by openssl.
fn write_signature(directory: &Path, signature: &[u8]) {
    let digits = |half: &[u8]| half.iter().fold(String::new(), |text, byte| text + &format!("{byte:02X}"));
    let (r, s) = signature.split_at(20);
    let text = format!("asn1=SEQUENCE:two\n[two]\nr=INTEGER:0x{}\ns=INTEGER:0x{}\n", digits(r), digits(s));
    fs::write(directory.join("sig.cnf"), text).expect("written");
    openssl(directory, &["asn1parse", "-genconf", "sig.cnf", "-out", "sig.der", "-noout"]);
}

/// The two numbers of a signature that openssl made.
fn read_signature(directory: &Path) -> Vec<u8> {
    let text = openssl(directory, &["asn1parse", "-inform", "DER", "-in", "sig.der"]);
    let numbers = text.lines().filter(|line| line.contains("INTEGER")).filter_map(|line| line.rsplit(':').next());
    let padded = numbers.map(|number| format!("{number:0>40}")).collect::<String>();
    (0..padded.len()).step_by(2).map(|at| u8::from_str_radix(&padded[at..at + 2], 16).expect("digits")).collect()
}

#[test]
fn openssl_takes_our_signatures_made_ahead_or_not() {
    for length in KeyLength::ALL {
        let place = tempfile::tempdir().expect("a directory");
        let signer = key(length, 0x5a);
        fs::write(place.path().join("key.der"), signer.paper_spki().expect("DSA")).expect("written");
        fs::write(place.path().join("message"), b"ARP, but signed").expect("written");
        for ahead in [false, true] {
            if ahead {
                signer.prepare(&[9; PAIR_RANDOM_LEN], 1);
            }
            write_signature(place.path(), &signer.sign(b"ARP, but signed").expect("signed"));
            let line = "dgst -sha1 -verify key.der -keyform DER -signature sig.der message";
            let said = openssl(place.path(), &line.split(' ').collect::<Vec<_>>());
            assert_eq!(said.trim(), "Verified OK", "{length}");
        }
    }
}

#[test]
fn we_take_signatures_of_openssl() {
    for length in KeyLength::ALL {
        let place = tempfile::tempdir().expect("a directory");
        fs::write(place.path().join("message"), b"ARP, but signed").expect("written");
        let (algorithm, public) = write_private_key(place.path(), length);
        openssl(place.path(), &"dgst -sha1 -sign own.pem -out sig.der message".split(' ').collect::<Vec<_>>());
        let signature = read_signature(place.path());
        let checked = |message| verify_with_record(Profile::Paper, (algorithm, &public), message, &signature);
        assert_eq!(checked(b"ARP, but signed"), Ok(()), "{length}");
        assert!(checked(b"ARP, unsigned").is_err());
    }
}

/// A key of ours in openssl's own form, `own.pem`, with all numbers but the secret one as openssl reads them from the public
/// half. Returns that half as a record names it.
fn write_private_key(directory: &Path, length: KeyLength) -> (u8, Vec<u8>) {
    let block = new_key_block(length, &[0x33; KEY_RANDOM_LEN]);
    let signer = SigningKey::from_paper_block(&block).expect("a key");
    fs::write(directory.join("own.der"), signer.paper_spki().expect("DSA")).expect("written");
    let text = openssl(directory, &"pkey -pubin -inform DER -in own.der -text -noout".split(' ').collect::<Vec<_>>());
    let mut lines = String::from("asn1=SEQUENCE:six\n[six]\nversion=INTEGER:0\n");
    for name in ["P", "Q", "G", "pub"] {
        writeln!(lines, "{name}=INTEGER:0x{}", number_in(&text, name)).expect("text");
    }
    let x = block[1..].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    writeln!(lines, "x=INTEGER:0x{x}").expect("text");
    fs::write(directory.join("own.cnf"), lines).expect("written");
    let make = "asn1parse -genconf own.cnf -out own.der -noout";
    openssl(directory, &make.split(' ').collect::<Vec<_>>());
    let der = fs::read(directory.join("own.der")).expect("made");
    fs::write(directory.join("own.pem"), pem::encode("DSA PRIVATE KEY", &der).as_str()).expect("written");
    let (algorithm, public) = signer.record_key().expect("DSA");
    (algorithm, public.to_vec())
}

/// The digits below the line `name:` of a key in openssl's words.
fn number_in(text: &str, name: &str) -> String {
    let lines = text.lines().skip_while(|line| line.trim() != format!("{name}:")).skip(1);
    lines.take_while(|line| line.starts_with("    ")).flat_map(|line| line.trim().split(':')).collect()
}

fn second_key(signer: &SigningKey) -> CustomExtension {
    CustomExtension::from_oid_content(SECOND_KEY_EXTENSION, signer.paper_spki().expect("DSA"))
}

fn paper_site() -> Authority {
    Authority::with("lab", |params| params.distinguished_name.push(DnType::OrganizationalUnitName, PAPER_SITE_UNIT))
}

fn with_second_key(site: &Authority, signer: &SigningKey) -> Host {
    site.issue(|params| params.custom_extensions.push(second_key(signer)))
}

#[test]
fn a_paper_site_is_marked_and_has_second_keys_only() {
    let (modern, paper) = (Authority::new("lab"), paper_site());
    assert_eq!((modern.anchor().profile(), paper.anchor().profile()), (Profile::Modern, Profile::Paper));
    let signer = key(KeyLength::Bits1024, 3);
    let good = paper.anchor().verify_whenever(&with_second_key(&paper, &signer).der).expect("of this site");
    assert_eq!((good.profile(), good.record_key()), (Profile::Paper, signer.record_key()));
    let signature = signer.sign(b"ARP").expect("signed");
    assert!(
        good.verify_record_signature(b"ARP", &signature).is_ok() && good.verify_signature(b"ARP", &signature).is_err()
    );

    let refusal = |site: &Authority, der: &[u8]| site.anchor().verify_whenever(der).err();
    assert_eq!(refusal(&modern, &with_second_key(&modern, &signer).der), Some(Refusal::WrongProfile));
    assert_eq!(refusal(&paper, &paper.issue(|_| {}).der), Some(Refusal::WrongProfile));
    let twice = paper.issue(|params| params.custom_extensions.extend([second_key(&signer), second_key(&signer)]));
    assert!(refusal(&paper, &twice.der).is_some());
}

#[test]
fn an_identity_of_a_paper_site_holds_the_second_key() {
    let (site, signer) = (paper_site(), key(KeyLength::Bits512, 3));
    let host = with_second_key(&site, &signer);
    let text = site.identity_pem(&host);
    let block = |seed| pem::encode(pem::PAPER_KEY, &new_key_block(KeyLength::Bits512, &[seed; KEY_RANDOM_LEN]));
    let identity = HostIdentity::from_pem(&format!("{text}{}", block(3).as_str())).expect("whole");
    assert_eq!((identity.profile(), identity.record_signing_key().profile()), (Profile::Paper, Profile::Paper));
    assert_eq!(identity.signing_key().profile(), Profile::Modern);

    let refusal = |text: &str| HostIdentity::from_pem(text).map(drop).expect_err("refused");
    assert_eq!(refusal(&text), IdentityError::Missing(IdentityBlock::PaperKey));
    assert_eq!(refusal(&format!("{text}{}", block(4).as_str())), IdentityError::PaperKeyMismatch);
    let modern = Authority::new("lab");
    let text = modern.identity_pem(&modern.issue(|_| {}));
    let foreign = refusal(&format!("{text}{}", block(3).as_str()));
    assert_eq!(foreign, IdentityError::Foreign(pem::PAPER_KEY.to_owned()));
}
