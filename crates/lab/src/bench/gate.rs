//! What must hold for a change to be accepted, read off the rows.

use std::fmt;

use super::row::Row;

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
        }
    }

    fn name(self) -> &'static str {
        match self {
            Quantity::Median => "median",
            Quantity::VersusPlain => "vs_plain",
            Quantity::VersusNull => "vs_null",
            Quantity::VersusArithmetic => "vs_arithmetic",
            Quantity::MinusNull => MINUS_NULL,
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
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// The row's name.
    pub row: &'static str,
    /// What of it.
    pub quantity: Quantity,
    /// Where it must lie.
    pub bound: Bound,
}

/// The gates of `bench cll`.
pub const CLL: [Gate; 6] = [
    Gate { row: "tcp/100M/encrypted", quantity: Quantity::VersusArithmetic, bound: Bound::AtLeast(0.99) },
    Gate { row: "tcp/1G/encrypted", quantity: Quantity::VersusArithmetic, bound: Bound::AtLeast(0.99) },
    Gate { row: "tcp/unlimited/encrypted", quantity: Quantity::VersusNull, bound: Bound::AtLeast(0.85) },
    Gate { row: "cpu/unlimited/encrypted", quantity: Quantity::VersusNull, bound: Bound::AtMost(1.3) },
    Gate { row: "rtt/encrypted", quantity: Quantity::MinusNull, bound: Bound::AtMost(12.0) },
    Gate { row: "first_ping/overhead", quantity: Quantity::Median, bound: Bound::AtMost(1.6) },
];

/// The gate of `bench peers`.
pub const PEERS: [Gate; 1] =
    [Gate { row: "ours/wireguard-go", quantity: Quantity::Median, bound: Bound::AtLeast(1.5) }];

/// A gate with what was measured; nothing measured fails it.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    gate: Gate,
    measured: Option<f64>,
}

impl Verdict {
    /// Reads `gate` off `rows`.
    pub fn of(gate: Gate, rows: &[Row]) -> Verdict {
        let row = rows.iter().find(|row| row.row == gate.row);
        Verdict { gate, measured: row.and_then(|row| gate.quantity.of(row)) }
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
        let word = if self.holds() { "pass" } else { "FAIL" };
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
    fn a_gate_fails_below_its_limit_and_without_a_value() {
        let gate = CLL[2];
        assert!(Verdict::of(gate, &[row(gate.row, Some(0.85))]).holds());
        assert!(!Verdict::of(gate, &[row(gate.row, Some(0.849))]).holds());
        assert!(!Verdict::of(gate, &[row(gate.row, None)]).holds());
        assert!(!Verdict::of(gate, &[]).holds());
        assert!(Verdict::of(gate, &[]).to_string().starts_with("FAIL  tcp/unlimited/encrypted vs_null: not measured"));
    }

    #[test]
    fn an_upper_bound_is_one() {
        let gate = CLL[3];
        assert!(Verdict::of(gate, &[row(gate.row, Some(1.3))]).holds());
        assert!(!Verdict::of(gate, &[row(gate.row, Some(1.31))]).holds());
    }
}
