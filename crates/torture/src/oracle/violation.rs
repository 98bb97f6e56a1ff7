//! What was broken, in words a person can follow.

use std::fmt;

/// The law that was broken; see the crate's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Law {
    /// L1: what was promised to survive is there.
    Durable,
    /// L2: nothing is missing before something that is there.
    Prefix,
    /// L3: whole or not at all.
    Atomic,
    /// L4: one order explains the state.
    Order,
    /// L5: the bytes, and the engine's opinion of itself.
    Bytes,
    /// The engine answers wrongly, fails, hangs, or does not end in order.
    Behaviour,
}

impl Law {
    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Law::Durable => "L1 durable",
            Law::Prefix => "L2 prefix",
            Law::Atomic => "L3 atomic",
            Law::Order => "L4 order",
            Law::Bytes => "L5 bytes",
            Law::Behaviour => "behaviour",
        }
    }
}

/// A broken law and the counterexample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub law: Law,
    /// What was found, what was expected, and what happened to it; several lines.
    pub story: String,
}

impl Violation {
    /// `law` is broken, as `story` tells.
    #[must_use]
    pub fn new(law: Law, story: impl Into<String>) -> Violation {
        Violation {
            law,
            story: story.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken: {}", self.law.name(), self.story)
    }
}
