//! The lowest hole of at least a size, in ten steps.
//!
//! Holes are sorted into classes by length: one class for every number of units below [`CLASSES`],
//! and the last for all that are at least that long. A complete binary tree over the classes keeps
//! the lowest offset of each; a query takes the least of a suffix of its leaves. A run asks for at
//! most 4 MiB = 1024 units at a time, so for what runs ask the classes are exact, and "first fit at
//! the lowest address" costs ten steps whatever the number of holes.
//!
//! I1: an inner node is the lesser of its two children.

/// Classes of holes: of 1, 2, .. 1023 units, and of 1024 (4 MiB) and more.
pub(super) const CLASSES: usize = 1024;

/// No hole of that class.
const NONE: u64 = u64::MAX;

/// The lowest offset of every class; see the module documentation.
#[derive(Debug)]
pub(super) struct Lowest {
    /// Node 1 is the root, node `n` has the children `2n` and `2n + 1`, node 0 is not used.
    nodes: Vec<u64>,
}

impl Lowest {
    /// No holes.
    pub(super) fn new() -> Lowest {
        Lowest {
            nodes: vec![NONE; 2 * CLASSES],
        }
    }

    /// The lowest hole of `class` is now at `offset`; `None`: the class is empty.
    pub(super) fn set(&mut self, class: usize, offset: Option<u64>) {
        assert!(class < CLASSES, "class {class} of {CLASSES}");
        let mut node = CLASSES + class;
        let mut value = offset.unwrap_or(NONE);
        loop {
            if let Some(place) = self.nodes.get_mut(node) {
                *place = value;
            }
            if node == 1 {
                return;
            }
            value = value.min(self.node(node ^ 1));
            node /= 2;
        }
    }

    /// The lowest offset of a hole of `class` or a longer one.
    pub(super) fn from(&self, class: usize) -> Option<u64> {
        assert!(class < CLASSES, "class {class} of {CLASSES}");
        let (mut left, mut right) = (CLASSES + class, 2 * CLASSES);
        let mut least = NONE;
        while left < right {
            if left % 2 == 1 {
                least = least.min(self.node(left));
                left += 1;
            }
            left /= 2;
            right /= 2;
        }
        (least != NONE).then_some(least)
    }

    fn node(&self, index: usize) -> u64 {
        self.nodes.get(index).copied().unwrap_or(NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_every_suffix_is_found() {
        // I1.
        let mut lowest = Lowest::new();
        assert_eq!(lowest.from(0), None);
        lowest.set(5, Some(500));
        lowest.set(9, Some(400));
        lowest.set(CLASSES - 1, Some(900));
        for class in 0..CLASSES {
            let expected = if class <= 9 { 400 } else { 900 };
            assert_eq!(lowest.from(class), Some(expected), "class {class}");
        }
        lowest.set(9, None);
        lowest.set(5, Some(100));
        assert_eq!(lowest.from(5), Some(100));
        assert_eq!(lowest.from(6), Some(900));
    }
}
