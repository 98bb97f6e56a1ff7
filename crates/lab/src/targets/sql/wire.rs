//! One connection to a server, independent of its protocol: sends statements and values, receives
//! rows. Statements with values are prepared once and cached by their text.

use super::address::{Address, Protocol};
use super::value::Value;
use super::{mysql, postgres};

/// The most values of one statement: both protocols count them in 16 bits, one of them signed.
pub(super) const VALUES_MAX: usize = 30_000;

/// Statements kept prepared by a connection: one for each of a thousand tables. Each takes some ten
/// kilobytes of the server's memory.
pub(super) const STATEMENTS_MAX: usize = 1024;

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// What happened, and what to do next.
    pub message: String,
    /// Whether it goes away when the transaction is done again: a deadlock, a conflict, a lock that
    /// took too long, a key that another transaction took.
    pub conflict: bool,
    /// Whether that is a key which is there already.
    pub duplicate: bool,
}

impl From<Failure> for String {
    fn from(failure: Failure) -> String {
        failure.message
    }
}

/// An answer of a connection.
pub(super) type Answer<T> = Result<T, Failure>;

/// Takes a row; false when no more are wanted.
pub(super) type Take<'a> = dyn FnMut(Vec<Value>) -> bool + 'a;

/// Ends the statement its connection is busy with, from another connection.
pub(super) type Cancel = Box<dyn Fn()>;

/// A connection.
pub(super) trait Wire: Send {
    /// Run a statement without values; returns the rows it changed.
    fn run(&mut self, text: &str) -> Answer<u64>;

    /// Run a statement with values; returns the rows it changed.
    fn execute(&mut self, text: &str, values: Vec<Value>) -> Answer<u64>;

    /// Ask, and take the rows as they come.
    fn rows(&mut self, text: &str, values: Vec<Value>, take: &mut Take<'_>) -> Answer<()>;

    /// What ends a statement that is under way.
    fn cancel(&self) -> Cancel;
}

impl dyn Wire + '_ {
    /// All rows of an answer.
    pub(super) fn all(&mut self, text: &str, values: Vec<Value>) -> Answer<Vec<Vec<Value>>> {
        let mut all = Vec::new();
        self.rows(text, values, &mut |row| {
            all.push(row);
            true
        })?;
        Ok(all)
    }

    /// The whole number an answer is.
    pub(super) fn number(&mut self, text: &str) -> Result<u64, String> {
        let all = self.all(text, Vec::new())?;
        let first = all.first().and_then(|row| row.first());
        let number = first.and_then(|value| match value {
            Value::Int(n) => u64::try_from(*n).ok(),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        });
        number.ok_or_else(|| format!("no number in the answer to {text}"))
    }
}

/// Connect.
///
/// # Errors
/// A sentence that says what to do next.
pub(super) fn connect(address: &Address) -> Result<Box<dyn Wire>, String> {
    Ok(match address.protocol {
        Protocol::MySql => Box::new(mysql::Client::connect(address)?),
        Protocol::Postgres => Box::new(postgres::Client::connect(address)?),
    })
}
