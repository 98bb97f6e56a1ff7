//! `romanesco lab doctor`.

use std::path::PathBuf;

use lab::targets::factories;
use lab_host::doctor::{Doctor, Status, render, worst};
use lab_report::Result;

#[derive(clap::Args)]
#[command(
    after_help = "Exit code: 0 when runs are possible, 2 when a check fails, 64 \
invalid command line.\n\nExample: romanesco lab doctor --data-dir /mnt/nvme"
)]
pub(crate) struct Args {
    /// Directory for the data of runs
    #[arg(long, default_value = ".", env = "LAB_DATA_DIR")]
    data_dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let findings = Doctor::default().examine(&args.data_dir, &factories());
    if args.json {
        say!("{}", serde_json::json!(findings));
    } else {
        say!("{}", render(&findings, None));
    }
    Ok(if worst(&findings) == Status::Fail {
        2
    } else {
        0
    })
}
