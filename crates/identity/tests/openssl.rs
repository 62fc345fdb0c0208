//! The openssl program as an independent witness: it makes authorities, hosts, requests and signatures that are read here.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use identity::certificate::{CertificateRequest, KeyKind, TrustAnchor};
use identity::{HostIdentity, Refusal, pem};
use tempfile::TempDir;
use wire::MacAddress;

/// The names as the draft on MAC addresses has them, in a request (`asked`) and in a certificate (`granted`).
const CONFIGURATION: &str = "[req]
distinguished_name = subject
[subject]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[asked]
subjectAltName = @names
[granted]
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectAltName = @names
[names]
otherName.0 = 1.3.6.1.5.5.7.8.12;FORMAT:HEX,OCTETSTRING:020000000001
IP.0 = 10.0.0.1
IP.1 = 10.0.0.2
";
const KINDS: [(&str, &[&str], KeyKind); 3] = [
    ("ed25519", &["-algorithm", "ED25519"], KeyKind::Ed25519),
    ("p256", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], KeyKind::EcdsaP256),
    ("rsa", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], KeyKind::Rsa),
];

fn openssl(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("openssl")
        .current_dir(directory)
        .args(arguments)
        .output()
        .expect("these tests need the program openssl (Debian package openssl)");
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).expect("openssl wrote it")
}

/// An authority "lab" and a host "a" with keys of one kind, all made by openssl: ca.crt, a.key, a.csr, a.crt.
fn site(generate: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().expect("directory");
    let at = directory.path();
    fs::write(at.join("site.cnf"), CONFIGURATION).expect("written");
    for key in ["ca.key", "a.key"] {
        openssl(at, &[&["genpkey", "-out", key], generate].concat());
    }
    for line in [
        "req -config site.cnf -x509 -extensions authority -key ca.key -subj /O=Example/CN=lab -days 30 -out ca.crt",
        "req -config site.cnf -new -reqexts asked -key a.key -subj /OU=router/CN=a -out a.csr",
        "x509 -req -in a.csr -CA ca.crt -CAkey ca.key -days 20 -extfile site.cnf -extensions granted -out a.crt",
    ] {
        openssl(at, &line.split(' ').collect::<Vec<_>>());
    }
    directory
}

fn identity(at: &Path) -> HostIdentity {
    let site_key = pem::encode(pem::SITE_KEY, &[9; 32]);
    let text = [&read(at, "a.crt"), &read(at, "ca.crt"), &read(at, "a.key"), site_key.as_str()].concat();
    HostIdentity::from_pem(&text).expect("identity")
}

#[test]
fn certificates_of_existing_authorities_serve() {
    for (kind, generate, _) in KINDS {
        let directory = site(generate);
        let identity = identity(directory.path());
        let certificate = identity.certificate();
        assert_eq!((certificate.name(), certificate.is_router(), identity.site_name().as_str()), ("a", true, "lab"));
        assert_eq!(certificate.mac(), MacAddress([2, 0, 0, 0, 0, 1]));
        assert_eq!(
            certificate.addresses(),
            ["10.0.0.1", "10.0.0.2"].map(|text| text.parse::<std::net::Ipv4Addr>().expect("address"))
        );

        let dates = openssl(directory.path(), &["x509", "-in", "a.crt", "-noout", "-enddate", "-dateopt", "iso_8601"]);
        let end = identity::certificate::utc_text(certificate.not_after_unix()).replace('T', " ");
        assert_eq!(dates.trim(), format!("notAfter={end}"), "{kind}");
    }
}

/// A number whose first bit is set has a zero in front of it in DER, which openssl does not print.
/// An authority's list that takes a certificate back has the same numbers, whatever their form.
#[test]
fn serial_numbers_are_those_that_openssl_prints_and_takes_back() {
    let directory = site(KINDS[1].1);
    let at = directory.path();
    let anchor = TrustAnchor::from_der(&der_of(&read(at, "ca.crt"))).expect("an authority");
    let settings = "[ca]\ndefault_ca=one\n[one]\ndatabase=index\ncrlnumber=number\ndefault_md=sha256\n";
    fs::write(at.join("list.cnf"), settings).expect("written");
    fs::write(at.join("number"), "01\n").expect("written");
    for serial in
        ["01", "7F", "80", "CB7F640D71AA2566179C8464AD8BD60C176987", "7FCB7F640D71AA2566179C8464AD8BD60C176987"]
    {
        let arguments =
            "x509 -req -in a.csr -CA ca.crt -CAkey ca.key -days 20 -extfile site.cnf -extensions granted -out a.crt";
        let number = format!("0x{serial}");
        openssl(at, &[&arguments.split(' ').collect::<Vec<_>>()[..], &["-set_serial", &number]].concat());
        let printed = openssl(at, &["x509", "-in", "a.crt", "-noout", "-serial"]);
        let host = anchor.verify(&der_of(&read(at, "a.crt")), now_unix_s()).expect("a host");
        assert_eq!(printed.trim().to_lowercase(), format!("serial={}", host.serial_hex()));

        let taken_back = format!("R\t351231000000Z\t251231000000Z\t{serial}\tunknown\t/CN=a\n");
        fs::write(at.join("index"), taken_back).expect("written");
        let list = "ca -config list.cnf -gencrl -keyfile ca.key -cert ca.crt -crldays 30 -out list.pem";
        openssl(at, &list.split(' ').collect::<Vec<_>>());
        let list = pem::single(&read(at, "list.pem"), pem::REVOCATION_LIST).expect("a list");
        let list = anchor.verify_revocation_list(&list).expect("the authority's");
        assert!(list.names(&host), "{serial}");
    }
}

