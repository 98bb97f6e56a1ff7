//! `romanesco`: the command-line program, with the document server and the laboratory.

/// Print a line on standard output; a closed pipe is not an error.
macro_rules! say {
    ($($text:tt)*) => { ::lab::display::say(&format!($($text)*)) };
}

/// Print a line on standard error.
macro_rules! note {
    ($($text:tt)*) => { ::lab::display::note(&format!($($text)*)) };
}

mod backup;
mod cluster;
mod compare_members;
mod install;
mod lab;
mod serve;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: stdx::memory::Allocator = stdx::memory::ALLOCATOR;

/// The version that `--version` prints.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("ROMANESCO_COMMIT"),
    ")"
);

/// Storage engines, measured and served.
#[derive(Parser)]
#[command(
    name = "romanesco",
    version = VERSION,
    about = "Romanesco: a document database over swappable storage engines, and a laboratory",
    after_help = "Example: romanesco lab run iibench-classic -t betree --preset smoke --out \
out/first"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the document database server (MongoDB wire protocol)
    Serve(Box<serve::Args>),
    Cluster(cluster::Args),
    CompareMembers(compare_members::Args),
    Backup(backup::Args),
    VerifyBackup(backup::VerifyArgs),
    Clone(backup::CloneArgs),
    OplogArchive(backup::OplogArgs),
    Restore(backup::RestoreArgs),
    /// Print a shell's completions of this command line
    #[command(after_help = "Example: romanesco completions bash > \
/usr/share/bash-completion/completions/romanesco")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command
    #[command(after_help = "Example: romanesco manual /usr/share/man/man1")]
    Manual {
        /// Existing directory
        directory: PathBuf,
    },
    /// Print the list of settings, or write it into a documentation page
    #[command(hide = true)]
    Settings {
        /// Documentation page; the text after the list's heading is replaced
        page: Option<PathBuf>,
    },
    /// Print the list of supported commands and operators, or write it into a documentation page
    #[command(hide = true)]
    Compatibility {
        /// Documentation page; the text after the list's heading is replaced
        page: Option<PathBuf>,
    },
    /// Benchmark storage engines under enforced memory and I/O limits
    Lab {
        #[command(subcommand)]
        command: lab::Command,
    },
}

fn main() -> ExitCode {
    stdx::memory::keep_little();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    match cli.command {
        Command::Lab { command } => match command.run() {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                note!("romanesco: {error}");
                ExitCode::from(error.kind().exit_code())
            }
        },
        Command::Cluster(args) => ended("cluster", args.run()),
        Command::CompareMembers(args) => ended("compare-members", args.run()),
        Command::Backup(args) => ended("backup", args.run()),
        Command::VerifyBackup(args) => ended("verify-backup", args.run()),
        Command::Clone(args) => ended("clone", args.run()),
        Command::OplogArchive(args) => ended("oplog-archive", args.run()),
        Command::Restore(args) => ended("restore", args.run()),
        Command::Completions { shell } => ended("completions", install::completions(shell)),
        Command::Manual { directory } => ended("manual", install::manual(&directory)),
        Command::Settings { page } => {
            let list = server::reference();
            let written = listed(&list, server::REFERENCE_HEADING, page.as_deref());
            ended("settings", written)
        }
        Command::Compatibility { page } => {
            let list = server::compatibility();
            let written = listed(&list, server::HEADING, page.as_deref());
            ended("compatibility", written)
        }
        Command::Serve(args) => match serve::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                note!("romanesco serve: {failure}");
                ExitCode::from(failure.code)
            }
        },
    }
}

/// Print help, the version, or the error in the command line; returns the exit code.
fn misused(error: &clap::Error) -> ExitCode {
    // A closed pipe is not an error.
    let _ = error.print();
    let serve = std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == "serve");
    ExitCode::from(match error.use_stderr() {
        false => 0,
        true if serve => server::failure::CONFIGURATION,
        true => lab_report::USAGE,
    })
}

/// The exit code of a command, after its error is printed.
fn ended(name: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("romanesco {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Print a list, or write it into a documentation page from its heading on.
fn listed(list: &str, heading: &str, page: Option<&Path>) -> Result<(), String> {
    let Some(path) = page else {
        say!("{}", list.trim_end());
        return Ok(());
    };
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let old = std::fs::read_to_string(path).map_err(failed)?;
    let Some((kept, _)) = old.split_once(heading) else {
        return Err(format!(
            "{}: the heading {heading:?} is missing",
            path.display()
        ));
    };
    std::fs::write(path, format!("{kept}{list}")).map_err(failed)
}
