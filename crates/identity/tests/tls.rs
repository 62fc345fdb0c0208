//! TLS between hosts of a site, against clients and servers of the library itself that show and
//! believe what they like.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

#[allow(dead_code, reason = "other tests need all of it")]
mod support;

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use identity::pem;
use identity::tls::{Caller, Credentials, NotLetIn, Pages, Server, Service, TlsError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, ServerConfig, ServerConnection, SignatureScheme,
};
use support::{Authority, DAY_S, Host, ISSUED_UNIX_S, as_operator};

fn clock() -> Option<u64> {
    Some(ISSUED_UNIX_S + DAY_S)
}

/// Forty days later, when certificates of thirty days are over.
fn late() -> Option<u64> {
    Some(ISSUED_UNIX_S + 40 * DAY_S)
}

/// Believes everybody, and says so of every signature.
#[derive(Debug)]
struct Gullible;

impl ServerCertVerifier for Gullible {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// What shows the certificate of `shown` and signs with the key of `signer`.
fn resolver(shown: &Host, signer: &Host) -> Arc<SingleCertAndKey> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signer.key.serialized_der().to_vec()));
    let key = aws_lc_rs::sign::any_supported_type(&key).expect("a key");
    Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![CertificateDer::from(shown.der.clone())], key)))
}

/// A client that shows that, if anything.
fn client(shown: Option<Arc<SingleCertAndKey>>) -> ClientConnection {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("a version")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Gullible));
    let config = match shown {
        Some(shown) => builder.with_client_cert_resolver(shown),
        None => builder.with_no_client_auth(),
    };
    ClientConnection::new(Arc::new(config), ServerName::try_from("anything.example").expect("a name"))
        .expect("a client")
}

/// What the server makes of a client: the name that it has proved, or why it is not let in.
fn outcome(server: &Server, mut client: ClientConnection) -> Result<String, NotLetIn> {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let client = std::thread::spawn(move || {
        while client.is_handshaking() && client.complete_io(&mut theirs).is_ok() {}
        let _ = client.complete_io(&mut theirs);
    });
    let accepted = server.accept(ours).map(|(_, caller)| match caller {
        Caller::Nobody => String::new(),
        Caller::Host(certificate) => certificate.name().to_owned(),
        Caller::Operator(certificate) => format!("{} {}", certificate.role(), certificate.name()),
    });
    client.join().expect("ended");
    accepted
}

fn server(authority: &Authority, clock: fn() -> Option<u64>) -> Server {
    let host = authority.issue(|_| {});
    Credentials::from_pem(&authority.identity_pem(&host), clock).expect("credentials").server().expect("a server")
}

#[test]
fn only_who_has_the_key_of_a_certificate_of_the_site_is_let_in() {
    let (site, other, namesake) = (Authority::new("site"), Authority::new("other"), Authority::new("site"));
    let here = server(&site, clock);
    let (a, b) = (site.issue(|_| {}), site.issue(|_| {}));
    let shows = |host: &Host| Some(resolver(host, host));
    assert_eq!(outcome(&here, client(shows(&a))), Ok("a".to_owned()));
    assert_eq!(outcome(&here, client(Some(resolver(&a, &b)))), Err(NotLetIn::Certificate), "the key of another");
    assert_eq!(outcome(&here, client(None)), Ok(String::new()), "who shows none is nobody");
    assert_eq!(outcome(&here, client(shows(&other.issue(|_| {})))), Err(NotLetIn::Foreign));
    let forged = namesake.issue(|_| {});
    assert_eq!(outcome(&here, client(shows(&forged))), Err(NotLetIn::Certificate), "a site of the same name");
    assert_eq!(outcome(&server(&site, late), client(shows(&a))), Err(NotLetIn::Period));
    assert_eq!(outcome(&server(&site, || None), client(shows(&a))), Err(NotLetIn::Clock));
}

#[test]
fn an_operator_is_let_in_as_one_and_serves_nobody() {
    let (site, namesake) = (Authority::new("site"), Authority::new("site"));
    let here = server(&site, clock);
    let shows = |one: &Host| Some(resolver(one, one));
    let operator = site.issue(as_operator);
    assert_eq!(outcome(&here, client(shows(&operator))), Ok("manager a".to_owned()));
    let forged = namesake.issue(as_operator);
    assert_eq!(outcome(&here, client(shows(&forged))), Err(NotLetIn::Certificate));
    assert_eq!(outcome(&here, client(Some(resolver(&operator, &forged)))), Err(NotLetIn::Certificate), "another key");
    assert_eq!(outcome(&server(&site, late), client(shows(&operator))), Err(NotLetIn::Period));
    let own = Credentials::from_pem(&site.identity_pem(&site.issue(|_| {})), clock).expect("credentials");
    assert!(!talks(&own, Service::Named("a".to_owned()), &operator, &operator), "no host takes him for the service");
}

