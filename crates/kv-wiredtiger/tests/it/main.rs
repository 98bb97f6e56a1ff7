//! The laws of the persistence API and the adapter's own tests, on the system's WiredTiger.
//!
//! Without the feature `wiredtiger` only the factory is tested.

#[cfg(not(feature = "wiredtiger"))]
mod absent;

#[cfg(feature = "wiredtiger")]
mod adapter;

#[cfg(feature = "wiredtiger")]
mod laws {
    use kv::{Codec, EngineOptions};
    use stdx::ByteSize;

    fn lsm() -> EngineOptions {
        let own = [("type".to_owned(), "lsm".to_owned())];
        EngineOptions {
            own: own.into(),
            ..EngineOptions::default()
        }
    }

    /// A cache so small that pages are constantly evicted, and pages so small that trees are deep.
    fn small() -> EngineOptions {
        let own = [("leaf_page", "4K"), ("internal_page", "4K")];
        EngineOptions {
            cache: ByteSize::mib(4),
            codec: Codec::None,
            own: own.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ..EngineOptions::default()
        }
    }

    fn no_log() -> EngineOptions {
        EngineOptions {
            log: false,
            ..EngineOptions::default()
        }
    }

    // Opening or reopening a store costs about 35 syncs, and a random program reopens it often. So
    // each part runs only two programs for each way to open the store.
    kv_conformance::conformance_tests!(
        btree,
        kv_wiredtiger::factory(),
        EngineOptions::default(),
        seeds = 8
    );
    kv_conformance::conformance_tests!(lsm_trees, kv_wiredtiger::factory(), lsm(), seeds = 8);
    kv_conformance::conformance_tests!(small_cache, kv_wiredtiger::factory(), small(), seeds = 8);
    kv_conformance::conformance_tests!(without_log, kv_wiredtiger::factory(), no_log(), seeds = 8);
}
