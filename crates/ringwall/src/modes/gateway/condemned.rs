//! What an intrusion detection system says of a connection, in Suricata's EVE format (its manual,
//! "EVE JSON Output").

use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;

/// A line of EVE, as far as it concerns connections.
#[derive(Deserialize)]
struct Line {
    event_type: String,
    src_ip: Option<IpAddr>,
    src_port: Option<u16>,
    dest_ip: Option<IpAddr>,
    dest_port: Option<u16>,
    proto: Option<String>,
    /// The outer one first.
    #[serde(default)]
    vlan: Vec<u32>,
    alert: Option<Alert>,
}

#[derive(Deserialize)]
struct Alert {
    severity: u8,
    signature_id: u64,
    #[serde(default)]
    signature: String,
}

/// An alert about a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condemned {
    /// Its ends; either may be the trusted one.
    pub(super) ends: [SocketAddr; 2],
    /// VLAN identifiers, as the gateway has them.
    pub(super) vlans: u32,
    /// 1 is the worst.
    pub(super) severity: u8,
    pub(super) signature_id: u64,
    /// The signature's name, without control characters.
    pub(super) signature: String,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Condemned(Condemned),
    /// An alert about something that is no TCP connection, which a gateway cannot end.
    NoConnection,
    /// Another event: flows, statistics.
    Nothing,
    Malformed,
}

impl Said {
    pub(super) fn read(line: &[u8]) -> Said {
        if line.is_empty() {
            return Said::Nothing;
        }
        let Ok(line) = serde_json::from_slice::<Line>(line) else { return Said::Malformed };
        if line.event_type != "alert" {
            return Said::Nothing;
        }
        let Some(alert) = &line.alert else { return Said::Malformed };
        let is_tcp = line.proto.as_deref() == Some("TCP");
        match (line.ends(), line.vlans()) {
            (Some(ends), Some(vlans)) if is_tcp => Said::Condemned(Condemned {
                ends,
                vlans,
                severity: alert.severity,
                signature_id: alert.signature_id,
                signature: alert.signature.replace(char::is_control, " "),
            }),
            _ => Said::NoConnection,
        }
    }
}

impl Line {
    fn ends(&self) -> Option<[SocketAddr; 2]> {
        let source = SocketAddr::new(self.src_ip?, self.src_port?);
        Some([source, SocketAddr::new(self.dest_ip?, self.dest_port?)])
    }

    /// None for more tags than a gateway takes.
    fn vlans(&self) -> Option<u32> {
        match self.vlan[..] {
            [] => Some(0),
            [one] if one <= 0xfff => Some(one),
            [outer, inner] if outer <= 0xfff && inner <= 0xfff => Some(outer << 12 | inner),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALERT: &str = r#"{"timestamp":"2026-11-27T03:00:00.000001+0000","flow_id":1,"event_type":"alert",
        "src_ip":"198.51.100.7","src_port":50123,"dest_ip":"192.0.2.10","dest_port":443,"proto":"TCP",
        "vlan":[100,7],"alert":{"action":"allowed","gid":1,"signature_id":2010937,"rev":3,
        "signature":"ET POLICY\u001b[2J","category":"Bad","severity":2}}"#;

    fn read(from: &str, to: &str) -> Said {
        assert!(ALERT.contains(from), "{from}");
        Said::read(ALERT.replace(from, to).as_bytes())
    }

    #[test]
    fn an_alert_names_a_connection_and_a_signature() {
        let condemned = Condemned {
            ends: ["198.51.100.7:50123".parse().expect("valid"), "192.0.2.10:443".parse().expect("valid")],
            vlans: 100 << 12 | 7,
            severity: 2,
            signature_id: 2_010_937,
            signature: "ET POLICY [2J".to_owned(),
        };
        assert_eq!(read("", ""), Said::Condemned(condemned.clone()));
        assert_eq!(read("[100,7]", "[]"), Said::Condemned(Condemned { vlans: 0, ..condemned }));
    }

    #[test]
    fn what_cannot_be_ended_is_told_from_what_says_nothing_and_from_what_cannot_be_read() {
        for (from, to, said) in [
            ("\"TCP\"", "\"UDP\"", Said::NoConnection),
            ("\"src_port\":50123,", "", Said::NoConnection),
            ("[100,7]", "[1,2,3]", Said::NoConnection),
            ("[100,7]", "[4096]", Said::NoConnection),
            ("\"event_type\":\"alert\"", "\"event_type\":\"flow\"", Said::Nothing),
            ("198.51.100.7", "nobody", Said::Malformed),
            ("\"severity\":2", "\"severity\":-1", Said::Malformed),
            ("50123", "70000", Said::Malformed),
            ("}}", "}", Said::Malformed),
        ] {
            assert_eq!(read(from, to), said, "{from} {to}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_end_it(bytes: Vec<u8>) {
            let _ = Said::read(&bytes);
        }
    }
}
