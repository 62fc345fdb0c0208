//! Which key of which token: a URI as RFC 7512 has it, of which this reads what tells one key.

use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const SCHEME: &str = "pkcs11:";
/// Where a token in files keeps them: an attribute of a vendor, as section 2.4 allows them.
const FILES: &str = "x-files";

/// A key in a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenUri {
    /// Label of the token.
    pub token: String,
    /// Label of the key.
    pub object: String,
    /// The library that leads to the token.
    pub module: PathBuf,
    /// A file that has the PIN and nothing else; none where the token asks for it by itself.
    pub pin_file: Option<PathBuf>,
    /// A directory that the library writes in, for a token that is no hardware.
    pub files: Option<PathBuf>,
}

/// Why a URI names no key that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadUri {
    /// It does not begin as one.
    Scheme,
    /// It has an attribute twice, or one without a value.
    Repeated(String),
    /// An attribute that is not known here: another key might be meant than the one that is found.
    Unknown(String),
    /// One without which it does not tell a key.
    Missing(&'static str),
    /// A PIN in the URI, where everybody reads it.
    PinValue,
    /// A path that is not whole, or a sign that cannot be.
    Malformed(String),
}

impl fmt::Display for BadUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadUri::Scheme => f.write_str("it does not begin with pkcs11:"),
            BadUri::Repeated(name) => write!(f, "{name} is there twice or empty"),
            BadUri::Unknown(name) => write!(f, "{name} is not known here; leave it out"),
            BadUri::Missing(name) => write!(f, "it has no {name}"),
            BadUri::PinValue => f.write_str("pin-value is for everybody to read; put the PIN into a file (pin-source)"),
            BadUri::Malformed(name) => write!(f, "{name} is malformed"),
        }
    }
}

impl std::error::Error for BadUri {}

impl TokenUri {
    /// Whether somebody meant a URI by this text.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.trim_start().starts_with(SCHEME)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), BadUri> {
        let whole = |text: &str| whole_path(text).ok_or_else(|| BadUri::Malformed(name.to_owned()));
        match name {
            "token" => self.token = value,
            "object" => self.object = value,
            "module-path" => self.module = whole(&value)?,
            FILES => self.files = Some(whole(&value)?),
            "pin-source" => self.pin_file = Some(whole(value.strip_prefix("file:").unwrap_or(&value))?),
            "pin-value" => return Err(BadUri::PinValue),
            // It says what is looked for anyhow.
            "type" if value == "private" => {}
            _ => return Err(BadUri::Unknown(name.to_owned())),
        }
        Ok(())
    }
}

impl FromStr for TokenUri {
    type Err = BadUri;

    fn from_str(text: &str) -> Result<TokenUri, BadUri> {
        let rest = text.strip_prefix(SCHEME).ok_or(BadUri::Scheme)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let attributes = path.split(';').chain(query.split('&')).filter(|attribute| !attribute.is_empty());
        let (mut uri, mut seen) = (TokenUri::default(), Vec::new());
        for attribute in attributes {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            if value.is_empty() || seen.contains(&name) {
                return Err(BadUri::Repeated(name.to_owned()));
            }
            seen.push(name);
            uri.set(name, decoded(value).ok_or_else(|| BadUri::Malformed(name.to_owned()))?)?;
        }
        for (name, is_missing) in [
            ("token", uri.token.is_empty()),
            ("object", uri.object.is_empty()),
            ("module-path", uri.module.as_os_str().is_empty()),
        ] {
            if is_missing {
                return Err(BadUri::Missing(name));
            }
        }
        Ok(uri)
    }
}

impl fmt::Display for TokenUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoded_path = |path: &Path| encoded(&path.to_string_lossy());
        write!(f, "{SCHEME}token={};object={}", encoded(&self.token), encoded(&self.object))?;
        write!(f, "?module-path={}", encoded_path(&self.module))?;
        if let Some(file) = &self.pin_file {
            write!(f, "&pin-source=file:{}", encoded_path(file))?;
        }
        self.files.as_deref().map_or(Ok(()), |files| write!(f, "&{FILES}={}", encoded_path(files)))
    }
}

