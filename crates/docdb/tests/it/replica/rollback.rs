//! Taking back entries: the state after it is the state before them, with every index.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bson::{RawDocument, doc};
use docdb::oplog::entry::OpTime;
use docdb::replica::{Replica, Role};
use docdb::{InsertOptions, Store};
use kv::{Engine, EngineOptions};
use query::Code;
use sim::{Crash, SimOptions, SimVfs};
use stdx::Rng;

use super::history::History;
use super::pair::{Member, options};
use super::state::State;
use crate::lab::{ns, op, raw};
use crate::replay;

/// Where a primary was, and what it had.
struct Moment {
    at: OpTime,
    state: State,
    sessions: BTreeSet<u8>,
}

fn moment(store: &Store, history: &History) -> Moment {
    Moment {
        at: replica(store).written(),
        state: State::of(store, &history.sessions),
        sessions: history.sessions.clone(),
    }
}

fn replica(store: &Store) -> Replica<'_> {
    store.replica().unwrap()
}

/// Some steps of a history; the moments after each.
fn steps(store: &Arc<Store>, history: &mut History, count: usize, moments: &mut Vec<Moment>) {
    for _ in 0..count {
        history.step();
        store.tend_oplog().unwrap();
        let now = moment(store, history);
        match moments.last_mut() {
            Some(last) if last.at == now.at => *last = now,
            _ => moments.push(now),
        }
    }
}

/// Check that a store is where it was at a moment.
fn check(store: &Store, moment: &Moment, retired: &BTreeSet<u8>, context: &str) {
    assert_eq!(replica(store).written(), moment.at, "K2: {context}");
    assert_eq!(replica(store).applied(), moment.at, "K1: {context}");
    // A later write without an entry has no undo record either.
    let sessions = moment.sessions.difference(retired).copied().collect();
    let mut expected = moment.state.clone();
    expected.keep_sessions(&sessions);
    expected.check(&State::of(store, &sessions), context);
    State::validate(store, context);
    let last = replica(store).stored_after(OpTime::NONE.ts, usize::MAX, usize::MAX);
    let last = last.unwrap().last().map_or(OpTime::NONE, |entry| entry.at);
    assert_eq!(last, moment.at, "K1: the end of the oplog, {context}");
}

/// `replica::rollback`: K1, K2; `oplog::undo`: Z1, Z2. A primary is deposed, rolls back and leads
/// again, several times.
#[test]
fn a_rollback_leads_to_the_state_before() {
    for factory in [kv::memory::factory(), kv_lmdb::factory()] {
        let seeds = if factory.name() == "lmdb" {
            100..104
        } else {
            0..30
        };
        for seed in seeds {
            let member = Member::new(factory);
            let store = &member.store;
            replica(store).keep_undo(&op(), true).unwrap();
            let mut history = History::new(store, seed);
            let mut rng = Rng::new(seed ^ 0x7777);
            let mut moments = vec![moment(store, &history)];
            for term in 2..6 {
                let count = 10 + rng.index(40);
                steps(store, &mut history, count, &mut moments);
                // Some of it is committed, and what takes it back is removed.
                let committed = rng.index(moments.len());
                replica(store).set_committed(moments[committed].at);
                store.tend_oplog().unwrap();
                moments.drain(..committed);
                let context = format!("{} seed {seed} term {term}", member.factory.name());
                moments.truncate(1 + rng.index(moments.len()));
                let back = moments.last().unwrap();
                replica(store).follow(&op()).unwrap();
                replica(store).roll_back_to(&op(), back.at).unwrap();
                check(store, back, &history.retired, &context);
                history.resume(store, &back.sessions);
                replica(store).lead(&op(), term).unwrap();
            }
            store.tend_oplog().unwrap();
        }
    }
}

/// A store on a simulated disk.
fn open(disk: &SimVfs, directory: &tempfile::TempDir) -> Arc<Store> {
    let path: &Path = &directory.path().join("store");
    let settings = EngineOptions {
        interval: std::time::Duration::from_secs(3_600),
        ..EngineOptions::default()
    };
    let engine = kv_betree::open_with(Arc::new(disk.clone()), path, &settings);
    let engine: Arc<dyn Engine> = Arc::from(engine.unwrap());
    Store::open(engine, options(directory)).unwrap()
}

