//! The suite, run on the reference engine, on an engine with all capabilities, on one with few, and
//! on engines with planted bugs.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the whole crate is test code: a panic is how a test fails"
)]

mod rig;

use std::fs;

use kv::EngineOptions;
use rig::RigFactory;

kv_conformance::conformance_tests!(kv::memory::factory());

// I2: the same laws pass on engines that choose differently where the contract leaves a choice.
kv_conformance::conformance_tests!(
    able,
    RigFactory::leak(None, false),
    EngineOptions::default()
);

kv_conformance::conformance_tests!(
    plain,
    RigFactory::leak(None, true),
    EngineOptions::default()
);

#[test]
fn laws_neither_sleep_nor_read_a_clock() {
    // Tests run in the directory of their crate. Its path when it was compiled may be that of
    // another clone that shares the build directory.
    let mut read = 0;
    for file in fs::read_dir("src/laws").unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for word in ["sleep", "elapsed", "Instant", "time::now", "recv_timeout"] {
            assert!(!text.contains(word), "I3: {word} in {}", path.display());
        }
        read += 1;
    }
    assert!(20 < read, "{read} files of laws");
}
