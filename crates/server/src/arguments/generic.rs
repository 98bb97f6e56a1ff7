//! The arguments that every command accepts: session, concerns, time limit, stable API.

use std::time::Duration;

use bson::{Bson, RawBsonRef, RawDocument, Timestamp};
use query::{Code, Error, Result};

use super::fields::{Arguments, integer, switch, type_name};

/// Names of the arguments that every command accepts.
pub(crate) const GENERIC: &[&str] = &[
    "$db",
    "$readPreference",
    "$clusterTime",
    "$configServerState",
    "$configTime",
    "$topologyTime",
    "$replData",
    "$oplogQueryData",
    "$queryOptions",
    "$audit",
    "$client",
    "lsid",
    "txnNumber",
    "txnRetryCounter",
    "autocommit",
    "startTransaction",
    "stmtId",
    "stmtIds",
    "readConcern",
    "writeConcern",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "comment",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
    "coordinator",
    "databaseVersion",
    "shardVersion",
    "help",
    "allowImplicitCollectionCreation",
    "mayBypassWriteBlocking",
    "rawData",
];

/// The write concern: when a write is acknowledged.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct WriteConcern {
    /// `w`: a number, `"majority"` or a mode; `None` when not given.
    pub(crate) w: Option<Bson>,
    /// `j`: wait until the log is synced to the disk.
    pub(crate) journal: Option<bool>,
    /// `wtimeout`.
    pub(crate) timeout: i64,
    /// Whether the command specifies a write concern.
    pub(crate) given: bool,
}

/// The read concern: which state a read sees.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ReadConcern {
    /// `level`, or empty.
    pub(crate) level: String,
    /// `afterClusterTime`.
    pub(crate) after: Option<Timestamp>,
    /// `atClusterTime`.
    pub(crate) at: Option<Timestamp>,
}

/// The generic arguments of one command.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Generic {
    /// The session: a UUID.
    pub(crate) lsid: Option<[u8; 16]>,
    /// The number of the transaction or retryable write in the session.
    pub(crate) txn_number: Option<i64>,
    /// `autocommit: false`: part of a transaction.
    pub(crate) in_transaction: bool,
    /// The first statement of a transaction.
    pub(crate) start_transaction: bool,
    /// The statement number of a retryable write.
    pub(crate) stmt_id: Option<i32>,
    /// The statement numbers of a retryable write with several statements.
    pub(crate) stmt_ids: Option<Vec<i32>>,
    /// `maxTimeMS`.
    pub(crate) max_time: Option<Duration>,
    pub(crate) comment: Option<Bson>,
    /// `readConcern`.
    pub(crate) read_concern: Option<ReadConcern>,
    /// `writeConcern`.
    pub(crate) write_concern: WriteConcern,
    /// The latest cluster time that the client knows.
    pub(crate) cluster_time: Option<Timestamp>,
    /// `apiVersion`.
    pub(crate) api_version: Option<String>,
    /// `apiStrict`.
    pub(crate) api_strict: bool,
    /// `apiDeprecationErrors`.
    pub(crate) api_deprecation: bool,
    /// `$db`.
    pub(crate) database: String,
}

fn wrong<T>(name: &str, value: RawBsonRef<'_>, expected: &str) -> Result<T> {
    let found = type_name(value);
    Err(Error::type_mismatch(format!(
        "BSON field '{name}' is the wrong type '{found}', expected type '{expected}'"
    )))
}

fn flag(name: &str, value: RawBsonRef<'_>) -> Result<bool> {
    switch(value).map_or_else(|| wrong(name, value, "bool"), Ok)
}

fn number(name: &str, value: RawBsonRef<'_>) -> Result<i64> {
    integer(value).map_or_else(|| wrong(name, value, "long"), Ok)
}

fn text(name: &str, value: RawBsonRef<'_>) -> Result<String> {
    let found = value.as_str().map(str::to_owned);
    found.map_or_else(|| wrong(name, value, "string"), Ok)
}

fn object<'a>(name: &str, value: RawBsonRef<'a>) -> Result<&'a RawDocument> {
    value
        .as_document()
        .map_or_else(|| wrong(name, value, "object"), Ok)
}

impl Generic {
    /// Set the value of a field; returns false if it is not a generic argument.
    fn take(&mut self, name: &str, value: RawBsonRef<'_>) -> Result<()> {
        match name {
            "$db" => self.database = text(name, value)?,
            "lsid" => self.lsid = Some(session(object(name, value)?)?),
            "txnNumber" => self.txn_number = Some(number(name, value)?),
            "autocommit" if flag(name, value)? => {
                let message = "Specifying autocommit=true is not allowed.";
                return Err(Error::new(Code::INVALID_OPTIONS, message));
            }
            "autocommit" => self.in_transaction = true,
            "startTransaction" if !flag(name, value)? => {
                let message = "Specifying startTransaction=false is not allowed.";
                return Err(Error::new(Code::INVALID_OPTIONS, message));
            }
            "startTransaction" => self.start_transaction = true,
            "stmtId" => self.stmt_id = i32::try_from(number(name, value)?).ok(),
            "stmtIds" => {
                let values = value
                    .as_array()
                    .map_or_else(|| wrong(name, value, "array"), Ok)?;
                let mut ids = Vec::new();
                for value in values {
                    ids.extend(integer(value?).and_then(|id| i32::try_from(id).ok()));
                }
                self.stmt_ids = Some(ids);
            }
            "maxTimeMS" => self.max_time = max_time(name, value)?,
            "comment" => self.comment = Some(Bson::try_from(value)?),
            "readConcern" => self.read_concern = Some(read_concern(object(name, value)?)?),
            "writeConcern" => self.write_concern = write_concern(object(name, value)?)?,
            "$clusterTime" => {
                let time = object(name, value)?.get("clusterTime")?;
                self.cluster_time = time.and_then(RawBsonRef::as_timestamp);
            }
            "apiVersion" => self.api_version = Some(text(name, value)?),
            "apiStrict" => self.api_strict = flag(name, value)?,
            "apiDeprecationErrors" => self.api_deprecation = flag(name, value)?,
            _ => {}
        }
        Ok(())
    }

