//! The request of an `aggregate` command, and its pipeline when it is parsed before the command
//! runs.

use bson::{Bson, RawArrayBuf, RawDocumentBuf};
use query::expr::refuse_failing;
use query::pipeline::{Access, Pipeline};
use query::settings::Settings;
use query::{Code, Error, Namespace, Result};

use super::host::settings_of;
use crate::store::Store;
use crate::txn::Op;
use crate::variables::Let;

/// The arguments of `aggregate`, with MongoDB's names and defaults.
#[derive(Debug, Clone)]
pub struct AggregateRequest {
    /// The stages, in bytes: a filter may name a field twice, which a tree cannot.
    pub pipeline: RawArrayBuf,
    /// Number of documents in the first batch (default 101).
    pub batch_size: Option<u64>,
    /// Whether stages may use temporary files (default: true).
    pub allow_disk_use: bool,
    /// An index by name, by key pattern, or `{$natural: 1}`.
    pub hint: Option<Bson>,
    /// Collation of string comparisons (default: that of the collection).
    pub collation: Option<RawDocumentBuf>,
    /// Variables for expressions (`let`).
    pub variables: Option<Let>,
    /// Whether `$out` and `$merge` write documents that a validator rejects (default: false).
    pub bypass_validation: bool,
    /// The parsed pipeline, after [`Store::parse_aggregate`].
    pub parsed: Option<Parsed>,
}

/// A pipeline that was parsed before its command runs, to compute the privileges that it needs.
#[derive(Debug, Clone)]
pub struct Parsed {
    accesses: Vec<Access>,
    stages: Option<Pipeline>,
}

impl Parsed {
    /// The collections that the pipeline accesses. Those accessed by the pipelines of views are not
    /// included.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The accesses only: the pipeline is parsed again when it runs, and compared with them.
    #[must_use]
    pub fn without_stages(self) -> Parsed {
        Parsed {
            stages: None,
            ..self
        }
    }
}

impl Store {
    /// Parse the pipeline of a request before it runs, so that what is authorized is what runs. A
    /// pipeline with a call of constants that fails is parsed again when it runs: its error belongs
    /// to the command.
    ///
    /// # Errors
    /// Errors of the pipeline; `InvalidNamespace` for an invalid collection name.
    pub fn parse_aggregate(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &mut AggregateRequest,
    ) -> Result<()> {
        let named = self.named(op, ns)?;
        let settings = settings_of(named.as_ref(), op, request)?.within(&ns.db);
        let parse = || Pipeline::parse_raw(&request.pipeline, &settings);
        request.parsed = Some(match refuse_failing(parse) {
            Ok(stages) => Parsed {
                accesses: stages.accesses(ns)?,
                stages: Some(stages),
            },
            Err(_) => Parsed {
                accesses: parse()?.accesses(ns)?,
                stages: None,
            },
        });
        Ok(())
    }
}

impl AggregateRequest {
    /// Bytes of the variables.
    pub(super) fn let_bytes(&self) -> usize {
        self.variables.as_ref().map_or(0, Let::bytes)
    }

    /// The pipeline to run on `ns`: the one that was authorized. It is parsed here if it was not
    /// before, or under another collation because the collection was replaced in between.
    ///
    /// # Errors
    /// Errors of the pipeline; `Unauthorized` if it accesses other collections than the one that
    /// was authorized.
    pub(super) fn to_run(&self, ns: &Namespace, settings: &Settings) -> Result<Pipeline> {
        let before = self.parsed.as_ref();
        if let Some(stages) = before.and_then(|before| before.stages.as_ref())
            && is_same_collation(stages.settings(), settings)
        {
            return Ok(stages.clone());
        }
        let stages = refuse_failing(|| Pipeline::parse_raw(&self.pipeline, settings))?;
        if let Some(before) = before
            && before.accesses != stages.accesses(ns)?
        {
            let message = "the pipeline is not the one that was authorized";
            return Err(Error::new(Code::UNAUTHORIZED, message));
        }
        Ok(stages)
    }
}

impl Default for AggregateRequest {
    fn default() -> AggregateRequest {
        AggregateRequest {
            pipeline: RawArrayBuf::new(),
            batch_size: None,
            allow_disk_use: true,
            hint: None,
            collation: None,
            variables: None,
            bypass_validation: false,
            parsed: None,
        }
    }
}

