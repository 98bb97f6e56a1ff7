//! Restoring to a time: whatever a primary does, each of its backups, brought to a later position
//! by the archived entries, has the state that the primary had there.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bson::{Timestamp, doc};
use docdb::oplog::entry::OpTime;
use docdb::replica::{Replay, StoredEntry};
use docdb::{InsertOptions, Options, Store};
use kv::{Durability, EngineOptions, Factory, Flow};
use query::{Code, Result};
use stdx::Rng;
use stdx::sync::atomic::{AtomicBool, Ordering};

use super::history::History;
use super::pair::{Member, options};
use super::state::State;
use crate::lab::{ns, op, raw};
use crate::write::set;

/// Where a primary was, and what it had.
struct Moment {
    at: OpTime,
    state: State,
    sessions: BTreeSet<u8>,
}

/// A copy of a store, and a time up to which it has every write.
struct Base {
    directory: tempfile::TempDir,
    floor: Timestamp,
}

/// All entries that a store has kept.
struct Archive(Vec<StoredEntry>);

fn at(time: u32, increment: u32) -> Timestamp {
    Timestamp { time, increment }
}

const END: Timestamp = Timestamp {
    time: u32::MAX,
    increment: u32::MAX,
};

impl Archive {
    /// Add what a primary has written since.
    fn fetch(&mut self, primary: &Store) {
        let after = self.0.last().map_or(OpTime::NONE.ts, |entry| entry.at.ts);
        let until = primary.oplog_visible().unwrap();
        let replica = primary.replica().unwrap();
        let found = replica.stored_after(after, usize::MAX, usize::MAX).unwrap();
        let settled = found.into_iter().filter(|entry| entry.at.ts <= until);
        self.0.extend(settled);
    }

    fn after(&self, from: OpTime) -> impl Iterator<Item = Result<StoredEntry>> {
        let later = self.0.iter().filter(move |entry| from.ts < entry.at.ts);
        later.cloned().map(Ok)
    }
}

impl Base {
    fn of(store: &Store) -> Base {
        let directory = tempfile::tempdir().unwrap();
        let floor = store.oplog_visible().unwrap();
        let path = directory.path().join("copy");
        let engine = store.engine();
        engine.backup(&path, &mut |_| Flow::Continue).unwrap();
        Base { directory, floor }
    }

    /// Open a copy of the copy.
    fn open(&self, factory: &dyn Factory) -> (tempfile::TempDir, Arc<Store>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        copy_all(&self.directory.path().join("copy"), &path);
        let engine = factory.open(&path, &EngineOptions::default()).unwrap();
        let options = Options {
            follower: true,
            ..options(&directory)
        };
        let store = Store::open(Arc::from(engine), options).unwrap();
        (directory, store)
    }

