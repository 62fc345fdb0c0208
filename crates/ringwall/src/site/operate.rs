//! `ringwall operate`: an operator's orders to the site's service.

use std::net::SocketAddr;
use std::path::PathBuf;

use authority::files;
use clap::Args;
use identity::order::Operator;
use identity::sealing;
use identity::tls::{Credentials, Service, TlsError};
use zeroize::Zeroizing;

use super::SiteCommand;
use super::enforcing::{self, Step, Stepped};
use super::orders::{self, ANSWER_BYTES_MAX, NotHeard, Order, Outcome};
use crate::failure::Failure;
use crate::output::say;
use crate::randomness;
use crate::report::forecast::now_unix_ms;
use crate::report::{ORDER_PATH, Proof, Way, unix_s};

/// Arguments of `ringwall operate`.
#[derive(Debug, Args)]
pub(crate) struct OperateArguments {
    /// Where the site's service listens
    #[arg(long, value_name = "ADDRESS:PORT")]
    service: SocketAddr,
    /// The name in its certificate, where that has another address
    #[arg(long, value_name = "NAME")]
    service_name: Option<String>,
    /// The operator's file
    #[arg(long = "as", value_name = "FILE")]
    operator: PathBuf,
    /// A command of 'ringwall site' with its arguments, as: hosts --json
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    words: Vec<String>,
}

/// `ringwall operate`
pub(crate) fn operate(arguments: &OperateArguments) -> Result<(), Failure> {
    let OperateArguments { service, service_name, operator, words } = arguments;
    let command = orders::parse(words).unwrap_or_else(|error| error.exit());
    let wrong =
        |error: &dyn std::fmt::Display| Failure::file(operator, error, "name the file of an operator with --as");
    let operator = Operator::from_pem(&files::read(operator)?).map_err(|error| wrong(&error))?;
    let way = way(&operator, *service, service_name.clone()).map_err(|error| wrong(&error))?;
    let asking = Asking { way: &way, operator: &operator, words };
    match command {
        SiteCommand::Enforce(arguments) => {
            let print = |line: &str| {
                say!("{line}");
                Ok(())
            };
            enforcing::drive(&arguments, |step| asking.step(step), print)
        }
        _ => {
            let outcome = asking.order(None)?;
            print(&outcome.printed);
            outcome.failure.map_or(Ok(()), |line| Err(Failure::new(line)))
        }
    }
}

/// An operator who only looks, and the way to the service.
pub(crate) struct Viewer {
    operator: Operator,
    way: Way,
}

impl Viewer {
    /// With the file that the site gave him.
    ///
    /// # Errors
    /// It is none of an operator.
    pub(crate) fn new(file: &str, service: SocketAddr, service_name: Option<String>) -> Result<Viewer, Failure> {
        let operator = Operator::from_pem(file).map_err(Failure::new)?;
        let way = way(&operator, service, service_name).map_err(Failure::new)?;
        Ok(Viewer { operator, way })
    }

    /// What a command of `ringwall site` prints there.
    ///
    /// # Errors
    /// The service is away or refuses, or the command failed; in a sentence.
    pub(crate) fn look(&self, words: &[&str]) -> Result<String, Failure> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        // It is asked again soon anyhow, and shows what it has meanwhile.
        let outcome = Asking { way: &self.way, operator: &self.operator, words: &words }.order_once(None)?;
        outcome.failure.map_or(Ok(outcome.printed), |line| Err(Failure::new(line)))
    }
}

fn way(operator: &Operator, service: SocketAddr, service_name: Option<String>) -> Result<Way, TlsError> {
    let credentials = Credentials::of_operator(operator, unix_s)?;
    let named = service_name.map_or_else(|| Service::At(service.ip()), Service::Named);
    Ok(Way { address: service, service: named, proof: Proof::Operator(credentials, ANSWER_BYTES_MAX + 8192) })
}

