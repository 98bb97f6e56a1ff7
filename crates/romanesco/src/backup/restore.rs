//! `romanesco restore`: makes a data directory from a backup, also as of a later time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backup::{Manifest, OplogArchive, Source};
use kv::identity::Identity;
use kv::{Error, ErrorKind, Flow};
use lab::run::Interrupt;
use server::{Pattern, Restored, Until};

use super::local::{self, KEYS};
use super::progress::Progress;
use super::{flow, keep_private, listen};

/// Make a data directory from a backup, which is verified first
#[derive(clap::Args)]
#[command(
    after_help = "Example: romanesco restore /backup/monday --oplog /backup/oplog --to \
2026-11-23T14:03:00Z --dbpath /var/lib/romanesco"
)]
pub(crate) struct Args {
    /// Directory or archive of a backup
    backup: PathBuf,
    /// New data directory, missing or empty
    #[arg(long, value_name = "DIR")]
    dbpath: PathBuf,
    /// Archive of the oplog, whose entries are applied to the backup
    #[arg(long, value_name = "DIR")]
    oplog: Option<PathBuf>,
    /// Last second of the entries that are applied, such as 2026-11-23T14:03:00Z, or the last entry
    /// as SECONDS:INCREMENT [default: the end of the archive]
    #[arg(long, value_name = "TIME", requires = "oplog")]
    to: Option<Until>,
    /// Restore these collections only, DB.COLLECTION or DB.*, and users, roles and settings; may be
    /// given several times
    #[arg(long = "nsInclude", value_name = "NAMES")]
    include: Vec<Pattern>,
    /// File of the master key, of an encrypted backup with --oplog or --nsInclude
    #[arg(long = "encryptionKeyFile", value_name = "FILE")]
    key_file: Option<PathBuf>,
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
        let manifest = source.manifest().map_err(failed)?;
        let encrypted = manifest.files.iter().any(|file| file.path == KEYS);
        let archive = self.archive(&manifest, encrypted)?;
        // The check and the copy each report the bytes from the beginning.
        let (mut progress, mut checked) = (Some(Progress::new("verifying")), 0);
        let mut change = |store: &Path, manifest: &Manifest| {
            self.change((store, manifest), archive.as_ref(), &interrupt)
                .map_err(|message| Error::new(ErrorKind::Invalid, message))
        };
        let done = backup::restore_and(
            &source,
            &target,
            &accept,
            &mut |now| {
                if now.done_bytes < checked {
                    progress = Some(Progress::new("copying"));
                }
                checked = now.done_bytes;
                if let Some(progress) = &mut progress {
                    progress.show(now.done_bytes, now.total_bytes);
                }
                if checked == now.total_bytes {
                    // The lines that follow are not of the bar.
                    progress = None;
                }
                flow(&interrupt)
            },
            &mut change,
        );
        let path = target.display();
        let manifest = done
            .map_err(failed)?
            .ok_or_else(|| format!("ended by a signal; what was written for {path} is removed"))?;
        let engine = &manifest.engine;
        let keys = match encrypted {
            true => " --enableEncryption --encryptionKeyFile FILE",
            false => "",
        };
        let start = format!("romanesco serve --storageEngine {engine}{keys} --dbpath {path}");
        say!("{path}: restored; start it with: {start}");
        Ok(())
    }

    /// Open the archive, and check what can be checked before the copy.
    fn archive(
        &self,
        manifest: &Manifest,
        encrypted: bool,
    ) -> Result<Option<OplogArchive>, String> {
        let archive = self.oplog.as_deref().map(OplogArchive::open).transpose();
        let archive = archive.map_err(|error| error.to_string())?;
        if let Some(archive) = &archive {
            self.until().check(manifest.operation_time, archive)?;
        }
        if encrypted && self.changes() && self.key_file.is_none() {
            let message = "the backup is encrypted; name the file of the master key by \
                           --encryptionKeyFile";
            return Err(message.to_owned());
        }
        Ok(archive)
    }

    fn until(&self) -> Until {
        self.to.unwrap_or(Until::End)
    }

    /// Whether the restored store is opened.
    fn changes(&self) -> bool {
        self.oplog.is_some() || !self.include.is_empty()
    }

    /// Bring the restored store to the time, and drop what is not wanted.
    fn change(
        &self,
        (store, manifest): (&Path, &Manifest),
        archive: Option<&OplogArchive>,
        interrupt: &Interrupt,
    ) -> Result<Flow, String> {
        if !self.changes() {
            return Ok(Flow::Continue);
        }
        let factory = local::engine(&manifest.engine)?;
        let engine = local::open(factory, store, self.key_file.as_deref())?;
        let failed = |error: server::StoreError| error.to_string();
        let opened = Restored::open(Arc::from(engine), store, archive.is_some());
        let opened = opened.map_err(failed)?;
        if let Some(archive) = archive {
            let floor = manifest.operation_time;
            let mut lines = super::progress::Lines::default();
            let replayed = opened.replay((archive, self.until()), floor, &mut |at| {
                lines.show(|| format!("applying the oplog: at {}:{}", at.time, at.increment));
                flow(interrupt)
            });
            let Some(done) = replayed.map_err(failed)? else {
                return Ok(Flow::Cancel);
            };
            let (begin, end) = (done.begin.ts, done.end.ts);
            say!(
                "the backup has all writes up to {}:{}; {} entries of the oplog lead to {}:{}",
                begin.time,
                begin.increment,
                done.entries,
                end.time,
                end.increment
            );
        }
        if !self.include.is_empty() {
            let kept = opened.keep_only(&self.include).map_err(failed)?;
            say!("{kept} collections and views are kept");
        }
        opened.close().map_err(failed)?;
        Ok(flow(interrupt))
    }
}
