//! `romanesco lab compare`.

use std::path::PathBuf;

use lab_report::{Result, analysis, store};

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab compare out/before out/after --base lmdb")]
pub(crate) struct Args {
    /// Results directories
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Target that the others are compared with [default: the first]
    #[arg(long, value_name = "NAME")]
    base: Option<String>,
    /// Compare runs even if their plans differ
    #[arg(long)]
    force: bool,
    /// Judge runs of a single repeat by the noise within the run
    #[arg(long)]
    single: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let runs = args
        .runs
        .iter()
        .map(|run| store::load(run))
        .collect::<Result<Vec<_>>>()?;
    let accept = analysis::Accept {
        differing_plans: args.force,
        single_repeats: args.single,
    };
    let comparison = analysis::compare(&runs, args.base.as_deref(), accept)?;
    if !args.single {
        comparison.refuse_single()?;
    }
    if args.json {
        say!("{}", serde_json::json!(comparison));
    } else {
        say!("{}", comparison.render());
        for pair in runs.iter().flat_map(analysis::equal_targets) {
            say!("{}", pair.text());
        }
    }
    Ok(0)
}
