//! Loads the items, then for each warehouse its stock, districts, customers and first orders, in
//! units of several rows, so that several clients can load one warehouse.

use super::schema::{
    CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, STOCK, WAREHOUSE,
};
use super::{DISTRICTS, Params, population};
use crate::workload::program::{Client, ClientSlot, Done};
use crate::workload::table::Row;
use crate::workload::tables::{Answer, TableClient};

/// Number of items or stock rows in one unit, and of customers or orders.
const ITEMS: i64 = 500;
const CUSTOMERS: i64 = 50;

/// Number of units of each part of the load.
#[derive(Clone, Copy, Debug)]
struct Units {
    items: u64,
    customers: u64,
    warehouses: u64,
}

impl Units {
    fn of(params: Params) -> Units {
        let parts = |n: i64, size: i64| ((n + size - 1) / size).unsigned_abs();
        Units {
            items: parts(params.items, ITEMS),
            customers: parts(params.customers, CUSTOMERS) * DISTRICTS.unsigned_abs(),
            warehouses: params.warehouses.unsigned_abs(),
        }
    }

    fn warehouse(self) -> u64 {
        1 + self.items + self.customers
    }

    fn all(self) -> u64 {
        self.items + self.warehouses * self.warehouse()
    }
}

/// The range of numbers, from 1, that belongs to unit `part`, where units have `size` numbers and
/// there are `of` numbers in all.
fn part(part: u64, size: i64, of: i64) -> std::ops::RangeInclusive<i64> {
    let from = part.cast_signed() * size;
    from + 1..=of.min(from + size)
}

pub(super) struct Loader<'a> {
    params: Params,
    slot: ClientSlot<'a>,
    units: Units,
    rows: Vec<(usize, Vec<Row>)>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(params: Params, slot: ClientSlot<'a>) -> Loader<'a> {
        Loader {
            params,
            slot,
            units: Units::of(params),
            rows: Vec::new(),
        }
    }

    fn fill(&mut self, unit: u64) {
        let (p, units) = (self.params, self.units);
        let Some(of_warehouses) = unit.checked_sub(units.items) else {
            let items = part(unit, ITEMS, p.items).map(|i| population::item(p, i));
            self.rows = vec![(ITEM, items.collect())];
            return;
        };
        let w = (of_warehouses / units.warehouse()).cast_signed() + 1;
        let unit = of_warehouses % units.warehouse();
        self.rows = match unit.checked_sub(1) {
            None => {
                let districts = (1..=DISTRICTS).map(|d| population::district(p, w, d));
                vec![
                    (WAREHOUSE, vec![population::warehouse(p, w)]),
                    (DISTRICT, districts.collect()),
                ]
            }
            Some(unit) if unit < units.items => {
                let stock = part(unit, ITEMS, p.items).map(|i| population::stock(p, w, i));
                vec![(STOCK, stock.collect())]
            }
            Some(unit) => self.customers(w, unit - units.items),
        };
    }

    fn customers(&self, w: i64, unit: u64) -> Vec<(usize, Vec<Row>)> {
        let p = self.params;
        let parts = self.units.customers / DISTRICTS.unsigned_abs();
        let d = (unit / parts).cast_signed() + 1;
        let some = part(unit % parts, CUSTOMERS, p.customers);
        let customers = some.clone().map(|c| population::customer(p, w, d, c));
        let history = some.clone().map(|c| population::history(p, w, d, c));
        let mut rows = vec![
            (CUSTOMER, customers.collect()),
            (HISTORY, history.collect()),
        ];
        let (mut orders, mut all_lines, mut news) = (Vec::new(), Vec::new(), Vec::new());
        for o in some {
            let (order, lines, new) = population::order(p, w, d, o);
            orders.push(order);
            all_lines.extend(lines);
            news.extend(new);
        }
        rows.extend([(ORDERS, orders), (ORDER_LINE, all_lines), (NEW_ORDER, news)]);
        rows
    }
}

impl Client for Loader<'_> {
    fn next(&mut self) -> Option<usize> {
        let unit = self.slot.take(self.units.all())?;
        self.fill(unit);
        Some(0)
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        for (table, rows) in &self.rows {
            if !rows.is_empty() {
                client.insert(*table, rows)?;
            }
        }
        Ok(Done::default())
    }
}
