//! What the layers must leave of honest traffic, and how soon it must arrive.
//!
//! The same at every rate of a flood, but for the lowest, at which more must be left. No rate is left out because it is hard.

use shield::{Hook, Layers};

use super::NoncesPart;
use super::flood::{Attack, Pace};
use super::floods::{self, Role, Victim, questions};
use super::handshakes;
use super::strongswan::{self, Front};
use crate::bench::gate::{Bound, Gate, Quantity};

/// What must be left of a stream beside frames that a check in front of the tag tells, and of one at the lowest rate.
const LEFT_MIN: f64 = 0.95;
const LEFT_OF_STEADY_MIN: f64 = 0.97;
/// How long nearly all of the stream may be on its way.
const DELAY_MAX_MS: f64 = 5.0;
/// How many of honest questions by ARP must be answered before a quarter of a second is over: not only the median, but not each of a
/// dozen, as of every frame that comes while the card's ring is full a few in a hundred are lost.
const ANSWERED_MIN: f64 = 0.75;
/// How long an honest handshake may take at the median.
const HANDSHAKE_MAX_MS: f64 = 1000.0;

/// All gates, each with the part that measures its row.
pub fn gates() -> Vec<(NoncesPart, Gate)> {
    let parts = [
        (NoncesPart::Cll, of_data()),
        (NoncesPart::Handshakes, of_handshakes()),
        (NoncesPart::StrongSwan, of_tunnels()),
        (NoncesPart::Floods, of_floods()),
    ];
    parts.into_iter().flat_map(|(part, gates)| gates.into_iter().map(move |gate| (part, gate))).collect()
}

fn of_data() -> Vec<Gate> {
    let mut gates = Vec::new();
    for attack in [Attack::WrongIndex, Attack::WrongNonce, Attack::Replayed] {
        for pace in Pace::OF_DATA {
            gates.extend(of_stream(&super::name(attack, Layers::Kernel, pace), least(pace)));
        }
    }
    // Nothing in front of the tag tells these: who has a right nonce outran its owner.
    gates.push(left(super::name(Attack::WrongKey, Layers::Kernel, Pace::Steady), LEFT_MIN));
    gates
}

fn of_handshakes() -> Vec<Gate> {
    let soon = Bound::AtMost(HANDSHAKE_MAX_MS);
    let of_row = |row: String| {
        let (median, failed) = (Quantity::Statistic("handshake_median_ms"), Quantity::Statistic("handshakes_failed"));
        // The median says nothing of those that came to no end.
        let ended = Gate::on_row(row.clone(), failed, Bound::AtMost(0.0));
        [left(row.clone(), LEFT_MIN), Gate::on_row(row, median, soon), ended]
    };
    let floods = handshakes::Forgery::ALL.into_iter().flat_map(|forgery| Pace::ALL.map(|pace| Some((forgery, pace))));
    floods.flat_map(|flood| of_row(handshakes::name(flood))).collect()
}

fn of_tunnels() -> Vec<Gate> {
    let flat = Bound::AtMost(strongswan::GROWN_MAX_MIB);
    let mut gates = Vec::new();
    for forgery in strongswan::Forgery::ALL {
        for pace in Pace::OF_DATA {
            let row = strongswan::name(forgery, Front::Shield(Hook::Socket), pace);
            gates.extend(of_stream(&row, least(pace)));
            gates.push(Gate::on_row(row, Quantity::Statistic("memory_grown_mib"), flat));
        }
    }
    for row in ["shield/rekey", "shield/rekey/1k"] {
        gates.extend([Quantity::Median, Quantity::Statistic(strongswan::BY_SHIELDS)].map(|lost| none(row, lost)));
    }
    gates
}

fn of_floods() -> Vec<Gate> {
    let of_victim = |victim: Victim| {
        let floods = victim.forgeries().iter().flat_map(|&forgery| Pace::ALL.map(|pace| Some((forgery, pace))));
        floods.map(move |flood| floods::name(victim, flood))
    };
    let whole = Victim::ALL.into_iter().filter(|victim| victim.off.is_empty());
    let asked = questions::FORGERS.into_iter().flat_map(|forger| Pace::ALL.map(|pace| Some((forger, pace))));
    let asked: Vec<_> = asked.map(|flood| questions::name(&[], flood)).collect();
    let soon = |row: &String| {
        Gate::on_row(row.clone(), Quantity::Statistic("delay_median_ms"), Bound::AtMost(HANDSHAKE_MAX_MS))
    };
    let answered: Vec<_> = asked.iter().map(soon).collect();
    let shares = whole.clone().flat_map(of_victim).chain(asked).map(|row| left(row, LEFT_MIN));
    let signing = whole.filter(|victim| victim.role == Role::Signing).flat_map(of_victim);
    // Who asks by ARP is answered, and in time.
    let in_time = |row| Gate::on_row(row, Quantity::Statistic("answered_in_time"), Bound::AtLeast(ANSWERED_MIN));
    shares.chain(answered).chain(signing.map(in_time)).collect()
}

fn least(pace: Pace) -> f64 {
    if pace == Pace::Steady { LEFT_OF_STEADY_MIN } else { LEFT_MIN }
}

fn of_stream(row: &str, least: f64) -> [Gate; 2] {
    let soon = Bound::AtMost(DELAY_MAX_MS);
    [left(row.to_owned(), least), Gate::on_row(row.to_owned(), Quantity::Statistic("delay_p99_ms"), soon)]
}

fn left(row: String, least: f64) -> Gate {
    Gate::on_row(row, Quantity::VersusPlain, Bound::AtLeast(least))
}

fn none(row: &'static str, lost: Quantity) -> Gate {
    Gate::on(row, lost, Bound::AtMost(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows and shares that were asked for before there was anything to measure.
    #[test]
    fn what_was_wanted_from_the_beginning_is_judged() {
        let wanted = [
            ("cll/wrong_index/layers=kernel/200k", 0.97),
            ("cll/wrong_nonce/layers=kernel/max", 0.95),
            ("cll/replayed/layers=kernel/program", 0.95),
            ("cll/wrong_key/layers=kernel/200k", 0.95),
            ("handshakes/wrong_signature/max", 0.95),
            ("handshakes/new_tags_large/max", 0.95),
            ("strongswan/wrong_key/shield/200k", 0.97),
            ("strongswan/wrong_spi/shield/max", 0.95),
            ("floods/cll/group_by_insider/whole/max", 0.95),
            ("floods/cll/group_with_new_tags/whole/program", 0.95),
            ("floods/sarp/questions/whole/200k", 0.95),
            ("floods/sarp/questions_of_many/whole/max", 0.75),
            ("floods/akd/forged_by_member/whole/max", 0.95),
            ("floods/distributor/requests_by_member/whole/max", 0.95),
            ("floods/distributor/requests_recorded/whole/max", 0.95),
        ];
        let gates = gates();
        for (row, least) in wanted {
            let is_it = |gate: &Gate| gate.row == row && gate.bound == Bound::AtLeast(least);
            assert!(gates.iter().any(|(_, gate)| is_it(gate)), "{row}");
        }
        let judged = |part| gates.iter().filter(|(of, _)| *of == part).count();
        assert_eq!([NoncesPart::Cll, NoncesPart::Handshakes, NoncesPart::StrongSwan].map(judged), [25, 54, 28]);
    }
}
