//! What does each pass over a key cost between its write and its run? Nanoseconds per key.
//!
//! `cargo bench -p betree --bench kernel`. Plain passes, the best of several rounds, on one thread;
//! run it on a machine that does nothing else.

use betree::bench_kernel::{Buffers, Pass, keys};

const ROUNDS: usize = 5;
const COUNT: usize = 200_000;
const LEN: usize = 24;

fn main() {
    // `cargo test` also starts benches, to check that they start.
    let quick = std::env::args().any(|argument| argument == "--test");
    let (rounds, count) = if quick { (1, 1_000) } else { (ROUNDS, COUNT) };
    println!("{:<44} {:>8}", "pass (keys of 24 bytes)", "ns/key");
    let mut table = Table::default();
    for round in 0..rounds {
        one_buffer(&mut table, round as u64, count);
        merges(&mut table, round as u64, count);
    }
    table.print();
}

fn one_buffer(table: &mut Table, seed: u64, count: usize) {
    let bytes = keys(seed, count, LEN);
    let (_, pass) = Buffers::fill(&bytes, LEN, 1, 1);
    table.add("append, a lock each, 1 buffer", pass);
    let (buffers, pass) = Buffers::fill(&bytes, LEN, 1, 500);
    table.add("append, 500 under a lock, 1 buffer", pass);
    table.bytes_per_key = pass.checksum as f64 / pass.entries as f64;
    table.add("sort, 1 buffer", buffers.sort());
    let gathered = buffers.gather();
    table.add("gather, 1 buffer", gathered);
    let windows = buffers.windows(256);
    assert_eq!(windows.checksum, gathered.checksum, "the same entries");
    table.add("windows of 256, frozen", windows);

    let many = keys(seed, count * 5, LEN);
    let (buffers, pass) = Buffers::fill(&many, LEN, 128, 500);
    table.add("append, a lock each, 128 buffers", pass);
    table.add("windows of 256, active, 128 buffers", buffers.windows(256));
    table.add("sort, 128 buffers", buffers.sort());
    table.add("gather, 128 buffers", buffers.gather());
}

fn merges(table: &mut Table, seed: u64, count: usize) {
    let make = |part: u64, count: usize| {
        let (buffers, _) = Buffers::fill(&keys(seed * 1000 + part, count, LEN), LEN, 1, 500);
        let _ = buffers.sort();
        buffers
    };
    let two = make(1, count / 11).and(make(2, count));
    let _ = two.gather();
    table.add("merge 2-way, 1 : 11", two.merge(false));
    table.add("merge 2-way, 1 : 11, retention", two.merge(true));
    let even = make(1, count / 2).and(make(2, count / 2));
    table.add("merge 2-way, 1 : 1", even.merge(false));
    let eight = (1..8).fold(make(0, count / 8), |all, part| {
        all.and(make(part, count / 8))
    });
    let merged = eight.merge(false);
    assert_eq!(merged.checksum, eight.gather().checksum, "the same entries");
    table.add("merge 8-way", merged);
    table.add("merge 8-way, retention", eight.merge(true));
}

/// The best time of each pass over all rounds, in the order of the first round.
#[derive(Default)]
struct Table {
    rows: Vec<(&'static str, f64)>,
    bytes_per_key: f64,
}

impl Table {
    fn add(&mut self, name: &'static str, pass: Pass) {
        let cost = pass.elapsed.as_secs_f64() * 1e9 / pass.entries as f64;
        match self.rows.iter_mut().find(|(row, _)| *row == name) {
            Some((_, best)) => *best = best.min(cost),
            None => self.rows.push((name, cost)),
        }
    }

    fn print(&self) {
        for (name, cost) in &self.rows {
            println!("{name:<44} {cost:>8.1}");
        }
        println!(
            "{:<44} {:>8.1}",
            "bytes of memory per key", self.bytes_per_key
        );
    }
}
