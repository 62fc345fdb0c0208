//! The option by which commands of a host's daemon name its configuration.

use std::path::PathBuf;

use clap::Args;

use crate::config::DEFAULT_FILE;

/// Options that name the configuration.
#[derive(Args, Debug, Clone)]
pub(crate) struct ConfigArgs {
    /// Configuration file.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(crate) config: PathBuf,
}
