//! Loads on a simulated machine with one processor: time passes when data are written, and the
//! background work runs only while a commit sleeps. So merges keep up if and only if commits sleep
//! for them, or merge.

use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sim::{Fault, FaultKind, Lasts, SimOptions, SimVfs, Sites, When};
use stdx::sync::{Mutex, OnceLock};
use vfs::{File, Held, Open, Site, Vfs};

use super::pace;
use crate::db::{Core, MOST_SLEEP, Transaction};
use crate::error::ErrorKind;
use crate::options::Options;
use crate::tree::State;
use crate::types::{Batch, Durability, TreeId, TreeOptions};

/// Nanoseconds per byte of a device that writes 100 MB/s.
const FAST: u64 = 10;
/// Nanoseconds per byte of a device that writes 1 MB/s.
const SLOW: u64 = 1000;

#[derive(Default)]
struct Seen {
    /// Whether background work is in progress: a sleep during it only takes time.
    working: bool,
    /// The maximum number of runs of a bucket so far; each buffer counts as the run that it
    /// becomes.
    most_runs: usize,
    /// The maximum debt of merges so far, in spans.
    most_debt: f64,
    /// Number of samples while a commit slept, and of those at which the store considered itself
    /// idle.
    looks: usize,
    idle: usize,
}

struct Machine {
    disk: SimVfs,
    nanos_per_byte: u64,
    core: OnceLock<Weak<Core>>,
    seen: Mutex<Seen>,
}

impl Machine {
    fn see<T>(&self, act: impl FnOnce(&mut Seen) -> T) -> T {
        act(&mut self.seen.lock())
    }

    fn work_until(&self, end: Duration) {
        let core = self.core.get().and_then(Weak::upgrade).unwrap();
        while self.disk.now() < end {
            let worked = match core.step() {
                Err(error) if error.kind() == ErrorKind::Full => false,
                worked => worked.unwrap(),
            };
            if !worked {
                self.disk.sleep(end.saturating_sub(self.disk.now()));
            }
            self.look(&core);
        }
    }

    fn look(&self, core: &Core) {
        let all = core.buckets();
        let count = |state: &State| {
            let active = usize::from(0 < state.active.entries());
            state.deltas.len() + state.frozen.len() + active
        };
        let runs = all.iter().map(|(_, bucket)| count(&bucket.state())).max();
        let waiting = core.merges.waiting_bytes() as f64 * core.options.rho();
        let debt = core.merge_allowance().min(waiting) / core.tuning.merge_span;
        self.see(|seen| {
            seen.most_runs = seen.most_runs.max(runs.unwrap_or(0));
            seen.most_debt = seen.most_debt.max(debt);
            seen.looks += usize::from(seen.working);
            seen.idle += usize::from(seen.working && core.timers.looks_idle());
        });
    }
}

struct MachineFile {
    machine: Arc<Machine>,
    file: Box<dyn File>,
}

impl File for MachineFile {
    fn read_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(site, buffer, offset)
    }

    fn write_at(&self, site: Site, bytes: &[u8], offset: u64) -> io::Result<()> {
        let nanos = bytes.len() as u64 * self.machine.nanos_per_byte;
        self.machine.disk.sleep(Duration::from_nanos(nanos));
        self.file.write_at(site, bytes, offset)
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        self.file.sync(site)
    }

    fn set_len(&self, site: Site, length: u64) -> io::Result<()> {
        self.file.set_len(site, length)
    }

    fn allocate(&self, site: Site, offset: u64, length: u64) -> io::Result<()> {
        self.file.allocate(site, offset, length)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

struct MachineVfs(Arc<Machine>);

impl Vfs for MachineVfs {
    fn open(&self, site: Site, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let file = self.0.disk.open(site, path, how)?;
        let machine = Arc::clone(&self.0);
        Ok(Box::new(MachineFile { machine, file }))
    }

    fn rename(&self, site: Site, from: &Path, to: &Path) -> io::Result<()> {
        self.0.disk.rename(site, from, to)
    }

    fn remove(&self, site: Site, path: &Path) -> io::Result<()> {
        self.0.disk.remove(site, path)
    }

    fn create_dir(&self, site: Site, directory: &Path) -> io::Result<()> {
        self.0.disk.create_dir(site, directory)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.0.disk.list(directory)
    }

    fn sync_dir(&self, site: Site, directory: &Path) -> io::Result<()> {
        self.0.disk.sync_dir(site, directory)
    }

    fn hold(&self, directory: &Path) -> io::Result<Box<dyn Held>> {
        self.0.disk.hold(directory)
    }

    fn now(&self) -> Duration {
        self.0.disk.now()
    }

    fn sleep(&self, duration: Duration) {
        let end = self.0.disk.now() + duration;
        let nested = self
            .0
            .see(|seen| std::mem::replace(&mut seen.working, true));
        if nested {
            return self.0.disk.sleep(duration);
        }
        self.0.work_until(end);
        self.0.see(|seen| seen.working = false);
    }

    fn unique(&self) -> u128 {
        self.0.disk.unique()
    }
}

/// The kind of a commit.
#[derive(Clone, Copy, Debug)]
enum Maker {
    Batch,
    Transaction,
}

struct Load {
    machine: Arc<Machine>,
    core: Arc<Core>,
    tree: TreeId,
}

/// Many flushes per byte of a bucket, so that `rho` does not suffice to keep `k_cap`.
fn options() -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_buffer_share(0.1)
        .with_bucket(64 << 10)
        .with_page(512)
        .with_k_cap(8)
        .with_log(false)
        .with_threads(2)
}

