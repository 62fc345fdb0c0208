//! An authority whose certificates openssl makes, as people make them for their etcd.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::etcd::Seal;
use super::process;
use crate::failure::Failure;

/// One in a directory of its own.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
}

impl Authority {
    /// Makes one in the new directory `name`.
    ///
    /// # Errors
    /// The directory's own, or openssl's.
    pub fn found(place: &Path, name: &str) -> Result<Authority, Failure> {
        let directory = place.join(name);
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let authority = Authority { directory };
        authority.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=authority -days 2 \
             -keyout ca.key -out ca.pem",
        )?;
        Ok(authority)
    }

    fn openssl(&self, arguments: &str) -> Result<(), Failure> {
        let mut command = Command::new("openssl");
        command.current_dir(&self.directory).args(arguments.split_whitespace());
        process::must(command).map(drop)
    }

    /// A certificate for `address`, for servers and clients.
    ///
    /// # Errors
    /// As [`found`](Authority::found).
    pub fn issue(&self, name: &str, address: Ipv4Addr) -> Result<Seal, Failure> {
        let uses = self.directory.join("uses");
        let text =
            format!("subjectAltName=IP:{address}\nextendedKeyUsage=serverAuth,clientAuth\nbasicConstraints=CA:FALSE\n");
        std::fs::write(&uses, text).map_err(Failure::file("writing", &uses))?;
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
        ))?;
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile uses -out {name}.pem"
        ))?;
        let file = |ending: &str| self.directory.join(format!("{name}.{ending}"));
        Ok(Seal { ca: self.directory.join("ca.pem"), certificate: file("pem"), key: file("key") })
    }
}
