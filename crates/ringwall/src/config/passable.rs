//! The protocols beside IP and ARP that may pass in clear, by the name that an operator uses.

use serde::{Deserialize, Serialize};
use wire::EtherType;

/// All that have a name.
pub(crate) const PASSABLE: [(&str, EtherType); 4] =
    [("802.1x", EtherType::EAPOL), ("lldp", EtherType::LLDP), ("lacp", EtherType::SLOW), ("ptp", EtherType::PTP)];

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Passed(usize);

impl Passed {
    pub(crate) fn ethertype(self) -> EtherType {
        PASSABLE[self.0].1
    }
}

impl TryFrom<String> for Passed {
    type Error = String;

    fn try_from(text: String) -> Result<Passed, String> {
        PASSABLE.iter().position(|(word, _)| *word == text).map(Passed).ok_or_else(|| {
            let words = PASSABLE.map(|(word, _)| word).join(", ");
            format!("unknown protocol \"{text}\"; use any of {words}")
        })
    }
}

impl From<Passed> for String {
    fn from(Passed(at): Passed) -> String {
        PASSABLE[at].0.to_owned()
    }
}
