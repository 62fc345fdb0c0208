//! What is said to etcd and what it answers, as its JSON gateway has it: bytes as base64, 64-bit numbers as text, and
//! whatever is zero or empty left out.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) use crate::repository::encoded::Bytes;

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&number.to_string())
}

/// One key, or all from `key` up to `range_end`, as of `revision` (0: now).
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Range {
    pub(super) key: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range_end: Option<Bytes>,
    #[serde(serialize_with = "as_text")]
    pub(super) revision: u64,
    #[serde(serialize_with = "as_text")]
    pub(super) limit: u64,
}

/// Whether a key still is as it was read: changed last at `mod_revision`, 0 if it is not there.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Compare {
    pub(super) key: Bytes,
    target: &'static str,
    result: &'static str,
    #[serde(serialize_with = "as_text")]
    mod_revision: u64,
}

impl Compare {
    pub(super) fn unchanged(key: &str, mod_revision: u64) -> Compare {
        Compare { key: Bytes::of(key), target: "MOD", result: "EQUAL", mod_revision }
    }
}

/// One step of a transaction.
#[derive(Clone, Debug, Serialize)]
pub(super) enum Step {
    #[serde(rename = "request_range")]
    Range(Range),
    #[serde(rename = "request_put")]
    Put { key: Bytes, value: Bytes },
    #[serde(rename = "request_delete_range")]
    Delete {
        key: Bytes,
        #[serde(skip_serializing_if = "Option::is_none")]
        range_end: Option<Bytes>,
    },
}

impl Step {
    pub(super) fn put(key: &str, value: &[u8]) -> Step {
        Step::Put { key: Bytes::of(key), value: Bytes(value.to_vec()) }
    }

    pub(super) fn delete(key: &str) -> Step {
        Step::Delete { key: Bytes::of(key), range_end: None }
    }

    /// Deletes every key that begins with `prefix`.
    pub(super) fn delete_all(prefix: &str) -> Step {
        Step::Delete { key: Bytes::of(prefix), range_end: Some(end_of(prefix)) }
    }
}

/// The first key behind all that begin with `prefix`, which ends with a slash.
pub(super) fn end_of(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    Bytes(end)
}

/// Steps that happen together and only if all comparisons hold.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Transaction {
    pub(super) compare: Vec<Compare>,
    pub(super) success: Vec<Step>,
}

/// The answer to a transaction.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Outcome {
    pub(super) header: Header,
    #[serde(default)]
    pub(super) succeeded: bool,
    #[serde(default)]
    pub(super) responses: Vec<StepOutcome>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Header {
    /// How many changes the whole cluster has seen.
    #[serde(deserialize_with = "number")]
    pub(super) revision: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StepOutcome {
    #[serde(default)]
    pub(super) response_range: Option<Found>,
}

/// What a range holds.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Found {
    #[serde(default)]
    pub(super) kvs: Vec<Pair>,
    #[serde(default)]
    pub(super) more: bool,
}

/// One key with its value.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Pair {
    pub(super) key: Bytes,
    #[serde(default)]
    pub(super) value: Bytes,
    #[serde(deserialize_with = "number")]
    pub(super) mod_revision: u64,
}

/// What etcd says when it refuses.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Refusal {
    #[serde(default)]
    pub(super) error: String,
    #[serde(default)]
    pub(super) code: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request is that of etcd's own documentation of the gateway (`dev-guide/api_grpc_gateway.md`), but for its names.
    #[test]
    fn a_transaction_is_written_as_the_gateway_reads_it() {
        let transaction =
            Transaction { compare: vec![Compare::unchanged("foo", 7)], success: vec![Step::put("foo", b"bar")] };
        let wanted = r#"{"compare":[{"key":"Zm9v","target":"MOD","result":"EQUAL","mod_revision":"7"}],"#.to_owned()
            + r#""success":[{"request_put":{"key":"Zm9v","value":"YmFy"}}]}"#;
        assert_eq!(serde_json::to_string(&transaction).expect("text"), wanted);
    }

    /// The answer is the one that the same document prints.
    #[test]
    fn an_answer_is_read_as_the_gateway_writes_it() {
        let text = r#"{"header":{"cluster_id":"12585971608760269493","member_id":"13847567121247652255",
            "revision":"3","raft_term":"2"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"3"}}}]}"#;
        let outcome: Outcome = serde_json::from_str(text).expect("an answer");
        assert_eq!((outcome.header.revision, outcome.succeeded), (3, true));
        assert!(outcome.responses[0].response_range.is_none());
        let text = r#"{"kvs":[{"key":"Zm9v","create_revision":"2","mod_revision":"2","version":"1","value":"YmFy"}],"count":"1"}"#;
        let found: Found = serde_json::from_str(text).expect("an answer");
        assert_eq!((&found.kvs[0].value, found.kvs[0].mod_revision), (&Bytes::of("bar"), 2));
    }

    #[test]
    fn a_prefix_ends_before_its_neighbours() {
        assert_eq!(end_of("/a/"), Bytes::of("/a0"));
    }
}
