//! Initial sync: a store that copies another one while that one is changed.

use std::collections::BTreeSet;

use bson::{RawDocumentBuf, doc, rawdoc};
use docdb::oplog::entry::OpTime;
use docdb::replica::Replica;
use docdb::replica::copy::{Origin, Part, Phase, Portion, Wanted};
use docdb::{InsertOptions, Namespace};
use query::{Code, Result};
use sim::SimVfs;
use stdx::Rng;

use super::history::History;
use super::law::{Follower, Where};
use super::pair::Member;
use super::state::State;
use crate::lab::{op, raw};

/// Bytes of a catalog.
const CATALOG: usize = 1 << 20;

/// Begin a copy.
fn begin(from: Replica<'_>, to: Replica<'_>) -> Result<Origin> {
    let origin = from.origin(&op(), CATALOG).unwrap();
    to.begin_copy(&op(), &rawdoc! { "source": "a" }, &origin)?;
    Ok(origin)
}

/// What a copy lacks next.
fn wanted(to: Replica<'_>, records: usize) -> Wanted {
    let copy = to.copying().unwrap();
    Wanted {
        // It may have been killed before it has applied these.
        after: to.written(),
        since: copy.since,
        left: copy.left.front().cloned(),
        entries: 3_000,
        records,
    }
}

/// Take the next portion; returns whether the copy is at the time of the source then.
fn step(from: Replica<'_>, to: Replica<'_>, records: usize) -> Result<bool> {
    let portion = from.portion(&op(), &wanted(to, records)).unwrap();
    to.take_portion(&op(), &portion)?;
    Ok(portion.whole)
}

fn is_copied(of: Replica<'_>) -> bool {
    matches!(of.copy_next(), Some((_, None)))
}

/// The source of a copy: the primary, or a secondary that follows it.
struct Source {
    primary: Member,
    secondary: Option<Member>,
}

impl Source {
    fn new(secondary: bool) -> Source {
        let member = |yes: bool| yes.then(|| Member::follower(kv_lmdb::factory()));
        Source {
            primary: Member::new(kv::memory::factory()),
            secondary: member(secondary),
        }
    }

    fn member(&self) -> &Member {
        self.secondary.as_ref().unwrap_or(&self.primary)
    }

    /// Let the secondary come closer.
    fn advance(&self, rng: &mut Rng) {
        self.primary.store.tend_oplog().unwrap();
        let Some(secondary) = &self.secondary else {
            return;
        };
        secondary.fetch(&self.primary, 1 + rng.index(30)).unwrap();
        let written = secondary.replica().written();
        let until = match rng.chance(0.5) {
            true => written,
            false => {
                let entries = secondary.replica();
                let after = entries.applied().ts;
                let some = entries.stored_after(after, 1 + rng.index(9), usize::MAX);
                some.unwrap().last().map_or(written, |entry| entry.at)
            }
        };
        secondary.replica().apply_to(&op(), until).unwrap();
    }
}

#[derive(Default)]
struct Seen {
    portions: usize,
    parts: usize,
    kills: usize,
    begun: usize,
}

