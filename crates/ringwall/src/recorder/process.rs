//! The recorder's own process: reads what the daemon tells and carries it on, until the daemon is gone.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use system::{privilege, sandbox};

use super::command::Commands;
use super::eve::{self, EveFile};
use super::history::History;
use super::syslog::{self, Syslog};
use super::{Message, journald};
use crate::companion;
use crate::config::Records;
use crate::failure::Failure;
use crate::protocol::attacks::Attack;
use crate::protocol::flow_record::FlowRecord;

/// Longest line in bytes; a record is a few thousand at most.
const LINE_MAX: u64 = 65_536;
/// How often commands that run are looked after.
const TURN: Duration = Duration::from_secs(1);

/// `ringwall recorder`, which a daemon starts with a socket as its standard input.
pub(crate) fn run() -> Result<(), Failure> {
    let stream = companion::socket("a daemon starts its recorder by itself; use `ringwall host run`")?;
    sandbox::forbid_dumps().map_err(Failure::new)?;
    privilege::keep(&[]).map_err(Failure::new)?;
    stream.set_read_timeout(Some(TURN)).map_err(Failure::new)?;
    let mut places = Places::default();
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while let Some(message) = next(&mut reader, &mut line, || places.turn()) {
        places.take(message);
    }
    Ok(())
}

/// The next message; none when the daemon is gone. `idle` is called while there is none.
fn next(reader: &mut impl BufRead, line: &mut Vec<u8>, mut idle: impl FnMut()) -> Option<Message> {
    line.clear();
    loop {
        let room = LINE_MAX.saturating_sub(line.len() as u64);
        match reader.by_ref().take(room).read_until(b'\n', line) {
            Ok(0) => return None,
            Ok(_) if line.ends_with(b"\n") => return serde_json::from_slice(line).ok(),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => idle(),
            Err(_) => return None,
        }
    }
}

/// Where attacks are told.
#[derive(Default)]
struct Places {
    records: Option<Records>,
    journal: Option<UnixDatagram>,
    eve: Option<EveFile>,
    syslog: Option<Syslog>,
    commands: Option<Commands>,
    history: Option<History>,
    /// Whose daemon it is.
    interface: String,
    /// What went wrong last at each place, so that it is said once.
    trouble: Vec<(&'static str, String)>,
}

impl Places {
    fn take(&mut self, message: Message) {
        match message {
            Message::Configure(records, interface) => {
                self.interface = interface;
                self.configure(records);
            }
            Message::Reopen => {
                self.eve.iter_mut().for_each(EveFile::reopen);
                self.trouble.clear();
            }
            Message::Tell(attack) => self.tell(&attack),
            Message::Flows(host, flows) => self.tell_flows(&host, &flows),
            Message::Change(change) => self.keep(|history| history.change(&change)),
            Message::Holding(holding) => self.keep(|history| history.holding(&holding)),
        }
    }

    /// What has not changed stays as it is, budgets among it.
    fn configure(&mut self, records: Records) {
        if self.records.as_ref() == Some(&records) {
            return;
        }
        self.journal = if records.journal && journald::is_there() { journald::open().ok() } else { None };
        self.eve = records.eve_file.as_ref().map(|name| EveFile::new(name, records.eve_max_bytes));
        self.commands = records.command.as_ref().map(|command| Commands::new(command, records.commands_per_hour));
        self.syslog = None;
        self.open_history(&records);
        self.records = Some(records);
    }

    fn open_history(&mut self, records: &Records) {
        self.history = None;
        let Some(file) = &records.history_file else { return };
        match History::open(file, records.history_max_bytes, records.history_days, &self.interface) {
            Ok(history) => self.history = Some(history),
            Err(error) => self.note("records.history_file", Err(error)),
        }
    }

    /// Has the history kept, where there is one.
    fn keep(&mut self, enter: impl FnOnce(&mut History) -> io::Result<()>) {
        if let Some(kept) = self.history.as_mut().map(enter) {
            self.note("records.history_file", kept);
        }
    }

    fn tell(&mut self, attack: &Attack) {
        if let Some(journal) = &self.journal {
            let sent = journal.send(journald::fields(attack).as_bytes()).map(drop);
            self.note("journald", sent);
        }
        if let Some(written) = self.eve.as_mut().map(|eve| eve.write(&eve::lines(attack))) {
            self.note("records.eve_file", written);
        }
        if let Some(sent) = self.send_to_syslog(attack) {
            self.note("records.syslog", sent);
        }
        self.keep(|history| history.attack(attack));
        let commands = self.commands.as_mut().filter(|_| attack.phase == bump::record::Phase::Opened.word());
        if let Some(ran) = commands.map(|commands| commands.run(attack, Instant::now())) {
            self.note("records.command", ran);
        }
    }

