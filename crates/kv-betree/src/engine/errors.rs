//! Converts betree's errors to those of `kv`.

use kv::{Error, ErrorKind};

use crate::settings::NAME;

/// The same error, with its context.
pub(crate) fn convert(error: betree::Error) -> Error {
    let mut converted = Error::new(kind(error.kind()), error.message()).with_engine(NAME);
    if let Some(operation) = error.operation() {
        converted = converted.with_operation(operation);
    }
    if let Some(tree) = error.tree() {
        converted = converted.with_tree(tree);
    }
    if let Some(key) = error.key() {
        converted = converted.with_key(key);
    }
    if let Some(path) = error.path() {
        converted = converted.with_path(path);
    }
    converted.with_source(error)
}

fn kind(kind: betree::ErrorKind) -> ErrorKind {
    match kind {
        betree::ErrorKind::NotFound => ErrorKind::NotFound,
        betree::ErrorKind::Exists => ErrorKind::Exists,
        // The caller reacts to a snapshot that is too old as to a conflict: it retries.
        betree::ErrorKind::Conflict | betree::ErrorKind::TooOld => ErrorKind::Conflict,
        betree::ErrorKind::Invalid => ErrorKind::Invalid,
        betree::ErrorKind::Full => ErrorKind::Full,
        betree::ErrorKind::Closed => ErrorKind::Closed,
        betree::ErrorKind::Corrupt => ErrorKind::Corrupt,
        // And kinds added to betree later: the store failed; the message says how.
        _ => ErrorKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_keep_what_to_do() {
        for (theirs, ours) in [
            (betree::ErrorKind::NotFound, ErrorKind::NotFound),
            (betree::ErrorKind::Exists, ErrorKind::Exists),
            (betree::ErrorKind::Conflict, ErrorKind::Conflict),
            (betree::ErrorKind::TooOld, ErrorKind::Conflict),
            (betree::ErrorKind::Invalid, ErrorKind::Invalid),
            (betree::ErrorKind::Full, ErrorKind::Full),
            (betree::ErrorKind::Closed, ErrorKind::Closed),
            (betree::ErrorKind::Corrupt, ErrorKind::Corrupt),
            (betree::ErrorKind::Io, ErrorKind::Io),
        ] {
            let error = convert(betree::Error::new(theirs, "what happened"));
            assert_eq!(error.kind(), ours);
            assert_eq!(
                (error.engine(), error.message()),
                (Some(NAME), "what happened")
            );
        }
    }
}