/// `replica::rollback`: K1. The power fails between any two writes of a rollback, and again.
#[test]
fn a_rollback_that_loses_power_is_completed_by_the_next_call() {
    let (mut stopped, mut between) = (0, 0);
    for seed in 200..250 {
        let directory = tempfile::tempdir().unwrap();
        let mut disk = SimVfs::new(SimOptions::default());
        let mut store = open(&disk, &directory);
        replica(&store).keep_undo(&op(), true).unwrap();
        let mut history = History::new(&store, seed);
        let mut rng = Rng::new(seed ^ 0x7777);
        let mut moments = vec![moment(&store, &history)];
        steps(&store, &mut history, 50, &mut moments);
        let back = moments.swap_remove(rng.index(moments.len()));
        replica(&store).follow(&op()).unwrap();
        let last = replica(&store).sync().unwrap();
        for _ in 0..4 {
            disk.stop_at(disk.ios() + rng.below(120));
            let done = replica(&store).roll_back_to(&op(), back.at);
            assert!(done.is_ok() || disk.has_stopped(), "seed {seed}: {done:?}");
            stopped += usize::from(done.is_err());
            history.release();
            drop(store);
            disk = disk.crash(Crash::draw(&mut rng));
            store = open(&disk, &directory);
            assert_eq!(replica(&store).role(), Role::Follower, "seed {seed}");
            let (applied, written) = (replica(&store).applied(), replica(&store).written());
            assert!(applied.ts <= written.ts, "K2: seed {seed}");
            between += usize::from(applied != back.at && applied != last);
        }
        replica(&store).roll_back_to(&op(), back.at).unwrap();
        check(&store, &back, &history.retired, &format!("seed {seed}"));
    }
    assert!(
        20 < stopped && 5 < between,
        "{stopped} stopped, {between} between"
    );
}

/// `oplog::undo`: Z1. A new primary that applies what is not committed can take it back.
#[test]
fn what_was_applied_before_a_term_is_taken_back() {
    for seed in 300..315 {
        let primary = Member::new(kv::memory::factory());
        let follower = Member::follower(kv::memory::factory());
        follower.replica().keep_undo(&op(), true).unwrap();
        let mut history = History::new(&primary.store, seed);
        let mut moments = vec![moment(&primary.store, &history)];
        steps(&primary.store, &mut history, 60, &mut moments);
        let mut rng = Rng::new(seed);
        while follower.replica().written() != primary.replica().written() {
            follower.fetch(&primary, 1 + rng.index(20)).unwrap();
        }
        let last = moments.last().unwrap();
        follower.replica().apply_to(&op(), last.at).unwrap();
        let found = State::of(&follower.store, &last.sessions);
        last.state.check(&found, &format!("seed {seed}, applied"));
        let back = &moments[rng.index(moments.len())];
        follower.replica().roll_back_to(&op(), back.at).unwrap();
        check(
            &follower.store,
            back,
            &history.retired,
            &format!("seed {seed}"),
        );
    }
}

fn insert(store: &Store, id: i32) {
    let document = raw(&doc! { "_id": id });
    let documents: [&RawDocument; 1] = [&document];
    let options = InsertOptions::default();
    store.insert(&op(), &ns("c"), &documents, options).unwrap();
}