fn print(text: &str) {
    if let Some(text) = Some(text.trim_end()).filter(|text| !text.is_empty()) {
        say!("{text}");
    }
}

/// An operator and the way to the service.
pub(super) struct Asking<'a> {
    pub(super) way: &'a Way,
    pub(super) operator: &'a Operator,
    pub(super) words: &'a [String],
}

/// An order as it was given, and its answer.
struct Given {
    private: Zeroizing<[u8; sealing::KEY_LEN]>,
    text: Vec<u8>,
    /// Who has no key to sign the answer with.
    is_for_keeper: bool,
    status: u16,
    body: Vec<u8>,
}

impl Asking<'_> {
    pub(super) fn step(&self, step: Step) -> Result<Stepped, Failure> {
        let Outcome { printed, failure } = self.order(Some(step))?;
        match failure {
            Some(line) => Err(Failure::new(line)),
            None => serde_json::from_str(&printed).map_err(Failure::new),
        }
    }

    /// Gives the order, in its turn, and what came of it. It is made anew each time: of orders of one
    /// operator the site takes none that was made before another one that it has carried out.
    pub(super) fn order(&self, step: Option<Step>) -> Result<Outcome, Failure> {
        self.outcome(&self.way.in_turn(|| self.give(step), |given| (given.status, &given.body))?)
    }

    fn order_once(&self, step: Option<Step>) -> Result<Outcome, Failure> {
        self.outcome(&self.give(step)?)
    }

    fn give(&self, step: Option<Step>) -> Result<Given, Failure> {
        let mut private = Zeroizing::new([0; sealing::KEY_LEN]);
        randomness::secrets()?.fill(&mut *private);
        let answer_key = sealing::public_half(*private).map_err(Failure::new)?;
        let is_for_keeper = orders::is_for_keeper(self.words, step.as_ref());
        let order = Order { made_unix_ms: now_unix_ms(), answer_key, words: self.words.to_vec(), step };
        let text = serde_json::to_vec(&order).map_err(Failure::new)?;
        if text.len() > identity::order::ORDER_LEN_MAX {
            return Err(Failure::new("the command is too long for an order; give it in parts"));
        }
        let signed = self.operator.sign(&text).map_err(Failure::new)?;
        let (status, body) = self.way.answer(ORDER_PATH, Some(signed.to_pem().as_bytes()))?;
        Ok(Given { private, text, is_for_keeper, status, body })
    }

    fn outcome(&self, given: &Given) -> Result<Outcome, Failure> {
        let Given { private, text, is_for_keeper, status, body } = given;
        if *status != 200 {
            return Err(self.refused(*status, body));
        }
        let authority = Some(self.operator.anchor()).filter(|_| !is_for_keeper);
        let opened = orders::open(private, text, body, authority);
        let line = "the service's answer is not for this order, or not signed by the site; use one version, and see \
                    `ringwall site audit` for what was done";
        opened.ok_or_else(|| Failure::new(line))
    }

    fn refused(&self, status: u16, body: &[u8]) -> Failure {
        let word = String::from_utf8_lossy(body);
        let who = self.operator.certificate();
        let (name, role) = (who.name(), who.role());
        let why = match NotHeard::ALL.into_iter().find(|why| why.word() == word.trim()) {
            Some(NotHeard::Role) => format!("{name} is {role}, which is too little for that; the site has put it down"),
            Some(NotHeard::Removed) => format!("the site has put {name} out, or given him another file"),
            Some(NotHeard::Time) => "it was made at another time than the site has; set the clock".to_owned(),
            Some(NotHeard::Again) => "one that was made later was carried out; look what is there first".to_owned(),
            Some(NotHeard::Elsewhere) => "that is done at the authority's machine alone (`ringwall site`)".to_owned(),
            Some(NotHeard::Malformed) => "the service does not know that order; use one version".to_owned(),
            Some(NotHeard::Signature) | None => return self.way.refused(status, body),
        };
        Failure::new(format!("refused ({}): {why}", word.trim()))
    }
}
