//! What an installation has beside the program: completions of shells, and manual pages. Both are
//! made from the command line's own definition.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::Cli;

/// The name of the program.
const NAME: &str = "romanesco";

/// Print a shell's completions.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn completions(shell: Shell) -> Result<(), String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    match io::stdout().lock().write_all(&script) {
        // A closed pipe is not an error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Write the manual pages into a directory: `romanesco.1`, `romanesco-serve.1` and so on.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn manual(directory: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    if !fs::metadata(directory).map_err(failed)?.is_dir() {
        return Err(format!("{}: no directory", directory.display()));
    }
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)
}
