//! One connection to a server, independent of its protocol: sends statements and values, receives
//! rows. Statements with values are prepared once and cached by their text.

use lab_report::error::{Error, Result};

use super::address::{Address, Protocol};
use super::value::Value;
use super::{mysql, postgres};

/// Maximum number of values of one statement: both protocols count them in 16 bits, one of them in
/// signed 16 bits.
pub(super) const VALUES_MAX: usize = 30_000;

/// Maximum number of prepared statements of a connection: one for each of a thousand tables. Each
/// uses about ten kilobytes of the server's memory.
pub(super) const STATEMENTS_MAX: usize = 1024;

/// The error of a failed statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// A message with the error, and what to do next.
    pub message: String,
    /// Whether a retry of the transaction resolves the error: a deadlock, a conflict, a lock
    /// timeout, a key that another transaction inserted.
    pub conflict: bool,
    /// Whether the error is a key that already exists.
    pub duplicate: bool,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::target(failure.message)
    }
}

/// The result of a statement.
pub(super) type Answer<T> = Result<T, Failure>;

/// Receives a row; returns false when no more rows are wanted.
pub(super) type Take<'a> = dyn FnMut(Vec<Value>) -> bool + 'a;

/// Cancels the running statement of a connection, from another connection.
pub(super) type Cancel = Box<dyn Fn()>;

/// A connection.
pub(super) trait Wire: Send {
    /// Run a statement without values; returns the number of rows that it changed.
    fn run(&mut self, text: &str) -> Answer<u64>;

    /// Run a statement with values; returns the number of rows that it changed.
    fn execute(&mut self, text: &str, values: Vec<Value>) -> Answer<u64>;

    /// Run a query, and pass each row to `take` as it arrives.
    fn rows(&mut self, text: &str, values: Vec<Value>, take: &mut Take<'_>) -> Answer<()>;

    /// Returns the function that cancels a running statement.
    fn cancel(&self) -> Cancel;
}

impl dyn Wire + '_ {
    /// All rows of a result.
    pub(super) fn all(&mut self, text: &str, values: Vec<Value>) -> Answer<Vec<Vec<Value>>> {
        let mut all = Vec::new();
        self.rows(text, values, &mut |row| {
            all.push(row);
            true
        })?;
        Ok(all)
    }

    /// The result of a query for a single integer.
    pub(super) fn number(&mut self, text: &str) -> Result<u64> {
        let all = self.all(text, Vec::new())?;
        let first = all.first().and_then(|row| row.first());
        let number = first.and_then(|value| match value {
            Value::Int(n) => u64::try_from(*n).ok(),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        });
        number.ok_or_else(|| Error::target(format!("no number in the answer to {text}")))
    }
}

/// Connect to a server.
///
/// # Errors
/// A message that states what to do next.
pub(super) fn connect(address: &Address) -> Result<Box<dyn Wire>> {
    Ok(match address.protocol {
        Protocol::MySql => Box::new(mysql::Client::connect(address)?),
        Protocol::Postgres => Box::new(postgres::Client::connect(address)?),
    })
}
