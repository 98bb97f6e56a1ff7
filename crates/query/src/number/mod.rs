//! Numbers: the four numeric types of BSON, their exact order, and arithmetic with MongoDB's rules
//! of promotion.
//!
//! `decimal` reads and writes the 16 bytes of a decimal; `compare` orders numbers by exact value;
//! `arithmetic`, `round`, `function` and `trigonometry` (with the digits of `pi`) compute;
//! `convert` and `text` convert between types.

mod arithmetic;
mod compare;
mod convert;
pub mod decimal;
mod function;
mod kind;
mod pi;
mod round;
mod text;
pub(crate) mod trigonometry;

pub use compare::{Canonical, canonical, compare};
pub use kind::Number;
pub use text::{DecimalError, double_to_string, parse_decimal, parse_double, parse_integer};

#[cfg(test)]
mod tests;
