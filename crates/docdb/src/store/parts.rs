//! State of the modules above: it lives as long as the store, which does not interpret it.

use std::any::Any;

use super::Store;

/// The state of modules above: one value of each type.
#[derive(Default)]
pub(crate) struct Parts(Vec<Box<dyn Any + Send + Sync>>);

impl Parts {
    /// Add the state of one more module.
    #[must_use]
    pub(crate) fn with<P: Any + Send + Sync>(mut self, part: P) -> Parts {
        self.0.push(Box::new(part));
        self
    }
}

impl Store {
    /// The state of type `P`.
    pub(crate) fn part<P: Any>(&self) -> &P {
        let mut parts = self.parts.0.iter();
        let found = parts.find_map(|part| part.downcast_ref());
        found.expect("`Store::open` gives every store all parts")
    }
}
