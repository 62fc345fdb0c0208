//! What the kernel says of a frame beside its bytes: its VLAN tag, and whether its checksum was verified.

use bump::{Checksum, Meta, VlanTag};

/// As `tpacket_auxdata` and the slots of a ring have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Auxiliary {
    pub(super) status: u32,
    pub(super) tpid: u16,
    pub(super) tci: u16,
}

/// Enters it into `meta`.
pub(super) fn apply(auxiliary: Auxiliary, meta: &mut Meta) {
    let Auxiliary { status, tpid, tci } = auxiliary;
    if status & libc::TP_STATUS_VLAN_VALID != 0 {
        let says_tpid = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        meta.vlan = Some(VlanTag { tpid: if says_tpid { tpid } else { wire::EtherType::VLAN.0 }, tci });
    }
    if meta.checksum == Checksum::Unknown && status & libc::TP_STATUS_CSUM_VALID != 0 {
        meta.checksum = Checksum::Complete;
    }
}
