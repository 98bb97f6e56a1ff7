//! The planning data of a collection: the indexes that plans can choose from, cached while they are
//! valid, and the plans chosen.
//!
//! P1: a space is rebuilt when an index has recorded new arrays or its first truncated key; any
//!     other change of a collection's definition creates a new collection state.

use std::collections::HashMap;
use std::sync::Arc;

use bson::Document;
use query::Result;
use query::collation::Collator;
use stdx::sync::Mutex;

use super::index::{IndexView, collator};
use crate::index::Index;
use crate::key::Collate;

/// Maximum number of query shapes whose plans are cached.
const SHAPES_MAX: usize = 1000;
/// Number of uses after which a plan is chosen again, in case the data have changed.
const USES_MAX: u32 = 1000;

/// The parts of a collection that plans depend on.
pub(crate) struct Space {
    /// The indexes that are built.
    pub(crate) indexes: Vec<Arc<IndexView>>,
    /// The records as an index on `_id`, in clustered collections.
    pub(crate) clustered: Option<Arc<IndexView>>,
    /// Whether the records are the entries of the oplog, with their times as keys.
    pub(crate) oplog: bool,
    /// The collation of `_id` and the collection's default.
    pub(crate) id_collation: Option<Document>,
    /// The default collator of queries.
    pub(crate) collator: Option<Arc<Collator>>,
}

/// The parts of a collection's definition that plans depend on.
pub(crate) struct Definition<'c> {
    /// All indexes, those being built included.
    pub(crate) indexes: &'c [Arc<Index>],
    /// The name of the clustered index, whose entries are the records.
    pub(crate) clustered: Option<&'c str>,
    /// Whether it is the oplog.
    pub(crate) oplog: bool,
    /// The default collation of operations, and the collator that encodes strings for it.
    pub(crate) collation: Option<&'c Document>,
    pub(crate) collate: Option<&'c Arc<dyn Collate>>,
}

/// A cached plan choice, and the number of its uses.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The description of the plan.
    pub(crate) plan: String,
    /// Units of work of the trial.
    pub(crate) works: u64,
    uses: u32,
}

#[derive(Default)]
struct State {
    /// The multikey bits of each index, including that for truncated keys, when the space was
    /// built.
    built: Option<(Vec<u32>, Arc<Space>)>,
    choices: HashMap<String, Choice>,
}

/// The planning cache of a collection.
#[derive(Default)]
pub(crate) struct PlanCache {
    state: Mutex<State>,
}

impl PlanCache {
    /// The space of the collection with this definition, which owns this cache.
    ///
    /// # Errors
    /// A definition that cannot be read.
    pub(crate) fn space(&self, definition: &Definition<'_>) -> Result<Arc<Space>> {
        let mut state = self.state.lock();
        if let Some((built, space)) = &state.built
            && built.iter().copied().eq(signature(definition))
        {
            return Ok(Arc::clone(space));
        }
        // The signature comes first: a bit recorded meanwhile makes the next caller build again.
        let signature = signature(definition).collect();
        let space = Arc::new(build(definition)?);
        state.built = Some((signature, Arc::clone(&space)));
        state.choices.clear();
        Ok(space)
    }

    /// The cached choice for a shape.
    pub(crate) fn choice(&self, shape: &str) -> Option<String> {
        let mut state = self.state.lock();
        let choice = state.choices.get_mut(shape)?;
        choice.uses += 1;
        if USES_MAX < choice.uses {
            state.choices.remove(shape);
            return None;
        }
        Some(choice.plan.clone())
    }

    /// Cache a choice.
    pub(crate) fn remember(&self, shape: String, plan: String, works: u64) {
        let mut state = self.state.lock();
        if SHAPES_MAX <= state.choices.len() {
            state.choices.clear();
        }
        state.choices.insert(
            shape,
            Choice {
                plan,
                works,
                uses: 0,
            },
        );
    }

    /// Remove all choices; returns their number.
    pub(crate) fn clear(&self) -> usize {
        let mut state = self.state.lock();
        let count = state.choices.len();
        state.choices.clear();
        count
    }

    /// The cached choices: shape, plan, works.
    pub(crate) fn list(&self) -> Vec<(String, Choice)> {
        let state = self.state.lock();
        state
            .choices
            .iter()
            .map(|(shape, choice)| (shape.clone(), choice.clone()))
            .collect()
    }
}

/// The state of the indexes that a space depends on (P1).
fn signature<'d>(definition: &Definition<'d>) -> impl Iterator<Item = u32> + use<'d> {
    definition.indexes.iter().flat_map(|index| {
        let states = [index.is_ready(), index.may_be_cut()].map(u32::from);
        let parts = (0..index.fields().len()).map(|field| index.multikey_parts(field));
        states.into_iter().chain(parts)
    })
}

fn build(definition: &Definition<'_>) -> Result<Space> {
    let mut indexes = Vec::new();
    for (position, index) in definition.indexes.iter().enumerate() {
        if index.is_ready() {
            indexes.push(Arc::new(IndexView::of(position, index)?));
        }
    }
    let id_collation = definition.collation.cloned();
    let clustered = match definition.clustered {
        Some(name) => {
            let collate = definition.collate.cloned();
            let records = IndexView::of_records(name, id_collation.clone(), collate)?;
            Some(Arc::new(records))
        }
        None => None,
    };
    Ok(Space {
        indexes,
        clustered,
        oplog: definition.oplog,
        collator: id_collation.as_ref().map(collator).transpose()?.flatten(),
        id_collation,
    })
}
