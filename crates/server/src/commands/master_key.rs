//! `rotateMasterKey`: encrypt the data keys with another master key, or make a new data key.
//!
//! The log says when a rotation began and how it ended, with the names of keys and never a key.

use std::path::Path;

use bson::{Bson, Document, doc};
use kv::{Encryption, ErrorKind};
use query::{Code, Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::command::ADMIN;
use crate::request::Call;
use crate::row::Row;
use crate::state::clock;
use crate::state::log::{Event, Severity};

pub(super) const ROWS: &[Row] = &[Row::new(
    "rotateMasterKey",
    rotate,
    "Encrypt the data keys with the master key in another file",
)
.flags(ADMIN)
.fields(&["encryptionKeyFile", "dataKey"])
.privilege(Privilege::Cluster("rotateMasterKey"))];

const COMPONENT: &str = "STORAGE";
const CONTEXT: &str = "rotate";

/// Rotate the master key, the data key, or both.
fn rotate(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let file = arguments.string("encryptionKeyFile")?;
    let data = arguments.is_on("dataKey")?;
    if let Some(file) = file.filter(|file| !Path::new(file).is_absolute()) {
        return Err(Error::bad_value(format!(
            "encryptionKeyFile is {file:?}: name the file by its absolute path on the machine of \
             the server"
        )));
    }
    if file.is_none() && !data {
        return Err(Error::bad_value(
            "rotateMasterKey needs encryptionKeyFile, the file of the new master key, or dataKey: \
             true",
        ));
    }
    let server = &request.server;
    let engine = server.store.engine();
    let before = engine
        .encryption()
        .ok_or_else(|| not_encrypted(engine.name()))?;
    let mut asked = names(&before);
    asked.insert("encryptionKeyFile", file);
    asked.insert("newDataKey", data);
    let begun = "Rotation of the keys of the data files begins";
    server.log.info(COMPONENT, 9_000_009, CONTEXT, begun, asked);
    match engine.rotate_keys(file.map(Path::new), data) {
        Ok(found) => {
            *server.keys_rotated.lock() = Some(clock::now());
            let ended = "The keys of the data files were rotated: the next start needs this \
                         master key";
            server
                .log
                .info(COMPONENT, 9_000_010, CONTEXT, ended, names(&found));
            reply
                .string("encryptionKeyId", &found.master_key)
                .value("dataKey", &Bson::Int64(i64::from(found.data_key)));
            Ok(())
        }
        Err(error) => {
            let failed = failure(&error, &before);
            server.log.write(Event {
                severity: Severity::Error,
                component: COMPONENT,
                id: 9_000_011,
                context: CONTEXT,
                message: "Rotation of the keys of the data files failed",
                attributes: doc! {"error": &failed.message},
            });
            Err(failed)
        }
    }
}

/// The keys by name, for the log.
fn names(keys: &Encryption) -> Document {
    doc! {"masterKey": &keys.master_key, "dataKey": i64::from(keys.data_key)}
}

fn not_encrypted(engine: &str) -> Error {
    let message = format!(
        "the data files are not encrypted, so they have no keys to rotate (engine {engine}): \
         security.enableEncryption encrypts a new data directory of the engine betree"
    );
    Error::new(Code::COMMAND_NOT_SUPPORTED, message)
}

/// The client error for an error of the engine, with what is true now.
fn failure(error: &kv::Error, before: &Encryption) -> Error {
    let key = &before.master_key;
    // Nothing was written.
    let unchanged = format!("master key {key} stays in use; fix this and repeat the command");
    let (code, now) = match error.kind() {
        ErrorKind::Invalid => (Code::BAD_VALUE, unchanged),
        ErrorKind::Full => (Code::OUT_OF_DISK_SPACE, unchanged),
        ErrorKind::Closed => (Code::INTERRUPTED_AT_SHUTDOWN, unchanged),
        _ => {
            let now = "either master key may be the right one at the next start: keep both files, \
                       and repeat the command";
            (Code::OPERATION_FAILED, now.to_owned())
        }
    };
    Error::new(code, format!("the keys were not rotated: {error}; {now}"))
}
