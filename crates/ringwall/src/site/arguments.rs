//! Words of the command line that several commands have.

use std::time::Duration;

use authority::directory::Sharing;
use authority::files::Overwrite;
use identity::certificate::Role;

use super::DAY;

pub(super) fn overwrite(force: bool) -> Overwrite {
    if force { Overwrite::Force } else { Overwrite::Never }
}

pub(super) fn sharing(is_allowed: bool) -> Sharing {
    if is_allowed { Sharing::Allowed } else { Sharing::Refused }
}

pub(super) fn parse_role(name: &str) -> Result<Role, String> {
    Role::from_name(name).ok_or_else(|| "a role is 'host', 'router', 'akd' or 'dhcp'".to_owned())
}

pub(super) fn whole_days(validity: Duration) -> u32 {
    u32::try_from(validity.as_secs() / DAY.as_secs()).unwrap_or(u32::MAX)
}
