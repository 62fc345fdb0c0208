//! What operators order of the site's service (record 0108): commands of `ringwall site`, under the
//! operator's own signature.
//!
//! The door hands an order on and can make none up. The keeper, which has no key of the site,
//! answers what only looks. The signer does the rest, and looks at signature, role and time by
//! itself.
//!
//! - `terms.rs`: which command needs which role, and who carries it out.
//! - `undoing.rs`: what needs a manager because a manager has decided it before.

mod terms;
#[cfg(test)]
mod tests;
mod undoing;

use std::path::Path;
use std::time::Duration;

use authority::Error;
use authority::audit::by_operator;
use authority::directory::{Cache, Directory, Record};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{CommandFactory as _, Parser};
use identity::certificate::{OperatorCertificate, OperatorRole, TrustAnchor};
use identity::order::{SignedOrder, open_answer, seal_answer};
use identity::{Verified, sealing};
use serde::{Deserialize, Serialize};

use super::enforcing::Step;
use super::{Actor, SiteCommand, Surroundings, enforcing};
use crate::failure::Failure;
use crate::randomness;
use crate::report::forecast::millis;

pub(super) use terms::{Place, Terms, terms};

/// How far the clocks of operator and site may be apart.
const APART_MAX: Duration = Duration::from_secs(5 * 60);
/// Longest text that is printed, in bytes.
const PRINTED_MAX: usize = 4 << 20;
/// Longest answer: that text in JSON, sealed, in base64.
pub(crate) const ANSWER_BYTES_MAX: u64 = 3 * PRINTED_MAX as u64;

/// The words of a command of `ringwall site`, without these two.
#[derive(Parser)]
#[command(name = "ringwall operate", no_binary_name = true)]
struct Line {
    #[command(subcommand)]
    command: SiteCommand,
}

/// What is ordered.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) made_unix_ms: u64,
    /// What the answer is sealed to.
    pub(super) answer_key: [u8; sealing::KEY_LEN],
    pub(super) words: Vec<String>,
    /// How far it goes, if it is one of several steps.
    pub(super) step: Option<Step>,
}

/// What came of it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Outcome {
    pub(super) printed: String,
    /// Why it was not done, or not to its end.
    pub(super) failure: Option<String>,
}

/// Why an order is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum NotHeard {
    /// It is no order, or of a command that is not there.
    Malformed,
    /// It is not signed by an operator of the site.
    Signature,
    /// The site has put him out, or given him other keys.
    Removed,
    /// It was made at another time than now.
    Time,
    /// It was carried out before, or one that was made later.
    Again,
    /// What it orders is done at the authority's machine alone.
    Elsewhere,
    /// Its operator's role does not reach so far.
    Role,
}

impl NotHeard {
    pub(super) const ALL: [NotHeard; 7] = [
        NotHeard::Malformed,
        NotHeard::Signature,
        NotHeard::Removed,
        NotHeard::Time,
        NotHeard::Again,
        NotHeard::Elsewhere,
        NotHeard::Role,
    ];

    /// Its word in counters and answers.
    pub(super) fn word(self) -> &'static str {
        match self {
            NotHeard::Malformed => "order-malformed",
            NotHeard::Signature => "order-signature",
            NotHeard::Removed => "order-removed",
            NotHeard::Time => "order-time",
            NotHeard::Again => "order-again",
            NotHeard::Elsewhere => "order-elsewhere",
            NotHeard::Role => "order-role",
        }
    }
}

/// Reads the words of a command; why they are none.
pub(super) fn parse(words: &[String]) -> Result<SiteCommand, clap::Error> {
    Line::try_parse_from(words).map(|line| line.command)
}

/// An order of an operator whom the site has.
pub(super) struct Heard {
    pub(super) operator: Verified<OperatorCertificate>,
    pub(super) order: Order,
    /// As it was signed.
    text: Vec<u8>,
    pub(super) command: SiteCommand,
    pub(super) place: Place,
    pub(super) needs: OperatorRole,
}

/// Reads an order and looks whether its operator is one, now. Whether he may is for the caller.
pub(super) fn hear(record: &Record, order_pem: &str, unix_ms: u64) -> Result<Heard, NotHeard> {
    let signed = SignedOrder::from_pem(order_pem).map_err(|_| NotHeard::Malformed)?;
    let operator = record.anchor().verify_order(&signed, unix_ms / 1000).map_err(|_| NotHeard::Signature)?;
    // A list that cannot be read has nobody on it.
    if !record.has_operator(&operator).unwrap_or(false) {
        return Err(NotHeard::Removed);
    }
    let order: Order = serde_json::from_slice(&signed.order).map_err(|_| NotHeard::Malformed)?;
    if order.made_unix_ms.abs_diff(unix_ms) > millis(APART_MAX) {
        return Err(NotHeard::Time);
    }
    let mut command = parse(&order.words).map_err(|_| NotHeard::Malformed)?;
    let terms = terms(&mut command, order.step.as_ref());
    let (place, needs) = terms.map_or((Place::Elsewhere, OperatorRole::Manager), |terms| (terms.place, terms.needs));
    Ok(Heard { operator, order, text: signed.order, command, place, needs })
}

