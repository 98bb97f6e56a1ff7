//! A running command: its request and call, its error replies, and how logs show it.

pub(crate) mod awaits;
mod call;
pub(crate) mod failure;
mod later;
mod shown;
mod transaction;
mod understood;

pub(crate) use call::{Brief, Call, Request, Run, run, stream_of, system};
pub(crate) use shown::{is_secret, namespace, shown};
pub(crate) use transaction::outside_of_server;
pub(crate) use understood::Understood;
