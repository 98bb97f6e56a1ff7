//! What do thousands of small trees cost? Memory, the time to create, write, checkpoint and open
//! them, and the processor time of an idle store.
//!
//! `cargo bench -p betree --bench many_trees -- TREES ROWS MEMORY_MIB [DIRECTORY]` (default: 10,000
//! trees of 100 rows of 100 bytes, 64 MiB, a new temporary directory).

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use betree::{Batch, Db, Durability, Options, TreeId, TreeOptions};
use stdx::time;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1).filter(|arg| arg != "--bench");
    let mut number = |default: u32| args.next().map_or(Ok(default), |arg| arg.parse());
    let (trees, rows, memory) = (number(10_000)?, number(100)?, number(64)?);
    let temporary = tempfile::tempdir()?;
    let directory = args
        .next()
        .map_or(temporary.path().to_owned(), PathBuf::from);
    let options = || Options::default().with_memory(u64::from(memory) << 20);

    let db = Db::open(&directory, options())?;
    report("empty", Duration::ZERO)?;
    let watch = time::now();
    let ids: Result<Vec<TreeId>, betree::Error> = (0..trees)
        .map(|tree| db.create_tree(&format!("collection-{tree}"), TreeOptions::default()))
        .collect();
    let ids = ids?;
    report("create", watch.elapsed())?;

    let watch = time::now();
    let mut batch = Batch::new();
    for row in 0..rows {
        for (number, tree) in ids.iter().enumerate() {
            let key = (row.wrapping_mul(0x9E37_79B1)).to_be_bytes();
            batch.put(*tree, &key, &[7; 100]);
            if number % 100 == 99 {
                db.write(&batch, Durability::Interval)?;
                batch.clear();
            }
        }
    }
    db.write(&batch, Durability::Interval)?;
    report("write", watch.elapsed())?;

    let watch = time::now();
    db.checkpoint()?;
    report("checkpoint", watch.elapsed())?;

    let watch = time::now();
    let settled = db.settle(Duration::from_secs(600))?;
    report(
        if settled {
            "settle"
        } else {
            "settle (not done)"
        },
        watch.elapsed(),
    )?;

    let before = processor_time()?;
    time::sleep(Duration::from_secs(3));
    let idle = processor_time()?.saturating_sub(before);
    report("processor in 3 s idle", idle)?;

    let watch = time::now();
    db.close()?;
    report("close", watch.elapsed())?;
    let watch = time::now();
    let db = Db::open(&directory, options())?;
    report("open", watch.elapsed())?;
    drop(db);
    Ok(())
}

fn report(what: &str, took: Duration) -> Result<(), Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.unwrap_or("unknown").trim();
    println!(
        "{what:24} {:9.3} s   resident {resident}",
        took.as_secs_f64()
    );
    Ok(())
}

/// User and system time of this process, in clock ticks of 10 ms.
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |index: usize| -> Result<u64, Box<dyn Error>> {
        Ok(fields.get(index).ok_or("a short stat")?.parse()?)
    };
    Ok(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
}
