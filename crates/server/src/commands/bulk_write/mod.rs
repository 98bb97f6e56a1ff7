//! `bulkWrite`: inserts, updates and deletes of many collections in one command.

mod command;
mod outcome;
mod statement;

pub(super) use command::ROWS;
