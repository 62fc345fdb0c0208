//! What a file demands for mode `null`, which has no section.

use std::path::Path;

use crate::config::{Host, Profile};
use crate::failure::Failure;
use crate::modes::name::Mode;

/// That nobody is without protection by mistake.
pub(crate) fn check(host: &Host, file: &Path) -> Result<(), Failure> {
    if host.mode == Mode::Null && host.profile != Profile::Lab {
        let what = "mode = \"null\" protects nothing and needs profile = \"lab\"";
        return Err(Failure::file(file, what, "use mode = \"cll\""));
    }
    Ok(())
}
