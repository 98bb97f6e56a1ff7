//! What does a durable commit of one row cost, and do clients share syncs? Commits at durability
//! `sync` from 1 and from 16 threads, in a new store and again when its log segments are recycled.
//!
//! `cargo bench -p betree --bench commit -- COMMITS [DIRECTORY]` (default: 4000 in a new temporary
//! directory).

use std::path::PathBuf;
use std::sync::Arc;

use betree::{Batch, Db, Durability, Options, TreeOptions};
use stdx::{sync, time};

fn main() {
    let numbers: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let commits = numbers.first().and_then(|n| n.parse().ok());
    let commits: u64 = commits.unwrap_or(4000);
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let directory = numbers
        .get(1)
        .map_or(temporary.path().to_owned(), PathBuf::from);
    // Segments of 1 MiB are full after 256 commits, so that they are soon recycled.
    let options = Options::balanced()
        .with_log_segment(1 << 20)
        .with_checkpoint_bytes(4 << 20);
    let db = Arc::new(Db::open(&directory, options).expect("open"));
    let tree = db
        .create_tree("rows", TreeOptions::default())
        .expect("create");
    for clients in [1, 16, 1, 16] {
        let before = db.stats().expect("stats").log;
        let start = time::now();
        let each = commits / clients;
        let threads: Vec<_> = (0..clients)
            .map(|client| {
                let db = Arc::clone(&db);
                sync::spawn("client", move || {
                    let mut waits = Vec::new();
                    let mut batch = Batch::new();
                    for row in 0..each {
                        batch.clear();
                        let key = (client << 32 | row).to_be_bytes();
                        batch.put(tree, &key, &[b'x'; 156]);
                        let begin = time::now();
                        db.write(&batch, Durability::Sync).expect("write");
                        waits.push(begin.elapsed());
                    }
                    waits
                })
                .expect("a thread")
            })
            .collect();
        let mut waits: Vec<_> = threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("a client"))
            .collect();
        let took = start.elapsed();
        let log = db.stats().expect("stats").log;
        waits.sort_unstable();
        let at = |percent: usize| {
            waits
                .get((waits.len() - 1) * percent / 100)
                .expect("a wait")
        };
        let done = waits.len() as f64;
        println!(
            "{clients:>3} clients: {:>7.0} commits/s, {:.2} syncs and {:.0} bytes a commit, \
             p50 {:?}, p99 {:?}",
            done / took.as_secs_f64(),
            (log.syncs - before.syncs) as f64 / done,
            (log.bytes_written - before.bytes_written) as f64 / done,
            at(50),
            at(99),
        );
    }
}
