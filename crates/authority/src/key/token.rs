//! A key that stays in its token.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::eddsa::{EddsaParams, EddsaSignatureScheme};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::Slot;
use cryptoki::types::AuthPin;

use super::uri::{BadUri, TokenUri};
use crate::files;

/// Ed25519 as the parameter of a curve: 1.3.101.112 (RFC 8410, section 3).
const ED25519_OID: [u8; 5] = [0x06, 0x03, 0x2b, 0x65, 0x70];
/// Before the 32 bytes of a point: an OCTET STRING of that length (PKCS#11 3.0, section 2.3.5).
const POINT_HEAD: [u8; 2] = [0x04, 0x20];

/// Why a key in a token cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    uri: String,
    what: String,
}

impl TokenError {
    /// The text is not told: it may have a PIN.
    pub(super) fn from_uri(bad: BadUri) -> TokenError {
        TokenError { uri: "its URI".to_owned(), what: bad.to_string() }
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the authority's key at {}: {}", self.uri, self.what)
    }
}

impl std::error::Error for TokenError {}

/// One of a session that was logged in to.
#[derive(Debug)]
pub(crate) struct TokenKey {
    uri: TokenUri,
    public: [u8; 32],
    key: ObjectHandle,
    session: Mutex<Session>,
}

/// What this process has opened. A library is initialized once in a process (PKCS#11 3.0, section
/// 5.4), and a PIN that was given once need not be within reach again.
#[derive(Default)]
struct Opened {
    libraries: BTreeMap<PathBuf, Pkcs11>,
    keys: BTreeMap<TokenUri, Arc<TokenKey>>,
}

static OPENED: Mutex<Opened> = Mutex::new(Opened { libraries: BTreeMap::new(), keys: BTreeMap::new() });

/// Why this does not work, before it is known of which key.
type What = String;

/// The key that `uri` names.
pub(super) fn open(uri: &TokenUri) -> Result<Arc<TokenKey>, TokenError> {
    with_session(uri, Pkcs11::open_ro_session, |session| {
        find(session, uri)?.ok_or_else(|| "the token has no Ed25519 key of that name".to_owned())
    })
}

/// The same, or one that the token makes and never gives out.
pub(super) fn open_or_make(uri: &TokenUri) -> Result<Arc<TokenKey>, TokenError> {
    with_session(uri, Pkcs11::open_rw_session, |session| match find(session, uri)? {
        Some(found) => Ok(found),
        None => make(session, uri).map_err(|error| format!("it cannot be made: {error}")),
    })
}

fn with_session(
    uri: &TokenUri,
    begin: impl FnOnce(&Pkcs11, Slot) -> Result<Session, Error>,
    key: impl FnOnce(&Session) -> Result<(ObjectHandle, [u8; 32]), What>,
) -> Result<Arc<TokenKey>, TokenError> {
    let mut opened = locked(&OPENED);
    if let Some(known) = opened.keys.get(uri) {
        return Ok(Arc::clone(known));
    }
    let open = || {
        let library = opened.module(&uri.module)?;
        let slot = slot_of(&library, uri)?;
        let session = begin(&library, slot).map_err(|error| error.to_string())?;
        log_in(&library, slot, &session, uri)?;
        let (key, public) = key(&session)?;
        Ok(Arc::new(TokenKey { uri: uri.clone(), public, key, session: Mutex::new(session) }))
    };
    let found = open().map_err(|what: What| TokenError { uri: uri.to_string(), what })?;
    found.check()?;
    opened.keys.insert(uri.clone(), Arc::clone(&found));
    Ok(found)
}

impl Opened {
    fn module(&mut self, path: &Path) -> Result<Pkcs11, What> {
        if let Some(known) = self.libraries.get(path) {
            return Ok(known.clone());
        }
        let library = Pkcs11::new(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let initialized = library.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK));
        initialized.map_err(|error| format!("{} does not begin: {error}", path.display()))?;
        self.libraries.insert(path.to_owned(), library.clone());
        Ok(library)
    }
}

fn slot_of(library: &Pkcs11, uri: &TokenUri) -> Result<Slot, What> {
    let slots = library.get_slots_with_initialized_token().map_err(|error| error.to_string())?;
    let is_meant = |slot: &Slot| library.get_token_info(*slot).is_ok_and(|info| info.label() == uri.token);
    let mut meant = slots.into_iter().filter(is_meant);
    let slot = meant.next().ok_or_else(|| format!("there is no token {:?}", uri.token))?;
    if meant.next().is_some() { Err(format!("there are several tokens {:?}", uri.token)) } else { Ok(slot) }
}

