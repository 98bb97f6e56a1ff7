//! `romanesco lab calibrate`.

use std::collections::BTreeMap;
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

/// Equal runs on a machine that does nothing else differ by less.
const BUSY: f64 = 0.05;

#[derive(clap::Args)]
#[command(
    after_help = "The result is stored for this host, and every later run copies it: \
an effect below the noise floor is never called a difference. Steps are measured as \
long as those of the preset, so calibrate with the preset of the runs to judge. A floor of the \
rate above 5 %, and a repeat that other programs disturbed, are refused: the machine is busy (exit \
code 4).\n\nExample: romanesco lab \
calibrate --aa 5 --target betree"
)]
pub(crate) struct Args {
    /// Number of repeats of the same measurement
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..=50))]
    aa: u32,
    /// Target to measure [default: the first persistent engine]
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Preset of the runs to judge: its steps are measured
    #[arg(long, default_value = "quick")]
    preset: Preset,
    /// Store the result even if equal runs differ by more than 5 %
    #[arg(long)]
    allow_busy: bool,
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
        preset: Some(args.preset),
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
    if repeats.len() < 3 {
        let error =
            Error::environment("too few valid repeats to know the noise; see the messages above");
        return Err(error.with_kind(ErrorKind::Invalid));
    }
    let noise = analysis::noise_floor(&repeats);
    if !args.allow_busy {
        refuse_busy(&noise)?;
        refuse_disturbed(&repeats)?;
    }
    let count = u32::try_from(repeats.len()).unwrap_or(u32::MAX);
    Ok(Calibration::new(name, count, noise, device, caps))
}

/// A floor above [`BUSY`] is not stored: later runs would inherit one busy hour.
fn refuse_busy(noise: &BTreeMap<String, f64>) -> Result<()> {
    match noise.get("rate_mean") {
        Some(&floor) if BUSY < floor => Err(Error::new(
            ErrorKind::Inconclusive,
            format!(
                "equal runs differ by {:.1} % in their rate: the machine is busy, and nothing was \
                 stored; end what else runs here and calibrate again, or store it anyway with \
                 --allow-busy",
                floor * 100.0
            ),
        )),
        _ => Ok(()),
    }
}

/// Repeats that other programs disturbed show their noise, and not that of the machine.
fn refuse_disturbed(repeats: &[StepSummary]) -> Result<()> {
    let mut disturbed = repeats.iter().filter(|s| !s.disturbed().is_empty());
    match disturbed.next() {
        Some(step) => Err(Error::new(
            ErrorKind::Inconclusive,
            format!(
                "the machine is busy, and nothing was stored: {} in repeat {}; end what else runs \
                 here and calibrate again, or store it anyway with --allow-busy",
                step.disturbed().join("; "),
                step.repeat
            ),
        )),
        None => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use lab_report::record::Others;

    use super::*;

    #[test]
    fn disturbed_repeats_are_refused() {
        let quiet = StepSummary {
            repeat: 1,
            ..StepSummary::default()
        };
        assert!(refuse_disturbed(std::slice::from_ref(&quiet)).is_ok());
        let others = Others {
            disturbed: vec!["other programs used 40 % of the CPU time".to_owned()],
            ..Others::default()
        };
        let disturbed = StepSummary {
            repeat: 2,
            others: Some(others),
            ..StepSummary::default()
        };
        let error = refuse_disturbed(&[quiet, disturbed]).unwrap_err();
        assert_eq!(error.kind().exit_code(), 4);
        let text = error.to_string();
        assert!(
            text.contains("busy") && text.contains("CPU time in repeat 2"),
            "{text}"
        );
    }

    #[test]
    fn a_busy_machine_is_refused() {
        let floors = |rate| BTreeMap::from([("rate_mean".to_owned(), rate)]);
        assert!(refuse_busy(&floors(0.049)).is_ok());
        let error = refuse_busy(&floors(0.12)).unwrap_err();
        assert_eq!(error.kind().exit_code(), 4);
        assert!(error.to_string().contains("12.0 %"), "{error}");
        assert!(
            refuse_busy(&BTreeMap::new()).is_ok(),
            "nothing was measured"
        );
    }
}
