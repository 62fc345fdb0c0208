//! Who may give the site's service orders (record 0108): one certificate for each name, kept as a
//! list. Who is not on the list is no operator, whatever certificate he shows.

use std::path::Path;
use std::time::Duration;

use identity::certificate::{OperatorCertificate, OperatorRequest, OperatorRole, Verified, utc_text};
use identity::pem;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{Directory, OPERATORS, Record, acts};
use crate::audit::{self, Act, FIRST_OF_HIS, Refusal};
use crate::files::{self, Overwrite, Secrecy, Staged};
use crate::limits::{BACKDATE, MAX_OPERATORS};
use crate::{Error, Random, Site};

/// An operator of the site.
#[derive(Clone, Debug)]
pub struct KnownOperator {
    /// The certificate that is his now.
    pub certificate: Verified<OperatorCertificate>,
    /// When he made the order that was carried out last, in Unix milliseconds; 0 before the first.
    pub last_order_unix_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    certificate: String,
    last_order_unix_ms: u64,
}

/// Serial number, and the second of issue, as the record's check wants them.
pub(super) fn issue_of(certificate: &OperatorCertificate) -> (u64, String) {
    (certificate.not_before_unix() + BACKDATE.as_secs(), certificate.serial_hex())
}

impl Record {
    /// All operators, by name, also those whose certificates are over.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub fn operators(&self) -> Result<Vec<KnownOperator>, Error> {
        let found = self.read(OPERATORS, |text| {
            let lines: Vec<Line> = serde_json::from_str(text).map_err(|_| Error::BadOperators)?;
            lines.iter().map(|line| self.operator(line)).collect::<Result<Vec<KnownOperator>, Error>>()
        });
        Ok(found?.unwrap_or_default())
    }

    fn operator(&self, line: &Line) -> Result<KnownOperator, Error> {
        let der = pem::single(&line.certificate, pem::CERTIFICATE)?;
        let certificate = self.anchor.verify_operator_whenever(&der).map_err(|_| Error::BadOperators)?;
        Ok(KnownOperator { certificate, last_order_unix_ms: line.last_order_unix_ms })
    }

    /// Whether the site has this operator now, by this certificate.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub fn has_operator(&self, certificate: &OperatorCertificate) -> Result<bool, Error> {
        Ok(self.operators()?.iter().any(|one| one.certificate.der() == certificate.der()))
    }
}

fn store(directory: &Directory, operators: &[KnownOperator]) -> Result<(), Error> {
    let line = |one: &KnownOperator| Line {
        certificate: pem::encode(pem::CERTIFICATE, one.certificate.der()).to_string(),
        last_order_unix_ms: one.last_order_unix_ms,
    };
    let lines: Vec<Line> = operators.iter().map(line).collect();
    let text = serde_json::to_string_pretty(&lines).map_err(|_| Error::BadOperators)?;
    files::write(&directory.path.join(OPERATORS), &format!("{text}\n"), Secrecy::Secret, Overwrite::Force)
}

/// Makes `name` an operator and writes the file for him (0600). Who has the name already gets other
/// keys, and those that he had are worth nothing.
///
/// # Errors
/// [`Error::TooManyOperators`]; what is wrong with name or period; or what the operating system
/// says. Then nothing has changed.
pub fn add_operator(
    directory: &Directory,
    (name, role): (&str, OperatorRole),
    validity: Duration,
    output: (&Path, Overwrite),
    random: &mut Random<'_>,
    unix_s: u64,
) -> Result<KnownOperator, Error> {
    enter(directory, name, (output, Secrecy::Secret), unix_s, |site| {
        site.issue_operator((name, role), validity, random, unix_s)
    })
}

/// The same for who has made his key himself. The file for him is no secret: his key is not in it.
///
/// # Errors
/// As [`add_operator`].
pub fn add_operator_by_request(
    directory: &Directory,
    (asked, role): (&OperatorRequest, OperatorRole),
    validity: Duration,
    output: (&Path, Overwrite),
    random: &mut Random<'_>,
    unix_s: u64,
) -> Result<KnownOperator, Error> {
    enter(directory, asked.name(), (output, Secrecy::Public), unix_s, |site| {
        site.issue_operator_for((asked, role), validity, random, unix_s)
    })
}

