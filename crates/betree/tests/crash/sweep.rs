//! Every call of every script fails: once, or from then on, in every way it can. Nothing panics or
//! hangs; failed commits are not acknowledged; after a failed sync every write answers `Closed`;
//! reads continue, and are right or errors; opening again finds everything acknowledged.
//!
//! At the end: each place in the engine that does input or output has met each kind of error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use betree::{Durability, ErrorKind};
use sim::{
    Call, Crash, Fault, FaultKind, Lasts, Outcome, Pages, Profile, SimOptions, SimVfs, Sites,
    Table, When,
};

use crate::exhaustive::stage;
use crate::rig::World;
use crate::scripts::{self, Script, small};
use crate::{Repeat, setting};

/// The faults that a call can have.
const KINDS: [FaultKind; 5] = [
    FaultKind::Eio,
    FaultKind::Enospc,
    FaultKind::ShortWrite,
    FaultKind::SyncFails(Pages::Keep),
    FaultKind::SyncFails(Pages::Revert),
];

/// Sites that no script reaches, with the reason.
const EXEMPT: [&str; 0] = [];

/// The results of the sweep of one script.
#[derive(Default)]
struct Sum {
    runs: u64,
    table: Table,
    errors: BTreeMap<&'static str, u64>,
}

fn name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Io => "Io",
        ErrorKind::Full => "Full",
        ErrorKind::Closed => "Closed",
        ErrorKind::Corrupt => "Corrupt",
        _ => "other",
    }
}

/// Make a call of `script` fail; returns false if there is no call number `nth`.
fn one(script: &Script, nth: u64, kind: FaultKind, lasts: Lasts, sum: &mut Sum) -> bool {
    let mut world = stage(script);
    let quiet = world.vfs.table();
    world.faulty = true;
    world.vfs.inject(Fault {
        sites: Sites::All,
        call: None,
        when: When::Nth(nth),
        lasts,
        kind,
    });
    (script.scene)(&mut world).expect("nothing stops it");
    let table = world.vfs.table();
    if struck(&table) == struck(&quiet) {
        return false;
    }
    if setting("BETREE_SIM_POINT").is_some() {
        let rows = table.rows().filter(|row| !row.faults.is_empty());
        let rows: Vec<String> = rows
            .map(|row| format!("{} {:?}", row.site.0, row.faults))
            .collect();
        println!(
            "{kind:?} {lasts:?}: {}; errors {:?}",
            rows.join(", "),
            world.errors
        );
    }
    // Pages dropped by a failed sync are missing, but that is not damage.
    let lied = matches!(kind, FaultKind::SyncFails(Pages::Revert));
    for kind in &world.errors {
        assert!(
            lied || *kind != ErrorKind::Corrupt,
            "a failed call is not damage"
        );
        *sum.errors.entry(name(*kind)).or_default() += 1;
    }
    sum.runs += 1;
    // Reads continue, whatever happened.
    world.look().expect("nothing stops it");
    world.vfs.clear_faults();
    crashed(&world, nth);
    healed(&mut world);
    sum.table.merge(&table);
    true
}

fn struck(table: &Table) -> u64 {
    table
        .rows()
        .map(|row| row.faults.values().sum::<u64>())
        .sum()
}

/// A power loss after the fault.
fn crashed(world: &World, seed: u64) {
    let image = world.vfs.image(Crash {
        profile: Profile::Atomic512,
        outcome: Outcome::Random,
        seed,
    });
    image.set_capacity(None);
    let mut next = World::new(image, world.options.clone());
    next.open().expect("nothing stops it");
    let found = next.found().expect("a healthy disk");
    if let Err(counterexample) = world.history.check(&found) {
        panic!("after a crash: {counterexample}");
    }
}

/// The fault has ended: a store that is not closed for writes continues, and any store opens again.
fn healed(world: &mut World) {
    if world.db.is_some() && !world.poisoned {
        let names: Vec<String> = world.ids.keys().cloned().collect();
        for name in names {
            world
                .fill(&name, (2, 2, 5), 10, Durability::Sync)
                .expect("nothing stops it");
        }
    } else if world.db.is_some() {
        let (ids, before) = (
            world.ids.keys().cloned().collect::<Vec<_>>(),
            world.errors.len(),
        );
        for name in &ids {
            let done = world.fill(name, (2, 2, 5), 10, Durability::Sync);
            assert_eq!(done, Ok(false), "closed for writes");
        }
        assert_eq!(
            world.errors.len(),
            before + ids.len(),
            "each write is refused"
        );
    }
    world.abandon();
    world.vfs.evict();
    world.faulty = false;
    world.open().expect("nothing stops it");
    world.adopt().expect("nothing stops it");
    for name in world.ids.keys().cloned().collect::<Vec<_>>() {
        world
            .fill(&name, (3, 2, 5), 10, Durability::Sync)
            .expect("nothing stops it");
    }
    world.settle().expect("nothing stops it");
    world.look().expect("nothing stops it");
}

