//! The initial rows (specification, 4.3.3): pure functions of the seed and the key.

use stdx::Rng;
use stdx::rng::mix64;

use super::{Params, Payload};
use crate::workload::table::{Row, Value};

/// Share of the first orders that are delivered, in percent.
const DELIVERED: i64 = 70;

/// The date in all rows; no result depends on it.
pub(super) const NOW: i64 = 1_500_000_000;

/// Syllables of last names (4.3.2.3).
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// Generates the random values of one row.
pub(super) struct Maker {
    pub(super) rng: Rng,
    payload: Payload,
}

impl Maker {
    pub(super) fn new(params: Params, table: u64, key: [i64; 3]) -> Maker {
        let mut seed = mix64(params.seed ^ table);
        for part in key {
            seed = mix64(seed ^ part.cast_unsigned());
        }
        Maker {
            rng: Rng::new(seed),
            payload: params.payload,
        }
    }

    /// A random number of `low..=high`.
    pub(super) fn number(&mut self, low: i64, high: i64) -> i64 {
        let span = (high - low + 1).unsigned_abs();
        low + self.rng.below(span.max(1)).cast_signed()
    }

    fn int(&mut self, low: i64, high: i64) -> Value {
        Value::Int(self.number(low, high))
    }

    /// A random text of `low..=high` characters.
    pub(super) fn letters(&mut self, low: i64, high: i64) -> String {
        const LETTERS: &[u8; 62] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        let length = self.number(low, high);
        let mut letter = || {
            let at = self.rng.index(LETTERS.len());
            char::from(LETTERS.get(at).copied().unwrap_or(b'a'))
        };
        match self.payload {
            Payload::Percona => {
                let one = letter();
                (0..length).map(|_| one).collect()
            }
            Payload::Spec => (0..length).map(|_| letter()).collect(),
        }
    }

    fn text(&mut self, low: i64, high: i64) -> Value {
        Value::Text(self.letters(low, high))
    }

    fn digits(&mut self, count: i64) -> String {
        (0..count)
            .map(|_| char::from(b'0' + u8::try_from(self.rng.below(10)).unwrap_or(0)))
            .collect()
    }

    fn address(&mut self, row: &mut Row) {
        for (low, high) in [(10, 20), (10, 20), (10, 20), (2, 2)] {
            row.push(self.text(low, high));
        }
        row.push(Value::Text(format!("{}11111", self.digits(4))));
    }

    /// The data column of items and stock: one in ten contains `ORIGINAL`.
    fn original(&mut self) -> Value {
        let mut data = self.letters(26, 50);
        if self.rng.chance(0.1) {
            data.replace_range(0..8, "ORIGINAL");
        }
        Value::Text(data)
    }
}

/// The last name for a number below 1000.
pub(super) fn last_name(number: i64) -> String {
    let syllable = |n: i64| {
        let at = usize::try_from(n % 10).unwrap_or(0);
        SYLLABLES.get(at).copied().unwrap_or_default()
    };
    [number / 100, number / 10, number].map(syllable).concat()
}

/// Maximum tax of districts and warehouses, in ten-thousandths: 20 %.
const TAX_MAX: i64 = 2000;

pub(super) fn warehouse(params: Params, w: i64) -> Row {
    let mut make = Maker::new(params, 0, [w, 0, 0]);
    let mut row = vec![Value::Int(w), make.text(6, 10)];
    make.address(&mut row);
    row.push(make.int(0, TAX_MAX));
    // The year-to-date amount is the sum of those of the ten districts, 30 000.00 each.
    row.push(Value::Int(10 * 3_000_000));
    row
}

pub(super) fn district(params: Params, w: i64, d: i64) -> Row {
    let mut make = Maker::new(params, 1, [w, d, 0]);
    let mut row = vec![Value::Int(w), Value::Int(d), make.text(6, 10)];
    make.address(&mut row);
    row.push(make.int(0, TAX_MAX));
    row.push(Value::Int(3_000_000));
    row.push(Value::Int(params.customers + 1));
    row
}

/// The number of a customer's last name: of the first thousand customers, each has a different one
/// (4.3.3.1).
fn name_of(make: &mut Maker, c: i64) -> i64 {
    if c <= 1000 {
        c - 1
    } else {
        non_uniform(make, 255, 0, 999)
    }
}

/// The function `NURand` of the specification (2.1.6), with the constant 123.
pub(super) fn non_uniform(make: &mut Maker, a: i64, low: i64, high: i64) -> i64 {
    let (one, two) = (make.number(0, a), make.number(low, high));
    ((one | two) + 123) % (high - low + 1) + low
}

pub(super) fn customer(params: Params, w: i64, d: i64, c: i64) -> Row {
    let mut make = Maker::new(params, 2, [w, d, c]);
    let last = last_name(name_of(&mut make, c));
    let mut row = vec![Value::Int(w), Value::Int(d), Value::Int(c)];
    row.push(make.text(8, 16));
    row.push("OE".into());
    row.push(last.into());
    make.address(&mut row);
    row.push(Value::Text(make.digits(16)));
    row.push(Value::Int(NOW));
    row.push(if make.rng.chance(0.1) { "BC" } else { "GC" }.into());
    row.push(Value::Int(5_000_000));
    row.push(make.int(0, 5000));
    row.extend([-1000, 1000, 1, 0].map(Value::Int));
    row.push(make.text(300, 500));
    row
}

