//! A program in the kernel in front of a mode: at which place it stands, and what becomes of it
//! where the one that was chosen is not to be had.
//!
//! It stands at one place only, or each forged frame would count twice. In front of the card the
//! socket keeps the filter that it has.

use std::io;
use std::os::fd::OwnedFd;

use bump::DropReason;
use shield::{Hook, Layers, MapShape};
use system::bpf::{Keys, Kind, Map, Program, Shape};
use system::port::PacketPort;
use system::xdp::{Mode, XdpError};

/// Where forged frames end, and what the kernel has dropped of them.
pub(crate) struct Standing {
    /// As configured.
    pub(crate) wanted: Layers,
    /// As it is.
    pub(crate) in_force: Layers,
    /// At which place in the kernel.
    pub(crate) hook: Option<Hook>,
    /// Why it is another, or at another place, in one line.
    pub(crate) reason: Option<String>,
    counters: Option<Counters>,
}

/// What the kernel counts, by reason.
type Counters = Box<dyn Fn() -> Vec<(DropReason, u64)> + Send>;

impl Standing {
    /// As configured, without the kernel.
    pub(crate) fn without_kernel(wanted: Layers) -> Standing {
        let in_force = if wanted == Layers::Kernel { Layers::Twin } else { wanted };
        Standing { wanted, in_force, hook: None, reason: None, counters: None }
    }

    /// The kernel should have taken a program, and did not.
    pub(crate) fn refused(error: &io::Error) -> Standing {
        let reason = format!("the kernel does not take the shield's program: {error}");
        Standing { reason: Some(reason), ..Standing::without_kernel(Layers::Kernel) }
    }

    pub(crate) fn in_kernel<M>(
        posted: &Posted<M>,
        counters: impl Fn() -> Vec<(DropReason, u64)> + Send + 'static,
    ) -> Standing {
        let (wanted, reason) = (Layers::Kernel, posted.refused.clone());
        let counters: Counters = Box::new(counters);
        Standing { wanted, in_force: wanted, hook: Some(posted.hook), reason, counters: Some(counters) }
    }

    /// Who drops forged frames, as the end of a sentence.
    pub(crate) fn who(&self) -> &'static str {
        match self.hook {
            Some(Hook::Socket) => "in front of the socket",
            Some(Hook::Xdp | Hook::XdpGeneric) => "in front of the card",
            None => "by this program",
        }
    }

    /// How often the kernel has dropped a frame, by reason.
    pub(crate) fn dropped_in_kernel(&self) -> Vec<(DropReason, u64)> {
        self.counters.as_ref().map_or_else(Vec::new, |counters| counters())
    }
}

/// Puts a program in front of the card, for as long as the descriptor is open.
pub(crate) type AttachToCard<'a> = dyn Fn(&Program, Mode) -> Result<OwnedFd, XdpError> + 'a;

/// Where a program may stand.
pub(crate) struct Front<'a> {
    /// Where it is to.
    pub(crate) wanted: Hook,
    pub(crate) port: &'a PacketPort,
    pub(crate) attach_to_card: &'a AttachToCard<'a>,
}

/// A program that stands.
pub(crate) struct Posted<M> {
    /// What it looks things up in.
    pub(crate) maps: M,
    /// Where it stands.
    pub(crate) hook: Hook,
    /// What holds it there, beside the socket.
    pub(crate) link: Option<OwnedFd>,
    /// Why it does not stand where it was to, in one line.
    pub(crate) refused: Option<String>,
}

/// Makes an empty map.
pub(crate) fn make(shape: MapShape) -> io::Result<Map> {
    let MapShape { keys, shared, key_len, value_len, entries } = shape;
    let keys = match keys {
        shield::Keys::Places => Keys::Places,
        shield::Keys::Any => Keys::Any,
        shield::Keys::Recent => Keys::Recent,
    };
    Map::create(Shape { keys, shared, key_len, value_len, entries })
}

/// What a program is loaded as.
pub(crate) fn kind(hook: Hook) -> Kind {
    match hook {
        Hook::Socket => Kind::SocketFilter,
        Hook::Xdp | Hook::XdpGeneric => Kind::Xdp,
    }
}

/// Who calls a program in front of the card, if it is to stand there.
fn mode(hook: Hook) -> Option<Mode> {
    match hook {
        Hook::Socket => None,
        Hook::Xdp => Some(Mode::Native),
        Hook::XdpGeneric => Some(Mode::Generic),
    }
}

impl Front<'_> {
    /// Loads a program and puts it where it is to stand, or in front of the socket where it may
    /// not.
    pub(crate) fn post<M>(&self, load: impl Fn(Hook) -> io::Result<(M, Program)>) -> io::Result<Posted<M>> {
        let refused = match mode(self.wanted).map(|mode| self.post_at_card(mode, &load)) {
            Some(Ok(posted)) => return Ok(posted),
            Some(Err(error)) => {
                Some(format!("the shield's program cannot stand at the hook {}: {error}", self.wanted.word()))
            }
            None => None,
        };
        let (maps, program) = load(Hook::Socket)?;
        let link = self.port.filter_by(&program)?;
        Ok(Posted { maps, hook: Hook::Socket, link, refused })
    }

    fn post_at_card<M>(
        &self,
        mode: Mode,
        load: impl Fn(Hook) -> io::Result<(M, Program)>,
    ) -> Result<Posted<M>, XdpError> {
        let (maps, program) = load(self.wanted)?;
        let link = (self.attach_to_card)(&program, mode)?;
        Ok(Posted { maps, hook: self.wanted, link: Some(link), refused: None })
    }
}
