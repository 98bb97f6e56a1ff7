//! A store on a simulated disk and a model: every operation is recorded in the history and applied
//! to the model, and every answer is compared with both.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use betree::{Batch, Codec, Db, Durability, Error, ErrorKind, Options, Snapshot, TreeId};
use sim::SimVfs;
use sim::checker::{Change, History, State};

use crate::look::everything;

/// The directory of the store.
pub(crate) const DIRECTORY: &str = "/store";

/// The machine has stopped: the next event is a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop;

/// The result of an operation of a script.
pub(crate) type Step<T = ()> = Result<T, Stop>;

/// A store and its expected content.
pub(crate) struct World {
    pub(crate) vfs: SimVfs,
    pub(crate) options: Options,
    pub(crate) db: Option<Db>,
    pub(crate) history: History,
    /// The content that readers should currently see.
    pub(crate) model: State,
    pub(crate) held: Vec<(Snapshot, State, BTreeMap<String, TreeId>)>,
    pub(crate) ids: BTreeMap<String, TreeId>,
    /// Whether faults are injected: then errors are valid answers.
    pub(crate) faulty: bool,
    /// Whether the store has reported that it is closed for writes.
    pub(crate) poisoned: bool,
    /// The kinds of the errors so far.
    pub(crate) errors: Vec<ErrorKind>,
    /// For each key the commit of the last transaction that wrote it with conflict detection.
    pub(crate) written: BTreeMap<(String, Vec<u8>), u64>,
    pub(crate) values: u32,
    /// The codecs of bases that the store was opened with: runs keep those of their time.
    pub(crate) codecs: Vec<Codec>,
}

impl World {
    /// A world without a store yet, on this disk.
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
            codecs: Vec::new(),
        }
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().expect("the store is open")
    }

    /// Whether the store is not open, because a fault prevented it.
    pub(crate) fn is_down(&self) -> bool {
        assert!(self.db.is_some() || self.faulty, "the store is open");
        self.db.is_none()
    }

    /// Whether commits are logged; otherwise they are durable only with checkpoints.
    pub(crate) fn logged(&self) -> bool {
        self.options.log()
    }

    /// Open the store; with faults the opening may fail.
    pub(crate) fn open(&mut self) -> Step {
        assert!(self.db.is_none(), "closed before");
        let vfs = Arc::new(self.vfs.clone());
        say(|| format!("open {:?}: {:?}", self.vfs.files(), self.options));
        let codec = self.options.codec();
        if !self.codecs.contains(&codec) {
            self.codecs.push(codec);
        }
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

    /// Handle an error: a stop of the machine, or an allowed answer.
    pub(crate) fn failed(&mut self, error: Error) -> Step {
        say(|| format!("error {error}, stopped {}", self.vfs.has_stopped()));
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

    /// Check the result of a call that writes. Returns true if it succeeded.
    pub(crate) fn judge(&mut self, result: Result<(), Error>) -> Step<bool> {
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

    /// Run a commit: record it in the history, check its result, and apply it to the model.
    pub(crate) fn commit(
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
        let stats = |db: &Db| db.begin_read().map(|s| s.seq().0).unwrap_or(0);
        say(|| {
            let what = changes
                .first()
                .map(|c| format!("{c:?}").chars().take(60).collect::<String>());
            let (n, ios) = (changes.len(), self.vfs.ios());
            let seq = stats(self.db());
            format!(
                "commit {} of {n}: {what:?}, durable {durable}: {result:?}, seq {seq}, call {ios}",
                id.0
            )
        });
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
        // The chunks of a large commit use numbers even if the commit fails.
        let visible = seen < now && (done || self.is_visible(&changes));
        if done {
            // A range delete that finds nothing is not a commit.
            let is_nothing = || {
                let mut after = self.model.clone();
                changes.iter().for_each(|change| apply(&mut after, change));
                after == self.model
            };
            assert!(visible || is_nothing(), "what is acknowledged is visible");
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

    /// Whether a failed commit is visible nevertheless: a key has the value that it would have
    /// written. This is read from memory.
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

    /// A value that no other write has.
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

    /// Close the store and open it with other options: nothing may be lost.
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

    /// Abandon the store, as when its process ends.
    pub(crate) fn abandon(&mut self) {
        self.held.clear();
        self.db = None;
    }

    /// Check the content of an open store against the history, and continue with it. With injected
    /// faults it may be unreadable; then the store is abandoned again.
    pub(crate) fn adopt(&mut self) -> Step {
        let found = match self.found() {
            Ok(found) => found,
            Err(error) => {
                self.failed(error)?;
                self.abandon();
                return Ok(());
            }
        };
        let seq = self.db().begin_read().expect("an open store reads").seq();
        say(|| {
            format!(
                "found {:?} at {seq}, call {}",
                sizes(&found),
                self.vfs.ios()
            )
        });
        if let Err(counterexample) = self.history.check(&found) {
            panic!("{counterexample}");
        }
        self.history = History::new(found.clone());
        self.model = found;
        self.poisoned = false;
        self.written.clear();
        Ok(())
    }

    /// Continue with `state`, the content of the store.
    pub(crate) fn adopt_as(&mut self, state: State) {
        self.history = History::new(state.clone());
        self.model = state;
    }

    /// Rotate the data key of an encrypted store.
    pub(crate) fn rotate(&mut self) -> Step {
        if self.is_down() {
            return Ok(());
        }
        let rotated = self.db().rotate_keys(None, true);
        self.judge(rotated).map(drop)
    }

    /// The whole content, after a check (L4) that all structural laws hold and no space is lost.
    pub(crate) fn found(&self) -> Result<State, Error> {
        self.db().verify()?;
        everything(self.db())
    }
}

/// With `BETREE_SIM_TRACE` set, print each operation.
pub(crate) fn say(text: impl FnOnce() -> String) {
    if std::env::var_os("BETREE_SIM_TRACE").is_some() {
        println!("{}", text());
    }
}

fn sizes(state: &State) -> Vec<(&str, usize)> {
    state
        .iter()
        .map(|(name, tree)| (name.as_str(), tree.len()))
        .collect()
}

pub(crate) fn apply(state: &mut State, change: &Change) {
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
