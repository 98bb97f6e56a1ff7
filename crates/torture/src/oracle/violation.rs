//! Violations: the broken law, with an explanation.

use std::fmt;

/// The law that was broken; see the crate's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Law {
    /// L1: promised commits exist.
    Durable,
    /// L2: no commit is missing before an existing one.
    Prefix,
    /// L3: a commit exists as a whole or not at all.
    Atomic,
    /// L4: one order explains the state.
    Order,
    /// L5: all bytes are as a writer wrote them, and the engine's own check passes.
    Bytes,
    /// The engine returns wrong results, fails, hangs, or does not end in order.
    Behaviour,
}

impl Law {
    /// The name of the law.
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

/// A broken law, with a counterexample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The broken law.
    pub law: Law,
    /// The found and the expected state, and the history of the key; several lines.
    pub story: String,
}

impl Violation {
    /// A violation of `law`, explained by `story`.
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
