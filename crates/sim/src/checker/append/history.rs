//! The input of the checker: plain data, independent of the recorder.

/// The name of a list.
pub type Key = u64;

/// The appended value; no two appends to one key use the same value.
pub type Value = u64;

/// An operation of a transaction, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The value was appended to the list of the key.
    Append(Key, Value),
    /// The list read for the key; a key without a list has an empty one.
    Read(Key, Vec<Value>),
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged.
    Committed,
    /// It was refused or rolled back: it did not happen.
    Aborted,
    /// Unknown, as after a lost connection. Omit reads without an answer.
    Unknown,
}

/// A transaction, as recorded by its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// The client; the history has its transactions in the order of their execution.
    pub session: u64,
    /// When it began, by any clock shared by all clients (logical or not).
    pub start: u64,
    /// When the client knew its end, by the same clock; not before `start`.
    pub end: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its operations.
    pub ops: Vec<Op>,
}
