//! What authorization has read of a command, for the command to run.

use bson::RawDocumentBuf;
use docdb::{AggregateRequest, CollectionOptions, Parsed, View};

/// The largest message, in bytes, whose parsed pipeline or definition is kept from authorization to
/// execution. It may wait for admission meanwhile, outside of the limits of memory; parsed stages
/// take up to some eighty times the bytes that they are parsed from.
const KEPT: usize = 16 << 10;

/// The arguments of a command as authorization has read them.
pub(crate) enum Understood {
    /// The request with its parsed pipeline.
    Request(Box<AggregateRequest>),
    /// What the pipeline of a large message accesses. The request is read again, and its pipeline
    /// must access the same.
    Accesses(Parsed),
    /// The options of a `create`; a view's pipeline is parsed.
    Created(Box<CollectionOptions>),
    /// The fields of a `collMod`, and the view that they define, whose pipeline is parsed.
    Modified(RawDocumentBuf, Option<View>),
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

    /// These arguments, if the message from which they were read has at most [`KEPT`] bytes.
    pub(crate) fn kept(self, bytes: usize) -> Option<Understood> {
        (bytes <= KEPT).then_some(self)
    }
}
