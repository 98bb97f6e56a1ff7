//! The collections that a pipeline accesses, and how: the privileges needed before it may run.
//!
//! The accesses are computed from the parsed stages, never from the document of the request. The
//! match below names every stage, so that a new stage does not compile until its accesses are
//! listed.

use bson::{Bson, Document};

use super::Pipeline;
use crate::stage::{Stage, Statistics, SubPipeline, Target};
use crate::{Namespace, Result};

/// One use of a collection, or of the server, by a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// Documents of a collection or view are read.
    Read(Namespace),
    /// A collection is replaced (`$out`).
    Replace(Namespace),
    /// Documents of a collection are inserted and updated (`$merge`).
    Merge(Namespace),
    /// The server reports on itself or on a collection.
    Report(Namespace, Statistics),
    /// Changes are read (`$changeStream`), of a collection or a database, or of more.
    Follow(Namespace, Followed),
}

/// What a change stream follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// The collection, or the database of a pipeline without one.
    Here,
    /// All databases but those of the server itself (`allChangesForCluster`).
    AllDatabases,
    /// Also collections of the system (`showSystemEvents`).
    System,
}

impl Followed {
    /// What the argument of the stage names. A value that is no boolean is refused later; until
    /// then it counts as true.
    fn of(options: &Document) -> Followed {
        let is_on = |name| !matches!(options.get(name), None | Some(Bson::Boolean(false)));
        match (is_on("showSystemEvents"), is_on("allChangesForCluster")) {
            (true, _) => Followed::System,
            (false, true) => Followed::AllDatabases,
            (false, false) => Followed::Here,
        }
    }
}

impl Pipeline {
    /// The collections that the pipeline accesses when it runs on `ns`, including those of
    /// pipelines in its stages, but not those of views.
    ///
    /// # Errors
    /// `InvalidNamespace` for a stage with an invalid collection name.
    pub fn accesses(&self, ns: &Namespace) -> Result<Vec<Access>> {
        let reads = match self.stages.first() {
            Some(Stage::Statistics(_)) => false,
            Some(Stage::Documents(_)) => !ns.is_collectionless(),
            _ => true,
        };
        let mut found = Vec::new();
        if reads {
            found.push(Access::Read(ns.clone()));
        }
        of_stages(&self.stages, ns, &mut found)?;
        Ok(found)
    }
}

/// Recursion is bounded by the depth of the parsed pipeline, and so by the depth of BSON.
fn of_stages(stages: &[Stage], ns: &Namespace, found: &mut Vec<Access>) -> Result<()> {
    stages
        .iter()
        .try_for_each(|stage| of_stage(stage, ns, found))
}

fn of_stage(stage: &Stage, ns: &Namespace, found: &mut Vec<Access>) -> Result<()> {
    match stage {
        Stage::Match(_)
        | Stage::Sort(..)
        | Stage::Limit(_)
        | Stage::Skip(_)
        | Stage::Transform(_)
        | Stage::Group(_)
        | Stage::Count(_)
        | Stage::Unwind(_)
        | Stage::BucketAuto(_)
        | Stage::Sample(_)
        | Stage::Window(_)
        | Stage::Documents(_) => {}
        Stage::Lookup(lookup) => {
            of_other(lookup.from.as_ref(), lookup.pipeline.as_ref(), ns, found)?;
        }
        Stage::GraphLookup(lookup) => of_other(Some(&lookup.from), None, ns, found)?,
        Stage::UnionWith(union) => {
            of_other(union.coll.as_ref(), Some(&union.pipeline), ns, found)?;
        }
        Stage::Facet(facet) => {
            for (_, pipeline) in &facet.facets {
                of_stages(pipeline.stages(), ns, found)?;
            }
        }
        Stage::Out(out) => found.push(Access::Replace(out.target.resolve(&ns.db)?)),
        Stage::Merge(merge) => found.push(Access::Merge(merge.into.resolve(&ns.db)?)),
        Stage::Statistics(statistics) => {
            found.push(Access::Report(ns.clone(), statistics.clone()));
        }
        Stage::ChangeStream(options) => {
            found.push(Access::Follow(ns.clone(), Followed::of(options)));
        }
    }
    Ok(())
}

/// Adds a read of another collection and the accesses of the pipeline that runs on it.
fn of_other(
    target: Option<&Target>,
    pipeline: Option<&SubPipeline>,
    ns: &Namespace,
    found: &mut Vec<Access>,
) -> Result<()> {
    let other = match target {
        None => Namespace::collectionless(ns.db.as_str()),
        Some(target) => {
            let other = target.resolve(&ns.db)?;
            found.push(Access::Read(other.clone()));
            other
        }
    };
    match pipeline {
        None => Ok(()),
        Some(pipeline) => of_stages(pipeline.parsed().stages(), &other, found),
    }
}

#[cfg(test)]
mod tests {
    use bson::{Bson, bson, doc};

    use super::*;
    use crate::settings::Settings;

    fn ns(full: &str) -> Namespace {
        Namespace::parse(full).unwrap()
    }

    fn accesses(stages: Bson) -> Vec<Access> {
        let settings = Settings::default().within("d");
        let pipeline = Pipeline::parse(stages.as_array().unwrap(), &settings).unwrap();
        pipeline.accesses(&ns("d.c")).unwrap()
    }

    #[test]
    fn a_pipeline_uses_what_its_stages_name_at_any_depth() {
        let read = |full: &str| Access::Read(ns(full));
        assert_eq!(accesses(bson!([{"$match": {"a": 1}}])), [read("d.c")]);
        let lookup = bson!([
            {"$lookup": {
                "from": {"db": "e", "coll": "x"},
                "as": "a",
                "let": {"v": 1},
                "pipeline": [
                    {"$match": {"$expr": {"$eq": ["$$v", 1]}}},
                    {"$unionWith": {"coll": "y", "pipeline": [{"$facet": {"f": [
                        {"$graphLookup": {
                            "from": "z", "as": "b", "startWith": "$a", "connectFromField": "a",
                            "connectToField": "b",
                        }},
                    ]}}]}},
                ],
            }},
            {"$out": "o"},
        ]);
        let expected = [
            read("d.c"),
            read("e.x"),
            read("e.y"),
            read("e.z"),
            Access::Replace(ns("d.o")),
        ];
        assert_eq!(accesses(lookup), expected);
        let merge = bson!([{"$merge": {"into": {"db": "e", "coll": "m"}}}]);
        assert_eq!(accesses(merge), [read("d.c"), Access::Merge(ns("e.m"))]);
        let report = accesses(bson!([{"$indexStats": {}}]));
        assert_eq!(report, [Access::Report(ns("d.c"), Statistics::IndexStats)]);
        let other = accesses(bson!([{"$lookup": {"from": "x", "as": "a", "pipeline": [
            {"$collStats": {"count": {}}},
        ]}}]));
        let stats = Statistics::CollStats(doc! {"count": {}});
        let expected = [read("d.c"), read("d.x"), Access::Report(ns("d.x"), stats)];
        assert_eq!(other, expected);
    }
}
