//! The catalog's documents before a change, for undo records (see `undo`).

use query::{Namespace, Result};

use super::entry::Command;
use super::noted::Noted;
use crate::catalog::{Stored, StoredIndex};

/// The catalog's documents before a change, by their names; empty if they are not kept.
pub(crate) type Formers = Vec<(Namespace, Option<Stored>)>;

/// The same as they stand in an undo record.
pub(crate) type Kept = Vec<(String, Option<Vec<u8>>)>;

/// The catalog's documents before each of the commands of a change.
///
/// # Errors
/// `InvalidBSON`; a command that cannot be parsed.
pub(crate) fn before_each(
    noted: &Noted,
    formers: &[(Namespace, Option<Stored>)],
) -> Result<Vec<Kept>> {
    let mut states: Vec<(String, Option<Stored>)> = formers
        .iter()
        .map(|(ns, stored)| (ns.to_string(), stored.clone()))
        .collect();
    // What is not ready is built again, or not at all.
    for (_, stored) in &mut states {
        if let Some(stored) = stored {
            stored.indexes.retain(|index| index.ready);
        }
    }
    let mut all = Vec::new();
    for command in noted.commands() {
        let bytes = |stored: &Option<Stored>| stored.as_ref().map(Stored::to_bytes).transpose();
        let kept = states
            .iter()
            .map(|(ns, stored)| Ok((ns.clone(), bytes(stored)?)));
        all.push(kept.collect::<Result<Kept>>()?);
        if let Command::DropIndexes { index, .. } = Command::parse(command)? {
            for stored in states.iter_mut().filter_map(|(_, stored)| stored.as_mut()) {
                stored.indexes.retain(|there| there.spec.name != index);
            }
        }
    }
    Ok(all)
}

/// The catalog's documents before each of the commands that create a collection with its indexes.
///
/// # Errors
/// `InvalidBSON`.
pub(crate) fn before_created(made: &Stored) -> Result<Vec<Kept>> {
    let ns = made.ns.to_string();
    let is_id = |index: &StoredIndex| index.spec.is_id();
    let mut there = made.clone();
    there.indexes.retain(is_id);
    let mut all = vec![vec![(ns.clone(), None)]];
    for index in made.indexes.iter().filter(|index| !is_id(index)) {
        all.push(vec![(ns.clone(), Some(there.to_bytes()?))]);
        there.indexes.push(index.clone());
    }
    Ok(all)
}
