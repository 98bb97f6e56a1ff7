//! Runs against a sorted list of entries, on a file in memory.

mod damage;
mod model;
mod rig;
mod space;