/// A server that asks for no certificate and shows the certificate of `shown`, signed for by
/// `signer`: whether a host that looks for `service` talks to it.
fn talks(own: &Credentials, service: Service, shown: &Host, signer: &Host) -> bool {
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("a version")
        .with_no_client_auth()
        .with_cert_resolver(resolver(shown, signer));
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let server = std::thread::spawn(move || {
        let mut server = ServerConnection::new(Arc::new(config)).expect("a server");
        while server.is_handshaking() && server.complete_io(&mut theirs).is_ok() {}
    });
    let mut stream = own.ask(service, ours).expect("a client");
    let mut is_good = true;
    while is_good && stream.conn.is_handshaking() {
        is_good = stream.conn.complete_io(&mut stream.sock).is_ok();
    }
    drop(stream);
    server.join().expect("ended");
    is_good
}

#[test]
fn a_host_talks_to_the_service_that_it_looks_for_and_to_nobody_else() {
    let (site, other) = (Authority::new("site"), Authority::new("other"));
    let own = Credentials::from_pem(&site.identity_pem(&site.issue(|_| {})), clock).expect("credentials");
    // Its name is "a" and its address 10.0.0.1.
    let (service, thief) = (site.issue(|_| {}), site.issue(|_| {}));
    let at = |text: &str| Service::At(text.parse().expect("an address"));
    assert!(talks(&own, at("10.0.0.1"), &service, &service));
    assert!(talks(&own, Service::Named("a".to_owned()), &service, &service));
    assert!(!talks(&own, at("10.0.0.2"), &service, &service), "another address");
    assert!(!talks(&own, Service::Named("b".to_owned()), &service, &service), "another name");
    assert!(!talks(&own, at("10.0.0.1"), &service, &thief), "the key of another");
    let foreign = other.issue(|_| {});
    assert!(!talks(&own, at("10.0.0.1"), &foreign, &foreign), "another site");
}

/// A certificate for web servers that is its own authority, in PEM with its key behind it.
fn web(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let own = pem::encode(pem::CERTIFICATE, made.cert.der());
    format!("{}{}", own.as_str(), made.signing_key.serialize_pem())
}

#[test]
fn browsers_are_shown_what_the_file_has_and_are_asked_for_nothing() {
    let site = Authority::new("site");
    let host = site.issue(|_| {});
    let pages = Pages::from_pem(&site.identity_pem(&host)).expect("an identity");
    assert_eq!(pages.addresses(), ["10.0.0.1".parse::<std::net::IpAddr>().expect("an address")]);
    assert!(pages.names().is_empty() && pages.is_ed25519());
    let here = pages.server(clock).expect("a server");
    // What a client would show is not asked for.
    assert_eq!(outcome(&here, client(Some(resolver(&host, &host)))), Ok(String::new()));
    let old = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .expect("a version")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Gullible))
        .with_no_client_auth();
    let old = ClientConnection::new(Arc::new(old), ServerName::try_from("a.example").expect("a name")).expect("one");
    assert_eq!(outcome(&here, old), Err(NotLetIn::Tls));

    let pages = Pages::from_pem(&web(&["Console.example", "192.0.2.5"])).expect("a certificate of the web");
    assert_eq!(pages.names(), ["console.example"]);
    assert_eq!(pages.addresses(), ["192.0.2.5".parse::<std::net::IpAddr>().expect("an address")]);
    assert!(!pages.is_ed25519() && pages.not_after_unix() > pages.not_before_unix());
    // Compared with what openssl says of a file in the guarded tests.
    assert_eq!(pages.fingerprint().split(':').filter(|pair| pair.len() == 2).count(), 32);
}

#[test]
fn a_file_with_another_key_or_without_a_certificate_is_none() {
    let (one, other) = (web(&["a.example"]), web(&["b.example"]));
    let (certificate, own_key) = one.split_at(one.find("-----BEGIN PRIVATE").expect("a key"));
    let other_key = &other[other.find("-----BEGIN PRIVATE").expect("a key")..];
    let wrong = |text: &str| Pages::from_pem(text).expect_err("no file for a server");
    assert!(matches!(wrong(&format!("{certificate}{other_key}")), TlsError::OtherKey));
    assert!(matches!(wrong(own_key), TlsError::Unreadable));
    assert!(matches!(wrong(certificate), TlsError::Key));
    assert!(matches!(wrong(""), TlsError::Unreadable | TlsError::Key));
    let nine = certificate.repeat(9);
    assert!(matches!(wrong(&format!("{nine}{own_key}")), TlsError::Unreadable), "a chain without end");
}