impl Heard {
    /// None where its operator may order it, and somebody does it.
    pub(super) fn refusal(&self) -> Option<NotHeard> {
        match self.place {
            Place::Elsewhere => Some(NotHeard::Elsewhere),
            _ if self.operator.role() < self.needs => Some(NotHeard::Role),
            Place::Keeper | Place::SignerLooks | Place::SignerActs => None,
        }
    }

    /// Its operator, as the one who acts.
    pub(super) fn actor(&self, cache: &Cache) -> Actor {
        let by = by_operator(self.operator.role(), self.operator.name());
        Actor { by, cache: cache.clone() }
    }

    /// Has it need a manager if it would undo what one has done. Who carries it out asks this with
    /// the site as it is then.
    pub(super) fn look_before(&mut self, site: &Directory, unix_s: u64) -> Result<(), Error> {
        let may_undo = self.place == Place::SignerActs && self.needs < OperatorRole::Manager;
        if may_undo && self.operator.role() < OperatorRole::Manager && undoing::undoes(site, &self.command, unix_s)? {
            self.needs = OperatorRole::Manager;
        }
        Ok(())
    }

    /// What was ordered, in a line.
    pub(super) fn in_words(&self) -> String {
        self.order.words.join(" ")
    }

    /// Its command without arguments, as "policy mode". There are as many as the program declares,
    /// whatever an operator writes.
    pub(super) fn command_name(&self) -> String {
        let Ok(parsed) = Line::command().try_get_matches_from(&self.order.words) else { return String::new() };
        let mut names = Vec::new();
        let mut within = parsed.subcommand();
        while let Some((name, further)) = within {
            names.push(name);
            within = further.subcommand();
        }
        names.join(" ")
    }

    /// Carries it out with the site in `dir`, of which `cache` has what was read before, and seals what
    /// came of it for who ordered it. What the signer did is signed as well: everybody can seal.
    pub(super) fn carry_out(mut self, dir: &Path, cache: &Cache, unix_ms: u64) -> Result<String, Failure> {
        let mut secrets = randomness::secrets()?;
        let mut random = |bytes: &mut [u8]| secrets.fill(bytes);
        let actor = self.actor(cache);
        let mut output = Vec::new();
        let unix_s = unix_ms / 1000;
        let mut surroundings = Surroundings { unix_s, random: &mut random, output: &mut output, actor, person: None };
        if let Some(Terms { dir: named, .. }) = terms(&mut self.command, self.order.step.as_ref()) {
            dir.clone_into(named);
        }
        let done = match (self.command, &self.order.step) {
            (SiteCommand::Enforce(arguments), Some(step)) => enforcing::step(&arguments, step, &mut surroundings),
            (command, _) => command.run_in(&mut surroundings),
        };
        let failure = done.err().map(|failure| failure.to_string());
        let outcome = if output.len() > PRINTED_MAX {
            let failure = Some(format!("there is more to print than {} MiB", PRINTED_MAX >> 20));
            Outcome { printed: String::new(), failure }
        } else {
            Outcome { printed: String::from_utf8_lossy(&output).into_owned(), failure }
        };
        let text = serde_json::to_vec(&outcome).map_err(Failure::new)?;
        let signature = match self.place {
            Place::Keeper | Place::Elsewhere => Vec::new(),
            Place::SignerLooks | Place::SignerActs => Directory::open(dir)?.site().sign_answer(&self.text, &text)?,
        };
        let length = u16::try_from(signature.len()).map_err(Failure::new)?.to_be_bytes();
        let answer = [&length[..], &signature, &text].concat();
        let sealed = seal_answer(&self.order.answer_key, &self.text, &answer).map_err(Failure::new)?;
        Ok(STANDARD.encode(sealed))
    }
}

/// Whether the answer to these words is the keeper's, which has no key to sign it with.
pub(super) fn is_for_keeper(words: &[String], step: Option<&Step>) -> bool {
    let command = parse(words).ok();
    command.is_some_and(|mut command| terms(&mut command, step).is_some_and(|terms| terms.place == Place::Keeper))
}

/// Opens the answer to the order `text`, which has to be signed by `authority` if one is given.
pub(super) fn open(
    private: &[u8; sealing::KEY_LEN],
    text: &[u8],
    answer: &[u8],
    authority: Option<&TrustAnchor>,
) -> Option<Outcome> {
    let sealed = STANDARD.decode(answer).ok()?;
    let opened = open_answer(private, text, &sealed).ok()?;
    let (length, rest) = opened.split_first_chunk()?;
    let (signature, outcome) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    if let Some(authority) = authority {
        authority.verify_answer(text, outcome, signature).ok()?;
    }
    serde_json::from_slice(outcome).ok()
}
