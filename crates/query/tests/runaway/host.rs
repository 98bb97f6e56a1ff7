//! A host in memory that applies the small memory limit to a stage, and the rows that the stage
//! reads.

use std::collections::VecDeque;

use bson::{Bson, Document, doc};
use query::execute::{Host, Listed, Rows, Spill, build};
use query::pipeline::Pipeline;
use query::settings::Settings;
use query::stage::{Merge, Statistics};
use query::{Namespace, Result, Row, meter};

use super::LIMIT;

/// Number of rows of the input, and of the other collection.
const ROWS: i32 = 6_000;

/// The host. Its other collection has the same documents as the input.
pub(super) struct Memory {
    /// Whether stages may spill.
    pub(super) disk: bool,
}

/// Documents of about a kilobyte with an array of a few elements.
pub(super) fn documents() -> Vec<Document> {
    let text = "t".repeat(1_000);
    let document = |id: i32| {
        doc! {
            "_id": id, "x": f64::from(id), "next": id + 1, "t": format!("{text}{id}"),
            "v": if id % 2 == 0 { Bson::Int32(id) } else { Bson::Null },
            "a": (0..10).map(|at| doc! {"b": at}).collect::<Vec<_>>(),
        }
    };
    (0..ROWS).map(document).collect()
}

fn listed(documents: &[Document]) -> Box<dyn Rows> {
    let rows = documents.iter().cloned().map(Row::from_document);
    Box::new(Listed::new(rows.collect()))
}

/// The rows of `stages` over the documents; no row is pulled yet.
pub(super) fn open(stages: &Bson, documents: &[Document]) -> Result<Box<dyn Rows>> {
    let stages = stages.as_array().unwrap();
    let pipeline = Pipeline::parse(stages, &Settings::default())?;
    build(pipeline, listed(documents))
}

/// Pulls all rows and drops them.
pub(super) fn drain(mut rows: Box<dyn Rows>, host: &mut Memory) -> Result<usize> {
    let mut count = 0;
    while rows.next(host)?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// A spill file, kept in memory.
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

/// The rows of the other collection.
struct Others(i32, Vec<Document>);

impl Rows for Others {
    fn next(&mut self, _host: &mut dyn Host) -> Result<Option<Row>> {
        let row = self.1.get(usize::try_from(self.0).unwrap()).cloned();
        self.0 += 1;
        Ok(row.map(Row::from_document))
    }
}

impl Host for Memory {
    fn check(&mut self) -> Result<()> {
        meter::step()
    }

    fn database(&self) -> &str {
        "test"
    }

    fn aggregate(&mut self, _ns: &Namespace, pipeline: Pipeline) -> Result<Box<dyn Rows>> {
        let rows = Others(0, OTHERS.clone());
        build(pipeline.optimize(), Box::new(rows))
    }

    fn spill(&mut self) -> Result<Box<dyn Spill>> {
        Ok(Box::<Records>::default())
    }

    fn memory_limit(&self) -> usize {
        LIMIT
    }

    fn allow_disk_use(&self) -> bool {
        self.disk
    }

    fn write_out(&mut self, _ns: &Namespace, input: &mut dyn Rows) -> Result<()> {
        while input.next(self)?.is_some() {
            meter::step()?;
        }
        Ok(())
    }

    fn merge(&mut self, ns: &Namespace, _merge: &Merge, input: &mut dyn Rows) -> Result<()> {
        self.write_out(ns, input)
    }

    fn statistics(&mut self, statistics: &Statistics) -> Result<Vec<Document>> {
        Ok(vec![doc! { "name": statistics.name() }])
    }

    fn random(&mut self) -> u64 {
        7
    }
}

/// The documents of the other collection.
static OTHERS: std::sync::LazyLock<Vec<Document>> = std::sync::LazyLock::new(|| {
    let text = "o".repeat(3_000);
    let document = |id: i32| doc! {"_id": id, "next": id + 1, "t": text.as_str()};
    (0..2_000).map(document).collect()
});
