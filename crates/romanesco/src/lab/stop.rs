//! `romanesco lab stop`.

use std::fs;
use std::path::PathBuf;

use lab::{Error, Result, store};
use rustix::process::{Pid, Signal, kill_process};

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab stop out/first")]
pub(crate) struct Args {
    /// The results directory
    run: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    store::read_manifest(&args.run)?;
    if !store::in_use(&args.run) {
        return Err(Error::new(format!(
            "no romanesco works on {}",
            args.run.display()
        )));
    }
    let path = args.run.join(store::PID);
    let text = fs::read_to_string(&path).map_err(|e| Error::io("read", &path, &e))?;
    let pid = text.trim().parse().ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Error::new(format!("{} holds no process id", path.display())))?;
    kill_process(pid, Signal::INT)
        .map_err(|e| Error::new(format!("cannot signal process {}: {e}", text.trim())))?;
    say!(
        "asked process {} to stop; go on later with `romanesco lab resume {}`",
        text.trim(),
        args.run.display()
    );
    Ok(0)
}
