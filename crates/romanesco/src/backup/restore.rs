//! `romanesco restore`: makes a data directory from a backup.

use std::path::PathBuf;

use backup::Source;
use kv::identity::Identity;
use kv::{Error, ErrorKind};

use super::local::{self, KEYS};
use super::progress::Progress;
use super::{flow, keep_private, listen};

/// Make a data directory from a backup, which is verified first
#[derive(clap::Args)]
#[command(after_help = "Example: romanesco restore /backup/monday --dbpath /var/lib/romanesco")]
pub(crate) struct Args {
    /// Directory or archive of a backup
    backup: PathBuf,
    /// New data directory, missing or empty
    #[arg(long, value_name = "DIR")]
    dbpath: PathBuf,
}

impl Args {
    /// Restore the backup.
    ///
    /// # Errors
    /// What failed, for the user.
    pub(crate) fn run(&self) -> Result<(), String> {
        keep_private();
        let interrupt = listen()?;
        let failed = |error: Error| error.to_string();
        let source = Source::open(&self.backup).map_err(failed)?;
        let accept = |identity: &Identity| {
            let known = local::engine(&identity.engine).map(drop);
            known.map_err(|message| Error::new(ErrorKind::Unsupported, message))
        };
        let target = std::path::absolute(&self.dbpath)
            .map_err(|error| format!("{}: {error}", self.dbpath.display()))?;
        // The check and the copy each report the bytes from the beginning.
        let (mut progress, mut checked) = (Progress::new("verifying"), 0);
        let done = backup::restore(&source, &target, &accept, &mut |now| {
            if now.done_bytes < checked {
                progress = Progress::new("copying");
            }
            checked = now.done_bytes;
            progress.show(now.done_bytes, now.total_bytes);
            flow(&interrupt)
        });
        drop(progress);
        let path = target.display();
        let manifest = done
            .map_err(failed)?
            .ok_or_else(|| format!("ended by a signal; what was written for {path} is removed"))?;
        let engine = &manifest.engine;
        let encrypted = manifest.files.iter().any(|file| file.path == KEYS);
        let keys = match encrypted {
            true => " --enableEncryption --encryptionKeyFile FILE",
            false => "",
        };
        let start = format!("romanesco serve --storageEngine {engine}{keys} --dbpath {path}");
        say!("{path}: restored; start it with: {start}");
        Ok(())
    }
}
