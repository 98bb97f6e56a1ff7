//! Tables that a workload declares: typed columns, a primary key and secondary indexes; and their
//! rows.
//!
//! - T1. A row has a value for every column, in their order. [`Value::Null`] occurs only in columns
//!   that may be null, never in the primary key.
//! - T2. Values of a column are ordered: numbers by size (no NaN), texts and bytes by their bytes;
//!   null comes first. Rows of an index are ordered by its columns, then by the primary key.

use lab_report::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A 64-bit signed integer.
    Int,
    /// A 64-bit floating-point number.
    Float,
    /// ASCII text. Workloads use no other text, so that collations make no difference.
    Text,
    /// A byte string.
    Bytes,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column: lower-case letters, digits and underscores.
    pub name: &'static str,
    /// Type of the column.
    pub kind: Kind,
    /// Maximum number of bytes of a text or byte string; 8 for numbers.
    pub width: u32,
    /// Whether the value may be null.
    pub nullable: bool,
}

impl Column {
    /// A column of integers.
    #[must_use]
    pub const fn int(name: &'static str) -> Column {
        Column::of(name, Kind::Int, 8)
    }

    /// A column of floating-point numbers.
    #[must_use]
    pub const fn float(name: &'static str) -> Column {
        Column::of(name, Kind::Float, 8)
    }

    /// A column of texts of at most `width` bytes.
    #[must_use]
    pub const fn text(name: &'static str, width: u32) -> Column {
        Column::of(name, Kind::Text, width)
    }

    /// A column of byte strings of at most `width` bytes.
    #[must_use]
    pub const fn bytes(name: &'static str, width: u32) -> Column {
        Column::of(name, Kind::Bytes, width)
    }

    /// The same column, nullable.
    #[must_use]
    pub const fn or_null(self) -> Column {
        Column {
            nullable: true,
            ..self
        }
    }

    const fn of(name: &'static str, kind: Kind, width: u32) -> Column {
        Column {
            name,
            kind,
            width,
            nullable: false,
        }
    }
}

/// A secondary index. It is not unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Name of the index, unique among the indexes of its table.
    pub name: &'static str,
    /// Positions of the indexed columns.
    pub columns: Vec<usize>,
    /// Positions of the columns that are stored with each entry, so that queries for these columns
    /// need not read rows.
    pub stored: Vec<usize>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name of the table, unique among the tables of the workload.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The positions of the columns of the primary key, at least one.
    pub key: Vec<usize>,
    /// Its secondary indexes.
    pub indexes: Vec<Index>,
}

impl Table {
    /// A table without indexes whose primary key is its first `key` columns.
    #[must_use]
    pub fn new(name: &str, columns: &[Column], key: usize) -> Table {
        Table {
            name: name.to_owned(),
            columns: columns.to_vec(),
            key: (0..key).collect(),
            indexes: Vec::new(),
        }
    }

    /// The same table with one more index.
    #[must_use]
    pub fn index(mut self, name: &'static str, columns: &[usize], stored: &[usize]) -> Table {
        self.indexes.push(Index {
            name,
            columns: columns.to_vec(),
            stored: stored.to_vec(),
        });
        self
    }
}

/// A value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// An integer.
    Int(i64),
    /// A double, not NaN.
    Float(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// The value as an integer; 0 if it is not one.
    #[must_use]
    pub fn int(&self) -> i64 {
        match self {
            Value::Int(n) => *n,
            _ => 0,
        }
    }

    /// The value as a number; 0 if it is not one.
    #[must_use]
    pub fn float(&self) -> f64 {
        match self {
            Value::Float(x) => *x,
            Value::Int(n) => *n as f64,
            _ => 0.0,
        }
    }

    /// The value as a text; empty if it is not one.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            _ => "",
        }
    }

    /// Length of the value in bytes: 8 for a number, 0 for null.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Value::Null => 0,
            Value::Int(_) | Value::Float(_) => 8,
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Int(n)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Float(x)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

/// A row: a value for every column.
pub type Row = Vec<Value>;

/// The table, index or column at a position of a list.
///
/// # Errors
/// When the list is shorter; `what` names the missing one.
pub(crate) fn nth<'a, T>(all: &'a [T], position: usize, what: &str) -> Result<&'a T> {
    all.get(position)
        .ok_or_else(|| Error::target(format!("there is no such {what}")))
}

/// The value of the column at `column` of a row; null if the row has no such column.
#[must_use]
pub fn at(row: &[Value], column: usize) -> &Value {
    row.get(column).unwrap_or(&Value::Null)
}

/// The values of the columns at `columns` of a row.
#[must_use]
pub fn pick(row: &[Value], columns: &[usize]) -> Row {
    columns.iter().map(|&c| at(row, c).clone()).collect()
}

/// Sum of the lengths of a row's values, in bytes.
#[must_use]
pub fn row_bytes(row: &[Value]) -> u64 {
    row.iter().map(|v| v.len() as u64).sum()
}
