//! Runs the steps of a tape on the engine and the model.

use std::path::Path;
use std::time::Duration;

use kv::{
    Batch, Capabilities, Durability, Engine, Error, ErrorKind, Flow, Snapshot, StatScope,
    Transaction, TreeId, TreeOptions,
};

use super::compare::{Outcome, compare_all, compare_get, compare_many, compare_scan, failed};
use super::oracle::{Answer, Oracle, Txn, Verdict, View};
use super::step::{Change, Script, Step};
use crate::subject::Subject;

/// Maximum number of transactions that are open at the same time.
const TXNS: usize = 4;

/// Maximum number of snapshots that are open at the same time.
const SNAPSHOTS: usize = 6;

/// Names of trees.
const NAMES: [&str; 5] = ["t0", "t1", "t2", "t3", "t0.sub"];

/// Run the steps of `tape`; each is written to `log` before it is executed.
pub(super) fn run(subject: &Subject, tape: &[u8], log: &mut Vec<String>) -> Outcome {
    let root = tempfile::tempdir().map_err(|e| format!("a temporary directory: {e}"))?;
    let directory = root.path().join("store");
    let capabilities = subject.capabilities();
    let mut script = Script::new(tape, capabilities, subject.options().log);
    let mut oracle = Oracle::new(!capabilities.blind_writes);
    let mut db = open(subject, &directory)?;
    for name in NAMES.iter().take(2) {
        let tree = db.create_tree(name, &TreeOptions::default());
        oracle.create(tree.map_err(failed("create_tree"))?);
    }
    loop {
        let mut session = Session::new(&*db, capabilities, &mut oracle);
        let drop_it = session.play(&mut script, log)?;
        session.end()?;
        let last = drop_it.is_none();
        if !capabilities.persistent {
            return Ok(());
        }
        db = reopen(subject, &directory, db, drop_it == Some(true), &mut oracle)?;
        if last {
            return Session::new(&*db, capabilities, &mut oracle).end();
        }
    }
}

fn open(subject: &Subject, directory: &Path) -> Outcome<Box<dyn Engine>> {
    let opened = subject.factory().open(directory, subject.options());
    opened.map_err(failed("open"))
}

fn reopen(
    subject: &Subject,
    directory: &Path,
    db: Box<dyn Engine>,
    drop_it: bool,
    oracle: &mut Oracle,
) -> Outcome<Box<dyn Engine>> {
    let names = db.trees().map_err(failed("trees"))?;
    let handles = |db: &dyn Engine| -> Outcome<Vec<TreeId>> {
        let handles = names.iter().map(|name| db.open_tree(name));
        handles
            .collect::<kv::Result<_>>()
            .map_err(failed("open_tree"))
    };
    let old = handles(&*db)?;
    if drop_it {
        drop(db);
    } else {
        db.close().map_err(failed("close"))?;
    }
    let db = open(subject, directory)?;
    let after = db.trees().map_err(failed("trees"))?;
    if after != names {
        return Err(format!("trees {names:?} are {after:?} after reopening"));
    }
    oracle.reopen(&old.into_iter().zip(handles(&*db)?).collect());
    Ok(db)
}

