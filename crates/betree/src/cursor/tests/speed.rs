//! The cost of a step. Long scans of settled and of busy trees: each must return every entry once;
//! the time is printed, not checked.

use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use super::super::{At, Buckets, MergeCursor, View};
use super::fixture::Runs;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::run::Run;
use crate::types::Direction::{self, Backward, Forward};
use crate::types::{Entry, Op, Seq};

const ENTRIES: u64 = if cfg!(debug_assertions) {
    20_000
} else {
    1_000_000
};

/// A tree of one bucket.
struct Single(View);

impl Buckets for Single {
    fn view(&self, _: At<'_>) -> Result<Option<View>> {
        Ok(Some(self.0.clone()))
    }
}

fn key(number: u64) -> [u8; 20] {
    let mut key = *b"customer/00000000/id";
    key[9..17].copy_from_slice(&number.to_be_bytes());
    key
}

/// A run of the entries whose number is congruent to `part` modulo `parts`.
fn run(runs: &Runs, part: u64, parts: u64, seq: Seq) -> Arc<Run> {
    let keys: Vec<[u8; 20]> = (0..ENTRIES)
        .filter(|n| n % parts == part)
        .map(key)
        .collect();
    let entry = |key| Entry {
        key,
        seq,
        op: Op::Put,
        value: &[7; 8],
    };
    runs.make(keys.iter().map(|key| entry(key)), 16 << 10)
}

fn buffer(part: u64, parts: u64) -> Arc<Buffer> {
    let buffer = Buffer::new(9);
    for number in (0..ENTRIES).filter(|n| n % parts == part) {
        buffer.push(Seq(1), Op::Put, &key(number), &[7; 8]);
    }
    Arc::new(buffer)
}

/// Scan three times: the second time with everything in the cache, the third time between bounds
/// with a common prefix; print the time.
fn measure(what: &str, direction: Direction, view: &View) {
    let single = Arc::new(Single(view.clone()));
    let (first, last) = (key(0), key(ENTRIES - 1));
    let all = (Unbounded, Unbounded);
    let bounded = (Included(&first[..]), Included(&last[..]));
    for (pass, (start, end)) in [("cold", all), ("warm", all), ("bounded", bounded)] {
        let began = stdx::time::now();
        let buckets: Arc<Single> = Arc::clone(&single);
        let mut cursor = MergeCursor::new(buckets, None, Seq(9), start, end, direction);
        let (mut met, mut bytes) = (0, 0);
        while cursor.advance().unwrap() {
            met += 1;
            bytes += (cursor.key().len() + cursor.value().len()) as u64;
        }
        let each = began.elapsed().as_nanos() / u128::from(ENTRIES);
        println!("{what}, {direction:?}, {pass}: {each} ns an entry");
        assert_eq!((met, bytes), (ENTRIES, 28 * ENTRIES));
    }
}

/// Seek to random keys, and print the time of one seek.
fn measure_seeks(what: &str, view: &View) {
    let buckets = Arc::new(Single(view.clone()));
    let mut cursor = MergeCursor::new(buckets, None, Seq(9), Unbounded, Unbounded, Forward);
    let began = stdx::time::now();
    let seeks = ENTRIES / 10;
    for n in 0..seeks {
        let wanted = key(n * 7919 % ENTRIES);
        assert!(cursor.seek(&wanted).unwrap());
        assert_eq!(cursor.key(), wanted);
    }
    let each = began.elapsed().as_nanos() / u128::from(seeks);
    println!("{what}: {each} ns a seek");
}

#[test]
fn long_scans_meet_every_entry() {
    let runs = Runs::new(256 << 20);
    let empty = View {
        buffers: vec![Arc::new(Buffer::new(0))],
        deltas: Vec::new(),
        base: Arc::from([]),
        lo: Arc::from([]),
        hi: None,
    };
    let parts = |count: u64, seq| (0..count).map(move |part| (part, count, seq));
    let made = |count, seq| -> Vec<Arc<Run>> {
        parts(count, seq)
            .map(|(part, parts, seq)| run(&runs, part, parts, seq))
            .collect()
    };
    for direction in [Forward, Backward] {
        let mut view = empty.clone();
        view.base = Arc::from(made(1, Seq(0)));
        measure("settled", direction, &view);
        measure_seeks("settled", &view);
        let mut deltas = made(40, Seq(0));
        deltas.truncate(3);
        view.deltas = deltas;
        measure("base and 3 small deltas", direction, &view);
        view.deltas = Vec::new();
        view.buffers.push(buffer(0, 40));
        measure("base and a small buffer", direction, &view);
        measure_seeks("base and a small buffer", &view);
        view.base = Arc::from(made(1, Seq(5)));
        view.buffers.pop();
        measure("base with versions", direction, &view);
        view = empty.clone();
        view.deltas = made(4, Seq(0));
        measure("4 runs of one size", direction, &view);
        view = empty.clone();
        view.buffers.push(buffer(0, 1));
        measure("a buffer", direction, &view);
    }
}
