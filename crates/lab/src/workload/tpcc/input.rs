//! The inputs of a transaction (specification, 2.4.1 to 2.8.1): pure functions of random numbers.

use super::population::{Maker, last_name, non_uniform};
use super::{DISTRICTS, Params};

/// The kinds of transactions.
pub(super) const KINDS: [&str; 5] = [
    "new_order",
    "payment",
    "order_status",
    "delivery",
    "stock_level",
];

/// Shares of the kinds of transactions, of 23 in total.
const SHARES: [i64; 5] = [10, 10, 1, 1, 1];

/// How a transaction selects a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// By its number.
    Id(i64),
    /// By last name: of the customers with that name, the one in the middle.
    Name(String),
}

/// A line of a new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub item: i64,
    pub supplier: i64,
    pub quantity: i64,
}

/// The inputs of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    NewOrder {
        w: i64,
        d: i64,
        c: i64,
        lines: Vec<Wanted>,
        /// The number of the last item is invalid, so the transaction is rolled back.
        unknown: bool,
    },
    Payment {
        w: i64,
        d: i64,
        /// The customer's warehouse and district.
        home: (i64, i64),
        who: Who,
        amount: i64,
    },
    OrderStatus {
        w: i64,
        d: i64,
        who: Who,
    },
    Delivery {
        w: i64,
        carrier: i64,
    },
    StockLevel {
        w: i64,
        d: i64,
        threshold: i64,
    },
}

impl Input {
    /// Position of its kind in [`KINDS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Input::NewOrder { .. } => 0,
            Input::Payment { .. } => 1,
            Input::OrderStatus { .. } => 2,
            Input::Delivery { .. } => 3,
            Input::StockLevel { .. } => 4,
        }
    }
}

/// Generate the inputs of a client's next transaction.
pub(super) fn next(params: Params, make: &mut Maker) -> Input {
    let mut left = make.number(1, SHARES.iter().sum());
    let mut kind = 0;
    for share in SHARES {
        if left <= share {
            break;
        }
        left -= share;
        kind += 1;
    }
    let w = make.number(1, params.warehouses);
    let d = make.number(1, DISTRICTS);
    match kind {
        0 => new_order(params, make, w, d),
        1 => payment(params, make, w, d),
        2 => Input::OrderStatus {
            w,
            d,
            who: who(params, make),
        },
        3 => Input::Delivery {
            w,
            carrier: make.number(1, 10),
        },
        _ => Input::StockLevel {
            w,
            d,
            threshold: make.number(10, 20),
        },
    }
}

fn customer(params: Params, make: &mut Maker) -> i64 {
    non_uniform(make, 1023, 1, params.customers)
}

/// Choose how to select a customer: 60 of 100 are selected by name. The names of numbers beyond the
/// existing customers match no customer.
fn who(params: Params, make: &mut Maker) -> Who {
    if make.rng.chance(0.6) {
        let names = params.customers.min(1000);
        Who::Name(last_name(non_uniform(make, 255, 0, names - 1)))
    } else {
        Who::Id(customer(params, make))
    }
}

/// A warehouse other than `w`, if there is one.
fn other(params: Params, make: &mut Maker, w: i64) -> i64 {
    if params.warehouses < 2 {
        return w;
    }
    let other = make.number(1, params.warehouses - 1);
    if other < w { other } else { other + 1 }
}

fn new_order(params: Params, make: &mut Maker, w: i64, d: i64) -> Input {
    let c = customer(params, make);
    let count = make.number(5, 15);
    let unknown = make.number(1, 100) == 1;
    let mut lines: Vec<Wanted> = (0..count)
        .map(|_| Wanted {
            item: non_uniform(make, 8191, 1, params.items),
            supplier: if make.rng.chance(0.01) {
                other(params, make, w)
            } else {
                w
            },
            quantity: make.number(1, 10),
        })
        .collect();
    // All transactions lock rows in the same order, so fewer of them conflict.
    lines.sort_unstable_by_key(|line| (line.supplier, line.item));
    Input::NewOrder {
        w,
        d,
        c,
        lines,
        unknown,
    }
}

fn payment(params: Params, make: &mut Maker, w: i64, d: i64) -> Input {
    let home = if make.rng.chance(0.85) {
        (w, d)
    } else {
        (other(params, make, w), make.number(1, DISTRICTS))
    };
    Input::Payment {
        w,
        d,
        home,
        who: who(params, make),
        amount: make.number(100, 500_000),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Payload;
    use super::*;

    #[test]
    fn the_mix_and_the_inputs_are_those_of_the_specification() {
        let params = Params::of(42, 90_000, Payload::Spec);
        let mut make = Maker::new(params, 99, [1, 2, 3]);
        let mut counts = [0u32; 5];
        let (mut back, mut names, mut remote) = (0u32, 0u32, 0u32);
        for _ in 0..23_000 {
            let input = next(params, &mut make);
            counts[input.kind()] += 1;
            match input {
                Input::NewOrder {
                    w,
                    d,
                    c,
                    lines,
                    unknown,
                } => {
                    assert!((1..=3).contains(&w) && (1..=10).contains(&d));
                    assert!((1..=3000).contains(&c) && (5..=15).contains(&lines.len()));
                    assert!(lines.iter().all(|l| (1..=100_000).contains(&l.item)));
                    back += u32::from(unknown);
                }
                Input::Payment { w, home, who, .. } => {
                    remote += u32::from(home.0 != w);
                    names += u32::from(matches!(who, Who::Name(_)));
                }
                _ => {}
            }
        }
        assert!((9500..10_500).contains(&counts[0]), "{counts:?}");
        assert!((850..1150).contains(&counts[4]), "{counts:?}");
        assert!((60..150).contains(&back), "{back}");
        assert!((5500..6500).contains(&names), "{names}");
        assert!((1200..1800).contains(&remote), "{remote}");
    }
}
