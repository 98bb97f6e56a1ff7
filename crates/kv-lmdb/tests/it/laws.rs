//! The laws every engine keeps.

kv_conformance::conformance_tests!(kv_lmdb::factory());
