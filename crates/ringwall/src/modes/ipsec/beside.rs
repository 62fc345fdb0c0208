//! What a shield's daemon keeps beside frames: the key files of its pairs.

use std::convert::Infallible;

use super::config::Shield;
use super::guard::IpsecShield;
use super::reports;
use super::watch::KeyWatch;
use crate::daemon::{Journal, Link, Snapshot};
use crate::host::interface::{Beside, Held};
use crate::modes::parts::Parts;
use crate::protocol::Answer;

/// Those files, and the section that names them.
pub(super) struct Keeping {
    pub(super) keys: KeyWatch,
    pub(super) section: Shield,
}

impl Beside for Keeping {
    type Kind = IpsecShield;

    fn carry_out(&mut self, _held: &Held, effect: Infallible, _journal: &mut Journal) {
        match effect {}
    }

    fn look_after(
        &mut self,
        _held: &mut Held,
        _snapshot: &Snapshot<IpsecShield>,
        journal: &mut Journal,
        link: &Link<IpsecShield>,
    ) {
        let changed = self.keys.changed(journal);
        if changed.is_some_and(|peers| link.order(peers).is_err()) {
            journal.note("keys-kept", "the data path took no command to change keys; start the daemon again");
        }
    }

    fn known(&self, snapshot: &Snapshot<IpsecShield>) -> Answer {
        Answer::Pairs { pairs: snapshot.report.iter().map(reports::pair).collect() }
    }

    fn peers(&self, snapshot: &Snapshot<IpsecShield>) -> usize {
        snapshot.report.iter().filter(|pair| pair.known > 0).count()
    }

    fn parts(&self, _held: &Held, snapshot: &Snapshot<IpsecShield>) -> Parts {
        Parts { shield: Some(reports::standing(&self.section, &snapshot.report)), ..Parts::default() }
    }
}
