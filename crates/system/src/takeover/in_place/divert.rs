//! Where the kernel carries the bulk between card and stack: what is kept for the daemon goes neither way
//! without it, and all else passes untouched.
//!
//! What comes by wire reaches the daemon's packet socket on the card before it is dropped here. What the
//! stack says goes to the TAP. A packet socket of another program for all EtherTypes hears what is kept,
//! too; one for ARP alone does not, nor does the stack.

use super::super::Kept;
use super::super::join::TAGS;
use super::super::nft::{MARK, table_name};
use super::OPENED_MARK;

/// What is kept passes with the mark of what was opened, or of the daemon's socket. Without a TAP
/// nothing of it leaves the stack.
pub(super) fn rules(interface: &str, kept: Kept, card: &str, tap: Option<&str>) -> String {
    let table = table_name(interface);
    let drop = kept.rules().replace("goto joined", "accept");
    let divert = tap.map_or_else(|| drop.clone(), |tap| drop.replace(" drop\n", &format!(" fwd to \"{tap}\"\n")));
    format!(
        "table netdev {table}\n\
         delete table netdev {table}\n\
         table netdev {table} {{\n\
         chain from_wire {{ type filter hook ingress device \"{card}\" priority -500; policy accept;\n\
         meta mark {OPENED_MARK:#x} meta mark set 0 accept\n{TAGS}\n{drop}\n}}\n\
         chain to_wire {{ type filter hook egress device \"{card}\" priority -500; policy accept;\n\
         meta mark {MARK:#x} accept\n{TAGS}\n{divert}\n}}\n\
         }}\n"
    )
}
