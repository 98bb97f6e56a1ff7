//! Compares the results of the engine with those of the model.

use std::rc::Rc;

use kv::{Cursor, Direction, Error, KeyRange, Snapshot, TreeId};

use super::oracle::View;
use super::step::{Key, Move};

/// The result of a step: success, or a description of the difference.
pub(super) type Outcome<T = ()> = Result<T, String>;

/// Describes an error of a call that must succeed.
pub(super) fn failed(what: &'static str) -> impl Fn(Error) -> String {
    move |e| format!("{what} failed: {e}")
}

/// Bytes as text, truncated when long.
fn show(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "nothing".to_owned(),
        Some(bytes) => match bytes.get(..24) {
            Some(head) => format!("\"{}..\" ({} bytes)", head.escape_ascii(), bytes.len()),
            None => format!("\"{}\"", bytes.escape_ascii()),
        },
    }
}

/// Compare a point read.
pub(super) fn compare_get(view: &dyn Snapshot, model: &View, tree: TreeId, key: &[u8]) -> Outcome {
    let found = view.get(tree, key).map_err(failed("get"))?;
    same(key, found.as_deref(), model.get(tree, key))
}

fn same(key: &[u8], found: Option<&[u8]>, expected: Option<&[u8]>) -> Outcome {
    if found == expected {
        return Ok(());
    }
    let (key, found, expected) = (show(Some(key)), show(found), show(expected));
    Err(format!("{key} reads as {found}, not {expected}"))
}

/// Compare a read of many keys; checks that each key is visited once.
pub(super) fn compare_many(
    view: &dyn Snapshot,
    model: &View,
    tree: TreeId,
    keys: &[Key],
) -> Outcome {
    let wanted: Vec<&[u8]> = keys.iter().map(|key| key.0.as_slice()).collect();
    let mut visits = vec![0; keys.len()];
    let mut outcome = Ok(());
    view.get_many(tree, &wanted, &mut |index, found| {
        visits[index] += 1;
        let compared = same(wanted[index], found, model.get(tree, wanted[index]));
        if outcome.is_ok() {
            outcome = compared;
        }
    })
    .map_err(failed("get_many"))?;
    match visits.iter().all(|&count| count == 1) {
        true => outcome,
        false => Err(format!(
            "numbers of visits of each key by get_many: {visits:?}"
        )),
    }
}

/// A cursor of the engine, with the keys that it must return.
struct Walk<'a> {
    cursor: Box<dyn Cursor + 'a>,
    model: &'a View,
    tree: TreeId,
    direction: Direction,
    keys: Vec<Rc<[u8]>>,
    /// The index in `keys` of the next key. The current key has the index before it, unless the
    /// cursor has ended.
    next: usize,
}

impl Walk<'_> {
    /// Make one move (an advance makes one step) and compare; returns whether the cursor has an
    /// entry.
    fn make(&mut self, mover: &Move) -> Outcome<bool> {
        let (found, index) = match mover {
            Move::Advance(_) => {
                let found = self.cursor.advance().map_err(failed("advance"))?;
                (found, self.next)
            }
            Move::Seek(key) => {
                let found = self.cursor.seek(&key.0).map_err(failed("seek"))?;
                (found, self.first_reached(&key.0))
            }
        };
        let expected = self.keys.get(index).cloned();
        self.next = self.keys.len().min(index + 1);
        let current = found.then(|| self.cursor.key());
        if current != expected.as_deref() {
            let (current, expected) = (show(current), show(expected.as_deref()));
            return Err(format!("{mover:?} comes to {current}, not {expected}"));
        }
        self.compare_entry(expected.as_deref())?;
        Ok(found)
    }

    /// The index of the first key, in the direction of the cursor, that is at `key` or after it.
    fn first_reached(&self, key: &[u8]) -> usize {
        let passed = |k: &Rc<[u8]>| match self.direction {
            Direction::Forward => &**k < key,
            Direction::Backward => key < &**k,
        };
        self.keys.partition_point(passed)
    }

    /// Compare the cursor's entry with the model's; without an entry, key and value must be empty.
    fn compare_entry(&self, expected: Option<&[u8]>) -> Outcome {
        let Some(key) = expected else {
            return match (self.cursor.key(), self.cursor.value()) {
                (b"", b"") => Ok(()),
                (key, value) => {
                    let (key, value) = (show(Some(key)), show(Some(value)));
                    Err(format!("a cursor without an entry shows {key} = {value}"))
                }
            };
        };
        same(
            key,
            Some(self.cursor.value()),
            self.model.get(self.tree, key),
        )
    }
}

/// Make `moves` with a cursor, then continue to read: without moves, to the end and one step beyond
/// it, otherwise a few entries.
pub(super) fn compare_scan(
    view: &dyn Snapshot,
    model: &View,
    tree: TreeId,
    range: KeyRange<'_>,
    direction: Direction,
    moves: &[Move],
) -> Outcome {
    let mut keys = model.keys_in(tree, range);
    if direction == Direction::Backward {
        keys.reverse();
    }
    let cursor = view.cursor(tree, range, direction);
    let mut walk = Walk {
        cursor: cursor.map_err(failed("cursor"))?,
        model,
        tree,
        direction,
        keys,
        next: 0,
    };
    for mover in moves {
        let times = match mover {
            Move::Advance(times) => *times,
            Move::Seek(_) => 1,
        };
        for _ in 0..times {
            walk.make(mover)?;
        }
    }
    let rest = if moves.is_empty() { usize::MAX } else { 8 };
    for _ in 0..rest {
        if !walk.make(&Move::Advance(1))? {
            break;
        }
    }
    walk.make(&Move::Advance(1)).map(drop)
}

/// Compare all entries of all trees, in both directions.
pub(super) fn compare_all(view: &dyn Snapshot, model: &View) -> Outcome {
    for tree in model.trees() {
        for direction in [Direction::Forward, Direction::Backward] {
            compare_scan(view, model, tree, KeyRange::ALL, direction, &[])
                .map_err(|e| format!("{direction:?} through tree {}: {e}", tree.0))?;
        }
    }
    Ok(())
}
