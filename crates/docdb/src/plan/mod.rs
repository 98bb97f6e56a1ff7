//! From a query to the ways of answering it.
//!
//! The planner is pure: it sees a filter, a sort, what is needed of documents and the indexes there
//! are ([`Space`]), and answers candidates ([`candidates()`]). Which of them is best is found by
//! trying (see `find::choose`). Law: every candidate gives the documents a scan of the collection
//! and the filter would give, in the order asked for if it says so.

mod access;
mod assign;
mod bounds;
mod branches;
mod candidates;
mod check;
mod cover;
mod edges;
mod effort;
mod implies;
mod index;
mod interval;
mod keys;
mod order;
mod predicate;
mod scan;
mod space;
mod times;
mod wildcard;

pub(crate) use access::{Access, Candidate, IndexScan};
pub(crate) use candidates::{Hint, Plans, Request, candidates};
pub(crate) use check::{Verdict, leads_on};
pub(crate) use cover::Cover;
pub(crate) use interval::{Interval, Intervals};
pub(crate) use keys::Keys;
pub(crate) use scan::{ByteRange, KeyRanges};
pub(crate) use space::{Definition, PlanCache, Space};
