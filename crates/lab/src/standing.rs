//! `ringwall-lab up`, `exec` and `down`: a LAN that stays, to look at by hand.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::guard::{self, DISTRIBUTOR, Daemon, Guard, Setting, Site};
use crate::net::{Forwarding, ImpairedPort, Impairment, Lan, LanPlan, Namespace};

/// What LAN to make.
#[derive(Clone, Debug, clap::Args)]
pub struct UpArgs {
    /// What guards the honest hosts
    #[arg(long, value_enum, default_value = "none")]
    guard: Guard,
    /// Layers to switch off under guard weakened
    #[arg(long, value_delimiter = ',', value_name = "LAYER")]
    weaken: Vec<String>,
    /// Flood every frame to every port, so that host m hears all
    #[arg(long)]
    hub: bool,
    /// Limit every port to this rate
    #[arg(long, value_name = "MBIT")]
    rate: Option<u32>,
    /// The ringwall program; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    ringwall: Option<PathBuf>,
    /// Put our own impairing link before this host; what it does is said by the options below
    #[arg(long, value_name = "HOST")]
    impair: Option<String>,
    /// Seed of what the link leaves to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten, next_help_heading = "Impairing link")]
    impairment: Impairment,
}

impl UpArgs {
    fn plan(&self) -> Result<LanPlan, Failure> {
        let forwarding = if self.hub { Forwarding::Hub } else { Forwarding::Switch };
        let mut plan = LanPlan { forwarding, rate_mbit: self.rate, ..LanPlan::default() };
        if self.guard == Guard::Sarp {
            plan.hosts.push(DISTRIBUTOR);
        }
        let impaired = self.impair.as_deref().map(|name| self.impaired(&plan, name)).transpose()?;
        if impaired.is_none() && self.impairment != Impairment::default() {
            return Err(Failure::Usage("there is no link to impair: name a host with --impair HOST".to_owned()));
        }
        Ok(LanPlan { impaired, ..plan })
    }

    fn impaired(&self, plan: &LanPlan, name: &str) -> Result<ImpairedPort, Failure> {
        let unknown =
            || Failure::Usage(format!("--impair: there is no host {name}; there are {}", plan.hosts.join(", ")));
        let host = plan.hosts.iter().copied().find(|&host| host == name).ok_or_else(unknown)?;
        Ok(ImpairedPort { host, impairment: self.impairment.clone(), seed: self.seed, program: None })
    }
}

/// What to run where.
#[derive(Clone, Debug, clap::Args)]
pub struct ExecArgs {
    /// a, b, c (honest), m (the attacker) or bridge
    host: String,
    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// Makes the LAN and leaves it standing.
///
/// # Errors
/// It stands already, or a part of it fails; then nothing of it stays.
pub fn up(args: &UpArgs) -> Result<ExitCode, Failure> {
    let standing = Run::standing();
    if standing.directory().exists() {
        return Err(Failure::Usage("a LAN is up already: remove it with `ringwall-lab down`".to_owned()));
    }
    let program = match args.guard {
        Guard::None => None,
        _ => Some(guard::find_program(args.ringwall.as_deref())?),
    };
    let plan = args.plan()?;
    let run = cleanup::begin(standing)?;
    let mut lan = Lan::create(run, &plan)?;
    if let Some(program) = program {
        let site = Site::found(run, &program)?;
        let weaken: Vec<&str> = args.weaken.iter().map(String::as_str).collect();
        let setting = Setting { sarp: args.guard == Guard::Sarp, weaken: &weaken, ..Setting::default() };
        let daemons = guard_all(&site, &lan, &setting)?;
        daemons.into_iter().for_each(Daemon::leave_standing);
    }
    lan.leave_standing();
    for host in &lan.hosts {
        println!("{}  {}  {}  ringwall-lab exec {} -- COMMAND", host.name, host.ip, host.mac, host.name);
    }
    Ok(ExitCode::SUCCESS)
}

fn guard_all(site: &Site, lan: &Lan, setting: &Setting<'_>) -> Result<Vec<Daemon>, Failure> {
    let honest = lan.hosts.iter().filter(|host| host.name != "m");
    let mut daemons: Vec<Daemon> = honest.map(|host| site.guard(lan, host, setting)).collect::<Result<_, _>>()?;
    daemons.iter_mut().try_for_each(Daemon::await_ready)?;
    Ok(daemons)
}

/// Runs a command on a host of the standing LAN, with this terminal.
///
/// # Errors
/// No LAN is up, or the command cannot be started.
pub fn exec(args: &ExecArgs) -> Result<ExitCode, Failure> {
    let standing = Run::standing();
    if !standing.directory().exists() {
        return Err(Failure::Usage("no LAN is up: make one with `ringwall-lab up`".to_owned()));
    }
    let (program, arguments) =
        args.command.split_first().ok_or_else(|| Failure::Usage("there is no command to run".to_owned()))?;
    let namespace = Namespace::existing(&standing, &args.host);
    let status =
        namespace.command(program).args(arguments).status().map_err(Failure::io(format!("starting {program}")))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// Removes the standing LAN and what dead runs left.
///
/// # Errors
/// Something could not be removed.
pub fn down() -> Result<ExitCode, Failure> {
    let (removed, left) = cleanup::sweep_leftovers();
    for name in &removed {
        println!("removed {name}");
    }
    cleanup::report(&left);
    Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
