//! From a message to its reply: find the command, check it, run it where it belongs, finish.

mod acknowledge;
mod check;
mod inline;
mod prepare;
mod roles;
mod run;
mod slow;
mod transact;

pub(crate) use prepare::{Refused, prepare, refuse};
pub(crate) use run::{Answer, run};
