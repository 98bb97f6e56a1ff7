//! Orders with an index by price: atomic writes to two trees, a snapshot, a scan of a range.
//!
//! `cargo run -p betree --example orders [-- DIRECTORY]`

use std::error::Error;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::Duration;

use betree::{Db, Direction, Durability, Options};

const ORDERS: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args()
        .nth(1)
        .map_or(temporary.path().join("orders"), PathBuf::from);
    let found = run(&directory)?;
    println!("{found} of {ORDERS} orders cost from 500 up to 600");
    Ok(())
}

/// Write the orders and count those that cost from 500 up to 600.
pub(crate) fn run(directory: &Path) -> Result<usize, Box<dyn Error>> {
    let db = Db::open(directory, Options::ingest().with_memory(64 << 20))?;
    let (orders, by_price) = (db.tree("orders")?.id(), db.tree("orders.price")?.id());

    for number in 0..ORDERS {
        let price = number * 7919 % 100_000;
        let mut transaction = db.begin()?;
        // Conflicts with another writer of this order; the index entry follows from the order, so
        // it is written blindly.
        transaction.put(orders, &number.to_be_bytes(), &price.to_be_bytes())?;
        let entry = [price.to_be_bytes(), number.to_be_bytes()].concat();
        transaction.put_blind(by_price, &entry, &[])?;
        transaction.commit(Durability::Interval)?;
    }
    db.sync_log()?;

    let snapshot = db.begin_read()?;
    let (low, high) = (500_u64.to_be_bytes(), 600_u64.to_be_bytes());
    let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
    let mut cursor = snapshot.cursor(by_price, range.0, range.1, Direction::Forward)?;
    let mut found = 0;
    while cursor.advance()? {
        found += 1;
    }

    drop((cursor, snapshot));
    db.settle(Duration::from_secs(10))?;
    let stats = db.stats()?;
    println!(
        "{} buckets, {:.1} runs in each, {} bytes in the file",
        stats.buckets,
        stats.mean_runs(),
        stats.space.file_bytes
    );
    db.verify()?;
    db.close()?;
    Ok(found)
}
