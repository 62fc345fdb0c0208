//! What the daemon and its commands say to each other over the Unix socket: one JSON object per line, each way.

pub(crate) mod attacks;
pub(crate) mod flow_record;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
pub(crate) use crate::modes::cll::peers::Peer;
pub(crate) use crate::modes::gateway::parts::{Flow, GateStatus};
pub(crate) use crate::modes::ipsec::parts::Pair;
use crate::modes::part::{Account, Known};
pub(crate) use crate::modes::sarp::parts::Key;
pub(crate) use crate::status::Status;

/// What `status` and `why` say of a host that the site has taken out.
pub(crate) const OWN_REVOKED: &str = "this host's own certificate was revoked: no host of the site answers it";

/// A question or an order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// How is the daemon?
    Status,
    /// What is there to measure?
    Metrics,
    /// Which associations are there?
    Peers,
    /// What happened after the event with this number?
    Events {
        /// Zero for all that are remembered.
        after: u64,
    },
    /// What was dropped lately, and why?
    Drops,
    /// Which TCP connections are there?
    Flows {
        /// At most so many.
        limit: usize,
        /// Those of this host only.
        #[serde(default)]
        address: Option<IpAddr>,
        /// Those in this state only.
        #[serde(default)]
        state: Option<String>,
    },
    /// Block a TCP connection.
    Block {
        trusted: SocketAddr,
        untrusted: SocketAddr,
        vlans: u32,
        /// Unblock it.
        undo: bool,
        /// Block it only if it is remembered.
        #[serde(default)]
        if_remembered: bool,
    },
    /// Have the other gateway of a pair take over.
    HandOver,
    /// Read the configuration again, as far as that is possible without a restart.
    Reload,
    /// The identity file has a renewed certificate.
    Renewed,
    /// Forget that a host has proved itself.
    Forget {
        /// Its name or hardware address.
        who: String,
    },
    /// End; the interface stays closed or is restored as configured.
    Stop,
}

impl Ask {
    /// What a daemon says that does not know this order.
    pub(crate) fn not_known(&self) -> Answer {
        let line = match self {
            Ask::Flows { .. } | Ask::Block { .. } => "only a gateway knows connections",
            Ask::HandOver => "only a gateway with a section [pair] hands over",
            _ => "only the daemon of a host in mode cll knows this order",
        };
        Answer::Error { line: line.to_owned() }
    }
}

/// An answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(crate) enum Answer {
    Status(Box<Status>),
    Gate(Box<GateStatus>),
    Measured(Box<Measured>),
    Peers {
        peers: Vec<Peer>,
    },
    Keys {
        keys: Vec<Key>,
    },
    Pairs {
        pairs: Vec<Pair>,
    },
    Events {
        events: Vec<Event>,
    },
    Drops {
        counts: BTreeMap<String, u64>,
        examples: Vec<Example>,
    },
    Flows {
        flows: Vec<Flow>,
    },
    Blocked {
        changed: bool,
    },
    /// An order was carried out; what it came to, in lines.
    Done {
        lines: Vec<String>,
    },
    Stopping,
    Error {
        line: String,
    },
}

/// Of an answer, what it is called.
#[derive(Deserialize)]
struct Word<'a> {
    answer: &'a str,
}

/// The answer to [`Ask::Peers`] of a host in mode cll.
#[derive(Deserialize)]
struct Peers {
    peers: Vec<Peer>,
}

/// The same of a host in mode s-arp.
#[derive(Deserialize)]
struct Keys {
    keys: Vec<Key>,
}

impl Answer {
    /// Reads an answer. A thousand hosts are read into their type at once: serde keeps an enum with a
    /// tag whole before it is read, which took twice the time and the memory.
    ///
    /// # Errors
    /// The text is not an answer of this version.
    pub(crate) fn from_json(text: &str) -> serde_json::Result<Answer> {
        match serde_json::from_str(text) {
            Ok(Word { answer: "peers" }) => serde_json::from_str(text).map(|Peers { peers }| Answer::Peers { peers }),
            Ok(Word { answer: "keys" }) => serde_json::from_str(text).map(|Keys { keys }| Answer::Keys { keys }),
            _ => serde_json::from_str(text),
        }
    }

    /// What came of an order.
    pub(crate) fn of(done: Result<Vec<String>, Failure>) -> Answer {
        match done {
            Ok(lines) => Answer::Done { lines },
            Err(failure) => Answer::Error { line: failure.to_string() },
        }
    }

    /// What the daemon says of itself, if this says so.
    pub(crate) fn account(&self) -> Option<&dyn Account> {
        match self {
            Answer::Status(status) => Some(&**status),
            Answer::Gate(status) => Some(&**status),
            _ => None,
        }
    }

    /// Whom the daemon knows, if this says so.
    pub(crate) fn known(&self) -> Option<&dyn Known> {
        match self {
            Answer::Peers { peers } => Some(peers),
            Answer::Keys { keys } => Some(keys),
            Answer::Pairs { pairs } => Some(pairs),
            _ => None,
        }
    }
}

/// Everything that is measured, at one moment.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Measured {
    pub(crate) unix_ms: u64,
    pub(crate) started_unix_ms: u64,
    /// The answer to [`Ask::Status`].
    pub(crate) status: Box<Answer>,
    /// The answer to [`Ask::Peers`].
    pub(crate) known: Box<Answer>,
}

/// Something that happened.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) unix_ms: u64,
    pub(crate) event: String,
    pub(crate) text: String,
    /// For programs: what `text` says in words.
    #[serde(flatten)]
    pub(crate) about: About,
}

/// Whom an event is about, as far as it is about one host. Addresses of strangers are claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct About {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mac: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ip: Option<String>,
    /// Why something was refused: a drop reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The words of the check that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// A frame that was dropped.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Example {
    pub(crate) reason: String,
    pub(crate) from: String,
    pub(crate) ago_ms: u64,
    pub(crate) len: usize,
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) ethertype: String,
    /// Addresses, ports and protocol of an IP packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) packet: Option<String>,
    pub(crate) head_hex: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::link_layer;

    /// What both ways of reading make of it.
    fn read(text: &str) -> [Option<serde_json::Value>; 2] {
        let whole: serde_json::Result<Answer> = serde_json::from_str(text);
        [whole, Answer::from_json(text)].map(|read| serde_json::to_value(read.ok()?).ok())
    }

    #[test]
    fn an_answer_is_the_same_whichever_way_it_is_read() {
        let key = Key { address: "192.0.2.7".to_owned(), mac: None, fetched_s: 1, heard: true };
        for (known, word) in [(*link_layer().known, "peers"), (Answer::Keys { keys: vec![key] }, "keys")] {
            let [whole, straight] = read(&serde_json::to_string(&known).expect("JSON"));
            assert_eq!(whole, straight);
            assert_eq!(straight.expect("an answer")[word].as_array().map(Vec::len), Some(1));
        }
        let others = [
            r#"{"peers":[],"answer":"peers","later":{"a":[1]}}"#,
            r#"{"answer":"p\u0065ers","peers":[]}"#,
            r#"{"answer":"blocked","changed":true}"#,
            "{\"answer\":\"stopping\"}\n",
        ];
        for text in others {
            let [whole, straight] = read(text);
            assert!(straight.is_some() && whole == straight, "{text}");
        }
        for text in
            [r#"{"answer":"peers"}"#, r#"{"answer":"peers","peers":[{}]}"#, r#"{"answer":"peers","peers":[]"#, "3"]
        {
            assert_eq!(read(text), [None, None], "{text}");
        }
    }
}
