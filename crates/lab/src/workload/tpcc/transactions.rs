//! The five transactions (specification, 2.4 to 2.8).

use std::collections::BTreeSet;

use super::input::{Input, Wanted, Who, next};
use super::population::{Maker, NOW};
use super::schema::{
    BY_CUSTOMER, BY_NAME, CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, STOCK,
    WAREHOUSE, customer, district, item, line, order, stock, warehouse,
};
use super::{DISTRICTS, Params};
use crate::workload::program::{Client, ClientSlot, Done};
use crate::workload::table::{Row, Value, at};
use crate::workload::tables::{Answer, Lock, Mode, Range, Refused, TableClient};

/// Number of recent orders that a stock-level transaction reads the lines of.
const RECENT: i64 = 20;

/// Maximum number of characters of a customer's data.
const DATA_MAX: usize = 500;

/// A client that runs the transactions.
pub(super) struct Terminal {
    params: Params,
    make: Maker,
    input: Option<Input>,
    row: Row,
}

impl Terminal {
    pub(super) fn new(params: Params, slot: ClientSlot<'_>) -> Terminal {
        let seed = slot.seed(params.seed).cast_signed();
        Terminal {
            make: Maker::new(params, 99, [seed, 0, 0]),
            params,
            input: None,
            row: Row::new(),
        }
    }
}

impl Client for Terminal {
    fn next(&mut self) -> Option<usize> {
        let input = next(self.params, &mut self.make);
        let kind = input.kind();
        self.input = Some(input);
        Some(kind)
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let row = &mut self.row;
        match &self.input {
            None => Ok(Done::default()),
            Some(Input::NewOrder {
                w,
                d,
                c,
                lines,
                unknown,
            }) => {
                let work = NewOrder {
                    w: *w,
                    d: *d,
                    c: *c,
                    lines,
                    unknown: *unknown,
                };
                work.run(client, row)
            }
            Some(Input::Payment {
                w,
                d,
                home,
                who,
                amount,
            }) => {
                let work = Payment {
                    w: *w,
                    d: *d,
                    home: *home,
                    who,
                    amount: *amount,
                };
                work.run(client, row)
            }
            Some(Input::OrderStatus { w, d, who }) => order_status(client, (*w, *d), who, row),
            Some(Input::Delivery { w, carrier }) => delivery(client, *w, *carrier, row),
            Some(Input::StockLevel { w, d, threshold }) => {
                stock_level(client, (*w, *d), *threshold, row)
            }
        }
    }
}

/// Read a row that must exist.
fn get(
    client: &mut dyn TableClient,
    table: usize,
    key: &[i64],
    lock: Lock,
    row: &mut Row,
) -> Answer<()> {
    let values: Vec<Value> = key.iter().copied().map(Value::Int).collect();
    if client.get(table, &values, lock, row)? {
        return Ok(());
    }
    Err(Refused::failed(format!(
        "row {key:?} of table {table} is missing"
    )))
}

/// A copy of a row with other values in some columns.
fn with(row: &Row, changes: &[(usize, Value)]) -> Row {
    let mut new = row.clone();
    for (column, value) in changes {
        if let Some(place) = new.get_mut(*column) {
            place.clone_from(value);
        }
    }
    new
}

fn int(row: &[Value], column: usize) -> i64 {
    at(row, column).int()
}

/// Find a customer, and read the customer's row.
fn find(
    client: &mut dyn TableClient,
    (w, d): (i64, i64),
    who: &Who,
    lock: Lock,
    row: &mut Row,
) -> Answer<i64> {
    let c = match who {
        Who::Id(c) => *c,
        Who::Name(name) => {
            let equal = [Value::Int(w), Value::Int(d), Value::from(name.as_str())];
            let mut ids = Vec::new();
            let range = Range::by_index(CUSTOMER, BY_NAME, &equal).covered();
            client.range(&range, &mut |row| {
                ids.push(int(row, customer::ID));
                true
            })?;
            // The customer in the middle, rounded up.
            let middle = ids.len().div_ceil(2).checked_sub(1);
            let found = middle.and_then(|at| ids.get(at)).copied();
            found.ok_or_else(|| Refused::failed(format!("no customer is called {name}")))?
        }
    };
    get(client, CUSTOMER, &[w, d, c], lock, row)?;
    Ok(c)
}

struct NewOrder<'a> {
    w: i64,
    d: i64,
    c: i64,
    lines: &'a [Wanted],
    unknown: bool,
}

