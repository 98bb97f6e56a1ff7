//! The laws of every engine, with the default options and with all other options.

use kv::EngineOptions;

kv_conformance::conformance_tests!(kv_lmdb::factory());
kv_conformance::conformance_tests!(other_options, kv_lmdb::factory(), other_options());
kv_conformance::conformance_tests!(background, kv_lmdb::factory(), background());
kv_conformance::conformance_tests!(without_log, kv_lmdb::factory(), without_log());

fn other_options() -> EngineOptions {
    let mut options = EngineOptions::default();
    let own = [
        ("interval", "nosync"),
        ("readahead", "on"),
        ("backup", "compact"),
        ("trees", "4096"),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    options.own.extend(own);
    options
}

fn background() -> EngineOptions {
    let mut options = EngineOptions::default();
    let own = ("interval".to_owned(), "background".to_owned());
    options.own.extend([own]);
    options
}

fn without_log() -> EngineOptions {
    EngineOptions {
        log: false,
        ..EngineOptions::default()
    }
}
