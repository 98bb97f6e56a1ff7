//! A store on a simulated disk with a model beside it: every operation is told to the history and
//! done to the model, and every answer is held against both.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::{
    Batch, Db, Direction, Durability, Error, ErrorKind, Options, Snapshot, Transaction, TreeId,
    TreeOptions,
};
use sim::SimVfs;
use sim::checker::{Change, History, State, TreeState};

/// Where the store lies.
pub(crate) const DIRECTORY: &str = "/store";

/// The machine has stopped: the next thing is a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop;

/// What an operation of a script gives.
pub(crate) type Step<T = ()> = Result<T, Stop>;

/// A transaction, what it saw, and what it wrote.
pub(crate) struct Txn {
    transaction: Transaction,
    before: State,
    changes: Vec<Change>,
    checked: Vec<(String, Vec<u8>)>,
    ids: BTreeMap<String, TreeId>,
}

/// A store and what it should hold.
pub(crate) struct World {
    pub(crate) vfs: SimVfs,
    pub(crate) options: Options,
    pub(crate) db: Option<Db>,
    pub(crate) history: History,
    /// What readers should see now.
    pub(crate) model: State,
    pub(crate) held: Vec<(Snapshot, State, BTreeMap<String, TreeId>)>,
    pub(crate) ids: BTreeMap<String, TreeId>,
    /// Faults are about: errors are answers.
    pub(crate) faulty: bool,
    /// The store said that it is closed for writes.
    pub(crate) poisoned: bool,
    /// Errors met.
    pub(crate) errors: Vec<ErrorKind>,
    /// By key, the commit of the last transaction that wrote it with conflict detection.
    written: BTreeMap<(String, Vec<u8>), u64>,
    values: u32,
}

impl World {
    /// No store yet, on this disk.
    pub(crate) fn new(vfs: SimVfs, options: Options) -> World {
        World {
            vfs,
            options,
            db: None,
            history: History::default(),
            model: State::new(),
            held: Vec::new(),
            ids: BTreeMap::new(),
            faulty: false,
            poisoned: false,
            errors: Vec::new(),
            written: BTreeMap::new(),
            values: 0,
        }
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().expect("the store is open")
    }

    /// Whether there is nothing to do: a fault kept the store from opening.
    fn is_down(&self) -> bool {
        assert!(self.db.is_some() || self.faulty, "the store is open");
        self.db.is_none()
    }

    /// Whether commits are in a log; else they are durable only with checkpoints.
    fn logged(&self) -> bool {
        self.options.log()
    }

    /// Open the store; with faults it may refuse, and is then not open.
    pub(crate) fn open(&mut self) -> Step {
        assert!(self.db.is_none(), "closed before");
        let vfs = Arc::new(self.vfs.clone());
        match Db::open_with(vfs, Path::new(DIRECTORY), self.options.clone()) {
            Ok(db) => {
                let names = db.trees().expect("an open store names its trees");
                let id = |name: String| (name.clone(), db.open_tree(&name).expect("just named"));
                self.ids = names.into_iter().map(id).collect();
                self.db = Some(db);
                Ok(())
            }
            Err(error) => self.failed(error),
        }
    }

    /// Take an error: a stop, or an answer that is allowed.
    fn failed(&mut self, error: Error) -> Step {
        if self.vfs.has_stopped() {
            return Err(Stop);
        }
        assert!(
            self.faulty,
            "an error without a fault: {error} ({:?})",
            error.kind()
        );
        self.errors.push(error.kind());
        Ok(())
    }

    /// Whether the store is closed for writes.
    fn is_poisoned(&self) -> bool {
        let answer = self.db().write(&Batch::new(), Durability::None);
        answer.is_err_and(|e| e.kind() == ErrorKind::Closed)
    }

    /// The verdict on a call that writes. True when it was done.
    fn judge(&mut self, result: Result<(), Error>) -> Step<bool> {
        let before = self.poisoned;
        match result {
            Ok(()) => {
                assert!(
                    !before,
                    "a store that is closed for writes acknowledges nothing"
                );
                Ok(true)
            }
            Err(error) => {
                let kind = error.kind();
                self.failed(error)?;
                self.poisoned = self.is_poisoned();
                assert!(
                    !before || kind == ErrorKind::Closed,
                    "closed for writes, but {kind:?}"
                );
                Ok(false)
            }
        }
    }