/// All sessions of a process are logged in to a token, or none (PKCS#11 3.0, section 5.6.8). Many
/// tokens are locked for good after three wrong PINs, so one that has heard a wrong one is tried by
/// nobody but a person.
fn log_in(library: &Pkcs11, slot: Slot, session: &Session, uri: &TokenUri) -> Result<(), What> {
    let pin = uri.pin_file.as_deref().map(pin).transpose()?;
    let info = library.get_token_info(slot).map_err(|error| error.to_string())?;
    if info.user_pin_count_low() || info.user_pin_final_try() || info.user_pin_locked() {
        let what =
            "the token has heard a wrong PIN; correct the file, and log in once by hand (pkcs11-tool --login -O)";
        return Err(what.to_owned());
    }
    match session.login(UserType::User, pin.as_ref()) {
        Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(()),
        Err(error) => Err(format!("it lets nobody in: {error}")),
    }
}

/// The first line of the file.
fn pin(file: &Path) -> Result<AuthPin, What> {
    let named = |what: &dyn fmt::Display| format!("{}: {what}", file.display());
    let mode = file.metadata().map_err(|error| named(&error))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(named(&"others may read the PIN; chmod 600"));
    }
    let text = files::read(file).map_err(|error| named(error.reason()))?;
    Ok(AuthPin::from(text.lines().next().unwrap_or_default().to_owned()))
}

/// Both halves of the key, if the token has it; more than one of a name is nobody's. A token with one
/// half gets no second pair of that name.
fn find(session: &Session, uri: &TokenUri) -> Result<Option<(ObjectHandle, [u8; 32])>, What> {
    let one = |class: ObjectClass| -> Result<Option<ObjectHandle>, What> {
        let label = Attribute::Label(uri.object.clone().into_bytes());
        let template = [Attribute::Class(class), Attribute::KeyType(KeyType::EC_EDWARDS), label];
        let found = session.find_objects(&template).map_err(|error| error.to_string())?;
        if found.len() > 1 {
            Err("the token has several keys of that name".to_owned())
        } else {
            Ok(found.first().copied())
        }
    };
    let (private, public) = (one(ObjectClass::PRIVATE_KEY)?, one(ObjectClass::PUBLIC_KEY)?);
    match (private, public) {
        (Some(private), Some(public)) => Ok(Some((private, point_of(session, public)?))),
        (None, None) => Ok(None),
        (Some(_), None) => Err("the token has no public half of that name; put it there".to_owned()),
        (None, Some(_)) => Err("the token has the public half of that name alone".to_owned()),
    }
}

fn make(session: &Session, uri: &TokenUri) -> Result<(ObjectHandle, [u8; 32]), What> {
    let label = || uri.object.clone().into_bytes();
    let named = || [Attribute::Token(true), Attribute::Label(label()), Attribute::Id(label())];
    let public = [Attribute::Private(false), Attribute::Verify(true), Attribute::EcParams(ED25519_OID.to_vec())];
    let private =
        [Attribute::Private(true), Attribute::Sensitive(true), Attribute::Extractable(false), Attribute::Sign(true)];
    let mechanism = Mechanism::EccEdwardsKeyPairGen;
    let (public, private) = (named().into_iter().chain(public), named().into_iter().chain(private));
    let (public, private) = (public.collect::<Vec<_>>(), private.collect::<Vec<_>>());
    let made = session.generate_key_pair(&mechanism, &public, &private);
    let (public, private) = made.map_err(|error| error.to_string())?;
    Ok((private, point_of(session, public)?))
}

/// A public key, which some tokens give without the head that the standard wants.
fn point_of(session: &Session, public: ObjectHandle) -> Result<[u8; 32], What> {
    let found = session.get_attributes(public, &[AttributeType::EcPoint]).map_err(|error| error.to_string())?;
    let point = found.into_iter().find_map(|one| if let Attribute::EcPoint(point) = one { Some(point) } else { None });
    let point = point.unwrap_or_default();
    let bytes = point.strip_prefix(&POINT_HEAD).unwrap_or(&point);
    bytes.try_into().map_err(|_| "its public half is none of Ed25519".to_owned())
}

impl TokenKey {
    pub(super) fn uri(&self) -> &TokenUri {
        &self.uri
    }

    pub(super) fn public(&self) -> &[u8] {
        &self.public
    }

    /// Whether it signs, with the half that fits to the public one.
    pub(super) fn check(&self) -> Result<(), TokenError> {
        const TEXT: &[u8] = b"ringwall: whether a token signs";
        let signature = self.sign(TEXT)?;
        let is_good = UnparsedPublicKey::new(&ED25519, &self.public).verify(TEXT, &signature).is_ok();
        let what = || "its public half does not fit to its private one".to_owned();
        is_good.then_some(()).ok_or_else(|| TokenError { uri: self.uri.to_string(), what: what() })
    }

    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, TokenError> {
        let mechanism = Mechanism::Eddsa(EddsaParams::new(EddsaSignatureScheme::Ed25519));
        let signed = locked(&self.session).sign(&mechanism, self.key, message);
        signed.map_err(|error| TokenError { uri: self.uri.to_string(), what: error.to_string() })
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
