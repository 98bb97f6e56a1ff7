//! The expected data: the documents of each collection after the acknowledged writes.

use std::collections::BTreeMap;

use bson::{Bson, Document, doc};

/// One of the two collections that clients write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Left,
    Right,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Left, Side::Right];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Left => "left",
            Side::Right => "right",
        }
    }

    fn index(self) -> usize {
        match self {
            Side::Left => 0,
            Side::Right => 1,
        }
    }
}

/// Maximum length of a document's padding, in bytes.
const PAD_MAX: i64 = 200;

/// The fields of a document other than `_id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The number of the document's last write; unique among all writes; has a unique index.
    pub(crate) v: i64,
    /// Number of changes of the document; shows whether an update was executed twice.
    pub(crate) n: i64,
    /// A field with two secondary indexes.
    pub(crate) tag: i32,
}

impl Row {
    /// The padding, whose length depends on `v`.
    pub(crate) fn pad(&self) -> String {
        "x".repeat(usize::try_from(self.v % PAD_MAX).unwrap_or(0))
    }

    pub(crate) fn document(&self, id: i64) -> Document {
        doc! { "_id": id, "v": self.v, "n": self.n, "tag": self.tag, "pad": self.pad() }
    }

    /// The id and the row of a document; `None` if it has other fields.
    pub(crate) fn of(document: &Document) -> Option<(i64, Row)> {
        let row = Row {
            v: document.get_i64("v").ok()?,
            n: document.get_i64("n").ok()?,
            tag: document.get_i32("tag").ok()?,
        };
        let whole = document.get_str("pad").is_ok_and(|pad| pad == row.pad());
        let id = document.get_i64("_id").ok()?;
        (whole && document.len() == 5).then_some((id, row))
    }
}

/// A change that a write makes.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put(Side, i64, Row),
    Delete(Side, i64),
    /// Increment the counter that all clients share.
    Count(Side),
}

/// The expected documents of one client, or of all clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    rows: [BTreeMap<i64, Row>; 2],
    counts: [i64; 2],
}

impl Model {
    pub(crate) fn rows(&self, side: Side) -> &BTreeMap<i64, Row> {
        let [left, right] = &self.rows;
        match side {
            Side::Left => left,
            Side::Right => right,
        }
    }

    pub(crate) fn count(&self, side: Side) -> i64 {
        self.counts.get(side.index()).copied().unwrap_or(0)
    }

    pub(crate) fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            let (Change::Put(side, ..) | Change::Delete(side, _) | Change::Count(side)) = change;
            let at = side.index();
            let (Some(rows), Some(count)) = (self.rows.get_mut(at), self.counts.get_mut(at)) else {
                continue;
            };
            match change {
                Change::Put(_, id, row) => {
                    rows.insert(*id, row.clone());
                }
                Change::Delete(_, id) => {
                    rows.remove(id);
                }
                Change::Count(_) => *count += 1,
            }
        }
    }

    /// Add the documents of another client; no two clients have the same document.
    pub(crate) fn add(&mut self, other: &Model) {
        for (mine, theirs) in self.rows.iter_mut().zip(&other.rows) {
            mine.extend(theirs.iter().map(|(id, row)| (*id, row.clone())));
        }
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }

    /// Descriptions of the first differences between `found` and the expected documents of a
    /// collection.
    pub(crate) fn differences(&self, side: Side, found: &[Document]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut there = BTreeMap::new();
        for document in found {
            let row = Row::of(document);
            if row.is_none_or(|(id, row)| there.insert(id, row).is_some()) {
                lines.push(format!("{}: no client wrote {document}", side.name()));
            }
        }
        let wanted = self.rows(side);
        for (id, row) in wanted {
            match there.get(id) {
                None => lines.push(format!("{}: {id} is lost: {row:?}", side.name())),
                Some(found) if found != row => lines.push(format!(
                    "{}: {id} is {found:?}, and should be {row:?}",
                    side.name()
                )),
                Some(_) => {}
            }
        }
        for (id, row) in &there {
            if !wanted.contains_key(id) {
                lines.push(format!(
                    "{}: {id} should not be there: {row:?}",
                    side.name()
                ));
            }
        }
        lines.truncate(10);
        lines
    }
}

/// Whether the value in a reply to `findAndModify` is the document with this id and row.
pub(crate) fn is_value(reply: &Document, id: i64, row: &Row) -> bool {
    let value = reply.get("value").and_then(Bson::as_document);
    value
        .and_then(Row::of)
        .is_some_and(|(i, r)| i == id && r == *row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(v: i64, n: i64) -> Row {
        Row { v, n, tag: 1 }
    }

    #[test]
    fn every_difference_is_told() {
        let mut model = Model::default();
        model.apply(&[
            Change::Put(Side::Left, 1, row(10, 0)),
            Change::Put(Side::Left, 2, row(11, 0)),
            Change::Put(Side::Left, 3, row(12, 0)),
            Change::Delete(Side::Left, 3),
            Change::Count(Side::Left),
        ]);
        let good = [row(10, 0).document(1), row(11, 0).document(2)];
        assert_eq!(model.differences(Side::Left, &good), Vec::<String>::new());
        assert_eq!((model.count(Side::Left), model.count(Side::Right)), (1, 0));
        let bad = [
            row(10, 1).document(1),
            row(12, 0).document(3),
            doc! { "_id": 9 },
        ];
        let lines = model.differences(Side::Left, &bad).join("\n");
        for part in [
            "no client wrote",
            "2 is lost",
            "1 is Row",
            "3 should not be there",
        ] {
            assert!(lines.contains(part), "{lines}");
        }
    }
}
