//! The suite, run on the reference engine.

kv_conformance::conformance_tests!(kv::memory::factory());
