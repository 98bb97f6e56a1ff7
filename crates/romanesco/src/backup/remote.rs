//! A backup that a server takes. It writes on its own machine; this program waits, and shows how
//! far it is. If this program ends, the server ends the backup and removes what it wrote.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use backup::Place;
use lab::run::Interrupt;
use mongodb::bson::{Document, doc};
use mongodb::options::ClientOptions;
use mongodb::sync::Client;

use super::progress::Progress;
use super::{Args, summary};

/// Time between two questions for the progress.
const LOOK: Duration = Duration::from_millis(500);

/// Maximum time to find the server, unless the address sets it.
const SELECTION: Duration = Duration::from_secs(10);

pub(super) fn take(
    args: &Args,
    uri: &str,
    place: &Place,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let failed = |error: mongodb::error::Error| message(&error);
    let client = connect(uri).map_err(failed)?;
    let name = format!("romanesco backup {}", std::process::id());
    let command = command(args, place, &name)?;
    let admin = client.database("admin");
    let (done, ended) = channel();
    let running = admin.clone();
    let body = move || {
        // The receiver lives until the reply arrives.
        let _ = done.send(running.run_command(command).run());
    };
    stdx::sync::spawn("backup", body).map_err(|error| error.to_string())?;
    let mut progress = Progress::new("copying");
    let reply = loop {
        match ended.recv_timeout(LOOK) {
            Ok(reply) => break reply.map_err(failed)?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err("the thread that waits for the server ended".into());
            }
            Err(RecvTimeoutError::Timeout) if interrupt.is_set() => {
                let path = place.path().display();
                return Err(format!(
                    "ended by a signal; the server ends the backup and removes what it wrote of \
                     {path}"
                ));
            }
            Err(RecvTimeoutError::Timeout) => {
                let ask = doc! {"currentOp": 1, "$ownOps": true, "command.comment": &name};
                // Only the display depends on it.
                if let Some((done, total)) = admin.run_command(ask).run().ok().and_then(stage) {
                    progress.show(done, total);
                }
            }
        }
    };
    drop(progress);
    summary(
        place,
        number(&reply, "files"),
        number(&reply, "bytes"),
        number(&reply, "storedBytes"),
    );
    Ok(())
}

/// The command that takes the backup; `name` finds it among those that run.
fn command(args: &Args, place: &Place, name: &str) -> Result<Document, String> {
    let path = place.path().to_str().ok_or("the path is not UTF-8")?;
    let mut command = doc! {"createBackup": 1};
    match place {
        Place::Directory(_) => command.insert("backupDir", path),
        Place::Archive(_) => command.insert("archive", path),
    };
    command.insert("compression", args.compression.to_string());
    if let Some(rate) = args.throttle {
        command.insert("throttle", i64::try_from(rate.bytes()).unwrap_or(i64::MAX));
    }
    if let Some(base) = &args.incremental {
        let base = std::path::absolute(base).map_err(|error| error.to_string())?;
        let base = base.to_str().ok_or("the path of the base is not UTF-8")?;
        command.insert("incremental", base);
    }
    command.insert("comment", name);
    Ok(command)
}

/// Connect to the one server that the address names: the backup is written on its machine.
pub(super) fn connect(uri: &str) -> mongodb::error::Result<Client> {
    let mut options = ClientOptions::parse(uri).run()?;
    options
        .direct_connection
        .get_or_insert(options.hosts.len() == 1);
    options.server_selection_timeout.get_or_insert(SELECTION);
    Client::with_options(options)
}

/// A number of the backup, in the reply of the server.
fn number(reply: &Document, name: &str) -> u64 {
    let backup = reply.get_document("backup").ok();
    let number = backup.and_then(|backup| backup.get_i64(name).ok());
    number
        .and_then(|number| u64::try_from(number).ok())
        .unwrap_or(0)
}

/// The bytes done and in all, in a reply of `currentOp`.
fn stage(reply: Document) -> Option<(u64, u64)> {
    let listed = reply.get_array("inprog").ok()?;
    let mut found = listed.iter().filter_map(|one| one.as_document());
    let progress = found.find_map(|one| one.get_document("progress").ok())?;
    let number = |name| u64::try_from(progress.get_i64(name).ok()?).ok();
    Some((number("done")?, number("total")?))
}

/// The message of the server, or of the driver.
pub(crate) fn message(error: &mongodb::error::Error) -> String {
    match &*error.kind {
        mongodb::error::ErrorKind::Command(refused) => refused.message.clone(),
        other => other.to_string(),
    }
}
