//! Torture: kill real processes that hold a storage engine, and check the surviving data.
//!
//! ```text
//!  supervisor (this process: the oracle)              worker (a child: the engine)
//!    draw options and an ending                          open, verify
//!    start the worker --------------------------------->  tell every entry of every tree
//!    compare the entries with the history <-------------  wait
//!    go --------------------------------------------->  writers, a reader, upkeep
//!    history of intents and outcomes <-----------------   intend(n) .. commit .. acked(n)
//!    kill it, read the pipe to its end, repeat
//! ```
//!
//! The worker announces each commit before it begins and acknowledges it after it returned, on one
//! pipe under one lock, so the order of the messages is an order in time. Every value names its
//! author (writer and counter) and is bound to its key, and every commit also writes its counter
//! under its writer's key in the ledger: the store alone shows which commits survived.
//!
//! The laws, checked after every restart (module [`oracle`]):
//!
//! - L1. Every commit whose acknowledgement promised survival exists.
//! - L2. The surviving commits of each writer are a prefix of those it began, and if a commit
//!   survived, every commit acknowledged before it began survived, too.
//! - L3. A commit exists as a whole or not at all; one that was rolled back does not exist.
//! - L4. One order of the commits, consistent with time, gives the state found.
//! - L5. A writer wrote every byte that is found, and the engine's own check finds no error.
//!
//! The document server has its own clients and oracle: module [`server`]; so has a replica set:
//! module [`cluster`].
//!
//! A kill does not affect the page cache, so this does not test power losses; the simulated disk
//! does. The seed repeats the options, the endings and the operations of each writer, but not the
//! interleaving of threads and kills, which differs in every run.

pub mod cluster;
pub mod draw;
pub mod key;
pub mod oracle;
pub mod protocol;
pub mod server;
pub mod supervisor;
pub mod value;
pub mod worker;

pub use supervisor::{Config, Failure, Summary, run};
