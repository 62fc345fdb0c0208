//! What is granted without a manager's hand to who applies over the site's service.

use identity::certificate::Role;

use super::{Directory, Sharing};
use crate::enrolment::by_service::{Application, Believed, Outcome};
use crate::enrolment::number_text;
use crate::repository::enrolment::{self, Answer};
use crate::{Error, Random};

/// Enters who applies, and issues at once what a token was preapproved for: to a plain host, from
/// the hardware address that the token names. Everything else waits for the manager.
///
/// Each step is repeated without harm, so whoever hears no answer asks again.
///
/// # Errors
/// [`Error::NoApplication`], or what is wrong with the repository.
pub fn apply(
    directory: &Directory,
    application: &Application,
    random: &mut Random<'_>,
    unix_s: u64,
) -> Result<Outcome, Error> {
    let masters = directory.request_masters(random)?;
    let believed = application.believe(masters.iter().map(|(_, master)| master), unix_s)?;
    let Believed { number, applicant, has_installed } = believed;
    let store = directory.repository()?;
    let answer = enrolment::apply(&*store, number, &applicant, unix_s)?;
    match answer {
        Answer::Approved(_) if has_installed => Ok(enrolment::close(&*store, number, unix_s)?.into()),
        Answer::Waiting if is_decided(directory, number)? => {
            directory.approve(&number_text(number), None, Sharing::Refused, random, unix_s)?;
            Ok(enrolment::ask(&*store, number, unix_s)?.into())
        }
        answer => Ok(answer.into()),
    }
}

/// Whether a manager has said beforehand that whoever applies gets it. What is more than a host
/// is looked at by a manager all the same.
fn is_decided(directory: &Directory, number: u64) -> Result<bool, Error> {
    let found = directory.repository()?.enrolment(number)?;
    Ok(found.is_some_and(|one| one.preapproved && one.mac.is_some() && one.role == Role::Host))
}
