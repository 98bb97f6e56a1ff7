//! The steps, the same for every engine. One thread; keys of 16 bytes, values of 100, half of them
//! compressible. A step but the load lasts a time and is printed as a rate per second.

use std::time::Duration;

use stdx::rng::{Rng, mix64};
use stdx::time;

use crate::peer::{Change, Peer, Setup, Synced};
use crate::{Asked, Outcome, engines, limit};

/// Keys between two loaded rows, for random inserts and for keys that do not exist.
const GAP: u64 = 1 << 20;
/// Rows of a large commit.
const MANY: u64 = 1000;
/// Rows of a commit of the load.
const LOAD: u64 = 10_000;
/// Keys read in one snapshot.
const READS: u64 = 100;

/// A store under test.
struct Run {
    peer: Box<dyn Peer>,
    /// Rows that were loaded, and those that were inserted after that.
    rows: u64,
    inserted: u64,
    span: Duration,
    rng: Rng,
    value: Vec<u8>,
}

/// Run all steps on `engine` in the directory asked for, and print a line for each.
pub(crate) fn run(engine: &str, asked: &Asked) -> Outcome<()> {
    let open = engines::find(engine).ok_or_else(|| format!("no engine {engine} in this build"))?;
    let directory = asked
        .directory
        .as_ref()
        .ok_or("a child needs --directory")?;
    let setup: Setup = asked.setup();
    if let Err(error) = limit::memory(setup.limit) {
        eprintln!("  memory is not limited: {error}");
    }
    let mut run = Run {
        peer: open(directory, setup)?,
        rows: setup.rows,
        inserted: 0,
        span: Duration::from_secs_f64(asked.seconds),
        rng: Rng::new(1),
        value: vec![b'v'; 100],
    };
    run.load()?;
    // Background work that the load has left is done by all engines before they are read.
    time::sleep(run.span);
    run.reads("after the load")?;
    run.writes()?;
    run.reads("after the writes")?;
    let rows = (run.rows + run.inserted) as f64;
    println!(
        "bytes on disk per row, store open\t{:.1}",
        size(directory)? as f64 / rows
    );
    run.deletes()?;
    run.peer.close()
}

impl Run {
    fn load(&mut self) -> Outcome<()> {
        let start = time::now();
        for first in (0..self.rows).step_by(usize::try_from(LOAD)?) {
            let last = (first + LOAD).min(self.rows);
            let changes: Vec<Change> = (first..last).map(|n| self.put(n * GAP)).collect();
            self.peer.write(&changes, Synced::Yes)?;
        }
        let took = start.elapsed().as_secs_f64();
        println!(
            "load in key order, 10,000 a commit, synced\t{:.0}",
            self.rows as f64 / took
        );
        Ok(())
    }

    fn reads(&mut self, when: &str) -> Outcome<()> {
        self.step(&format!("point reads, {when}"), |run| {
            let keys: Vec<_> = (0..READS).map(|_| key(run.row())).collect();
            let found = run.peer.read(&keys)?;
            assert_eq!(found, keys.len(), "every loaded row exists");
            Ok(READS)
        })?;
        self.step(&format!("reads of absent keys, {when}"), |run| {
            let keys: Vec<_> = (0..READS).map(|_| key(run.row() + 1)).collect();
            assert_eq!(run.peer.read(&keys)?, 0, "no odd key exists");
            Ok(READS)
        })?;
        self.step(&format!("entries of scans of 100, {when}"), |run| {
            let from = key(run.row());
            Ok(run.peer.scan(&from, 100)? as u64)
        })?;
        self.step(&format!("entries of long scans, {when}"), |run| {
            let from = key(run.rng.below(run.rows / 2) * GAP);
            Ok(run.peer.scan(&from, 200_000)? as u64)
        })
    }

    fn writes(&mut self) -> Outcome<()> {
        self.step("random inserts, 1000 a commit, synced", |run| {
            let changes: Vec<Change> = (0..MANY).map(|_| run.insert()).collect();
            run.peer.write(&changes, Synced::Yes)?;
            Ok(MANY)
        })?;
        self.step("random inserts, 1 a commit, synced", |run| {
            let change = run.insert();
            run.peer.write(&[change], Synced::Yes)?;
            Ok(1)
        })?;
        self.step("random inserts, 1 a commit, not synced", |run| {
            let change = run.insert();
            run.peer.write(&[change], Synced::No)?;
            Ok(1)
        })?;
        self.step(
            "reads and updates by halves, 1 a commit, not synced",
            |run| {
                let row = run.row();
                let change = run.put(row);
                run.peer.write(&[change], Synced::No)?;
                let row = run.row();
                run.peer.read(&[key(row)])?;
                Ok(2)
            },
        )?;
        // What was not synced is, before the next step and outside of its time.
        let change = self.insert();
        self.peer.write(&[change], Synced::Yes)
    }

    fn deletes(&mut self) -> Outcome<()> {
        self.step("deletes, 1000 a commit, synced", |run| {
            let changes = (0..MANY).map(|_| Change::Delete(key(run.row())));
            let changes: Vec<Change> = changes.collect();
            run.peer.write(&changes, Synced::Yes)?;
            Ok(MANY)
        })
    }

    /// Repeat `body`, which does as many operations as it returns, and print the rate.
    fn step(&mut self, name: &str, mut body: impl FnMut(&mut Run) -> Outcome<u64>) -> Outcome<()> {
        let start = time::now();
        let mut done = 0;
        while start.elapsed() < self.span {
            done += body(self)?;
        }
        println!("{name}\t{:.0}", done as f64 / start.elapsed().as_secs_f64());
        Ok(())
    }

    /// The number of a loaded row, times the gap.
    fn row(&mut self) -> u64 {
        self.rng.below(self.rows) * GAP
    }

    /// A new row at a random place; even, so that odd keys stay absent.
    fn insert(&mut self) -> Change {
        let place = self.rng.below(self.rows * GAP) & !1;
        self.inserted += 1;
        self.put(place)
    }

    fn put(&mut self, place: u64) -> Change {
        let (random, _) = self.value.split_at_mut(50);
        self.rng.fill(random);
        Change::Put(key(place), self.value.clone())
    }
}

/// The key at `place`: keys are in the order of their places.
fn key(place: u64) -> Vec<u8> {
    [place.to_be_bytes(), mix64(place).to_be_bytes()].concat()
}

/// The space that the files of `directory` take, in bytes (holes are not counted).
fn size(directory: &std::path::Path) -> Outcome<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            size(&entry.path())?
        } else {
            metadata.blocks() * 512
        };
    }
    Ok(bytes)
}
