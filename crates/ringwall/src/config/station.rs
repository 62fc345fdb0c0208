//! The hardware address of one machine, as lists of hosts have it.

use std::fmt;

use serde::{Deserialize, Serialize};
use wire::MacAddress;

/// One that belongs to no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Station(MacAddress);

impl Station {
    /// The address of a host that is known by other means.
    pub(crate) fn of(mac: MacAddress) -> Station {
        Station(mac)
    }

    pub(crate) fn mac(self) -> MacAddress {
        self.0
    }
}

impl TryFrom<String> for Station {
    type Error = String;

    fn try_from(text: String) -> Result<Station, String> {
        let mac = text.parse::<MacAddress>().ok().filter(|mac| !mac.is_group());
        mac.map(Station)
            .ok_or_else(|| format!("\"{text}\" is not a hardware address of one host; write it as 02:00:00:00:00:01"))
    }
}

impl From<Station> for String {
    fn from(Station(mac): Station) -> String {
        mac.to_string()
    }
}

impl fmt::Display for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
