//! What a reply means for the question whether the command was executed.

use bson::Document;

use crate::server::link::has_label;

/// Errors of a member that is no primary, ends, or cannot reach the others in time. Whether the
/// command was executed is unknown, except for [`REFUSED`].
const PASSING: [i32; 16] = [
    6, 7, 24, 50, 64, 89, 91, 112, 189, 262, 462, 9_001, 11_600, 11_602, 13_435, 13_436,
];

/// Not the primary, and did not begin.
const REFUSED: i32 = 10_107;

/// The code of the error in a reply, also of a single write; 0 if there is none.
pub(super) fn code(reply: &Document) -> i32 {
    let own = reply.get_i32("code").ok();
    let first = reply
        .get_array("writeErrors")
        .ok()
        .and_then(|all| all.first());
    let of_write = first.and_then(|e| e.as_document()?.get_i32("code").ok());
    own.or(of_write).unwrap_or(0)
}

/// Whether the write concern was not satisfied.
pub(super) fn is_unsatisfied(reply: &Document) -> bool {
    reply.contains_key("writeConcernError")
}

/// Whether the member refused the command before it began.
pub(super) fn is_refused(reply: &Document) -> bool {
    code(reply) == REFUSED && !is_unsatisfied(reply)
}

/// Whether the same command may be sent again.
pub(super) fn is_passing(reply: &Document) -> bool {
    let code = code(reply);
    is_unsatisfied(reply)
        || code == REFUSED
        || PASSING.contains(&code)
        || has_label(reply, "RetryableWriteError")
}

/// Whether the transaction was rolled back, for certain.
pub(super) fn is_rolled_back(reply: &Document) -> bool {
    has_label(reply, "TransientTransactionError") && !is_unsatisfied(reply)
}
