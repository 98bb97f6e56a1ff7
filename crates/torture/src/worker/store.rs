//! The worker's store: opens it, and sends its content.

use std::sync::Arc;

use kv::{Direction, Engine, ErrorKind, KeyRange, Snapshot, TreeId, TreeOptions};

use super::abort::AbortVfs;
use super::voice::Voice;
use crate::key::{Key, TREES, WRITERS_MAX};
use crate::protocol::{Lie, Start};
use crate::value::decode;

/// An open engine and its trees.
pub(super) struct Store {
    pub(super) engine: Box<dyn Engine>,
    pub(super) trees: [TreeId; TREES.len()],
}

/// Describes an error of the engine in `operation`.
pub(super) fn text(operation: &str) -> impl Fn(kv::Error) -> String {
    move |e| format!("{operation}: {:?}: {e}", e.kind())
}

impl Store {
    /// Open the store, and its trees, creating those that are missing.
    pub(super) fn open(start: &Start) -> Result<Store, String> {
        let factory = lab::targets::factory(&start.engine)?;
        let opened = match &start.abort {
            Some(abort) if start.engine == kv_betree::factory().name() => {
                let vfs = Arc::new(AbortVfs::new(abort.clone()));
                kv_betree::open_with(vfs, &start.directory, &start.options)
            }
            _ => factory.open(&start.directory, &start.options),
        };
        let engine = opened.map_err(text("open"))?;
        let mut trees = [TreeId(0); TREES.len()];
        for (tree, name) in trees.iter_mut().zip(TREES) {
            *tree = tree_of(engine.as_ref(), name)?;
        }
        Ok(Store { engine, trees })
    }

    /// The handle of the tree `number`.
    pub(super) fn tree(&self, number: u8) -> TreeId {
        let tree = self.trees.get(usize::from(number));
        *tree.expect("keys name trees there are")
    }

    /// Run the engine's own check; false when the engine has none.
    pub(super) fn verify(&self) -> Result<bool, String> {
        match self.engine.verify() {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::Unsupported => Ok(false),
            Err(e) => Err(text("verify")(e)),
        }
    }

    /// Send every entry of every tree, and check that a backward scan and lookups by key give the
    /// same entries.
    pub(super) fn dump(&self, voice: &Voice, start: &Start) -> Result<(), String> {
        let snapshot = self.engine.begin_read().map_err(text("begin_read"))?;
        let hidden = match start.lie {
            Some(Lie::Drop) => newest(self, snapshot.as_ref())?,
            _ => None,
        };
        for (number, &tree) in (0_u8..).zip(&self.trees) {
            let (mut count, mut sum) = (0_u64, 0_u64);
            let mut cursor = snapshot
                .cursor(tree, KeyRange::ALL, Direction::Forward)
                .map_err(text("cursor"))?;
            let mut value = Vec::new();
            while cursor.advance().map_err(text("advance"))? {
                let found = snapshot.get_into(tree, cursor.key(), &mut value);
                if !found.map_err(text("get"))? || value != cursor.value() {
                    return Err(differ("a get", number, cursor.key()));
                }
                count += 1;
                sum ^= stdx::hash::pair64(cursor.key(), cursor.value());
                if hidden != author(number, cursor.key(), cursor.value()) || hidden.is_none() {
                    voice.say_entry(number, cursor.key(), cursor.value());
                }
            }
            backward(snapshot.as_ref(), tree, number, (count, sum))?;
        }
        Ok(())
    }

    /// Close the store.
    pub(super) fn close(self) -> Result<(), String> {
        self.engine.close().map_err(text("close"))
    }
}

fn tree_of(engine: &dyn Engine, name: &str) -> Result<TreeId, String> {
    match engine.open_tree(name) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let options = TreeOptions {
                ascending: name == "ascending",
                point_lookups: name == "lookups",
            };
            engine
                .create_tree(name, &options)
                .map_err(text("create_tree"))
        }
        other => other.map_err(text("open_tree")),
    }
}

/// Check that a backward scan returns as many entries, with the same digest.
fn backward(
    snapshot: &dyn Snapshot,
    tree: TreeId,
    number: u8,
    forward: (u64, u64),
) -> Result<(), String> {
    let mut cursor = snapshot
        .cursor(tree, KeyRange::ALL, Direction::Backward)
        .map_err(text("cursor"))?;
    let (mut count, mut sum) = (0_u64, 0_u64);
    while cursor.advance().map_err(text("advance"))? {
        count += 1;
        sum ^= stdx::hash::pair64(cursor.key(), cursor.value());
    }
    if (count, sum) == forward {
        return Ok(());
    }
    let name = TREES.get(usize::from(number)).unwrap_or(&"?");
    Err(format!(
        "tree {name} has {} entries forwards and {count} backwards, or not the same ones",
        forward.0
    ))
}

fn differ(what: &str, tree: u8, key: &[u8]) -> String {
    match Key::read(tree, key) {
        Some(key) => format!("{what} of {key} does not give what the cursor gave"),
        None => format!("{what} of {key:?} does not give what the cursor gave"),
    }
}

fn author(tree: u8, key: &[u8], value: &[u8]) -> Option<(u32, u64)> {
    let stamp = decode(Key::read(tree, key)?, value).ok()?;
    Some((stamp.writer, stamp.counter))
}

/// The writer and the counter of the newest commit.
fn newest(store: &Store, snapshot: &dyn Snapshot) -> Result<Option<(u32, u64)>, String> {
    for writer in 0..WRITERS_MAX {
        let key = Key::ledger(writer);
        let value = snapshot.get(store.tree(key.tree), &key.bytes());
        if let Some(value) = value.map_err(text("get"))? {
            return Ok(author(key.tree, &key.bytes(), &value));
        }
    }
    Ok(None)
}