/// Copy a store with a random history, which continues meanwhile.
fn run(seed: u64, place: Where, secondary: bool, seen: &mut Seen) {
    let source = Source::new(secondary);
    let mut history = History::new(&source.primary.store, seed);
    let mut rng = Rng::new(seed ^ 0x7777);
    for _ in 0..40 + rng.index(60) {
        history.step();
        source.advance(&mut rng);
    }
    while source.member().replica().applied() == OpTime::NONE {
        history.step();
        source.advance(&mut rng);
    }
    let mut copy = Follower::new(place);
    let mut steps = 0;
    while !is_copied(copy.replica()) {
        steps += 1;
        let context = format!("seed {seed} portion {steps} {place:?}");
        // Also a busy source is copied: no more is written than read.
        for _ in 0..rng.index(3) {
            history.step();
        }
        source.advance(&mut rng);
        let kill = rng.chance(0.15);
        if let Some(disk) = copy.disk.as_ref().filter(|_| kill) {
            disk.stop_at(disk.ios() + rng.below(60));
        }
        let under_way = |phase| phase == Phase::Copying;
        let begun = copy.replica().copying().map(|copy| copy.phase);
        let from = source.member().replica();
        let done = if begun.is_some_and(under_way) {
            step(from, copy.replica(), rng.index(700))
        } else {
            seen.begun += 1;
            begin(from, copy.replica()).map(|_| true)
        };
        let same = match done {
            Ok(whole) => whole,
            Err(error) => {
                let stopped = copy.disk.as_ref().is_some_and(SimVfs::has_stopped);
                assert!(stopped, "{context}: {error}");
                false
            }
        };
        if kill {
            copy.kill(&mut rng);
            seen.kills += 1;
        }
        seen.portions += 1;
        // Killed or not: what it has is what the source had there.
        if same && !kill {
            let left = copy.replica().copying().unwrap().left;
            let open = left.iter().filter_map(|left| match left.part {
                Part::Collection(uuid) => Some(uuid),
                _ => None,
            });
            let all = State::of(&source.member().store, &BTreeSet::new());
            let part = State::of(copy.store(), &BTreeSet::new());
            all.check_part(&part, &open.collect(), &context);
            if rng.chance(0.1) {
                State::validate(copy.store(), &context);
            }
            seen.parts += 1;
        }
    }
    let context = format!("the end of seed {seed} {place:?}");
    compare(&source, &copy, &history, &context);
    let floor = copy.replica().complete_copy(&op()).unwrap();
    assert_eq!(floor, copy.replica().applied());
    // From now on it is a member as any other, with exact marks.
    copy.replica().keep_undo(&op(), true).unwrap();
    copy.kill(&mut rng);
    assert_eq!(copy.replica().copying().unwrap().phase, Phase::Complete);
    copy.replica().settle_copy(&op()).unwrap();
    for _ in 0..30 {
        history.step();
        source.advance(&mut rng);
    }
    let after = copy.replica().written();
    let entries = source.member().replica();
    let entries = entries
        .stored_after(after.ts, usize::MAX, usize::MAX)
        .unwrap();
    let values: Vec<&[u8]> = entries.iter().map(|entry| &*entry.value).collect();
    copy.replica().append(&op(), after, &values).unwrap();
    let at = source.member().replica().applied();
    copy.replica().apply_to(&op(), at).unwrap();
    compare(&source, &copy, &history, &context);
}

/// Check that a copy has what its source has; both are at the same position.
fn compare(source: &Source, copy: &Follower, history: &History, context: &str) {
    let mut wanted = wanted_all();
    wanted.after = copy.replica().applied();
    // The source may have an entry that the copy does not know yet.
    while let portion = source.member().replica().portion(&op(), &wanted).unwrap()
        && !portion.entries.is_empty()
    {
        let values: Vec<&[u8]> = portion.entries.iter().map(Vec::as_slice).collect();
        let replica = copy.replica();
        replica.append(&op(), replica.written(), &values).unwrap();
        wanted.after = replica.apply_to(&op(), portion.at).unwrap();
    }
    let sessions = &history.sessions;
    let known = match source.secondary {
        // It may not have the last ones yet.
        Some(_) => &BTreeSet::new(),
        None => sessions,
    };
    let mut all = State::of(&source.member().store, known);
    let mut found = State::of(copy.store(), known);
    let since = copy.store().oplog_after(OpTime::NONE.ts, 1);
    assert_eq!(since.unwrap_err().code, Code::CAPPED_POSITION_LOST, "N5");
    let first = docdb::OplogReader::from_start(copy.store())
        .unwrap()
        .next(1, 1);
    let first = first.unwrap().remove(0).get_timestamp("ts").unwrap();
    all.keep_images_after(first);
    found.keep_images_after(first);
    all.check(&found, context);
    State::validate(copy.store(), context);
}

fn wanted_all() -> Wanted {
    Wanted {
        after: OpTime::NONE,
        since: OpTime::NONE,
        left: None,
        entries: usize::MAX,
        records: 0,
    }
}

/// `copy`: Y1, Y2, Y3 and Y4.
#[test]
fn a_store_that_is_copied_while_it_is_changed_is_copied_exactly() {
    let mut seen = Seen::default();
    for seed in 0..20 {
        let place = match seed % 3 {
            0 => Where::Lmdb,
            _ => Where::Memory,
        };
        run(seed, place, seed % 4 == 0, &mut seen);
    }
    assert!(300 < seen.portions, "{} portions", seen.portions);
    assert!(200 < seen.parts, "{} were compared", seen.parts);
}

/// The same with power losses: it continues, or restarts.
#[test]
fn a_copy_that_loses_power_continues_or_begins_again() {
    let mut seen = Seen::default();
    for seed in 100..110 {
        run(seed, Where::Disk, seed % 4 == 0, &mut seen);
    }
    assert!(20 < seen.kills, "{} kills", seen.kills);
    assert!(10 < seen.begun, "{} beginnings", seen.begun);
}

fn insert(member: &Member, collection: &str, ids: std::ops::Range<i32>) {
    let ns = Namespace::new("test", collection).unwrap();
    let documents: Vec<RawDocumentBuf> = ids.map(|id| raw(&doc! { "_id": id })).collect();
    let documents: Vec<_> = documents.iter().map(AsRef::as_ref).collect();
    let options = InsertOptions::default();
    member
        .store
        .insert(&op(), &ns, &documents, options)
        .unwrap();
}