    /// A commit: told to the history, done, judged, done to the model.
    fn commit(
        &mut self,
        changes: Vec<Change>,
        durable: bool,
        act: impl FnOnce(&Db) -> Result<(), Error>,
    ) -> Step<bool> {
        if self.is_down() {
            return Ok(false);
        }
        let before = self.poisoned;
        let id = self.history.begin(changes.clone());
        let seen = self.db().begin_read().expect("an open store reads").seq();
        let result = act(self.db());
        let refused = result.as_ref().is_err_and(|e| {
            matches!(
                e.kind(),
                ErrorKind::Conflict | ErrorKind::Invalid | ErrorKind::Exists
            )
        });
        if refused && !self.vfs.has_stopped() {
            self.history.abort(id);
            return Ok(false);
        }
        let done = self.judge(result)?;
        let now = self.db().begin_read().expect("an open store reads").seq();
        // The parts of a large commit use numbers up even when it fails.
        let visible = seen < now && (done || self.is_visible(&changes));
        if done {
            // A range delete that finds nothing is no commit.
            let mut after = self.model.clone();
            changes.iter().for_each(|change| apply(&mut after, change));
            assert!(
                visible || after == self.model,
                "what is acknowledged is visible"
            );
            self.history.acknowledge(id, durable && self.logged());
        } else if self.poisoned && !before {
            self.history.unknown(id);
        } else {
            assert!(!visible, "what failed is not visible");
            self.history.abort(id);
        }
        if visible {
            changes
                .iter()
                .for_each(|change| apply(&mut self.model, change));
        }
        Ok(done)
    }

    /// Whether a commit that failed is there all the same: a key has the value it would have. That
    /// is read from memory.
    fn is_visible(&self, changes: &[Change]) -> bool {
        let mut after = self.model.clone();
        changes.iter().for_each(|change| apply(&mut after, change));
        if !after.keys().eq(self.model.keys()) {
            return self
                .db()
                .trees()
                .is_ok_and(|names| names.iter().eq(after.keys()));
        }
        let snapshot = self.db().begin_read().expect("an open store reads");
        for (name, new) in &after {
            let old = self.model.get(name).expect("the same trees");
            let keys = new.keys().chain(old.keys());
            let Some(key) = keys.into_iter().find(|key| new.get(*key) != old.get(*key)) else {
                continue;
            };
            let found = snapshot.get(self.id(name), key);
            return found.is_ok_and(|found| found.as_ref() == new.get(key));
        }
        false
    }

    /// A value no other write has.
    pub(crate) fn value(&mut self, length: usize) -> Vec<u8> {
        self.values += 1;
        let mut value = self.values.to_be_bytes().to_vec();
        let fill = self.values.to_le_bytes();
        value.extend(fill.iter().cycle().take(length));
        value
    }

    pub(crate) fn id(&self, tree: &str) -> TreeId {
        *self
            .ids
            .get(tree)
            .unwrap_or_else(|| panic!("tree {tree} was created"))
    }

    /// Write a batch.
    pub(crate) fn write(&mut self, changes: Vec<Change>, durability: Durability) -> Step<bool> {
        let there = |change: &Change| match change {
            Change::Put(tree, ..) | Change::Delete(tree, _) | Change::DeleteRange(tree, ..) => {
                self.ids.contains_key(tree)
            }
            Change::CreateTree(_) | Change::DropTree(_) => false,
        };
        if changes.is_empty() || self.is_down() || (self.faulty && !changes.iter().all(there)) {
            return Ok(false);
        }
        let mut batch = Batch::new();
        for change in &changes {
            match change {
                Change::Put(tree, key, value) => batch.put(self.id(tree), key, value),
                Change::Delete(tree, key) => batch.delete(self.id(tree), key),
                Change::DeleteRange(tree, start, end) => {
                    batch.delete_range(self.id(tree), bound(start), bound(end));
                }
                Change::CreateTree(_) | Change::DropTree(_) => unreachable!("not of a batch"),
            }
        }
        let durability = if self.logged() {
            durability
        } else {
            Durability::None
        };
        self.commit(changes, durability.is_synced(), |db| {
            db.write(&batch, durability)
        })
    }

