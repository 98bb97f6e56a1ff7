//! `romanesco lab calibrate`.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use lab::experiment::{self, Settings};
use lab::run::{Begin, caps};
use lab::targets;
use lab_host::calibrate::Calibration;
use lab_host::probe::DeviceProbe;
use lab_report::record::{Limits, Preset, StepSummary};
use lab_report::{Error, ErrorKind, Result, analysis, store};
use stdx::ByteSize;

use super::{Show, listen, program};

/// One cap of each kind, low enough for every disk to reach.
const CAPS: Limits = Limits {
    memory: None,
    read_iops: Some(300),
    write_iops: Some(200),
    read_bps: Some(30 << 20),
    write_bps: Some(20 << 20),
};

#[derive(clap::Args)]
#[command(
    after_help = "The result is stored for this host, and every later run copies it: \
differences below the noise floor are called \"no difference\".\n\nExample: romanesco lab \
calibrate --aa 5 --target betree"
)]
pub(crate) struct Args {
    /// Number of repeats of the same measurement
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=50))]
    aa: u32,
    /// Target to measure [default: the first persistent engine]
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Directory for temporary data [default: a directory below the current one, removed
    /// afterwards]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    show: Show,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let name = match &args.target {
        Some(name) => name.clone(),
        None => (*targets::defaults().first().ok_or_else(|| {
            Error::environment("no persistent engine is compiled in; name one with --target")
        })?)
        .to_owned(),
    };
    let dir = args.data_dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let out = dir.join(format!(".romanesco-calibrate-{}", std::process::id()));
    let result = measure(args, &name, &out);
    if out.exists() {
        fs::remove_dir_all(&out).map_err(|e| Error::io("remove", &out, &e))?;
    }
    let calibration = result?;
    let path = calibration.keep()?;
    if !args.show.quiet && !args.show.json {
        print(&calibration);
        say!("kept in {}", path.display());
    }
    Ok(0)
}

fn measure(args: &Args, name: &str, out: &std::path::Path) -> Result<Calibration> {
    vfs::ensure_dir(out).map_err(|e| Error::io("create", out, &e))?;
    // A directory without direct I/O (tmpfs) has no device to probe; the noise floor is still
    // measured.
    let device = DeviceProbe::run(out, Duration::from_secs(2), ByteSize::mib(256)).ok();
    let interrupt = listen()?;
    let caps = match caps::check(&program()?, out, &CAPS, 2.0, &interrupt) {
        Ok(checks) => checks,
        Err(error) => {
            eprintln!("warning: I/O caps were not checked: {error}");
            Vec::new()
        }
    };
    let run_dir = out.join("run");
    let settings = Settings {
        preset: Some(Preset::Smoke),
        targets: Some(targets::parse_targets(name)?),
        repeats: Some(args.aa),
        ..Settings::default()
    };
    let experiment = experiment::experiment("iibench-classic")?;
    let plan = experiment::plan(experiment, &settings, &run_dir)?;
    let begin = Begin {
        out: &run_dir,
        command: env::args().collect(),
        commit: env!("ROMANESCO_COMMIT").to_owned(),
        program: program()?,
        force: false,
        prices: None,
    };
    let mut display = args.show.display();
    let summary = lab::run::run(plan, begin, display.as_mut(), &interrupt)?;
    let repeats: Vec<StepSummary> = summary.steps.into_iter().filter(|s| s.valid).collect();
    if repeats.len() < 2 {
        let error =
            Error::environment("too few valid repeats to know the noise; see the messages above");
        return Err(error.with_kind(ErrorKind::Invalid));
    }
    let noise = analysis::noise_floor(&repeats);
    let count = u32::try_from(repeats.len()).unwrap_or(u32::MAX);
    Ok(Calibration::new(name, count, noise, device, caps))
}

fn print(calibration: &Calibration) {
    say!(
        "A/A noise floor of {} over {} repeats",
        calibration.target,
        calibration.repeats
    );
    for (metric, floor) in &calibration.noise {
        say!("  {metric:<28} {:>6.1} %", floor * 100.0);
    }
    for check in &calibration.caps {
        let (limit, cap, ratio) = (check.limit, check.cap, check.ratio);
        say!(
            "cap on {limit} of {cap}: {:.0} measured, {ratio:.3} of it",
            check.measured
        );
    }
    if let Some(device) = &calibration.device {
        say!("device {}", store::pretty(device));
    }
}
