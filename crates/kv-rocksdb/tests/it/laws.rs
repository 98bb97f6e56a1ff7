//! The laws of the API, for both kinds of compaction and for a store too small for its data.

use kv::{Codec, EngineOptions};
use stdx::ByteSize;

fn with(own: &[(&str, &str)]) -> EngineOptions {
    let own = own.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    EngineOptions {
        own: own.collect(),
        ..EngineOptions::default()
    }
}

fn universal() -> EngineOptions {
    with(&[("compaction", "universal")])
}

/// Memtables so small that they are constantly flushed: reads and conflict checks must access
/// files.
fn tiny() -> EngineOptions {
    EngineOptions {
        cache: ByteSize::mib(2),
        codec: Codec::None,
        ..with(&[("write_buffer", "64K"), ("pipelined", "false")])
    }
}

kv_conformance::conformance_tests!(leveled, kv_rocksdb::factory(), with(&[]));
kv_conformance::conformance_tests!(universal, kv_rocksdb::factory(), universal());
kv_conformance::conformance_tests!(tiny, kv_rocksdb::factory(), tiny());
