//! The same tests of collections on several engines.

mod ddl;
mod index;
mod insert;
mod lab;
mod random;
mod session;
mod transaction;
mod write;
