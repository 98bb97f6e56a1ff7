//! From a message to its reply: find the command, check it, run it where it belongs, finish.

pub(crate) mod arguments;
mod call;
mod check;
pub(crate) mod failure;
pub(crate) mod generic;
mod prepare;
pub(crate) mod request;
pub(crate) mod row;
mod run;
pub(crate) mod slow;

pub(crate) use arguments::Arguments;
pub(crate) use call::Call;
pub(crate) use check::outside_of_server;
pub(crate) use prepare::{Refused, prepare, refuse};
pub(crate) use request::Request;
pub(crate) use row::Row;
pub(crate) use run::{Answer, run, writes};
pub(crate) use slow::is_secret;
