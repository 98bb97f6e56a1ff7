//! The program, used as a user does, and the supervisor, given workers that cheat. Nothing here
//! asserts how long anything takes; every run prints its seed when it fails.
#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is test code: a panic is how a test fails"
)]

mod attack;
mod canary;
mod engines;
mod program;
mod server;