impl Load {
    /// A store whose options name threads; the simulated machine does their work.
    fn new(options: &Options, nanos_per_byte: u64) -> Load {
        let machine = Arc::new(Machine {
            disk: SimVfs::new(SimOptions::default()),
            nanos_per_byte,
            core: OnceLock::new(),
            seen: Mutex::new(Seen::default()),
        });
        let vfs: Arc<dyn Vfs> = Arc::new(MachineVfs(Arc::clone(&machine)));
        let (core, _) = crate::db::open(&vfs, Path::new("/store"), options).unwrap();
        let core = Arc::new(core);
        assert!(machine.core.set(Arc::downgrade(&core)).is_ok());
        let tree = core.create_tree("t", TreeOptions::default()).unwrap();
        Load {
            machine,
            core,
            tree,
        }
    }

    /// Does the work of background threads while a commit waits for room: that wait is no sleep.
    fn make_room(&self) {
        while self.core.memory.is_full() {
            if !self.core.flush_one().unwrap() {
                assert!(self.core.freeze_fullest());
            }
        }
    }

    /// Commit rows with random keys; returns how long the commit took.
    fn commit(&self, maker: Maker, rows: std::ops::Range<u32>) -> Duration {
        self.make_room();
        let mut start = self.machine.disk.now();
        let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
        let value = |number: u32| {
            let mut value = [0; 60];
            stdx::rng::Rng::new(u64::from(number)).fill(&mut value);
            value
        };
        match maker {
            Maker::Batch => {
                let mut batch = Batch::new();
                rows.for_each(|row| batch.put(self.tree, &key(row), &value(row)));
                self.core.write(&batch, Durability::None).unwrap();
            }
            Maker::Transaction => {
                let mut transaction = Transaction::new(&self.core).unwrap();
                for row in rows {
                    let pushed = transaction.put_blind(self.tree, &key(row), &value(row));
                    pushed.unwrap();
                }
                self.make_room();
                start = self.machine.disk.now();
                transaction.commit(Durability::None).unwrap();
            }
        }
        self.machine.look(&self.core);
        self.machine.disk.now() - start
    }

    /// The maximum duration of a commit of this many rows: 67 times the duration of its merges,
    /// plus a few merges of buckets at the limit.
    fn most_wait(&self, rows: u32) -> Duration {
        let counters = &self.core.counters;
        let merged = counters.timed_bytes.get().max(1) as f64;
        let nanos = counters.merge_nanos.get() as f64 / merged;
        let nanos = nanos.max(self.machine.nanos_per_byte as f64);
        let bytes = f64::from(rows) * 64.0 * 1.5;
        // The price of a byte changes during the load.
        let cost = bytes * self.core.options.rho() * nanos * 2.0 / 1e9;
        let bucket = self.core.options.bucket() as f64 * 2.0 * nanos / 1e9;
        Duration::from_secs_f64(cost * 67.0 + bucket * 4.0) + MOST_SLEEP
    }
}

fn check(maker: Maker, rows: u32, rows_a_commit: u32, options: &Options) {
    let load = Load::new(options, FAST);
    let mut longest = Duration::ZERO;
    let mut first = 0;
    while first < rows {
        let next = rows.min(first + rows_a_commit);
        longest = load.commit(maker, first..next).max(longest);
        first = next;
    }
    let k_cap = load.core.tuning.k_cap;
    let what = format!("{maker:?} of {rows_a_commit} rows, k_cap {k_cap}");
    let seen = load.machine.seen.lock();
    // I2, with one commit at a time.
    let limit = pace::limit(k_cap);
    let most = load.most_wait(rows_a_commit);
    println!(
        "{what}: {} runs, {:.1} spans, {longest:?} of {most:?}",
        seen.most_runs, seen.most_debt
    );
    assert!(seen.most_runs <= limit, "{what}: {} runs", seen.most_runs);
    assert!(seen.most_debt < 5.0, "{what}: {} spans", seen.most_debt);
    assert!(longest <= most, "{what}: took {longest:?} of {most:?}");
    assert!(8 < load.core.buckets().len(), "{what}: buckets are split");
    let merges = load.core.counters.merges.get();
    assert!(10 < merges, "{what}: the test needs merges, not {merges}");
}

