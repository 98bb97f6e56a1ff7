//! Statistics: counters, numbers of entries, and the storage map.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::bench::Bench;
use crate::verbs::{all, change, create, delete, fill_keys, fill_numbered, numbered, put, refused};
use kv::{
    Count, Durability, Engine, EngineStats, ErrorKind, IoCount, KeyRange, Region, StatScope,
    TreeId, TreeStats,
};

const SCOPES: [StatScope; 2] = [StatScope::Quick, StatScope::Exact];

fn exact(db: &dyn Engine, tree: TreeId) -> TreeStats {
    db.tree_stats(tree, StatScope::Exact).unwrap()
}

/// Executes operations of every kind that engines count.
fn work(db: &dyn Engine, tree: TreeId, round: u32) {
    fill_numbered(db, tree, 500, &round.to_be_bytes());
    change(db, |txn| {
        txn.delete_range(tree, KeyRange::from(&numbered(400)))
    })
    .unwrap();
    let mut txn = db.begin_write().unwrap();
    txn.put(tree, b"durable", &round.to_be_bytes()).unwrap();
    txn.commit(Durability::Group).unwrap();
    assert_eq!(all(db, tree).len(), 401);
    db.checkpoint().unwrap();
}

/// The counters that must never decrease, by name.
fn growing(stats: &EngineStats) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let mut add = |name: String, value: u64| {
        assert!(
            counters.insert(name.clone(), value).is_none(),
            "{name} is reported twice"
        );
    };
    for (what, counts) in [("written", &stats.written), ("read", &stats.read)] {
        for IoCount {
            reason,
            bytes,
            operations,
        } in counts
        {
            add(format!("{what} {reason:?} bytes"), *bytes);
            add(
                format!("{what} {reason:?} operations"),
                operations.unwrap_or(0),
            );
        }
    }
    for stall in &stats.stalls {
        add(format!("stall {} count", stall.reason), stall.count);
        add(
            format!("stall {} micros", stall.reason),
            stall.micros.unwrap_or(0),
        );
    }
    if let Some(cache) = &stats.cache {
        add("cache hits".to_owned(), cache.hits);
        add("cache misses".to_owned(), cache.misses);
    }
    counters
}

pub(crate) fn fresh_store_tells_of_itself(lab: &mut Bench<'_>) {
    let db = lab.open();
    let stats = db.stats().unwrap();
    assert!(stats.activity.iter().all(|word| !word.is_empty()));
    growing(&stats);
}

pub(crate) fn counters_never_decrease(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut before = growing(&db.stats().unwrap());
    for round in 0..6 {
        work(&*db, t, round);
        let after = growing(&db.stats().unwrap());
        for (name, value) in &before {
            let now = after.get(name).copied().unwrap_or(0);
            assert!(*value <= now, "{name} fell from {value} to {now}");
        }
        before = after;
    }
}

pub(crate) fn cache_holds_no_more_dirt_than_bytes(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for round in 0..3 {
        work(&*db, t, round);
        if let Some(cache) = db.stats().unwrap().cache {
            assert!(cache.dirty_bytes <= cache.used_bytes, "{cache:?}");
            assert!(0 < cache.capacity_bytes, "{cache:?}");
        }
    }
}

pub(crate) fn writing_is_counted_by_reason(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let total = |stats: &EngineStats| stats.written.iter().map(|c| c.bytes).sum::<u64>();
    let before = total(&db.stats().unwrap());
    fill_numbered(&*db, t, 2000, &[b'v'; 500]);
    db.sync_log().unwrap();
    db.checkpoint().unwrap();
    let written = total(&db.stats().unwrap()) - before;
    // Compression may shrink the megabyte, but not below this size.
    assert!(
        10_000 < written,
        "only {written} bytes are counted for 1 MB"
    );
}

pub(crate) fn empty_tree_has_no_entries(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let none = Count {
        value: 0,
        exact: true,
    };
    assert_eq!(exact(&*db, t).entries, none);
}

pub(crate) fn exact_count_is_exact(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let check = |expected: u64| {
        let entries = exact(&*db, t).entries;
        assert!(entries.exact, "entries can always be counted by reading");
        assert_eq!(entries.value, expected);
    };
    fill_numbered(&*db, t, 1500, b"value");
    check(1500);
    // Keys that are overwritten or deleted twice must not be counted twice.
    fill_numbered(&*db, t, 300, b"other");
    check(1500);
    delete(&*db, t, &numbered(7));
    delete(&*db, t, &numbered(7));
    check(1499);
    change(&*db, |txn| {
        txn.delete_range(t, KeyRange::from(&numbered(1000)))
    })
    .unwrap();
    check(999);
    db.checkpoint().unwrap();
    put(&*db, t, &numbered(5000), b"");
    check(1000);
}

pub(crate) fn exactness_is_told_truthfully(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for round in 0..5u32 {
        fill_numbered(&*db, t, 200 * (round + 1), b"value");
        delete(&*db, t, &numbered(round));
        change(&*db, |txn| txn.delete_blind(t, &numbered(100 + round))).unwrap();
        if round == 3 {
            db.checkpoint().unwrap();
        }
        let truth = all(&*db, t).len() as u64;
        for scope in SCOPES {
            let entries = db.tree_stats(t, scope).unwrap().entries;
            if entries.exact {
                assert_eq!(entries.value, truth, "{scope:?} in round {round}");
            }
        }
    }
}

