//! Tests of the program's command line, and of the supervisor with workers that cheat. No test
//! asserts a duration; a failing run prints its seed.
#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is test code: a panic is how a test fails"
)]

mod attack;
mod canary;
mod cluster;
mod engines;
mod program;
mod server;
