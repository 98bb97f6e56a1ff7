//! The law of followers: whatever a primary does, a follower that appends its entries and applies
//! them in batches of any size has, at each position, the state that the primary had, also when it
//! is killed or loses power between any two writes of its disk.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use docdb::Store;
use docdb::oplog::entry::OpTime;
use kv::{Engine, EngineOptions};
use sim::{Crash, SimOptions, SimVfs};
use stdx::Rng;
use tempfile::TempDir;

use super::history::History;
use super::pair::{Member, options};
use super::state::State;
use crate::lab::op;

/// Where a primary was, and what it had.
struct Moment {
    at: OpTime,
    state: State,
    sessions: BTreeSet<u8>,
}

/// What a follower is stored in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Where {
    /// In memory: a kill loses nothing.
    Memory,
    /// LMDB, which is closed and opened again.
    Lmdb,
    /// betree on a simulated disk, which loses power.
    Disk,
}

/// A follower that can be killed.
pub(super) struct Follower {
    place: Where,
    directory: TempDir,
    pub(super) disk: Option<SimVfs>,
    engine: Option<Arc<dyn Engine>>,
    store: Option<Arc<Store>>,
}

impl Follower {
    pub(super) fn new(place: Where) -> Follower {
        let disk = place == Where::Disk;
        let mut follower = Follower {
            place,
            directory: tempfile::tempdir().unwrap(),
            disk: disk.then(|| SimVfs::new(SimOptions::default())),
            engine: None,
            store: None,
        };
        follower.open();
        follower.replica().follow(&op()).unwrap();
        follower
    }

    fn open(&mut self) {
        let path = self.directory.path().join("store");
        let engine: Arc<dyn Engine> = match (&self.disk, &self.engine) {
            (Some(disk), _) => open_on(disk, &path),
            (None, Some(engine)) => Arc::clone(engine),
            (None, None) => {
                let factory = match self.place {
                    Where::Lmdb => kv_lmdb::factory(),
                    _ => kv::memory::factory(),
                };
                Arc::from(factory.open(&path, &EngineOptions::default()).unwrap())
            }
        };
        self.engine = (self.place == Where::Memory).then(|| Arc::clone(&engine));
        self.store = Some(Store::open(engine, options(&self.directory)).unwrap());
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    pub(super) fn replica(&self) -> docdb::replica::Replica<'_> {
        self.store().replica().unwrap()
    }

    /// Kill it, with a power loss on a simulated disk, and open it again.
    pub(super) fn kill(&mut self, rng: &mut Rng) {
        self.store = None;
        if let Some(disk) = &self.disk {
            self.disk = Some(disk.crash(Crash::draw(rng)));
        }
        self.open();
    }
}

fn open_on(disk: &SimVfs, path: &Path) -> Arc<dyn Engine> {
    let settings = EngineOptions {
        interval: std::time::Duration::from_secs(3_600),
        ..EngineOptions::default()
    };
    let engine = kv_betree::open_with(Arc::new(disk.clone()), path, &settings);
    Arc::from(engine.unwrap())
}

/// Append and apply some of what the primary has.
fn advance(primary: &Member, follower: &Follower, moments: &[Moment], rng: &mut Rng) {
    let replica = follower.replica();
    let written = replica.written();
    let most = 1 + rng.index(40);
    let entries = primary.replica().stored_after(written.ts, most, usize::MAX);
    let entries = entries.unwrap();
    let values: Vec<&[u8]> = entries.iter().map(|entry| &*entry.value).collect();
    let done = replica
        .append(&op(), written, &values)
        .and_then(|_| follower.store().tend_oplog())
        .and_then(|()| {
            let until = moments[rng.index(moments.len())].at;
            match rng.chance(0.7) {
                true => replica.apply_to(&op(), until).map(|_| ()),
                false => Ok(()),
            }
        });
    if let Err(error) = done {
        let disk = follower.disk.as_ref();
        assert!(disk.is_some_and(SimVfs::has_stopped), "{error}");
    }
}