pub(crate) fn trees_are_counted_apart(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    fill_numbered(&*db, t, 100, b"value");
    fill_keys(&*db, u, &["a", "b", "c"]);
    assert_eq!(exact(&*db, t).entries.value, 100);
    assert_eq!(exact(&*db, u).entries.value, 3);
    db.drop_tree("t").unwrap();
    assert_eq!(exact(&*db, u).entries.value, 3);
}

pub(crate) fn uncommitted_entries_are_not_counted(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, b"c", b"own").unwrap();
    txn.delete(t, b"a").unwrap();
    assert_eq!(exact(&*db, t).entries.value, 2);
    txn.rollback();
    assert_eq!(exact(&*db, t).entries.value, 2);
}

pub(crate) fn figures_of_a_tree_are_plausible(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 3000, &[b'v'; 92]);
    db.checkpoint().unwrap();
    // The tree has 3000 entries of 100 bytes.
    for scope in SCOPES {
        let stats = db.tree_stats(t, scope).unwrap();
        if let Some(live) = stats.live_bytes {
            assert!(
                (30_000..3_000_000).contains(&live),
                "{live} live bytes of 300000"
            );
        }
        if let Some(fill) = stats.mean_fill {
            assert!((0.0..=1.0).contains(&fill), "mean fill {fill}");
        }
        if let Some(depth) = stats.depth {
            assert!(depth < 64, "depth {depth}");
        }
        if let (Some(pages), Some(allocated)) = (stats.pages, stats.allocated_bytes) {
            assert!(pages <= allocated, "{pages} pages in {allocated} bytes");
        }
    }
}

pub(crate) fn capabilities_are_those_of_the_factory(lab: &mut Bench<'_>) {
    let directory = lab.path("defaults");
    let defaults = kv::EngineOptions::default();
    let db = lab.factory().open(&directory, &defaults).unwrap();
    assert_eq!(*db.capabilities(), lab.factory().capabilities());
}

pub(crate) fn limits_leave_room_for_documents(lab: &mut Bench<'_>) {
    let limits = lab.limits();
    assert!(256 <= limits.key_max, "keys of {} bytes", limits.key_max);
    assert!(
        64 << 10 <= limits.value_max,
        "values of {} bytes",
        limits.value_max
    );
}

pub(crate) fn factory_describes_the_engine(lab: &mut Bench<'_>) {
    let factory = lab.factory();
    let name = factory.name();
    assert_eq!(lab.open().name(), name);
    assert!(!name.is_empty() && name == name.to_lowercase(), "{name:?}");
    for text in [factory.about(), factory.license()] {
        assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
    }
    assert!(factory.available());
    assert!(factory.version().is_some_and(|version| !version.is_empty()));
    let mut names = BTreeSet::new();
    for option in factory.options() {
        assert!(
            names.insert(option.name),
            "{} is documented twice",
            option.name
        );
        for text in [option.name, option.values, option.about] {
            assert!(!text.is_empty(), "{option:?}");
        }
    }
}

/// Whether the file name is a relative path without `..`.
fn is_relative(file: &str) -> bool {
    let path = Path::new(file);
    !file.is_empty() && path.is_relative() && !file.split('/').any(|step| step == "..")
}

pub(crate) fn storage_map_is_sane(lab: &mut Bench<'_>) {
    let db = lab.open();
    let trees = [create(&*db, "t"), create(&*db, "u")];
    fill_numbered(&*db, trees[0], 3000, &[b'v'; 200]);
    fill_keys(&*db, trees[1], &["a"]);
    db.checkpoint().unwrap();
    let map = db.storage_map().unwrap();
    assert!(!map.regions.is_empty(), "600 kB lie nowhere");
    for region in &map.regions {
        assert!(is_relative(&region.file), "{region:?}");
        assert!(
            region.offset.checked_add(region.length).is_some(),
            "{region:?}"
        );
        if let Some(used) = region.used {
            assert!((0.0..=1.0).contains(&used), "{region:?}");
        }
        if let Some(tree) = region.tree {
            assert!(trees.contains(&tree), "{region:?}");
        }
    }
    let total: u64 = map.regions.iter().map(|region| region.length).sum();
    assert!(5_000 < total, "600 kB lie in {total} bytes");
}

pub(crate) fn storage_map_is_in_order(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 3000, &[b'v'; 200]);
    db.checkpoint().unwrap();
    let map = db.storage_map().unwrap();
    let mut seen = BTreeSet::new();
    let mut last: Option<&Region> = None;
    for region in &map.regions {
        match last.filter(|last| last.file == region.file) {
            Some(last) => {
                let order = (last.offset <= region.offset, map.offsets_are_real);
                assert!(order.0, "{last:?} before {region:?}");
                let end = last.offset + last.length;
                assert!(
                    !order.1 || end <= region.offset,
                    "{last:?} overlaps {region:?}"
                );
            }
            None => assert!(seen.insert(&region.file), "{} comes twice", region.file),
        }
        last = Some(region);
    }
}

pub(crate) fn storage_map_is_unsupported_without_the_capability(lab: &mut Bench<'_>) {
    let db = lab.open();
    assert_eq!(refused(db.storage_map()), ErrorKind::Unsupported);
}
