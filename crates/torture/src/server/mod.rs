//! Torture of the document server: clients write over sockets, `kill -9` ends the server, and the
//! data after a restart are compared with the acknowledged writes.
//!
//! ```text
//!  supervisor (this process: clients and oracle)          server (a child)
//!    start it, wait for its port ------------------------> open the store, listen
//!    send operations of unknown outcome again -----------> answer as the first time, or do it
//!    read everything, validate every collection <--------
//!    clients write, each documents of its own -----------> j: true
//!    kill -9, record what was acknowledged, repeat
//! ```
//!
//! The clients implement the wire protocol and do not use a driver: a driver retries by itself, but
//! these tests must control the retries. They send what a driver sends: `lsid` and `txnNumber` on
//! every write, transactions that begin with `startTransaction`.
//!
//! The laws, checked after every restart:
//!
//! - W1. Every write acknowledged with `j: true` exists, and no other write.
//! - W2. A write sent again under its `lsid` and `txnNumber` gets the same answer and is executed
//!   once; increments show that.
//! - W3. A transaction over two collections exists as a whole or not at all; its commit, sent
//!   again, returns whether it exists.
//! - W4. `validate` finds no error in any collection and index, and a scan of each index returns
//!   every document.
//! - W5. An index exists from the acknowledgement of its build until it is dropped; an interrupted
//!   build leaves a complete index or none.

pub mod append;
mod attack;
mod builder;
pub(crate) mod check;
mod client;
pub(crate) mod cycle;
mod host;
pub mod hostile;
pub(crate) mod link;
pub(crate) mod model;
pub(crate) mod operation;
pub(crate) mod process;
mod report;

pub use attack::{Attack, Outcome, attack};
pub use cycle::{Config, Lie, run};
pub use host::{Host, host};
pub use report::{Failure, Summary};
