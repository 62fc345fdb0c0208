//! Tickets of the link layer on disk, so that associations are resumed after a reboot of either
//! side (docs/protocol.md, section 25).
//!
//! One directory for each interface, with a file for each peer's ticket and one for the keys of
//! this host's own; all for root only. A file is written whole or not at all, and what a killed
//! daemon had begun goes at the next start. What cannot be read is removed: it costs its peer a
//! handshake. Nothing here is a traffic key, and nothing here lets anybody read what was sealed
//! before. Whoever copies the file with the keys, together with the site key, can come back to this
//! host in the name of any peer until the keys are replaced, and read what this host then sends it
//! (docs/threats.md).

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use authority::files;
use cll::limits::{TICKET_KEYS, TICKETS_HELD_MAX, TICKETS_SPENT_MAX};
use cll::{Effect, HeldTicket, IssuingKey, Remembered, TicketId};
use identity::HostIdentity;
use identity::pem;
use wire::MacAddress;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::modes::file::Config;
use crate::monitor::{Disk, Home, Kept};

/// Files that are written in one turn, a second; each waits for the disk.
const FILES_PER_TURN: usize = 16;
const KEYS: &str = "keys.pem";
/// Numbers of tickets that are not taken any more, one behind the other.
const SPENT: &str = "spent.pem";
const REMEDY: &str = "make host.state_dir writable for root, or set cll.resumption = false";

/// The directory, and what is still to be written there.
pub(super) struct TicketFiles {
    directory: PathBuf,
    disk: Disk,
    keys: Option<Vec<IssuingKey>>,
    /// The oldest first.
    spent: VecDeque<TicketId>,
    spent_is_new: bool,
    /// What is to be kept of each peer; `None` to forget it.
    tickets: BTreeMap<MacAddress, Option<Box<HeldTicket>>>,
}

impl TicketFiles {
    /// Reads what earlier runs have kept. Where tickets are switched off, what is there is removed.
    ///
    /// # Errors
    /// What is wrong with the directory. The host works without it.
    pub(super) fn open(
        config: &Config,
        identity: &HostIdentity,
        disk: &Disk,
    ) -> Result<Option<(TicketFiles, Remembered)>, Failure> {
        let directory = Home::new(&config.host.state_dir, &config.host.interface).tickets();
        if !config.cll.resumption {
            remove_all(&directory).map_err(|error| Failure::file(&directory, error, "remove it by hand"))?;
            return Ok(None);
        }
        let refused = |error: io::Error| Failure::file(&directory, error, REMEDY);
        make_directory(&directory).and_then(|()| files::remove_staged(&directory)).map_err(refused)?;
        let names = names_in(&directory).map_err(refused)?;
        let mut files = TicketFiles {
            directory: directory.clone(),
            disk: disk.clone(),
            keys: None,
            spent: VecDeque::new(),
            spent_is_new: false,
            tickets: BTreeMap::new(),
        };
        files.spent = files.read_spent();
        let keys = files.read_keys();
        let tickets =
            names.iter().filter_map(|name| files.read_ticket(name, identity)).take(TICKETS_HELD_MAX).collect();
        let spent = files.spent.iter().copied().collect();
        Ok(Some((files, Remembered { tickets, keys, spent })))
    }

    fn read_keys(&self) -> Vec<IssuingKey> {
        let file = self.directory.join(KEYS);
        let blocks = files::read(&file).ok().and_then(|text| pem::blocks(&text).ok()).unwrap_or_default();
        let keys = blocks.iter().filter(|block| block.label == pem::TICKET_KEY);
        keys.filter_map(|block| IssuingKey::from_bytes(&block.bytes)).take(TICKET_KEYS).collect()
    }

    fn read_spent(&self) -> VecDeque<TicketId> {
        let file = self.directory.join(SPENT);
        let bytes = files::read(&file).ok().and_then(|text| pem::single(&text, pem::SPENT_TICKETS).ok());
        let bytes = bytes.unwrap_or_default();
        bytes.as_chunks().0.iter().copied().take(TICKETS_SPENT_MAX).collect()
    }

