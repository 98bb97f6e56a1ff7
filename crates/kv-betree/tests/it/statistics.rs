//! Statistics and the storage map: betree's counters appear under the API's names.

use std::time::Duration;

use kv::{Engine, IoReason, RegionKind, StatScope, TreeId};

use crate::support::{create, fill, open_with};

/// A store with every kind of data on disk.
fn worked(engine: &dyn Engine) -> TreeId {
    let tree = create(engine, "t");
    for _ in 0..3 {
        fill(engine, tree, 5_000);
        engine.sync_log().unwrap();
        // The second flush overlaps the data of the first.
        engine.settle(Duration::from_secs(60)).unwrap();
        engine.checkpoint().unwrap();
    }
    tree
}

fn small(directory: &std::path::Path) -> Box<dyn Engine> {
    open_with(directory, &[("bucket", "64K"), ("page", "4K")])
}

#[test]
fn written_bytes_are_told_by_reason() {
    let directory = tempfile::tempdir().unwrap();
    let engine = small(directory.path());
    worked(&*engine);
    let stats = engine.stats().unwrap();
    for reason in [
        IoReason::Log,
        IoReason::Flush,
        IoReason::Merge,
        IoReason::Checkpoint,
    ] {
        assert!(0 < stats.written_bytes(reason), "{reason:?}: {stats:?}");
    }
    // Writing 1.5 MB requires writes for these reasons.
    for reason in [IoReason::Log, IoReason::Flush] {
        assert!(1_500_000 < stats.written_bytes(reason), "{stats:?}");
    }
    for name in ["commits", "puts", "flushes", "merges", "checkpoints"] {
        let count = stats.counters.get(name).copied().unwrap_or(0);
        assert!(0 < count, "{name}: {stats:?}");
    }
}

#[test]
fn a_settled_store_owes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = small(directory.path());
    let tree = worked(&*engine);
    let stats = engine.stats().unwrap();
    assert_eq!(stats.debt_bytes, Some(0));
    assert_eq!(stats.counters.get("delta_bytes"), Some(&0));
    assert!(stats.activity.is_empty(), "{:?}", stats.activity);
    let found = engine.tree_stats(tree, StatScope::Exact).unwrap();
    assert_eq!((found.entries.value, found.entries.exact), (5_000, true));
    assert_eq!(found.live_bytes, Some(5_000 * 104));
    assert!(found.pages.is_some_and(|runs| 1 < runs), "{found:?}");
}

#[test]
fn the_map_shows_where_everything_lies() {
    let directory = tempfile::tempdir().unwrap();
    let engine = small(directory.path());
    let tree = worked(&*engine);
    let map = engine.storage_map().unwrap();
    assert!(map.offsets_are_real);
    for kind in [RegionKind::Data, RegionKind::Meta, RegionKind::Log] {
        let found = map.regions.iter().find(|r| r.kind == kind);
        assert!(found.is_some(), "no {kind:?}: {map:?}");
    }
    let data = map.regions.iter().filter(|r| r.kind == RegionKind::Data);
    assert!(data.clone().all(|r| r.tree == Some(tree)));
    for region in &map.regions {
        let file = directory.path().join(&region.file);
        let length = std::fs::metadata(file).unwrap().len();
        assert!(region.offset + region.length <= length, "{region:?}");
    }
}
