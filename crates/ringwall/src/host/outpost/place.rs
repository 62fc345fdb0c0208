//! At which place in the kernel a program stands, and what becomes of it where the one that was chosen is not to be had.
//!
//! It stands at one place only, or each forged frame would count twice. In front of the card the socket keeps the filter that it has.

use std::io;
use std::os::fd::OwnedFd;

use shield::{Hook, MapShape};
use system::bpf::{Keys, Kind, Map, Program, Shape};
use system::port::PacketPort;
use system::xdp::{Mode, XdpError};

/// Puts a program in front of the card, for as long as the descriptor is open.
pub(in crate::host) type AttachToCard<'a> = dyn Fn(&Program, Mode) -> Result<OwnedFd, XdpError> + 'a;

/// Where a program may stand.
pub(in crate::host) struct Front<'a> {
    /// Where it is to.
    pub(in crate::host) wanted: Hook,
    pub(in crate::host) port: &'a PacketPort,
    pub(in crate::host) attach_to_card: &'a AttachToCard<'a>,
}

/// A program that stands.
pub(super) struct Posted<M> {
    /// What it looks things up in.
    pub(super) maps: M,
    /// Where it stands.
    pub(super) hook: Hook,
    /// What holds it there, beside the socket.
    pub(super) link: Option<OwnedFd>,
    /// Why it does not stand where it was to, in one line.
    pub(super) refused: Option<String>,
}

/// Makes an empty map.
pub(super) fn make(shape: MapShape) -> io::Result<Map> {
    let MapShape { keys, shared, key_len, value_len, entries } = shape;
    let keys = match keys {
        shield::Keys::Places => Keys::Places,
        shield::Keys::Any => Keys::Any,
        shield::Keys::Recent => Keys::Recent,
    };
    Map::create(Shape { keys, shared, key_len, value_len, entries })
}

/// What a program is loaded as.
pub(super) fn kind(hook: Hook) -> Kind {
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
    /// Loads a program and puts it where it is to stand, or in front of the socket where it may not.
    pub(super) fn post<M>(&self, load: impl Fn(Hook) -> io::Result<(M, Program)>) -> io::Result<Posted<M>> {
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
