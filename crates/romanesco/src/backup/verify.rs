//! `romanesco verify-backup`: reads a backup whole and compares it with its manifest.

use std::path::PathBuf;

use backup::Source;
use kv::Flow;

use super::progress::Progress;

/// Check every byte of a backup without restoring it
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 the backup is complete and unchanged, 1 it is not, or cannot \
be read.

Example: romanesco verify-backup /backup/monday"
)]
pub(crate) struct Args {
    /// Directory or archive of a backup
    backup: PathBuf,
}

impl Args {
    /// Check the backup, and print what it is.
    ///
    /// # Errors
    /// What is wrong with it, for the user.
    pub(crate) fn run(&self) -> Result<(), String> {
        let failed = |error: kv::Error| error.to_string();
        let source = Source::open(&self.backup).map_err(failed)?;
        let mut progress = Progress::new("reading");
        let report = backup::verify(&source, &mut |now| {
            progress.show(now.done_bytes, now.total_bytes);
            Flow::Continue
        });
        drop(progress);
        let report = report.map_err(failed)?.ok_or("the check was cancelled")?;
        let path = self.backup.display();
        if !report.findings.is_empty() {
            for finding in &report.findings {
                note!("{finding}");
            }
            let count = match report.findings.len() {
                1 => "1 problem".to_owned(),
                more => format!("{more} problems"),
            };
            return Err(format!("{path}: {count}; use another backup"));
        }
        let manifest = report.manifest;
        let bases = match report.bases.as_slice() {
            [] => String::new(),
            names => format!(", an increment on {}", names.join(" on ")),
        };
        say!(
            "{path}: complete and unchanged; {} files of a store of {}, begun at {} (seconds \
             since 1970), compression {}{bases}",
            manifest.files.len(),
            manifest.engine,
            manifest.started,
            manifest.codec
        );
        Ok(())
    }
}
