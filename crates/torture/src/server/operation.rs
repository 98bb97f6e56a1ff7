//! Draws the next operation of a client: commands, their changes, and the required replies.

use bson::{Bson, Document, doc};
use stdx::Rng;

use super::model::{Change, Model, Row, Side, is_value};

pub(crate) const DATABASE: &str = "torture";

/// The collection of the shared counters.
pub(crate) const COUNTS: &str = "counts";

/// Number of different tags.
const TAGS: u64 = 50;

/// Number of ids that each client has.
pub(crate) const IDS: i64 = 1 << 32;

/// The required content of a reply, besides `ok: 1`.
#[derive(Clone, Debug)]
pub(crate) enum Expect {
    /// The write matched this number of documents.
    Met(i32),
    /// The reply has the document with this id and row, after the change.
    Value(i64, Row),
    /// The reply has a document; its content is unknown, because other clients change it, too.
    SomeValue,
    /// No further content.
    Ok,
}

/// An operation: one write, or a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// The commands in order, each with its database and the required reply.
    pub(crate) commands: Vec<(&'static str, Document, Expect)>,
    /// Whether the commands form a transaction, which the last command ends.
    pub(crate) transaction: bool,
    /// The changes that the operation makes.
    pub(crate) changes: Vec<Change>,
}

impl Expect {
    /// Whether a successful reply has this content.
    pub(crate) fn holds(&self, reply: &Document) -> bool {
        match self {
            Expect::Met(n) => reply.get_i32("n").is_ok_and(|met| met == *n),
            Expect::Value(id, row) => is_value(reply, *id, row),
            Expect::SomeValue => reply.get("value").is_some_and(|v| *v != Bson::Null),
            Expect::Ok => true,
        }
    }
}

/// Draws the operations of one client.
pub(crate) struct Draw<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) model: &'a Model,
    /// The client's session.
    pub(crate) lsid: &'a Document,
    /// The number of this operation in the session; each operation has a greater number.
    pub(crate) txn_number: i64,
    /// The first of the client's ids.
    pub(crate) first: i64,
    /// The number of the client's last write; incremented for each written document.
    pub(crate) next: &'a mut i64,
}

