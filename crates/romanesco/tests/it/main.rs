//! The program, used as a user does: command lines in, exit codes, messages and files out. Nothing
//! here asserts how fast anything is.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the whole crate is test code: a panic is how a test fails"
)]

mod damage;
mod experiments;
mod full;
mod interrupt;
mod options;
mod pages;
mod program;
mod results;
mod serve;
mod servers;
mod sql;
mod surroundings;
mod wrong;
