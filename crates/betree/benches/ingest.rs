//! What does a row cost, and is the rate constant? The insert benchmark without the laboratory:
//! rows of 164 bytes in an ascending tree, and three trees of 20, 24 and 28-byte random keys.
//!
//! `cargo bench -p betree --bench ingest -- ROWS MEMORY_MIB [DIRECTORY [LOG_CODEC]]` (default: 3
//! million rows, 256 MiB, a new temporary directory). With `BETREE_ENCRYPT` set, encrypted.
#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark with numbers of its own"
)]

use std::path::PathBuf;
use std::time::Duration;

use betree::{Batch, Codec, Db, Durability, MasterKey, Options, TreeOptions};
use stdx::rng::Rng;
use stdx::time;

const ROWS_A_COMMIT: u64 = 1000;

fn main() {
    let numbers: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let number = |at: usize, or: u64| numbers.get(at).and_then(|n| n.parse().ok()).unwrap_or(or);
    let rows = number(0, 3_000_000);
    let memory = number(1, 256) << 20;
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let directory = numbers
        .get(2)
        .map_or(temporary.path().to_owned(), PathBuf::from);
    let log_codec = numbers
        .get(3)
        .map_or(Codec::None, |text| text.parse().expect("a codec"));
    let options = Options::balanced()
        .with_memory(memory)
        .with_log_codec(log_codec)
        .with_encryption(std::env::var_os("BETREE_ENCRYPT").map(|_| MasterKey::new([7; 32])));
    let before = time::now();
    let db = Db::open(&directory, options).expect("open");
    println!("opened in {:?}", before.elapsed());
    let names = ["rows", "first", "second", "third"];
    let trees = names.map(|n| {
        db.open_tree(n)
            .or_else(|_| db.create_tree(n, TreeOptions::default()))
            .expect("a tree")
    });
    let mut rng = Rng::new(1);
    let mut value = vec![b'x'; 156];
    let mut batch = Batch::new();
    let start = time::now();
    let mut window = (start, 0);
    let mut slowest = Duration::ZERO;
    let mut waits = Vec::new();
    let mut row: u64 = 0;
    while row < rows {
        batch.clear();
        for _ in 0..ROWS_A_COMMIT {
            rng.fill(&mut value[..90]);
            batch.put(trees[0], &row.to_be_bytes(), &value);
            for (tree, length) in trees[1..].iter().zip([20, 24, 28]) {
                let mut key = [0; 28];
                key[..8].copy_from_slice(&(rng.unit() * 500.0).to_bits().to_be_bytes());
                key[8..12].copy_from_slice(&(rng.below(100_000) as u32).to_be_bytes());
                key[length - 8..length].copy_from_slice(&row.to_be_bytes());
                batch.put(*tree, &key[..length], &[]);
            }
            row += 1;
        }
        let before = time::now();
        db.write(&batch, Durability::Interval).expect("write");
        waits.push(before.elapsed());
        slowest = slowest.max(before.elapsed());
        if Duration::from_secs(1) <= window.0.elapsed() {
            let rate = (row - window.1) as f64 / window.0.elapsed().as_secs_f64();
            println!(
                "{row:>10} rows  {:>9.0} rows/s  slowest commit {slowest:?}",
                rate
            );
            window = (time::now(), row);
            slowest = Duration::ZERO;
        }
    }
    let took = start.elapsed();
    println!(
        "{rows} rows in {took:?}: {:.0} rows/s",
        rows as f64 / took.as_secs_f64()
    );
    waits.sort_unstable();
    for part in [0.5, 0.9, 0.99, 0.999, 1.0] {
        let index = (waits.len().saturating_sub(1) as f64 * part) as usize;
        println!(
            "commit p{:<5} {:?}",
            part * 100.0,
            waits.get(index).copied().unwrap_or_default()
        );
    }
    let stats = db.stats().expect("stats");
    for wait in stats.waits {
        println!(
            "{:<16} {:>9} times {:>9} us",
            wait.name, wait.count, wait.micros
        );
    }
    println!("{:?}", stats.log);
    let before = time::now();
    db.settle(Duration::from_secs(600)).expect("settle");
    println!("settled in {:?}", before.elapsed());
    db.close().expect("close");
    let bytes = vfs::usage(&directory).expect("usage");
    println!("{bytes:?}");
}