    /// The generic arguments of a command.
    ///
    /// # Errors
    /// `TypeMismatch`, `InvalidOptions`, `FailedToParse`, with MongoDB's messages.
    pub(crate) fn of(arguments: &Arguments<'_>) -> Result<Generic> {
        let mut generic = Generic::default();
        for (name, value) in arguments.iter().skip(1) {
            generic.take(name, value)?;
        }
        generic.check()?;
        Ok(generic)
    }

    fn check(&self) -> Result<()> {
        let invalid = |message| Err(Error::new(Code::INVALID_OPTIONS, message));
        if self.txn_number.is_some() && self.lsid.is_none() {
            return invalid("Transaction number requires a session ID to also be specified");
        }
        if self.in_transaction && self.txn_number.is_none() {
            return invalid(
                "'autocommit' field requires a transaction number to also be specified",
            );
        }
        if self.start_transaction && !self.in_transaction {
            return invalid(
                "'startTransaction' field requires 'autocommit' field to also be \
                 specified",
            );
        }
        if self.txn_number.is_some_and(|number| number < 0) {
            return invalid("Transaction number cannot be negative");
        }
        if self.api_version.is_none() && (self.api_strict || self.api_deprecation) {
            let message = "Provided apiStrict and/or apiDeprecationErrors without passing \
                 apiVersion";
            return Err(Error::location(4_886_600, message));
        }
        Ok(())
    }
}

fn max_time(name: &str, value: RawBsonRef<'_>) -> Result<Option<Duration>> {
    let millis = match (integer(value), value) {
        (Some(millis), _) => millis,
        (None, RawBsonRef::Double(_) | RawBsonRef::Decimal128(_)) => {
            return Err(Error::bad_value(format!("{name} has non-integral value")));
        }
        (None, RawBsonRef::Null) => return Ok(None),
        _ => return wrong(name, value, "long"),
    };
    match u64::try_from(millis) {
        Ok(0) => Ok(None),
        Ok(millis) if millis <= 0x7FFF_FFFF => Ok(Some(Duration::from_millis(millis))),
        _ => Err(Error::bad_value(format!(
            "{millis} value for {name} is out of range [0, 2147483647]"
        ))),
    }
}

/// The UUID of a session.
pub(crate) fn session(lsid: &RawDocument) -> Result<[u8; 16]> {
    let arguments = Arguments::of("OperationSessionInfo.lsid", lsid)?;
    arguments.only(&["id", "uid", "txnNumber", "txnUUID"])?;
    let id = arguments.need("id")?;
    let bytes = id.as_binary().map(|binary| binary.bytes);
    let bytes = bytes.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    match bytes {
        Some(bytes) => Ok(bytes),
        None => {
            let message = "uuid must be a 16-byte binary field with UUID (4) subtype";
            Err(Error::new(Code::INVALID_UUID, message))
        }
    }
}

fn read_concern(document: &RawDocument) -> Result<ReadConcern> {
    let arguments = Arguments::of("readConcern", document)?;
    arguments.only(&[
        "level",
        "afterClusterTime",
        "atClusterTime",
        "provenance",
        "afterOpTime",
    ])?;
    let level = arguments.string("level")?.unwrap_or_default();
    let known = [
        "",
        "local",
        "available",
        "majority",
        "linearizable",
        "snapshot",
    ];
    if !known.contains(&level) {
        let message = format!(
            "Enumeration value '{level}' for field 'readConcern.level' is not a \
             valid value."
        );
        return Err(Error::bad_value(message));
    }
    let time = |name| match arguments.get(name) {
        None => Ok(None),
        Some(RawBsonRef::Timestamp(time)) => Ok(Some(time)),
        Some(other) => wrong(&format!("readConcern.{name}"), other, "timestamp"),
    };
    let (after, at) = (time("afterClusterTime")?, time("atClusterTime")?);
    if at.is_some() && level != "snapshot" {
        let message = "readConcern.atClusterTime can only be specified with readConcern level \
             snapshot";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    Ok(ReadConcern {
        level: level.to_owned(),
        after,
        at,
    })
}

fn write_concern(document: &RawDocument) -> Result<WriteConcern> {
    let arguments = Arguments::of("writeConcern", document)?;
    let known = [
        "w",
        "j",
        "wtimeout",
        "fsync",
        "provenance",
        "getLastError",
        "wOpTime",
    ];
    arguments.only(&known)?;
    let w = match arguments.get("w") {
        None => None,
        Some(RawBsonRef::String(mode)) => Some(Bson::String(mode.to_owned())),
        Some(RawBsonRef::Document(_)) => arguments.tree("w")?.map(Bson::Document),
        Some(value) => match integer(value) {
            Some(n @ 0..=50) => Some(Bson::Int64(n)),
            Some(_) => {
                let message = "w has to be a non-negative number and not greater than 50";
                return Err(Error::parse(message));
            }
            None => {
                let message = "w has to be a number, string, or object; found: ";
                let found = type_name(value);
                return Err(Error::parse(format!("{message}{found}")));
            }
        },
    };
    Ok(WriteConcern {
        w,
        journal: arguments.boolean("j")?,
        timeout: arguments.long("wtimeout")?.unwrap_or(0),
        given: true,
    })
}
