//! `romanesco`: the one program: the document server and the laboratory.

/// Print a line on standard output; a reader that is gone is no error.
macro_rules! say {
    ($($text:tt)*) => { ::lab::display::say(&format!($($text)*)) };
}

/// Print a line on standard error.
macro_rules! note {
    ($($text:tt)*) => { ::lab::display::note(&format!($($text)*)) };
}

mod lab;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Storage engines, measured and served.
#[derive(Parser)]
#[command(
    name = "romanesco",
    version,
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
    /// Serve documents to drivers of MongoDB
    Serve(Box<serve::Args>),
    /// Measure storage engines under enforced limits
    Lab {
        #[command(subcommand)]
        command: lab::Command,
    },
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Lab { command } => match command.run() {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                note!("romanesco: {error}");
                ExitCode::from(error.failure.exit_code())
            }
        },
        Command::Serve(args) => match serve::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                note!("romanesco serve: {error}");
                ExitCode::from(serve::FAILED)
            }
        },
    }
}
