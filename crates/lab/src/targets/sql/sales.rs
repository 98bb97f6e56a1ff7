//! The insert benchmark's rows as a table, and the statements on it.
//!
//! `transactionid` is the primary key. The other columns have the names and, except for the date,
//! the types of the published program: dates are milliseconds as a `BIGINT`, so that a row has the
//! same fields as on every other target.

use lab_report::error::Result;

use super::address::Protocol;
use super::dialect::{Dialect, Kind};
use super::engine::Engine;
use super::value::Value;
use super::wire::VALUES_MAX;
use crate::targets::database::Part;
use crate::targets::mongodb::indexes_of;
use crate::workload::iibench::{Generator, Sale, Shape};
use crate::workload::table::nth;

/// Name of the table. Since the table is dropped, the name must be unlikely to be used by others.
pub(super) const TABLE: &str = "romanesco_lab_rows";

/// Name of the primary key's column.
const KEY: &str = "transactionid";

/// Maximum bytes of the values of one statement; a server accepts 16 MiB.
const BYTES_MAX: usize = 4 << 20;

/// Bytes of a row's key and its other fields of fixed length.
const FIXED: usize = 8 + 28;

/// The table.
pub(super) struct Sales {
    pub dialect: Dialect,
    pub generator: Generator,
    columns: Vec<(&'static str, Kind)>,
    /// Whether commits are logged.
    logged: bool,
    /// Fill factor of the pages of the table and its key in percent, if the table declares it.
    fill: Option<u8>,
}

impl Sales {
    pub(super) fn new(dialect: Dialect, generator: Generator, logged: bool) -> Sales {
        let shape = generator.params().shape;
        let price = match shape {
            Shape::Current => Kind::Int,
            Shape::Classic | Shape::Uniform | Shape::Hashed => Kind::Float,
        };
        let mut columns = vec![
            (KEY, Kind::Long),
            ("dateandtime", Kind::Long),
            ("cashregisterid", Kind::Int),
            ("customerid", Kind::Int),
            ("productid", Kind::Int),
            ("price", price),
        ];
        if shape == Shape::Uniform {
            columns.extend(["random1", "random2", "random3"].map(|name| (name, Kind::Long)));
        }
        columns.push(("data", Kind::Text(generator.params().payload.max)));
        Sales {
            dialect,
            generator,
            columns,
            logged,
            fill: None,
        }
    }

    /// Set the fill factor of pages in percent, if it is a setting of the table. In InnoDB it is a
    /// setting of the server instead.
    pub(super) fn filled(self, fill: Option<u8>) -> Sales {
        let here = self.dialect.protocol == Protocol::Postgres;
        Sales {
            fill: fill.filter(|_| here),
            ..self
        }
    }

    /// The fields of the existing indexes.
    pub(super) fn indexes(&self) -> Vec<&'static [&'static str]> {
        let params = self.generator.params();
        let all = indexes_of(params.shape).into_iter();
        all.take(usize::from(params.indexes)).collect()
    }