/// A source with documents, and a copy that has taken one portion of them.
fn halfway() -> (Member, Member) {
    let source = Member::new(kv::memory::factory());
    insert(&source, "c", 0..10);
    let copy = Member::follower(kv::memory::factory());
    begin(source.replica(), copy.replica()).unwrap();
    step(source.replica(), copy.replica(), 50).unwrap();
    (source, copy)
}

#[test]
fn portions_that_do_not_fit_are_refused_and_change_nothing() {
    let (source, copy) = halfway();
    insert(&source, "c", 20..21);
    let mut good = source
        .replica()
        .portion(&op(), &wanted(copy.replica(), 50))
        .unwrap();
    // An entry that does not follow.
    let mut bad = good.clone();
    bad.entries.insert(0, vec![1, 2, 3]);
    copy.replica().take_portion(&op(), &bad).unwrap_err();
    let records = good.records.take();
    copy.replica().take_portion(&op(), &good).unwrap();
    good.records = records;
    good.entries.clear();
    let before = copy.replica().copying().unwrap();
    assert!(!before.left.front().unwrap().from.is_empty());
    let fails = |change: &dyn Fn(&mut Portion)| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = copy.replica().take_portion(&op(), &bad).unwrap_err();
        assert_eq!(copy.replica().copying().unwrap(), before, "{error}");
        error.code
    };
    let first = |portion: &mut Portion| portion.records.as_ref().unwrap().pairs[0].clone();
    // Of another time.
    let code = fails(&|bad| bad.at = OpTime { term: 7, ..bad.at });
    assert_eq!(code, Code::BAD_VALUE);
    // Out of order, behind the end, and without a key.
    fails(&|bad| bad.records.as_mut().unwrap().pairs.reverse());
    fails(&|bad| bad.records.as_mut().unwrap().next = vec![0; 8]);
    fails(&|bad| {
        let value = first(bad).1;
        let records = bad.records.as_mut().unwrap();
        records.pairs.push((vec![0xFF; 8], value));
        records.next = vec![0xFF; 8];
    });
    fails(&|bad| bad.records.as_mut().unwrap().pairs[0].0.truncate(3));
    // Documents that are none, and one that the entries have made otherwise.
    for value in [vec![], vec![5, 0, 0, 0], vec![0xFF; 40]] {
        fails(&|bad| bad.records.as_mut().unwrap().pairs[0].1.clone_from(&value));
    }
    fails(&|bad| bad.records.as_mut().unwrap().pairs[0].1 = raw(&doc! { "a": 1 }).into_bytes());
    let other = raw(&doc! { "_id": 20, "a": 1 }).into_bytes();
    let code = fails(&|bad| bad.records.as_mut().unwrap().pairs[0].1.clone_from(&other));
    assert_eq!(code, Code::UPDATE_OPERATION_FAILED, "Y3");
    copy.replica().take_portion(&op(), &good).unwrap();
    assert_ne!(copy.replica().copying().unwrap(), before);
}

#[test]
fn a_malformed_origin_is_refused_before_anything_is_removed() {
    let (source, copy) = halfway();
    let good = source.replica().origin(&op(), CATALOG).unwrap();
    let before = State::of(&copy.store, &BTreeSet::new());
    let label = rawdoc! {};
    let fails = |change: &dyn Fn(&mut Origin)| {
        let mut bad = good.clone();
        change(&mut bad);
        copy.replica().begin_copy(&op(), &label, &bad).unwrap_err();
        assert_eq!(State::of(&copy.store, &BTreeSet::new()), before);
    };
    fails(&|bad| bad.entry.clear());
    fails(&|bad| bad.entry.truncate(20));
    fails(&|bad| bad.catalog[0].stored.clear());
    fails(&|bad| bad.catalog[0].last = i64::MAX);
    fails(&|bad| bad.catalog[0].last = -1);
    let local = raw(&doc! { "ns": "local.x", "options": { "viewOn": "y", "pipeline": [] } });
    fails(&|bad| bad.catalog[0].stored = local.clone().into_bytes());
    // A catalog that is too large for a message.
    let error = source.replica().origin(&op(), 10).unwrap_err();
    assert_eq!(error.code, Code::ILLEGAL_OPERATION);
}

