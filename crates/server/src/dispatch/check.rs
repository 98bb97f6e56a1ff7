//! What is checked of every command before it runs.

use query::{Code, Error, Result, namespace};

use super::arguments::Arguments;
use super::generic::{GENERIC, Generic};
use super::row::{ADMIN, API, LOOSE, RETRYABLE, Row, TEST, TRANSACTION, WRITES};
use crate::server::Server;

/// Commands that greet: they run on any database and whatever else was said.
const GREETINGS: &[&str] = &["hello", "isMaster", "ping", "buildInfo"];

/// Commands that can read a moment of the past, outside of transactions.
const MOMENTS: &[&str] = &["find", "aggregate", "distinct", "getMore"];

/// Check a command by its row.
///
/// # Errors
/// What MongoDB answers in each case.
pub(crate) fn check(
    server: &Server,
    row: &Row,
    name: &str,
    generic: &Generic,
    arguments: &Arguments<'_>,
) -> Result<()> {
    if !GREETINGS.contains(&row.name) {
        namespace::check_database(&generic.database)?;
    }
    if row.has(TEST) && !server.parameters.is_on("enableTestCommands") {
        return Err(unknown(name));
    }
    if row.has(ADMIN) && generic.database != "admin" {
        let message = format!("{} may only be run against the admin database.", row.name);
        return Err(Error::new(Code::UNAUTHORIZED, message));
    }
    api(server, row, generic)?;
    transaction(server, row, generic, arguments)?;
    concerns(server, row, generic)?;
    fields(row, arguments)
}

/// No such command.
pub(crate) fn unknown(name: &str) -> Error {
    Error::new(
        Code::COMMAND_NOT_FOUND,
        format!("no such command: '{name}'"),
    )
}

fn api(server: &Server, row: &Row, generic: &Generic) -> Result<()> {
    let Some(version) = &generic.api_version else {
        if server.parameters.is_on("requireApiVersion") && !GREETINGS.contains(&row.name) {
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
    if generic.api_strict && !row.has(API) {
        let message = format!(
            "Provided apiStrict:true, but the command {} is not in API Version 1. Information on \
             supported commands and migrations in API Version 1 can be found at \
             https://dochub.mongodb.org/core/manual-versioned-api",
            row.name
        );
        return Err(Error::new(Code::API_STRICT_ERROR, message));
    }
    Ok(())
}

fn transaction(
    server: &Server,
    row: &Row,
    generic: &Generic,
    arguments: &Arguments<'_>,
) -> Result<()> {
    if generic.txn_number.is_none() {
        return Ok(());
    }
    if !server.topology.is_replica_set() {
        // Drivers know this text.
        let message = "Transaction numbers are only allowed on a replica set member or mongos";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    if generic.in_transaction {
        let ends = matches!(row.name, "commitTransaction" | "abortTransaction");
        place(row, generic, arguments)?;
        if generic.write_concern.given && !ends {
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
    } else if !row.has(RETRYABLE) {
        let message = format!(
            "txnNumber may only be provided for multi-document transactions and retryable write \
             commands. autocommit:false was not provided, and {} is not a retryable write command.",
            row.name
        );
        return Err(Error::location(50_768, message));
    }
    Ok(())
}

/// Whether a command and the namespace it names may be part of a transaction.
fn place(row: &Row, generic: &Generic, arguments: &Arguments<'_>) -> Result<()> {
    let refuse = |message: String| {
        let code = Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION;
        Err(Error::new(code, message))
    };
    if row.name == "count" {
        return refuse(
            "Cannot run 'count' in a multi-document transaction. Please see \
             http://dochub.mongodb.org/core/transaction-count for a recommended alternative."
                .to_owned(),
        );
    }
    if !row.has(TRANSACTION) {
        let name = row.name;
        return refuse(format!(
            "Cannot run '{name}' in a multi-document transaction."
        ));
    }
    // Commands of `admin` name their collections otherwise: see `bulkWrite`.
    if row.has(ADMIN) {
        return Ok(());
    }
    let target = arguments.iter().next().map(|(_, value)| value);
    let collection = match row.name {
        "getMore" => arguments.string("collection")?,
        _ => target.and_then(bson::RawBsonRef::as_str),
    };
    outside_of_server(&generic.database, collection.unwrap_or_default())
}

/// Refuse, for a transaction, the databases and collections that the server keeps for itself.
///
/// # Errors
/// `OperationNotSupportedInTransaction`.
pub(crate) fn outside_of_server(database: &str, collection: &str) -> Result<()> {
    let what = if matches!(database, "admin" | "config" | "local") {
        format!("'{database}' database")
    } else if matches!(collection, "system.profile" | "system.views") {
        format!("'{database}.{collection}' namespace")
    } else {
        return Ok(());
    };
    let message = format!("Cannot run command against the {what} in a transaction.");
    Err(Error::new(
        Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
        message,
    ))
}

fn concerns(server: &Server, row: &Row, generic: &Generic) -> Result<()> {
    let concern = &generic.write_concern;
    if concern.given && !row.has(WRITES) {
        // Drivers send one with aggregate for the sake of $out; MongoDB takes it there.
        if row.name != "aggregate" {
            let message = "Command does not support writeConcern";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
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
    snapshot(server, row, generic)
}

/// Which commands read a moment, and which moments can be read.
fn snapshot(server: &Server, row: &Row, generic: &Generic) -> Result<()> {
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
    let (_, operation) = server.clock.times();
    if concern.at.is_some_and(|at| server.clock.latest() < at) {
        let message = "readConcern atClusterTime must not be later than the clusterTime of the \
             server";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if generic.in_transaction {
        // A transaction begins now: that is no other time only if nothing was written since.
        return match concern.at {
            Some(at) if at < operation => Err(Error::new(
                Code::SNAPSHOT_TOO_OLD,
                "a transaction cannot read a time before its beginning",
            )),
            _ => Ok(()),
        };
    }
    if !MOMENTS.contains(&row.name) {
        let message = format!(
            "Command {} does not support {{ readConcern: {{ level: \"snapshot\" }} }} :: caused \
             by :: read concern not supported",
            row.name
        );
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    Ok(())
}

fn fields(row: &Row, arguments: &Arguments<'_>) -> Result<()> {
    if row.has(LOOSE) {
        return Ok(());
    }
    for (i, (name, _)) in arguments.iter().enumerate() {
        let known = i == 0 || row.fields.contains(&name) || GENERIC.contains(&name);
        if !known {
            let message = format!("BSON field '{}.{name}' is an unknown field.", row.name);
            return Err(Error::new(Code::IDL_UNKNOWN_FIELD, message));
        }
    }
    Ok(())
}