#[test]
fn runs_and_debt_are_bounded_with_batches_of_any_size() {
    for rows_a_commit in [1, 100, 1_000, 10_000, 60_000] {
        check(Maker::Batch, 60_000, rows_a_commit, &options());
    }
}

/// Each batch makes hundreds of buckets, and is flushed dozens of times while it is applied.
#[test]
fn runs_and_debt_are_bounded_with_batches_larger_than_the_buffers() {
    let options = options()
        .with_memory(8 << 20)
        .with_bucket(256 << 10)
        .with_k_cap(16);
    for (rows, rows_a_commit) in [(200_000, 50_000), (1_100_000, 1_000_000)] {
        check(Maker::Batch, rows, rows_a_commit, &options);
    }
}

#[test]
fn runs_and_debt_are_bounded_with_transactions_of_any_size() {
    // The first commit of a store is appended and needs no merge.
    for rows_a_commit in [100, 1_000, 15_000] {
        check(Maker::Transaction, 60_000, rows_a_commit, &options());
    }
}

#[test]
fn runs_are_bounded_whatever_their_cap() {
    for k_cap in [1, 2, 4, 16] {
        check(Maker::Batch, 40_000, 20_000, &options().with_k_cap(k_cap));
    }
}

/// Sleeps that pay for `rho` merged bytes per byte do not pay for the merges that `k_cap` requires.
#[test]
fn runs_are_bounded_where_no_sleep_is_long_enough() {
    // pace: I2.
    for rows_a_commit in [100, 10_000] {
        let options = options().with_rho(0.05);
        check(Maker::Batch, 40_000, rows_a_commit, &options);
    }
}

/// Another thread finds the bucket damaged, or drops its tree, while a commit is about to merge it.
#[test]
fn a_bucket_that_is_not_merged_any_more_is_not_waited_for() {
    let load = Load::new(&options().with_threads(0), FAST);
    let marks: [fn(&mut State); 2] = [|state| state.broken = true, |state| state.dropped = true];
    for mark in marks {
        for number in 0..10_000 {
            load.commit(Maker::Batch, number..number + 1);
        }
        let all = load.core.buckets();
        let most = all.iter().max_by_key(|(_, it)| it.state().deltas.len());
        let (tree, bucket) = most.expect("there are buckets");
        while bucket.state().deltas.len() < 20 {
            let mut batch = Batch::new();
            batch.put(load.tree, &bucket.lo, b"more");
            bucket.state().broken = true;
            load.core.write(&batch, Durability::None).unwrap();
            load.core.flush().unwrap();
            bucket.state().broken = false;
        }
        mark(&mut bucket.state());
        assert!(load.core.thin_out(tree, bucket));
        bucket.state().dropped = false;
        bucket.state().broken = false;
        assert!(load.core.thin_out(tree, bucket));
        assert!(bucket.state().retired || bucket.state().deltas.len() < 15);
    }
}

#[test]
fn a_store_is_not_idle_while_a_commit_waits_for_merges() {
    for (rows, rho, in_parts) in [(900, 8.0, true), (30, 64.0, false)] {
        let load = Load::new(&options().with_rho(rho), SLOW);
        assert_eq!(load.core.tuning.bulk < rows as usize * 64, in_parts);
        let mut longest = Duration::ZERO;
        for first in (0..18_000).step_by(rows as usize) {
            longest = longest.max(load.commit(Maker::Batch, first..first + rows));
        }
        let seen = load.machine.seen.lock();
        assert!(Duration::from_millis(300) < longest, "{longest:?} is short");
        assert!(100 < seen.looks, "{} looks", seen.looks);
        assert_eq!(seen.idle, 0, "of {} looks", seen.looks);
    }
}

#[test]
fn commits_do_not_sleep_for_merges_that_lack_space() {
    let load = Load::new(&options().with_rho(8.0), SLOW);
    let commit = |first: u32| load.commit(Maker::Batch, first..first + 400);
    for first in (0..8_000).step_by(400) {
        commit(first);
    }
    load.machine.disk.inject(Fault {
        sites: Sites::StartWith("merge.write"),
        call: None,
        when: When::Nth(1),
        lasts: Lasts::Sticky,
        kind: FaultKind::Enospc,
    });
    // What is in progress ends.
    commit(8_000);
    let (debt, most) = (&load.core.counters.merge_debt, 10 * MOST_SLEEP);
    for first in (8_400..12_000).step_by(400) {
        let before = debt.get().1;
        assert!(0.0 < load.core.merge_delay(400 * 64).as_secs_f64());
        commit(first);
        let slept = Duration::from_micros(debt.get().1 - before);
        assert!(slept <= most, "a commit slept {slept:?}");
    }
}
