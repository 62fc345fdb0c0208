//! As whom a daemon runs.

use std::fmt;
use std::fs;
use std::io;

/// The account that the package makes.
pub const NAME: &str = "ringwall";
/// User and group where there is no such account. It lies between what systemd hands out by itself
/// (61184 to 65519) and `nobody` (65534), whom others are, too.
pub const UNNAMED_ID: u32 = 65_530;

/// Accounts of this machine. Those of a directory service are of no use: its network is what is
/// being guarded.
const ACCOUNTS: &str = "/etc/passwd";

/// A user that is not root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    uid: u32,
    gid: u32,
    is_named: bool,
}

impl User {
    /// The account [`NAME`] or, without one, the number [`UNNAMED_ID`].
    ///
    /// # Errors
    /// Fails if the accounts cannot be read, if the account is root's, or if somebody else has that
    /// number.
    pub fn find() -> io::Result<User> {
        let accounts = match fs::read_to_string(ACCOUNTS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            other => other?,
        };
        User::among(&accounts)
    }

    fn among(accounts: &str) -> io::Result<User> {
        let entries = accounts.lines().filter_map(entry);
        for (name, uid, gid) in entries {
            if name == NAME && (uid == 0 || gid == 0) {
                return Err(io::Error::other(format!("the account {NAME} is root's; give it numbers of its own")));
            }
            if name == NAME {
                return Ok(User { uid, gid, is_named: true });
            }
        }
        if let Some((name, ..)) = accounts.lines().filter_map(entry).find(|(_, uid, _)| *uid == UNNAMED_ID) {
            let line = format!("{name} has the number {UNNAMED_ID}; make an account {NAME} (docs/manual/sandbox.md)");
            return Err(io::Error::other(line));
        }
        Ok(User { uid: UNNAMED_ID, gid: UNNAMED_ID, is_named: false })
    }

    /// Whether there is an account of that name.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.is_named
    }

    /// Its number.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The number of its group.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_named {
            true => write!(f, "{NAME} ({})", self.uid),
            false => write!(f, "{} (there is no account {NAME})", self.uid),
        }
    }
}

/// Name, user and group of a line (passwd(5)).
fn entry(line: &str) -> Option<(&str, u32, u32)> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((name, uid, gid))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "root:x:0:0:root:/root:/bin/bash\n";

    #[test]
    fn the_account_of_the_package_comes_first() {
        let accounts = format!("{ROOT}ringwall:x:990:991:Ringwall:/:/usr/sbin/nologin\nb:x:65530:1::/:/bin/sh\n");
        assert_eq!(User::among(&accounts).expect("a user"), User { uid: 990, gid: 991, is_named: true });
        let without = User::among(ROOT).expect("a user");
        assert_eq!((without.uid(), without.gid(), without.is_named), (UNNAMED_ID, UNNAMED_ID, false));
    }

    #[test]
    fn nobody_elses_number_is_taken_and_never_roots() {
        for line in ["ringwall:x:0:7::/:/bin/sh", "ringwall:x:7:0::/:/bin/sh", "other:x:65530:7::/:/bin/sh"] {
            assert!(User::among(&format!("{ROOT}{line}\n")).is_err(), "{line}");
        }
    }
}
