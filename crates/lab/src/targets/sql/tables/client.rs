//! One client's transactions.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use lab_report::error::Error;

use super::super::address::Protocol;
use super::super::dialect::Dialect;
use super::super::value::Value;
use super::super::wire::{self, Failure, STATEMENTS_MAX, Wire};
use super::statements::{Form, Known, position};
use crate::workload::table::{Row, at, nth, pick, row_bytes};
use crate::workload::tables::{Answer, Lock, Mode, Range, Refused, TableClient};

/// Maximum bytes of the values of one statement; a server accepts 16 MiB.
const BYTES_MAX: u64 = 4 << 20;

/// Maximum number of values of one statement (a statement has at least one row, even if that has
/// more). A server keeps the prepared form of every statement, for each client, table and number of
/// rows: with 2048 values MariaDB exceeded 256 MiB in the load of `tpcc` by eight clients; with 256
/// it stays within 128 MiB.
const VALUES: usize = 256;

/// For each number of rows up to this, an insert has a statement of its own.
const EACH: usize = 16;

/// Maximum number of cached texts of range queries and inserts: that of prepared statements.
const TEXTS_MAX: usize = STATEMENTS_MAX;

pub(super) struct Client {
    wire: Box<dyn Wire>,
    known: Arc<Vec<Known>>,
    dialect: Dialect,
    /// Whether the storage engine has transactions.
    transactions: bool,
    /// Whether a transaction is open.
    within: bool,
    ranges: HashMap<Form, String>,
    inserts: HashMap<(usize, usize), Rc<str>>,
}

impl Client {
    pub(super) fn new(
        wire: Box<dyn Wire>,
        known: Arc<Vec<Known>>,
        dialect: Dialect,
        transactions: bool,
    ) -> Client {
        Client {
            wire,
            known,
            dialect,
            transactions,
            within: false,
            ranges: HashMap::new(),
            inserts: HashMap::new(),
        }
    }

    /// Convert a failure to the error of the operation. The failure also ends the transaction.
    fn refused(&mut self, failure: Failure) -> Refused {
        let conflict = failure.conflict && (self.within || !failure.duplicate);
        self.abort();
        if conflict {
            Refused::Conflict
        } else {
            Refused::Failed(failure.into())
        }
    }

    fn answer<T>(&mut self, answer: wire::Answer<T>) -> Answer<T> {
        answer.map_err(|failure| self.refused(failure))
    }

    fn execute(&mut self, text: &str, values: Vec<Value>) -> Answer<u64> {
        let answer = self.wire.execute(text, values);
        self.answer(answer)
    }

    /// Run a statement that must change one row. If the row is missing, another transaction has
    /// removed it.
    fn one(&mut self, text: &str, values: Vec<Value>) -> Answer<()> {
        if self.execute(text, values)? == 1 {
            return Ok(());
        }
        if !self.within {
            return Err(Refused::failed("the row to change does not exist"));
        }
        self.abort();
        Err(Refused::Conflict)
    }

    fn statement(&mut self, table: usize, rows: &[Row]) -> Answer<()> {
        let known = Arc::clone(&self.known);
        let known = nth(&known, table, "table")?;
        if TEXTS_MAX <= self.inserts.len() {
            self.inserts.clear();
        }
        let text = self.inserts.entry((table, rows.len()));
        let text = text.or_insert_with(|| known.insert(rows.len()).into());
        let text = Rc::clone(text);
        let values = rows.iter().flatten().cloned().collect();
        self.execute(&text, values).map(|_| ())
    }
}

/// The number of rows in the next statement if `rows` remain and `most` is the maximum: one of few
/// different sizes, so that prepared statements are reused.
fn piece(rows: usize, most: usize) -> usize {
    match rows.min(most) {
        0 => 0,
        few if few == rows && few <= EACH => few,
        many => 1 << many.ilog2(),
    }
}

impl TableClient for Client {
    fn begin(&mut self, mode: Mode) -> Answer<()> {
        if !self.transactions {
            let engine = self.dialect.engine;
            return Err(Error::target(format!("{engine} has no transactions")).into());
        }
        let text = match (self.dialect.protocol, mode) {
            (Protocol::MySql, Mode::Read) => "START TRANSACTION READ ONLY",
            (Protocol::MySql, Mode::Write) => "START TRANSACTION",
            (Protocol::Postgres, Mode::Read) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            (Protocol::Postgres, Mode::Write) => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        };
        let begun = self.wire.run(text);
        self.answer(begun)?;
        self.within = true;
        Ok(())
    }

    fn commit(&mut self) -> Answer<()> {
        let done = self.wire.run("COMMIT");
        let done = self.answer(done);
        self.within = false;
        done.map(|_| ())
    }

