//! The log and the profiler: `getLog`, `logRotate`, `profile`.

use bson::RawBsonRef;
use query::{Code, Error, Result};
use wire::Builder;

use crate::dispatch::request::Request;
use crate::dispatch::row::{ADMIN, Lane, Privilege, Row};

pub(super) const ROWS: &[Row] = &[
    Row {
        flags: ADMIN,
        privilege: Privilege::Cluster("getLog"),
        ..Row::new("getLog", get_log, "Show the last lines of the log")
    },
    Row {
        flags: ADMIN,
        lane: Lane::Reserved,
        fields: &["comment"],
        privilege: Privilege::Cluster("logRotate"),
        ..Row::new("logRotate", rotate, "Begin another log file")
    },
];

fn get_log(request: &Request, reply: &mut Builder) -> Result<()> {
    let log = &request.server.log;
    match request.target()? {
        RawBsonRef::String("*") => {
            reply.strings("names", ["global", "startupWarnings"]);
        }
        RawBsonRef::String("global") => {
            let (lines, total) = log.recent();
            reply.int(
                "totalLinesWritten",
                i32::try_from(total).unwrap_or(i32::MAX),
            );
            reply.strings("log", lines.iter().map(String::as_str));
        }
        RawBsonRef::String("startupWarnings") => {
            let lines = log.warnings();
            reply.int(
                "totalLinesWritten",
                i32::try_from(lines.len()).unwrap_or(i32::MAX),
            );
            reply.strings("log", lines.iter().map(String::as_str));
        }
        RawBsonRef::String(name) => {
            let message = format!("No log named '{name}'");
            return Err(Error::new(Code::OPERATION_FAILED, message));
        }
        _ => {
            let message = "Argument to getLog must be of type String";
            return Err(Error::type_mismatch(message));
        }
    }
    Ok(())
}

fn rotate(request: &Request, _: &mut Builder) -> Result<()> {
    request.server.log.rotate().map_err(|error| {
        let message = format!("Log rotation failed: {error}");
        Error::new(Code::OPERATION_FAILED, message)
    })
}
