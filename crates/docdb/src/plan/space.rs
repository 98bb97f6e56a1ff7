//! What plans of a collection can choose from, kept as long as it stays true, and what was chosen.
//!
//! P1: a space is made anew when an index has met arrays at new places, or its first key that is
//!     cut; everything else about a collection's definition changes with the collection itself.

use std::collections::HashMap;
use std::sync::Arc;

use bson::Document;
use query::Result;
use query::collation::Collator;
use stdx::sync::Mutex;

use super::index::{IndexView, collator};
use crate::index::Index;
use crate::key::Collate;

/// Shapes of queries whose plans are remembered.
const SHAPES_MAX: usize = 1000;
/// Uses after which a plan is chosen anew, in case the data have changed.
const USES_MAX: u32 = 1000;

/// A collection, as far as plans depend on it.
pub(crate) struct Space {
    /// The indexes that are built.
    pub(crate) indexes: Vec<Arc<IndexView>>,
    /// The records as an index on `_id`, in clustered collections.
    pub(crate) clustered: Option<Arc<IndexView>>,
    /// The collation of `_id` and the collection's default.
    pub(crate) id_collation: Option<Document>,
    /// The default collator of queries.
    pub(crate) collator: Option<Arc<Collator>>,
}

/// What of a collection's definition plans depend on.
pub(crate) struct Definition<'c> {
    /// All indexes, those being built included.
    pub(crate) indexes: &'c [Arc<Index>],
    /// The name of the index on `_id` that the records of a clustered collection are.
    pub(crate) clustered: Option<&'c str>,
    /// The default collation of operations, and what encodes strings by it.
    pub(crate) collation: Option<&'c Document>,
    pub(crate) collate: Option<&'c Arc<dyn Collate>>,
}

/// What a plan was chosen for, and how often it was used since.
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
    /// The arrays of each index, and whether keys were cut, when the space was made.
    built: Option<(Vec<u32>, Arc<Space>)>,
    choices: HashMap<String, Choice>,
}

/// What a collection remembers for planning.
#[derive(Default)]
pub(crate) struct PlanCache {
    state: Mutex<State>,
}

impl PlanCache {
    /// The space of the collection of this definition, whose cache this is.
    ///
    /// # Errors
    /// A definition that cannot be read.
    pub(crate) fn space(&self, definition: &Definition<'_>) -> Result<Arc<Space>> {
        let mut signature = Vec::with_capacity(definition.indexes.len() * 2);
        for index in definition.indexes {
            signature.push(u32::from(index.is_ready()));
            signature.push(u32::from(index.may_be_cut()));
            signature.extend((0..index.fields().len()).map(|field| index.multikey_parts(field)));
        }
        let mut state = self.state.lock();
        if let Some((built, space)) = &state.built
            && *built == signature
        {
            return Ok(Arc::clone(space));
        }
        let space = Arc::new(build(definition)?);
        state.built = Some((signature, Arc::clone(&space)));
        state.choices.clear();
        Ok(space)
    }

    /// The choice for a shape, if one is remembered.
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

    /// Remember a choice.
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

    /// Forget all choices; says how many there were.
    pub(crate) fn clear(&self) -> usize {
        let mut state = self.state.lock();
        let count = state.choices.len();
        state.choices.clear();
        count
    }

    /// What is remembered: shape, plan, works.
    pub(crate) fn list(&self) -> Vec<(String, Choice)> {
        let state = self.state.lock();
        state
            .choices
            .iter()
            .map(|(shape, choice)| (shape.clone(), choice.clone()))
            .collect()
    }
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
        collator: id_collation.as_ref().map(collator).transpose()?.flatten(),
        id_collation,
    })
}
