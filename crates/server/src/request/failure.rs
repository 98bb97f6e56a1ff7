//! From errors to replies: code, name, message, labels that make drivers retry.
//!
//! The specifications of the drivers for retryable writes and for transactions define which codes
//! get which labels; see the constants.

use bson::{Document, RawDocumentBuf};
use query::{Code, Error};
use wire::Builder;

use super::Request;
use crate::command::{ENDS, RETRYABLE};

/// Codes after which a retryable write may be sent again: the state of the server prevented it.
const RETRYABLE_WRITE: &[i32] = &[
    6, 7, 89, 91, 189, 262, 9_001, 10_107, 11_600, 11_602, 13_435, 13_436,
];

/// Codes after which a transaction may be restarted, of its statements (beside
/// [`RETRYABLE_WRITE`]) and of its commit.
const TRANSIENT: &[i32] = &[24, 112, 239, 246, 251, 267];

/// Codes after which a change stream may be resumed (beside some of [`RETRYABLE_WRITE`]).
const RESUMABLE: &[i32] = &[
    6, 7, 43, 63, 89, 91, 133, 150, 189, 234, 262, 9_001, 10_107, 11_600, 11_602, 13_388, 13_435,
    13_436,
];

/// Codes after which a change stream cannot be resumed.
const LOST: &[i32] = &[280, 286];

/// Codes about the role of this member, whose replies include the topology.
const STATE_CHANGE: &[i32] = &[91, 189, 10_058, 10_107, 11_600, 11_602, 13_435, 13_436];

/// The properties of a command that determine its error labels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    /// A statement of a transaction.
    pub(crate) in_transaction: bool,
    /// The commit or abort of a transaction.
    pub(crate) commit: bool,
    /// A write that may be sent again.
    pub(crate) retryable: bool,
    /// The client backs off when the server is overloaded.
    pub(crate) backpressure: bool,
    /// The command did not start.
    pub(crate) untouched: bool,
    /// A `getMore` of a change stream.
    pub(crate) stream: bool,
}

impl Situation {
    pub(crate) fn of(request: &Request) -> Situation {
        let generic = &request.generic;
        let ends = request.command.has(ENDS);
        Situation {
            in_transaction: generic.in_transaction && !ends,
            commit: ends,
            retryable: generic.txn_number.is_some()
                && (ends || (request.command.has(RETRYABLE) && !generic.in_transaction)),
            backpressure: request.client.state.lock().backpressure,
            untouched: false,
            stream: request.origin.get().is_some_and(|o| is_stream(&o.command)),
        }
    }

    pub(crate) fn labels(self, code: i32) -> Vec<&'static str> {
        let mut labels = Vec::new();
        let state = RETRYABLE_WRITE.contains(&code);
        if self.in_transaction && (state || TRANSIENT.contains(&code))
            || self.commit && TRANSIENT.contains(&code)
        {
            labels.push("TransientTransactionError");
        }
        if self.retryable && state {
            labels.push("RetryableWriteError");
            if self.untouched {
                labels.push("NoWritesPerformed");
            }
        }
        if self.backpressure && code == Code::INGRESS_REQUEST_RATE_LIMIT_EXCEEDED.0 {
            labels.extend(["SystemOverloadedError", "RetryableError"]);
        }
        if self.stream && RESUMABLE.contains(&code) {
            labels.push("ResumableChangeStreamError");
        }
        if LOST.contains(&code) {
            labels.push("NonResumableChangeStreamError");
        }
        labels
    }
}

/// Whether a command opens a change stream.
fn is_stream(command: &Document) -> bool {
    let pipeline = command.get_array("pipeline").ok();
    let first = pipeline.and_then(|stages| stages.first()?.as_document());
    first.is_some_and(|stage| stage.contains_key("$changeStream"))
}

/// Whether the reply to an error includes the topology.
pub(crate) fn includes_topology(code: i32) -> bool {
    STATE_CHANGE.contains(&code)
}

/// Fill a reply with an error. `given` labels replace the labels that the code implies.
pub(crate) fn fill(
    reply: &mut Builder,
    error: &Error,
    situation: Option<Situation>,
    given: Option<&[String]>,
) {
    reply.double("ok", 0.0);
    reply.string("errmsg", &error.message);
    reply.int("code", error.code.0);
    reply.string("codeName", &error.code.name());
    if let Some(details) = &error.details {
        append(reply, details);
    }
    match (given, situation) {
        (Some(given), _) if !given.is_empty() => {
            reply.strings("errorLabels", given.iter().map(String::as_str));
        }
        (None, Some(situation)) => {
            let labels = situation.labels(error.code.0);
            if !labels.is_empty() {
                reply.strings("errorLabels", labels);
            }
        }
        _ => {}
    }
}

/// Append the fields of a document. A document that cannot be encoded (a name with a zero byte),
/// which only our own errors can contain, is left out.
pub(crate) fn append(reply: &mut Builder, document: &Document) {
    if let Ok(raw) = RawDocumentBuf::try_from(document) {
        reply.fields(&raw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Situation = Situation {
        in_transaction: false,
        commit: false,
        retryable: false,
        backpressure: false,
        untouched: false,
        stream: false,
    };

    #[test]
    fn labels_are_those_of_the_specifications() {
        let retryable = Situation {
            retryable: true,
            ..PLAIN
        };
        assert_eq!(retryable.labels(91), ["RetryableWriteError"]);
        assert!(retryable.labels(112).is_empty());
        assert!(PLAIN.labels(91).is_empty());
        let stream = Situation {
            stream: true,
            ..PLAIN
        };
        assert_eq!(stream.labels(43), ["ResumableChangeStreamError"]);
        assert_eq!(stream.labels(286), ["NonResumableChangeStreamError"]);
        assert!(stream.labels(11_000).is_empty());
        assert!(is_stream(
            &bson::doc! {"pipeline": [{"$changeStream": {}}, {"$match": {}}]}
        ));
        assert!(!is_stream(&bson::doc! {"pipeline": [{"$match": {}}]}));
        let inside = Situation {
            in_transaction: true,
            ..PLAIN
        };
        assert_eq!(inside.labels(112), ["TransientTransactionError"]);
        assert_eq!(inside.labels(91), ["TransientTransactionError"]);
        assert!(inside.labels(11_000).is_empty());
        let commit = Situation {
            commit: true,
            retryable: true,
            ..PLAIN
        };
        assert_eq!(commit.labels(251), ["TransientTransactionError"]);
        assert_eq!(commit.labels(91), ["RetryableWriteError"]);
        assert_eq!(commit.labels(112), ["TransientTransactionError"]);
        let untouched = Situation {
            untouched: true,
            ..retryable
        };
        let both = ["RetryableWriteError", "NoWritesPerformed"];
        assert_eq!(untouched.labels(91), both);
        assert!(PLAIN.labels(462).is_empty());
        let polite = Situation {
            backpressure: true,
            ..PLAIN
        };
        assert_eq!(
            polite.labels(462),
            ["SystemOverloadedError", "RetryableError"]
        );
    }
}