/// The engine between an open and a close, with its open snapshots and transactions.
struct Session<'e, 'm> {
    db: &'e dyn Engine,
    capabilities: &'m Capabilities,
    oracle: &'m mut Oracle,
    snapshots: Vec<(Box<dyn Snapshot + 'e>, View)>,
    txns: Vec<(Box<dyn Transaction + 'e>, Txn)>,
}

impl<'e, 'm> Session<'e, 'm> {
    fn new(
        db: &'e dyn Engine,
        capabilities: &'m Capabilities,
        oracle: &'m mut Oracle,
    ) -> Session<'e, 'm> {
        Session {
            db,
            capabilities,
            oracle,
            snapshots: Vec::new(),
            txns: Vec::new(),
        }
    }

    /// Execute steps to the end of the tape (returns `None`), or until the store must be reopened
    /// (returns whether it is dropped without a close).
    fn play(&mut self, script: &mut Script<'_>, log: &mut Vec<String>) -> Outcome<Option<bool>> {
        while let Some(step) = script.next() {
            log.push(format!("{step:?}"));
            if let Step::Reopen { drop } = step {
                if self.capabilities.persistent {
                    return Ok(Some(drop));
                }
                continue;
            }
            self.step(&step)?;
        }
        Ok(None)
    }

    /// End all open transactions and snapshots, and compare the content of the store.
    fn end(mut self) -> Outcome {
        self.txns.clear();
        for (snapshot, view) in std::mem::take(&mut self.snapshots) {
            compare_all(&*snapshot, &view).map_err(|e| format!("in an old snapshot: {e}"))?;
        }
        let now = self.db.begin_read().map_err(failed("begin_read"))?;
        compare_all(&*now, &self.oracle.now).map_err(|e| format!("at the end: {e}"))?;
        let count = self.db.trees().map_err(failed("trees"))?.len();
        match count == self.oracle.now.0.len() {
            true => Ok(()),
            false => Err(format!("{count} trees at the end")),
        }
    }

    /// Whether an open transaction of this thread blocks all other writes, because the engine has a
    /// single writer.
    fn writer_is_taken(&self) -> bool {
        !self.capabilities.concurrent_writers && !self.txns.is_empty()
    }

    fn step(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Change {
                pick,
                tree,
                change,
                level,
            } => self.change(*pick, *tree, change, *level),
            Step::Get { pick, tree, key } => self.read(*pick, *tree, |view, model, tree| {
                compare_get(view, model, tree, &key.0)
            }),
            Step::GetMany { pick, tree, keys } => self.read(*pick, *tree, |view, model, tree| {
                compare_many(view, model, tree, keys)
            }),
            Step::Scan {
                pick,
                tree,
                range,
                direction,
                moves,
            } => self.read(*pick, *tree, |view, model, tree| {
                compare_scan(view, model, tree, range.borrow(), *direction, moves)
            }),
            Step::Begin => self.begin(),
            Step::Commit { pick, level } => self.commit(*pick, *level),
            Step::Rollback { pick } => {
                if !self.txns.is_empty() {
                    let (txn, _) = self.txns.remove(pick % self.txns.len());
                    txn.rollback();
                }
                Ok(())
            }
            Step::OpenSnapshot => self.open_snapshot(),
            Step::CloseSnapshot { pick } => {
                if !self.snapshots.is_empty() {
                    self.snapshots.remove(pick % self.snapshots.len());
                }
                Ok(())
            }
            Step::Batch { changes, level } => self.batch(changes, *level),
            Step::Count { tree } => self.count(*tree),
            Step::CreateTree { name } => self.create_tree(*name),
            Step::DropTree { tree } => self.drop_tree(*tree),
            _ => self.upkeep(step),
        }
    }

    fn upkeep(&mut self, step: &Step) -> Outcome {
        if self.writer_is_taken() {
            return Ok(());
        }
        match step {
            Step::Checkpoint => self.db.checkpoint().map_err(failed("checkpoint")),
            Step::SyncLog => self.db.sync_log().map_err(failed("sync_log")),
            Step::Settle => {
                let settled = self.db.settle(Duration::from_millis(5));
                settled.map(drop).map_err(failed("settle"))
            }
            Step::Compact { tree, range } if self.capabilities.compaction => {
                let Some(tree) = pick_tree(&self.oracle.now, *tree) else {
                    return Ok(());
                };
                let watch = &mut |_| Flow::Continue;
                let compacted = self.db.compact(tree, range.borrow(), watch);
                compacted.map(drop).map_err(failed("compact"))
            }
            _ => Ok(()),
        }
    }

    /// Compare a read of the current state, of an open snapshot or of an open transaction.
    fn read(
        &mut self,
        pick: usize,
        tree: usize,
        compare: impl FnOnce(&dyn Snapshot, &View, TreeId) -> Outcome,
    ) -> Outcome {
        let place = pick % (1 + self.snapshots.len() + self.txns.len());
        let now;
        let (view, model, whose): (&dyn Snapshot, &View, String) = if place == 0 {
            now = self.db.begin_read().map_err(failed("begin_read"))?;
            (&*now, &self.oracle.now, "now".to_owned())
        } else if let Some((snapshot, view)) = self.snapshots.get(place - 1) {
            (&**snapshot, view, format!("in snapshot {}", place - 1))
        } else {
            let index = place - 1 - self.snapshots.len();
            let (txn, model) = &self.txns[index];
            (&**txn, &model.view, format!("in transaction {index}"))
        };
        match pick_tree(model, tree) {
            Some(tree) => compare(view, model, tree).map_err(|e| format!("{whose}: {e}")),
            None => Ok(()),
        }
    }

    /// Make one change in an open transaction, or in a transaction of its own.
    fn change(&mut self, pick: usize, tree: usize, change: &Change, level: Durability) -> Outcome {
        let place = pick % (1 + self.txns.len());
        let own = place == 0 && !self.writer_is_taken();
        if own {
            self.begin_one()?;
        }
        let index = match (own, place) {
            (true, _) => self.txns.len() - 1,
            (false, 0) => 0,
            (false, place) => place - 1,
        };
        let (mut txn, mut model) = self.txns.remove(index);
        let Some(tree) = pick_tree(&model.view, tree) else {
            return Ok(());
        };
        let expected = model.apply(tree, change, self.oracle.blind_conflicts());
        match apply(&mut *txn, tree, change) {
            Ok(answer) if answer == expected => {}
            Ok(answer) => return Err(format!("answered {answer:?}, not {expected:?}")),
            // The transaction is dropped in the engine and in the model.
            Err(e) if e.kind() == ErrorKind::Conflict => return self.may_conflict(&model, &e),
            Err(e) => return Err(failed("the change")(e)),
        }
        if own {
            return self.finish(txn, model, level);
        }
        self.txns.insert(index, (txn, model));
        Ok(())
    }

    fn may_conflict(&self, model: &Txn, error: &Error) -> Outcome {
        let open: Vec<&Txn> = self.txns.iter().map(|(_, model)| model).collect();
        match self.oracle.verdict(model, &open) {
            Verdict::Never => Err(format!("a conflict without a reason: {error}")),
            Verdict::May | Verdict::Must => Ok(()),
        }
    }

    fn begin_one(&mut self) -> Outcome {
        let txn = self.db.begin_write().map_err(failed("begin_write"))?;
        self.txns.push((txn, self.oracle.begin()));
        Ok(())
    }

    fn begin(&mut self) -> Outcome {
        if self.writer_is_taken() || TXNS <= self.txns.len() {
            return Ok(());
        }
        self.begin_one()
    }

    fn commit(&mut self, pick: usize, level: Durability) -> Outcome {
        if self.txns.is_empty() {
            return Ok(());
        }
        let (txn, model) = self.txns.remove(pick % self.txns.len());
        self.finish(txn, model, level)
    }

    fn finish(&mut self, txn: Box<dyn Transaction + 'e>, model: Txn, level: Durability) -> Outcome {
        match txn.commit(level) {
            Err(e) if e.kind() == ErrorKind::Conflict => return self.may_conflict(&model, &e),
            Err(e) => return Err(failed("commit")(e)),
            Ok(()) => {}
        }
        if self.oracle.verdict(&model, &[]) == Verdict::Must {
            return Err("committed, though another was first to commit a common key".to_owned());
        }
        let choices = self.oracle.commit(model);
        if choices.is_empty() {
            return Ok(());
        }
        let now = self.db.begin_read().map_err(failed("begin_read"))?;
        for (tree, key) in choices {
            let found = now.get(tree, &key).map_err(failed("get"))?;
            if found.is_none() {
                self.oracle.forget(tree, &key);
            }
        }
        Ok(())
    }

    fn open_snapshot(&mut self) -> Outcome {
        if self.snapshots.len() < SNAPSHOTS {
            let snapshot = self.db.begin_read().map_err(failed("begin_read"))?;
            self.snapshots.push((snapshot, self.oracle.now.clone()));
        }
        Ok(())
    }

    fn batch(&mut self, changes: &[(usize, Change)], level: Durability) -> Outcome {
        // On an engine without blind writes, a batch may wait for open transactions, which are on
        // this thread.
        if !self.capabilities.blind_writes && !self.txns.is_empty() || self.writer_is_taken() {
            return Ok(());
        }
        let mut batch = Batch::new();
        let mut model = Vec::new();
        for (tree, change) in changes {
            let Some(tree) = pick_tree(&self.oracle.now, *tree) else {
                return Ok(());
            };
            match change {
                Change::Put(key, value) => batch.put(tree, &key.0, &value.bytes()),
                Change::Delete(key) => batch.delete(tree, &key.0),
                Change::DeleteRange(range) => batch.delete_range(tree, range.borrow()),
                other => unreachable!("no batch holds {other:?}"),
            }
            model.push((tree, change));
        }
        self.db.write(&batch, level).map_err(failed("write"))?;
        self.oracle.write(&model);
        Ok(())
    }

    fn count(&mut self, tree: usize) -> Outcome {
        let Some(tree) = pick_tree(&self.oracle.now, tree) else {
            return Ok(());
        };
        let expected = self.oracle.now.map(tree).len() as u64;
        for scope in [StatScope::Quick, StatScope::Exact] {
            let stats = self.db.tree_stats(tree, scope);
            let entries = stats.map_err(failed("tree_stats"))?.entries;
            if entries.exact && entries.value != expected {
                return Err(format!("{scope:?} counts {entries:?}, not {expected}"));
            }
        }
        Ok(())
    }

    fn create_tree(&mut self, name: usize) -> Outcome {
        if self.writer_is_taken() {
            return Ok(());
        }
        let name = NAMES[name % NAMES.len()];
        let names = self.db.trees().map_err(failed("trees"))?;
        if !names.is_sorted() || names.len() != self.oracle.now.0.len() {
            return Err(format!("the trees are listed as {names:?}"));
        }
        let there = names.iter().any(|other| other == name);
        match self.db.create_tree(name, &TreeOptions::default()) {
            Ok(tree) if !there && !self.oracle.now.0.contains_key(&tree) => {
                self.oracle.create(tree);
                Ok(())
            }
            Err(e) if there && e.kind() == ErrorKind::Exists => Ok(()),
            other => Err(format!(
                "create_tree({name}) of {names:?} answers {other:?}"
            )),
        }
    }

    fn drop_tree(&mut self, tree: usize) -> Outcome {
        let readers = !self.snapshots.is_empty() && !self.capabilities.drop_with_readers;
        if readers || !self.txns.is_empty() {
            return Ok(());
        }
        let names = self.db.trees().map_err(failed("trees"))?;
        let Some(name) = names.get(tree % names.len().max(1)) else {
            return Ok(());
        };
        let handle = self.db.open_tree(name).map_err(failed("open_tree"))?;
        self.db.drop_tree(name).map_err(failed("drop_tree"))?;
        self.oracle.drop(handle);
        let now = self.db.begin_read().map_err(failed("begin_read"))?;
        match now.get(handle, b"k") {
            Err(e) if e.kind() == ErrorKind::Invalid => Ok(()),
            other => Err(format!("a dropped tree's handle answers {other:?}")),
        }
    }
}

fn pick_tree(view: &View, pick: usize) -> Option<TreeId> {
    let trees = view.trees();
    trees.get(pick % trees.len().max(1)).copied()
}

fn apply(txn: &mut dyn Transaction, tree: TreeId, change: &Change) -> kv::Result<Answer> {
    match change {
        Change::Put(key, value) => txn.put(tree, &key.0, &value.bytes())?,
        Change::Insert(key, value) => match txn.insert(tree, &key.0, &value.bytes()) {
            Err(e) if e.kind() == ErrorKind::Exists => return Ok(Answer::Exists),
            other => other?,
        },
        Change::Delete(key) => return Ok(Answer::Was(txn.delete(tree, &key.0)?)),
        Change::PutBlind(key, value) => txn.put_blind(tree, &key.0, &value.bytes())?,
        Change::DeleteBlind(key) => txn.delete_blind(tree, &key.0)?,
        Change::DeleteRange(range) => txn.delete_range(tree, range.borrow())?,
    }
    Ok(Answer::Done)
}
