//! TLS between hosts of one site: TLS 1.3, both sides show the certificates that the site gave them
//! (record 0088).
//!
//! A certificate is believed as everywhere here, by [`TrustAnchor::verify`], and a name that a web
//! browser would look for decides nothing. Whom a client talks to is decided by [`Service`]: an
//! address or a name that the certificate has.
//!
//! A machine that has a join token and no certificate yet may connect as well. It is told apart,
//! and believes the authority that its token names. So may an operator, by a certificate that makes
//! nobody a host (record 0108).
//!
//! There are no tickets: each connection proves who both are, at the time at which it is made.
//!
//! What web browsers are shown is in `tls/pages.rs`.

mod pages;

use std::fmt;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConnection, Resumption, WantsClientCert};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ServerConnection};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme, StreamOwned,
};

use crate::certificate::{HostCertificate, OperatorCertificate, Refusal, TrustAnchor, Verified};
use crate::host::{HostIdentity, IdentityError};
use crate::order::Operator;
use crate::pem;
use crate::token::Token;

pub use pages::Pages;

/// Whom a client wants to talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// The host whose certificate has this address.
    At(IpAddr),
    /// The host of this name, whatever address it is reached by.
    Named(String),
}

impl Service {
    /// Whether it is the host with this certificate.
    #[must_use]
    pub fn is(&self, certificate: &HostCertificate) -> bool {
        match self {
            Service::At(address) => certificate.names().all_addresses().contains(address),
            Service::Named(name) => certificate.name() == name,
        }
    }
}

/// What tells the time, in Unix seconds; none where it is not known.
pub type Clock = fn() -> Option<u64>;

/// What a host shows, and what it believes.
#[derive(Clone)]
pub struct Credentials {
    shown: Arc<CertifiedKey>,
    anchor: TrustAnchor,
    clock: Clock,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(redacted)")
    }
}

/// Why there are no credentials, or no connection.
#[derive(Debug)]
pub enum TlsError {
    /// The identity cannot be read.
    Identity(IdentityError),
    /// Its key cannot sign in TLS; keys of the paper profile cannot.
    Key,
    /// Its key is not that of its certificate.
    OtherKey,
    /// There is no certificate in it that can be read.
    Unreadable,
    /// What went wrong in the library.
    Library(Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Identity(error) => error.fmt(f),
            TlsError::Key => f.write_str("its key cannot be used with TLS"),
            TlsError::OtherKey => f.write_str("its key is not that of its certificate"),
            TlsError::Unreadable => f.write_str("it has no certificate that can be read"),
            TlsError::Library(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TlsError {}

impl From<Error> for TlsError {
    fn from(error: Error) -> TlsError {
        TlsError::Library(error)
    }
}

/// A connection over `S`, as the server has it.
pub type Served<S> = StreamOwned<ServerConnection, S>;
/// A connection over `S`, as the client has it.
pub type Asked<S> = StreamOwned<ClientConnection, S>;

impl Credentials {
    /// Those of the host whose identity file says `text`.
    ///
    /// # Errors
    /// The file is none, or its key is of the paper profile.
    pub fn from_pem(text: &str, clock: Clock) -> Result<Credentials, TlsError> {
        let identity = HostIdentity::from_pem(text).map_err(TlsError::Identity)?;
        let blocks = pem::blocks(text).map_err(|_| TlsError::Key)?;
        let key = blocks.iter().find(|block| block.label == pem::PRIVATE_KEY).ok_or(TlsError::Key)?;
        Credentials::of(identity.certificate().der(), &key.bytes, identity.anchor(), clock)
    }

    /// Those of an operator, which open connections and accept none.
    ///
    /// # Errors
    /// His key cannot sign in TLS.
    pub fn of_operator(operator: &Operator, clock: Clock) -> Result<Credentials, TlsError> {
        Credentials::of(operator.certificate().der(), operator.key_der(), operator.anchor(), clock)
    }

    fn of(certificate: &[u8], key: &[u8], anchor: &TrustAnchor, clock: Clock) -> Result<Credentials, TlsError> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
        let key = aws_lc_rs::sign::any_supported_type(&key).map_err(|_| TlsError::Key)?;
        let certificate = CertificateDer::from(certificate.to_vec());
        let shown = Arc::new(CertifiedKey::new(vec![certificate], key));
        Ok(Credentials { shown, anchor: anchor.clone(), clock })
    }

    /// What a server accepts connections with.
    ///
    /// # Errors
    /// What the library says.
    pub fn server(&self) -> Result<Server, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let (believed, service) = (Believed::Authority(self.anchor.clone()), None);
        let verifier = Arc::new(Verifier { believed, service, provider: Arc::clone(&provider) });
        // Who has a token alone knows the authority by its fingerprint, so it is shown as well.
        let authority = CertificateDer::from(self.anchor.der().to_vec());
        let chain = self.shown.cert.iter().cloned().chain([authority]).collect();
        let shown = Arc::new(CertifiedKey::new(chain, Arc::clone(&self.shown.key)));
        let mut config = ServerConfig::builder_with_details(provider, Arc::new(Time(self.clock)))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Server { config: Arc::new(config), anchor: Some(self.anchor.clone()), clock: self.clock })
    }