/// Compare what the follower has with what the primary had there. Whether that is known.
fn compare(follower: &Follower, moments: &[Moment], context: &str) -> bool {
    let applied = follower.replica().applied();
    let Some(moment) = moments.iter().find(|moment| moment.at == applied) else {
        return false;
    };
    let found = State::of(follower.store(), &moment.sessions);
    moment.state.check(&found, context);
    State::validate(follower.store(), context);
    true
}

fn run(seed: u64, steps: usize, place: Where, all: &mut Found) {
    let primary = Member::new(kv::memory::factory());
    let mut follower = Follower::new(place);
    let mut history = History::new(&primary.store, seed);
    let mut rng = Rng::new(seed ^ 0x5555);
    let mut moments = vec![Moment {
        at: OpTime::NONE,
        state: State::of(&primary.store, &BTreeSet::new()),
        sessions: BTreeSet::new(),
    }];
    for step in 0..steps {
        history.step();
        primary.store.tend_oplog().unwrap();
        let at = primary.replica().written();
        let moment = Moment {
            at,
            state: State::of(&primary.store, &history.sessions),
            sessions: history.sessions.clone(),
        };
        match moments.last_mut() {
            Some(last) if last.at == at => *last = moment,
            _ => moments.push(moment),
        }
        if !rng.chance(0.4) {
            continue;
        }
        let context = format!("seed {seed} step {step}");
        let kill = rng.chance(0.2);
        if let Some(disk) = follower.disk.as_ref().filter(|_| kill) {
            disk.stop_at(disk.ios() + rng.below(60));
        }
        advance(&primary, &follower, &moments, &mut rng);
        if kill {
            follower.kill(&mut rng);
        }
        all.compared += usize::from(compare(&follower, &moments, &context));
    }
    let last = moments.last().unwrap().at;
    while follower.replica().applied() != last {
        advance(&primary, &follower, &moments[moments.len() - 1..], &mut rng);
    }
    let context = format!("the end of seed {seed}");
    assert!(compare(&follower, &moments, &context));
    State::validate(follower.store(), &context);
    kinds(&primary, &mut all.kinds);
}

/// The kinds of the entries of a primary.
fn kinds(primary: &Member, all: &mut BTreeSet<String>) {
    for bytes in crate::replay::entries(&primary.store) {
        let entry = crate::replay::shown(&bytes);
        let mut kind = entry.get_str("op").unwrap().to_owned();
        if kind == "c" {
            kind = entry
                .get_document("o")
                .unwrap()
                .keys()
                .next()
                .unwrap()
                .clone();
        }
        all.insert(kind);
        let linked = entry.get_document("prevOpTime").ok();
        if linked.is_some_and(|at| at.get_i64("t").unwrap() != -1) {
            all.insert("chain".to_owned());
        }
    }
}

/// What a run found.
#[derive(Default)]
struct Found {
    compared: usize,
    kinds: BTreeSet<String>,
}

/// `replica`: Q2; `replica::apply`: J1, J2, J3 and J4; `entries::settle`: E3.
#[test]
fn a_follower_has_at_each_position_what_the_primary_had() {
    let mut found = Found::default();
    for seed in 0..40 {
        run(seed, 120, Where::Memory, &mut found);
    }
    for seed in 50..56 {
        run(seed, 80, Where::Lmdb, &mut found);
    }
    assert!(
        400 < found.compared,
        "{} states were compared",
        found.compared
    );
    for kind in [
        "i",
        "u",
        "d",
        "n",
        "applyOps",
        "chain",
        "create",
        "drop",
        "createIndexes",
        "startIndexBuild",
        "commitIndexBuild",
        "abortIndexBuild",
        "dropIndexes",
        "collMod",
        "convertToCapped",
        "renameCollection",
        "dropDatabase",
    ] {
        assert!(found.kinds.contains(kind), "{kind} was drawn");
    }
}

/// The same with power losses.
#[test]
fn a_follower_that_loses_power_continues_behind_its_mark() {
    let mut found = Found::default();
    for seed in 100..130 {
        run(seed, 100, Where::Disk, &mut found);
    }
    assert!(
        200 < found.compared,
        "{} states were compared",
        found.compared
    );
}
