//! Landlock: no file and no port is within reach but those that are named. Each kernel does what it
//! knows of it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

/// The newest generation whose rights are handled. What later ones add is not restricted until it
/// has been tried.
const NEWEST: ABI = ABI::V6;

/// What stays within reach.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Directories below which files may be read.
    pub readable: Vec<PathBuf>,
    /// Directories below which files may be read, made, changed and removed.
    pub writable: Vec<PathBuf>,
    /// The ports to which connections over TCP may be made.
    pub connects: Ports,
}

/// Ports of other machines, and of this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ports {
    /// None.
    #[default]
    Closed,
    /// These alone, as far as the kernel knows ports (Linux 6.7).
    These(Vec<u16>),
    /// All.
    All,
}

/// What of Landlock is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landlocked {
    /// All that this program asks for.
    Wholly,
    /// What a kernel of this generation knows.
    InPart(String),
    /// Nothing.
    Not(&'static str),
}

impl fmt::Display for Landlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Landlocked::Wholly => f.write_str("in force"),
            Landlocked::InPart(generation) => write!(f, "in force as far as this kernel knows it ({generation})"),
            Landlocked::Not(reason) => write!(f, "not in force: {reason}"),
        }
    }
}

/// Shuts this thread, and those that it starts, out of everything but `reach`.
///
/// # Errors
/// Fails if the kernel refuses, or if a directory is not there. A kernel without Landlock is no
/// error.
pub fn confine(reach: &Reach) -> io::Result<Landlocked> {
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(NEWEST)).map_err(io::Error::other)?;
    ruleset = ruleset.handle_access(AccessNet::BindTcp).map_err(io::Error::other)?;
    if reach.connects != Ports::All {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp).map_err(io::Error::other)?;
    }
    let ruleset = ruleset.scope(Scope::from_all(NEWEST)).map_err(io::Error::other)?;
    let mut created = ruleset.create().map_err(io::Error::other)?;
    let readable = reach.readable.iter().map(|path| (path, AccessFs::from_read(NEWEST)));
    let writable = reach.writable.iter().map(|path| (path, AccessFs::from_all(NEWEST)));
    for (path, access) in readable.chain(writable) {
        let directory = PathFd::new(path).map_err(io::Error::other)?;
        created = created.add_rule(PathBeneath::new(directory, access)).map_err(io::Error::other)?;
    }
    if let Ports::These(ports) = &reach.connects {
        for port in ports {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(io::Error::other)?;
        }
    }
    let status = created.restrict_self().map_err(io::Error::other)?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::FullyEnforced, _) => Landlocked::Wholly,
        (RulesetStatus::PartiallyEnforced, LandlockStatus::Available { effective_abi, .. }) => {
            Landlocked::InPart(format!("{effective_abi}"))
        }
        (RulesetStatus::PartiallyEnforced, _) => Landlocked::InPart("of an unknown generation".to_owned()),
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Landlocked::Not("the kernel has it, and it is switched off (lsm=)")
        }
        (RulesetStatus::NotEnforced, _) => Landlocked::Not("the kernel has none"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Landlock is of a thread, so the rest of the tests go on.
    #[test]
    fn connections_are_made_to_the_ports_that_are_named_and_to_no_other() {
        let tried = std::thread::spawn(|| {
            let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("bound"));
            let [named, other] = listeners.each_ref().map(|one| one.local_addr().expect("an address"));
            let connects = Ports::These(vec![named.port()]);
            let landlocked = confine(&Reach { connects, ..Reach::default() }).expect("confined");
            std::net::TcpStream::connect(named).expect("connected");
            (landlocked, std::net::TcpStream::connect(other).map(drop).map_err(|error| error.kind()))
        });
        let (landlocked, other) = tried.join().expect("ended");
        // An earlier kernel knows no ports.
        match landlocked {
            Landlocked::Wholly => assert_eq!(other, Err(io::ErrorKind::PermissionDenied)),
            Landlocked::InPart(_) | Landlocked::Not(_) => eprintln!("SKIPPED: Landlock is {landlocked}"),
        }
    }
}