    /// Create a tree.
    pub(crate) fn create(&mut self, name: &str) -> Step<bool> {
        let mut made = None;
        let change = vec![Change::CreateTree(name.to_owned())];
        let done = self.commit(change, true, |db| {
            made = Some(db.create_tree(name, TreeOptions::default())?);
            Ok(())
        })?;
        if self.is_down() {
            return Ok(false);
        }
        if let Ok(id) = self.db().open_tree(name) {
            assert!(
                made.is_none_or(|made| made == id),
                "the tree is the one just made"
            );
            self.ids.insert(name.to_owned(), id);
        }
        Ok(done)
    }

    /// Drop a tree.
    pub(crate) fn drop_tree(&mut self, name: &str) -> Step<bool> {
        if self.faulty && !self.ids.contains_key(name) {
            return Ok(false);
        }
        let change = vec![Change::DropTree(name.to_owned())];
        let done = self.commit(change, true, |db| db.drop_tree(name))?;
        if !self.model.contains_key(name) {
            self.ids.remove(name);
            self.written.retain(|(tree, _), _| tree != name);
        }
        Ok(done)
    }

    /// A call after which everything before is durable, if it says so.
    pub(crate) fn barrier(&mut self, act: impl FnOnce(&Db) -> Result<bool, Error>) -> Step<bool> {
        if self.is_down() {
            return Ok(false);
        }
        let mut all = false;
        let result = act(self.db()).map(|done| all = done);
        let done = self.judge(result)?;
        if done && all {
            self.history.synced();
        }
        Ok(done && all)
    }

    pub(crate) fn checkpoint(&mut self) -> Step<bool> {
        self.barrier(|db| db.checkpoint().map(|()| true))
    }

    pub(crate) fn sync_log(&mut self) -> Step<bool> {
        self.barrier(|db| db.sync_log().map(|()| true))
    }

    pub(crate) fn settle(&mut self) -> Step<bool> {
        self.barrier(|db| db.settle(Duration::from_secs(600)))
    }

    /// Do background work, `n` units at most.
    pub(crate) fn steps(&mut self, n: u64) -> Step {
        for _ in 0..n {
            if self.is_down() {
                return Ok(());
            }
            let mut more = false;
            let result = self.db().step().map(|any| more = any);
            if !self.judge(result)? || !more {
                break;
            }
        }
        Ok(())
    }

    /// Merge a tree.
    pub(crate) fn compact(&mut self, tree: &str) -> Step<bool> {
        if self.is_down() || (self.faulty && !self.ids.contains_key(tree)) {
            return Ok(false);
        }
        let id = self.id(tree);
        self.barrier(|db| db.compact(id, Bound::Unbounded, Bound::Unbounded, &mut |_, _| true))
    }

    /// Hold a snapshot of now.
    pub(crate) fn hold(&mut self) {
        if self.is_down() {
            return;
        }
        let snapshot = self.db().begin_read().expect("an open store reads");
        self.held
            .push((snapshot, self.model.clone(), self.ids.clone()));
    }

    /// Look at a held snapshot again and let it go.
    pub(crate) fn release(&mut self, index: usize) -> Step {
        if self.held.is_empty() {
            return Ok(());
        }
        let (snapshot, model, ids) = self.held.swap_remove(index % self.held.len());
        self.compare(&snapshot, &model, &ids)
    }

    /// Read everything: it is what the model says.
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

    /// Begin a transaction.
    pub(crate) fn begin(&mut self) -> Step<Option<Txn>> {
        if self.is_down() {
            return Ok(None);
        }
        match self.db().begin() {
            Ok(transaction) => Ok(Some(Txn {
                transaction,
                before: self.model.clone(),
                changes: Vec::new(),
                checked: Vec::new(),
                ids: self.ids.clone(),
            })),
            Err(error) => {
                assert!(self.poisoned || self.vfs.has_stopped(), "{error}");
                self.failed(error).map(|()| None)
            }
        }
    }