/// The names of all sites in the product code of the engine.
fn sites() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // Tests run in their package's folder; the folder of the build may be of another clone.
    let mut folders = vec![PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the source is there") {
            let path = entry.expect("a readable folder").path();
            let stem = path
                .file_stem()
                .and_then(|s| s.to_str())
                .unwrap_or_default()
                .to_owned();
            let test = stem.starts_with("test") || stem.starts_with("bench");
            if path.is_dir() && !test {
                folders.push(path);
            } else if path.is_file() && !test {
                let text = std::fs::read_to_string(&path).expect("a readable file");
                let text = text
                    .split("#[cfg(test)]\nmod tests {")
                    .next()
                    .unwrap_or_default();
                let names = text.split("Site(\"").skip(1);
                found.extend(names.filter_map(|s| Some(s.split_once('"')?.0.to_owned())));
            }
        }
    }
    found
}

/// Check that each site was called, and that each call failed in each possible way.
fn covered(table: &Table) -> Vec<String> {
    let mut missing = Vec::new();
    let seen: BTreeSet<&str> = table.rows().map(|row| row.site.0).collect();
    for site in sites() {
        if !seen.contains(site.as_str()) && !EXEMPT.contains(&site.as_str()) {
            missing.push(format!("{site}: never called"));
        }
    }
    for row in table.rows() {
        for kind in KINDS.into_iter().filter(|kind| kind.befalls(row.call)) {
            if !row.faults.contains_key(kind.name()) {
                missing.push(format!(
                    "{} ({:?}): never met {}",
                    row.site.0,
                    row.call,
                    kind.name()
                ));
            }
        }
    }
    missing
}

#[test]
fn each_call_may_fail() {
    let only = std::env::var("BETREE_SIM_SCRIPT").ok();
    let nth_only = setting("BETREE_SIM_POINT");
    let mut sum = Sum::default();
    let mut sites = Table::default();
    for script in scripts::all() {
        if only.as_ref().is_some_and(|name| name != script.name) {
            continue;
        }
        let before = sum.runs;
        for kind in KINDS {
            for lasts in [Lasts::Once, Lasts::Sticky] {
                for nth in nth_only.unwrap_or(1).. {
                    let _repeat = Repeat(format!(
                        "BETREE_SIM_SCRIPT='{}' BETREE_SIM_POINT={nth} cargo test -p betree \
                         --test crash each_call ({kind:?} {lasts:?})",
                        script.name
                    ));
                    if !one(&script, nth, kind, lasts, &mut sum) || nth_only.is_some() {
                        break;
                    }
                }
            }
        }
        println!(
            "{:45} {:5} runs with a fault",
            script.name,
            sum.runs - before
        );
    }
    sites.merge(&sum.table);
    println!("{sites}");
    println!(
        "{} runs with a fault; errors met: {:?}",
        sum.runs, sum.errors
    );
    if only.is_none() {
        let missing = covered(&sites);
        assert!(missing.is_empty(), "not covered:\n{}", missing.join("\n"));
    }
}

/// A disk that fills up while a store is loaded.
#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    for capacity in [300 << 10, 400 << 10, 500 << 10, 700 << 10, 1 << 20] {
        for log in [true, false] {
            let _repeat = Repeat(format!("capacity {capacity}, log {log}: test a_full_disk"));
            full(capacity, log);
        }
    }
}

