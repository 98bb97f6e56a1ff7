//! Torture of a replica set: three or more servers as processes, with proxies between them, suffer
//! faults while clients write and read at all of them.
//!
//! ```text
//!  this process: clients, oracle, proxies           members (processes, different engines)
//!    clients -------------------------------------> each member, also at a wrong primary
//!    a proxy in front of each member <------------- connections of the other members
//!    faults: kill, pause, cut, delay, empty ------> a member or a link
//!    every few faults: heal everything, compare --> all members
//! ```
//!
//! A fault lasts for up to some seconds, often together with another one. Clients connect to the
//! members directly, so that they also reach a primary that the others have given up. The laws:
//!
//! - C1. Every write that a majority acknowledged exists once: the documents of each client are
//!   exactly those of its acknowledged operations. A write or a commit that is sent again under its
//!   number, to the same or another primary, is executed once and answered as the first time.
//! - C2. A write that was refused because the member is no primary does not exist.
//! - C3. What a read with `majority` shows is never taken back, and a causal one shows what a
//!   majority has acknowledged before.
//! - C4. A term has one primary.
//! - C5. A linearizable read returns the last number that was acknowledged, or one that was sent
//!   meanwhile, and never an older one than a read before.
//! - C6. A change stream that continues at any member shows each change of a majority once, in
//!   order: its events give the documents that exist.
//! - C7. When all faults have ended, all members have the same documents in all databases, the same
//!   indexes, and `validate` finds no error. No server ends by itself.
//! - C8. When all faults have ended, a majority acknowledges writes again.

mod answer;
mod check;
mod failover;
mod faults;
mod journal;
mod links;
mod loose;
mod member;
mod registers;
mod report;
mod run;
mod shared;
mod stream;
mod writer;

pub use failover::{Outages, failover};
pub use faults::Kind;
pub use report::Summary;
pub use run::{Config, run};
