//! `romanesco lab check`.

use std::path::PathBuf;

use lab_report::analysis::{self, Outcome, Rule};
use lab_report::{Error, ErrorKind, Result, store};

/// The rules if the command line has none.
const DEFAULT_RULES: [&str; 2] = ["rate_mean<-5%", "write_amplification>+5%"];

#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 no regression, 1 regression, 2 invalid run, 3 error, 4 \
inconclusive, 64 invalid command line.\n\nExample: \
romanesco lab check out/after --base out/before --fail-if 'ips<-5%' --fail-if \
'stall_seconds>0'\n  (or --base before.json, kept by `romanesco lab export out/before --format \
json -o before.json`)"
)]
pub(crate) struct Args {
    /// The results directory
    run: PathBuf,
    /// Baseline: a results directory, its summary.json, or the output of `lab export --format json`
    #[arg(long, value_name = "RUN|FILE")]
    base: PathBuf,
    /// Fail if a metric changed by more than a share (`METRIC<-5%`, `METRIC>+5%`) or passed a value
    /// (`METRIC>0`, `METRIC<1000`) [default: rate_mean<-5% and write_amplification>+5%]
    #[arg(long, value_name = "RULE")]
    fail_if: Vec<Rule>,
    /// Accept runs of a single repeat, which show nothing of the noise between runs
    #[arg(long)]
    single: bool,
    /// Exit with 0 instead of 4 if the check is inconclusive
    #[arg(long)]
    allow_inconclusive: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let run = store::load(&args.run)?;
    let base = store::load_base(&args.base, &run)?;
    let mut rules = args.fail_if.clone();
    if rules.is_empty() {
        rules = DEFAULT_RULES
            .iter()
            .map(|r| r.parse())
            .collect::<Result<_, String>>()
            .map_err(Error::usage)?;
    }
    let mut check = analysis::check(&run, &base.record, &rules, args.single)?;
    check.notes.extend(base.notes);
    if args.json {
        say!("{}", serde_json::json!(check));
    } else {
        say!("{}", check.render());
    }
    Ok(match check.outcome() {
        Outcome::Ok => 0,
        Outcome::Regression => ErrorKind::Regression.exit_code(),
        Outcome::Inconclusive if args.allow_inconclusive => 0,
        Outcome::Inconclusive => ErrorKind::Inconclusive.exit_code(),
        Outcome::Invalid => ErrorKind::Invalid.exit_code(),
    })
}
