//! The log and the profiler: `getLog`, `logRotate`, `profile`.

use std::sync::Arc;

use bson::RawBsonRef;
use query::{Code, Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::arguments::{Arguments, integer};
use crate::command::{ADMIN, Lane};
use crate::request::Call;
use crate::row::Row;
use crate::state::profiler::Conditions;

pub(super) const ROWS: &[Row] = &[
    Row::new("getLog", get_log, "Return the last lines of the log")
        .flags(ADMIN)
        .privilege(Privilege::Cluster("getLog")),
    Row::new("logRotate", rotate, "Rotate the log file")
        .flags(ADMIN)
        .lane(Lane::Reserved)
        .fields(&["comment"])
        .privilege(Privilege::Cluster("logRotate")),
    Row::new("profile", profile, "Return or set the profiling level")
        .fields(&["slowms", "sampleRate", "filter"])
        .privilege(Privilege::Database("enableProfiler")),
];

/// The change of the profiler's filter that `profile` requests.
enum Asked {
    /// Keep the filter.
    Keep,
    /// Remove the filter.
    Unset,
    /// Replace the filter.
    Set(Arc<Conditions>),
}

fn conditions(arguments: &Arguments<'_>) -> Result<Asked> {
    match arguments.get("filter") {
        None => Ok(Asked::Keep),
        Some(RawBsonRef::String("unset")) => Ok(Asked::Unset),
        Some(RawBsonRef::Document(filter)) => Ok(Asked::Set(Arc::new(Conditions::parse(filter)?))),
        Some(_) => {
            let message = "Expected an object, or the string 'unset'.";
            Err(Error::bad_value(message))
        }
    }
}

/// The sample rate of slow commands.
fn rate(arguments: &Arguments<'_>) -> Result<Option<f64>> {
    let rate = match arguments.get("sampleRate") {
        None => return Ok(None),
        Some(RawBsonRef::Double(rate)) => rate,
        Some(value) => match integer(value).and_then(|rate| i32::try_from(rate).ok()) {
            Some(rate) => f64::from(rate),
            None => {
                let message = "BSON field 'profile.sampleRate' is the wrong type, expected types \
                     '[long, int, decimal, double]'";
                return Err(Error::type_mismatch(message));
            }
        },
    };
    match (0.0..=1.0).contains(&rate) {
        true => Ok(Some(rate)),
        false => {
            let message = "'sampleRate' must be between 0.0 and 1.0 inclusive";
            Err(Error::bad_value(message))
        }
    }
}

fn profile(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let profiler = &request.server.profiler;
    let database = request.database();
    let arguments = request.arguments();
    let level = integer(request.target()).unwrap_or(-2);
    let (slow, rate) = (arguments.long("slowms")?, rate(arguments)?);
    let conditions = conditions(arguments)?;
    if !(-1..=2).contains(&level) {
        let message = format!("profile: {level} is no level; use 0, 1, 2, or -1 to look");
        return Err(Error::bad_value(message));
    }
    reply
        .int("was", profiler.level(database))
        .int("slowms", profiler.slow_ms());
    reply.double("sampleRate", profiler.rate());
    if let Some(filter) = profiler.filter(database) {
        reply.document("filter", &filter.given);
        let note = "When a filter expression is set, slowms and sampleRate are not used for \
             profiling and slow-query log lines.";
        reply.string("note", note);
    }
    if let Some(level) = i32::try_from(level).ok().filter(|level| 0 <= *level) {
        profiler.set_level(database, level);
    }
    if let Some(slow) = slow.and_then(|slow| i32::try_from(slow).ok()) {
        profiler.set_slow_ms(slow);
    }
    if let Some(rate) = rate {
        profiler.set_rate(rate);
    }
    match conditions {
        Asked::Keep => {}
        Asked::Unset => profiler.set_filter(database, None),
        Asked::Set(filter) => profiler.set_filter(database, Some(filter)),
    }
    Ok(())
}

fn get_log(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let log = &request.server.log;
    match request.target() {
        RawBsonRef::String("*") => {
            reply.strings("names", ["global", "startupWarnings"]);
        }
        RawBsonRef::String("global") => {
            let (lines, total) = log.recent();
            reply.int(
                "totalLinesWritten",
                i32::try_from(total).unwrap_or(i32::MAX),
            );
            reply.strings("log", lines.iter().map(|line| &**line));
        }
        RawBsonRef::String("startupWarnings") => {
            let lines = log.warnings();
            reply.int(
                "totalLinesWritten",
                i32::try_from(lines.len()).unwrap_or(i32::MAX),
            );
            reply.strings("log", lines.iter().map(|line| &**line));
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
