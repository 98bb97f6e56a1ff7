//! Torture: kill real processes that hold a storage engine, and check what survived.
//!
//! ```text
//!  supervisor (this process: the oracle)              worker (a child: the engine)
//!    draw options and an ending                          open, verify
//!    start the worker --------------------------------->  tell every entry of every tree
//!    compare the entries with the history <-------------  wait
//!    go --------------------------------------------->  writers, a reader, upkeep
//!    history of intents and outcomes <-----------------   intend(n) .. commit .. acked(n)
//!    kill it, read the pipe to its end, begin again
//! ```
//!
//! The worker announces each commit before it begins and acknowledges it after it returned, on one
//! pipe under one lock, so the order of the messages is an order in time. Every value names its
//! author (writer and counter) and is bound to its key, and every commit also writes its counter
//! under its writer's key in the ledger: what survived can be told from the store alone.
//!
//! The laws, checked after every restart (module [`oracle`]):
//!
//! - L1. Every commit whose acknowledgement promised to survive is there.
//! - L2. Of each writer the commits there are a prefix of those it began, and no commit that was
//!   acknowledged before another began is missing while the other is there.
//! - L3. A commit is there whole or not at all; one that was rolled back is not there.
//! - L4. There is one order of the commits, consistent with time, that gives the state found.
//! - L5. Every byte is one that a writer wrote there, and the engine's own check finds no fault.
//!
//! The document server has clients and an oracle of its own: module [`server`].
//!
//! A kill leaves the page cache alone, so this says nothing of power loss; that is the business of
//! the simulated disk. The seed repeats the options, the endings and the operations of each writer,
//! not the interleaving of threads and kills: those are new in every run.

pub mod draw;
pub mod key;
pub mod oracle;
pub mod protocol;
pub mod server;
pub mod supervisor;
pub mod value;
pub mod worker;

pub use supervisor::{Config, Failure, Summary, run};
