//! Random workloads, random crashes, recovery, and further work on the recovered store.

use sim::checker::History;
use sim::{Crash, Fault, FaultKind, Lasts, Pages, SimOptions, SimVfs, Sites, When};
use stdx::Rng;

use crate::draw::{self, Load};
use crate::rig::{Step, Stop, World, say};
use crate::{RANDOM_RECOVERIES, Repeat, setting};

/// Number of times that a store is crashed and continued.
const GENERATIONS: u64 = 8;
/// Maximum number of crashes during one recovery.
const DEEP: u64 = 3;
/// Fraction of lives that end with a settled store, which is compared with one that is loaded at
/// once.
const SETTLED: f64 = 0.1;
/// One seed in this many is run twice: the calls must be the same (L8).
const TWICE: u64 = 50;

/// The results of one seed.
#[derive(Default)]
struct Tally {
    recoveries: u64,
    within: u64,
    kills: u64,
    commits: usize,
    faults: usize,
    hash: u64,
}

/// Run one seed.
fn run(seed: u64) -> Tally {
    let mut rng = Rng::new(seed);
    let vfs = SimVfs::new(SimOptions {
        seed,
        capacity: None,
    });
    let mut world = World::new(vfs, draw::options(&mut rng));
    let mut load = Load::draw(&mut rng);
    let mut tally = Tally::default();
    for _ in 0..1 + rng.below(GENERATIONS) {
        let stop = match rng.below(3) {
            0 => rng.below(30),
            1 => rng.below(300),
            _ => rng.below(3000),
        };
        if rng.chance(0.5) {
            world.vfs.stop_at(world.vfs.ios() + 1 + stop);
        } else {
            world.vfs.stop_at_change(world.vfs.changes() + 1 + stop / 2);
        }
        if rng.chance(0.2) {
            let fault = fault(&mut rng);
            say(|| format!("{fault:?}"));
            world.vfs.inject(fault);
            world.faulty = true;
        }
        let ended = live(&mut world, &mut load, &mut rng);
        tally.commits += world.history.started();
        tally.faults += world.errors.len();
        load.forget();
        world.errors.clear();
        if ended.is_ok() && !world.vfs.has_stopped() && rng.chance(0.3) {
            // No power loss: the process ended, by itself or because of a fault.
            again(&mut world, &mut rng);
        } else if world.vfs.has_stopped() && rng.chance(0.25) {
            kill(&mut world, &mut rng);
            tally.kills += 1;
        } else {
            recover(&mut world, &mut rng, &mut tally);
        }
        // What an encrypted store writes has random salts, so its calls are only counted.
        let calls = match world.options.encryption() {
            None => world.vfs.trace_hash(),
            Some(_) => world.vfs.ios(),
        };
        tally.hash = tally.hash.rotate_left(7) ^ calls;
        if rng.chance(0.3) {
            load = Load::draw(&mut rng);
        }
    }
    tally
}

/// Open the store if necessary, and work until the machine stops or enough was done.
fn live(world: &mut World, load: &mut Load, rng: &mut Rng) -> Step {
    if world.db.is_none() {
        world.open()?;
        if world.db.is_none() {
            return Ok(());
        }
        world.adopt()?;
    }
    for _ in 0..rng.below(120) {
        if world.db.is_none() || world.poisoned {
            return Ok(());
        }
        if rng.chance(0.01) {
            load.forget();
            let options = draw::again(rng, &world.options);
            world.reopen(options)?;
        } else {
            load.act(world, rng)?;
        }
    }
    if world.db.is_none() {
        return Ok(());
    }
    if rng.chance(SETTLED) {
        load.forget();
        world.check_settled()?;
    }
    world.look()
}

/// End the process without a crash, and open the same disk in another one.
fn again(world: &mut World, rng: &mut Rng) {
    world.vfs.stop_at(u64::MAX);
    world.vfs.stop_at_change(u64::MAX);
    world.abandon();
    world.vfs.clear_faults();
    world.vfs.evict();
    world.faulty = false;
    world.options = draw::again(rng, &world.options);
    world.open().expect("nothing stops it");
    world.adopt().expect("nothing stops it");
}

/// Kill the process during a call, and open the same disk in another one: it sees all writes,
/// synced or not, and the state it recovers must survive a power loss.
fn kill(world: &mut World, rng: &mut Rng) {
    let survived = world.vfs.fork();
    world.abandon();
    world.vfs = survived;
    world.faulty = false;
    world.options = draw::again(rng, &world.options);
    world.open().expect("nothing stops it");
    world.adopt().expect("nothing stops it");
}

