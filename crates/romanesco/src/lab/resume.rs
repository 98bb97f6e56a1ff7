//! `romanesco lab resume`.

use std::path::PathBuf;

use lab_report::Result;

use super::{Show, conclude, listen, program};

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab resume out/first")]
pub(crate) struct Args {
    /// The results directory
    run: PathBuf,
    #[command(flatten)]
    show: Show,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    // `run` below reports a run that cannot be read.
    if let Ok(run) = lab_report::store::load(&args.run) {
        lab::run::own_mounts(&run.manifest.plan)?;
    }
    let interrupt = listen()?;
    let mut display = args.show.display();
    let summary = lab::run::resume(&args.run, program()?, display.as_mut(), &interrupt)?;
    drop(display);
    conclude(&args.run, &summary, args.show)
}
