//! A store, a server and a network in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bson::{RawDocument, RawDocumentBuf, doc};
use query::{Code, Error, Result};
use repl::log::Log;
use repl::message::{Envelope, Message};
use repl::position::{MemberId, Position, Term};
use stdx::sync::{Condvar, Mutex};
use tokio::sync::{mpsc, oneshot};

use super::super::{Input, key_of};
use crate::cluster::config::SetConfig;
use crate::cluster::host::{Host, Line};
use crate::cluster::letter::{self, EngineNote, Letter, position_of, runs_of};
use crate::cluster::network::{CopyDone, FetchDone, Fetched, Health, Network};
use crate::cluster::storage::{Read, Started, Storage, StoredEntry};
use crate::cluster::sync::letter::Asked;

/// An entry that has a value.
fn entry(at: Position, value: Option<i32>) -> StoredEntry {
    let mut document = letter::position(at);
    document.insert("value", value);
    let raw = RawDocumentBuf::try_from(&document).unwrap();
    raw.as_bytes().to_vec()
}

/// The value of an entry.
pub(super) fn value_of(entry: &[u8]) -> Option<i32> {
    let document = RawDocument::from_bytes(entry).unwrap();
    document.get("value").unwrap()?.as_i32()
}

/// A log in memory, which survives its driver.
#[derive(Default)]
pub(super) struct FakeStorage {
    state: Mutex<State>,
    resumed: Condvar,
    broken: AtomicBool,
    /// Syncs since they began to fail.
    failed: AtomicUsize,
    pub(super) rollbacks: AtomicUsize,
}

#[derive(Default)]
struct State {
    entries: Vec<StoredEntry>,
    removed: usize,
    applied: Position,
    committed: Position,
    /// The term in which clients write.
    leads: Option<Term>,
    stalled: bool,
}

impl State {
    fn last(&self) -> Position {
        let last = self.entries.last();
        last.map_or(Position::ZERO, |last| position_of(last).unwrap())
    }

    fn put(&mut self, term: Term, value: Option<i32>) -> Position {
        let at = Position {
            term,
            ts: self.last().ts + (1 << 32),
        };
        self.entries.push(entry(at, value));
        self.applied = at;
        at
    }
}

impl FakeStorage {
    /// A client writes.
    pub(super) fn write(&self, value: i32) -> Option<Position> {
        let mut state = self.state.lock();
        let term = state.leads?;
        Some(state.put(term, Some(value)))
    }

    pub(super) fn entries(&self) -> Vec<StoredEntry> {
        self.state.lock().entries.clone()
    }

    /// Let appends wait.
    pub(super) fn stall(&self, on: bool) {
        self.state.lock().stalled = on;
        self.resumed.notify_all();
    }

