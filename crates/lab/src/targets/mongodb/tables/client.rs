//! One client of tables on a server. The driver's session carries its transaction.

use std::sync::Arc;

use bson::{Document, doc};
use lab_report::error::{Error, Result};
use mongodb::error::{Error as DriverError, ErrorKind, TRANSIENT_TRANSACTION_ERROR, WriteFailure};
use mongodb::options::Hint;
use mongodb::sync::ClientSession;

use super::super::database::Server;
use super::{Made, document};
use crate::workload::table::{Row, Value, nth};
use crate::workload::tables::{Answer, By, Lock, Mode, Range, Refused, TableClient};

/// Rows of one insert; the driver splits it further by bytes.
const ROWS: usize = 1000;

/// Codes of errors that a retry of the transaction resolves: write conflict, lock timeout, no such
/// transaction, snapshot unavailable.
const AGAIN: [i32; 4] = [112, 24, 251, 246];

/// Error code of a duplicate key.
const DUPLICATE: i32 = 11_000;

pub(super) struct Client<'a> {
    server: &'a Server,
    made: Arc<Vec<Made>>,
    session: ClientSession,
    open: bool,
    row: Row,
}

/// Run an operation of the driver, in the session's transaction if there is one.
macro_rules! within {
    ($client:expr, $action:expr) => {{
        let action = $action;
        let done = if $client.open {
            action.session(&mut $client.session).run()
        } else {
            action.run()
        };
        done.map_err(|e| $client.refuse(&e))
    }};
}

impl<'a> Client<'a> {
    pub(super) fn new(server: &'a Server, made: Arc<Vec<Made>>) -> Result<Client<'a>> {
        let session = server.client.start_session().run();
        Ok(Client {
            session: session.map_err(|e| server.text(&e))?,
            server,
            made,
            open: false,
            row: Row::new(),
        })
    }

    /// Convert an error of the driver. After a conflict the transaction has ended.
    fn refuse(&mut self, error: &DriverError) -> Refused {
        let again = error.contains_label(TRANSIENT_TRANSACTION_ERROR)
            || code(error).is_some_and(|c| AGAIN.contains(&c) || (self.open && c == DUPLICATE));
        // If the server has ended, a retry cannot succeed.
        let gone = matches!(error.kind.as_ref(), ErrorKind::Io(_));
        if again && !gone {
            self.abort();
            return Refused::Conflict;
        }
        Refused::Failed(self.server.text(error))
    }

    /// Check that a change matched one document; in a transaction a missing document is a conflict.
    fn hit(&mut self, matched: u64) -> Answer<()> {
        if 0 < matched {
            return Ok(());
        }
        if self.open {
            self.abort();
            return Err(Refused::Conflict);
        }
        Err(Refused::failed("the row to change does not exist"))
    }
}

fn code(error: &DriverError) -> Option<i32> {
    match error.kind.as_ref() {
        ErrorKind::Command(e) => Some(e.code),
        ErrorKind::Write(WriteFailure::WriteError(e)) => Some(e.code),
        ErrorKind::InsertMany(e) => e.write_errors.iter().flatten().next().map(|e| e.code),
        _ => None,
    }
}

impl TableClient for Client<'_> {
    fn begin(&mut self, mode: Mode) -> Answer<()> {
        self.abort();
        let mut start = self.session.start_transaction();
        if mode == Mode::Write {
            start = start.write_concern(self.server.concern.clone());
        }
        let started = start.run();
        started.map_err(|e| Refused::Failed(self.server.text(&e)))?;
        self.open = true;
        Ok(())
    }

    fn commit(&mut self) -> Answer<()> {
        if !self.open {
            return Ok(());
        }
        let done = self.session.commit_transaction().run();
        let done = done.map_err(|e| self.refuse(&e));
        self.open = false;
        done
    }

    fn abort(&mut self) {
        if std::mem::take(&mut self.open) {
            // If the server cannot be reached, it aborts the transaction itself when the session
            // ends.
            let _ = self.session.abort_transaction().run();
        }
    }

