//! The definition of a view.
//!
//! - H1. A view belongs to one database: the one for which its uses are first needed.

use std::fmt;
use std::sync::Arc;

use bson::{RawArray, RawArrayBuf};
use query::pipeline::{Access, Pipeline};
use query::settings::Settings;
use query::{Namespace, Result};
use stdx::sync::OnceLock;

/// A view. Its pipeline is parsed once, when its uses are first needed: they are the same for
/// authorization, for the checks of the definition and for later definitions.
#[derive(Clone)]
pub struct View {
    on: String,
    pipeline: RawArrayBuf,
    uses: Arc<OnceLock<Uses>>,
}

/// What the pipeline of a view does.
pub(crate) struct Uses {
    /// The view's.
    database: String,
    /// Whether it writes.
    pub(crate) writes: bool,
    /// The collections that it accesses, starting with the one that the view is defined on.
    pub(crate) accesses: Vec<Access>,
}

impl View {
    /// A view of the collection or view `on` of its database through the stages of `pipeline`.
    #[must_use]
    pub fn new(on: impl Into<String>, pipeline: RawArrayBuf) -> View {
        View {
            on: on.into(),
            pipeline,
            uses: Arc::default(),
        }
    }

    /// The collection or view of the same database that the view reads.
    #[must_use]
    pub fn on(&self) -> &str {
        &self.on
    }

    /// The stages.
    #[must_use]
    pub fn pipeline(&self) -> &RawArray {
        &self.pipeline
    }

    /// The collections that the view accesses, starting with the one that it is defined on;
    /// `database` is the view's.
    ///
    /// # Errors
    /// Errors of the pipeline; `InvalidNamespace` for an invalid collection name.
    pub fn accesses(&self, database: &str) -> Result<&[Access]> {
        Ok(&self.uses(database)?.accesses)
    }

    /// What the pipeline does; `database` is the view's.
    ///
    /// # Errors
    /// As [`View::accesses`].
    pub(crate) fn uses(&self, database: &str) -> Result<&Uses> {
        let uses = match self.uses.get() {
            Some(uses) => uses,
            None => {
                let uses = self.parse(database)?;
                self.uses.get_or_init(|| uses)
            }
        };
        assert_eq!(
            uses.database, database,
            "H1: a view belongs to one database"
        );
        Ok(uses)
    }

    fn parse(&self, database: &str) -> Result<Uses> {
        let on = Namespace::new(database, self.on.as_str())?;
        let settings = Settings::default().within(database);
        let pipeline = Pipeline::parse_raw(&self.pipeline, &settings)?;
        let mut accesses = vec![Access::Read(on.clone())];
        accesses.extend(pipeline.accesses(&on)?);
        Ok(Uses {
            database: database.to_owned(),
            writes: pipeline.writes(),
            accesses,
        })
    }
}

impl PartialEq for View {
    fn eq(&self, other: &View) -> bool {
        (&self.on, &self.pipeline) == (&other.on, &other.pipeline)
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("View");
        shown
            .field("on", &self.on)
            .field("pipeline", &self.pipeline);
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;
    use query::Code;

    use super::*;
    use crate::catalog::Named;
    use crate::collection::CollectionOptions;
    use crate::find::tests::Fixture;

    fn view(stages: impl IntoIterator<Item = bson::RawDocumentBuf>) -> View {
        View::new("c", stages.into_iter().collect())
    }

    #[test]
    fn what_authorization_parsed_is_what_the_catalog_keeps() {
        let site = Fixture::new();
        let ns = Namespace::new("db", "v").unwrap();
        let options = CollectionOptions {
            view: Some(view([rawdoc! { "$match": { "a": 1 } }])),
            ..CollectionOptions::default()
        };
        let authorized = options.view.clone().unwrap();
        let source = Access::Read(Namespace::new("db", "c").unwrap());
        let accesses = authorized.accesses("db").unwrap();
        assert!(!accesses.is_empty() && accesses.iter().all(|access| *access == source));
        site.store.create(&site.op, &ns, options).unwrap();
        let Some(Named::View(found)) = site.store.lookup(&ns) else {
            panic!("it is a view");
        };
        let kept = found.view.as_ref().unwrap().uses("db").unwrap();
        assert!(std::ptr::eq(kept, authorized.uses("db").unwrap()));
    }

    #[test]
    #[should_panic(expected = "H1: a view belongs to one database")]
    fn a_view_of_another_database_is_another_view() {
        let view = view([]);
        view.accesses("db").unwrap();
        let _accesses = view.accesses("other");
    }

    #[test]
    fn errors_of_a_pipeline_are_found_at_every_use() {
        let wrong = view([rawdoc! { "$oops": 1 }]);
        for _ in 0..2 {
            let error = wrong.accesses("db").unwrap_err();
            assert_eq!(error.code, Code(40_324));
        }
        assert_ne!(wrong, view([]));
        assert_eq!(view([]), view([]));
    }
}
