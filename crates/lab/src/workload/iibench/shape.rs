//! The keys of the three secondary indexes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The generation of the benchmark that defines the index keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// 2014: the keys are (price, customer), (register, price, customer), (price, date, customer),
    /// with price = (U[0,1) * 500 + customer) / 100 as in the published program. 20, 24 and 28
    /// bytes.
    Classic,
    /// The current Python program: the keys are (product, customer, price), (register, customer,
    /// price), (price, date, customer). The price is an integer below 500, so the third index grows
    /// at only 500 positions. 20, 20 and 24 bytes.
    Current,
    /// Each of the three keys begins with a uniformly random 64-bit number of its own: no locality
    /// in any index. 20, 24 and 28 bytes.
    Uniform,
    /// As uniform, and the primary key is a hash of the row's number, so that rows too are inserted
    /// and deleted all over their tree. Only experiments select this shape, not `--shape`.
    Hashed,
}

impl Shape {
    /// The shapes that `--shape` accepts.
    pub const ALL: [Shape; 3] = [Shape::Classic, Shape::Current, Shape::Uniform];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Shape::Classic => "classic",
            Shape::Current => "current",
            Shape::Uniform => "uniform",
            Shape::Hashed => "hashed",
        }
    }

    /// Sum of the bytes of the three keys, each with the primary key at its end.
    #[must_use]
    pub fn key_bytes(self) -> [usize; 3] {
        match self {
            Shape::Classic | Shape::Uniform | Shape::Hashed => [20, 24, 28],
            Shape::Current => [20, 20, 24],
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        Shape::ALL
            .into_iter()
            .find(|s| s.name() == text)
            .ok_or_else(|| format!("no index shape {text:?}; use classic, current or uniform"))
    }
}
