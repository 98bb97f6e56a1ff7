//! How much of its rate a target keeps.

/// Minimum share of its rate that a target keeps if it stays flat.
const KEPT: f64 = 0.85;

/// Maximum share of its rate that a target keeps if it falls off a cliff.
const FELL: f64 = 0.3;

/// How a later rate stands to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flatness {
    /// At least 85 % of the rate is left.
    Kept,
    /// Between the other two.
    Declined,
    /// At most 30 % of the rate is left.
    Fell,
}

impl Flatness {
    /// The class of the later rate divided by the earlier one.
    pub(crate) fn of(kept: f64) -> Flatness {
        match kept {
            _ if KEPT <= kept => Flatness::Kept,
            _ if FELL < kept => Flatness::Declined,
            _ => Flatness::Fell,
        }
    }
}
