//! The statements on one table.

use super::super::address::Protocol;
use super::super::dialect::{self, Dialect};
use super::super::value::Value;
use crate::workload::table::{Column, Kind, Table};
use crate::workload::tables::By;

/// Prefix of table names. Since these tables are dropped, it must be unlikely to be used by others.
const PREFIX: &str = "romanesco_lab_";

/// Maximum length of a bytes column whose length is declared: MySQL refuses a table whose declared
/// lengths add up to more than 65,535 bytes.
const DECLARED_MAX: u32 = 4000;

/// A declared table, with its SQL.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub table: Table,
    /// Name of the table on the server.
    pub name: String,
    dialect: Dialect,
}

/// The properties of a range query that determine its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub table: usize,
    /// The position of an index; `None` for the primary key.
    pub index: Option<usize>,
    pub equal: usize,
    pub from: bool,
    pub to: bool,
    pub backward: bool,
    pub limit: u64,
    pub covered: bool,
}

impl Known {
    pub(super) fn new(dialect: Dialect, table: &Table) -> Known {
        Known {
            table: table.clone(),
            name: format!("{PREFIX}{}", table.name),
            dialect,
        }
    }

    fn column(&self, at: usize) -> &'static str {
        self.table.columns.get(at).map_or("", |column| column.name)
    }

    fn list(&self, columns: impl IntoIterator<Item = usize>) -> String {
        let names: Vec<&str> = columns.into_iter().map(|at| self.column(at)).collect();
        names.join(", ")
    }

    fn kind(&self, column: &Column) -> String {
        let width = column.width.max(1);
        match (column.kind, self.dialect.protocol) {
            (Kind::Int, _) => self.dialect.column(dialect::Kind::Long),
            (Kind::Float, _) => self.dialect.column(dialect::Kind::Float),
            (Kind::Text, Protocol::Postgres) => "TEXT COLLATE \"C\"".to_owned(),
            (Kind::Text, Protocol::MySql) => self.dialect.column(dialect::Kind::Text(width)),
            (Kind::Bytes, Protocol::Postgres) => "BYTEA".to_owned(),
            (Kind::Bytes, Protocol::MySql) if DECLARED_MAX < width => "MEDIUMBLOB".to_owned(),
            (Kind::Bytes, Protocol::MySql) => format!("VARBINARY({width})"),
        }
    }

    /// The columns that order an index or the primary key: for an index, its declared columns, then
    /// those of the primary key.
    pub(super) fn order(&self, by: Option<usize>) -> Vec<usize> {
        let own = by.and_then(|index| self.table.indexes.get(index));
        let mut all = own.map_or(Vec::new(), |index| index.columns.clone());
        let key = self.table.key.iter().copied();
        let more: Vec<usize> = key.filter(|column| !all.contains(column)).collect();
        all.extend(more);
        all
    }

    fn index_name(&self, index: usize) -> String {
        let name = self.table.indexes.get(index).map_or("", |index| index.name);
        format!("{}_{name}", self.name)
    }

    /// The statements that recreate the table, with its indexes.
    pub(super) fn create(&self, logged: bool) -> Vec<String> {
        let mut columns = String::new();
        for column in &self.table.columns {
            let null = if column.nullable { "NULL" } else { "NOT NULL" };
            let kind = self.kind(column);
            columns.push_str(&format!("{} {kind} {null}, ", column.name));
        }
        let key = self.list(self.table.key.iter().copied());
        let (table, storage) = (self.dialect.table(logged), self.dialect.storage(logged));
        let name = &self.name;
        let mut all = vec![
            format!("DROP TABLE IF EXISTS {name}"),
            format!("CREATE {table} {name} ({columns}PRIMARY KEY ({key})){storage}"),
        ];
        for at in 0..self.table.indexes.len() {
            all.push(self.create_index(at));
        }
        all
    }

    fn create_index(&self, at: usize) -> String {
        let order = self.order(Some(at));
        let stored = self
            .table
            .indexes
            .get(at)
            .map_or(&[][..], |index| &index.stored);
        let more: Vec<usize> = stored
            .iter()
            .copied()
            .filter(|c| !order.contains(c))
            .collect();
        let (name, table) = (self.index_name(at), &self.name);
        match self.dialect.protocol {
            // MySQL has no additional columns of an index, so they are at the end of its key.
            Protocol::MySql => {
                let list = self.list(order.iter().copied().chain(more));
                format!("CREATE INDEX {name} ON {table} ({list})")
            }
            Protocol::Postgres => {
                let order: Vec<String> = order.iter().map(|c| self.ordered(*c, false)).collect();
                let (list, more) = (order.join(", "), self.list(more));
                let include = if more.is_empty() {
                    String::new()
                } else {
                    format!(" INCLUDE ({more})")
                };
                format!("CREATE INDEX {name} ON {table} ({list}){include}")
            }
        }
    }

    /// The text `column = value` for each column, joined by `between`, with values numbered from
    /// `first`.
    fn each(&self, columns: &[usize], first: usize, between: &str) -> String {
        let mut text = String::new();
        for (at, column) in columns.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { between });
            text.push_str(self.column(*column));
            text.push_str(" = ");
            self.dialect.value(first + at, &mut text);
        }
        text
    }

    fn by_key(&self, first: usize) -> String {
        self.each(&self.table.key, first, " AND ")
    }

    pub(super) fn get(&self, locked: bool) -> String {
        let lock = if locked { " FOR UPDATE" } else { "" };
        let columns = self.list(0..self.table.columns.len());
        format!(
            "SELECT {columns} FROM {} WHERE {}{lock}",
            self.name,
            self.by_key(1)
        )
    }

    pub(super) fn insert(&self, rows: usize) -> String {
        let columns = self.table.columns.len();
        let mut text = format!(
            "INSERT INTO {} ({}) VALUES ",
            self.name,
            self.list(0..columns)
        );
        let mut value = 0;
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ",(" });
            for column in 0..columns {
                text.push_str(if column == 0 { "" } else { "," });
                value += 1;
                self.dialect.value(value, &mut text);
            }
            text.push(')');
        }
        text
    }

    /// Statement that changes these columns of a row.
    pub(super) fn update(&self, columns: &[usize]) -> String {
        let set = self.each(columns, 1, ", ");
        let key = self.by_key(columns.len() + 1);
        format!("UPDATE {} SET {set} WHERE {key}", self.name)
    }

    pub(super) fn delete(&self) -> String {
        format!("DELETE FROM {} WHERE {}", self.name, self.by_key(1))
    }

    /// The columns that a range query returns.
    pub(super) fn given(&self, form: &Form) -> Vec<usize> {
        let index = form.index.and_then(|at| self.table.indexes.get(at));
        match index.filter(|_| form.covered) {
            Some(index) => {
                let order = self.order(form.index);
                let mut all: Vec<usize> = order.iter().chain(&index.stored).copied().collect();
                all.sort_unstable();
                all.dedup();
                all
            }
            None => (0..self.table.columns.len()).collect(),
        }
    }

    /// The text of a range query: its values are those of the equal columns, then the bounds.
    pub(super) fn range(&self, form: &Form) -> String {
        let order = self.order(form.index);
        let columns = self.list(self.given(form));
        let by = match form.index {
            Some(index) => self.dialect.by(&self.index_name(index)),
            None => self.dialect.by("PRIMARY"),
        };
        let equal: Vec<usize> = order.iter().copied().take(form.equal).collect();
        let mut conditions = self.each(&equal, 1, " AND ");
        let next = order
            .get(form.equal)
            .map_or("", |column| self.column(*column));
        let mut value = form.equal;
        for (there, compare) in [(form.from, " >= "), (form.to, " <= ")] {
            if there {
                value += 1;
                conditions.push_str(if conditions.is_empty() { "" } else { " AND " });
                conditions.push_str(next);
                conditions.push_str(compare);
                self.dialect.value(value, &mut conditions);
            }
        }
        let mut text = format!("SELECT {columns} FROM {}{by}", self.name);
        if !conditions.is_empty() {
            text.push_str(&format!(" WHERE {conditions}"));
        }
        let order = order
            .iter()
            .map(|column| self.ordered(*column, form.backward));
        let order: Vec<String> = order.collect();
        text.push_str(&format!(" ORDER BY {}", order.join(", ")));
        if 0 < form.limit {
            text.push_str(&format!(" LIMIT {}", form.limit));
        }
        text
    }

    /// An ORDER BY term for a column: nulls come first, or last if `backward`.
    fn ordered(&self, column: usize, backward: bool) -> String {
        let name = self.column(column);
        let nullable = self.table.columns.get(column).is_some_and(|c| c.nullable);
        let nulls = nullable && self.dialect.protocol == Protocol::Postgres;
        let way = match (backward, nulls) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, false) => " DESC",
            (true, true) => " DESC NULLS LAST",
        };
        format!("{name}{way}")
    }

    /// Convert a value to the type of its column, because a driver does not distinguish texts from
    /// bytes.
    pub(super) fn fit(&self, column: usize, value: Value) -> Value {
        let kind = self.table.columns.get(column).map(|column| column.kind);
        match (kind, value) {
            (Some(Kind::Bytes), Value::Text(text)) => Value::Bytes(text.into_bytes()),
            (Some(Kind::Float), Value::Int(n)) => Value::Float(n as f64),
            (_, value) => value,
        }
    }
}