impl NewOrder<'_> {
    fn run(&self, client: &mut dyn TableClient, row: &mut Row) -> Answer<Done> {
        let NewOrder { w, d, c, .. } = *self;
        client.begin(Mode::Write)?;
        get(client, WAREHOUSE, &[w], Lock::None, row)?;
        let warehouse_tax = int(row, warehouse::TAX);
        get(client, CUSTOMER, &[w, d, c], Lock::None, row)?;
        let discount = int(row, customer::DISCOUNT);
        get(client, DISTRICT, &[w, d], Lock::Update, row)?;
        let (o, tax) = (
            int(row, district::NEXT),
            warehouse_tax + int(row, district::TAX),
        );
        let new = with(row, &[(district::NEXT, Value::Int(o + 1))]);
        client.update(DISTRICT, row, &new)?;
        let local = self.lines.iter().all(|l| l.supplier == w);
        let mut head: Row = [w, d, o, c, NOW].map(Value::Int).into();
        head.push(Value::Null);
        head.extend(
            [self.lines.len() as u64, u64::from(local)].map(|n| Value::Int(n.cast_signed())),
        );
        client.insert(ORDERS, &[head])?;
        client.insert(NEW_ORDER, &[[w, d, o].map(Value::Int).into()])?;
        let mut rows = Vec::with_capacity(self.lines.len());
        let mut sum = 0;
        for (wanted, number) in self.lines.iter().zip(1..) {
            let last = rows.len() + 1 == self.lines.len();
            if self.unknown && last {
                // The specification (2.4.1.4) requires that all changes so far are rolled back.
                client.abort();
                return Ok(Done {
                    rolled_back: true,
                    ..Done::default()
                });
            }
            let (line, amount) = self.line(client, (o, number), wanted, row)?;
            sum += amount;
            rows.push(line);
        }
        client.insert(ORDER_LINE, &rows)?;
        client.commit()?;
        std::hint::black_box(sum * (10_000 - discount) * (10_000 + tax));
        Ok(Done {
            entries: rows.len() as u64,
            ..Done::default()
        })
    }

    /// Take an item from stock; returns the row of the order line and its amount.
    fn line(
        &self,
        client: &mut dyn TableClient,
        (o, number): (i64, i64),
        wanted: &Wanted,
        row: &mut Row,
    ) -> Answer<(Row, i64)> {
        let Wanted {
            item: i,
            supplier,
            quantity,
        } = *wanted;
        get(client, ITEM, &[i], Lock::None, row)?;
        let amount = int(row, item::PRICE) * quantity;
        get(client, STOCK, &[supplier, i], Lock::Update, row)?;
        let left = int(row, stock::QUANTITY) - quantity;
        let left = if left < 10 { left + 91 } else { left };
        let remote = i64::from(supplier != self.w);
        let new = with(
            row,
            &[
                (stock::QUANTITY, Value::Int(left)),
                (stock::YTD, Value::Int(int(row, stock::YTD) + quantity)),
                (stock::ORDERS, Value::Int(int(row, stock::ORDERS) + 1)),
                (stock::REMOTE, Value::Int(int(row, stock::REMOTE) + remote)),
            ],
        );
        client.update(STOCK, row, &new)?;
        let dist = usize::try_from(self.d - 1).unwrap_or(0) + stock::DIST;
        let mut line: Row = [self.w, self.d, o, number, i, supplier]
            .map(Value::Int)
            .into();
        line.extend([
            Value::Null,
            Value::Int(quantity),
            Value::Int(amount),
            at(row, dist).clone(),
        ]);
        Ok((line, amount))
    }
}

struct Payment<'a> {
    w: i64,
    d: i64,
    home: (i64, i64),
    who: &'a Who,
    amount: i64,
}

impl Payment<'_> {
    fn run(&self, client: &mut dyn TableClient, row: &mut Row) -> Answer<Done> {
        let Payment {
            w, d, home, amount, ..
        } = *self;
        client.begin(Mode::Write)?;
        get(client, WAREHOUSE, &[w], Lock::Update, row)?;
        let name = at(row, 1).text().to_owned();
        let sum = Value::Int(int(row, warehouse::YTD) + amount);
        client.update(WAREHOUSE, row, &with(row, &[(warehouse::YTD, sum)]))?;
        get(client, DISTRICT, &[w, d], Lock::Update, row)?;
        let data = format!("{name}    {}", at(row, 2).text());
        let sum = Value::Int(int(row, district::YTD) + amount);
        client.update(DISTRICT, row, &with(row, &[(district::YTD, sum)]))?;
        let c = find(client, home, self.who, Lock::Update, row)?;
        let payments = int(row, customer::PAYMENTS) + 1;
        let mut changes = vec![
            (
                customer::BALANCE,
                Value::Int(int(row, customer::BALANCE) - amount),
            ),
            (
                customer::PAID,
                Value::Int(int(row, customer::PAID) + amount),
            ),
            (customer::PAYMENTS, Value::Int(payments)),
        ];
        if at(row, customer::CREDIT).text() == "BC" {
            let (cw, cd) = home;
            let mut data = format!("{c} {cd} {cw} {d} {w} {amount} ");
            data.push_str(at(row, customer::DATA).text());
            // The text is ASCII, so every position is a character boundary.
            data.truncate(DATA_MAX);
            changes.push((customer::DATA, Value::Text(data)));
        }
        client.update(CUSTOMER, row, &with(row, &changes))?;
        let mut history: Row = [home.0, home.1, c, payments, d, w, NOW, amount]
            .map(Value::Int)
            .into();
        history.push(Value::Text(data));
        client.insert(HISTORY, &[history])?;
        client.commit()?;
        Ok(Done::default())
    }
}