    /// Opens a connection to `service` over `stream` without showing who it is: for a host whose
    /// certificate is over, and whose request says who it is.
    ///
    /// # Errors
    /// What the library says.
    pub fn ask_nameless<S: Read + Write>(&self, service: Service, stream: S) -> Result<Asked<S>, TlsError> {
        let config = client(Believed::Authority(self.anchor.clone()), service, self.clock)?;
        connect(config.with_no_client_auth(), stream)
    }

    /// Opens a connection to `service` over `stream`.
    ///
    /// # Errors
    /// What the library says.
    pub fn ask<S: Read + Write>(&self, service: Service, stream: S) -> Result<Asked<S>, TlsError> {
        let config = client(Believed::Authority(self.anchor.clone()), service, self.clock)?;
        connect(config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&self.shown)))), stream)
    }
}

/// Opens a connection to `service` for a machine that has nothing but `token`.
///
/// # Errors
/// What the library says.
pub fn ask_with_token<S: Read + Write>(
    token: &Token,
    service: Service,
    clock: Clock,
    stream: S,
) -> Result<Asked<S>, TlsError> {
    connect(client(Believed::OfToken(token.clone()), service, clock)?.with_no_client_auth(), stream)
}

fn client(
    believed: Believed,
    service: Service,
    clock: Clock,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(Verifier { believed, service: Some(service), provider: Arc::clone(&provider) });
    Ok(ClientConfig::builder_with_details(provider, Arc::new(Time(clock)))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier))
}

fn connect<S: Read + Write>(mut config: ClientConfig, stream: S) -> Result<Asked<S>, TlsError> {
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    // The verifier knows whom it is to be; this is not sent, and nothing looks at it.
    let unused = ServerName::IpAddress(IpAddr::from([0, 0, 0, 0]).into());
    Ok(StreamOwned::new(ClientConnection::new(Arc::new(config), unused)?, stream))
}

/// What accepts connections.
#[derive(Clone)]
pub struct Server {
    config: Arc<ServerConfig>,
    /// Whose certificates clients may show; none where they are asked for none.
    anchor: Option<TrustAnchor>,
    clock: Clock,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server(redacted)")
    }
}

impl Server {
    /// Accepts a connection over `stream`, to the end of its handshake: the connection, and who it
    /// is.
    ///
    /// # Errors
    /// [`NotLetIn`].
    pub fn accept<S: Read + Write>(&self, mut stream: S) -> Result<(Served<S>, Caller), NotLetIn> {
        let mut connection = ServerConnection::new(Arc::clone(&self.config)).map_err(|_| NotLetIn::Tls)?;
        while connection.is_handshaking() {
            if let Err(error) = connection.complete_io(&mut stream) {
                // The other side hears of it, where it still listens.
                let _ = connection.write_tls(&mut stream);
                return Err(NotLetIn::of(&error));
            }
        }
        let now = (self.clock)().ok_or(NotLetIn::Clock)?;
        let shown = connection.peer_certificates().and_then(<[_]>::first);
        let caller = match (shown, &self.anchor) {
            (Some(shown), Some(anchor)) => Caller::verify(anchor, shown, now).map_err(|_| NotLetIn::Certificate)?,
            (Some(_), None) => return Err(NotLetIn::Certificate),
            (None, _) => Caller::Nobody,
        };
        Ok((StreamOwned::new(connection, stream), caller))
    }
}

/// Who has connected.
#[derive(Clone, Debug)]
pub enum Caller {
    /// He showed no certificate.
    Nobody,
    /// A host of the site.
    Host(Verified<HostCertificate>),
    /// An operator of it. Whether the site still has him is for the site to say.
    Operator(Verified<OperatorCertificate>),
}

