//! The same tests of collections on several engines.

mod insert;
mod lab;