    /// One write of a transaction. False when it has met a conflict.
    pub(crate) fn transact(&mut self, txn: &mut Txn, change: Change, blind: bool) -> Step<bool> {
        let (Change::Put(tree, ..) | Change::Delete(tree, _) | Change::DeleteRange(tree, ..)) =
            &change
        else {
            unreachable!("not of a transaction");
        };
        let Some(&id) = txn.ids.get(tree) else {
            return Ok(true);
        };
        let mut own = txn.before.clone();
        txn.changes
            .iter()
            .for_each(|change| apply(&mut own, change));
        let t = &mut txn.transaction;
        let result = match (&change, blind) {
            (Change::Put(_, key, value), true) => t.put_blind(id, key, value),
            (Change::Put(_, key, value), false) => t.put(id, key, value),
            (Change::Delete(_, key), true) => t.delete_blind(id, key),
            (Change::Delete(_, key), false) => t.delete(id, key).map(|there| {
                let expected = own.get(tree).is_some_and(|tree| tree.contains_key(key));
                assert_eq!(
                    there,
                    expected,
                    "{tree}, deleted key {}",
                    key.escape_ascii()
                );
            }),
            (Change::DeleteRange(_, start, end), _) => t.delete_range(id, bound(start), bound(end)),
            _ => unreachable!("matched above"),
        };
        match result {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::Conflict => return Ok(false),
            // The tree was dropped since.
            Err(e) if e.kind() == ErrorKind::Invalid => return Ok(false),
            Err(error) => return self.failed(error).map(|()| false),
        }
        let range = |tree: &str, start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>| {
            let keys = own.get(tree).into_iter().flat_map(|t| t.keys());
            let inside = keys
                .filter(|k| std::ops::RangeBounds::contains(&(start.as_ref(), end.as_ref()), k));
            inside
                .map(|k| (tree.to_owned(), k.clone()))
                .collect::<Vec<_>>()
        };
        match change {
            Change::DeleteRange(tree, start, end) => {
                let keys = range(&tree, &start, &end);
                txn.checked.extend(keys.iter().cloned());
                txn.changes
                    .extend(keys.into_iter().map(|(t, k)| Change::Delete(t, k)));
            }
            Change::Put(ref tree, ref key, _) | Change::Delete(ref tree, ref key) => {
                if !blind {
                    txn.checked.push((tree.clone(), key.clone()));
                }
                txn.changes.push(change);
            }
            _ => unreachable!("matched above"),
        }
        Ok(true)
    }

    /// Commit it.
    pub(crate) fn finish(&mut self, txn: Txn, durability: Durability) -> Step<bool> {
        let durability = if self.logged() {
            durability
        } else {
            Durability::None
        };
        let lives = |change: &Change| match change {
            Change::Put(tree, ..) | Change::Delete(tree, _) => {
                self.ids.get(tree) == txn.ids.get(tree)
            }
            _ => false,
        };
        let start = txn.transaction.seq().0;
        if !txn.changes.iter().all(lives) {
            let error = txn
                .transaction
                .commit(durability)
                .expect_err("it wrote to a dropped tree");
            let kind = error.kind();
            assert!(
                matches!(
                    kind,
                    ErrorKind::Invalid | ErrorKind::Conflict | ErrorKind::Closed
                ) || self.faulty
                    || self.vfs.has_stopped(),
                "{error}"
            );
            return Ok(false);
        }
        if txn.changes.is_empty() {
            drop(txn);
            return Ok(false);
        }
        let newer = |at: &(String, Vec<u8>)| self.written.get(at).is_some_and(|&seq| start < seq);
        let must_fail = txn.checked.iter().any(newer);
        let transaction = txn.transaction;
        let done = self.commit(txn.changes, durability.is_synced(), |_| {
            transaction.commit(durability)
        })?;
        assert!(
            !(done && must_fail),
            "a transaction overwrote another one's key unseen"
        );
        if done {
            let seq = self.db().begin_read().expect("an open store reads").seq().0;
            self.written
                .extend(txn.checked.into_iter().map(|at| (at, seq)));
        }
        Ok(done)
    }