/// This moment: what was just issued is good from its second on.
fn now_unix_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs()
}

fn der_of(certificate: &str) -> Vec<u8> {
    pem::single(certificate, pem::CERTIFICATE).expect("a certificate").to_vec()
}

#[test]
fn requests_prove_possession_of_their_key() {
    for (kind, generate, expected) in KINDS {
        let directory = site(generate);
        let text = read(directory.path(), "a.csr");
        let request = CertificateRequest::from_pem(&text).expect(kind);
        assert_eq!((request.name(), request.role().name(), request.key_kind()), ("a", "router", expected));
        assert_eq!((request.mac(), request.addresses().len()), (MacAddress([2, 0, 0, 0, 0, 1]), 2));

        let der = pem::single(&text, pem::CERTIFICATE_REQUEST).expect("one block");
        for at in [der.len() - 10, der.len() / 3] {
            let mut forged = der.to_vec();
            forged[at] ^= 1;
            assert!(
                CertificateRequest::from_pem(&pem::encode(pem::CERTIFICATE_REQUEST, &forged)).is_err(),
                "{kind} {at}"
            );
        }
    }
}

#[test]
fn signatures_of_either_program_verify_in_the_other() {
    let pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:32"];
    for (kind, generate, key_kind) in KINDS {
        let directory = site(generate);
        let at = directory.path();
        let identity = identity(at);
        openssl(at, &["x509", "-in", "a.crt", "-noout", "-pubkey", "-out", "a.pub"]);
        fs::write(at.join("message"), b"ARP, but signed").expect("written");
        let ours = identity.sign(b"ARP, but signed").expect("signature");
        let raw = key_kind == KeyKind::EcdsaP256;
        fs::write(at.join("ours"), if raw { ecdsa_der(&ours) } else { ours }).expect("written");

        let digest: &[&str] = if key_kind == KeyKind::Ed25519 { &["-rawin"] } else { &["-rawin", "-digest", "sha256"] };
        let padding: &[&str] = if key_kind == KeyKind::Rsa { &pss[..] } else { &[] };
        let padding: Vec<&str> =
            padding.iter().map(|word| if *word == "-sigopt" { "-pkeyopt" } else { word }).collect();
        let common = [digest, &padding[..], &["-in", "message"]].concat();
        openssl(at, &[&["pkeyutl", "-verify", "-pubin", "-inkey", "a.pub", "-sigfile", "ours"], &common[..]].concat());
        openssl(at, &[&["pkeyutl", "-sign", "-inkey", "a.key", "-out", "theirs"], &common[..]].concat());
        let theirs = fs::read(at.join("theirs")).expect("openssl wrote it");
        let theirs = if raw { ecdsa_fixed(&theirs) } else { theirs };
        assert!(identity.certificate().verify_signature(b"ARP, but signed", &theirs).is_ok(), "{kind}");
        assert!(identity.certificate().verify_signature(b"ARP, unsigned", &theirs).is_err(), "{kind}");
    }
}

#[test]
fn small_rsa_keys_are_refused() {
    let small = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"];
    let directory = site(&small);
    let der = pem::single(&read(directory.path(), "ca.crt"), pem::CERTIFICATE).expect("one block");
    let anchor = TrustAnchor::from_der(&der).expect("read");
    let host = pem::single(&read(directory.path(), "a.crt"), pem::CERTIFICATE).expect("one block");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    assert_eq!(anchor.verify(&host, now).map(|_| ()), Err(Refusal::BadSignature));
}