impl Caller {
    fn verify(anchor: &TrustAnchor, shown: &[u8], unix_s: u64) -> Result<Caller, Refusal> {
        match anchor.verify(shown, unix_s) {
            Ok(host) => Ok(Caller::Host(host)),
            Err(refusal) => anchor.verify_operator(shown, unix_s).map(Caller::Operator).map_err(|_| refusal),
        }
    }
}

/// Why a client was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotLetIn {
    /// It speaks something else, or another version.
    Tls,
    /// It showed no certificate.
    Nameless,
    /// Its certificate is of another site.
    Foreign,
    /// Its certificate is over, or not yet good.
    Period,
    /// Its certificate is none of a host, or its signature is not that of its owner.
    Certificate,
    /// The time is not known here.
    Clock,
    /// It does not take this service for the one that it looks for.
    Declined,
    /// It went away, or took too long.
    Gone,
}

impl NotLetIn {
    /// All of them.
    pub const ALL: [NotLetIn; 8] = [
        NotLetIn::Tls,
        NotLetIn::Nameless,
        NotLetIn::Foreign,
        NotLetIn::Period,
        NotLetIn::Certificate,
        NotLetIn::Clock,
        NotLetIn::Declined,
        NotLetIn::Gone,
    ];

    /// Its word in counters.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            NotLetIn::Tls => "no-tls",
            NotLetIn::Nameless => "no-certificate",
            NotLetIn::Foreign => "other-site",
            NotLetIn::Period => "not-in-its-period",
            NotLetIn::Certificate => "bad-certificate",
            NotLetIn::Clock => "no-clock",
            NotLetIn::Declined => "declined-by-client",
            NotLetIn::Gone => "gone",
        }
    }

    fn of(error: &std::io::Error) -> NotLetIn {
        match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
            None => NotLetIn::Gone,
            Some(Error::NoCertificatesPresented) => NotLetIn::Nameless,
            Some(Error::FailedToGetCurrentTime) => NotLetIn::Clock,
            Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => NotLetIn::Foreign,
            Some(Error::InvalidCertificate(CertificateError::Expired)) => NotLetIn::Period,
            Some(Error::InvalidCertificate(_)) => NotLetIn::Certificate,
            Some(Error::AlertReceived(_)) => NotLetIn::Declined,
            Some(_) => NotLetIn::Tls,
        }
    }
}

/// Tells the library the time.
struct Time(Clock);

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Time")
    }
}

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        (self.0)().map(|unix_s| UnixTime::since_unix_epoch(Duration::from_secs(unix_s)))
    }
}

/// Whose certificates are believed.
enum Believed {
    Authority(TrustAnchor),
    /// Those of the authority whose fingerprint it has, which is to come with them.
    OfToken(Token),
}

impl Believed {
    fn anchor(&self, between: &[CertificateDer<'_>]) -> Result<TrustAnchor, Error> {
        match self {
            Believed::Authority(anchor) => Ok(anchor.clone()),
            Believed::OfToken(token) => {
                let authority = between.iter().find(|one| token.is_of(one)).ok_or(CertificateError::UnknownIssuer)?;
                TrustAnchor::from_der(authority).map_err(|_| CertificateError::BadEncoding.into())
            }
        }
    }
}

/// Believes certificates of the site.
struct Verifier {
    believed: Believed,
    /// Who alone is believed.
    service: Option<Service>,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

impl Verifier {
    fn verify(&self, shown: &CertificateDer<'_>, between: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let anchor = self.believed.anchor(between)?;
        if self.service.is_none() {
            return Caller::verify(&anchor, shown, now.as_secs()).map(drop).map_err(refused);
        }
        let verified = anchor.verify(shown, now.as_secs()).map_err(refused)?;
        match &self.service {
            Some(service) if !service.is(&verified) => Err(CertificateError::NotValidForName.into()),
            _ => Ok(()),
        }
    }

    fn verify_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, shown, signed, &self.provider.signature_verification_algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// As the library has it.
fn refused(refusal: Refusal) -> Error {
    Error::InvalidCertificate(match refusal {
        Refusal::Expired { .. } | Refusal::NotYetValid { .. } => CertificateError::Expired,
        Refusal::ForeignIssuer => CertificateError::UnknownIssuer,
        _ => CertificateError::ApplicationVerificationFailure,
    })
}

/// There is no older version here.
fn too_old() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2 is not spoken".to_owned()))
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    /// Who shows none is told apart, and asks for nothing but what a token is for.
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(shown, between, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _shown: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(shown, between, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _shown: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}
