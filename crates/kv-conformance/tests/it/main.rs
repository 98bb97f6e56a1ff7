//! The suite, run on the reference engine, on an engine with all capabilities, on one with few, and
//! on engines with planted bugs.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the whole crate is test code: a panic is how a test fails"
)]

mod rig;

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