    fn get(&mut self, which: usize, key: &[Value], _lock: Lock, row: &mut Row) -> Answer<bool> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, which, "table")?;
        let filter = doc! { "_id": document::id(&made.table, key) };
        let found = within!(self, made.rows.find_one(filter))?;
        match found {
            None => Ok(false),
            Some(found) if document::read(&made.table, &found, row) => Ok(true),
            Some(_) => {
                Err(Error::target(format!("a document of {} is no row", made.table.name)).into())
            }
        }
    }

    fn range(&mut self, range: &Range<'_>, visit: &mut dyn FnMut(&[Value]) -> bool) -> Answer<u64> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, range.table, "table")?;
        let table = &made.table;
        let mut find = made.rows.find(document::filter(table, range));
        find = match range.by {
            By::Key => {
                let sort = doc! { "_id": if range.backward { -1 } else { 1 } };
                find.sort(sort).hint(Hint::Keys(doc! { "_id": 1 }))
            }
            By::Index(index) => {
                let hint = Hint::Keys(document::keys(table, index, false));
                let find = find
                    .sort(document::keys(table, index, range.backward))
                    .hint(hint);
                if range.covered {
                    find.projection(document::covered(table, index))
                } else {
                    find
                }
            }
        };
        if 0 < range.limit {
            find = find.limit(i64::try_from(range.limit).unwrap_or(i64::MAX));
        }
        let mut row = std::mem::take(&mut self.row);
        let mut shown = 0;
        let no_row = || Refused::failed(format!("a document of {} is no row", table.name));
        if self.open {
            let found = find.session(&mut self.session).run();
            let mut cursor = found.map_err(|e| self.refuse(&e))?;
            loop {
                let more = cursor.advance(&mut self.session);
                if !more.map_err(|e| self.refuse(&e))? {
                    break;
                }
                if !document::read(table, cursor.current(), &mut row) {
                    return Err(no_row());
                }
                shown += 1;
                if !visit(&row) {
                    break;
                }
            }
        } else {
            let mut cursor = find.run().map_err(|e| self.refuse(&e))?;
            while cursor.advance().map_err(|e| self.refuse(&e))? {
                if !document::read(table, cursor.current(), &mut row) {
                    return Err(no_row());
                }
                shown += 1;
                if !visit(&row) {
                    break;
                }
            }
        }
        self.row = row;
        Ok(shown)
    }

    fn insert(&mut self, which: usize, rows: &[Row]) -> Answer<()> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, which, "table")?;
        for part in rows.chunks(ROWS) {
            let documents = part.iter().map(|row| document::document(made, row));
            let documents = documents.collect::<Result<Vec<_>, _>>()?;
            within!(self, made.rows.insert_many(&documents))?;
        }
        Ok(())
    }

    fn update(&mut self, which: usize, old: &[Value], new: &[Value]) -> Answer<()> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, which, "table")?;
        let mut set = Document::new();
        for (column, (old, new)) in made.table.columns.iter().zip(old.iter().zip(new)) {
            if old != new {
                set.insert(column.name, document::bson(new));
            }
        }
        if set.is_empty() {
            return Ok(());
        }
        let filter = doc! { "_id": document::id_of(&made.table, old) };
        let done = within!(self, made.rows.update_one(filter, doc! { "$set": set }))?;
        self.hit(done.matched_count)
    }

    fn set(&mut self, which: usize, key: &[Value], column: usize, value: &Value) -> Answer<()> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, which, "table")?;
        let name = nth(&made.table.columns, column, "column")?.name;
        let filter = doc! { "_id": document::id(&made.table, key) };
        let change = doc! { "$set": { name: document::bson(value) } };
        let done = within!(self, made.rows.update_one(filter, change))?;
        self.hit(done.matched_count)
    }

    fn delete(&mut self, which: usize, old: &[Value]) -> Answer<()> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, which, "table")?;
        let filter = doc! { "_id": document::id_of(&made.table, old) };
        let done = within!(self, made.rows.delete_one(filter))?;
        self.hit(done.deleted_count)
    }
}
