//! Torture of the document server: clients write over sockets, `kill -9` ends the server, and what
//! a restart serves is compared with what was acknowledged.
//!
//! ```text
//!  supervisor (this process: clients and oracle)          server (a child)
//!    start it, wait for its port ------------------------> open the store, listen
//!    send again what nobody knows the end of ------------> answer as the first time, or do it
//!    read everything, validate every collection <--------
//!    clients write, each documents of its own -----------> j: true
//!    kill -9, remember what was acknowledged, again
//! ```
//!
//! The clients speak the wire protocol themselves instead of through a driver: a driver sends again
//! by itself, and here that is what is tested. What they send is what a driver sends: `lsid` and
//! `txnNumber` on every write, transactions that begin with `startTransaction`.
//!
//! The laws, checked after every restart:
//!
//! - W1. Every write acknowledged with `j: true` is there, and nothing else is.
//! - W2. A write sent again under its `lsid` and `txnNumber` is answered as the first time and is
//!   done once: increments count.
//! - W3. A transaction over two collections is there whole or not at all; sent again, its commit
//!   says which.
//! - W4. `validate` finds every collection and index sound, and each index alone serves every
//!   document.
//! - W5. An index is there from when its build was acknowledged until it is dropped; a build that
//!   was cut off has left a whole index or none.

pub mod append;
mod attack;
mod builder;
mod check;
mod client;
mod cycle;
mod host;
pub mod hostile;
mod link;
mod model;
mod operation;
mod process;
mod report;

pub use attack::{Attack, Outcome, attack};
pub use cycle::{Config, Lie, run};
pub use host::{Host, host};
pub use report::{Failure, Summary};