    fn abort(&mut self) {
        if std::mem::take(&mut self.within) {
            // If the connection to the server is lost, the server rolls the transaction back.
            let _ = self.wire.run("ROLLBACK");
        }
    }

    fn get(&mut self, table: usize, key: &[Value], lock: Lock, row: &mut Row) -> Answer<bool> {
        let known = Arc::clone(&self.known);
        let known = nth(&known, table, "table")?;
        let text = known.get(self.within && lock == Lock::Update);
        let answer = self.wire.all(&text, key.to_vec());
        let Some(found) = self.answer(answer)?.into_iter().next() else {
            return Ok(false);
        };
        let values = found.into_iter().enumerate();
        row.clear();
        row.extend(values.map(|(column, value)| known.fit(column, value)));
        Ok(true)
    }

    fn range(&mut self, range: &Range<'_>, visit: &mut dyn FnMut(&[Value]) -> bool) -> Answer<u64> {
        let known = Arc::clone(&self.known);
        let known = nth(&known, range.table, "table")?;
        let form = Form {
            table: range.table,
            index: position(range.by),
            equal: range.equal.len(),
            from: range.from.is_some(),
            to: range.to.is_some(),
            backward: range.backward,
            limit: range.limit,
            covered: range.covered,
        };
        if TEXTS_MAX <= self.ranges.len() {
            self.ranges.clear();
        }
        let text = self
            .ranges
            .entry(form)
            .or_insert_with(|| known.range(&form));
        let bounds = range.from.into_iter().chain(range.to);
        let values = range.equal.iter().chain(bounds).cloned().collect();
        let given = known.given(&form);
        let mut row = vec![Value::Null; known.table.columns.len()];
        let mut shown = 0;
        let read = self.wire.rows(text, values, &mut |found| {
            for (column, value) in given.iter().zip(found) {
                if let Some(place) = row.get_mut(*column) {
                    *place = known.fit(*column, value);
                }
            }
            shown += 1;
            visit(&row)
        });
        self.answer(read)?;
        Ok(shown)
    }

    fn insert(&mut self, table: usize, rows: &[Row]) -> Answer<()> {
        let columns = rows.first().map_or(1, Vec::len).max(1);
        let all: u64 = rows.iter().map(|row| row_bytes(row)).sum();
        let share = usize::try_from(all / BYTES_MAX + 1).unwrap_or(usize::MAX);
        let most = (VALUES / columns).min(rows.len() / share).max(1);
        // Group several statements in one transaction.
        let several = piece(rows.len(), most) < rows.len();
        let own = several && !self.within && self.transactions;
        if own {
            self.begin(Mode::Write)?;
        }
        let mut rest = rows;
        while !rest.is_empty() {
            let (part, left) = rest.split_at(piece(rest.len(), most));
            self.statement(table, part)?;
            rest = left;
        }
        if own { self.commit() } else { Ok(()) }
    }

    fn update(&mut self, table: usize, old: &[Value], new: &[Value]) -> Answer<()> {
        let known = Arc::clone(&self.known);
        let known = nth(&known, table, "table")?;
        let all = 0..known.table.columns.len();
        let changed: Vec<usize> = all.filter(|c| at(old, *c) != at(new, *c)).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let mut values = pick(new, &changed);
        values.extend(pick(old, &known.table.key));
        self.one(&known.update(&changed), values)
    }

    fn set(&mut self, table: usize, key: &[Value], column: usize, value: &Value) -> Answer<()> {
        let known = Arc::clone(&self.known);
        let known = nth(&known, table, "table")?;
        let mut values = vec![value.clone()];
        values.extend_from_slice(key);
        self.one(&known.update(&[column]), values)
    }

    fn delete(&mut self, table: usize, old: &[Value]) -> Answer<()> {
        let known = Arc::clone(&self.known);
        let known = nth(&known, table, "table")?;
        let key = pick(old, &known.table.key);
        self.one(&known.delete(), key)
    }
}

#[cfg(test)]
mod tests {
    use super::piece;

    #[test]
    fn rows_go_in_pieces_of_few_sizes() {
        let pieces = |mut rows: usize, most: usize| {
            let mut all = Vec::new();
            while 0 < rows {
                all.push(piece(rows, most));
                rows -= piece(rows, most);
            }
            all
        };
        assert_eq!(pieces(15, 100), [15]);
        assert_eq!(pieces(15, 10), [8, 7]);
        assert_eq!(pieces(300, 100), [64, 64, 64, 64, 32, 12]);
        assert_eq!(pieces(3, 1), [1, 1, 1]);
        assert!(pieces(0, 1).is_empty());
    }
}
