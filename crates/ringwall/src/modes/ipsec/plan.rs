//! What the files of mode `shield` decide, and from there to the bump at work.

use shield::ipsec::{Settings, Shield};
use system::bpf::Program;
use system::{ingress, takeover};

use super::beside::Keeping;
use super::config::Shield as Section;
use super::kernel::{self, IpsecMaps, Way};
use super::watch::{KeyWatch, peers};
use crate::daemon::{Crew, Load, serve};
use crate::failure::Failure;
use crate::host::start::{Checks, Ground, Opened, Ready, Start};
use crate::modes::contract::{Plan, Surroundings};

/// All that the shield needs.
pub(super) struct Shielding {
    section: Section,
    settings: Settings,
}

impl Shielding {
    /// With the keys out of their files.
    pub(super) fn make(surroundings: &Surroundings<'_>) -> Result<Shielding, Failure> {
        let Some(section) = surroundings.config.shield.clone() else {
            return Err(Failure::new("the section [shield] is missing"));
        };
        let settings = Settings { peers: peers(&section, surroundings.disk)?, ..section.settings() };
        Ok(Shielding { section, settings })
    }
}

impl Plan for Shielding {
    fn carry_out(self: Box<Self>, start: Start<'_>) -> Result<(), Failure> {
        let Shielding { section, settings } = *self;
        let keeping = Keeping { keys: KeyWatch::new(&section, start.disk), section: section.clone() };
        let ready = start.prepare(None, keeping, |ground| checks(&section, ground))?;
        let load = ready.load(Load::new(false));
        let Ready { ports, maps, clock, supervisor, .. } = ready;
        let mut shield = Shield::new(settings);
        if let Some(maps) = maps {
            shield.set_outpost(Box::new(maps));
        }
        match ports {
            Opened::Tap(ports) => serve(shield, Crew::none(), load, ports, clock, supervisor),
            Opened::Pair(ports) => serve(shield, Crew::none(), load, ports, clock, supervisor),
        }
    }
}

/// The programs in front of the wire's port or card.
fn checks(section: &Section, ground: &Ground<'_>) -> Checks<IpsecMaps> {
    let Opened::Pair(ports) = ground.ports else { return None };
    let (taken, index) = (ground.taken, ground.taken.wire_index);
    let attach = |program: &Program| takeover::in_wire_namespace(taken, || ingress::attach_loaded(program, index))?;
    let way = taken.outer_index().map(|outer| Way { attach: &attach, outer });
    let front = ground.front(section.kernel_hook, &ports.wire);
    Some(kernel::open(section.kernel, &front, way.as_ref()))
}
