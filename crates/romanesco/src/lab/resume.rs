//! `romanesco lab resume`.

use std::path::PathBuf;

use lab_report::{Result, store};

use super::run_sweep::Means;
use super::{Show, conclude, listen, program};

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab resume out/first")]
pub(crate) struct Args {
    /// The results directory of a run or a sweep
    run: PathBuf,
    #[command(flatten)]
    show: Show,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    if store::is_sweep(&args.run) {
        let means = Means {
            out: &args.run,
            program: program()?,
            force: false,
            show: args.show,
        };
        return means.run(&store::read_sweep(&args.run)?, &listen()?);
    }
    // `run` below reports a run that cannot be read.
    if let Ok(run) = store::load(&args.run) {
        lab::run::own_mounts(&run.manifest.plan)?;
    }
    let interrupt = listen()?;
    let mut display = args.show.display();
    let summary = lab::run::resume(&args.run, program()?, display.as_mut(), &interrupt)?;
    drop(display);
    conclude(&args.run, &summary, args.show)
}
