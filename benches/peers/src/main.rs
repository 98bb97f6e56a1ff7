//! How fast is betree beside redb, fjall, LMDB (`heed`) and RocksDB, embedded in one process?
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml -- [OPTIONS]`
//!
//! ```text
//! --size in|beyond       data in the cache, or several times the memory   [default: in]
//! --seconds S            time of each step but the load                   [default: 2]
//! --repeats N            runs of each engine; medians are printed         [default: 1]
//! --engines A,B          those to run                                     [default: all built]
//! --directory PATH       where the stores are made                        [default: temporary]
//! ```
//!
//! Each engine runs in a process of its own, inside a control group with a limit of memory that
//! counts the page cache (where the kernel allows it; the output states it when not). Every step
//! is the same loop for all of them (`steps`); what differs is in `engines`, a file for each. The
//! output is a table in Markdown: rates, and how many times faster betree is.

mod engines;
mod limit;
mod peer;
mod steps;
mod table;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use peer::Setup;
use table::Table;

/// A result of this program.
type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = Asked::parse(&arguments)?;
    match &asked.child {
        Some(engine) => steps::run(engine, &asked),
        None => compare(&asked, &arguments),
    }
}

/// What the command line asks for.
struct Asked {
    beyond: bool,
    seconds: f64,
    repeats: usize,
    engines: Vec<String>,
    directory: Option<PathBuf>,
    /// Set for the process that runs one engine.
    child: Option<String>,
}

impl Asked {
    fn parse(arguments: &[String]) -> Outcome<Asked> {
        let mut asked = Asked {
            beyond: false,
            seconds: 2.0,
            repeats: 1,
            engines: engines::NAMES.iter().map(|&n| n.to_owned()).collect(),
            directory: None,
            child: None,
        };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--size" => asked.beyond = value == "beyond",
                "--seconds" => asked.seconds = value.parse()?,
                "--repeats" => asked.repeats = value.parse()?,
                "--engines" => asked.engines = value.split(',').map(str::to_owned).collect(),
                "--directory" => asked.directory = Some(PathBuf::from(value)),
                "--child" => asked.child = Some(value.clone()),
                _ => return Err(format!("unknown option {name}; see the head of main.rs").into()),
            }
        }
        Ok(asked)
    }

    fn setup(&self) -> Setup {
        if self.beyond {
            // Keys and values of 464 MB.
            Setup {
                rows: 4_000_000,
                cache: 96 << 20,
                limit: 192 << 20,
            }
        } else {
            // 58 MB.
            Setup {
                rows: 500_000,
                cache: 256 << 20,
                limit: 1 << 30,
            }
        }
    }
}

/// Run every engine in a process of its own and print the table.
fn compare(asked: &Asked, arguments: &[String]) -> Outcome<()> {
    let mut table = Table::default();
    for repeat in 1..=asked.repeats {
        for engine in &asked.engines {
            eprintln!("{engine}, {repeat} of {}", asked.repeats);
            let temporary = match &asked.directory {
                Some(directory) => tempfile::tempdir_in(directory)?,
                None => tempfile::tempdir()?,
            };
            for (step, value) in child(engine, temporary.path(), arguments)? {
                table.add(engine, &step, value);
            }
        }
    }
    print!("{}", table.markdown(&asked.engines));
    Ok(())
}

/// Run one engine; what it measured, by step.
fn child(engine: &str, store: &Path, arguments: &[String]) -> Outcome<Vec<(String, f64)>> {
    let process = Command::new(std::env::current_exe()?)
        .args(arguments)
        .args(["--child", engine, "--directory"])
        .arg(store)
        .stdout(Stdio::piped())
        .spawn()?;
    let id = process.id();
    let output = process.wait_with_output()?;
    limit::forget(id);
    if !output.status.success() {
        return Err(format!("{engine} ended with {}", output.status).into());
    }
    let mut found = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let (step, value) = line.split_once('\t').ok_or("a line without a value")?;
        eprintln!("  {step:<48} {value}");
        found.push((step.to_owned(), value.parse()?));
    }
    Ok(found)
}
