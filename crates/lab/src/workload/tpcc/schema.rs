//! The tables (specification, 1.3) by position, and the positions of columns that the code names.

use crate::workload::table::{Column, Table};

pub(super) const WAREHOUSE: usize = 0;
pub(super) const DISTRICT: usize = 1;
pub(super) const CUSTOMER: usize = 2;
pub(super) const HISTORY: usize = 3;
pub(super) const NEW_ORDER: usize = 4;
pub(super) const ORDERS: usize = 5;
pub(super) const ORDER_LINE: usize = 6;
pub(super) const ITEM: usize = 7;
pub(super) const STOCK: usize = 8;

/// Position of the index of customers by last name, and of that of orders by customer.
pub(super) const BY_NAME: usize = 0;
pub(super) const BY_CUSTOMER: usize = 0;

pub(super) mod warehouse {
    pub(crate) const TAX: usize = 7;
    pub(crate) const YTD: usize = 8;
}

pub(super) mod district {
    pub(crate) const TAX: usize = 8;
    pub(crate) const YTD: usize = 9;
    pub(crate) const NEXT: usize = 10;
}

pub(super) mod customer {
    pub(crate) const ID: usize = 2;
    pub(crate) const CREDIT: usize = 13;
    pub(crate) const DISCOUNT: usize = 15;
    pub(crate) const BALANCE: usize = 16;
    pub(crate) const PAID: usize = 17;
    pub(crate) const PAYMENTS: usize = 18;
    pub(crate) const DELIVERIES: usize = 19;
    pub(crate) const DATA: usize = 20;
}

pub(super) mod order {
    pub(crate) const ID: usize = 2;
    pub(crate) const CUSTOMER: usize = 3;
    pub(crate) const CARRIER: usize = 5;
    pub(crate) const LINES: usize = 6;
}

pub(super) mod line {
    pub(crate) const ITEM: usize = 4;
    pub(crate) const DELIVERED: usize = 6;
    pub(crate) const AMOUNT: usize = 8;
}

pub(super) mod item {
    pub(crate) const PRICE: usize = 3;
}

pub(super) mod stock {
    pub(crate) const QUANTITY: usize = 2;
    pub(crate) const DIST: usize = 3;
    pub(crate) const YTD: usize = 13;
    pub(crate) const ORDERS: usize = 14;
    pub(crate) const REMOTE: usize = 15;
}

const STREET_1: Column = Column::text("street_1", 20);
const STREET_2: Column = Column::text("street_2", 20);
const CITY: Column = Column::text("city", 20);
const STATE: Column = Column::text("state", 2);
const ZIP: Column = Column::text("zip", 9);

/// All tables.
pub(super) fn tables() -> Vec<Table> {
    vec![
        warehouses(),
        districts(),
        customers(),
        Table::new(
            "history",
            &[
                Column::int("c_w_id"),
                Column::int("c_d_id"),
                Column::int("c_id"),
                Column::int("payment"),
                Column::int("d_id"),
                Column::int("w_id"),
                Column::int("paid_at"),
                Column::int("amount"),
                Column::text("data", 24),
            ],
            4,
        ),
        Table::new(
            "new_order",
            &[
                Column::int("w_id"),
                Column::int("d_id"),
                Column::int("o_id"),
            ],
            3,
        ),
        Table::new(
            "orders",
            &[
                Column::int("w_id"),
                Column::int("d_id"),
                Column::int("id"),
                Column::int("c_id"),
                Column::int("entry_d"),
                Column::int("carrier_id").or_null(),
                Column::int("ol_cnt"),
                Column::int("all_local"),
            ],
            3,
        )
        .index("by_customer", &[0, 1, 3, 2], &[]),
        lines(),
        Table::new(
            "item",
            &[
                Column::int("id"),
                Column::int("im_id"),
                Column::text("name", 24),
                Column::int("price"),
                Column::text("data", 50),
            ],
            1,
        ),
        stock_of_warehouses(),
    ]
}

fn warehouses() -> Table {
    let columns = [
        Column::int("id"),
        Column::text("name", 10),
        STREET_1,
        STREET_2,
        CITY,
        STATE,
        ZIP,
        Column::int("tax"),
        Column::int("ytd"),
    ];
    Table::new("warehouse", &columns, 1)
}

fn districts() -> Table {
    let columns = [
        Column::int("w_id"),
        Column::int("id"),
        Column::text("name", 10),
        STREET_1,
        STREET_2,
        CITY,
        STATE,
        ZIP,
        Column::int("tax"),
        Column::int("ytd"),
        Column::int("next_o_id"),
    ];
    Table::new("district", &columns, 2)
}

