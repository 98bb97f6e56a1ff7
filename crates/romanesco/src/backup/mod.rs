//! `romanesco backup`, `verify-backup`, `oplog-archive`, `restore` and `clone`.

mod clone;
mod local;
mod oplog;
mod progress;
mod remote;
mod restore;
mod verify;

use std::path::PathBuf;

use backup::{ARCHIVE_SUFFIX, Codec, Place};
use kv::Flow;
use lab::run::Interrupt;
use rustix::fs::Mode;
use rustix::process::umask;
use stdx::ByteSize;

pub(crate) use clone::Args as CloneArgs;
pub(crate) use oplog::Args as OplogArgs;
pub(crate) use remote::message;
pub(crate) use restore::Args as RestoreArgs;
pub(crate) use verify::Args as VerifyArgs;

/// Back a store up, of a server at work or one that is not open
#[derive(clap::Args)]
#[command(after_help = "Example: romanesco backup --uri mongodb://127.0.0.1:27017 /backup/monday")]
pub(crate) struct Args {
    /// Address of a server, which writes the backup on its own machine
    #[arg(
        long,
        env = "ROMANESCO_URI",
        hide_env_values = true,
        required_unless_present = "dbpath",
        conflicts_with = "dbpath"
    )]
    uri: Option<String>,
    /// Data directory of a store that no process has open
    #[arg(long, value_name = "DIR")]
    dbpath: Option<PathBuf>,
    /// File of the master key, of an encrypted store that is named by --dbpath
    #[arg(
        long = "encryptionKeyFile",
        value_name = "FILE",
        conflicts_with = "uri"
    )]
    key_file: Option<PathBuf>,
    /// Compression of the files: none, lz4 or zstd
    #[arg(long, value_name = "NAME", default_value_t)]
    compression: Codec,
    /// Leave out what this backup of the same store has, in the same directory (betree)
    #[arg(long, value_name = "BASE")]
    incremental: Option<PathBuf>,
    /// Bytes per second that are copied at most, such as 100M
    #[arg(long, value_name = "SIZE")]
    throttle: Option<ByteSize>,
    /// New or empty directory, or a new file whose name ends with .tar
    place: PathBuf,
}

impl Args {
    /// Take the backup.
    ///
    /// # Errors
    /// What failed, for the user.
    pub(crate) fn run(&self) -> Result<(), String> {
        keep_private();
        let interrupt = listen()?;
        // The server has another working directory.
        let path = std::path::absolute(&self.place)
            .map_err(|error| format!("{}: {error}", self.place.display()))?;
        let archive = path.to_string_lossy().ends_with(ARCHIVE_SUFFIX);
        let place = match archive {
            true => Place::Archive(path),
            false => Place::Directory(path),
        };
        match (&self.uri, &self.dbpath) {
            (Some(uri), _) => remote::take(self, uri, &place, &interrupt),
            (None, Some(dbpath)) => local::take(self, dbpath, &place, &interrupt),
            (None, None) => Err("name a server by --uri or a data directory by --dbpath".into()),
        }
    }
}

/// Catch SIGINT and SIGTERM: the first ends the command in order, the second at once.
fn listen() -> Result<Interrupt, String> {
    Interrupt::listen().map_err(|error| format!("cannot listen to signals: {error}"))
}

/// Whether a copy is to continue.
fn flow(interrupt: &Interrupt) -> Flow {
    match interrupt.is_set() {
        true => Flow::Cancel,
        false => Flow::Continue,
    }
}

/// Give the files that engines create mode 0600, and their directories mode 0700, as in a server.
fn keep_private() {
    umask(Mode::from_raw_mode(0o077));
}

/// Print what a backup holds.
fn summary(place: &Place, files: u64, bytes: u64, stored: u64) {
    let path = place.path().display();
    let (bytes, stored) = (ByteSize(bytes), ByteSize(stored));
    say!("{path}: {files} files, {bytes} of data in {stored}");
}
