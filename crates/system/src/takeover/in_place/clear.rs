//! The TAP by which frames in clear come to the daemon.
//!
//! The guard redirects them there, which no packet socket hears: neither one on the card, since the
//! frame ends in front of it, nor one on the TAP, since a redirect does not pass those of a device
//! that sends. The TAP is gone with the daemon, and what is redirected to it then ends.

use std::os::fd::OwnedFd;

use super::super::TakeoverError;
use super::super::error::Doing;
use super::super::nft::table_name;
use super::super::nic::free_name;
use super::super::work::Work;
use super::guard::Guard;
use crate::tap_device;

/// The largest that a TAP has: a redirect takes no frame that is longer, and a super-frame of the
/// card is.
const MTU: u32 = 65_521;

impl Work<'_> {
    /// Makes the TAP and has the guard hand frames in clear to it; its name.
    pub(super) fn hand_clear_over(&mut self, guard: &mut Guard) -> Result<String, TakeoverError> {
        let interface = self.place.interface.as_str();
        let links = self.host.links().doing(interface, "list the interfaces")?;
        let name = free_name(interface, &links);
        let tap: OwnedFd = tap_device::open_while_held(&name).doing(interface, "open the TAP for frames in clear")?;
        let index = self.furnish(&name, MTU).doing(&self.place.interface, "set the TAP for frames in clear up")?;
        guard.hand_to(tap, index);
        Ok(name)
    }
}

/// Nobody but the guard sends by the TAP, so that nothing of this host is taken for the wire's.
pub(super) fn rules(interface: &str, tap: Option<&str>) -> String {
    let table = table_name(interface);
    tap.map_or_else(String::new, |tap| {
        format!(
            "table netdev {table} {{\n\
             chain in_clear {{ type filter hook egress device \"{tap}\" priority -500; policy drop;\n}}\n\
             }}\n"
        )
    })
}