/// Two numbers of 32 bytes as the DER sequence of two integers that openssl speaks.
fn ecdsa_der(fixed: &[u8]) -> Vec<u8> {
    let integer = |number: &[u8]| {
        let digits: Vec<u8> = number.iter().copied().skip_while(|&byte| byte == 0).collect();
        let sign = if digits.first().is_none_or(|&byte| byte >= 0x80) { &[0][..] } else { &[] };
        let value = [sign, &digits].concat();
        [&[2, u8::try_from(value.len()).expect("short")], value.as_slice()].concat()
    };
    let body = [integer(&fixed[..32]), integer(&fixed[32..])].concat();
    [&[0x30, u8::try_from(body.len()).expect("short")], body.as_slice()].concat()
}

fn ecdsa_fixed(der: &[u8]) -> Vec<u8> {
    let mut rest = &der[2..];
    let mut fixed = Vec::new();
    for _ in 0..2 {
        let (number, after) = rest[2..].split_at(usize::from(rest[1]));
        let digits: Vec<u8> = number.iter().copied().skip_while(|&byte| byte == 0).collect();
        fixed.extend(std::iter::repeat_n(0, 32 - digits.len()).chain(digits));
        rest = after;
    }
    fixed
}

/// Authorities below one root, as a company has them: only the one of the form of a DHCP server's
/// makes hosts with a lease, and that one only for addresses that it is constrained to.
#[test]
fn of_all_authorities_below_the_sites_only_one_for_leases_makes_hosts() {
    const LEASES: &str = "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign\n\
        nameConstraints=critical,permitted;IP:10.0.0.0/255.255.255.0\n";
    let changed = |from: &str, to: &str| LEASES.replace(from, to);
    let authorities = [
        ("leases", LEASES.to_owned()),
        ("unconstrained", changed("nameConstraints=critical,permitted;IP:10.0.0.0/255.255.255.0\n", "")),
        ("names", changed("IP:10.0.0.0/255.255.255.0", "DNS:printers.example")),
        ("both", changed("permitted;IP", "permitted;DNS:printers.example,permitted;IP")),
        ("excluding", changed("permitted;IP:10.0.0.0/255.255.255.0", "excluded;IP:192.0.2.0/255.255.255.0")),
        ("uncritical", changed("nameConstraints=critical,", "nameConstraints=")),
        ("longer", changed(",pathlen:0", "")),
        ("signer", changed("keyCertSign", "keyCertSign,digitalSignature")),
    ];
    let directory = tempfile::tempdir().expect("directory");
    let at = directory.path();
    for key in ["root.key", "sub.key", "host.key"] {
        openssl(at, &["genpkey", "-algorithm", "ED25519", "-out", key]);
    }
    fs::write(at.join("site.cnf"), CONFIGURATION).expect("written");
    openssl(
        at,
        &"req -config site.cnf -x509 -extensions authority -key root.key -subj /CN=lab -days 30 -out root.crt"
            .split(' ')
            .collect::<Vec<_>>(),
    );
    let anchor = TrustAnchor::from_der(&der_of(&read(at, "root.crt"))).expect("an authority");
    for (number, (name, extensions)) in authorities.iter().enumerate() {
        let subject = format!("/CN=dhcp {number}/serialNumber=00b{number}");
        let authority = sign(at, "sub.key", &subject, ["root.crt", "root.key"], extensions);
        for (address, is_within) in [("10.0.0.1", true), ("10.9.9.1", false)] {
            let names = format!(
                "keyUsage=critical,digitalSignature\nsubjectAltName=@names\n[names]\n\
                 otherName.0=1.3.6.1.5.5.7.8.12;FORMAT:HEX,OCTETSTRING:020000000001\nIP.0={address}\n"
            );
            fs::write(at.join("sub.crt"), &authority).expect("written");
            let host = sign(at, "host.key", "/CN=a/serialNumber=00aa", ["sub.crt", "sub.key"], &names);
            let verdict = anchor.verify(&[der_of(&host), der_of(&authority)].concat(), now_unix_s()).map(drop);
            let expected = if *name == "leases" && is_within { Ok(()) } else { Err(Refusal::NotPermitted) };
            assert_eq!(verdict, expected, "{name}, {address}");
        }
    }
}

/// A certificate for `key` that `issuer`, a certificate and its key, signs with these extensions;
/// in PEM.
fn sign(at: &Path, key: &str, subject: &str, issuer: [&str; 2], extensions: &str) -> String {
    fs::write(at.join("extensions"), extensions).expect("written");
    openssl(at, &["req", "-config", "site.cnf", "-new", "-key", key, "-subj", subject, "-out", "asked.csr"]);
    let [certificate, issuer_key] = issuer;
    let signing = ["x509", "-req", "-in", "asked.csr", "-CA", certificate, "-CAkey", issuer_key, "-CAcreateserial"];
    let granting = ["-days", "20", "-extfile", "extensions", "-out", "granted.crt"];
    openssl(at, &[&signing[..], &granting].concat());
    read(at, "granted.crt")
}