    pub(super) fn fail_syncs(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    pub(super) fn syncs(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn remove_first(&self) {
        self.state.lock().removed = 1;
    }

    /// What a crash of its process leaves.
    pub(super) fn crash(&self) {
        self.state.lock().leads = None;
    }
}

impl Storage for FakeStorage {
    fn start(&self) -> Result<Started> {
        let state = self.state.lock();
        let entries = state.entries.iter().map(Vec::as_slice);
        let log = Log::of(runs_of(Position::ZERO, entries)?).unwrap();
        let commit = state.committed;
        Ok(Started { log, commit })
    }

    fn last(&self) -> Position {
        self.state.lock().last()
    }

    fn applied(&self) -> Position {
        self.state.lock().applied
    }

    fn engine(&self) -> EngineNote {
        EngineNote {
            name: "fake".into(),
            key_max: 1_000,
        }
    }

    fn bytes(&self) -> u64 {
        let state = self.state.lock();
        state.entries.iter().map(|entry| entry.len() as u64).sum()
    }

    fn read(&self, after: Position, through: Position, bytes: usize) -> Result<Read> {
        let state = self.state.lock();
        let mut left = bytes;
        let mut found = Vec::new();
        for (i, entry) in state.entries.iter().enumerate() {
            let at = position_of(entry)?;
            if at <= after {
                continue;
            }
            if i < state.removed {
                return Ok(Read::TooOld);
            }
            if through < at || (left < entry.len() && !found.is_empty()) {
                break;
            }
            left = left.saturating_sub(entry.len());
            found.push(entry.clone());
        }
        Ok(Read::Entries(found))
    }

    fn append(&self, entries: &[StoredEntry]) -> Result<()> {
        let mut state = self.state.lock();
        while state.stalled {
            self.resumed.wait(&mut state);
        }
        assert_eq!(state.leads, None, "a primary appends nothing");
        let first = position_of(entries.first().unwrap())?;
        assert!(state.last() < first, "entries follow the last one");
        state.entries.extend_from_slice(entries);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        match self.broken.load(Ordering::Relaxed) {
            true => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                Err(Error::new(Code::INTERNAL_ERROR, "the disk is gone"))
            }
            false => Ok(()),
        }
    }

    fn apply(&self, to: Position, committed: bool) -> Result<()> {
        let mut state = self.state.lock();
        assert!(to <= state.last(), "what is applied was appended");
        state.applied = state.applied.max(to);
        if committed {
            state.committed = state.committed.max(to);
        }
        Ok(())
    }

    fn committed(&self, at: Position) {
        let mut state = self.state.lock();
        state.committed = state.committed.max(at);
    }

    fn roll_back(&self, to: Position) -> Result<()> {
        let mut state = self.state.lock();
        assert!(state.committed <= to, "committed entries stay");
        assert_eq!(state.leads, None);
        state.entries.retain(|e| position_of(e).unwrap() <= to);
        state.applied = state.applied.min(to);
        self.rollbacks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn lead(&self, term: Term) -> Result<Position> {
        let mut state = self.state.lock();
        assert_eq!(state.applied, state.last(), "all is applied before");
        state.leads = Some(term);
        Ok(state.put(term, None))
    }

    fn follow(&self) -> Result<Position> {
        let mut state = self.state.lock();
        state.leads = None;
        Ok(state.last())
    }
}

/// A server that only remembers whether clients may write.
#[derive(Default)]
pub(super) struct FakeHost {
    open: AtomicBool,
    pub(super) lines: Mutex<Vec<Line>>,
}

impl FakeHost {
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

impl Host for FakeHost {
    fn changed(&self) {}

    fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    fn shut(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.open.store(false, Ordering::Relaxed);
        Box::pin(tokio::task::yield_now())
    }

    fn applied(&self) {}

    fn configured(&self, _: &Arc<SetConfig>) {}

    fn limited(&self, _: usize) {}

    fn log(&self, line: Line) {
        self.lines.lock().push(line);
    }
}

/// Where a member is reached.
type Place = (mpsc::Sender<Input>, Arc<FakeStorage>);

/// A network in memory: all members, and those that are cut off.
#[derive(Default)]
pub(super) struct Wires {
    members: Mutex<BTreeMap<u32, Place>>,
    cut: Mutex<BTreeSet<u32>>,
}

impl Wires {
    pub(super) fn plug(&self, id: u32, inputs: mpsc::Sender<Input>, storage: Arc<FakeStorage>) {
        self.members.lock().insert(id, (inputs, storage));
    }

    pub(super) fn unplug(&self, id: u32) {
        self.members.lock().remove(&id);
    }

    pub(super) fn cut(&self, id: u32, on: bool) {
        let mut cut = self.cut.lock();
        match on {
            true => cut.insert(id),
            false => cut.remove(&id),
        };
    }

    fn reach(&self, from: u32, to: u32) -> Option<Place> {
        let cut = self.cut.lock();
        let whole = !cut.contains(&from) && !cut.contains(&to);
        self.members.lock().get(&to).filter(|_| whole).cloned()
    }
}

/// The network as one member sees it.
pub(super) struct FakeNetwork {
    pub(super) wires: Arc<Wires>,
    pub(super) config: Mutex<Option<Arc<SetConfig>>>,
}

impl FakeNetwork {
    fn key(&self) -> String {
        self.config
            .lock()
            .as_deref()
            .map_or_else(String::new, key_of)
    }
}

impl Network for FakeNetwork {
    fn configure(&self, config: &Arc<SetConfig>, _: u32) {
        *self.config.lock() = Some(Arc::clone(config));
    }

    fn send(&self, letter: Letter) {
        let (from, to) = (letter.envelope.from.0, letter.envelope.to.0);
        let Some((inputs, _)) = self.wires.reach(from, to) else {
            return;
        };
        // Through its bytes, as over a socket.
        let command = letter.to_command(&self.key()).unwrap();
        let raw = RawDocumentBuf::try_from(&command).unwrap();
        let (key, letter) = Letter::parse(&raw).unwrap();
        drop(inputs.try_send(Input::Letter(key, Box::new(letter))));
    }

    fn fetch(&self, envelope: Envelope, done: FetchDone) {
        let (wires, key) = (Arc::clone(&self.wires), self.key());
        drop(tokio::spawn(async move {
            done(fetched(&wires, key, envelope).await);
        }));
    }

    fn copy(&self, _: MemberId, _: Asked, done: CopyDone) {
        done(Err("this network copies nothing".to_owned()));
    }

    fn health(&self, _: u32) -> Health {
        Health::default()
    }
}

async fn fetched(
    wires: &Wires,
    key: String,
    envelope: Envelope,
) -> std::result::Result<Fetched, String> {
    let gone = || "no connection".to_owned();
    let (from, to) = (envelope.from.0, envelope.to.0);
    let (inputs, storage) = wires.reach(from, to).ok_or_else(gone)?;
    let (answer, served) = oneshot::channel();
    let sent = inputs.try_send(Input::Fetch(key, envelope, answer));
    sent.map_err(|_| gone())?;
    let served = served.await.map_err(|_| gone())?;
    let served = served.map_err(|error| error.message)?;
    wires.reach(from, to).ok_or_else(gone)?;
    let mut answer = served.envelope;
    let Message::Batch { after, runs, .. } = &mut answer.message else {
        return Ok(Fetched::Diverged(answer));
    };
    let read = storage.read(*after, served.through, 200).unwrap();
    let Read::Entries(entries) = read else {
        return Ok(Fetched::TooOld);
    };
    *runs = runs_of(*after, entries.iter().map(Vec::as_slice)).unwrap();
    Ok(Fetched::Batch(answer, entries))
}

/// A configuration of members with these numbers.
pub(super) fn config(members: &[u32], version: i64) -> SetConfig {
    config_with(members, version, 1_500)
}

/// The same with an election timeout in milliseconds.
pub(super) fn config_with(members: &[u32], version: i64, election: i32) -> SetConfig {
    let members = members.iter().map(|id| {
        doc! {"_id": i64::from(*id), "host": format!("h{id}:1")}
    });
    let config = doc! {
        "_id": "rs0", "version": version, "members": members.collect::<Vec<_>>(),
        "settings": {"electionTimeoutMillis": election, "heartbeatIntervalMillis": 100},
    };
    SetConfig::parse(&RawDocumentBuf::try_from(&config).unwrap()).unwrap()
}
