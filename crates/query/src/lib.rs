//! Filters, projections, sorts, updates, expressions and aggregation stages over BSON.
//!
//! Pure functions: no input or output, no threads, no clock (the time of an operation is handed
//! in). What needs storage, such as `$lookup`, or a disk, such as a large sort, reaches it through
//! traits that the caller implements. The authority is MongoDB's manual; messages and codes of
//! errors follow it, because tools compare them.

pub mod accumulator;
pub mod code;
pub mod collation;
pub mod error;
pub mod execute;
pub mod expr;
pub mod filter;
mod keyed;
mod kind;
pub mod meter;
pub mod namespace;
pub mod number;
pub mod path;
pub mod pipeline;
pub mod projection;
pub mod regex;
pub mod repeated;
pub mod row;
pub mod schema;
pub mod settings;
pub mod show;
pub mod sort;
pub mod stage;
pub mod stage_name;
mod transform;
mod types;
pub mod update;
pub mod value;
pub mod vocabulary;
pub mod window;

pub use code::Code;
pub use error::{Error, Result};
pub use namespace::Namespace;
pub use row::Row;
