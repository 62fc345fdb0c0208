//! The processes that tell others of a daemon.

use crate::config::Records;
use crate::failure::Failure;
use crate::metrics::exporter::Exporter;
use crate::recorder::Recorder;

/// Those that tell others of the daemon.
pub(crate) struct Companions {
    pub(crate) recorder: Recorder,
    pub(crate) exporter: Option<Exporter>,
}

impl Companions {
    /// Starts those that are wanted for the daemon of `interface`, while there are privileges.
    pub(crate) fn start(records: &Records, interface: &str) -> Result<Companions, Failure> {
        Ok(Companions { recorder: Recorder::start(records, interface)?, exporter: Exporter::start(records)? })
    }
}