/// The position of an index; `None` for the primary key.
pub(super) fn position(by: By) -> Option<usize> {
    match by {
        By::Key => None,
        By::Index(index) => Some(index),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::engine::Engine;
    use super::*;

    fn links(protocol: Protocol, engine: Engine) -> Known {
        let columns = [
            Column::int("id1"),
            Column::int("id2"),
            Column::int("time"),
            Column::bytes("data", 255).or_null(),
        ];
        let table = Table::new("links", &columns, 2).index("by_time", &[0, 2], &[3]);
        Known::new(Dialect { protocol, engine }, &table)
    }

    #[test]
    fn statements_are_in_the_servers_own_words() {
        let maria = links(Protocol::MySql, Engine::InnoDb);
        let create = maria.create(true);
        assert!(create[1].contains("data VARBINARY(255) NULL"), "{create:?}");
        assert!(create[2].ends_with("(id1, time, id2, data)"), "{create:?}");
        let post = links(Protocol::Postgres, Engine::Heap);
        let create = post.create(true);
        assert!(
            create[2].ends_with("(id1, time, id2) INCLUDE (data)"),
            "{create:?}"
        );
        assert!(post.insert(2).ends_with("($1,$2,$3,$4),($5,$6,$7,$8)"));
        assert_eq!(
            post.update(&[2]),
            "UPDATE romanesco_lab_links SET time = $1 WHERE id1 = $2 AND id2 = $3"
        );
        assert!(
            maria
                .get(true)
                .ends_with("WHERE id1 = ? AND id2 = ? FOR UPDATE")
        );
    }

    #[test]
    fn ranges_are_in_the_order_of_the_index_that_is_named() {
        let form = Form {
            table: 0,
            index: Some(0),
            equal: 1,
            from: true,
            to: true,
            backward: true,
            limit: 7,
            covered: true,
        };
        let maria = links(Protocol::MySql, Engine::InnoDb);
        assert_eq!(
            maria.range(&form),
            "SELECT id1, id2, time, data FROM romanesco_lab_links FORCE INDEX \
             (romanesco_lab_links_by_time) WHERE id1 = ? AND time >= ? AND time <= ? ORDER BY id1 \
             DESC, time DESC, id2 DESC LIMIT 7"
        );
        let all = Form {
            index: None,
            equal: 0,
            from: false,
            to: false,
            backward: false,
            limit: 0,
            covered: false,
            ..form
        };
        let post = links(Protocol::Postgres, Engine::Heap);
        assert_eq!(
            post.range(&all),
            "SELECT id1, id2, time, data FROM romanesco_lab_links ORDER BY id1, id2"
        );
    }
}
