//! A running command: its request and call, its error replies, and how logs show it.

mod call;
pub(crate) mod failure;
mod shown;
mod transaction;

pub(crate) use call::{Brief, Call, Request, Run, run};
pub(crate) use shown::{is_secret, namespace, shown};
pub(crate) use transaction::outside_of_server;
