//! SQL that differs between MariaDB and PostgreSQL. Statements are written once, with these parts.

use std::fmt::Write as _;

use super::address::Protocol;
use super::engine::Engine;

/// Maximum length of a text column whose length is declared; longer texts need another type.
const VARCHAR_MAX: u32 = 16_000;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A 64-bit integer.
    Long,
    /// A 32-bit integer.
    Int,
    /// A 64-bit floating-point number.
    Float,
    /// A text of at most this number of bytes.
    Text(u32),
}

/// The SQL dialect of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub protocol: Protocol,
    pub engine: Engine,
}

impl Dialect {
    /// Append the placeholder of the `n`th value of a statement, from 1.
    pub(super) fn value(self, n: usize, into: &mut String) {
        match self.protocol {
            Protocol::MySql => into.push('?'),
            Protocol::Postgres => {
                // Writing into a `String` cannot fail.
                let _ = write!(into, "${n}");
            }
        }
    }

    /// The SQL type of a column.
    pub(super) fn column(self, kind: Kind) -> String {
        match (kind, self.protocol) {
            (Kind::Long, _) => "BIGINT".to_owned(),
            (Kind::Int, _) => "INT".to_owned(),
            (Kind::Float, Protocol::MySql) => "DOUBLE".to_owned(),
            (Kind::Float, Protocol::Postgres) => "DOUBLE PRECISION".to_owned(),
            (Kind::Text(_), Protocol::Postgres) => "TEXT".to_owned(),
            (Kind::Text(max), Protocol::MySql) if max <= VARCHAR_MAX => format!("VARCHAR({max})"),
            (Kind::Text(_), Protocol::MySql) => "MEDIUMTEXT".to_owned(),
        }
    }

    /// The words after `CREATE`: PostgreSQL has a separate kind of table without a log.
    pub(super) fn table(self, logged: bool) -> &'static str {
        match self.protocol {
            Protocol::Postgres if !logged => "UNLOGGED TABLE",
            _ => "TABLE",
        }
    }

    /// The clause after the columns of a table.
    pub(super) fn storage(self, logged: bool) -> String {
        let aria = |logged: u8| {
            format!(" ENGINE=Aria TRANSACTIONAL={logged} CHARSET=latin1 COLLATE=latin1_bin")
        };
        match self.engine {
            Engine::Heap => String::new(),
            Engine::Aria if !logged => aria(0),
            Engine::Aria => aria(1),
            // A collation with the suffix `_bin` orders by bytes, which MyRocks requires for
            // index-only reads.
            engine => format!(" ENGINE={} CHARSET=latin1 COLLATE=latin1_bin", engine.sql()),
        }
    }

    /// The clause that makes the server use an index. Empty for PostgreSQL, which has no such
    /// clause: there the settings of the connection have this effect ([`Dialect::greeting`]).
    pub(super) fn by(self, index: &str) -> String {
        match self.protocol {
            Protocol::MySql => format!(" FORCE INDEX ({index})"),
            Protocol::Postgres => String::new(),
        }
    }

    /// The first statements of a connection. A growing table never has statistics, and without them
    /// a planner may choose to sort. `FORCE INDEX` prevents that in MariaDB, these settings in
    /// PostgreSQL.
    pub(super) fn greeting(self, waits: bool) -> Vec<String> {
        match self.protocol {
            Protocol::MySql => Vec::new(),
            Protocol::Postgres => {
                let commit = if waits { "on" } else { "off" };
                let mut all = vec![format!("SET synchronous_commit = {commit}")];
                for path in ["enable_sort", "enable_bitmapscan"] {
                    all.push(format!("SET {path} = off"));
                }
                all
            }
        }
    }

    /// The condition that `fields`, compared in this order, are at or above the values of the
    /// statement; and for each value the field it belongs to.
    ///
    /// PostgreSQL uses a row comparison as a bound of an index scan. MariaDB does not, but merges
    /// the conditions written here into an equivalent range.
    pub(super) fn from(self, fields: &[&str]) -> (String, Vec<usize>) {
        let (mut text, mut values) = (String::new(), Vec::new());
        let put = |values: &mut Vec<usize>, text: &mut String, field: usize| {
            values.push(field);
            self.value(values.len(), text);
        };
        if self.protocol == Protocol::Postgres {
            text = format!("({}) >= (", fields.join(", "));
            for field in 0..fields.len() {
                text.push_str(if field == 0 { "" } else { ", " });
                put(&mut values, &mut text, field);
            }
            text.push(')');
            return (text, values);
        }
        for last in 0..fields.len() {
            text.push_str(if last == 0 { "(" } else { ") OR (" });
            for (field, name) in fields.iter().enumerate().take(last + 1) {
                let compare = match (field == last, last + 1 == fields.len()) {
                    (false, _) => "=",
                    (true, true) => ">=",
                    (true, false) => ">",
                };
                text.push_str(if field == 0 { "" } else { " AND " });
                text.push_str(name);
                text.push_str(compare);
                put(&mut values, &mut text, field);
            }
        }
        text.push(')');
        (text, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_written_as_each_server_reads_it_best() {
        let of = |protocol, engine| Dialect { protocol, engine };
        let fields = ["a", "b"];
        let (text, values) = of(Protocol::Postgres, Engine::Heap).from(&fields);
        assert_eq!((text.as_str(), values), ("(a, b) >= ($1, $2)", vec![0, 1]));
        let (text, values) = of(Protocol::MySql, Engine::InnoDb).from(&fields);
        assert_eq!(text, "(a>?) OR (a=? AND b>=?)");
        assert_eq!(values, [0, 0, 1]);
    }

    #[test]
    fn a_commit_waits_for_the_disk_as_the_run_asks() {
        let post = Dialect {
            protocol: Protocol::Postgres,
            engine: Engine::Heap,
        };
        for (waits, setting) in [(true, "on"), (false, "off")] {
            let statement = format!("SET synchronous_commit = {setting}");
            assert!(
                post.greeting(waits).contains(&statement),
                "G5: the durability of the run"
            );
        }
    }
}