impl Draw<'_> {
    pub(crate) fn operation(&mut self) -> Operation {
        match self.rng.below(100) {
            0..20 => return self.transaction(),
            20..25 => return self.counted(),
            _ => {}
        }
        let side = self.side();
        let mut taken = Vec::new();
        let (mut command, expect, changes) = match self.rng.below(4) {
            0 | 1 => self.insert(side),
            2 => self
                .change(side, &mut taken)
                .unwrap_or_else(|| self.insert(side)),
            _ => self.modify(side).unwrap_or_else(|| self.insert(side)),
        };
        command.insert("writeConcern", doc! { "w": 1, "j": true });
        self.numbered(&mut command);
        Operation {
            commands: vec![(DATABASE, command, expect)],
            transaction: false,
            changes,
        }
    }

    fn side(&mut self) -> Side {
        if self.rng.chance(0.5) {
            Side::Left
        } else {
            Side::Right
        }
    }

    fn numbered(&self, command: &mut Document) {
        command.insert("lsid", self.lsid.clone());
        command.insert("txnNumber", self.txn_number);
    }

    /// A number that no other write has.
    fn fresh(&mut self) -> i64 {
        *self.next += 1;
        self.first + *self.next
    }

    fn tag(&mut self) -> i32 {
        i32::try_from(self.rng.below(TAGS)).unwrap_or(0)
    }

    /// A random document of this client that is not in `taken`; adds it to `taken`.
    fn one_of(&mut self, side: Side, taken: &mut Vec<i64>) -> Option<(i64, Row)> {
        let rows = self.model.rows(side);
        let all = rows.len();
        let nth = self.rng.index(all.max(1));
        let (id, row) = rows.iter().nth(nth)?;
        if taken.contains(id) {
            return None;
        }
        taken.push(*id);
        Some((*id, row.clone()))
    }

    fn insert(&mut self, side: Side) -> (Document, Expect, Vec<Change>) {
        let count = 1 + self.rng.below(5);
        let (mut documents, mut changes) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let v = self.fresh();
            let tag = self.tag();
            let row = Row { v, n: 0, tag };
            documents.push(row.document(v));
            changes.push(Change::Put(side, v, row));
        }
        let n = i32::try_from(count).unwrap_or(0);
        let command = doc! { "insert": side.name(), "documents": documents };
        (command, Expect::Met(n), changes)
    }

    /// A command that updates or deletes a document, with its change.
    fn change(
        &mut self,
        side: Side,
        taken: &mut Vec<i64>,
    ) -> Option<(Document, Expect, Vec<Change>)> {
        let (id, row) = self.one_of(side, taken)?;
        let query = doc! { "_id": id };
        if self.rng.chance(0.3) {
            let command = doc! { "delete": side.name(), "deletes": [{ "q": query, "limit": 1 }] };
            return Some((command, Expect::Met(1), vec![Change::Delete(side, id)]));
        }
        let (row, update) = self.updated(&row);
        let command = doc! { "update": side.name(), "updates": [{ "q": query, "u": update }] };
        Some((command, Expect::Met(1), vec![Change::Put(side, id, row)]))
    }

    /// A row after a random update, and the update.
    fn updated(&mut self, row: &Row) -> (Row, Document) {
        let row = Row {
            v: self.fresh(),
            n: row.n + 1,
            tag: self.tag(),
        };
        let set = doc! { "v": row.v, "tag": row.tag, "pad": row.pad() };
        (row, doc! { "$set": set, "$inc": { "n": 1_i64 } })
    }

    fn modify(&mut self, side: Side) -> Option<(Document, Expect, Vec<Change>)> {
        let (id, row) = self.one_of(side, &mut Vec::new())?;
        let (row, update) = self.updated(&row);
        let command = doc! {
            "findAndModify": side.name(), "query": { "_id": id }, "update": update, "new": true,
        };
        let changes = vec![Change::Put(side, id, row.clone())];
        Some((command, Expect::Value(id, row), changes))
    }

    /// An operation that increments the shared counter.
    fn counted(&mut self) -> Operation {
        let side = self.side();
        let mut command = doc! {
            "findAndModify": COUNTS,
            "query": { "_id": side.name() },
            "update": { "$inc": { "n": 1_i64 } },
            "new": true,
            "writeConcern": { "w": 1, "j": true },
        };
        self.numbered(&mut command);
        Operation {
            commands: vec![(DATABASE, command, Expect::SomeValue)],
            transaction: false,
            changes: vec![Change::Count(side)],
        }
    }

    /// A transaction that writes to both collections, and sometimes to the shared counter. Another
    /// client may change the counter at the same time; then the server rolls one of the two back.
    fn transaction(&mut self) -> Operation {
        let mut taken = Vec::new();
        let mut parts = Vec::new();
        for side in Side::BOTH {
            for _ in 0..=self.rng.below(2) {
                let part = match self.rng.chance(0.5) {
                    true => None,
                    false => self.change(side, &mut taken),
                };
                parts.push(part.unwrap_or_else(|| self.insert(side)));
            }
        }
        if self.rng.chance(0.3) {
            let side = self.side();
            let update = doc! { "$inc": { "n": 1_i64 } };
            let updates = vec![doc! { "q": { "_id": side.name() }, "u": update }];
            let command = doc! { "update": COUNTS, "updates": updates };
            parts.push((command, Expect::Met(1), vec![Change::Count(side)]));
        }
        let commits = self.rng.chance(0.85);
        let mut operation = Operation {
            commands: Vec::new(),
            transaction: true,
            changes: Vec::new(),
        };
        for (index, (mut command, expect, changes)) in parts.into_iter().enumerate() {
            self.numbered(&mut command);
            command.insert("autocommit", false);
            if index == 0 {
                command.insert("startTransaction", true);
            }
            operation.commands.push((DATABASE, command, expect));
            operation
                .changes
                .extend(changes.into_iter().filter(|_| commits));
        }
        let mut end = match commits {
            true => doc! { "commitTransaction": 1, "writeConcern": { "w": 1, "j": true } },
            false => doc! { "abortTransaction": 1 },
        };
        self.numbered(&mut end);
        end.insert("autocommit", false);
        operation.commands.push(("admin", end, Expect::Ok));
        operation
    }
}
