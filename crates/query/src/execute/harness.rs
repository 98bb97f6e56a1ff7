//! A host in memory for tests: collections are lists of documents, spill files are lists of
//! records.

use std::collections::{HashMap, VecDeque};

use bson::{Bson, Document};

use super::{Host, Listed, Rows, Spill, build};
use crate::pipeline::Pipeline;
use crate::settings::Settings;
use crate::stage::{Merge, MergeOutcome, Statistics};
use crate::value::compare;
use crate::{Namespace, Result, Row};

/// A host in memory.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) collections: HashMap<String, Vec<Document>>,
    pub(crate) limit: Option<usize>,
    pub(crate) no_disk: bool,
    /// Number of spill files created.
    pub(crate) spills: usize,
    pub(crate) random: u64,
}

impl Memory {
    pub(crate) fn with(name: &str, documents: Vec<Document>) -> Memory {
        let mut memory = Memory::default();
        memory.collections.insert(name.to_owned(), documents);
        memory
    }

    /// Runs a pipeline over documents.
    pub(crate) fn run(&mut self, pipeline: Pipeline, over: &[Document]) -> Result<Vec<Document>> {
        let rows = over.iter().cloned().map(Row::from_document).collect();
        let mut rows = build(pipeline, Box::new(Listed::new(rows)))?;
        drain(rows.as_mut(), self)
    }
}

/// Returns all rows as documents.
pub(crate) fn drain(rows: &mut dyn Rows, host: &mut dyn Host) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    while let Some(row) = rows.next(host)? {
        documents.push(row.into_document()?);
    }
    Ok(documents)
}

/// Parses the stages of an array.
pub(crate) fn parse(stages: &Bson) -> Result<Pipeline> {
    let settings = Settings::default();
    Pipeline::parse(stages.as_array().unwrap(), &settings)
}

#[derive(Default)]
struct Records(VecDeque<Vec<u8>>);

impl Spill for Records {
    fn append(&mut self, record: &[u8]) -> Result<()> {
        self.0.push_back(record.to_vec());
        Ok(())
    }

    fn read(&mut self, record: &mut Vec<u8>) -> Result<bool> {
        let next = self.0.pop_front();
        let found = next.is_some();
        *record = next.unwrap_or_default();
        Ok(found)
    }
}

impl Host for Memory {
    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    fn database(&self) -> &str {
        "test"
    }

    fn aggregate(&mut self, ns: &Namespace, pipeline: Pipeline) -> Result<Box<dyn Rows>> {
        let found = self.collections.get(&ns.coll).cloned().unwrap_or_default();
        let rows = found.into_iter().map(Row::from_document).collect();
        build(pipeline.optimize(), Box::new(Listed::new(rows)))
    }

    fn spill(&mut self) -> Result<Box<dyn Spill>> {
        self.spills += 1;
        Ok(Box::<Records>::default())
    }

    fn memory_limit(&self) -> usize {
        self.limit.unwrap_or(100 << 20)
    }

    fn allow_disk_use(&self) -> bool {
        !self.no_disk
    }

    fn write_out(&mut self, ns: &Namespace, input: &mut dyn Rows) -> Result<()> {
        let documents = drain(input, self)?;
        self.collections.insert(ns.coll.clone(), documents);
        Ok(())
    }

    fn merge(&mut self, ns: &Namespace, merge: &Merge, input: &mut dyn Rows) -> Result<()> {
        for incoming in drain(input, self)? {
            let key = merge.key(&incoming)?;
            let target = self.collections.entry(ns.coll.clone()).or_default();
            let equal = |held: &&mut Document| {
                key.iter()
                    .all(|(name, value)| held.get(name).is_some_and(|v| compare(v, value).is_eq()))
            };
            let existing = target.iter_mut().find(equal);
            match merge.resolve(existing.as_deref(), incoming)? {
                MergeOutcome::Nothing => {}
                MergeOutcome::Insert(document) => target.push(document),
                MergeOutcome::Replace(document) => *existing.unwrap() = document,
            }
        }
        Ok(())
    }

    fn statistics(&mut self, statistics: &Statistics) -> Result<Vec<Document>> {
        Ok(vec![bson::doc! { "name": statistics.name() }])
    }

    fn random(&mut self) -> u64 {
        // A small mixing generator (splitmix64) is random enough to choose rows.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    }
}
