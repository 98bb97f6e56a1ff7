//! Power loss at every input or output, with random outcomes, over several generations.

use stdx::rng::Rng;

use crate::types::Seq;

use super::disk::Disk;
use super::{append, check, create, payload, recover};

const SALT: u64 = 99;

struct Run {
    /// The last record acknowledged as durable.
    acknowledged: u64,
    /// The last record whose append was started.
    begun: u64,
    /// Checkpoints cover all records below this one.
    from: u64,
}

/// Commit, sync, release and reopen at random until the disk dies or `steps` are done.
fn work(disk: &Disk, run: &mut Run, rng: &mut Rng, steps: usize, first: bool) -> Option<()> {
    let log = if first {
        create(disk).ok()?
    } else {
        let (log, records) = recover(disk, run.from).ok()?;
        check(&records, run.from, SALT);
        let last = log.appended().0;
        assert!(run.acknowledged <= last, "an acknowledged record is lost");
        assert!(last <= run.begun, "records that were never written");
        // Records that were cut will be written again; replayed records are durable.
        run.acknowledged = last;
        run.begun = last;
        log
    };
    for _ in 0..steps {
        run.begun = log.appended().0 + 1;
        append(&log, &payload(run.begun, SALT)).ok()?;
        if rng.chance(0.1) {
            log.write_ready().ok()?;
        }
        if rng.chance(0.1) {
            log.prepare_ahead();
        }
        if rng.chance(0.3) {
            log.sync().ok()?;
            run.acknowledged = log.durable().0;
        }
        if rng.chance(0.05) {
            log.sync().ok()?;
            run.acknowledged = log.durable().0;
            let from = run.acknowledged + 1 - rng.below(run.acknowledged.min(20));
            run.from = run.from.max(from);
            log.release_before(Seq(run.from)).ok()?;
        }
    }
    Some(())
}

fn new_run() -> Run {
    Run {
        acknowledged: 0,
        begun: 0,
        from: 1,
    }
}

#[test]
fn power_loss_at_every_call() {
    let whole = Disk::default();
    work(&whole, &mut new_run(), &mut Rng::new(1), 120, true).unwrap();
    let calls = whole.calls();
    let mut crashes = 0;
    for call in 1..=calls {
        for outcome in 0..6 {
            let disk = Disk::default();
            disk.die_at(call);
            let mut run = new_run();
            let done = work(&disk, &mut run, &mut Rng::new(1), 120, true);
            assert!(done.is_none() || call == calls);
            let seed = call * 100 + outcome;
            let after = disk.crash(&mut Rng::new(seed));
            if run.acknowledged == 0 && run.begun == 0 {
                // The crash happened before the store was created.
                assert!(create(&after).is_ok(), "seed {seed}");
                continue;
            }
            let (log, records) = recover(&after, run.from).unwrap_or_else(|e| {
                panic!("seed {seed}, acknowledged {}: {e}", run.acknowledged);
            });
            check(&records, run.from, SALT);
            let last = log.appended().0;
            assert!(run.acknowledged <= last, "seed {seed}: lost");
            assert!(last <= run.begun, "seed {seed}: invented");
            crashes += 1;
        }
    }
    println!("{calls} calls, {crashes} crashes recovered");
}

#[test]
fn power_loss_again_and_again() {
    let mut generations = 0;
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut disk = Disk::default();
        let mut run = new_run();
        work(&disk, &mut run, &mut rng, 30, true).unwrap();
        for _ in 0..8 {
            // In half of the cases the process was killed and the machine lives.
            disk = if rng.chance(0.3) {
                disk.copy()
            } else {
                disk.crash(&mut rng)
            };
            disk.die_at(disk.calls() + 1 + rng.below(90));
            if work(&disk, &mut run, &mut rng, 60, false).is_none() {
                let mut probe = disk.copy().crash(&mut rng);
                if rng.chance(0.5) {
                    probe = disk.copy();
                }
                let recovered = recover(&probe, run.from);
                let (log, _) = recovered.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                assert!(run.acknowledged <= log.appended().0, "seed {seed}: lost");
            }
            generations += 1;
        }
    }
    println!("{generations} generations");
}
