//! What authorization has read of a command, for the command to run.

use docdb::{AggregateRequest, Parsed};

/// The largest message, in bytes, whose parsed pipeline is kept from authorization to execution. It
/// may wait for admission meanwhile, outside of the limits of memory; parsed stages take up to some
/// eighty times the bytes that they are parsed from.
const KEPT: usize = 16 << 10;

/// The request of an `aggregate` as authorization has read it.
pub(crate) enum Understood {
    /// The request with its parsed pipeline.
    Request(Box<AggregateRequest>),
    /// What the pipeline of a large message accesses. The request is read again, and its pipeline
    /// must access the same.
    Accesses(Parsed),
}

impl Understood {
    /// What is kept of a request whose pipeline is parsed, of a message of this many bytes.
    pub(crate) fn of(request: AggregateRequest, bytes: usize) -> Option<Understood> {
        if bytes <= KEPT {
            return Some(Understood::Request(Box::new(request)));
        }
        let parsed = request.parsed?.without_stages();
        Some(Understood::Accesses(parsed))
    }
}
