//! The checks that every command passes before it runs.

use query::{Code, Error, Result, namespace};

use crate::arguments::{Arguments, GENERIC, Generic};
use crate::command::{
    ADMIN, ANYWHERE, API, CONTINUES, Command, ENDS, LOOSE, RETRYABLE, SNAPSHOT, TEST, TRANSACTION,
    WRITES,
};
use crate::request::outside_of_server;
use crate::server::Server;

/// Check a command by its entry in the table.
///
/// # Errors
/// The error that MongoDB returns in each case.
pub(crate) fn check(
    server: &Server,
    command: &Command,
    generic: &Generic,
    arguments: &Arguments<'_>,
) -> Result<()> {
    if !command.has(ANYWHERE) {
        namespace::check_database(&generic.database)?;
    }
    if command.has(TEST) && !server.parameters.is_on("enableTestCommands") {
        return Err(unknown(arguments.name()));
    }
    if command.has(ADMIN) && generic.database != "admin" {
        let message = format!(
            "{} may only be run against the admin database.",
            command.name
        );
        return Err(Error::new(Code::UNAUTHORIZED, message));
    }
    api(server, command, generic)?;
    transaction(server, command, generic, arguments)?;
    concerns(server, command, generic)?;
    fields(command, arguments)
}

/// The error for an unknown command.
pub(crate) fn unknown(name: &str) -> Error {
    Error::new(
        Code::COMMAND_NOT_FOUND,
        format!("no such command: '{name}'"),
    )
}

fn api(server: &Server, command: &Command, generic: &Generic) -> Result<()> {
    let Some(version) = &generic.api_version else {
        if server.parameters.is_on("requireApiVersion") && !command.has(ANYWHERE) {
            let message = "The apiVersion parameter is required, please configure your \
                 MongoClient's API version";
            return Err(Error::location(498_870, message));
        }
        return Ok(());
    };
    if version != "1" {
        let message = format!("API version must be \"1\", got: \"{version}\"");
        return Err(Error::new(Code::API_VERSION_ERROR, message));
    }
    if generic.api_strict && !command.has(API) {
        let message = format!(
            "Provided apiStrict:true, but the command {} is not in API Version 1. Information on \
             supported commands and migrations in API Version 1 can be found at \
             https://dochub.mongodb.org/core/manual-versioned-api",
            command.name
        );
        return Err(Error::new(Code::API_STRICT_ERROR, message));
    }
    Ok(())
}

