//! Enrolment over the site's service: the machine has an address already, and asks over TLS in the
//! place of frames. The token says which authority is believed, and what is sent has its tag.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

use authority::enrolment::by_service::{Application, Outcome};
use authority::enrolment::by_token::Applying;
use authority::files::{self, Overwrite, Secrecy};
use identity::HostIdentity;
use identity::tls::Service;
use identity::token::Token;
use wire::sarp::enrolment::State;

use super::{Manner, Place, SILENT_TRIES, SILENT_TRIES_MAX, ended, say_applied};
use crate::failure::Failure;
use crate::output::complain;
use crate::report::{ENROLMENT_PATH, Proof, Way};

/// How often it is asked.
const EVERY: Duration = Duration::from_secs(1);
/// How often the service is told that it may forget the identity; it forgets it after a day anyhow.
const TOLD_MAX: u32 = 3;
/// What HTTP says to who will hear nothing else.
const FORBIDDEN: u16 = 403;

/// Applies, waits for the manager if it must, and puts the identity down.
pub(super) fn enrol(
    place: &mut Place,
    applying: &Applying,
    address: SocketAddr,
    (manner, token): (&Manner, &Token),
    overwrite: Overwrite,
) -> Result<HostIdentity, Failure> {
    let way = Way { address, service: Service::At(address.ip()), proof: Proof::Token(token.clone()) };
    let end = place.clock.now().since_boot + manner.timeout;
    let (mut has_applied, mut silent) = (false, 0);
    loop {
        match ask(&way, &Application::new(token, applying, place.card.mac, false)) {
            Ok(Outcome::Approved(sealed)) => {
                let unix_s = place.clock.now().trusted_unix_ms().map_or(0, |unix_ms| unix_ms / 1000);
                let (text, identity) = applying.install(token, sealed.bytes(), unix_s)?;
                files::write(&place.out, &text, Secrecy::Secret, overwrite)?;
                tell_installed(&way, &Application::new(token, applying, place.card.mac, true));
                return Ok(identity);
            }
            Ok(Outcome::Waiting) if !has_applied => {
                has_applied = true;
                say_applied(applying, token);
            }
            Ok(Outcome::Waiting) => {}
            Ok(outcome) => return Err(ended(place, state_of(&outcome))),
            Err(Trouble::ForGood(failure)) => return Err(failure),
            Err(Trouble::Now(failure)) => {
                silent += 1;
                if silent == SILENT_TRIES {
                    complain(format_args!("{failure}. Still asking"));
                }
                if manner.ends_in_silence && !has_applied && silent >= SILENT_TRIES_MAX {
                    return Err(failure);
                }
            }
        }
        if place.clock.now().since_boot >= end {
            return Err(too_late(place, token));
        }
        sleep(EVERY);
    }
}

/// Why there was no answer.
enum Trouble {
    /// It may be over soon.
    Now(Failure),
    ForGood(Failure),
}

fn ask(way: &Way, application: &Application) -> Result<Outcome, Trouble> {
    let body = serde_json::to_vec(application).map_err(|error| Trouble::ForGood(Failure::new(error)))?;
    let (status, answer) = way.answer(ENROLMENT_PATH, Some(&body)).map_err(Trouble::Now)?;
    match (status, serde_json::from_slice(&answer)) {
        (200, Ok(outcome)) => Ok(outcome),
        (FORBIDDEN, _) => Err(Trouble::ForGood(way.refused(status, &answer))),
        _ => Err(Trouble::Now(way.refused(status, &answer))),
    }
}

/// It need not hear of it: the identity is there.
fn tell_installed(way: &Way, application: &Application) {
    for _ in 0..TOLD_MAX {
        sleep(EVERY);
        if ask(way, application).is_ok() {
            return;
        }
    }
}

fn state_of(outcome: &Outcome) -> State {
    match outcome {
        Outcome::Waiting => State::Waiting,
        Outcome::Approved(_) => State::Approved,
        Outcome::Refused => State::Refused,
        Outcome::Fetched => State::Fetched,
        Outcome::NotOpen => State::NotOpen,
        Outcome::OtherKey => State::OtherKey,
        Outcome::OtherMac => State::OtherMac,
        Outcome::BadRequest => State::BadRequest,
    }
}

fn too_late(place: &Place, token: &Token) -> Failure {
    let kept = place.kept.display();
    let again = format!("run it again with the same token to go on; its keys are kept in {kept}");
    Failure::new(format!("{}: not enrolled by the site's service in the time given; {again}", token.name()))
}
