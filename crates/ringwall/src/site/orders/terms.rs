//! Which command of `ringwall site` is done over the service, by which process, and who may order
//! it. The table in docs/manual/site.md says the same; a test compares them.

use std::path::PathBuf;

use identity::certificate::OperatorRole::{self, Manager, Operator, Viewer};
use identity::certificate::Role;

use super::super::SiteCommand;
use super::super::auditing::{AuditCommand, WITHIN};
use super::super::enforcing::Step;
use super::super::policy::{ExceptionCommand, KnownCommand, LegacyCommand, PolicyCommand};

/// Who carries an order out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::site) enum Place {
    /// The keeper, which has no key of the site.
    Keeper,
    /// The signer, which only looks.
    SignerLooks,
    /// The signer, which changes something.
    SignerActs,
    /// Nobody: the signer puts down that it was ordered.
    Elsewhere,
}

/// On which terms a command is done over the service.
pub(in crate::site) struct Terms<'a> {
    pub(in crate::site) place: Place,
    pub(in crate::site) needs: OperatorRole,
    /// Where the site is kept, which is the service's to say.
    pub(in crate::site) dir: &'a mut PathBuf,
}

/// The terms of a command; none for what is done at the authority's machine alone: what reads or
/// writes files there, what makes keys, and who is an operator.
pub(in crate::site) fn terms<'a>(command: &'a mut SiteCommand, step: Option<&Step>) -> Option<Terms<'a>> {
    let may = |place, needs, dir| Some(Terms { place, needs, dir });
    match command {
        // Both read every certificate that the site has ever issued, and the clerk has nothing signed
        // meanwhile.
        SiteCommand::List(one) if one.all => None,
        SiteCommand::List(one) => may(Place::Keeper, Viewer, &mut one.dir),
        SiteCommand::Hosts(one) => may(Place::Keeper, Viewer, &mut one.dir),
        SiteCommand::Forecast(one) => may(Place::Keeper, Viewer, &mut one.dir),
        SiteCommand::Audit(one) => match &mut one.command {
            Some(AuditCommand::Verify(_)) => None,
            // Neither does an order read all that was ever done, but so many entries at a time.
            None => {
                one.show.within = Some(WITHIN);
                may(Place::Keeper, Viewer, &mut one.show.dir)
            }
        },
        SiteCommand::Pending(one) => may(Place::SignerLooks, Viewer, &mut one.dir),
        SiteCommand::Token(one) if one.names_files() => None,
        SiteCommand::Token(one) => {
            let needs = if one.role == Role::Host { Operator } else { Manager };
            may(Place::SignerActs, needs, &mut one.dir)
        }
        SiteCommand::Approve(one) if one.which.is_none() => None,
        SiteCommand::Approve(one) => {
            let needs = if one.allow_shared_addresses { Manager } else { Operator };
            may(Place::SignerActs, needs, &mut one.dir)
        }
        SiteCommand::Refuse(one) => may(Place::SignerActs, Operator, &mut one.dir),
        SiteCommand::Revoke(one) => may(Place::SignerActs, Manager, &mut one.dir),
        SiteCommand::RekeyShared(one) => may(Place::SignerActs, Manager, &mut one.dir),
        SiteCommand::Policy(command) => of_policy(command),
        SiteCommand::Enforce(one) => {
            let place = match step? {
                Step::Check | Step::Look(_) => Place::Keeper,
                Step::Begin | Step::Keep(_) => Place::SignerActs,
            };
            may(place, Manager, &mut one.dir)
        }
        SiteCommand::Init(_)
        | SiteCommand::RenewAuthority(_)
        | SiteCommand::Issue(_)
        | SiteCommand::Renew(_)
        | SiteCommand::Survey(_)
        | SiteCommand::Import(_)
        | SiteCommand::Rekey(_)
        | SiteCommand::Backup(_)
        | SiteCommand::Restore(_)
        | SiteCommand::Recover(_)
        | SiteCommand::Serve(_)
        | SiteCommand::Signer(_)
        | SiteCommand::Operator(_)
        | SiteCommand::Repository(_) => None,
    }
}

fn of_policy(command: &mut PolicyCommand) -> Option<Terms<'_>> {
    let (needs, place) = match command {
        PolicyCommand::Show(place) => return Some(Terms { place: Place::Keeper, needs: Viewer, dir: &mut place.dir }),
        // Whatever a legacy router sends is believed.
        PolicyCommand::Legacy(LegacyCommand::Add { router: true, place, .. }) => (Manager, place),
        PolicyCommand::Legacy(LegacyCommand::Add { place, .. }) => (Operator, place),
        PolicyCommand::Legacy(LegacyCommand::Remove(removal)) => (Operator, &mut removal.place),
        PolicyCommand::Known(KnownCommand::Add { place, .. }) => (Operator, place),
        PolicyCommand::Known(KnownCommand::Remove(removal)) => (Operator, &mut removal.place),
        PolicyCommand::Exception(ExceptionCommand::Set { place, .. } | ExceptionCommand::Remove { place, .. }) => {
            (Manager, place)
        }
        PolicyCommand::Mode(one) => (Manager, &mut one.place),
    };
    Some(Terms { place: Place::SignerActs, needs, dir: &mut place.dir })
}
