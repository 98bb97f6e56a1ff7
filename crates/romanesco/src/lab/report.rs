//! `romanesco lab report`.

use std::path::{Path, PathBuf};

use lab_report::{Error, Result, store};

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab report out/first -o first.html")]
pub(crate) struct Args {
    /// The results directory of a run or a sweep
    run: PathBuf,
    /// Output file [default: RUN/report.html]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let path = write(&args.run, args.out.as_deref())?;
    say!("{}", path.display());
    Ok(0)
}

/// Write the report of the run or the sweep in `run`; returns its path.
pub(super) fn write(run: &Path, out: Option<&Path>) -> Result<PathBuf> {
    let html = if store::is_sweep(run) {
        lab_report::report::sweep(&store::load_with(run, lab::run::load)?)
    } else {
        let mut record = lab::run::load(run)?;
        store::load_counters(run, &mut record);
        lab_report::report::render(&record)
    };
    let html = html.map_err(|e| Error::environment(e.to_string()))?;
    let path = out.map_or_else(|| run.join(store::REPORT), Path::to_path_buf);
    vfs::write_atomic(&path, html.as_bytes()).map_err(|e| Error::io("write", &path, &e))?;
    Ok(path)
}