    fn replay(&self, store: &Store, archive: &Archive, until: Timestamp) -> Result<Replay> {
        let replica = store.replica().unwrap();
        let from = replica.last_at(self.floor)?.unwrap();
        let mut entries = archive.after(from);
        replica.replay(&op(), (from, until), &mut entries, &mut |_| Ok(()))
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// One history, and restores to random moments of it. Returns how many were compared.
fn run(factory: &'static dyn Factory, seed: u64, restores: usize) -> usize {
    let primary = Member::new(factory);
    let store = &primary.store;
    let mut history = History::new(store, seed);
    let mut rng = Rng::new(seed ^ 0x3333);
    let mut archive = Archive(Vec::new());
    let (mut copies, mut moments) = (vec![Base::of(store)], Vec::<Moment>::new());
    for _ in 0..60 {
        history.step();
        archive.fetch(store);
        store.tend_oplog().unwrap();
        let now = Moment {
            at: primary.replica().written(),
            state: State::of(store, &history.sessions),
            sessions: history.sessions.clone(),
        };
        match moments.last_mut() {
            Some(last) if last.at == now.at => *last = now,
            _ => moments.push(now),
        }
        if rng.chance(0.05) {
            copies.push(Base::of(store));
        }
    }
    for _ in 0..restores {
        let moment = &moments[rng.index(moments.len())];
        let fits = copies.iter().filter(|copy| copy.floor <= moment.at.ts);
        let fits: Vec<&Base> = fits.collect();
        let copy = fits[rng.index(fits.len())];
        let (_directory, restored) = copy.open(factory);
        let context = format!("{} seed {seed}, {:?}", factory.name(), moment.at);
        // Any time before the next entry is the same moment.
        let later = archive.0.iter().find(|entry| moment.at.ts < entry.at.ts);
        let until = match later {
            Some(next) if rng.chance(0.5) => {
                let ts = next.at.ts;
                if ts.increment == 0 {
                    at(ts.time - 1, u32::MAX)
                } else {
                    at(ts.time, ts.increment - 1)
                }
            }
            None if rng.chance(0.5) => END,
            _ => moment.at.ts,
        };
        let done = copy.replay(&restored, &archive, until).expect(&context);
        assert_eq!(done.end, moment.at, "W3: {context}");
        assert_eq!(done.next, later.map(|entry| entry.at), "{context}");
        let found = State::of(&restored, &moment.sessions);
        moment.state.check(&found, &context);
        State::validate(&restored, &context);
        let replica = restored.replica().unwrap();
        replica.lead(&op(), 9).unwrap();
    }
    history.release();
    restores
}

/// `replica::replay`: W3. `ROMANESCO_RESTORES` is the number of restores.
#[test]
fn a_backup_and_the_archive_lead_to_every_moment() {
    let wanted = std::env::var("ROMANESCO_RESTORES");
    let wanted: usize = wanted.map_or(48, |number| number.parse().unwrap());
    let mut compared = 0;
    for seed in 0.. {
        let factory = match seed % 4 {
            3 => kv_lmdb::factory(),
            _ => kv_betree::factory(),
        };
        compared += run(factory, seed, 12);
        if wanted <= compared {
            break;
        }
    }
    println!("{compared} restores");
}

/// `replica::replay`: W1, W2. Copies that are made while several threads write have entries without
/// some of those before; two copies lead to one state.
#[test]
fn copies_under_writes_are_completed_from_the_archive() {
    let primary = Member::new(kv_betree::factory());
    let store = &primary.store;
    primary.replica().keep_undo(&op(), true).unwrap();
    let collections = ["a", "b", "c", "d"];
    for coll in collections {
        let documents: Vec<_> = (0..20).map(|id| raw(&doc! { "_id": id, "n": 0 })).collect();
        let documents: Vec<_> = documents.iter().map(AsRef::as_ref).collect();
        let options = InsertOptions::default();
        store.insert(&op(), &ns(coll), &documents, options).unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writers = collections.map(|coll| {
        let (store, stop) = (Arc::clone(store), Arc::clone(&stop));
        let body = move || {
            let mut op = op();
            op.durability = Durability::Group;
            let mut number = 0_i32;
            while !stop.load(Ordering::Acquire) && number < 3_000 {
                number += 1;
                let change = doc! { "$inc": { "n": 1 }, "$set": { "last": number } };
                let change = [set(doc! { "_id": number % 20 }, change)];
                store.update(&op, &ns(coll), &change, true, false).unwrap();
            }
        };
        stdx::sync::spawn("writer", body).unwrap()
    });
    let copies: Vec<Base> = (0..4).map(|_| Base::of(store)).collect();
    stop.store(true, Ordering::Release);
    for writer in writers {
        writer.join().unwrap();
    }
    let mut archive = Archive(Vec::new());
    archive.fetch(store);
    let last = primary.replica().written();
    let none = BTreeSet::new();
    let mut middle = None;
    for copy in &copies {
        let (_directory, restored) = copy.open(kv_betree::factory());
        let done = copy.replay(&restored, &archive, END).unwrap();
        assert_eq!((done.end, done.next), (last, None));
        State::of(store, &none).check(&State::of(&restored, &none), "at the end");
        State::validate(&restored, "at the end");
        middle = Some(done.begin);
    }
    // From each copy the state at the begin of the last one is the same.
    let (middle, mut expected) = (middle.unwrap(), None);
    for copy in &copies {
        let (_directory, restored) = copy.open(kv_betree::factory());
        copy.replay(&restored, &archive, middle.ts).unwrap();
        let found = State::of(&restored, &none);
        expected
            .get_or_insert_with(|| found.clone())
            .check(&found, "in the middle");
    }
}

/// `replica::replay`: W1, W2. The copy has an entry, and not the one before, which was being
/// committed; what follows the hole is taken back, and comes from the archive.
#[test]
fn a_copy_with_a_hole_is_completed() {
    let factory = kv_betree::factory();
    let primary = Member::new(factory);
    let store = &primary.store;
    primary.replica().keep_undo(&op(), true).unwrap();
    let put = |id: i32, number: i32| {
        let mut change = set(doc! { "_id": id }, doc! { "$set": { "n": number } });
        change.upsert = true;
        store
            .update(&op(), &ns("c"), &[change], true, false)
            .unwrap();
    };
    put(1, 1);
    put(2, 1);
    let floor = store.oplog_visible().unwrap();
    // The history of a store that has committed the second write first.
    let early = Base {
        floor,
        ..Base::of(store)
    };
    put(1, 2);
    put(2, 2);
    let mut archive = Archive(Vec::new());
    archive.fetch(store);
    let (directory, holed) = early.open(factory);
    let replica = holed.replica().unwrap();
    replica.keep_undo(&op(), true).unwrap();
    let last = archive.0.last().unwrap().clone();
    replica
        .append(&op(), replica.written(), &[&last.value])
        .unwrap();
    replica.apply_to(&op(), last.at).unwrap();
    let done = early.replay(&holed, &archive, END).unwrap();
    assert_eq!((done.begin.ts, done.end, done.entries), (floor, last.at, 2));
    let none = BTreeSet::new();
    State::of(store, &none).check(&State::of(&holed, &none), "with a hole");
    drop(directory);
}

#[test]
fn what_cannot_be_restored_is_named() {
    let factory = kv_betree::factory();
    let primary = Member::new(factory);
    let store = &primary.store;
    let insert = |id: i32| {
        let document = raw(&doc! { "_id": id });
        let options = InsertOptions::default();
        store
            .insert(&op(), &ns("c"), &[&document], options)
            .unwrap();
        primary.replica().written()
    };
    let first = insert(1);
    let mut archive = Archive(Vec::new());
    archive.fetch(store);
    let second = insert(2);
    let copy = Base::of(store);
    let fails = |archive: &Archive, until| {
        let (_directory, restored) = copy.open(factory);
        copy.replay(&restored, archive, until).unwrap_err()
    };
    let from = |position, archive: &Archive| {
        let (_directory, restored) = copy.open(factory);
        let replica = restored.replica().unwrap();
        let mut entries = archive.after(position);
        let done = replica.replay(&op(), (position, END), &mut entries, &mut |_| Ok(()));
        done.map(|done| done.end)
    };
    assert_eq!(from(second, &archive).unwrap(), second);
    let short = from(first, &archive).unwrap_err();
    assert!(short.message.contains("the archive ends at"), "{short:?}");
    archive.fetch(store);
    assert_eq!(from(first, &archive).unwrap(), second);
    let early = fails(&archive, first.ts);
    assert_eq!(early.code, Code::BAD_VALUE);
    assert!(early.message.contains("use an earlier backup"), "{early:?}");
    // Another deployment.
    let ts = at(second.ts.time + 1, 1);
    let unknown = from(OpTime { ts, term: 1 }, &archive).unwrap_err();
    assert!(
        unknown.message.contains("another deployment"),
        "{unknown:?}"
    );
    let mut other = Archive(archive.0.clone());
    other.0.last_mut().unwrap().value.push(0);
    let differs = from(first, &other).unwrap_err();
    assert_eq!(differs.code, Code::ILLEGAL_OPERATION, "{differs:?}");
    // A primary replays nothing.
    let mut none = archive.after(second);
    let replica = primary.replica();
    let done = replica.replay(&op(), (second, END), &mut none, &mut |_| Ok(()));
    assert_eq!(done.unwrap_err().code, Code::ILLEGAL_OPERATION);
}
