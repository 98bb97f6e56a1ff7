//! The log and the profiler: `getLog`, `logRotate`, `profile`.

use bson::RawBsonRef;
use query::{Code, Error, Result};
use wire::Builder;

use crate::dispatch::Call;
use crate::dispatch::arguments::integer;
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
    Row {
        fields: &["slowms", "sampleRate", "filter"],
        privilege: Privilege::Database("enableProfiler"),
        ..Row::new("profile", profile, "Show or change what is profiled")
    },
];

fn profile(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let profiler = &request.server.profiler;
    let database = request.database();
    let arguments = request.arguments()?;
    let level = integer(request.target()?).unwrap_or(-1);
    let slow = arguments.long("slowms")?;
    reply
        .int("was", profiler.level(database))
        .int("slowms", profiler.slow_ms());
    reply.double("sampleRate", 1.0);
    match i32::try_from(level) {
        Ok(level @ 0..=2) => profiler.set_level(database, level),
        Ok(-1) => {}
        _ => {
            let message = format!("profile: {level} is no level; use 0, 1, 2, or -1 to look");
            return Err(Error::bad_value(message));
        }
    }
    if let Some(slow) = slow.and_then(|slow| i32::try_from(slow).ok()) {
        profiler.set_slow_ms(slow);
    }
    Ok(())
}

fn get_log(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
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

fn rotate(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    request.server.log.rotate().map_err(|error| {
        let message = format!("Log rotation failed: {error}");
        Error::new(Code::OPERATION_FAILED, message)
    })
}
