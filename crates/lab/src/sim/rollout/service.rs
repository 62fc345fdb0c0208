//! The site's service: it keeps each host's newest report and answers with what is newer than the
//! host has. It reads the site's directory without a key, as the real one does.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use authority::directory::Record;
use authority::rollout::report::Report;
use authority::rollout::told::{Row, Told};
use identity::Verified;
use identity::policy::SitePolicy;

use crate::failure::Failure;

/// Its half that has the site's directory.
pub struct Service {
    record: Record,
    rows: BTreeMap<String, Row>,
    policy: Option<Arc<Verified<SitePolicy>>>,
    /// Reports that were refused.
    pub refused: u64,
}

impl Service {
    /// That of the site in `directory`.
    pub fn of(directory: &Path) -> Result<Service, Failure> {
        let record = Record::open(directory).map_err(unreadable)?;
        Ok(Service { record, rows: BTreeMap::new(), policy: None, refused: 0 })
    }

    /// Looks at the policy anew.
    pub fn look(&mut self) -> Result<(), Failure> {
        self.policy = self.record.policy().map_err(unreadable)?.map(Arc::new);
        Ok(())
    }

    /// The newest policy that it knows.
    pub fn policy(&self) -> Option<Arc<Verified<SitePolicy>>> {
        self.policy.clone()
    }

    /// Takes what the host of this name sends, and gives what it should have.
    pub fn take(&mut self, host: &str, bytes: &[u8], unix_ms: u64) -> Option<Arc<Verified<SitePolicy>>> {
        let Ok(report) = Report::parse(bytes) else {
            self.refused += 1;
            return None;
        };
        let has = report.policy.version;
        let row = Row { host: host.to_owned(), received_unix_ms: unix_ms, report };
        self.rows.insert(host.to_owned(), row);
        self.policy.clone().filter(|policy| Some(policy.version()) > has)
    }

    /// What `ringwall site hosts` and `forecast` go by.
    pub fn told(&self, unix_s: u64) -> Result<Told, Failure> {
        Told::of(&self.record, self.rows.values().cloned().collect(), unix_s).map_err(unreadable)
    }

    /// How many hosts have reported since then.
    pub fn reported_since(&self, unix_ms: u64) -> usize {
        self.rows.values().filter(|row| row.received_unix_ms >= unix_ms).count()
    }
}

/// What the site says, as a failure of the lab.
pub fn unreadable(error: impl std::fmt::Display) -> Failure {
    Failure::Unreadable(format!("the simulated site: {error}"))
}
