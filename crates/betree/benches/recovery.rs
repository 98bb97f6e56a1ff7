//! How long does a store take to open after its process was killed, by the length of its log? A
//! child writes rows of 164 bytes and three random entries each, as the insert benchmark does,
//! until its log holds so much; then it is killed, and the store is opened and looked at here.
//!
//! `cargo bench -p betree --bench recovery -- LOG_MIB MEMORY_MIB [DIRECTORY]` (default: 1024, 256
//! to open it with, a new temporary directory). The child has memory enough to keep all of it in
//! buffers: the most there can be to do again.

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use betree::{Batch, Db, Durability, Options, TreeOptions};
use stdx::rng::Rng;
use stdx::time;

/// The environment variable that makes a process the child, and names its directory.
const CHILD: &str = "RECOVERY_CHILD";

const ROWS_A_COMMIT: u64 = 1000;
const ENTRIES: [&str; 3] = ["first", "second", "third"];

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<String> = env::args().skip(1).filter(|a| a != "--bench").collect();
    let number = |at: usize, or: u64| numbers.get(at).map_or(Ok(or), |n| n.parse());
    let (log, memory) = (number(0, 1024)? << 20, number(1, 256)? << 20);
    if let Some(directory) = env::var_os(CHILD) {
        return write(Path::new(&directory), log);
    }
    let temporary = tempfile::tempdir()?;
    let directory = numbers
        .get(2)
        .map_or(temporary.path().to_owned(), PathBuf::from);

    let mut child = Command::new(env::current_exe()?)
        .args(&numbers)
        .env(CHILD, &directory)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    child.kill()?;
    child.wait()?;
    let (rows, held) = line.trim().split_once(' ').ok_or("the child failed")?;
    let (rows, held): (u64, u64) = (rows.parse()?, held.parse()?);

    let watch = time::now();
    let db = Db::open(&directory, Options::balanced().with_memory(memory))?;
    let took = watch.elapsed();
    println!(
        "{rows} rows, {} MiB of log: opened in {:.3} s with {} MiB of memory",
        held >> 20,
        took.as_secs_f64(),
        memory >> 20
    );
    let tree = db.open_tree("rows")?;
    let last = (rows - 1).to_be_bytes();
    if db.begin_read()?.get(tree, &last)?.is_none() {
        return Err(format!("row {rows} was acknowledged and is lost").into());
    }
    db.verify()?;
    println!(
        "verified in {:.3} s",
        watch.elapsed().saturating_sub(took).as_secs_f64()
    );
    Ok(())
}

/// Write until the log holds `log` bytes, print the number of rows, and wait to be killed.
fn write(directory: &Path, log: u64) -> Result<(), Box<dyn Error>> {
    let options = Options::balanced()
        .with_memory(8 * log)
        .with_log_max(2 * log)
        .with_checkpoint_bytes(2 * log);
    let db = Db::open(directory, options)?;
    let rows = db.create_tree("rows", TreeOptions::default())?;
    let entries: Result<Vec<_>, _> = ENTRIES
        .iter()
        .map(|name| db.create_tree(name, TreeOptions::default()))
        .collect();
    let entries = entries?;
    let mut rng = Rng::new(1);
    let mut batch = Batch::new();
    let mut row: u64 = 0;
    let mut value = [b'x'; 156];
    while db.stats()?.log.bytes_held < log {
        batch.clear();
        for _ in 0..ROWS_A_COMMIT {
            rng.fill(&mut value);
            batch.put(rows, &row.to_be_bytes(), &value);
            for tree in &entries {
                let key = [rng.next_u64().to_be_bytes(), row.to_be_bytes()].concat();
                batch.put(*tree, &key, &[]);
            }
            row += 1;
        }
        db.write(&batch, Durability::Interval)?;
    }
    println!("{row} {}", db.stats()?.log.bytes_held);
    loop {
        time::sleep(std::time::Duration::from_secs(1));
    }
}
