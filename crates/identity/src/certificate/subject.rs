//! The subject of a certificate: a name and a role.

use std::fmt;

use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Tag, Tagged};
use x509_cert::name::Name;

use super::{Refusal, Serial};
use crate::limits::MAX_NAME_LEN;
use crate::profile::Profile;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATIONAL_UNIT: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.11");

/// What a host may do; in its certificate, the subject's organizational unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Speaks for its own addresses only.
    Host,
    /// Also forwards what others sent, so its frames may carry foreign IP sources.
    Router,
    /// Also distributes keys (the AKD of the S-ARP paper), so its word about other hosts counts.
    Distributor,
    /// Also gives addresses to others (the S-DHCP of the S-ARP paper), so its DHCP replies count.
    DhcpServer,
}

impl Role {
    /// The word in certificates, on the command line and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Host => "host",
            Role::Router => "router",
            Role::Distributor => "akd",
            Role::DhcpServer => "dhcp",
        }
    }

    /// The role that is named so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Role> {
        [Role::Host, Role::Router, Role::Distributor, Role::DhcpServer].into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// X.520, section 6.2.9: in a certificate that was made from another one, that one's serial number.
const SERIAL_NUMBER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.5");
/// The same as the encoder of certificates wants it.
pub const SERIAL_NUMBER_ATTRIBUTE: &[u64] = &[2, 5, 4, 5];

/// The serial number, in hexadecimal digits, of the certificate from which the one of `subject` was made.
pub(super) fn template_serial(subject: &Name) -> Result<Serial, Refusal> {
    let malformed = Refusal::Malformed("serial number in the subject");
    let mut found = texts(subject, SERIAL_NUMBER);
    let (Some(digits), None) = (found.next(), found.next()) else { return Err(malformed) };
    let is_hex = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || !digits.len().is_multiple_of(2) {
        return Err(malformed);
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| malformed);
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect::<Result<_, _>>()?;
    Ok(Serial::of(&bytes))
}

/// The one common name of `subject`, short and free of control characters, because it ends up in logs.
pub(super) fn common_name(subject: &Name) -> Result<String, Refusal> {
    let mut found = texts(subject, COMMON_NAME);
    match (found.next(), found.next()) {
        (Some(name), None) if is_plain(name) => Ok(name.to_owned()),
        _ => Err(Refusal::Malformed("common name")),
    }
}

/// An authority whose unit says so makes a site of the paper profile.
pub const PAPER_SITE_UNIT: &str = "ringwall paper profile, not for real use";

/// The profile of an authority's site.
pub(super) fn profile(subject: &Name) -> Profile {
    let is_paper = texts_of_unit(subject).any(|unit| unit == PAPER_SITE_UNIT);
    if is_paper { Profile::Paper } else { Profile::Modern }
}

/// What the units of `subject` say.
pub(super) fn texts_of_unit(subject: &Name) -> impl Iterator<Item = &str> {
    texts(subject, ORGANIZATIONAL_UNIT)
}

/// Units that say something else belong to an existing directory of names and grant nothing.
pub(super) fn role(subject: &Name) -> Role {
    texts_of_unit(subject).find_map(Role::from_name).unwrap_or(Role::Host)
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_LEN && !name.chars().any(char::is_control)
}

/// The values of one attribute that are UTF-8, printable or IA5 strings, all of which are UTF-8 on the wire.
fn texts(subject: &Name, attribute: ObjectIdentifier) -> impl Iterator<Item = &str> {
    subject
        .iter()
        .filter(move |pair| pair.oid == attribute)
        .filter(|pair| matches!(pair.value.tag(), Tag::Utf8String | Tag::PrintableString | Tag::Ia5String))
        .filter_map(|pair| std::str::from_utf8(pair.value.value()).ok())
}
