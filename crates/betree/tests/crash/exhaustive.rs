//! Every script is crashed after every call that may change the disk, with each class of outcome;
//! what recovery finds is judged each time. `BETREE_SIM_SEEDS=N` draws N random outcomes for each
//! call instead of one.

use betree::Durability;
use sim::{Crash, Outcome, Profile, SimOptions, SimVfs};

use crate::rig::{Stop, World};
use crate::scripts::{self, Script};
use crate::{Repeat, SCRIPTS, setting};

/// The state of a script before its scene.
pub(crate) fn stage(script: &Script) -> World {
    let vfs = SimVfs::new(SimOptions {
        seed: 11,
        capacity: None,
    });
    let mut world = World::new(vfs, (script.options)());
    (script.before)(&mut world).expect("nothing stops it");
    world
}

/// Crash `script` at every call; returns the number of crash points.
fn explore(script: &Script, only: Option<u64>) -> u64 {
    let mut world = stage(script);
    let first = world.vfs.changes();
    (script.scene)(&mut world).expect("nothing stops it");
    world.look().expect("nothing stops it");
    let points = world.vfs.changes() - first;
    for point in 1..=points {
        if only.is_some_and(|only| only != point) {
            continue;
        }
        let _repeat = Repeat(format!(
            "BETREE_SIM_SCRIPT='{}' BETREE_SIM_POINT={point} cargo test -p betree --test crash \
             every_",
            script.name
        ));
        let mut world = stage(script);
        world.vfs.stop_at_change(first + point);
        let ended = (script.scene)(&mut world);
        assert!(
            ended == Err(Stop) || world.vfs.has_stopped(),
            "the same calls come again"
        );
        let more = setting("BETREE_SIM_SEEDS").unwrap_or(1).saturating_sub(1);
        let seeds = (1..=more).map(|n| (Outcome::Random, point + (n << 32)));
        for (outcome, seed) in Outcome::ALL
            .map(|all| (all, point))
            .into_iter()
            .chain(seeds)
        {
            let crash = Crash {
                profile: Profile::Atomic512,
                outcome,
                seed,
            };
            revive(&world, world.vfs.image(crash), outcome);
        }
    }
    points
}

/// Recover `image`, judge it, and continue with it.
fn revive(world: &World, image: SimVfs, outcome: Outcome) {
    let mut next = World::new(image, world.options.clone());
    next.open().expect("nothing stops it");
    let found = next.found().expect("a healthy disk");
    if let Err(counterexample) = world.history.check(&found) {
        panic!("{outcome:?}: {counterexample}");
    }
    if outcome != Outcome::Random {
        return;
    }
    next.history = sim::checker::History::new(found);
    next.adopt().expect("nothing stops it");
    for name in next.ids.keys().cloned().collect::<Vec<_>>() {
        next.fill(&name, (3, 3, 5), 10, Durability::Sync)
            .expect("nothing stops it");
    }
    next.reopen(world.options.clone())
        .expect("nothing stops it");
}

#[test]
fn every_script_survives_a_crash_after_every_call() {
    let name = std::env::var("BETREE_SIM_SCRIPT").ok();
    let only = setting("BETREE_SIM_POINT");
    let (mut all, mut points) = (0, 0);
    for script in scripts::all() {
        if name.as_ref().is_some_and(|name| name != script.name) {
            continue;
        }
        let found = explore(&script, only);
        println!("{:45} {found:5} crash points", script.name);
        assert!(0 < found, "{} does something", script.name);
        all += 1;
        points += found;
    }
    println!(
        "{all} scripts, {points} crash points, {} recoveries, 0 laws broken",
        points * 6
    );
    assert!(
        name.is_some() || SCRIPTS <= all,
        "the floor is {SCRIPTS} scripts"
    );
}