fn customers() -> Table {
    let columns = [
        Column::int("w_id"),
        Column::int("d_id"),
        Column::int("id"),
        Column::text("first", 16),
        Column::text("middle", 2),
        Column::text("last", 16),
        STREET_1,
        STREET_2,
        CITY,
        STATE,
        ZIP,
        Column::text("phone", 16),
        Column::int("since"),
        Column::text("credit", 2),
        Column::int("credit_lim"),
        Column::int("discount"),
        Column::int("balance"),
        Column::int("ytd_payment"),
        Column::int("payment_cnt"),
        Column::int("delivery_cnt"),
        Column::text("data", 500),
    ];
    Table::new("customer", &columns, 3).index("by_name", &[0, 1, 5, 3], &[])
}

fn lines() -> Table {
    let columns = [
        Column::int("w_id"),
        Column::int("d_id"),
        Column::int("o_id"),
        Column::int("number"),
        Column::int("i_id"),
        Column::int("supply_w_id"),
        Column::int("delivery_d").or_null(),
        Column::int("quantity"),
        Column::int("amount"),
        Column::text("dist_info", 24),
    ];
    Table::new("order_line", &columns, 4)
}

fn stock_of_warehouses() -> Table {
    let mut columns = vec![
        Column::int("w_id"),
        Column::int("i_id"),
        Column::int("quantity"),
    ];
    const DISTS: [&str; 10] = [
        "dist_01", "dist_02", "dist_03", "dist_04", "dist_05", "dist_06", "dist_07", "dist_08",
        "dist_09", "dist_10",
    ];
    columns.extend(DISTS.map(|name| Column::text(name, 24)));
    columns.extend([
        Column::int("ytd"),
        Column::int("order_cnt"),
        Column::int("remote_cnt"),
        Column::text("data", 50),
    ]);
    Table::new("stock", &columns, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_columns_are_at_their_positions() {
        let tables = tables();
        let name = |table: usize, column: usize| tables[table].columns[column].name;
        assert_eq!(tables.len(), 9);
        assert_eq!(name(WAREHOUSE, warehouse::TAX), "tax");
        assert_eq!(name(WAREHOUSE, warehouse::YTD), "ytd");
        assert_eq!(name(DISTRICT, district::TAX), "tax");
        assert_eq!(name(DISTRICT, district::YTD), "ytd");
        assert_eq!(name(DISTRICT, district::NEXT), "next_o_id");
        assert_eq!(name(CUSTOMER, customer::ID), "id");
        assert_eq!(name(CUSTOMER, customer::CREDIT), "credit");
        assert_eq!(name(CUSTOMER, customer::DISCOUNT), "discount");
        assert_eq!(name(CUSTOMER, customer::BALANCE), "balance");
        assert_eq!(name(CUSTOMER, customer::PAID), "ytd_payment");
        assert_eq!(name(CUSTOMER, customer::PAYMENTS), "payment_cnt");
        assert_eq!(name(CUSTOMER, customer::DELIVERIES), "delivery_cnt");
        assert_eq!(name(CUSTOMER, customer::DATA), "data");
        assert_eq!(name(ORDERS, order::ID), "id");
        assert_eq!(name(ORDERS, order::CUSTOMER), "c_id");
        assert_eq!(name(ORDERS, order::CARRIER), "carrier_id");
        assert_eq!(name(ORDERS, order::LINES), "ol_cnt");
        assert_eq!(name(ORDER_LINE, line::ITEM), "i_id");
        assert_eq!(name(ORDER_LINE, line::DELIVERED), "delivery_d");
        assert_eq!(name(ORDER_LINE, line::AMOUNT), "amount");
        assert_eq!(name(ITEM, item::PRICE), "price");
        assert_eq!(name(STOCK, stock::QUANTITY), "quantity");
        assert_eq!(name(STOCK, stock::DIST), "dist_01");
        assert_eq!(name(STOCK, stock::YTD), "ytd");
        assert_eq!(name(STOCK, stock::ORDERS), "order_cnt");
        assert_eq!(name(STOCK, stock::REMOTE), "remote_cnt");
        assert_eq!(tables[HISTORY].key.len(), 4);
        assert_eq!(tables[NEW_ORDER].key.len(), 3);
        assert_eq!(tables[CUSTOMER].indexes[BY_NAME].name, "by_name");
        assert_eq!(tables[ORDERS].indexes[BY_CUSTOMER].name, "by_customer");
    }
}
