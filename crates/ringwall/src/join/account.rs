//! What a command of several steps tells: a line for each, or one JSON object at the end.

use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::output::say;

/// The name of the JSON object, and its version, which changes when a field goes or means something
/// else.
const SCHEMA_VERSION: u32 = 1;

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// An earlier run, or somebody else, has done it.
    WasThere,
    Good,
    Note,
    Failed,
    Planned,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::WasThere => "there already",
            Outcome::Good => "ok",
            Outcome::Note => "note",
            Outcome::Failed => "FAILED",
            Outcome::Planned => "would be",
        }
    }
}

/// What was told so far.
pub(super) struct Account {
    as_json: bool,
    facts: Map<String, Value>,
    steps: Vec<Value>,
}

impl Account {
    pub(super) fn new(as_json: bool) -> Account {
        Account { as_json, facts: Map::new(), steps: Vec::new() }
    }

    /// A field of the JSON object.
    pub(super) fn fact(&mut self, name: &str, value: Value) {
        self.facts.insert(name.to_owned(), value);
    }

    /// Says that a step begins that may take its time.
    pub(super) fn begin(&self, step: &str, text: &str) {
        if !self.as_json {
            say!("{step}: {text} ...");
        }
    }

    pub(super) fn step(&mut self, step: &str, outcome: Outcome, text: &str) {
        self.steps.push(json!({"step": step, "outcome": outcome.word(), "text": text}));
        if !self.as_json {
            say!("{step}: {}: {text}", outcome.word());
        }
    }

    /// Something that is wrong, with what to do about it.
    pub(super) fn wrong(&mut self, what: &str, remedy: &str) {
        self.step("look", Outcome::Failed, &format!("{what}; {remedy}"));
    }

    /// Prints the object, if one is wanted; `done` is the word for success.
    pub(super) fn close(self, done: &str, outcome: Result<(), Failure>) -> Result<(), Failure> {
        if self.as_json {
            let mut value = self.facts;
            value.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
            value.insert(done.to_owned(), outcome.is_ok().into());
            value.insert("steps".to_owned(), Value::Array(self.steps));
            if let Err(failure) = &outcome {
                value.insert("error".to_owned(), failure.to_string().into());
            }
            say!("{}", Value::Object(value));
        }
        outcome
    }
}