fn full(capacity: u64, log: bool) {
    let vfs = SimVfs::new(SimOptions {
        seed: capacity,
        capacity: None,
    });
    let mut world = World::new(vfs, small().with_log(log));
    world.open().expect("nothing stops it");
    world.create("a").expect("nothing stops it");
    world.checkpoint().expect("nothing stops it");
    world.vfs.set_capacity(Some(capacity));
    world.faulty = true;
    let mut refused = 0;
    for i in 0..3000 {
        let level = if i % 7 == 0 {
            Durability::Sync
        } else {
            Durability::Interval
        };
        if world.fill("a", (i * 37 % 20_000, 20, 1), 80, level) == Ok(false) {
            refused += 1;
        }
        world.steps(2).expect("nothing stops it");
        if 8 < refused || world.poisoned {
            break;
        }
    }
    assert!(0 < refused, "{capacity} bytes are filled by 5 MB");
    let full = world
        .errors
        .iter()
        .filter(|kind| **kind == ErrorKind::Full)
        .count();
    assert!(
        0 < full,
        "the error says that the disk is full: {:?}",
        world.errors
    );
    world.look().expect("nothing stops it");
    assert!(
        world
            .errors
            .iter()
            .all(|kind| matches!(kind, ErrorKind::Full | ErrorKind::Closed)),
        "{:?}",
        world.errors
    );
    crashed(&world, capacity);
    world.vfs.set_capacity(None);
    if !world.poisoned {
        world.faulty = false;
        world
            .fill("a", (5, 9, 1), 10, Durability::Sync)
            .expect("nothing stops it");
        world.settle().expect("nothing stops it");
        world.look().expect("nothing stops it");
    }
    world.faulty = true;
    healed(&mut world);
}

/// A disk without a free block, on which a store is opened several times and then emptied.
#[test]
fn a_store_opens_on_a_full_disk_and_can_be_emptied() {
    for capacity in [400 << 10, 500 << 10, 700 << 10, 1 << 20] {
        for (log, profile) in [
            (true, Profile::KeepsEverything),
            (true, Profile::Atomic512),
            (false, Profile::KeepsEverything),
            (false, Profile::Atomic512),
        ] {
            let _repeat = Repeat(format!(
                "capacity {capacity}, log {log}, {profile:?}: test a_store_opens_on_a_full_disk"
            ));
            emptied(capacity, log, profile);
        }
    }
}

fn emptied(capacity: u64, log: bool, profile: Profile) {
    let mut world = World::new(SimVfs::new(SimOptions::default()), small().with_log(log));
    world.open().expect("nothing stops it");
    world.create("a").expect("nothing stops it");
    world.create("b").expect("nothing stops it");
    world
        .fill("b", (0, 40, 1), 10, Durability::Sync)
        .expect("nothing stops it");
    world.checkpoint().expect("nothing stops it");
    world.vfs.set_capacity(Some(capacity));
    world.faulty = true;
    let mut refused = 0;
    for i in 0..3000 {
        let done = world.fill("a", (i * 37 % 20_000, 20, 1), 80, Durability::Sync);
        refused += u32::from(done == Ok(false));
        world.steps(2).expect("nothing stops it");
        if 8 < refused || world.poisoned {
            break;
        }
    }
    assert!(8 < refused || world.poisoned, "the disk is full");
    for opening in 0..3 {
        let crash = Crash {
            profile,
            outcome: Outcome::Random,
            seed: capacity + opening,
        };
        let image = world.vfs.crash(crash);
        world.abandon();
        world.vfs = image;
        world.errors.clear();
        world.vfs.set_capacity(Some(world.vfs.used()));
        world.open().expect("nothing stops it");
        assert!(world.db.is_some(), "opening {opening}: {:?}", world.errors);
        world.adopt().expect("nothing stops it");
        let number = u32::try_from(opening).expect("small");
        let done = world.clear("b", (number * 10, 10, 1));
        assert_eq!(done, Ok(true), "delete {opening}: {:?}", world.errors);
    }
    world.look().expect("nothing stops it");
    let done = world.drop_tree("a");
    assert_eq!(done, Ok(true), "drop: {:?}", world.errors);
    let done = world.checkpoint();
    assert_eq!(done, Ok(true), "checkpoint: {:?}", world.errors);
    world.errors.clear();
    world.faulty = false;
    world
        .fill("b", (100, 200, 1), 80, Durability::Sync)
        .expect("nothing stops it");
    world.settle().expect("nothing stops it");
    world.look().expect("nothing stops it");
}

/// Which calls there are is known to [`FaultKind::befalls`]; a new one must be thought about.
#[test]
fn every_kind_of_call_can_fail() {
    let calls = [
        Call::Open,
        Call::Rename,
        Call::Remove,
        Call::CreateDir,
        Call::SyncDir,
        Call::Read,
        Call::Write,
        Call::Sync,
        Call::SetLen,
        Call::Allocate,
    ];
    assert!(calls.into_iter().all(|call| FaultKind::Eio.befalls(call)));
}
