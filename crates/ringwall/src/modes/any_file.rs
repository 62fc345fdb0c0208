//! Whose configuration a file is: commands that ask a daemon, and those that look at a file, serve
//! every kind.

use std::path::{Path, PathBuf};

use super::file::Config;
use super::gateway::config::GateConfig;
use crate::config::{read_text, socket};
use crate::failure::Failure;

/// A configuration file: one file, one daemon.
pub(crate) enum ConfigFile {
    /// Of a host, or of a key distributor.
    Host(Box<Config>),
    /// Of a gateway.
    Gate(Box<GateConfig>),
}

impl ConfigFile {
    /// Reads and checks `file`, which is a gateway's if it has a section `[gate]`.
    pub(crate) fn load(file: &Path) -> Result<ConfigFile, Failure> {
        let text = read_text(file)?;
        // What is wrong with the syntax is told by the reader below, with its line.
        let sections = toml::from_str::<toml::Table>(&text).unwrap_or_default();
        match (sections.contains_key("gate"), sections.contains_key("host")) {
            (true, true) => {
                let what = "[host] and [gate] stand in one file";
                Err(Failure::file(file, what, "give each daemon a file of its own"))
            }
            (true, false) => GateConfig::read(file, &text).map(|config| ConfigFile::Gate(Box::new(config))),
            (false, _) => Config::read(file, &text).map(|config| ConfigFile::Host(Box::new(config))),
        }
    }

    /// Where the daemon listens for commands.
    pub(crate) fn socket(&self, file: &Path) -> Result<PathBuf, Failure> {
        match self {
            ConfigFile::Host(config) => Ok(config.socket()),
            ConfigFile::Gate(config) => match &config.gate.trusted {
                Some(trusted) => Ok(socket(&config.gate.run_dir, trusted)),
                None => {
                    let remedy = "write it, or name the trusted interface with --interface";
                    Err(Failure::file(file, "key gate.trusted is missing", remedy))
                }
            },
        }
    }

    /// What is allowed and yet unwise, one line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        match self {
            ConfigFile::Host(config) => config.warnings(),
            ConfigFile::Gate(_) => Vec::new(),
        }
    }

    /// What is in force, defaults included, as a file.
    pub(crate) fn shown(&self) -> Result<String, Failure> {
        match self {
            ConfigFile::Host(config) => toml::to_string(config),
            ConfigFile::Gate(config) => {
                toml::to_string(&GateConfig { gate: config.gate.filled(), ..GateConfig::clone(config) })
            }
        }
        .map_err(Failure::new)
    }
}
