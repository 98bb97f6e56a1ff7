//! `romanesco lab export`.

use std::path::PathBuf;

use lab_report::export::{Format, export, export_sweep};
use lab_report::{Error, Result, store};

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab export out/first --format md")]
pub(crate) struct Args {
    /// The results directory of a run or a sweep
    run: PathBuf,
    /// Output format: json, csv, tsv, md, hgrm (latency percentiles) or otava (change detection);
    /// hgrm and otava are for runs only
    #[arg(long, default_value = "csv")]
    format: Format,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let text = match store::is_sweep(&args.run) {
        true => export_sweep(&store::load_sweep(&args.run)?, args.format)?,
        false => export(&store::load(&args.run)?, args.format)?,
    };
    match &args.out {
        Some(path) => {
            vfs::write_atomic(path, text.as_bytes()).map_err(|e| Error::io("write", path, &e))?;
        }
        None => say!("{}", text.trim_end_matches('\n')),
    }
    Ok(0)
}
