//! Checks consistency (specification, 3.3.2): conditions 1 to 4, district by district.

use super::schema::{
    CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, STOCK, WAREHOUSE, district,
    order, warehouse,
};
use super::{DISTRICTS, Params};
use crate::workload::program::Checked;
use crate::workload::table::{Value, at};
use crate::workload::tables::{Answer, By, Range, TableClient};

pub(super) fn check(params: Params, client: &mut dyn TableClient) -> Answer<Checked> {
    let mut checked = Checked::default();
    for table in [WAREHOUSE, DISTRICT, CUSTOMER, HISTORY, ITEM, STOCK] {
        checked.rows += client.range(&Range::by_key(table, &[]), &mut |_| true)?;
    }
    for w in 1..=params.warehouses {
        let mut of_districts = 0;
        for d in 1..=DISTRICTS {
            of_districts += one(client, w, d, &mut checked)?;
        }
        let mut of_warehouse = None;
        client.range(&Range::by_key(WAREHOUSE, &[Value::Int(w)]), &mut |row| {
            of_warehouse = Some(at(row, warehouse::YTD).int());
            true
        })?;
        if of_warehouse != Some(of_districts) {
            checked.fault(format!(
                "condition 1: warehouse {w} took {of_warehouse:?}, its districts {of_districts}"
            ));
        }
    }
    for (table, name) in [(CUSTOMER, "customers"), (ORDERS, "orders")] {
        let rows = client.range(&Range::by_key(table, &[]), &mut |_| true)?;
        let all = Range {
            by: By::Index(0),
            ..Range::by_key(table, &[])
        };
        let entries = client.range(&all.covered(), &mut |_| true)?;
        if rows != entries {
            checked.fault(format!(
                "{rows} {name}, and {entries} entries of their index"
            ));
        }
    }
    Ok(checked)
}

/// Check conditions 2 to 4 of a district; returns its year-to-date amount.
fn one(client: &mut dyn TableClient, w: i64, d: i64, checked: &mut Checked) -> Answer<i64> {
    let equal = [Value::Int(w), Value::Int(d)];
    let by_key = |table| Range::by_key(table, &equal);
    let (mut taken, mut next) = (0, 0);
    client.range(&by_key(DISTRICT), &mut |row| {
        (taken, next) = (at(row, district::YTD).int(), at(row, district::NEXT).int());
        true
    })?;
    let (mut last, mut lines_counted) = (0, 0);
    let orders = client.range(&by_key(ORDERS), &mut |row| {
        last = at(row, order::ID).int();
        lines_counted += at(row, order::LINES).int();
        true
    })?;
    let mut new = None;
    let news = client.range(&by_key(NEW_ORDER), &mut |row| {
        let o = at(row, 2).int();
        new = Some(new.map_or((o, o), |(first, _)| (first, o)));
        true
    })?;
    let lines = client.range(&by_key(ORDER_LINE), &mut |_| true)?;
    checked.rows += orders + news + lines;
    let place = format!("warehouse {w}, district {d}");
    if last != next - 1 || new.is_some_and(|(_, newest)| newest != last) {
        checked.fault(format!(
            "condition 2: {place}: the next order is {next}, the last {last}, the last new {new:?}"
        ));
    }
    if let Some((first, newest)) = new
        && (newest - first + 1).unsigned_abs() != news
    {
        checked.fault(format!(
            "condition 3: {place}: new orders {first} to {newest}, and there are {news}"
        ));
    }
    if lines_counted.unsigned_abs() != lines {
        checked.fault(format!(
            "condition 4: {place}: orders count {lines_counted} lines, and there are {lines}"
        ));
    }
    Ok(taken)
}
