//! `ringwall leave`: what `ringwall join` did, undone. It may be given again after an interruption,
//! and to a machine that never got to the end of joining.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use system::takeover::{self, state};

use super::account::{Account, Outcome};
use super::around;
use super::units::Units;
use super::{CONFIG_DIRECTORY, PlaceArguments, TellingArguments};
use crate::config;
use crate::enroll::kept_beside;
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::{client, host};

/// Arguments of `leave`.
#[derive(Debug, Args)]
pub(crate) struct LeaveArguments {
    #[command(flatten)]
    places: PlaceArguments,
    /// Remove the identity as well, and all that the daemon has kept; the host needs another token
    /// to come back
    #[arg(long)]
    forget: bool,
    #[command(flatten)]
    telling: TellingArguments,
}

/// What there is to undo.
struct Leaving {
    interface: String,
    file: PathBuf,
    /// None if it is gone, or cannot be read.
    config: Option<Config>,
    state_dir: PathBuf,
    run_dir: PathBuf,
    units: Units,
}

impl LeaveArguments {
    /// Carries the command out and tells each step.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut account = Account::new(self.telling.json);
        let outcome = self.carry_out(&mut account);
        account.close("left", outcome)
    }

    fn carry_out(&self, account: &mut Account) -> Result<(), Failure> {
        let leaving = self.find()?;
        account.fact("interface", json!(leaving.interface));
        if self.telling.dry_run {
            self.tell_plan(&leaving, account);
            return Ok(());
        }
        self.telling.agree(&format!("leave with {}? Its traffic is in clear then.", leaving.interface))?;
        // First what would start the daemon again, last what says where everything is.
        leaving.disable(account)?;
        leaving.release(account)?;
        if let Units::Systemd(unit) = &leaving.units {
            unit.stop()?;
        }
        if self.forget {
            leaving.forget(account)?;
        }
        leaving.unmake_usual();
        remove(&leaving.file, "configuration", account)
    }

    fn find(&self) -> Result<Leaving, Failure> {
        let (interface, file) = match (&self.places.interface, &self.places.config) {
            (Some(name), _) => (name.clone(), self.places.config_of(name)),
            (None, Some(file)) => (Config::load(file)?.host.interface, file.clone()),
            (None, None) => only_one(Path::new(CONFIG_DIRECTORY))?,
        };
        if !takeover::is_interface_name(&interface) {
            return Err(Failure::new(format!("{interface:?} is no name of an interface; name one with --interface")));
        }
        // One that cannot be read must not keep an interface guarded.
        let config = Config::load(&file).ok();
        let state_dir = config.as_ref().map_or_else(|| self.places.state_dir.clone(), |one| one.host.state_dir.clone());
        let units = Units::of(&interface, self.places.no_units).with(&interface, &file);
        let run_dir = self.places.run_dir.clone();
        Ok(Leaving { interface, file, config, state_dir, run_dir, units })
    }

    fn tell_plan(&self, leaving: &Leaving, account: &mut Account) {
        let kept =
            if self.forget { "identity and all that was kept" } else { "nothing else; --forget removes the identity" };
        for (step, text) in [
            ("units", "disabled".to_owned()),
            ("release", format!("{} is given back, in clear", leaving.interface)),
            ("configuration", format!("{} removed", leaving.file.display())),
            ("forget", kept.to_owned()),
        ] {
            account.step(step, Outcome::Planned, &text);
        }
    }
}

impl Leaving {
    fn disable(&self, account: &mut Account) -> Result<(), Failure> {
        match &self.units {
            Units::Systemd(unit) => {
                unit.disable()?;
                account.step("units", Outcome::Done, "disabled");
            }
            Units::None(why) => account.step("units", Outcome::Note, &format!("nothing to disable: {why}")),
        }
        Ok(())
    }

    fn release(&self, account: &mut Account) -> Result<(), Failure> {
        let was_taken = state::load(&self.state_dir, &self.interface)?.is_some();
        match &self.config {
            Some(config) => {
                host::release_interface(config)?;
            }
            None => {
                let socket = config::socket(&self.run_dir, &self.interface);
                client::stop(&socket, &self.interface, host::STOP_TIME_MAX)?;
                if was_taken {
                    takeover::release(&self.interface, &self.run_dir, &self.state_dir)?;
                }
            }
        }
        // Of a joining that never came to its end.
        let _ = fs::remove_file(around::file_of(&self.state_dir, &self.interface));
        let (outcome, text) = match was_taken {
            true => (Outcome::Done, format!("{} is given back; its traffic is in clear", self.interface)),
            false => (Outcome::WasThere, format!("{} is not guarded", self.interface)),
        };
        account.step("release", outcome, &text);
        Ok(())
    }

    /// Commands without `--config` do not mean this host any more.
    fn unmake_usual(&self) {
        let usual = Path::new(config::DEFAULT_FILE);
        let is_ours = fs::read_link(usual).is_ok_and(|to| self.file.file_name() == Some(to.as_os_str()));
        if is_ours && self.file.parent() == usual.parent() {
            let _ = fs::remove_file(usual);
        }
    }

    /// Removes the identity and what the daemon has kept of this interface.
    fn forget(&self, account: &mut Account) -> Result<(), Failure> {
        if let Some(config) = &self.config {
            let _ = fs::remove_file(kept_beside(&config.host.identity));
            remove(&config.host.identity, "identity", account)?;
        }
        let begins = format!("{}.", self.interface);
        for entry in fs::read_dir(&self.state_dir).into_iter().flatten().flatten() {
            let is_ours = entry.file_name().to_string_lossy().starts_with(&begins);
            if is_ours && entry.file_type().is_ok_and(|sort| sort.is_file()) {
                let file = entry.path();
                fs::remove_file(&file).map_err(|error| Failure::file(&file, error, "remove it"))?;
            }
        }
        Ok(())
    }
}

fn remove(file: &Path, step: &str, account: &mut Account) -> Result<(), Failure> {
    match fs::remove_file(file) {
        Ok(()) => account.step(step, Outcome::Done, &format!("{} is removed", file.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            account.step(step, Outcome::WasThere, &format!("{} is gone", file.display()));
        }
        Err(error) => return Err(Failure::file(file, error, "remove it")),
    }
    Ok(())
}

/// The only host's configuration in a directory. A link to another file is no second host.
fn only_one(directory: &Path) -> Result<(String, PathBuf), Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let file = entry.path();
        let is_one =
            entry.file_type().is_ok_and(|sort| sort.is_file()) && file.extension().is_some_and(|end| end == "toml");
        if let Some(config) = is_one.then(|| Config::load(&file).ok()).flatten() {
            found.push((config.host.interface, file));
        }
    }
    found.sort_unstable();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::file(directory, "no host's configuration is there", "name the interface with --interface")),
        _ => {
            let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
            Err(Failure::new(format!(
                "several interfaces are guarded: {}; name one with --interface",
                names.join(", ")
            )))
        }
    }
}
