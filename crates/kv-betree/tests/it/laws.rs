//! The laws every engine keeps: with the default options, with a store so small that it constantly
//! flushes buffers and merges and splits buckets, with all other options, and without a log.

use std::time::Duration;

use kv::{Codec, EngineOptions};
use stdx::ByteSize;

use crate::support::with;

kv_conformance::conformance_tests!(defaults, kv_betree::factory(), with(&[]));
kv_conformance::conformance_tests!(tiny, kv_betree::factory(), tiny());
kv_conformance::conformance_tests!(other_options, kv_betree::factory(), other_options());
kv_conformance::conformance_tests!(without_log, kv_betree::factory(), without_log());

/// The minimum memory, with buckets of a few pages.
fn tiny() -> EngineOptions {
    EngineOptions {
        cache: ByteSize::mib(1),
        checkpoint: Duration::from_millis(20),
        codec: Codec::None,
        threads: 1,
        ..with(&[
            ("buffers", "0.05"),
            ("bucket", "16K"),
            ("page", "512"),
            ("kcap", "3"),
            ("log_segment", "64K"),
            ("log_max", "256K"),
            ("checkpoint_bytes", "64K"),
        ])
    }
}

fn other_options() -> EngineOptions {
    EngineOptions {
        direct_io: true,
        ..with(&[
            ("preset", "btree"),
            ("rho", "64"),
            ("codec", "zstd:3"),
            ("delta_codec", "zstd:1"),
            ("filter", "all"),
            ("filter_bits", "4"),
            ("page", "4K"),
            ("group_delay", "100us"),
            ("seed", "7"),
        ])
    }
}

fn without_log() -> EngineOptions {
    EngineOptions {
        log: false,
        ..with(&[("preset", "ingest"), ("filter", "none")])
    }
}