    /// Close and open again with other options: nothing is lost.
    pub(crate) fn reopen(&mut self, options: Options) -> Step {
        self.held.clear();
        let Some(db) = self.db.take() else {
            self.options = options;
            self.open()?;
            return if self.db.is_some() {
                self.adopt()
            } else {
                Ok(())
            };
        };
        let closed = db.close();
        let healthy = closed.is_ok();
        if healthy {
            assert!(
                !self.poisoned,
                "a store that is closed for writes does not close well"
            );
            self.history.synced();
        }
        if let Err(error) = closed {
            self.failed(error)?;
        }
        self.options = options;
        self.open()?;
        if self.db.is_some() {
            self.adopt()
        } else {
            Ok(())
        }
    }

    /// Write `n` keys from `from` on, with values of `length` bytes and a few.
    pub(crate) fn fill(
        &mut self,
        tree: &str,
        (from, n, step): (u32, u32, u32),
        length: usize,
        durability: Durability,
    ) -> Step<bool> {
        let put = |i: u32| {
            let key = format!("{:06}", from + i * step).into_bytes();
            Change::Put(tree.to_owned(), key, self.value(length))
        };
        let changes = (0..n).map(put).collect();
        self.write(changes, durability)
    }

    /// Delete `n` keys as [`World::fill`] writes them.
    pub(crate) fn clear(&mut self, tree: &str, (from, n, step): (u32, u32, u32)) -> Step<bool> {
        let key = |i: u32| format!("{:06}", from + i * step).into_bytes();
        let changes = (0..n)
            .map(|i| Change::Delete(tree.to_owned(), key(i)))
            .collect();
        self.write(changes, Durability::Interval)
    }

    /// Let go of the store, as a process does that ends.
    pub(crate) fn abandon(&mut self) {
        self.held.clear();
        self.db = None;
    }

    /// Judge what an open store holds against the history, and go on from there. With faults about
    /// it may be unreadable; then the store is let go again.
    pub(crate) fn adopt(&mut self) -> Step {
        let found = match self.found() {
            Ok(found) => found,
            Err(error) => {
                self.failed(error)?;
                self.abandon();
                return Ok(());
            }
        };
        if let Err(counterexample) = self.history.check(&found) {
            panic!("{counterexample}");
        }
        self.history = History::new(found.clone());
        self.model = found;
        self.poisoned = false;
        self.written.clear();
        Ok(())
    }

    /// Go on from `state`, which is what the store holds.
    pub(crate) fn adopt_as(&mut self, state: State) {
        self.history = History::new(state.clone());
        self.model = state;
    }

    /// All there is, and L4: everything is where it should be and nothing is lost.
    pub(crate) fn found(&self) -> Result<State, Error> {
        self.db().verify()?;
        everything(self.db())
    }
}

/// All that a store holds.
pub(crate) fn everything(db: &Db) -> Result<State, Error> {
    let snapshot = db.begin_read()?;
    let mut state = State::new();
    for name in db.trees()? {
        let tree = scan(&snapshot, db.open_tree(&name)?, Direction::Forward)?;
        state.insert(name, tree);
    }
    Ok(state)
}

/// All that a tree holds; the order of the cursor is checked.
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
        Some(v) => format!("{} ({} bytes)", v[..v.len().min(8)].escape_ascii(), v.len()),
    };
    let lines = wrong.take(6).map(|key| {
        let (e, f) = (show(expected.get(key)), show(found.get(key)));
        format!("\n  key {}: expected {e}, found {f}", key.escape_ascii())
    });
    lines.collect()
}

/// A bound as the library takes it.
pub(crate) fn bound(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
    }
}

fn apply(state: &mut State, change: &Change) {
    match change {
        Change::CreateTree(tree) => {
            state.entry(tree.clone()).or_default();
        }
        Change::DropTree(tree) => {
            state.remove(tree);
        }
        Change::Put(tree, key, value) => {
            state
                .get_mut(tree)
                .expect("it is there")
                .insert(key.clone(), value.clone());
        }
        Change::Delete(tree, key) => {
            state.get_mut(tree).expect("it is there").remove(key);
        }
        Change::DeleteRange(tree, start, end) => {
            let range = (start.as_ref(), end.as_ref());
            let tree = state.get_mut(tree).expect("it is there");
            tree.retain(|key, _| !std::ops::RangeBounds::contains(&range, key));
        }
    }
}
