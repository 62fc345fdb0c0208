//! The site's policy (docs/protocol.md, section 30), as far as it concerns the link layer: it is handed on, and the legacy list that
//! follows from it changes without a restart. What the program around makes of it comes as settings.

use std::sync::Arc;

use bump::{Now, Outbox, Sink};
use identity::Verified;
use identity::policy::SitePolicy;
use wire::MacAddress;
use wire::cll::revocation::Subject;

use super::{Call, Control};
use crate::event::Effect;
use crate::limits::SPREAD_TO_MAX;
use crate::message::OrderKind;
use crate::settings::{Legacy, Settings};

/// This policy is in force: peers are told.
pub(crate) fn set_site_policy(
    control: &mut Control,
    now: Now,
    policy: Arc<Verified<SitePolicy>>,
    sink: &mut dyn Sink,
    out: &mut Outbox<Control>,
) {
    control.lists.policy = Some(policy);
    let mut call = Call { now, sink, out };
    control.offer_list_to_all(&mut call, Subject::Policy);
}

/// Opens handshakes with some hosts that have proved themselves before and are no peers now: an offer comes with the association. Every
/// host to which something is news does so, so it reaches all in a few rounds, whoever talks with whom.
pub(crate) fn spread(control: &mut Control, now: Now, sink: &mut dyn Sink, out: &mut Outbox<Control>) {
    let mut call = Call { now, sink, out };
    let is_peer = |mac: MacAddress| control.peers.current_by_mac(mac).is_some();
    let mut others: Vec<MacAddress> = control.clear.rules.proved.macs().filter(|mac| !is_peer(*mac)).collect();
    for _ in 0..SPREAD_TO_MAX.min(others.len()) {
        let at = control.random.below(others.len() as u64) as usize;
        // Where no room is for a handshake, its peer hears of it from others.
        let _ = control.open_for_mac(&mut call, others.swap_remove(at));
    }
}

/// The hosts admitted in clear are these from now on.
pub(crate) fn set_legacy(control: &mut Control, legacy: Vec<Legacy>, out: &mut Outbox<Control>) {
    for gone in control.settings.legacy.iter().filter(|one| !legacy.contains(one)) {
        out.effect(Effect::ForgetNeighbour { ip: gone.ip, mac: gone.mac });
    }
    for new in legacy.iter().filter(|one| !control.settings.legacy.contains(one)) {
        out.effect(Effect::PermanentNeighbour { ip: new.ip, mac: new.mac });
    }
    control.settings = Arc::new(Settings { legacy, ..Settings::clone(&control.settings) });
    for lane in 0..control.settings.lanes {
        let order = crate::message::Order(OrderKind::Settle(Arc::clone(&control.settings)));
        if out.orders.push((bump::LaneId(lane), order)).is_err() {
            out.overflowed += 1;
        }
    }
}
