//! Targets: what is measured. A target never knows the experiment.
//!
//! Embedded engines are targets through their `kv` factories; `null` is the generator alone.

mod null;
mod spec;

pub use spec::parse_targets;

use kv::Factory;

/// Every target's factory, whether compiled in or not, in the order `lab list` shows them: our own
/// engine first, which is also what is measured where one engine is enough.
#[must_use]
pub fn factories() -> Vec<&'static dyn Factory> {
    vec![
        kv_betree::factory(),
        kv_lmdb::factory(),
        kv_rocksdb::factory(),
        kv_wiredtiger::factory(),
        kv::memory::factory(),
        null::factory(),
    ]
}

/// The factory of that name.
///
/// # Errors
/// A sentence that names the nearest name, and all of them.
pub fn factory(name: &str) -> Result<&'static dyn Factory, String> {
    let all = factories();
    if let Some(found) = all.iter().find(|f| f.name() == name) {
        return Ok(*found);
    }
    let names: Vec<&str> = all.iter().map(|f| f.name()).collect();
    Err(crate::error::unknown("engine", name, &names))
}

/// The engines `lab run` measures when no target is named: persistent and compiled in.
#[must_use]
pub fn defaults() -> Vec<&'static str> {
    let chosen = factories()
        .into_iter()
        .filter(|f| f.available() && f.capabilities().persistent);
    chosen.map(Factory::name).collect()
}