/// Crash, also during recovery, until a recovery succeeds and can be checked.
fn recover(world: &mut World, rng: &mut Rng, tally: &mut Tally) {
    let mut deep = 0;
    loop {
        let crash = Crash::draw(rng);
        say(|| format!("{crash:?} at call {}", world.vfs.ios()));
        let before = world.vfs.crash(crash);
        let twin = before.fork();
        world.abandon();
        world.vfs = before;
        world.faulty = false;
        world.options = draw::again(rng, &world.options);
        tally.recoveries += 1;
        if deep < DEEP && rng.chance(0.3) {
            deep += 1;
            world.vfs.stop_at(world.vfs.ios() + 1 + rng.below(60));
        }
        // Creating a log segment ahead of its use may fail without an error; the next call would
        // return it.
        if world.open() == Err(Stop) || world.vfs.has_stopped() {
            tally.within += 1;
            continue;
        }
        if rng.chance(0.25) {
            physically_equal(world, twin);
        }
        world.vfs.stop_at(u64::MAX);
        world.adopt().expect("nothing stops it");
        return;
    }
}

/// L5: the same image recovers to the same bytes. What an encrypted store writes has random salts:
/// only the lengths of its files are compared.
fn physically_equal(world: &World, twin: SimVfs) {
    let here = world.vfs.content_hash();
    let mut other = World::new(twin, world.options.clone());
    other.open().expect("nothing stops it");
    if world.options.encryption().is_some() {
        assert_eq!(world.vfs.files(), other.vfs.files(), "L5: the same files");
        return;
    }
    if here != other.vfs.content_hash() {
        println!("{}", differences(&world.vfs, &other.vfs));
    }
    assert_eq!(
        here,
        other.vfs.content_hash(),
        "L5: the same image recovers to the same bytes"
    );
    other.history = History::default();
}

/// The differences between two disks.
fn differences(a: &SimVfs, b: &SimVfs) -> String {
    let mut text = format!("{:?} and {:?}", a.files(), b.files());
    for (path, _) in a.files() {
        let (a, b) = (
            a.peek(&path).unwrap_or_default(),
            b.peek(&path).unwrap_or_default(),
        );
        let wrong = (0..a.len().min(b.len())).filter(|&i| a.get(i) != b.get(i));
        let blocks: std::collections::BTreeSet<usize> = wrong.map(|i| i / 512 * 512).collect();
        if !blocks.is_empty() {
            text += &format!("\n  {}: sectors {blocks:?}", path.display());
        }
    }
    text
}

fn fault(rng: &mut Rng) -> Fault {
    let kinds = [
        FaultKind::Eio,
        FaultKind::Enospc,
        FaultKind::ShortWrite,
        FaultKind::SyncFails(Pages::Keep),
        FaultKind::SyncFails(Pages::Revert),
        FaultKind::BitFlip,
        FaultKind::MisdirectedRead,
    ];
    let kind = draw::pick(rng, &kinds);
    // There is no evidence for what the log synced last: a false sync of it looks like a torn tail,
    // by design.
    let truthful = [
        "page.",
        "index.",
        "merge.",
        "verify.",
        "image.",
        "superblock.",
    ];
    let sites = match kind {
        FaultKind::BitFlip | FaultKind::MisdirectedRead => {
            Sites::StartWith(draw::pick(rng, &truthful))
        }
        _ => Sites::All,
    };
    Fault {
        sites,
        call: None,
        when: When::Nth(1 + rng.below(400)),
        lasts: draw::pick(rng, &[Lasts::Once, Lasts::Heals(3), Lasts::Sticky]),
        kind,
    }
}

#[test]
fn random_crashes_lose_nothing_promised() {
    let first = setting("BETREE_SIM_SEED").unwrap_or(1);
    let runs = setting("BETREE_SIM_RUNS");
    let mut sum = Tally::default();
    let mut seed = first;
    loop {
        match runs {
            Some(runs) if first + runs <= seed => break,
            None if RANDOM_RECOVERIES <= sum.recoveries => break,
            _ => {}
        }
        let _repeat = Repeat(format!(
            "BETREE_SIM_SEED={seed} BETREE_SIM_RUNS=1 cargo test -p betree --test crash random_"
        ));
        let tally = run(seed);
        if seed.is_multiple_of(TWICE) || runs == Some(1) {
            assert_eq!(
                tally.hash,
                run(seed).hash,
                "L8: the same seed makes the same calls"
            );
        }
        sum.recoveries += tally.recoveries;
        sum.within += tally.within;
        sum.kills += tally.kills;
        sum.commits += tally.commits;
        sum.faults += tally.faults;
        seed += 1;
        if seed.is_multiple_of(1000) {
            println!("seed {seed}: {} recoveries", sum.recoveries);
        }
    }
    println!(
        "{} seeds: {} crashes recovered from ({} of them crashed again on the way), {} kills, \
         {} commits started, {} errors by faults, 0 laws broken",
        seed - first,
        sum.recoveries,
        sum.within,
        sum.kills,
        sum.commits,
        sum.faults
    );
}
