//! The form of an entry's line, and of the head: JSON that is written in one way, so that no byte
//! can change unnoticed.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use identity::audit::Entry;
use serde::{Deserialize, Serialize};

use super::Kept;
use crate::Error;
use crate::limits::AUDIT_LINE_LEN;

/// Where the record ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The number of the last entry.
    pub(super) number: u64,
    /// Its digest.
    pub(super) digest: [u8; 32],
    /// How many bytes the newest file has with it.
    pub(super) length: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    number: u64,
    unix_s: u64,
    by: String,
    act: String,
    about: String,
    detail: String,
    before: String,
    signature: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadLine {
    number: u64,
    digest: String,
    length: u64,
}

/// Digits of a digest.
pub(super) fn digits(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of these digits.
pub(super) fn digest(digits: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(out)
}

/// The line of an entry, with its end.
pub(super) fn write_line(kept: &Kept) -> String {
    let Entry { number, unix_s, by, act, about, detail, before } = kept.entry.clone();
    let (before, signature) = (digits(&before), STANDARD.encode(&kept.signature));
    let line = Line { number, unix_s, by, act, about, detail, before, signature };
    // Text and numbers can always be written.
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// Reads what [`write_line`] wrote, without its end; nothing if it cannot have.
pub(super) fn read_line(line: &[u8]) -> Option<Kept> {
    if line.len() > AUDIT_LINE_LEN {
        return None;
    }
    let Line { number, unix_s, by, act, about, detail, before, signature } = serde_json::from_slice(line).ok()?;
    let before = digest(&before)?;
    let entry = Entry { number, unix_s, by, act, about, detail, before };
    let kept = Kept { entry, signature: STANDARD.decode(signature).ok()? };
    (write_line(&kept).as_bytes().strip_suffix(b"\n") == Some(line)).then_some(kept)
}

/// The head's file.
pub(super) fn write_head(head: &Head) -> String {
    let line = HeadLine { number: head.number, digest: digits(&head.digest), length: head.length };
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// Reads what [`write_head`] wrote; nothing where there is no file, or one that cannot be it.
///
/// # Errors
/// What the operating system says.
pub(super) fn read_head(file: &Path) -> Result<Option<Head>, Error> {
    if !file.exists() {
        return Ok(None);
    }
    let mut text = Vec::new();
    File::open(file)?.take(AUDIT_LINE_LEN as u64).read_to_end(&mut text)?;
    let read = || {
        let HeadLine { number, digest: digits, length } = serde_json::from_slice(&text).ok()?;
        let head = Head { number, digest: digest(&digits)?, length };
        (write_head(&head).as_bytes() == text).then_some(head)
    };
    Ok(read())
}
