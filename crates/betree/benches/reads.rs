//! What does a read of a settled store cost, and how much of it does the device see? Loads rows as
//! the insert benchmark does (164 bytes under an ascending key, three random keys each), settles,
//! then gets rows by their key and walks ten entries from random places of the indexes.
//!
//! `cargo bench -p betree --bench reads -- ROWS MEMORY_MIB PAGE SECONDS` (default: 1 million rows,
//! 64 MiB, 8192 bytes, 5 seconds for each kind). For data larger than memory run it in a control
//! group with a limit. With `BETREE_ENCRYPT` set, the store is encrypted.
#![expect(
    clippy::indexing_slicing,
    reason = "a benchmark with numbers of its own"
)]

use std::ops::Bound;
use std::time::Duration;

use betree::{Batch, Db, Direction, Durability, MasterKey, Options, TreeId, TreeOptions};
use stdx::rng::{Rng, mix64};
use stdx::time;

const ROWS_A_COMMIT: u64 = 1000;
const LENGTHS: [usize; 3] = [20, 24, 28];

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let number = |at: usize, or: u64| numbers.get(at).copied().unwrap_or(or);
    let rows = number(0, 1_000_000);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = Options::balanced()
        .with_memory(number(1, 64) << 20)
        .with_page(u32::try_from(number(2, 8192)).expect("a size of pages"))
        .with_encryption(std::env::var_os("BETREE_ENCRYPT").map(|_| MasterKey::new([7; 32])));
    let limit = Duration::from_secs(number(3, 5));
    let db = Db::open(directory.path(), options).expect("open");
    let trees = ["rows", "first", "second", "third"].map(|name| {
        db.create_tree(name, TreeOptions::default())
            .expect("a tree")
    });
    load(&db, &trees, rows);
    println!("resident {} MiB", status("VmRSS") >> 10);

    let mut rng = Rng::new(7);
    let mut value = Vec::new();
    measure("get", limit, || {
        let row = rows / 2 + rng.below(rows - rows / 2);
        let snapshot = db.begin_read().expect("a snapshot");
        let found = snapshot.get_into(trees[0], &row.to_be_bytes(), &mut value);
        assert!(found.expect("a row"), "row {row} is there");
        value.len()
    });
    measure("range", limit, || {
        let index = rng.index(3);
        let from = key(index, rng.next_u64());
        let snapshot = db.begin_read().expect("a snapshot");
        let from = Bound::Included(&from[..LENGTHS[index]]);
        let mut cursor = snapshot
            .cursor(trees[index + 1], from, Bound::Unbounded, Direction::Forward)
            .expect("a cursor");
        let mut bytes = 0;
        for _ in 0..10 {
            if !cursor.advance().expect("an entry") {
                break;
            }
            bytes += cursor.key().len();
        }
        bytes
    });
    let stats = db.stats().expect("stats");
    println!("cache: {:?}", stats.cache);
    println!("resident {} MiB", status("VmRSS") >> 10);
    db.close().expect("close");
}

/// The key of `row` in an index.
fn key(index: usize, row: u64) -> [u8; 28] {
    let mut key = [0; 28];
    key[..8].copy_from_slice(&mix64(row ^ index as u64).to_be_bytes());
    key[8..12].copy_from_slice(&((mix64(row) % 100_000) as u32).to_be_bytes());
    let length = LENGTHS[index];
    key[length - 8..length].copy_from_slice(&row.to_be_bytes());
    key
}

fn load(db: &Db, trees: &[TreeId; 4], rows: u64) {
    let mut rng = Rng::new(1);
    let mut value = vec![b'x'; 156];
    let mut batch = Batch::new();
    let start = time::now();
    for row in 0..rows {
        rng.fill(&mut value[..90]);
        batch.put(trees[0], &row.to_be_bytes(), &value);
        for index in 0..3 {
            let key = key(index, row);
            batch.put(trees[index + 1], &key[..LENGTHS[index]], &[]);
        }
        if row % ROWS_A_COMMIT == ROWS_A_COMMIT - 1 || row + 1 == rows {
            db.write(&batch, Durability::Interval).expect("write");
            batch.clear();
        }
    }
    let took = start.elapsed();
    println!("{rows} rows in {took:?}");
    let start = time::now();
    let done = db.settle(Duration::from_secs(600)).expect("settle");
    assert!(done, "ten minutes are enough");
    println!("settled in {:?}", start.elapsed());
}

/// Run `read` for `limit`, in five parts, and print the time of one read.
fn measure(what: &str, limit: Duration, mut read: impl FnMut() -> usize) {
    for _ in 0..5 {
        let (start, cpu, bytes) = (time::now(), cpu(), device());
        let mut count = 0u32;
        let mut sum = 0;
        while start.elapsed() < limit / 5 {
            for _ in 0..100 {
                sum += read();
            }
            count += 100;
        }
        let took = start.elapsed();
        let each = |n: u64| n as f64 / f64::from(count.max(1));
        println!(
            "{what:<6} {:>8.2} us  cpu {:>6.2} us  {:>6.0} bytes from the device",
            took.as_secs_f64() * 1e6 / f64::from(count.max(1)),
            each(self::cpu() - cpu) / 1000.0,
            each(device() - bytes),
        );
        std::hint::black_box(sum);
    }
}

/// Nanoseconds of processor time of this thread.
fn cpu() -> u64 {
    number_in("/proc/thread-self/schedstat", "")
}

/// Bytes the device has read for this process.
fn device() -> u64 {
    number_in("/proc/self/io", "read_bytes: ")
}

/// A line of this process's status, in KiB.
fn status(name: &str) -> u64 {
    number_in("/proc/self/status", name)
}

/// The first number after `name` in a file; 0 where there is none.
fn number_in(path: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let from = text.find(name).map_or("", |at| &text[at..]);
    let digits = from
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .split(|c: char| !c.is_ascii_digit());
    digits
        .into_iter()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}
