//! Many hosts at once: tokens in files or in a table, and approval of those that a manager has
//! approved beforehand.
//!
//! The authority's key stays where it is, so somebody has to be there who has it when a host
//! applies: the certificate is for a key that the host makes then. `site approve --watch` is that
//! somebody (record 0083).

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use authority::directory::{Application, Invitation, Sharing, number_text};
use authority::files::{self, Overwrite, Secrecy, Staged};
use authority::repository::enrolment::Progress;
use identity::certificate::utc_text;
use identity::token::Token;
use serde_json::{Value, json};
use system::clock::Clock;

use super::Surroundings;
use super::listing::{entry_json, entry_text};
use crate::failure::Failure;
use crate::output::complain;

/// How often `site approve --watch` looks who has applied. A host asks every two seconds.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Writes a file for each token, all or none.
pub(super) fn write_files(
    place: &Path,
    tokens: &[(&Invitation, &Token)],
    as_json: bool,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(place);
    made.map_err(|error| Failure::file(place, error, "name another directory"))?;
    let mut staged = Vec::new();
    let mut told = Vec::new();
    for (invitation, token) in tokens {
        let file = place.join(format!("{}.token", invitation.name));
        let text = format!("{}\n", *token.to_text());
        // One that is there belongs to an earlier token of the same name, which serves no more.
        staged.push(Staged::new(&file, &text, Secrecy::Secret, Overwrite::Force)?);
        told.push(json!({"name": invitation.name, "number": number_text(token.number()), "file": file}));
    }
    staged.into_iter().try_for_each(Staged::commit)?;
    let text = format!("{} tokens are in {}; {}", tokens.len(), place.display(), next(tokens, surroundings));
    surroundings.print(as_json, &Value::Array(told), &text)
}

/// Writes all tokens to one table.
pub(super) fn write_table(
    file: &Path,
    tokens: &[(&Invitation, &Token)],
    as_json: bool,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let broken = |error: csv::Error| Failure::new(format!("the table: {error}"));
    writer.write_record(["name", "mac", "ip", "token"]).map_err(broken)?;
    for (invitation, token) in tokens {
        let mac = invitation.mac.map(|mac| mac.to_string()).unwrap_or_default();
        let addresses: Vec<String> = invitation.addresses.iter().map(ToString::to_string).collect();
        let fields = [invitation.name.as_str(), &mac, &addresses.join(" "), &token.to_text()];
        writer.write_record(fields).map_err(broken)?;
    }
    let bytes = writer.into_inner().map_err(|error| Failure::new(format!("the table: {error}")))?;
    files::write(file, &String::from_utf8_lossy(&bytes), Secrecy::Secret, Overwrite::Force)?;
    let text = format!("{} tokens are in {}; {}", tokens.len(), file.display(), next(tokens, surroundings));
    surroundings.print(as_json, &json!({"file": file, "tokens": tokens.len()}), &text)
}

fn next(tokens: &[(&Invitation, &Token)], surroundings: &Surroundings<'_>) -> String {
    let valid = tokens.first().map_or(Duration::ZERO, |(invitation, _)| invitation.valid);
    let until = utc_text(surroundings.unix_s.saturating_add(valid.as_secs()));
    let are_approved = tokens.iter().all(|(invitation, _)| invitation.preapproved);
    let approve =
        if are_approved { "ringwall site approve --watch" } else { "ringwall site pending, ringwall site approve" };
    format!(
        "they are secret, and good once until {until}\non each host: ringwall join --token-file FILE\nhere: {approve}"
    )
}

/// Approves whoever applies with a token that was approved beforehand, once or until it is ended.
pub(super) fn approve(
    dir: &Path,
    sharing: Sharing,
    is_watching: bool,
    as_json: bool,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), Failure> {
    let mut refused = BTreeSet::new();
    let mut approved = 0;
    loop {
        approved += approve_once(dir, sharing, as_json, surroundings, &mut refused)?;
        if !is_watching {
            break;
        }
        std::thread::sleep(WATCH_INTERVAL);
        // Certificates begin now, not when the watch began.
        surroundings.unix_s = Clock::new().now().wall.map_or(surroundings.unix_s, |wall| wall.unix_ms / 1000);
    }
    if approved == 0 && !as_json {
        surroundings.print(false, &Value::Null, "nobody who is approved beforehand waits")?;
    }
    match refused.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} could not be approved; see above"))),
    }
}

/// What one of them cannot be given, named once, holds up no other.
fn approve_once(
    dir: &Path,
    sharing: Sharing,
    as_json: bool,
    surroundings: &mut Surroundings<'_>,
    refused: &mut BTreeSet<u64>,
) -> Result<usize, Failure> {
    let directory = surroundings.open(dir)?;
    let waits = |one: &Application| {
        let enrolment = &one.enrolment;
        enrolment.preapproved && matches!(enrolment.progress, Progress::AwaitsManager(_))
    };
    let waiting: Vec<Application> = directory.applications(surroundings.unix_s)?.into_iter().filter(waits).collect();
    let mut count = 0;
    for application in waiting.iter().filter(|one| !refused.contains(&one.enrolment.number)).collect::<Vec<_>>() {
        let number = application.enrolment.number;
        let Surroundings { unix_s, random, .. } = surroundings;
        match directory.approve(&number_text(number), None, sharing, *random, *unix_s) {
            Ok(entry) => {
                count += 1;
                let shown = application.applicant.as_ref().map_or("", |asked| asked.fingerprint.as_str());
                let text = format!("approved {}, fingerprint {shown}", entry_text(&entry));
                surroundings.print(as_json, &entry_json(&entry), &text)?;
            }
            Err(error) => {
                complain(format_args!("{}: {error}", application.enrolment.name));
                refused.insert(number);
            }
        }
    }
    Ok(count)
}
