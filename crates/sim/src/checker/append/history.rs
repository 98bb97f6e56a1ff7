//! What is judged: plain data, whoever recorded it.

/// The name of a list.
pub type Key = u64;

/// What is appended; no two appends to one key use the same.
pub type Value = u64;

/// An operation of a transaction, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The value was put at the end of the list of the key.
    Append(Key, Value),
    /// The list of the key was this; a key without a list has an empty one.
    Read(Key, Vec<Value>),
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged.
    Committed,
    /// It was refused or rolled back: it never happened.
    Aborted,
    /// Nobody knows, as after a lost connection. Leave reads out whose answers did not come.
    Unknown,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// The client; its transactions stand in the history in the order in which it made them.
    pub session: u64,
    /// When it began, by any clock that all clients share (logical or not) ...
    pub start: u64,
    /// ... and when its end was known to the client; not before `start`.
    pub end: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did.
    pub ops: Vec<Op>,
}