pub(super) fn history(params: Params, w: i64, d: i64, c: i64) -> Row {
    let mut make = Maker::new(params, 3, [w, d, c]);
    let mut row: Row = [w, d, c, 1, d, w, NOW, 1000].map(Value::Int).into();
    row.push(make.text(12, 24));
    row
}

/// The customer of one of the first orders: each customer has one (4.3.3.1), in scattered order.
fn orderer(params: Params, o: i64) -> i64 {
    // 7919 is a prime that does not divide any possible number of customers (at most 3000).
    (o * 7919) % params.customers + 1
}

/// Whether one of the first orders is delivered.
fn delivered(params: Params, o: i64) -> bool {
    o * 100 <= params.customers * DELIVERED
}

/// An order, its lines, and its row of new orders if it is not delivered.
pub(super) fn order(params: Params, w: i64, d: i64, o: i64) -> (Row, Vec<Row>, Option<Row>) {
    let mut make = Maker::new(params, 5, [w, d, o]);
    let done = delivered(params, o);
    let count = make.number(5, 15);
    let mut row: Row = [w, d, o, orderer(params, o), NOW].map(Value::Int).into();
    row.push(if done { make.int(1, 10) } else { Value::Null });
    row.extend([Value::Int(count), Value::Int(1)]);
    let mut line = |number: i64| {
        let mut row: Row = [w, d, o, number].map(Value::Int).into();
        row.push(make.int(1, params.items));
        row.push(Value::Int(w));
        row.push(if done { Value::Int(NOW) } else { Value::Null });
        row.push(Value::Int(5));
        row.push(if done {
            Value::Int(0)
        } else {
            make.int(1, 999_999)
        });
        row.push(make.text(24, 24));
        row
    };
    let lines = (1..=count).map(&mut line).collect();
    let new = (!done).then(|| [w, d, o].map(Value::Int).into());
    (row, lines, new)
}

pub(super) fn item(params: Params, i: i64) -> Row {
    let mut make = Maker::new(params, 7, [i, 0, 0]);
    vec![
        Value::Int(i),
        make.int(1, 10_000),
        make.text(14, 24),
        make.int(100, 10_000),
        make.original(),
    ]
}

pub(super) fn stock(params: Params, w: i64, i: i64) -> Row {
    let mut make = Maker::new(params, 8, [w, i, 0]);
    let mut row = vec![Value::Int(w), Value::Int(i), make.int(10, 100)];
    row.extend((0..10).map(|_| make.text(24, 24)));
    row.extend([0, 0, 0].map(Value::Int));
    row.push(make.original());
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::schema;
    use super::*;

    fn params(payload: Payload) -> Params {
        Params::of(42, 3000, payload)
    }

    #[test]
    fn rows_fit_their_tables() {
        for payload in [Payload::Percona, Payload::Spec] {
            let p = params(payload);
            let (order, lines, new) = order(p, 1, 2, 290);
            let rows = [
                (schema::WAREHOUSE, warehouse(p, 1)),
                (schema::DISTRICT, district(p, 1, 2)),
                (schema::CUSTOMER, customer(p, 1, 2, 3)),
                (schema::HISTORY, history(p, 1, 2, 3)),
                (schema::NEW_ORDER, new.unwrap_or_default()),
                (schema::ORDERS, order),
                (schema::ORDER_LINE, lines[0].clone()),
                (schema::ITEM, item(p, 9)),
                (schema::STOCK, stock(p, 1, 9)),
            ];
            let tables = schema::tables();
            for (table, row) in rows {
                let table = &tables[table];
                assert_eq!(row.len(), table.columns.len(), "{}", table.name);
                for (column, value) in table.columns.iter().zip(&row) {
                    let fits = value.len() <= column.width as usize;
                    assert!(fits, "{}.{}", table.name, column.name);
                }
            }
        }
    }

    #[test]
    fn names_are_those_of_the_specification() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
    }

    #[test]
    fn every_customer_has_one_of_the_first_orders() {
        let p = params(Payload::Spec);
        let all: BTreeSet<i64> = (1..=p.customers).map(|o| orderer(p, o)).collect();
        assert_eq!(all.len().cast_signed() as i64, p.customers);
        let new = (1..=p.customers).filter(|o| !delivered(p, *o)).count();
        assert_eq!(new, 90);
    }

    #[test]
    fn the_payload_of_the_articles_repeats_one_character() {
        let data = |payload| customer(params(payload), 1, 1, 1)[schema::customer::DATA].clone();
        let letters = |value: &Value| value.text().chars().collect::<BTreeSet<_>>().len();
        assert_eq!(letters(&data(Payload::Percona)), 1);
        assert!(letters(&data(Payload::Spec)) > 30);
    }
}