fn transaction(
    server: &Server,
    command: &Command,
    generic: &Generic,
    arguments: &Arguments<'_>,
) -> Result<()> {
    if generic.txn_number.is_none() {
        return Ok(());
    }
    if !server.topology.is_replica_set() {
        // Drivers compare this text.
        let message = "Transaction numbers are only allowed on a replica set member or mongos";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    if generic.in_transaction {
        place(command, generic, arguments)?;
        if generic.write_concern.given && !command.has(ENDS) {
            let message = "writeConcern is not allowed within a multi-statement transaction";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        if generic.read_concern.is_some() && !generic.start_transaction {
            let message = "Only the first command in a transaction may specify a readConcern";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        let level = generic
            .read_concern
            .as_ref()
            .map(|concern| concern.level.as_str());
        if !matches!(level, None | Some("" | "local" | "majority" | "snapshot")) {
            let message = "The readConcern level must be either 'local' (default), 'majority' or \
                 'snapshot' in order to run in a transaction";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
    } else if !command.has(RETRYABLE) {
        let message = format!(
            "txnNumber may only be provided for multi-document transactions and retryable write \
             commands. autocommit:false was not provided, and {} is not a retryable write command.",
            command.name
        );
        return Err(Error::location(50_768, message));
    }
    Ok(())
}

/// Check that a command, and the namespace it names, are allowed in a transaction.
fn place(command: &Command, generic: &Generic, arguments: &Arguments<'_>) -> Result<()> {
    if !command.has(TRANSACTION) {
        let (name, advice) = (command.name, command.outside_advice);
        let message = format!("Cannot run '{name}' in a multi-document transaction.{advice}");
        return Err(Error::new(
            Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            message,
        ));
    }
    // Commands on `admin` name their collections in other places: see `bulkWrite`.
    if command.has(ADMIN) {
        return Ok(());
    }
    let collection = match command.has(CONTINUES) {
        true => arguments.string("collection")?,
        false => arguments.target().as_str(),
    };
    outside_of_server(&generic.database, collection.unwrap_or_default())
}

fn concerns(server: &Server, command: &Command, generic: &Generic) -> Result<()> {
    let concern = &generic.write_concern;
    // Drivers send a write concern with every aggregate, because of `$out`; MongoDB accepts it.
    let takes = command.has(WRITES) || command.writing_stage.is_some();
    if concern.given && !takes {
        let message = "Command does not support writeConcern";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let many = concern
        .w
        .as_ref()
        .and_then(bson::Bson::as_i64)
        .is_some_and(|w| w > 1);
    if many && !server.topology.is_replica_set() {
        let message = "cannot use 'w' > 1 when a host is not replicated";
        return Err(Error::bad_value(message));
    }
    read_times(server, generic)?;
    snapshot(server, command, generic)
}

/// Check that the server has reached the times that a read names: no write gets them any more. The
/// server has not reached a time of a client that is only kept aside.
fn read_times(server: &Server, generic: &Generic) -> Result<()> {
    let Some(concern) = generic.read_concern.as_ref() else {
        return Ok(());
    };
    if !server.topology.is_replica_set() {
        return Ok(());
    }
    let (cluster, _) = server.clock.times();
    for (name, time) in [
        ("afterClusterTime", concern.after),
        ("atClusterTime", concern.at),
    ] {
        if let Some(time) = time.filter(|time| cluster < *time) {
            let message = format!(
                "readConcern {name} must not be later than the clusterTime of the server: \
                 requested {time}, the server has {cluster}"
            );
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
    }
    Ok(())
}

/// Check that a transaction, which reads the current state, reads that of the time that it names:
/// nothing was written since.
///
/// # Errors
/// `SnapshotTooOld`.
pub(super) fn is_current(server: &Server, generic: &Generic) -> Result<()> {
    let concern = generic.read_concern.as_ref();
    let (_, operation) = server.clock.times();
    match concern.and_then(|concern| concern.at) {
        Some(at) if at < operation => Err(Error::new(
            Code::SNAPSHOT_TOO_OLD,
            "a transaction cannot read a time before its beginning",
        )),
        _ => Ok(()),
    }
}

/// Check that a command may read a snapshot.
fn snapshot(server: &Server, command: &Command, generic: &Generic) -> Result<()> {
    let Some(concern) = generic.read_concern.as_ref() else {
        return Ok(());
    };
    if concern.level != "snapshot" {
        return Ok(());
    }
    if !server.topology.is_replica_set() {
        let message = "node needs to be a replica set member to use readConcern: snapshot";
        return Err(Error::new(Code::NOT_A_REPLICA_SET, message));
    }
    if generic.in_transaction {
        return is_current(server, generic);
    }
    if !command.has(SNAPSHOT) {
        let message = format!(
            "Command {} does not support {{ readConcern: {{ level: \"snapshot\" }} }} :: caused \
             by :: read concern not supported",
            command.name
        );
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    Ok(())
}

fn fields(command: &Command, arguments: &Arguments<'_>) -> Result<()> {
    if command.has(LOOSE) {
        return Ok(());
    }
    for (i, (name, _)) in arguments.iter().enumerate() {
        let known = i == 0 || command.fields.contains(&name) || GENERIC.contains(&name);
        if !known {
            let message = format!("BSON field '{}.{name}' is an unknown field.", command.name);
            return Err(Error::new(Code::IDL_UNKNOWN_FIELD, message));
        }
    }
    Ok(())
}