/// A follower takes back what it has not applied by removing it, and gets other entries then.
#[test]
fn what_is_not_applied_is_removed_and_replaced() {
    for factory in [
        kv::memory::factory(),
        kv_betree::factory(),
        kv_lmdb::factory(),
    ] {
        let (first, second) = (Member::new(factory), Member::new(factory));
        let mut follower = Member::follower(factory);
        for id in 0..30 {
            insert(&first.store, id);
        }
        for _ in 0..40 {
            follower.fetch(&first, 1).unwrap();
        }
        let all = first
            .replica()
            .stored_after(OpTime::NONE.ts, 99, usize::MAX)
            .unwrap();
        assert_eq!(follower.replica().written(), all.last().unwrap().at);
        follower.replica().apply_to(&op(), all[9].at).unwrap();
        // Another primary, with the same first entries.
        second.replica().follow(&op()).unwrap();
        second.append(&all[..20]).unwrap();
        second.replica().apply_to(&op(), all[19].at).unwrap();
        second.replica().lead(&op(), 4).unwrap();
        for id in 100..130 {
            insert(&second.store, id);
        }
        follower.replica().roll_back_to(&op(), all[19].at).unwrap();
        assert_eq!(follower.replica().written(), all[19].at, "K2");
        assert_eq!(follower.replica().applied(), all[9].at);
        for round in 0..2 {
            if round == 1 && !follower.reopen() {
                break;
            }
            follower.fetch(&second, 99).unwrap();
            let last = second.replica().written();
            follower.replica().apply_to(&op(), last).unwrap();
            let shown = replay::entries(&follower.store);
            assert_eq!(shown, replay::entries(&second.store));
            let totals = second.store.oplog_totals().unwrap();
            assert_eq!(follower.store.oplog_totals().unwrap(), totals);
        }
    }
}

/// Without a record, nothing is taken back; and no position that is not in the oplog.
#[test]
fn what_cannot_be_taken_back_is_refused() {
    let member = Member::new(kv::memory::factory());
    insert(&member.store, 1);
    let begun = member.replica().written();
    let change = crate::write::set(doc! { "_id": 1 }, doc! { "$set": { "a": 1 } });
    member
        .store
        .update(&op(), &ns("c"), &[change], true, false)
        .unwrap();
    let refused = member.replica().roll_back_to(&op(), begun).unwrap_err();
    assert_eq!(refused.code, Code::ILLEGAL_OPERATION, "a primary");
    member.replica().follow(&op()).unwrap();
    let refused = member.replica().roll_back_to(&op(), begun).unwrap_err();
    assert!(refused.message.contains("has no undo record"), "{refused}");
    let other = OpTime { term: 9, ..begun };
    let refused = member.replica().roll_back_to(&op(), other).unwrap_err();
    assert_eq!(refused.code, Code::CAPPED_POSITION_LOST);
    assert_ne!(member.replica().applied(), begun);
    let follower = Member::follower(kv::memory::factory());
    follower.fetch(&member, usize::MAX).unwrap();
    let before_all = OpTime {
        term: 0,
        ..OpTime::NONE
    };
    follower.replica().roll_back_to(&op(), before_all).unwrap();
    assert_eq!(follower.replica().written(), OpTime::NONE);
    follower.fetch(&member, usize::MAX).unwrap();
    assert_eq!(follower.replica().written(), member.replica().written());
}

/// `replica::removed`: Y1.
#[test]
fn documents_that_are_rolled_back_are_saved_in_files() {
    use std::os::unix::fs::PermissionsExt;
    let member = Member::new(kv::memory::factory());
    member.replica().keep_undo(&op(), true).unwrap();
    insert(&member.store, 1);
    let back = member.replica().written();
    let change = crate::write::set(doc! { "_id": 1 }, doc! { "$set": { "a": 1 } });
    member
        .store
        .update(&op(), &ns("c"), &[change], true, false)
        .unwrap();
    insert(&member.store, 2);
    member.replica().follow(&op()).unwrap();
    let removed = member.replica().roll_back_to(&op(), back).unwrap();
    assert_eq!((removed.saved, removed.unsaved), (2, 0));
    let [file] = &removed.files[..] else {
        panic!("{removed:?}");
    };
    let mut expected = raw(&doc! { "_id": 1, "a": 1 }).into_bytes();
    expected.extend(raw(&doc! { "_id": 2 }).into_bytes());
    assert_eq!(std::fs::read(file).unwrap(), expected);
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "Y1");
    let place = file.parent().unwrap();
    assert!(place.starts_with(member.directory.path().join("rollback")));
    let mode = std::fs::metadata(place).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "Y1");
}
