//! `romanesco clone`: makes a data directory from a server at work, over the network.
//!
//! The server streams a backup, which is received into `DIR.cloning`, verified and restored from
//! there like any other. An error or a signal leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};

use backup::{Codec, Received, Source};
use kv::identity::Identity;
use kv::{Error, ErrorKind};
use lab::run::Interrupt;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Bson, Document, doc};
use mongodb::sync::Database;
use stdx::ByteSize;

use super::local::{self, KEYS};
use super::progress::Progress;
use super::{flow, keep_private, listen, remote};

/// Copy the store of a server at work into a new data directory, over the network
#[derive(clap::Args)]
#[command(
    after_help = "The copy is a store of its own, with the engine of the server, as one that \
is restored from a backup.

Example: romanesco clone --from mongodb://db1:27017 /var/lib/romanesco"
)]
pub(crate) struct Args {
    /// Address of a server
    #[arg(
        long,
        value_name = "URI",
        env = "ROMANESCO_URI",
        hide_env_values = true
    )]
    from: String,
    /// New data directory, missing or empty; its parent has room for the store twice
    directory: PathBuf,
    /// Compression on the network: none, lz4 or zstd
    #[arg(long, value_name = "NAME", default_value_t = Codec::Lz4)]
    codec: Codec,
    /// Bytes per second that the server reads at most, such as 100M
    #[arg(long, value_name = "SIZE")]
    throttle: Option<ByteSize>,
}

impl Args {
    /// Clone the store.
    ///
    /// # Errors
    /// What failed, for the user.
    pub(crate) fn run(&self) -> Result<(), String> {
        keep_private();
        let interrupt = listen()?;
        let target = std::path::absolute(&self.directory)
            .map_err(|error| format!("{}: {error}", self.directory.display()))?;
        if fs::symlink_metadata(&target).is_ok_and(|found| !found.is_dir())
            || vfs::is_empty(&target).is_ok_and(|empty| !empty)
        {
            return Err(format!(
                "{}: it is not an empty directory; a clone overwrites nothing, name a new one",
                target.display()
            ));
        }
        let mut work = target.clone().into_os_string();
        work.push(".cloning");
        let work = PathBuf::from(work);
        let failed = |error: Error| error.to_string();
        let received = Received::create(&work).map_err(failed)?;
        self.receive(received, &interrupt)?;
        let restored = restore(&work, &target, &interrupt);
        let removed = fs::remove_dir_all(&work);
        let (engine, encrypted) = restored?;
        if let Err(error) = removed {
            note!("romanesco clone: {}: {error}; remove it", work.display());
        }
        let keys = match encrypted {
            true => " --enableEncryption --encryptionKeyFile FILE",
            false => "",
        };
        let path = target.display();
        say!(
            "{path}: cloned; start it with: romanesco serve --storageEngine {engine}{keys} \
             --dbpath {path}"
        );
        Ok(())
    }

    /// Receive the backup. What was written is removed if it is not complete.
    fn receive(&self, mut received: Received, interrupt: &Interrupt) -> Result<(), String> {
        let client = remote::connect(&self.from).map_err(|error| remote::message(&error))?;
        let admin = client.database("admin");
        let mut command = doc! {"streamBackup": 1, "compression": self.codec.to_string()};
        if let Some(rate) = self.throttle {
            command.insert("throttle", i64::try_from(rate.bytes()).unwrap_or(i64::MAX));
        }
        let begun = run(&admin, command)?;
        let stream = begun
            .get_i64("stream")
            .map_err(|_| "the server's reply is not that of streamBackup".to_owned())?;
        let next = || doc! {"streamBackup": 1, "stream": stream};
        let mut progress = Progress::new("receiving");
        let outcome = loop {
            if interrupt.is_set() {
                break Err("ended by a signal; what was received is removed".to_owned());
            }
            let reply = match run(&admin, next()) {
                Ok(reply) => reply,
                Err(error) => break Err(error),
            };
            let bytes = match reply.get("bytes") {
                Some(Bson::Binary(found)) if found.subtype == BinarySubtype::Generic => {
                    &found.bytes
                }
                _ => break Err("the server's reply is not that of streamBackup".to_owned()),
            };
            let number = |name| {
                let number = reply.get_i64(name).ok();
                number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
            };
            progress.show(number("done"), number("total"));
            match received.take(bytes) {
                Ok(true) => break Ok(()),
                Err(error) => break Err(error.to_string()),
                Ok(false) if reply.get_bool("complete").unwrap_or(false) => {
                    break Err("the server has ended the stream before its end".to_owned());
                }
                Ok(false) => {}
            }
        };
        if outcome.is_err() {
            let mut end = next();
            end.insert("end", true);
            // The server ends it in any case, later.
            let _ = run(&admin, end);
        }
        outcome
    }
}

fn run(admin: &Database, command: Document) -> Result<Document, String> {
    let reply = admin.run_command(command).run();
    reply.map_err(|error| remote::message(&error))
}

/// Restore the received backup; returns the engine, and whether it is encrypted.
fn restore(work: &Path, target: &Path, interrupt: &Interrupt) -> Result<(String, bool), String> {
    let failed = |error: Error| error.to_string();
    let source = Source::open(work).map_err(failed)?;
    let accept = |identity: &Identity| {
        let known = local::engine(&identity.engine).map(drop);
        known.map_err(|message| Error::new(ErrorKind::Unsupported, message))
    };
    let mut progress = Progress::new("restoring");
    let done = backup::restore(&source, target, &accept, &mut |now| {
        progress.show(now.done_bytes, now.total_bytes);
        flow(interrupt)
    });
    let manifest = done
        .map_err(failed)?
        .ok_or("ended by a signal; what was written is removed")?;
    let encrypted = manifest.files.iter().any(|file| file.path == KEYS);
    Ok((manifest.engine, encrypted))
}
