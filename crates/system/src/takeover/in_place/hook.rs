//! A program as a filter of `tc` at a device, before all other filters that are there. Programs at
//! the newer hook `tcx` (Linux 6.6) come before it, and so do later filters of the same priority.

use std::path::Path;

use super::super::TakeoverError;
use super::super::nft::hand_over;
use super::redirect::TC;
use crate::bpf::{self, Program};
use crate::namespace::in_mount_tree;

/// Which way the frames go that a filter sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// From the wire to the stack.
    Ingress,
    /// From the stack to the wire.
    Egress,
}

impl Side {
    /// Both of them.
    pub(super) const BOTH: [Side; 2] = [Side::Ingress, Side::Egress];

    fn word(self) -> &'static str {
        match self {
            Side::Ingress => "ingress",
            Side::Egress => "egress",
        }
    }
}

/// Where a filter stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hook<'a> {
    /// The device's name.
    pub(super) card: &'a str,
    /// On which side of it.
    pub(super) side: Side,
    /// The filter's number among those that are there.
    pub(super) handle: u32,
}

impl Hook<'_> {
    fn words(&self) -> String {
        let Hook { card, side, handle } = self;
        format!("dev {card} {} pref 1 handle {handle:#x} protocol all bpf", side.word())
    }

    /// Puts `program` there in place of whichever was, under the name `path`. Whether the place for
    /// filters is made for it.
    pub(super) fn put(&self, interface: &str, path: &Path, program: &Program) -> Result<bool, TakeoverError> {
        let (mut outcome, mut is_new) = (Ok(()), false);
        let work = || {
            crate::files::remove_if_there(path)?;
            bpf::pin(program, path)?;
            is_new = tc(interface, &format!("qdisc add dev {} clsact\n", self.card)).is_ok();
            outcome = if is_new || self.has_place(interface) {
                let words = self.words();
                let script = format!("filter replace {words} direct-action object-pinned {}\n", path.display());
                tc(interface, &script).map(drop)
            } else {
                let cause = format!("no place at the egress of {}: is there a qdisc `ingress`?", self.card);
                Err(TakeoverError::Filter { interface: interface.to_owned(), cause })
            };
            Ok(())
        };
        in_mount_tree(work)
            .map_err(|cause| TakeoverError::Filter { interface: interface.to_owned(), cause: cause.to_string() })?;
        outcome.map(|()| is_new)
    }

    /// Whether filters of this side have a place. The older qdisc `ingress` is in the way of `clsact`,
    /// and takes a filter for the egress as one for the ingress.
    fn has_place(&self, interface: &str) -> bool {
        self.side == Side::Ingress
            || tc(interface, &format!("qdisc show dev {}\n", self.card)).is_ok_and(|all| all.contains("qdisc clsact "))
    }

    /// Takes the program away. That there is none is no error.
    pub(super) fn clear(&self, interface: &str) -> Result<(), TakeoverError> {
        let gone = tc(interface, &format!("filter del {}\n", self.words()));
        gone.map(drop).or_else(|error| if self.stands(interface) { Err(error) } else { Ok(()) })
    }

    fn stands(&self, interface: &str) -> bool {
        let all = tc(interface, &format!("filter show dev {} {}\n", self.card, self.side.word()));
        all.is_ok_and(|all| all.contains(&format!("handle {:#x} ", self.handle)))
    }
}

/// Takes the place for filters away, whoever has any there.
pub(super) fn give_place_back(interface: &str, card: &str) {
    let _gone = tc(interface, &format!("qdisc del dev {card} clsact\n"));
}

fn tc(interface: &str, script: &str) -> Result<String, TakeoverError> {
    hand_over(interface, &TC, &["-batch", "-"], script)
}
