//! What must hold for a change to be accepted, read off the rows.

use std::borrow::Cow;
use std::fmt;

use super::row::Row;
use super::{Part, is_wanted};

/// Which number of a row a gate looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The median itself.
    Median,
    /// The ratio to the plain path.
    VersusPlain,
    /// The ratio to the null bump.
    VersusNull,
    /// The share of what header arithmetic allows.
    VersusArithmetic,
    /// The difference to the null bump, in the row's unit.
    MinusNull,
    /// The row's statistic of this name.
    Statistic(&'static str),
}

/// Name of the statistic behind [`Quantity::MinusNull`].
pub const MINUS_NULL: &str = "minus_null";

impl Quantity {
    fn of(self, row: &Row) -> Option<f64> {
        match self {
            Quantity::Median => Some(row.median),
            Quantity::VersusPlain => row.ratio,
            Quantity::VersusNull => row.vs_null,
            Quantity::VersusArithmetic => row.vs_arithmetic,
            Quantity::MinusNull => row.stats.get(MINUS_NULL)?.as_f64(),
            Quantity::Statistic(name) => row.stats.get(name)?.as_f64(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Quantity::Median => "median",
            Quantity::VersusPlain => "vs_plain",
            Quantity::VersusNull => "vs_null",
            Quantity::VersusArithmetic => "vs_arithmetic",
            Quantity::MinusNull => MINUS_NULL,
            Quantity::Statistic(name) => name,
        }
    }
}

/// On which side of the limit a value must lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The limit or more.
    AtLeast(f64),
    /// The limit or less.
    AtMost(f64),
}

/// One condition.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The row's name.
    pub row: Cow<'static, str>,
    /// What of it.
    pub quantity: Quantity,
    /// Where it must lie.
    pub bound: Bound,
}

impl Gate {
    /// A condition on `quantity` of the row with this name.
    pub const fn on(row: &'static str, quantity: Quantity, bound: Bound) -> Gate {
        Gate { row: Cow::Borrowed(row), quantity, bound }
    }

    /// As [`on`](Gate::on), for a name that is put together.
    pub fn on_row(row: String, quantity: Quantity, bound: Bound) -> Gate {
        Gate { row: Cow::Owned(row), quantity, bound }
    }
}

/// The gates of `bench cll`, each with the part that measures its row.
pub const CLL: [(Part, Gate); 8] = [
    (Part::Tcp, Gate::on("tcp/100M/encrypted", Quantity::VersusArithmetic, Bound::AtLeast(0.99))),
    (Part::Tcp, Gate::on("tcp/1G/encrypted", Quantity::VersusArithmetic, Bound::AtLeast(0.99))),
    (Part::Tcp, Gate::on("tcp/unlimited/encrypted", Quantity::VersusNull, Bound::AtLeast(0.85))),
    (Part::Tcp, Gate::on("cpu/unlimited/encrypted", Quantity::VersusNull, Bound::AtMost(1.3))),
    (Part::Rtt, Gate::on("rtt/encrypted", Quantity::MinusNull, Bound::AtMost(12.0))),
    (Part::FirstPing, Gate::on("first_ping/overhead", Quantity::Median, Bound::AtMost(1.6))),
    (Part::Broadcast, Gate::on("broadcast/verify/gain", Quantity::Median, Bound::AtLeast(20.0))),
    (Part::Broadcast, Gate::on("broadcast/loss", Quantity::Median, Bound::AtLeast(1.0))),
];

/// The gate of `bench peers`, which has one part.
pub const PEERS: [Gate; 1] = [Gate::on("ours/wireguard-go", Quantity::Median, Bound::AtLeast(1.5))];

/// The gates of the parts in `only`, or of all parts. What a run was told to leave out is not judged.
pub fn of_parts<P: PartialEq>(gates: &[(P, Gate)], only: &[P]) -> Vec<Gate> {
    gates.iter().filter(|(part, _)| is_wanted(only, part)).map(|(_, gate)| gate.clone()).collect()
}

/// A gate with what was measured. Without a value it is not judged and does not hold: its part was asked for and came to nothing.
#[derive(Clone, Debug)]
pub struct Verdict {
    gate: Gate,
    measured: Option<f64>,
}

impl Verdict {
    /// Reads `gate` off `rows`.
    pub fn of(gate: &Gate, rows: &[Row]) -> Verdict {
        let row = rows.iter().find(|row| row.row == gate.row);
        Verdict { gate: gate.clone(), measured: row.and_then(|row| gate.quantity.of(row)) }
    }

    /// Whether the condition holds.
    pub fn holds(&self) -> bool {
        self.measured.is_some_and(|measured| match self.gate.bound {
            Bound::AtLeast(limit) => measured >= limit,
            Bound::AtMost(limit) => measured <= limit,
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.measured {
            None => "none",
            Some(_) if self.holds() => "pass",
            Some(_) => "FAIL",
        };
        let measured = self.measured.map_or("not measured".to_owned(), |measured| format!("{measured:.3}"));
        let bound = match self.gate.bound {
            Bound::AtLeast(limit) => format!("at least {limit}"),
            Bound::AtMost(limit) => format!("at most {limit}"),
        };
        write!(out, "{word}  {} {}: {measured}, wanted {bound}", self.gate.row, self.gate.quantity.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, vs_null: Option<f64>) -> Row {
        let mut row = Row::new("cll", name, "Mbit/s", &vec![Some(1.0)]).unwrap();
        row.vs_null = vs_null;
        row
    }

    #[test]
    fn a_gate_holds_from_its_limit_on_and_only_with_a_value() {
        let (_, gate) = &CLL[2];
        let verdict = |vs_null| Verdict::of(gate, &[row(&gate.row, vs_null)]);
        assert!(verdict(Some(0.85)).holds() && verdict(Some(0.85)).to_string().starts_with("pass  "));
        assert!(!verdict(Some(0.849)).holds() && verdict(Some(0.849)).to_string().starts_with("FAIL  "));
        for missing in [verdict(None), Verdict::of(gate, &[])] {
            assert!(!missing.holds());
            let said = "none  tcp/unlimited/encrypted vs_null: not measured, wanted at least 0.85";
            assert_eq!(missing.to_string(), said);
        }
    }

    /// Broke `of_parts` by giving all gates: a run of one part failed the gates of the others.
    #[test]
    fn what_a_run_leaves_out_is_not_judged() {
        let rows = |only: &[Part]| of_parts(&CLL, only).iter().map(|gate| gate.row.to_string()).collect::<Vec<_>>();
        assert_eq!(rows(&[Part::Rtt]), ["rtt/encrypted"]);
        assert_eq!(rows(&[Part::FirstPing, Part::Rtt]), ["rtt/encrypted", "first_ping/overhead"]);
        assert_eq!(rows(&[]).len(), CLL.len());
        let measured =
            [Row::new("cll", "rtt/encrypted", "us", &vec![Some(1.0)]).unwrap().with_stat(MINUS_NULL, Some(3.0))];
        assert!(of_parts(&CLL, &[Part::Rtt]).iter().all(|gate| Verdict::of(gate, &measured).holds()));
    }

    #[test]
    fn an_upper_bound_is_one() {
        let (_, gate) = &CLL[3];
        assert!(Verdict::of(gate, &[row(&gate.row, Some(1.3))]).holds());
        assert!(!Verdict::of(gate, &[row(&gate.row, Some(1.31))]).holds());
    }
}
