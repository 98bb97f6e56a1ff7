//! Why a source cannot continue.

use crate::error::Error;

/// What a step of a source gives.
pub(super) type Step<T = ()> = Result<T, Stop>;

/// Why a source cannot continue.
#[derive(Debug)]
pub(super) enum Stop {
    /// Reading failed.
    Failed(Error),
    /// What it reads has been flushed or merged, and is no longer held by anything. The walk enters
    /// the bucket as it is now: beyond this key, which is the one it was leaving, or, when it was
    /// not leaving one, where it wanted to begin.
    Gone(Option<Box<[u8]>>),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}
