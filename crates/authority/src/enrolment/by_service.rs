//! Enrolment by token over the site's service: what a machine sends, which the holder of the site's
//! request masters believes by its tag, and what it hears.
//!
//! It is what distributors are asked in S-ARP (docs/protocol.md, section 15), as JSON. The service
//! itself has none of the keys: it hands both on.

use identity::distributor::RequestMaster;
use identity::token::{Token, TokenKey};
use serde::{Deserialize, Serialize};
use wire::MacAddress;

use super::by_token::Applying;
use super::number_text;
use crate::Error;
use crate::repository::encoded::Bytes;
use crate::repository::enrolment::{Answer, Applicant};

/// Separates what is tagged from what is tagged with the same key in frames.
const LABEL: &[u8] = b"ringwall enrolment by service 1";
/// Longest application that is read, in bytes of JSON: a request has some hundred.
pub const APPLICATION_LEN_MAX: usize = 8 << 10;

/// What a machine sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    number: u64,
    mac: String,
    sealing_key: Bytes,
    request: Bytes,
    /// Its identity is on its disk, and may be forgotten here.
    has_installed: bool,
    tag: Bytes,
}

/// An application whose sender has the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Believed {
    /// The number of the token.
    pub number: u64,
    /// Who applies.
    pub applicant: Applicant,
    /// Its identity is on its disk.
    pub has_installed: bool,
}

impl Application {
    /// That of the machine whose interface is `mac`.
    #[must_use]
    pub fn new(token: &Token, applying: &Applying, mac: MacAddress, has_installed: bool) -> Application {
        let mut made = Application {
            number: token.number(),
            mac: mac.to_string(),
            sealing_key: Bytes(applying.sealing_key().to_vec()),
            request: Bytes(applying.request().to_vec()),
            has_installed,
            tag: Bytes(Vec::new()),
        };
        made.tag = Bytes(token.key().request_tag(&made.tagged_bytes()).to_vec());
        made
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`Error::NoApplication`].
    pub fn parse(bytes: &[u8]) -> Result<Application, Error> {
        let read = (bytes.len() <= APPLICATION_LEN_MAX).then(|| serde_json::from_slice(bytes).ok());
        read.flatten().ok_or(Error::NoApplication)
    }

    /// The number of the token that it names, as managers see it; nobody has looked at the tag.
    #[must_use]
    pub fn token(&self) -> String {
        number_text(self.number)
    }

    fn tagged_bytes(&self) -> Vec<u8> {
        let mut bytes = LABEL.to_vec();
        bytes.extend(self.number.to_be_bytes());
        bytes.push(u8::from(self.has_installed));
        for part in [self.mac.as_bytes(), &self.sealing_key.0, &self.request.0] {
            bytes.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }

    /// What it says, if its sender has a token of one of these masters.
    ///
    /// # Errors
    /// [`Error::NoApplication`].
    pub fn believe<'a>(
        &self,
        mut masters: impl Iterator<Item = &'a RequestMaster>,
        unix_s: u64,
    ) -> Result<Believed, Error> {
        let bytes = self.tagged_bytes();
        if !masters.any(|master| TokenKey::from_master(master, self.number).verify_request(&bytes, &self.tag.0)) {
            return Err(Error::NoApplication);
        }
        let mac = self.mac.parse().map_err(|_| Error::NoApplication)?;
        let sealing_key = self.sealing_key.0.as_slice().try_into().map_err(|_| Error::NoApplication)?;
        let applicant = Applicant { mac, sealing_key, request: self.request.0.clone(), asked_unix_s: unix_s };
        Ok(Believed { number: self.number, applicant, has_installed: self.has_installed })
    }
}

/// What it hears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The manager has not decided.
    Waiting,
    /// The identity, sealed for the machine.
    Approved(Sealed),
    /// The manager has refused.
    Refused,
    /// The identity was fetched.
    Fetched,
    /// The token is over, or was replaced.
    NotOpen,
    /// Somebody has applied with another key.
    OtherKey,
    /// The token is for another hardware address.
    OtherMac,
    /// The request is none, or asks for what the token is not for.
    BadRequest,
}

/// An identity that only its host can open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sealed(Bytes);

impl Sealed {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0.0
    }
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Outcome {
        match answer {
            Answer::Waiting => Outcome::Waiting,
            Answer::Approved(sealed) => Outcome::Approved(Sealed(Bytes(sealed))),
            Answer::Refused => Outcome::Refused,
            Answer::Fetched => Outcome::Fetched,
            Answer::NotOpen | Answer::NotApplied => Outcome::NotOpen,
            Answer::OtherKey => Outcome::OtherKey,
            Answer::OtherMac => Outcome::OtherMac,
            Answer::BadRequest => Outcome::BadRequest,
        }
    }
}
