//! Records of the measured targets, for the fairness table.

use std::path::Path;

use kv::{Codec, Durability, EngineOptions, Factory};
use lab_report::error::Result;
use lab_report::record::{Plan, TargetRecord, TargetSpec};

use super::cell::engine_options;
use super::host::Asked;
use crate::protocol::{Configured, ServerFacts};
use crate::targets::{self, Kind, MONGODB, Managed, Private};

/// Value of a fact about a server that is not known, or not known before the server is queried.
const UNKNOWN: &str = "unknown";

/// The records of a plan's targets.
pub(super) fn all(plan: &Plan) -> Result<Vec<TargetRecord>> {
    plan.targets.iter().map(|t| one(plan, t)).collect()
}

/// Add the facts that a server reported to the record of its target.
pub(super) fn learn(record: &mut TargetRecord, facts: &ServerFacts) {
    record.version.clone_from(&facts.version);
    if let Some(torn_pages) = &facts.torn_pages {
        record.torn_pages.clone_from(torn_pages);
    }
    for (name, value) in &facts.options {
        record.options.retain(|(known, _)| known != name);
        record.options.push((name.clone(), value.clone()));
    }
    for setting in facts.settings.iter().filter(|s| s.differs()) {
        let name = &setting.name;
        record.options.retain(|(known, _)| known != name);
        record.options.push((name.clone(), setting.value.clone()));
        if !record.changed.contains(name) {
            record.changed.push(name.clone());
        }
    }
    for note in &facts.notes {
        if !record.notes.contains(note) {
            record.notes.push(note.clone());
        }
    }
}

/// All settings of a server with their defaults, as a table.
pub(super) fn settings_table(settings: &[Configured]) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let header = ["name", "value", "default", "differs"];
    let rows = settings.iter().map(|setting| {
        let differs = if setting.differs() { "yes" } else { "" };
        let default = setting.default.as_deref().unwrap_or_default();
        [&*setting.name, &*setting.value, default, differs]
    });
    for row in std::iter::once(header).chain(rows) {
        table.write_record(row).expect("memory takes everything");
    }
    let bytes = table.into_inner().expect("memory takes everything");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn one(plan: &Plan, spec: &TargetSpec) -> Result<TargetRecord> {
    Ok(match targets::kind(spec)? {
        Kind::Embedded(factory) => embedded(plan, spec, factory),
        Kind::Managed(managed) => serve(plan, spec, &managed),
        Kind::Private(private) => started(plan, spec, &private),
        Kind::Foreign(_) => foreign(plan, spec),
    })
}

/// The record of this program's own server, started for the run.
fn serve(plan: &Plan, spec: &TargetSpec, managed: &Managed) -> TargetRecord {
    let factory = managed.factory;
    let options = engine_options(plan, spec);
    let defaults = EngineOptions::default();
    let mut record = embedded(plan, spec, factory);
    let ms = Managed::interval_ms(&options);
    record
        .options
        .retain(|(name, _)| name != "size_max" && name != "threads");
    record.options.retain(|(name, _)| name != "interval");
    record
        .options
        .push(("interval".to_owned(), format!("{ms} ms")));
    record.engine = format!("{} behind `romanesco serve`", factory.name());
    record.ours = true;
    record.durability = write_concern(plan.durability);
    record.compression = if factory.capabilities().compression {
        defaults.codec
    } else {
        Codec::None
    }
    .to_string();
    record.direct_io = false;
    record.notes = vec![
        "the load reaches it through MongoDB's driver; the driver's process is not within the \
         limits, and its CPU is counted apart"
            .to_owned(),
    ];
    record.notes.extend(managed.notes());
    if plan.codec != defaults.codec || plan.direct_io || plan.threads != defaults.threads {
        let note = "the server has its own codec, threads and kind of I/O";
        record.notes.push(note.to_owned());
    }
    if u128::from(plan.interval_ms) != ms {
        let note = format!("syncs its log every {ms} ms, which is the most it takes");
        record.notes.push(note);
    }
    record
}

/// The record of another program's server, started for the run.
fn started(plan: &Plan, spec: &TargetSpec, private: &Private) -> TargetRecord {
    let options = engine_options(plan, spec);
    let asked = Asked {
        options: &options,
        durability: plan.durability,
        clients: plan.clients,
        limits: &plan.limits,
    };
    let place = asked.place(Path::new(""));
    let own = spec.options.iter();
    TargetRecord {
        name: spec.name.clone(),
        engine: private.engine_name(),
        version: UNKNOWN.to_owned(),
        license: private.license().to_owned(),
        ours: false,
        options: own.map(|(k, v)| (k.clone(), v.clone())).collect(),
        changed: spec.options.keys().cloned().collect(),
        cache_bytes: plan.cache.bytes(),
        durability: format!("{}: {}", plan.durability, private.durability(&place)),
        compression: private.compression(&place).to_owned(),
        direct_io: private.direct_io(&place),
        torn_pages: UNKNOWN.to_owned(),
        notes: private.notes(&place),
    }
}

/// The record of a server that already runs.
fn foreign(plan: &Plan, spec: &TargetSpec) -> TargetRecord {
    TargetRecord {
        name: spec.name.clone(),
        engine: spec.engine.clone(),
        version: UNKNOWN.to_owned(),
        license: UNKNOWN.to_owned(),
        ours: false,
        options: Vec::new(),
        changed: Vec::new(),
        cache_bytes: 0,
        durability: if spec.engine == MONGODB {
            write_concern(plan.durability)
        } else {
            format!("{}: as the server is set", plan.durability)
        },
        compression: UNKNOWN.to_owned(),
        direct_io: false,
        torn_pages: UNKNOWN.to_owned(),
        notes: vec![
            "a server that ran already: none of the limits are around it, and its cache, codec \
             and threads are its own"
                .to_owned(),
        ],
    }
}

fn write_concern(durability: Durability) -> String {
    match durability {
        Durability::Sync | Durability::Group => {
            format!("{durability}: w: 1, j: true: in the journal, synced, before it returns")
        }
        _ => format!("{durability}: w: 1, j: false: the server syncs its journal in intervals"),
    }
}

fn embedded(plan: &Plan, spec: &TargetSpec, factory: &dyn Factory) -> TargetRecord {
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
    TargetRecord {
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
        torn_pages: factory.torn_pages().to_owned(),
        notes: notes(plan, factory),
    }
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
    notes.push(format!("its process allocates with {}", stdx::memory::NAME));
    for (name, value) in factory.environment() {
        notes.push(format!("its process runs with {name}={value}"));
    }
    notes
}