#[test]
fn a_source_without_the_position_of_the_copy_says_so() {
    let (source, copy) = halfway();
    let mut wanted = wanted(copy.replica(), 50);
    wanted.after.term += 1;
    let fails = |wanted: &Wanted| source.replica().portion(&op(), wanted).unwrap_err().code;
    assert_eq!(fails(&wanted), Code::CAPPED_POSITION_LOST, "another branch");
    wanted.after.term -= 1;
    source.store.set_oplog_limits(|limits| limits.bytes = 1);
    for some in 1..60 {
        insert(&source, "d", some * 100..some * 100 + 50);
        source.store.tend_oplog().unwrap();
    }
    assert_eq!(fails(&wanted), Code::CAPPED_POSITION_LOST, "removed");
    // The copy restarts, whatever it had.
    copy.replica().abandon_copy(&op()).unwrap();
    begin(source.replica(), copy.replica()).unwrap();
    while !is_copied(copy.replica()) {
        step(source.replica(), copy.replica(), 10_000).unwrap();
    }
    let all = State::of(&source.store, &BTreeSet::new());
    all.check(&State::of(&copy.store, &BTreeSet::new()), "again");
}

/// `copy`: Y4.
#[test]
fn a_copy_takes_back_only_what_follows_its_floor() {
    let (source, copy) = halfway();
    copy.replica().complete_copy(&op()).unwrap_err();
    copy.replica().lead(&op(), 9).unwrap_err();
    let since = copy.replica().copying().unwrap().since;
    copy.replica().roll_back_to(&op(), since).unwrap_err();
    while !is_copied(copy.replica()) {
        step(source.replica(), copy.replica(), 10_000).unwrap();
    }
    let parts: Vec<Part> = Vec::new();
    let left = copy.replica().copying().unwrap().left;
    assert_eq!(left.iter().map(|left| left.part).collect::<Vec<_>>(), parts);
    insert(&source, "c", 30..31);
    step(source.replica(), copy.replica(), 0).unwrap();
    let floor = copy.replica().complete_copy(&op()).unwrap();
    copy.replica().keep_undo(&op(), true).unwrap();
    insert(&source, "c", 31..32);
    copy.fetch(&source, 9).unwrap();
    let last = source.replica().written();
    assert_eq!(copy.replica().apply_to(&op(), last).unwrap(), last);
    let error = copy.replica().roll_back_to(&op(), since).unwrap_err();
    assert_eq!(error.code, Code::ILLEGAL_OPERATION, "Y4");
    copy.replica().roll_back_to(&op(), floor).unwrap();
    assert_eq!(copy.replica().applied(), floor);
    let ns = Namespace::new("test", "c").unwrap();
    assert_eq!(copy.store.collection(&ns).unwrap().count(), 11);
    copy.replica().settle_copy(&op()).unwrap();
    assert_eq!(copy.replica().copying(), None);
}

/// Writes of a thread, until `stop` is set.
fn churn(store: &docdb::Store, seed: u64, stop: &std::sync::atomic::AtomicBool) {
    let mut rng = Rng::new(seed);
    let ns = Namespace::new("test", "c").unwrap();
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let id = i32::try_from(rng.below(300)).unwrap();
        match rng.below(3) {
            0 => {
                let document = raw(&doc! { "_id": id, "a": id });
                let options = InsertOptions::default();
                drop(store.insert(&op(), &ns, &[&document], options));
            }
            1 => {
                let change = crate::write::set(doc! { "_id": id }, doc! { "$inc": { "n": 1 } });
                drop(store.update(&op(), &ns, &[change], true, false));
            }
            _ => {
                let gone = crate::write::del(doc! { "_id": id }, false);
                drop(store.delete(&op(), &ns, &[gone], true));
            }
        }
    }
}

/// `copy`: Y1, by a source at which others write all the time.
#[test]
fn records_have_exactly_the_time_of_the_entries_while_others_write() {
    let engines: [&'static dyn kv::Factory; 2] = [kv::memory::factory(), kv_betree::factory()];
    for factory in engines {
        let source = Member::new(factory);
        insert(&source, "c", 0..300);
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let writers: Vec<_> = (0..3)
            .map(|seed| {
                let (store, stop) = (source.store.clone(), stop.clone());
                stdx::sync::spawn("writer", move || churn(&store, seed, &stop)).unwrap()
            })
            .collect();
        let copy = Member::follower(kv::memory::factory());
        begin(source.replica(), copy.replica()).unwrap();
        let mut steps = 0;
        while !is_copied(copy.replica()) {
            step(source.replica(), copy.replica(), 200).unwrap();
            steps += 1;
        }
        assert!(20 < steps, "{steps} portions");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for writer in writers {
            writer.join().unwrap();
        }
        while !step(source.replica(), copy.replica(), 0).unwrap() {}
        let all = State::of(&source.store, &BTreeSet::new());
        all.check(&State::of(&copy.store, &BTreeSet::new()), "the end");
    }
}
