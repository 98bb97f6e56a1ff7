//! Reading a store and comparing it with the model.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use betree::{Db, Direction, Error, Snapshot, TreeId};
use sim::checker::{State, TreeState};

use crate::rig::{Step, World};

impl World {
    /// Copy the store, and check the copy.
    pub(crate) fn backup(&mut self) -> Step {
        if self.is_down() {
            return Ok(());
        }
        let copy = Path::new("/copy");
        let made = self.db().backup(copy, &mut |_, _| true);
        let read = made.and_then(|all| {
            assert!(all, "it was not stopped");
            let vfs = Arc::new(self.vfs.clone());
            everything(&Db::open_with(vfs, copy, self.options.clone())?)
        });
        match read {
            Ok(found) => {
                assert_eq!(found, self.model, "a copy is what was copied");
                Ok(())
            }
            Err(error) => self.failed(error),
        }
    }

    /// Open a snapshot and keep it.
    pub(crate) fn hold(&mut self) {
        if self.is_down() {
            return;
        }
        let snapshot = self.db().begin_read().expect("an open store reads");
        self.held
            .push((snapshot, self.model.clone(), self.ids.clone()));
    }

    /// Check an open snapshot again, and close it.
    pub(crate) fn release(&mut self, index: usize) -> Step {
        if self.held.is_empty() {
            return Ok(());
        }
        let (snapshot, model, ids) = self.held.swap_remove(index % self.held.len());
        self.compare(&snapshot, &model, &ids)
    }

    /// Read everything and compare it with the model.
    pub(crate) fn look(&mut self) -> Step {
        if self.is_down() {
            return Ok(());
        }
        let snapshot = self.db().begin_read().expect("an open store reads");
        let (model, ids) = (self.model.clone(), self.ids.clone());
        self.compare(&snapshot, &model, &ids)
    }

    /// Read one key.
    pub(crate) fn get(&mut self, tree: &str, key: &[u8]) -> Step {
        let snapshot = self.db().begin_read().expect("an open store reads");
        match snapshot.get(self.id(tree), key) {
            Ok(found) => {
                let expected = self.model.get(tree).and_then(|t| t.get(key));
                assert_eq!(
                    found.as_ref(),
                    expected,
                    "{tree}, key {}",
                    key.escape_ascii()
                );
                Ok(())
            }
            Err(error) => self.failed(error),
        }
    }

    fn compare(
        &mut self,
        snapshot: &Snapshot,
        model: &State,
        ids: &BTreeMap<String, TreeId>,
    ) -> Step {
        for (name, tree) in model {
            let id = *ids.get(name).expect("the model's trees have ids");
            for direction in [Direction::Forward, Direction::Backward] {
                match scan(snapshot, id, direction) {
                    Ok(found) if &found == tree => {}
                    Ok(found) => panic!(
                        "{name} {direction:?} at {}: {}",
                        snapshot.seq(),
                        difference(tree, &found)
                    ),
                    Err(error) => self.failed(error)?,
                }
            }
        }
        Ok(())
    }
}

/// The whole content of a store.
pub(crate) fn everything(db: &Db) -> Result<State, Error> {
    let snapshot = db.begin_read()?;
    let mut state = State::new();
    for name in db.trees()? {
        let tree = scan(&snapshot, db.open_tree(&name)?, Direction::Forward)?;
        state.insert(name, tree);
    }
    Ok(state)
}

/// The whole content of a tree; checks the order of the cursor.
pub(crate) fn scan(snapshot: &Snapshot, id: TreeId, d: Direction) -> Result<TreeState, Error> {
    let mut cursor = snapshot.cursor(id, Bound::Unbounded, Bound::Unbounded, d)?;
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while cursor.advance()? {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
    }
    if d == Direction::Backward {
        entries.reverse();
    }
    assert!(
        entries.is_sorted_by(|a, b| a.0 < b.0),
        "a cursor goes in order"
    );
    Ok(entries.into_iter().collect())
}

fn difference(expected: &TreeState, found: &TreeState) -> String {
    let keys = expected.keys().chain(found.keys());
    let wrong = keys.filter(|key| expected.get(*key) != found.get(*key));
    let show = |value: Option<&Vec<u8>>| match value {
        None => "nothing".to_owned(),
        Some(v) => format!(
            "{} ({} bytes)",
            v.get(..8).unwrap_or(v).escape_ascii(),
            v.len()
        ),
    };
    let lines = wrong.take(6).map(|key| {
        let (e, f) = (show(expected.get(key)), show(found.get(key)));
        format!("\n  key {}: expected {e}, found {f}", key.escape_ascii())
    });
    lines.collect()
}
