//! What does a row cost through the persistence API? The rows of betree's benchmark `ingest` (164
//! bytes in an ascending tree, three trees of 20, 24 and 28-byte random keys) in batches of `kv`,
//! so that the difference to that benchmark is the price of the API.
//!
//! `cargo bench -p kv-betree --bench insert -- ROWS MEMORY_MIB` (default: 3 million rows, 256 MiB).
#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a benchmark with numbers of its own"
)]

use kv::{Batch, Durability, EngineOptions, TreeOptions};
use stdx::rng::Rng;
use stdx::{ByteSize, time};

const ROWS_A_COMMIT: u64 = 1000;

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let number = |at: usize, or: u64| numbers.get(at).copied().unwrap_or(or);
    let rows = number(0, 3_000_000);
    let options = EngineOptions {
        cache: ByteSize::mib(number(1, 256)),
        ..EngineOptions::default()
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let engine = kv_betree::factory().open(directory.path(), &options);
    let engine = engine.expect("open");
    let trees = ["rows", "first", "second", "third"].map(|name| {
        let tree = engine.create_tree(name, &TreeOptions::default());
        tree.expect("a tree")
    });
    let mut rng = Rng::new(1);
    let mut value = vec![b'x'; 156];
    let mut batch = Batch::new();
    let start = time::now();
    for row in 0..rows {
        rng.fill(&mut value[..90]);
        batch.put(trees[0], &row.to_be_bytes(), &value);
        for (tree, length) in trees[1..].iter().zip([20, 24, 28]) {
            let mut key = [0; 28];
            key[..8].copy_from_slice(&(rng.unit() * 500.0).to_bits().to_be_bytes());
            key[8..12].copy_from_slice(&(rng.below(100_000) as u32).to_be_bytes());
            key[length - 8..length].copy_from_slice(&row.to_be_bytes());
            batch.put(*tree, &key[..length], &[]);
        }
        if (row + 1).is_multiple_of(ROWS_A_COMMIT) {
            engine.write(&batch, Durability::Interval).expect("write");
            batch.clear();
        }
    }
    let took = start.elapsed();
    println!(
        "{rows} rows in {took:?}: {:.0} rows/s",
        rows as f64 / took.as_secs_f64()
    );
    engine.close().expect("close");
}
