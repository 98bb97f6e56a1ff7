//! Tests of the program through its command line: exit codes, messages and files. No test asserts a
//! speed.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the whole crate is test code: a panic is how a test fails"
)]

mod articles;
mod backup;
mod backup_encrypted;
mod backup_ended;
mod backup_increment;
mod backup_owner;
mod clone;
mod cluster;
mod damage;
mod engine_change;
mod experiments;
mod full;
mod guides;
mod install;
mod interrupt;
mod options;
mod pages;
mod program;
mod restore_to_time;
mod results;
mod secrets;
mod serve;
mod servers;
mod sql;
mod surroundings;
mod sweep;
mod wrong;
