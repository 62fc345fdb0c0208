//! Attack 40: who asks which groups are wanted, and who is told what is sent to groups.

use wire::icmp::v6::{LISTENER_QUERY, LISTENER_REPORT_V2};

use super::{Cast, Icmp, TRIAL};
use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::{Frame, process};

/// "I am a multicast router" (RFC 4286, section 3).
const ROUTER_ADVERTISEMENT: u8 = 151;

/// Attack 40: the attacker asks which groups are wanted, as only a router does, and says that it is a multicast router. Who
/// believes it lets it decide what is forwarded to groups.
pub fn querier_takeover(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let window = scene.open()?;
    let reports = |frames: &[Frame]| {
        count(frames, |frame| frame.source() == cast.victim.mac && Icmp::is(frame, LISTENER_REPORT_V2))
    };
    let before = reports(&window.loot_so_far()?);
    let announcing = cast.launch(scene, "atk6-fake_mldrouter6", &["-l", INTERFACE, "advertise"])?;
    let asking = cast.launch(scene, "atk6-fake_mld26", &["-l", INTERFACE, "query"])?;
    let obeyed = process::within(TRIAL, || Ok(reports(&window.loot_so_far()?) > before))?;
    drop((announcing, asking));
    let record = scene.close(window)?;
    let is_one = |frame: &Frame| cast.has_sent(frame, LISTENER_QUERY) || cast.has_sent(frame, ROUTER_ADVERTISEMENT);
    let heard = count(&record.inside, is_one);
    Ok(Finding {
        reached: obeyed && heard > 0,
        harmless: !obeyed && heard == 0,
        struck: count(&record.wire, is_one),
        said: format!(
            "a's stack hears {heard} messages of m and {} its groups",
            if obeyed { "tells m" } else { "does not tell m" }
        ),
        record,
    })
}
