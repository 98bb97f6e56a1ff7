//! Converts errors of the driver into messages that state what to do next.

use lab_report::error::Error;
use mongodb::error::{Error as DriverError, ErrorKind, WriteFailure};

use super::address::PASSWORD;

/// The message of the server or the driver.
pub(super) fn sentence(error: &DriverError) -> String {
    match error.kind.as_ref() {
        ErrorKind::Command(e) => format!("{} ({} {})", e.message, e.code, e.code_name),
        ErrorKind::Write(WriteFailure::WriteError(e)) => format!("{} ({})", e.message, e.code),
        ErrorKind::InsertMany(e) => match (
            e.write_errors.iter().flatten().next(),
            &e.write_concern_error,
        ) {
            (Some(first), _) => format!("{} ({})", first.message, first.code),
            (None, Some(concern)) => concern.message.clone(),
            (None, None) => "an insert failed".to_owned(),
        },
        ErrorKind::InvalidArgument { message, .. }
        | ErrorKind::Authentication { message, .. }
        | ErrorKind::ServerSelection { message, .. }
        | ErrorKind::DnsResolve { message, .. }
        | ErrorKind::ConnectionPoolCleared { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// The error of the server at `place`, with what to do next.
pub(super) fn text(place: &str, error: &DriverError) -> Error {
    let what = sentence(error);
    Error::target(match error.kind.as_ref() {
        ErrorKind::ServerSelection { .. } if what.contains("uthentication") => {
            refused(place, &what)
        }
        ErrorKind::ServerSelection { .. } | ErrorKind::DnsResolve { .. } => {
            format!("no server answers at {place}: {what}; start it, or correct the address")
        }
        ErrorKind::Authentication { .. } => refused(place, &what),
        ErrorKind::Command(e) if matches!(e.code, 13 | 18) => refused(place, &what),
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => format!(
            "{place} went away: {what}; see its log, start it again, then `romanesco lab resume`"
        ),
        _ => format!("{place}: {what}"),
    })
}

fn refused(place: &str, what: &str) -> String {
    format!(
        "{place} lets in only users: {what}; name one, as in mongodb://USER@HOST, with the \
         password in {PASSWORD}, who may read and write the database and see the server's status"
    )
}
