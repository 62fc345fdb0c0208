//! A line that loses frames between the untrusted host and what is compared: the paper's dummynet router (its figure 4).
//!
//! It is the lab's own link, the same in front of every way, whose generator begins with the seed of the run anew: frame for
//! frame the same numbers are lost on all ways, as long as the ways send the same frames.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::impairment::{Impairment, Percent, Rate};
use crate::net::link::{self, ImpairedPort};
use crate::net::{Namespace, Running, lan};

/// What the hop does for one run, the same both ways.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Percent of frames that are lost.
    pub loss_percent: u8,
    /// How long every frame is under way.
    pub delay: Duration,
    /// How many Mbit/s it carries.
    pub rate_mbit: Option<u32>,
    /// Of the losses.
    pub seed: u64,
}

/// Nothing is lost, delayed or limited.
pub const PERFECT: Setting = Setting { loss_percent: 0, delay: Duration::ZERO, rate_mbit: None, seed: 1 };

/// The hop of one way. Dropping it removes it.
#[derive(Debug)]
pub struct Hop {
    namespace: Namespace,
    host: &'static str,
    directory: PathBuf,
    process: Option<Running>,
}

impl Hop {
    /// Makes the hop of `host`, which carries nothing yet; its log goes to `directory`.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn create(run: &Run, host: &'static str, directory: &Path) -> Result<Hop, Failure> {
        let namespace = Namespace::create(run, &format!("{host}hop"))?;
        Ok(Hop { namespace, host, directory: directory.to_owned(), process: None })
    }

    /// Puts it between `card` of `between` and the interface of a host.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn join(&self, between: &Namespace, card: &str, host: &Namespace) -> Result<(), Failure> {
        let name = self.namespace.name();
        between.ip(&format!("link add {card} type veth peer name {} netns {name}", link::OUTER))?;
        self.namespace.ip(&format!(
            "link add {} type veth peer name {} netns {}",
            link::INNER,
            lan::INTERFACE,
            host.name()
        ))?;
        between.ip(&format!("link set {card} up"))?;
        self.namespace.ip(&format!("link set {} up", link::INNER))?;
        self.namespace.ip(&format!("link set {} up", link::OUTER)).map(drop)
    }

    /// Switches offloads of its own interfaces and of `card`, which sends into it. It carries frames as a wire does only.
    ///
    /// # Errors
    /// `ethtool` fails.
    pub fn set_offloads(&self, between: &Namespace, card: &str, settings: &[&str]) -> Result<(), Failure> {
        lan::set_offloads(between, card, settings)?;
        lan::set_offloads(&self.namespace, link::INNER, settings)?;
        lan::set_offloads(&self.namespace, link::OUTER, settings)
    }

    /// Begins anew, with `setting`.
    ///
    /// # Errors
    /// The link does not start.
    pub fn restart(&mut self, setting: Setting) -> Result<(), Failure> {
        self.process = None;
        let impairment = Impairment {
            loss: Percent::whole(setting.loss_percent),
            delay: setting.delay,
            rate: setting.rate_mbit.map(Rate::mbit),
            ..Impairment::default()
        };
        let port = ImpairedPort { host: self.host, impairment, seed: setting.seed, program: None };
        self.process = Some(link::start(&self.namespace, &port, &self.directory)?);
        Ok(())
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        // After an interrupt the sweep has done it already. A process inside would keep the namespace alive.
        self.process = None;
        if crate::cleanup::permit().is_ok() {
            let _gone = self.namespace.delete();
        }
    }
}
