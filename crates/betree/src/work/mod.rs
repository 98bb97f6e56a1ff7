//! Background work: freezing and flushing buffers, merging runs, checkpoints.
//!
//! Everything is done in steps ([`step`]): by background threads, or, when a store is opened with
//! none, by the caller of [`crate::Db::step`], so that a simulation decides the order.

mod admit;
#[cfg(test)]
mod admit_tests;
mod checkpoint;
mod claim;
#[cfg(test)]
mod claim_tests;
mod empties;
mod flush;
mod freeze;
#[cfg(test)]
mod heat_tests;
mod join;
mod leftovers;
#[cfg(test)]
mod leftovers_tests;
mod merge;
mod pace;
#[cfg(test)]
mod pace_tests;
mod pick;
mod pinned;
mod queue;
mod restructure;
mod room;
#[cfg(test)]
mod room_tests;
mod settle;
mod sharing;
mod source;
mod split;
mod step;
mod threads;
#[cfg(test)]
mod wait_tests;

pub(crate) use admit::Ask;
pub(crate) use checkpoint::Checkpoints;
pub(crate) use freeze::Fullest;
pub(crate) use merge::Merges;
pub(crate) use pace::Crowd;
pub(crate) use pinned::Pinned;
pub(crate) use queue::FlushQueue;
pub(crate) use room::Refused;
pub(crate) use sharing::Sharing;
pub(crate) use step::Timers;
pub(crate) use threads::Threads;