    /// Connections that are over are told in EVE alone.
    fn tell_flows(&mut self, host: &str, flows: &[FlowRecord]) {
        let interface = self.interface.clone();
        let written = self.eve.as_mut().map(|eve| {
            let mut lines = flows.iter().map(|flow| eve::flow(flow, host, &interface));
            lines.try_for_each(|line| eve.write(&[line]))
        });
        written.into_iter().for_each(|written| self.note("records.eve_file", written));
    }

    /// A syslog daemon that was started anew is found again.
    fn send_to_syslog(&mut self, attack: &Attack) -> Option<io::Result<()>> {
        let address = self.records.as_ref()?.syslog_address()?;
        let text = syslog::message(attack);
        if let Some(syslog) = &self.syslog
            && syslog.send(&text).is_ok()
        {
            return Some(Ok(()));
        }
        let sent = Syslog::open(&address).and_then(|syslog| {
            syslog.send(&text)?;
            self.syslog = Some(syslog);
            Ok(())
        });
        Some(sent)
    }

    /// Says what went wrong, once until it is something else.
    fn note(&mut self, place: &'static str, outcome: io::Result<()>) {
        let said = outcome.err().map(|error| error.to_string());
        let before = self.trouble.iter().position(|(name, _)| *name == place).map(|at| self.trouble.swap_remove(at).1);
        let Some(text) = said else { return };
        if before.as_ref() != Some(&text) {
            tracing::warn!("{place}: {text}; this attack is not told there");
        }
        self.trouble.push((place, text));
    }

    fn turn(&mut self) {
        if let Some(commands) = &mut self.commands {
            commands.reap(Instant::now());
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let interface = self.interface.clone();
        self.keep(|history| history.turn(now_ms, &interface));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::protocol::attacks::{Attack, FlowOf, PartyOf, PlaceOf, SortOf, SpanOf};

    /// Somebody claims the address of desk-11 against desk-10.
    pub(in crate::recorder) fn attack() -> Attack {
        let party = |name: Option<&str>, ip: Option<&str>, mac: &str| PartyOf {
            name: name.map(str::to_owned),
            ip: ip.map(str::to_owned),
            mac: Some(mac.to_owned()),
        };
        let kind = bump::record::Kind::ArpSpoofing;
        Attack {
            number: 1,
            place: PlaceOf { host: "desk-10".to_owned(), interface: "eth0".to_owned(), mode: "cll".to_owned() },
            sort: SortOf {
                kind: kind.word().to_owned(),
                kind_number: kind as u64,
                severity: kind.severity().word().to_owned(),
                priority: kind.severity() as u8,
                advice: kind.advice().to_owned(),
            },
            phase: "opened".to_owned(),
            source: party(None, None, "02:00:00:00:00:66"),
            claimed: party(Some("desk-11"), Some("192.0.2.11"), "02:00:00:00:00:0b"),
            target: party(Some("desk-10"), Some("192.0.2.10"), "02:00:00:00:00:0a"),
            is_sum: false,
            reason: "plain-arp".to_owned(),
            count: 200,
            span: SpanOf {
                first: "2026-09-21T14:13:19.000Z".to_owned(),
                last: "2026-09-21T14:13:20.000Z".to_owned(),
                first_unix_ms: 1_789_999_999_000,
                last_unix_ms: 1_790_000_000_000,
            },
            sentence: "02:00:00:00:00:66 says by ARP that it has the address of desk-11".to_owned(),
            flow: FlowOf::default(),
            sample_base64: "AgAAAAAK".to_owned(),
        }
    }

    #[test]
    fn lines_are_read_whole_and_a_long_one_ends_it() {
        let message = serde_json::to_string(&Message::Tell(Box::new(attack()))).expect("JSON");
        let text = format!("{message}\n{message}\n");
        let mut reader = io::BufReader::with_capacity(7, text.as_bytes());
        let mut line = Vec::new();
        for _ in 0..2 {
            assert!(matches!(next(&mut reader, &mut line, || {}), Some(Message::Tell(_))));
        }
        assert!(next(&mut reader, &mut line, || {}).is_none());
        let long = vec![b'x'; 70_000];
        assert!(next(&mut io::BufReader::new(&long[..]), &mut line, || {}).is_none());
    }

    #[test]
    fn what_goes_wrong_is_said_once_and_again_when_it_is_something_else() {
        let mut places = Places::default();
        let wrong = |text: &str| Err(io::Error::other(text.to_owned()));
        places.note("a", wrong("x"));
        places.note("a", wrong("x"));
        assert_eq!(places.trouble.len(), 1);
        places.note("a", Ok(()));
        assert!(places.trouble.is_empty());
    }
}