    /// The ticket in the file of this name. One that is damaged, or of another site or host, is
    /// removed.
    fn read_ticket(&self, name: &str, identity: &HostIdentity) -> Option<HeldTicket> {
        if name == KEYS || name == SPENT {
            return None;
        }
        let file = self.directory.join(name);
        let bytes = files::read(&file).ok().and_then(|text| pem::single(&text, pem::TICKET).ok());
        let ticket = bytes.and_then(|bytes| HeldTicket::from_bytes(&bytes, identity.anchor()));
        let ticket = ticket.filter(|ticket| name == file_name(ticket.mac()));
        if ticket.is_none() {
            tracing::warn!(file = %file.display(), "this is no ticket that can be used; it is removed");
            let _ = fs::remove_file(&file);
        }
        ticket
    }

    /// Takes in what the link layer wants kept or forgotten; false if the effect is about something
    /// else.
    pub(super) fn take(&mut self, effect: &Effect) -> bool {
        match effect {
            Effect::KeepTicket(ticket) => _ = self.tickets.insert(ticket.mac(), Some(ticket.clone())),
            Effect::ForgetTicket(mac) => _ = self.tickets.insert(*mac, None),
            Effect::KeepTicketKeys(keys) => self.keys = Some(keys.clone()),
            Effect::KeepSpent(id) => {
                self.spent.push_back(*id);
                if self.spent.len() > TICKETS_SPENT_MAX {
                    self.spent.pop_front();
                }
                self.spent_is_new = true;
            }
            Effect::PermanentNeighbour { .. }
            | Effect::Remember(_)
            | Effect::RememberTime { .. }
            | Effect::CheckPolicy { .. }
            | Effect::ForgetNeighbour { .. }
            | Effect::KeepLease(_)
            | Effect::ForgetLease
            | Effect::CheckRevocationList { .. } => return false,
        }
        true
    }

    /// Writes some of what waits; what went wrong, if something did.
    pub(super) fn write(&mut self) -> Result<(), String> {
        self.write_some(FILES_PER_TURN)
    }

    /// Writes all that waits, at the end.
    pub(super) fn write_all(&mut self) -> Result<(), String> {
        self.write_some(usize::MAX)
    }

    /// The keys go first: tickets of peers are of use without them, those of ours are not.
    fn write_some(&mut self, files_max: usize) -> Result<(), String> {
        if let Some(keys) = self.keys.take() {
            let text = Zeroizing::new(keys.iter().map(key_block).collect::<String>());
            self.put(&Kept::TicketKeys, &text)?;
        }
        if std::mem::take(&mut self.spent_is_new) {
            let numbers = self.spent.iter().flatten().copied().collect::<Vec<u8>>();
            self.put(&Kept::SpentTickets, &pem::encode(pem::SPENT_TICKETS, &numbers))?;
        }
        for _ in 0..files_max {
            let Some((mac, ticket)) = self.tickets.pop_first() else { break };
            match ticket {
                Some(ticket) => self.put(&Kept::ticket(mac), &pem::encode(pem::TICKET, &ticket.to_bytes()))?,
                None => self.disk.remove(&Kept::ticket(mac)).map_err(|error| error.to_string())?,
            }
        }
        Ok(())
    }

    fn put(&self, kept: &Kept, text: &str) -> Result<(), String> {
        self.disk.write(kept, text).map_err(|error| error.to_string())
    }
}

fn key_block(key: &IssuingKey) -> String {
    pem::encode(pem::TICKET_KEY, &key.to_bytes()).to_string()
}

fn file_name(mac: MacAddress) -> String {
    format!("{mac}.pem")
}

fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    directory.parent().map_or(Ok(()), fs::create_dir_all)?;
    DirBuilder::new().mode(0o700).create(directory)
}

/// Names of the files in `directory`, in order; those of other programs, which this one never
/// makes, are left out.
fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.extend(entry?.file_name().into_string().ok().filter(|name| name.ends_with(".pem")));
    }
    names.sort_unstable();
    Ok(names)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_all(directory: &Path) -> io::Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    files::remove_staged(directory)?;
    for name in names_in(directory)? {
        remove(&directory.join(name))?;
    }
    fs::remove_dir(directory)
}
