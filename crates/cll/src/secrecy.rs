//! What went into the keys of an association beside its own key agreement, and so what it takes to
//! read what was recorded of it.

use identity::pre_shared::{NAME_LEN, PreSharedName};

use crate::settings::Settings;

/// Bytes of its form in a ticket.
pub(crate) const FORM_LEN: usize = 1 + NAME_LEN;

const POST_QUANTUM: u8 = 1;
const PRE_SHARED: u8 = 2;

/// The secrets that went in, here or in an association that this one replaced: none that went in is
/// ever lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Secrecy {
    /// One of ML-KEM.
    pub(crate) post_quantum: bool,
    /// This pre-shared key.
    pub(crate) pre_shared: Option<PreSharedName>,
}

impl Secrecy {
    /// Whether there is nothing but the key agreement.
    pub(crate) fn is_plain(self) -> bool {
        self == Secrecy::default()
    }

    /// As an operator reads it, behind `agreement`.
    pub(crate) fn describe(self, agreement: &str) -> String {
        let kem = if self.post_quantum { "+ML-KEM-768" } else { "" };
        let pre_shared = if self.pre_shared.is_some() { "+PSK" } else { "" };
        format!("{agreement}{kem}{pre_shared}")
    }

    /// Whether a ticket of such an association is good here: its pre-shared key is still in force,
    /// or there was none and is none.
    pub(crate) fn is_in_force(self, settings: &Settings) -> bool {
        match self.pre_shared {
            Some(name) => settings.pre_shared_named(name).is_some(),
            None => settings.pre_shared.is_empty(),
        }
    }

    pub(crate) fn emit(self, out: &mut Vec<u8>) {
        let post_quantum = if self.post_quantum { POST_QUANTUM } else { 0 };
        out.push(post_quantum | if self.pre_shared.is_some() { PRE_SHARED } else { 0 });
        out.extend_from_slice(&self.pre_shared.unwrap_or_default());
    }

    pub(crate) fn parse(bytes: [u8; FORM_LEN]) -> Option<Secrecy> {
        let [flags, name @ ..] = bytes;
        let secrecy =
            Secrecy { post_quantum: flags & POST_QUANTUM != 0, pre_shared: (flags & PRE_SHARED != 0).then_some(name) };
        (flags & !(POST_QUANTUM | PRE_SHARED) == 0).then_some(secrecy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_back_and_another_is_refused() {
        for secrecy in [(false, None), (true, None), (false, Some([7; 8])), (true, Some([0; 8]))] {
            let secrecy = Secrecy { post_quantum: secrecy.0, pre_shared: secrecy.1 };
            let mut out = Vec::new();
            secrecy.emit(&mut out);
            assert_eq!(Secrecy::parse(out.try_into().expect("its length")), Some(secrecy));
        }
        assert_eq!(Secrecy::parse([4, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn it_is_named_by_what_went_in() {
        let name = |post_quantum, pre_shared| Secrecy { post_quantum, pre_shared }.describe("X25519");
        assert_eq!(name(false, None), "X25519");
        assert_eq!(name(true, None), "X25519+ML-KEM-768");
        assert_eq!(name(true, Some([1; 8])), "X25519+ML-KEM-768+PSK");
        assert_eq!(name(false, Some([1; 8])), "X25519+PSK");
    }
}