fn is_same_collation(one: &Settings, other: &Settings) -> bool {
    let of = |settings: &Settings| {
        let collator = settings.collator.as_ref();
        collator.map(|collator| collator.collation().to_document())
    };
    of(one) == of(other)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bson::{doc, rawdoc};
    use kv::Durability;

    use super::*;
    use crate::collection::CollectionOptions;
    use crate::store::Options;

    fn store() -> (Arc<Store>, Namespace, Op<'static>) {
        let folder = tempfile::tempdir().unwrap();
        let engine = kv::memory::factory().open(folder.path(), &kv::EngineOptions::default());
        let store = Store::open(Arc::from(engine.unwrap()), Options::default()).unwrap();
        let ns = Namespace::parse("d.c").unwrap();
        (store, ns, Op::new(Durability::Group))
    }

    fn request(stages: impl IntoIterator<Item = RawDocumentBuf>) -> AggregateRequest {
        AggregateRequest {
            pipeline: stages.into_iter().collect(),
            ..AggregateRequest::default()
        }
    }

    /// The stages that were parsed first run, whatever the bytes beside them are.
    #[test]
    fn the_stages_that_were_parsed_are_those_that_run() {
        let (store, ns, op) = store();
        let mut asked = request([rawdoc! {"$documents": [{"a": 1}]}]);
        store.parse_aggregate(&op, &ns, &mut asked).unwrap();
        let reads = asked.parsed.as_ref().unwrap().accesses();
        assert_eq!(reads, [Access::Read(ns.clone())]);
        asked.pipeline = request([rawdoc! {"$documents": [{"a": 2}]}]).pipeline;
        let batch = store.aggregate(&op, &ns, &asked).unwrap();
        assert_eq!(batch.documents, [rawdoc! {"a": 1}]);
    }

    /// A pipeline that is parsed again must access what was authorized.
    #[test]
    fn a_pipeline_that_is_parsed_again_is_compared() {
        let (store, ns, op) = store();
        let union = |name: &str| rawdoc! {"$unionWith": name};
        let mut asked = request([union("x")]);
        store.parse_aggregate(&op, &ns, &mut asked).unwrap();
        asked.parsed = asked.parsed.map(Parsed::without_stages);
        store.aggregate(&op, &ns, &asked).unwrap();
        asked.pipeline = request([union("y")]).pipeline;
        let error = store.aggregate(&op, &ns, &asked).unwrap_err();
        assert_eq!(error.code, Code::UNAUTHORIZED, "{error}");
        let error = store.explain_aggregate(&op, &ns, &asked, crate::Verbosity::default());
        assert_eq!(error.unwrap_err().code, Code::UNAUTHORIZED);
    }

    /// A collection that another one replaced may have another collation.
    #[test]
    fn another_collation_parses_the_pipeline_again() {
        let (store, ns, op) = store();
        let mut asked = request([
            rawdoc! {"$documents": [{"a": "E"}]},
            rawdoc! {"$match": {"a": "e"}},
        ]);
        store.parse_aggregate(&op, &ns, &mut asked).unwrap();
        assert!(
            store
                .aggregate(&op, &ns, &asked)
                .unwrap()
                .documents
                .is_empty()
        );
        let collation = doc! {"collation": {"locale": "en", "strength": 2}};
        let options = CollectionOptions::parse(&collation).unwrap();
        store.create(&op, &ns, options).unwrap();
        let batch = store.aggregate(&op, &ns, &asked).unwrap();
        assert_eq!(batch.documents, [rawdoc! {"a": "E"}]);
    }

    /// The error of constants belongs to the command, not to its authorization.
    #[test]
    fn a_failing_constant_is_an_error_of_the_command() {
        let (store, ns, op) = store();
        let mut asked = request([rawdoc! {"$project": {"a": {"$divide": [1, 0]}}}]);
        store.parse_aggregate(&op, &ns, &mut asked).unwrap();
        assert_eq!(asked.parsed.as_ref().unwrap().accesses().len(), 1);
        let error = store.aggregate(&op, &ns, &asked).unwrap_err();
        assert!(error.message.contains("can't $divide by zero"), "{error}");
    }
}