fn order_status(
    client: &mut dyn TableClient,
    (w, d): (i64, i64),
    who: &Who,
    row: &mut Row,
) -> Answer<Done> {
    client.begin(Mode::Read)?;
    let c = find(client, (w, d), who, Lock::None, row)?;
    let equal = [w, d, c].map(Value::Int);
    let latest = Range::by_index(ORDERS, BY_CUSTOMER, &equal)
        .backward()
        .limit(1);
    let mut last = None;
    client.range(&latest, &mut |row| {
        last = Some((int(row, order::ID), int(row, order::LINES)));
        true
    })?;
    let mut done = Done::default();
    if let Some((o, count)) = last {
        let equal = [w, d, o].map(Value::Int);
        done.entries = client.range(&Range::by_key(ORDER_LINE, &equal), &mut |_| true)?;
        if done.entries != count.unsigned_abs() {
            let met = done.entries;
            done.wrong = Some(format!("order {w} {d} {o} has {met} lines of {count}"));
        }
    }
    client.commit()?;
    Ok(done)
}

fn delivery(client: &mut dyn TableClient, w: i64, carrier: i64, row: &mut Row) -> Answer<Done> {
    client.begin(Mode::Write)?;
    let mut done = Done::default();
    for d in 1..=DISTRICTS {
        let equal = [w, d].map(Value::Int);
        let mut oldest = None;
        client.range(&Range::by_key(NEW_ORDER, &equal).limit(1), &mut |row| {
            oldest = Some(row.to_vec());
            true
        })?;
        let Some(oldest) = oldest else { continue };
        let o = int(&oldest, 2);
        // Read the order again with a lock: another delivery may have delivered it meanwhile.
        if !client.get(NEW_ORDER, &oldest, Lock::Update, row)? {
            return Err(Refused::Conflict);
        }
        client.delete(NEW_ORDER, &oldest)?;
        get(client, ORDERS, &[w, d, o], Lock::Update, row)?;
        let c = int(row, order::CUSTOMER);
        client.update(
            ORDERS,
            row,
            &with(row, &[(order::CARRIER, Value::Int(carrier))]),
        )?;
        let (mut lines, mut sum) = (Vec::new(), 0);
        let equal = [w, d, o].map(Value::Int);
        client.range(&Range::by_key(ORDER_LINE, &equal), &mut |row| {
            sum += int(row, line::AMOUNT);
            lines.push(row.to_vec());
            true
        })?;
        for old in &lines {
            let new = with(old, &[(line::DELIVERED, Value::Int(NOW))]);
            client.update(ORDER_LINE, old, &new)?;
        }
        done.entries += lines.len() as u64;
        get(client, CUSTOMER, &[w, d, c], Lock::Update, row)?;
        let changes = [
            (
                customer::BALANCE,
                Value::Int(int(row, customer::BALANCE) + sum),
            ),
            (
                customer::DELIVERIES,
                Value::Int(int(row, customer::DELIVERIES) + 1),
            ),
        ];
        client.update(CUSTOMER, row, &with(row, &changes))?;
    }
    client.commit()?;
    Ok(done)
}

fn stock_level(
    client: &mut dyn TableClient,
    (w, d): (i64, i64),
    threshold: i64,
    row: &mut Row,
) -> Answer<Done> {
    client.begin(Mode::Read)?;
    get(client, DISTRICT, &[w, d], Lock::None, row)?;
    let next = int(row, district::NEXT);
    let equal = [w, d].map(Value::Int);
    let (from, to) = (Value::Int(next - RECENT), Value::Int(next - 1));
    let mut items = BTreeSet::new();
    let recent = Range::by_key(ORDER_LINE, &equal).between(&from, &to);
    let mut entries = client.range(&recent, &mut |row| {
        items.insert(int(row, line::ITEM));
        true
    })?;
    let mut low = 0u64;
    for i in items {
        get(client, STOCK, &[w, i], Lock::None, row)?;
        low += u64::from(int(row, stock::QUANTITY) < threshold);
        entries += 1;
    }
    client.commit()?;
    std::hint::black_box(low);
    Ok(Done {
        entries,
        ..Done::default()
    })
}
