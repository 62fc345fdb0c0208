//! What configuration files of all kinds have in common, and the sections that belong to no mode.
//!
//! Each mode has its own section (`modes/*/config.rs`), and `modes/file.rs` the whole file. Unknown
//! keys are errors, because a misspelt key that is silently ignored is a hole that nobody sees.
//! What a word must be, its type says (`try_from`): it is read once, and what has been read is
//! right.

mod changes;
mod dhcp;
pub(crate) mod duration;
mod host;
mod kernel_hook;
mod lab;
mod near;
mod passable;
mod real_time;
mod records;
mod site;
mod station;
mod text;

pub(crate) use self::changes::{changed_keys, restart_line};
pub(crate) use self::dhcp::Dhcp;
pub(crate) use self::host::{
    DEFAULT_FILE, DEFAULT_GATE_FILE, DIRECTORY, Host, OnExit, POLICY_FILE, Profile, Takeover, default_file,
    default_run_dir, default_state_dir,
};
pub(crate) use self::kernel_hook::HookName;
pub(crate) use self::lab::{Lab, Switch};
pub(crate) use self::passable::{PASSABLE, Passed};
pub(crate) use self::real_time::RealTime;
pub(crate) use self::records::{LocalAddress, Records, SyslogAddress};
pub(crate) use self::site::Site;
pub(crate) use self::station::Station;
pub(crate) use self::text::{UNREADABLE, read_text, socket, syntax};
