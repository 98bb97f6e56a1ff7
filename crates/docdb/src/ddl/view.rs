//! Validation of view definitions.
//!
//! A chain of views ends in a collection, or in a name that does not exist, after at most
//! [`VIEW_DEPTH`] steps. A definition is checked and stored under the lock of changes. All views of
//! a chain, and the views that they join, have the same collation: a pipeline compares strings with
//! one collation.

use query::pipeline::Access;
use query::{Code, Error, Namespace, Result};

use crate::catalog::Named;
use crate::collection::CollectionOptions;
use crate::limits::VIEW_DEPTH;
use crate::store::Store;

impl Store {
    /// Check that `ns` may be defined as the view of `options`; succeeds if `options` are not a
    /// view's.
    ///
    /// # Errors
    /// `GraphContainsCycle`, `ViewDepthLimitExceeded`; `InvalidNamespace` for reports on the
    /// server; `OptionNotSupportedOnView` for pipelines that write or follow changes, and for views
    /// with another collation; errors of the pipeline.
    pub(crate) fn check_view(&self, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
        let Some(view) = &options.view else {
            return Ok(());
        };
        let uses = view.uses(&ns.db)?;
        if uses.writes {
            return Err(Error::new(
                Code::OPTION_NOT_SUPPORTED_ON_VIEW,
                "$out and $merge cannot be used in the pipeline of a view",
            ));
        }
        let follows = |access: &Access| matches!(access, Access::Follow(..));
        if uses.accesses.iter().any(follows) {
            return Err(Error::new(
                Code::OPTION_NOT_SUPPORTED_ON_VIEW,
                "$changeStream cannot be used in the pipeline of a view",
            ));
        }
        for access in &uses.accesses {
            if let Access::Report(at, statistics) = access {
                statistics.check_place(at)?;
            }
        }
        self.check_collations(ns, &uses.accesses, options)?;
        let catalog = self.catalog();
        let mut on = Namespace::new(ns.db.as_str(), view.on())?;
        for _ in 0..VIEW_DEPTH {
            if on == *ns {
                return Err(Error::new(
                    Code::GRAPH_CONTAINS_CYCLE,
                    format!("View cycle detected: {ns} would be a view of itself"),
                ));
            }
            let Some(Named::View(options)) = catalog.get(&on) else {
                return Ok(());
            };
            let Some(next) = &options.view else {
                return Ok(());
            };
            on = Namespace::new(ns.db.as_str(), next.on())?;
        }
        Err(too_deep())
    }
}

impl Store {
    /// Check that the views that a view uses, and those that use it, have its collation.
    fn check_collations(
        &self,
        ns: &Namespace,
        accesses: &[Access],
        options: &CollectionOptions,
    ) -> Result<()> {
        let catalog = self.catalog();
        let conflict = |text: &str, other: &Namespace| {
            let message = format!("View {ns} {text} {other}");
            Err(Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, message))
        };
        for access in accesses {
            if let Access::Read(other) = access
                && let Some(Named::View(of)) = catalog.get(other)
                && other != ns
                && of.collation != options.collation
            {
                return conflict("has conflicting collation with view", other);
            }
        }
        for (other, named) in catalog.in_database(&ns.db) {
            if let Named::View(of) = named
                && other != ns
                && of.collation != options.collation
                && let Some(user) = &of.view
                && let Ok(used) = user.accesses(&ns.db)
                && used.contains(&Access::Read(ns.clone()))
            {
                let text = "has a collation that does not match the collation of view";
                return conflict(text, other);
            }
        }
        Ok(())
    }
}

/// The error for a chain of views that is too long.
pub(crate) fn too_deep() -> Error {
    Error::new(
        Code::VIEW_DEPTH_LIMIT_EXCEEDED,
        format!("View depth limit exceeded; maximum depth is {VIEW_DEPTH}"),
    )
}