/// A path that leads somewhere, and that a setting of systemd can have.
fn whole_path(text: &str) -> Option<PathBuf> {
    let is_plain = !text.chars().any(|one| one.is_control() || matches!(one, '"' | '\\'));
    Some(PathBuf::from(text)).filter(|path| is_plain && path.is_absolute() && path.parent().is_some())
}

/// RFC 3986, section 2.1; nothing if it is not that, or no text.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte if byte.is_ascii_graphic() => byte,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => encoded.push(byte.into()),
            // A string takes whatever is written.
            byte => write!(encoded, "%{byte:02X}").unwrap_or_default(),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TokenUri, BadUri> {
        text.parse()
    }

    #[test]
    fn a_uri_tells_a_key_and_is_written_as_it_is_read() {
        let text = "pkcs11:token=my%20token;object=lab?module-path=/usr/lib/m.so&pin-source=file:/etc/pin&x-files=/v";
        let uri = read(text).expect("one");
        assert_eq!((&*uri.token, &*uri.object, &*uri.module), ("my token", "lab", Path::new("/usr/lib/m.so")));
        assert_eq!((uri.pin_file.as_deref(), uri.files.as_deref()), (Some("/etc/pin".as_ref()), Some("/v".as_ref())));
        assert_eq!(uri.to_string(), text);
        let short = read("pkcs11:type=private;object=b;token=a?pin-source=/pin&module-path=/m").expect("one");
        assert_eq!(short.to_string(), "pkcs11:token=a;object=b?module-path=/m&pin-source=file:/pin");
        let odd = TokenUri { token: "a;b?c=d&%é".to_owned(), ..short };
        assert_eq!(read(&odd.to_string()), Ok(odd));
    }

    #[test]
    fn what_might_mean_another_key_or_shows_the_pin_is_refused() {
        let good = "pkcs11:token=a;object=b?module-path=/m";
        for (text, wanted) in [
            ("pkcs12:token=a".to_owned(), BadUri::Scheme),
            ("pkcs11:object=b?module-path=/m".to_owned(), BadUri::Missing("token")),
            ("pkcs11:token=a?module-path=/m".to_owned(), BadUri::Missing("object")),
            ("pkcs11:token=a;object=b".to_owned(), BadUri::Missing("module-path")),
            ("pkcs11:token=a;token=c;object=b?module-path=/m".to_owned(), BadUri::Repeated("token".to_owned())),
            ("pkcs11:token=;object=b?module-path=/m".to_owned(), BadUri::Repeated("token".to_owned())),
            ("pkcs11:token=a;serial=7;object=b?module-path=/m".to_owned(), BadUri::Unknown("serial".to_owned())),
            ("pkcs11:type=cert;token=a;object=b?module-path=/m".to_owned(), BadUri::Unknown("type".to_owned())),
            (format!("{good}&pin-value=1234"), BadUri::PinValue),
            (format!("{good}&pin-source=pin"), BadUri::Malformed("pin-source".to_owned())),
            (format!("{good}&pin-source=http://pins"), BadUri::Malformed("pin-source".to_owned())),
            (format!("{good}&x-files=v"), BadUri::Malformed("x-files".to_owned())),
            (format!("{good}&x-files=/"), BadUri::Malformed("x-files".to_owned())),
            (format!("{good}&x-files=/v%0AUser=x"), BadUri::Malformed("x-files".to_owned())),
            (format!("{good}&pin-source=/v%22"), BadUri::Malformed("pin-source".to_owned())),
            ("pkcs11:token=%4;object=b?module-path=/m".to_owned(), BadUri::Malformed("token".to_owned())),
            ("pkcs11:token=%00;object=b?module-path=/m".to_owned(), BadUri::Malformed("token".to_owned())),
            ("pkcs11:token=a b;object=b?module-path=/m".to_owned(), BadUri::Malformed("token".to_owned())),
        ] {
            assert_eq!(read(&text), Err(wanted), "{text}");
        }
    }
}