    /// The fields of an index, from 0.
    pub(super) fn fields(&self, index: usize) -> Result<&'static [&'static str]> {
        nth(&self.indexes(), index, "index").copied()
    }

    /// The name of an index.
    fn index(index: usize) -> String {
        format!("{TABLE}_{}", index + 1)
    }

    /// The statements that recreate the table, without indexes.
    pub(super) fn create(&self) -> [String; 2] {
        let mut columns = String::new();
        for (name, kind) in &self.columns {
            columns.push_str(&format!("{name} {} NOT NULL, ", self.dialect.column(*kind)));
        }
        let table = self.dialect.table(self.logged);
        let storage = self.dialect.storage(self.logged);
        let fill = self.fill.map(|fill| format!(" WITH (fillfactor = {fill})"));
        let fill = fill.unwrap_or_default();
        [
            format!("DROP TABLE IF EXISTS {TABLE}"),
            format!("CREATE {table} {TABLE} ({columns}PRIMARY KEY ({KEY}){fill}){storage}{fill}"),
        ]
    }

    pub(super) fn create_index(&self, index: usize) -> Result<String> {
        let fields = self.fields(index)?.join(", ");
        let name = Sales::index(index);
        Ok(format!("CREATE INDEX {name} ON {TABLE} ({fields})"))
    }

    /// The names of all columns.
    fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// Maximum number of rows of one statement.
    pub(super) fn rows_max(&self) -> usize {
        let row = FIXED + self.generator.params().payload.max as usize;
        (VALUES_MAX / self.columns.len())
            .min(BYTES_MAX / row)
            .max(1)
    }

    /// Statement that inserts `rows` rows.
    pub(super) fn insert(&self, rows: usize) -> String {
        let mut text = format!("INSERT INTO {TABLE} ({}) VALUES ", self.names());
        let mut value = 0;
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ", (" });
            for column in 0..self.columns.len() {
                text.push_str(if column == 0 { "" } else { "," });
                value += 1;
                self.dialect.value(value, &mut text);
            }
            text.push(')');
        }
        text
    }

    /// Statement that deletes the rows from the first value (included) to the second (excluded).
    pub(super) fn delete(&self) -> String {
        let (mut low, mut high) = (String::new(), String::new());
        self.dialect.value(1, &mut low);
        self.dialect.value(2, &mut high);
        format!("DELETE FROM {TABLE} WHERE {KEY} >= {low} AND {KEY} < {high}")
    }

    /// Statement that deletes the row with a key.
    pub(super) fn delete_one(&self) -> String {
        let mut key = String::new();
        self.dialect.value(1, &mut key);
        format!("DELETE FROM {TABLE} WHERE {KEY} = {key}")
    }

    /// Statement that rewrites the table.
    pub(super) fn rebuild(&self) -> String {
        match self.dialect.protocol {
            Protocol::MySql => format!("ALTER TABLE {TABLE} FORCE"),
            Protocol::Postgres => format!("VACUUM FULL {TABLE}"),
        }
    }

    /// The primary key of row `id`.
    pub(super) fn key(&self, id: u64) -> Value {
        number(self.generator.key(id))
    }

    /// Statement that gets a row by its number.
    pub(super) fn point(&self) -> String {
        let mut key = String::new();
        self.dialect.value(1, &mut key);
        format!("SELECT {} FROM {TABLE} WHERE {KEY} = {key}", self.names())
    }

    /// Statement that reads an index from a lower bound on; and for each value of the statement the
    /// field it belongs to.
    pub(super) fn range(&self, index: usize, limit: usize) -> Result<(String, Vec<usize>)> {
        let fields = self.fields(index)?;
        let (bound, values) = self.dialect.from(fields);
        let (list, by) = (fields.join(", "), self.dialect.by(&Sales::index(index)));
        let text =
            format!("SELECT {list} FROM {TABLE}{by} WHERE {bound} ORDER BY {list} LIMIT {limit}");
        Ok((text, values))
    }

    /// Statement that reads a part from end to end.
    ///
    /// Rows are read in the order of the primary key if they are stored in that order, else in
    /// storage order, since no user would sort a heap to read all of it.
    pub(super) fn scan(&self, part: Part) -> Result<String> {
        let Part::Index(index) = part else {
            let names = self.names();
            let clustered = matches!(self.dialect.engine, Engine::InnoDb | Engine::MyRocks);
            return Ok(if clustered {
                let by = self.dialect.by("PRIMARY");
                format!("SELECT {names} FROM {TABLE}{by} ORDER BY {KEY}")
            } else {
                format!("SELECT {names} FROM {TABLE}")
            });
        };
        let list = self.fields(index)?.join(", ");
        let by = self.dialect.by(&Sales::index(index));
        Ok(format!("SELECT {list} FROM {TABLE}{by} ORDER BY {list}"))
    }

    /// Statement that counts the rows and sums their customers, by the primary key or an index.
    /// Every index contains the customer, so all results must be equal.
    pub(super) fn count(&self, part: Part) -> Result<String> {
        let (name, list) = match part {
            Part::Index(index) => (Sales::index(index), self.fields(index)?.join(", ")),
            Part::Rows => ("PRIMARY".to_owned(), KEY.to_owned()),
        };
        let by = self.dialect.by(&name);
        Ok(match self.dialect.protocol {
            Protocol::MySql => format!(
                "SELECT COUNT(*), CAST(COALESCE(SUM(customerid), 0) AS UNSIGNED) FROM {TABLE}{by}"
            ),
            // Only that index provides this order, and `OFFSET` prevents the planner from
            // flattening the inner query.
            Protocol::Postgres => format!(
                "SELECT count(*), COALESCE(sum(customerid), 0)::bigint FROM (SELECT customerid \
                 FROM {TABLE} ORDER BY {list} OFFSET 0) entries"
            ),
        })
    }

    /// Statement that reads all row numbers in order, with the contents of the rows.
    pub(super) fn everything(&self) -> String {
        let by = self.dialect.by("PRIMARY");
        format!("SELECT {} FROM {TABLE}{by} ORDER BY {KEY}", self.names())
    }

    /// Append the values of row `id`; returns their bytes. `text` is a buffer.
    pub(super) fn row(&self, id: u64, text: &mut String, into: &mut Vec<Value>) -> u64 {
        let sale = self.generator.sale(id);
        self.generator.text(id, text);
        let shape = self.generator.params().shape;
        for (name, _) in &self.columns {
            into.push(match *name {
                KEY => self.key(id),
                "data" => Value::Text(text.clone()),
                name => field(&sale, shape, name),
            });
        }
        let random = if shape == Shape::Uniform { 24 } else { 0 };
        (FIXED + random + text.len()) as u64
    }

    /// Bytes of a row's index entries, if it has some.
    pub(super) fn entries(&self, indexed: bool) -> u64 {
        match indexed {
            true => self.generator.entry_bytes() as u64,
            false => 0,
        }
    }

    /// Average bytes of a row and, if `indexed`, of its entries.
    pub(super) fn mean_bytes(&self, indexed: bool) -> f64 {
        let params = self.generator.params();
        let random = if params.shape == Shape::Uniform {
            24
        } else {
            0
        };
        (FIXED as u64 + random + self.entries(indexed)) as f64 + params.payload.mean_bytes()
    }

    /// The values of the fields of index `index` in a row, as a bound.
    pub(super) fn bound(&self, sale: &Sale, index: usize) -> Result<Vec<Value>> {
        let shape = self.generator.params().shape;
        let fields = self.fields(index)?.iter();
        Ok(fields.map(|name| field(sale, shape, name)).collect())
    }
}

