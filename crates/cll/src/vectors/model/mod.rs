//! The models of `model/` tied to the code: what a model says is signed is computed from messages
//! that the code made, and the code must refuse a change to exactly the fields that the model
//! names.
//!
//! A model says in comments what its names stand for on the wire (`// wire g_a =
//! request.key_share`) and what its expressions are there (`// tie handshake_request sig_q`). Here
//! the expressions are read and evaluated: CONCAT puts bytes behind each other, HASH is SHA-256. So
//! neither the model nor the code can drop a field, add one, or change their order without the
//! other.

mod ties;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use identity::hash::sha256;

/// A message of the wire, cut into its fields.
struct Message {
    name: &'static str,
    bytes: Vec<u8>,
    fields: Vec<(&'static str, Range<usize>)>,
}

impl Message {
    /// Cuts `bytes` into fields of these lengths; the last has what is left.
    fn cut(name: &'static str, bytes: &[u8], lengths: &[(&'static str, usize)], last: &'static str) -> Message {
        let mut at = 0;
        let mut fields = Vec::new();
        for (field, len) in lengths {
            fields.push((*field, at..at + len));
            at += len;
        }
        fields.push((last, at..bytes.len()));
        Message { name, bytes: bytes.to_vec(), fields }
    }

    fn range(&self, field: &str) -> Range<usize> {
        let found = self.fields.iter().find(|(name, _)| *name == field);
        found.unwrap_or_else(|| panic!("{} has no field {field}", self.name)).1.clone()
    }

    fn field(&self, field: &str) -> &[u8] {
        &self.bytes[self.range(field)]
    }
}

/// The length of something counted in two bytes at `at`, its count included.
fn counted(bytes: &[u8], at: usize) -> usize {
    2 + usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// What an exchange consists of.
struct Exchange(Vec<Message>);

impl Exchange {
    fn message(&self, name: &str) -> Option<&Message> {
        self.0.iter().find(|message| message.name == name)
    }

    /// The bytes of `message.field`.
    fn field(&self, path: &str) -> Option<&[u8]> {
        let (message, field) = path.split_once('.').unwrap_or_else(|| panic!("{path} is no field of a message"));
        Some(self.message(message)?.field(field))
    }
}

/// An expression of Verifpal.
#[derive(Clone, Debug)]
enum Term {
    Name(String),
    Call(String, Vec<Term>),
}

impl Term {
    fn parse(text: &str) -> Term {
        let text = text.trim().trim_end_matches('?');
        let Some((function, arguments)) = text.split_once('(') else { return Term::Name(text.to_owned()) };
        let arguments = arguments.strip_suffix(')').unwrap_or_else(|| panic!("{text} does not end"));
        let function = function.split('[').next().unwrap_or_default();
        Term::Call(function.to_owned(), split_at_commas(arguments).into_iter().map(Term::parse).collect())
    }

    fn argument(&self, function: &str, at: usize) -> &Term {
        match self {
            Term::Call(name, arguments) if name == function => &arguments[at],
            _ => panic!("{self:?} is no {function}"),
        }
    }
}

/// Cuts at the commas that stand in no parentheses.
fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_u32, 0, Vec::new());
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// What a name stands for on the wire.
enum Source {
    Label(Vec<u8>),
    /// Fields that follow each other; where there are several, they are equal in every good
    /// exchange.
    Fields(Vec<Vec<String>>),
}

/// A model that is read: the principals' assignments and what they are on the wire.
struct Model {
    file: &'static str,
    assigned: BTreeMap<String, Term>,
    sources: BTreeMap<String, Source>,
    ties: BTreeMap<String, String>,
}

impl Model {
    fn read(file: &'static str, text: &str) -> Model {
        let (mut assigned, mut sources, mut ties) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for line in text.lines().map(str::trim) {
            if let Some((name, source)) = line.strip_prefix("// wire ").and_then(|rest| rest.split_once('=')) {
                sources.insert(name.trim().to_owned(), Source::parse(source.trim()));
            } else if let Some((tie, name)) = line.strip_prefix("// tie ").and_then(|rest| rest.split_once(' ')) {
                ties.insert(tie.to_owned(), name.trim().to_owned());
            } else if !line.starts_with("//")
                && let Some((name, term)) = line.split_once(" = ")
                && term.contains('(')
            {
                assigned.insert(name.to_owned(), Term::parse(term));
            }
        }
        Model { file, assigned, sources, ties }
    }

    /// The term to which the model ties this name of the protocol.
    fn tied(&self, tie: &str) -> &Term {
        let name = self.ties.get(tie).unwrap_or_else(|| panic!("{} ties no {tie}", self.file));
        self.assigned.get(name).unwrap_or_else(|| panic!("{} assigns no {name}", self.file))
    }

    /// What the term comes to in this exchange.
    fn evaluate(&self, term: &Term, exchange: &Exchange) -> Vec<u8> {
        match term {
            Term::Call(function, arguments) => {
                let parts: Vec<u8> = arguments.iter().flat_map(|argument| self.evaluate(argument, exchange)).collect();
                match function.as_str() {
                    "CONCAT" => parts,
                    "HASH" => sha256(&[&parts]).to_vec(),
                    _ => panic!("{}: {function} is not to be computed; name it with `// wire`", self.file),
                }
            }
            Term::Name(name) => match self.sources.get(name) {
                Some(source) => source.bytes(name, exchange),
                None => {
                    let term = self.assigned.get(name);
                    self.evaluate(term.unwrap_or_else(|| panic!("{}: what is {name}?", self.file)), exchange)
                }
            },
        }
    }

    /// All fields that the term names.
    fn fields(&self, term: &Term) -> BTreeSet<String> {
        match term {
            Term::Call(_, arguments) => arguments.iter().flat_map(|argument| self.fields(argument)).collect(),
            Term::Name(name) => match self.sources.get(name) {
                Some(Source::Fields(alternatives)) => alternatives.iter().flatten().cloned().collect(),
                Some(Source::Label(_)) => BTreeSet::new(),
                None => self.assigned.get(name).map(|term| self.fields(term)).unwrap_or_default(),
            },
        }
    }
}

impl Source {
    fn parse(text: &str) -> Source {
        if let Some(label) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            return Source::Label(label.as_bytes().to_vec());
        }
        if let Some(digits) = text.strip_prefix("0x") {
            return Source::Label(vec![u8::from_str_radix(digits, 16).expect("a byte")]);
        }
        let fields = |part: &str| part.split_whitespace().map(str::to_owned).collect();
        Source::Fields(text.split(',').map(fields).collect())
    }

    fn bytes(&self, name: &str, exchange: &Exchange) -> Vec<u8> {
        let alternatives = match self {
            Source::Label(label) => return label.clone(),
            Source::Fields(alternatives) => alternatives,
        };
        let read = |fields: &Vec<String>| -> Option<Vec<u8>> {
            fields.iter().map(|field| exchange.field(field)).collect::<Option<Vec<_>>>().map(|parts| parts.concat())
        };
        let mut all = alternatives.iter().filter_map(read);
        let first = all.next().unwrap_or_else(|| panic!("{name} is in no message"));
        assert!(all.all(|other| other == first), "{name} is not the same everywhere");
        first
    }
}
