//! Tests that cannot run on this machine are reported and counted.
//!
//! For `cargo test`, a test passes or fails: a test that returns early because a server, a
//! permission or a device is missing counts as passed. Such a test calls [`test()`], which appends
//! a line to the file that the environment variable [`LIST`] names. `scripts/count-tests` sets it
//! and prints the lines, and their number, at its end.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;

/// The environment variable that names the file of skipped tests.
pub const LIST: &str = "ROMANESCO_SKIPPED_TESTS";

/// Records that the running test cannot run on this machine, and why. The caller returns next.
///
/// The recorded name is that of the thread: the test runner names each thread after its test.
///
/// # Panics
/// If the file cannot be written: otherwise the skipped test would count as passed.
pub fn test(why: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {why}\n", thread.name().unwrap_or("a test")).replace('\r', "");
    eprint!("skipped: {line}");
    let Some(path) = env::var_os(LIST) else {
        return;
    };
    // Each line is written with one call, because tests of several threads and processes append to
    // the same file.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!(
            "cannot record a skipped test in {}: {error}",
            path.display()
        );
    }
}