/// A row number as a server without unsigned types stores it.
pub(super) fn number(id: u64) -> Value {
    Value::Int(id.cast_signed())
}

fn field(sale: &Sale, shape: Shape, name: &str) -> Value {
    let [r1, r2, r3] = sale.random.map(|r| Value::Int(r.cast_signed()));
    match name {
        "price" if shape == Shape::Current => Value::Int(sale.price_int.into()),
        "price" => Value::Float(sale.price),
        "customerid" => Value::Int(sale.customer.into()),
        "cashregisterid" => Value::Int(sale.register.into()),
        "productid" => Value::Int(sale.product.into()),
        "dateandtime" => Value::Int(sale.date.cast_signed()),
        "random1" => r1,
        "random2" => r2,
        _ => r3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::iibench::{Payload, RowParams};

    fn sales(protocol: Protocol, engine: Engine, shape: Shape) -> Sales {
        let generator = Generator::new(RowParams {
            seed: 42,
            shape,
            payload: Payload::CLASSIC,
            indexes: 3,
        });
        Sales::new(Dialect { protocol, engine }, generator, true)
    }

    #[test]
    fn statements_are_in_the_servers_own_words() {
        let maria = sales(Protocol::MySql, Engine::MyRocks, Shape::Classic);
        let [_, create] = maria.create();
        assert!(create.contains("transactionid BIGINT NOT NULL"), "{create}");
        assert!(create.contains("data VARCHAR(128)") && create.contains("ENGINE=ROCKSDB"));
        assert!(
            maria
                .insert(2)
                .ends_with("VALUES (?,?,?,?,?,?,?), (?,?,?,?,?,?,?)")
        );
        let (range, values) = maria.range(0, 10).unwrap();
        assert!(
            range.contains("FORCE INDEX (romanesco_lab_rows_1)"),
            "{range}"
        );
        assert!(range.ends_with("ORDER BY price, customerid LIMIT 10"));
        assert_eq!(values, [0, 0, 1]);

        let post = sales(Protocol::Postgres, Engine::Heap, Shape::Uniform);
        assert!(post.insert(1).ends_with("($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)"));
        assert!(post.create()[1].contains("data TEXT NOT NULL"));
        assert!(post.fields(3).is_err());
    }

    #[test]
    fn statements_name_no_table_but_the_laboratorys() {
        for protocol in [Protocol::MySql, Protocol::Postgres] {
            let sales = sales(protocol, Engine::InnoDb, Shape::Classic);
            let [drop, create] = sales.create();
            let others = [sales.insert(2), sales.delete(), sales.rebuild()];
            for statement in [drop, create].iter().chain(&others) {
                let (_, after) = ["TABLE ", "EXISTS ", "INTO ", "FROM ", "FULL "]
                    .iter()
                    .filter_map(|word| statement.rsplit_once(word))
                    .min_by_key(|(_, after)| after.len())
                    .unwrap();
                assert!(after.starts_with(TABLE), "Q1: {statement}");
            }
        }
        assert!(TABLE.starts_with("romanesco_lab_"), "Q1: a reserved name");
    }

    #[test]
    fn pages_are_filled_as_a_step_asks_where_it_is_a_setting_of_the_table() {
        let post = sales(Protocol::Postgres, Engine::Heap, Shape::Hashed);
        assert!(!post.create()[1].contains("fillfactor"));
        let [_, create] = post.filled(Some(75)).create();
        assert!(
            create.ends_with("(transactionid) WITH (fillfactor = 75)) WITH (fillfactor = 75)"),
            "{create}"
        );
        let maria = sales(Protocol::MySql, Engine::InnoDb, Shape::Hashed);
        assert!(!maria.filled(Some(75)).create()[1].contains("fillfactor"));
    }

    #[test]
    fn bytes_are_counted_as_they_are() {
        for shape in Shape::ALL {
            let sales = sales(Protocol::MySql, Engine::InnoDb, shape);
            let mut row = Vec::new();
            let bytes = sales.row(9, &mut String::new(), &mut row);
            assert_eq!(row.len(), sales.columns.len());
            assert!((sales.mean_bytes(false) - bytes as f64).abs() < 1e-9);
            let entries = sales.mean_bytes(true) - sales.mean_bytes(false);
            assert_eq!(entries, shape.key_bytes().iter().sum::<usize>() as f64);
            for index in 0..3 {
                let bound = sales.bound(&sales.generator.sale(9), index).unwrap();
                assert!(
                    bound.iter().all(|value| row.contains(value)),
                    "{shape} {index}"
                );
            }
        }
    }
}
