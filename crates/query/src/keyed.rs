//! Values by name, in the order in which they were added.
//!
//! A client chooses the names and their number: a walk over all of them for each of them would take
//! the square of their number.

use std::collections::HashMap;

/// Up to this number of names, a name is found by a walk; above it, in a table.
const FEW: usize = 16;

/// Values by name, each once.
#[derive(Debug, Clone)]
pub(crate) struct Keyed<T> {
    list: Vec<(Box<str>, T)>,
    /// The places in the list, if there are more than [`FEW`].
    places: HashMap<Box<str>, usize>,
}

impl<T> Default for Keyed<T> {
    fn default() -> Keyed<T> {
        Keyed {
            list: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<T> Keyed<T> {
    fn place(&self, name: &str) -> Option<usize> {
        if self.list.len() <= FEW {
            return self.list.iter().position(|(known, _)| **known == *name);
        }
        self.places.get(name).copied()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        let (_, value) = self.list.get(self.place(name)?)?;
        Some(value)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        let place = self.place(name)?;
        let (_, value) = self.list.get_mut(place)?;
        Some(value)
    }

    /// Sets the value of `name`, which is added at the end if it is new.
    pub(crate) fn set(&mut self, name: &str, value: T) {
        match self.get_mut(name) {
            Some(held) => *held = value,
            None => {
                self.list.push((name.into(), value));
                self.index();
            }
        }
    }

    /// Adds the last name to the table, or all when they become too many.
    fn index(&mut self) {
        let from = match self.list.len() {
            count if count <= FEW => return,
            count if count == FEW + 1 => 0,
            count => count - 1,
        };
        for (place, (name, _)) in self.list.iter().enumerate().skip(from) {
            self.places.insert(name.clone(), place);
        }
    }

    /// Puts a new name before all others.
    pub(crate) fn prepend(&mut self, name: &str, value: T) {
        self.list.insert(0, (name.into(), value));
        self.index_again();
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.list.retain(|(known, _)| **known != *name);
        self.index_again();
    }

    fn index_again(&mut self) {
        self.places.clear();
        if FEW < self.list.len() {
            let names = self.list.iter().enumerate();
            self.places = names
                .map(|(place, (name, _))| (name.clone(), place))
                .collect();
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.list.iter().map(|(name, value)| (&**name, value))
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_names_are_found_in_their_order() {
        for count in [0, 1, FEW, FEW + 1, 1_000] {
            let mut keyed = Keyed::default();
            for n in 0..count {
                keyed.set(&n.to_string(), n);
            }
            for n in 0..count {
                assert_eq!(keyed.get(&n.to_string()), Some(&n));
            }
            assert_eq!(keyed.get("none"), None);
            keyed.prepend("first", 7);
            keyed.set("0", 9);
            let names: Vec<&str> = keyed.iter().map(|(name, _)| name).collect();
            assert_eq!(names.first(), Some(&"first"));
            assert_eq!(names.len(), keyed.len());
            assert_eq!(keyed.get("0"), Some(&9));
            keyed.remove("first");
            assert_eq!(keyed.get("first"), None);
            assert_eq!(keyed.get("0"), Some(&9));
            *keyed.get_mut("0").unwrap() = 1;
            assert_eq!(keyed.get("0"), Some(&1));
        }
    }
}