/// Issues, and puts who it is on the list in the place of who had his name.
fn enter(
    directory: &Directory,
    name: &str,
    ((output, overwrite), secrecy): ((&Path, Overwrite), Secrecy),
    unix_s: u64,
    issue: impl FnOnce(&Site) -> Result<(Verified<OperatorCertificate>, Zeroizing<String>), Error>,
) -> Result<KnownOperator, Error> {
    let _lock = directory.lock()?;
    let mut operators = Record::from(directory).operators()?;
    let before = operators.extract_if(.., |one| one.certificate.name() == name).next();
    if operators.len() >= MAX_OPERATORS {
        return Err(Error::TooManyOperators(MAX_OPERATORS));
    }
    let (certificate, file) = issue(&directory.site)?;
    let staged = Staged::new(output, &file, secrecy, overwrite)?;
    let until = utc_text(certificate.not_after_unix());
    let (serial, role) = (certificate.serial_hex(), certificate.role());
    let detail = format!("serial {serial} until {until}, {role}");
    acts::tell(directory, &[(Act::OperatorAdded, name, &detail)], unix_s)?;
    // An order that was recorded before stays worth nothing.
    let last_order_unix_ms = before.map_or(0, |one| one.last_order_unix_ms);
    let added = KnownOperator { certificate, last_order_unix_ms };
    operators.push(added.clone());
    operators.sort_by(|one, other| one.certificate.name().cmp(other.certificate.name()));
    store(directory, &operators)?;
    staged.commit()?;
    Ok(added)
}

/// Puts an operator out; no order of his is heard from now on.
///
/// # Errors
/// [`Error::NoOperator`], or what the operating system says.
pub fn remove_operator(directory: &Directory, name: &str, unix_s: u64) -> Result<(), Error> {
    let _lock = directory.lock()?;
    let mut operators = Record::from(directory).operators()?;
    let Some(removed) = operators.extract_if(.., |one| one.certificate.name() == name).next() else {
        return Err(Error::NoOperator(name.to_owned()));
    };
    let detail = format!("{}, serial {}", removed.certificate.role(), removed.certificate.serial_hex());
    acts::tell(directory, &[(Act::OperatorRemoved, name, &detail)], unix_s)?;
    store(directory, &operators)
}

/// Remembers that an order which `operator` made at `made_unix_ms` is about to be carried out;
/// whether it may be: he is still one, and has made none at that time or later. So a recorded order
/// is worth nothing, over restarts too.
///
/// # Errors
/// What is wrong with the list. Then it must not be carried out.
pub fn begin_order(directory: &Directory, operator: &OperatorCertificate, made_unix_ms: u64) -> Result<bool, Error> {
    let _lock = directory.lock()?;
    let mut operators = Record::from(directory).operators()?;
    let own = operators.iter_mut().find(|one| one.certificate.der() == operator.der());
    match own.filter(|own| made_unix_ms > own.last_order_unix_ms) {
        Some(own) => own.last_order_unix_ms = made_unix_ms,
        None => return Ok(false),
    }
    store(directory, &operators)?;
    Ok(true)
}

/// Counts an order that `operator` was refused: the command, and why with the whole order. It has
/// its place beside the record of what was done, where the first one of each operator is told of.
///
/// # Errors
/// What is wrong with the list or the file, or what the operating system says.
pub fn put_down_refused(
    directory: &Directory,
    operator: &OperatorCertificate,
    (command, detail): (&str, &str),
    unix_s: u64,
) -> Result<(), Error> {
    let _lock = directory.lock()?;
    let name = operator.name();
    let now = Record::from(directory).operators()?;
    let now: Vec<String> = now.iter().map(|one| one.certificate.name().to_owned()).collect();
    let by = audit::by_operator(operator.role(), name);
    let refusal = Refusal { operator: name, by: &by, command, detail };
    // A crash in between costs the entry. The other way round the entry would name a file that is
    // not there, as if somebody had taken it away.
    if audit::put_down((&directory.path, &directory.site), &refusal, unix_s)? {
        acts::tell(directory, &[(Act::OrderRefused, name, &format!("{FIRST_OF_HIS}{detail}"))], unix_s)?;
        // Last, so that nothing is lost where this refusal cannot be written.
        audit::make_room(&directory.path, name, &now)?;
    }
    Ok(())
}
