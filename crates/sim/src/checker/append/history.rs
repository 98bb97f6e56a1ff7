//! The input of the checker: plain data that any recorder can produce.

/// The name of a list.
pub type Key = u64;

/// The appended value; no two appends to one key use the same value.
pub type Value = u64;

/// An operation of a transaction, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The transaction appended the value to the list of the key.
    Append(Key, Value),
    /// The transaction read this list of the key; the list is empty if the key has none.
    Read(Key, Vec<Value>),
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The transaction was acknowledged.
    Committed,
    /// The transaction was refused or rolled back, so it did not happen.
    Aborted,
    /// The outcome is unknown, for example after a lost connection. Reads without a reply must be
    /// omitted.
    Unknown,
}

/// A transaction, as recorded by its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// The client. The history has the transactions of a client in the order of their execution.
    pub session: u64,
    /// When the transaction began, by any clock that all clients share (logical or real).
    pub start: u64,
    /// When the client knew the outcome, by the same clock; not before `start`.
    pub end: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its operations.
    pub ops: Vec<Op>,
}
