//! Tests of whole reports: what they say, that they are safe, and that a browser draws them.

mod browser;
mod page;
