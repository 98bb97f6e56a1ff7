//! Tasks on the repository itself, run as `cargo xtask TASK`.
//!
//! `tidy` reads the whole repository and reports violations of its rules (layers, sizes, `unsafe`,
//! words, links, ...); it changes nothing. `tighten` lowers the allowances of `tidy` to the numbers
//! that it finds.

mod tidy;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
Tasks on this repository.

Usage: cargo xtask tidy
       cargo xtask tighten

  tidy      check layers, modules, invariants, dependencies, sizes, unsafe, documents, words
  tighten   lower the allowances (crates/*/tidy.toml, docs/tidy.toml) to what tidy finds

Exit codes: 0 no findings, 1 findings, 2 wrong use or unreadable repository.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["tidy"] => exit(workspace_root().and_then(|root| tidy::run(&root))),
        ["tighten"] => exit(workspace_root().and_then(|root| tidy::tighten(&root).map(|()| true))),
        ["help" | "-h" | "--help"] | ["tidy" | "tighten", "-h" | "--help"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The exit code for the result of a task: `true` if there are no findings.
fn exit(done: Result<bool, String>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(2)
        }
    }
}

/// The nearest directory, from the current one upwards, that has `Cargo.lock` and `crates`.
fn workspace_root() -> Result<PathBuf, String> {
    let here = env::current_dir().map_err(|e| format!("the current directory: {e}"))?;
    here.ancestors()
        .find(|dir| dir.join("Cargo.lock").is_file() && dir.join("crates").is_dir())
        .map(PathBuf::from)
        .ok_or_else(|| {
            format!(
                "no workspace at or above {}; run it inside one",
                here.display()
            )
        })
}
