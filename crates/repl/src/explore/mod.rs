//! Exhaustive exploration of small sets: every order of events within bounds, checked by laws.
//!
//! `scenario` says what is explored, `world` is one state with its members, disks and network and
//! knows what can happen next, `laws` judges it, `rename` makes states equal that differ only in
//! the numbers of members, `search` visits every state once, breadth first, so the counterexample
//! it prints is a shortest one. `hash` names states by 128 bits.
//!
//! Time does not exist here: a timeout may happen at any moment, so a timer of the product can only
//! choose among the orders that were explored.

mod hash;
mod laws;
mod rename;
mod scenario;
mod search;
mod tests;
mod world;
