//! Tests of index builds.

mod crash;
mod known;
mod model;
mod moments;
mod rig;
mod scenes;
mod shared;
mod steps;
