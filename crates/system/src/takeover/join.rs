//! The kernel joins card and outer end of the pair: what is not kept for the daemon goes from one to the other at the
//! plain path's speed, and never touches user space.
//!
//! The daemon's sockets hear what is kept before the hook, and the hook drops it ([`Kept`]). So if nobody reads it, what is
//! kept passes no way, and the rest goes on.

use std::os::fd::BorrowedFd;

use super::nft;
use super::{Kept, TakeoverError};
use crate::namespace::run_inside;

/// EtherTypes of tags: 802.1Q, 802.1ad, and the one of bridges from before 802.1ad. Linux takes a tag with VLAN number
/// 0 off, however many there are, and learns from the ARP message behind it. A tagged frame is therefore neither joined
/// nor kept. Where the field is read, in the frame at bit 96, `nft` sees the outermost tag, be it in the frame still or
/// already beside it; the kernel's idea of the protocol is by then that of what is behind the tag.
pub(super) const TAGS: &str = "@ll,96,16 { 0x8100, 0x88a8, 0x9100 } drop";

/// The one table in the card's namespace.
const TABLE: &str = "ringwall_join";

/// Joins `card` and `outer` in `namespace`, in one transaction: rules that stood before are replaced without a gap.
pub(super) fn close(
    interface: &str,
    namespace: BorrowedFd<'_>,
    kept: Kept,
    [card, outer]: [&str; 2],
) -> Result<(), TakeoverError> {
    let script = format!(
        "table netdev {TABLE}\n\
         delete table netdev {TABLE}\n\
         table netdev {TABLE} {{\n{}{}}}\n",
        chain("from_wire", kept, card, outer),
        chain("from_stack", kept, outer, card)
    );
    inside(interface, namespace, &script)
}

/// Takes the rules away. That there are none is no error.
pub(super) fn open(interface: &str, namespace: BorrowedFd<'_>) -> Result<(), TakeoverError> {
    inside(interface, namespace, &format!("table netdev {TABLE}\ndelete table netdev {TABLE}\n"))
}

fn chain(name: &str, kept: Kept, from: &str, to: &str) -> String {
    let rules = kept.rules().replace("goto joined", &format!("fwd to \"{to}\""));
    format!(
        "chain {name} {{\n\
         type filter hook ingress device \"{from}\" priority 0; policy drop;\n\
         {TAGS}\n\
         {rules}\
         fwd to \"{to}\"\n\
         }}\n"
    )
}

fn inside(interface: &str, namespace: BorrowedFd<'_>, script: &str) -> Result<(), TakeoverError> {
    run_inside(namespace, || nft::run(interface, script))
        .map_err(|cause| TakeoverError::Filter { interface: interface.to_owned(), cause: cause.to_string() })?
}
