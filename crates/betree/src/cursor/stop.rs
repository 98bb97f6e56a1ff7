//! Why a source cannot continue.

use crate::error::Error;

/// The result of a step of a source.
pub(super) type Step<T = ()> = Result<T, Stop>;

/// Why a source cannot continue.
#[derive(Debug)]
pub(super) enum Stop {
    /// Reading failed.
    Failed(Error),
    /// The data it read was flushed or merged, and nothing holds it any more. The cursor enters the
    /// bucket again in its current state: beyond this key, which it was leaving, or, if it was
    /// leaving none, at the bound where it wanted to start.
    Gone(Option<Box<[u8]>>),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}
