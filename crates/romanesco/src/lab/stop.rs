//! `romanesco lab stop`.

use std::path::PathBuf;

use lab_report::{Error, Result, store};
use rustix::process::{Pid, Signal, kill_process};

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab stop out/first")]
pub(crate) struct Args {
    /// The results directory of a run or a sweep
    run: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let at = args.run.display();
    let held = if store::is_sweep(&args.run) {
        store::sweep_holder(&args.run)?.map(|(_, process)| process)
    } else {
        store::read_manifest(&args.run)?;
        store::holder(&args.run)?
    };
    let Some(process) = held else {
        return Err(Error::environment(format!("no romanesco works on {at}")));
    };
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Error::environment(format!("{process} is no process id")))?;
    kill_process(pid, Signal::INT)
        .map_err(|e| Error::environment(format!("cannot signal process {process}: {e}")))?;
    say!("asked process {process} to stop; continue later with `romanesco lab resume {at}`");
    Ok(0)
}
