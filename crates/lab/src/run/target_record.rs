//! What was tested, for the fairness table.

use kv::{Codec, Durability, Factory};

use super::cell::engine_options;
use crate::error::Result;
use crate::record::{Plan, TargetRecord, TargetSpec};
use crate::target;

/// The records of a plan's targets.
pub(super) fn all(plan: &Plan) -> Result<Vec<TargetRecord>> {
    plan.targets.iter().map(|t| one(plan, t)).collect()
}

fn one(plan: &Plan, spec: &TargetSpec) -> Result<TargetRecord> {
    let factory = target::factory(&spec.engine)?;
    let can = factory.capabilities();
    let options = engine_options(plan, spec);
    let own = factory.options().iter().map(|o| {
        let set = spec.options.get(o.name);
        (
            o.name.to_owned(),
            set.cloned().unwrap_or_else(|| o.default.to_owned()),
        )
    });
    let common = [
        ("cache".to_owned(), options.cache.to_string()),
        ("interval".to_owned(), format!("{} ms", plan.interval_ms)),
        (
            "checkpoint".to_owned(),
            format!("{} s", options.checkpoint.as_secs()),
        ),
        ("threads".to_owned(), options.threads.to_string()),
        ("size_max".to_owned(), options.size_max.to_string()),
    ];
    let compressed = can.compression && plan.codec == Codec::Fast;
    Ok(TargetRecord {
        name: spec.name.clone(),
        engine: spec.engine.clone(),
        version: factory.version().unwrap_or_else(|| "unknown".to_owned()),
        license: factory.license().to_owned(),
        ours: matches!(spec.engine.as_str(), "memory" | "null" | "betree"),
        options: common.into_iter().chain(own).collect(),
        changed: spec.options.keys().cloned().collect(),
        cache_bytes: plan.cache.bytes(),
        durability: durability(plan, factory),
        compression: if compressed { Codec::Fast } else { Codec::None }.to_string(),
        direct_io: can.direct_io && plan.direct_io,
        notes: notes(plan, factory),
    })
}

fn durability(plan: &Plan, factory: &dyn Factory) -> String {
    let can = factory.capabilities();
    let level = plan.durability;
    if !can.persistent {
        return format!("{level}: nothing survives the process");
    }
    match level {
        Durability::Sync => "sync: every commit is synced before it returns".to_owned(),
        Durability::Group if can.group_commit => {
            "group: every commit is synced; concurrent commits share a sync".to_owned()
        }
        Durability::Group => "group: as sync, since commits cannot share a sync".to_owned(),
        Durability::Interval if can.interval => {
            format!("interval: the log is synced every {} ms", plan.interval_ms)
        }
        Durability::Interval => "interval: mapped to something stronger; see notes".to_owned(),
        _ if can.none_is_consistent => "none: a power loss may take recent commits".to_owned(),
        _ => "none: a power loss may make the store unreadable".to_owned(),
    }
}

fn notes(plan: &Plan, factory: &dyn Factory) -> Vec<String> {
    let can = factory.capabilities();
    let mut notes = vec![factory.about().to_owned()];
    if plan.codec == Codec::Fast && !can.compression {
        notes.push("does not compress".to_owned());
    }
    if plan.direct_io && !can.direct_io {
        notes.push("cannot bypass the page cache".to_owned());
    }
    if plan.durability == Durability::Interval && can.persistent && !can.interval {
        notes.push("syncs data in every commit, because it has no log to sync in intervals".into());
    }
    if !can.persistent {
        notes.push("keeps nothing on disk".to_owned());
    }
    for (name, value) in factory.environment() {
        notes.push(format!("its process runs with {name}={value}"));
    }
    notes
}
