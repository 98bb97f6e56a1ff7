//! The interface of a running pipeline to its caller: storage, spill files, and interruption.

use bson::{Bson, Document};

use crate::filter::{Filter, Node, Test};
use crate::path::Path;
use crate::pipeline::Pipeline;
use crate::settings::Settings;
use crate::stage::{Merge, Stage, Statistics};
use crate::{Namespace, Result, Row};

/// Rows, one after another.
pub trait Rows: Send {
    /// The next row; `None` after the last one, and on every later call.
    ///
    /// # Errors
    /// Errors of the stage, of storage, and of [`Host::check`]. After an error there are no more
    /// rows.
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>>;
}

/// Records on disk, read back in the order in which they were written.
pub trait Spill: Send {
    /// Writes a record. Not called after the first [`Spill::read`].
    ///
    /// # Errors
    /// I/O errors.
    fn append(&mut self, record: &[u8]) -> Result<()>;

    /// Reads the next record into `record`; false after the last one.
    ///
    /// # Errors
    /// I/O errors.
    fn read(&mut self, record: &mut Vec<u8>) -> Result<bool>;
}

/// The environment of a running pipeline.
pub trait Host {
    /// Returns an error when the pipeline must stop; called between rows.
    ///
    /// # Errors
    /// `Interrupted`, `MaxTimeMSExpired` and similar codes.
    fn check(&mut self) -> Result<()>;

    /// The database in which the pipeline was started, for collections named without a database.
    fn database(&self) -> &str;

    /// The results of `pipeline` over a collection or view, which may not exist. The pipeline is
    /// not optimized yet.
    ///
    /// # Errors
    /// Errors of storage.
    fn aggregate(&mut self, ns: &Namespace, pipeline: Pipeline) -> Result<Box<dyn Rows>>;

    /// Documents of a collection or view that have one of `values` at `path`, as a filter `{path:
    /// {$in: values}}` finds them.
    ///
    /// # Errors
    /// Errors of storage.
    fn find_equal(
        &mut self,
        ns: &Namespace,
        path: &Path,
        values: &[Bson],
        settings: &Settings,
    ) -> Result<Box<dyn Rows>> {
        let filter = equal_to_one(path, values, settings)?;
        self.aggregate(
            ns,
            Pipeline::from_stages(vec![Stage::Match(filter)], settings),
        )
    }

    /// The next row of the scan that the host has opened under the number `source`; only the host
    /// can read storage. `None` after the last row.
    ///
    /// # Errors
    /// Errors of storage; `InternalError` from a host without scans.
    fn pull(&mut self, source: u64) -> Result<Option<Row>> {
        Err(crate::Error::new(
            crate::Code::INTERNAL_ERROR,
            format!("the host of the pipeline keeps no source {source}"),
        ))
    }

    /// Creates an empty spill file.
    ///
    /// # Errors
    /// I/O errors.
    fn spill(&mut self) -> Result<Box<dyn Spill>>;

    /// Maximum number of bytes that a stage may hold [default: 100 MiB].
    fn memory_limit(&self) -> usize {
        100 << 20
    }

    /// Whether stages may spill.
    fn allow_disk_use(&self) -> bool;

    /// Replaces the contents of a collection by the rows, atomically.
    ///
    /// # Errors
    /// Errors of the rows and of storage.
    fn write_out(&mut self, ns: &Namespace, input: &mut dyn Rows) -> Result<()>;

    /// Merges the rows into a collection, each by [`Merge::key`] and [`Merge::resolve`]. Rows
    /// without `_id` get one from the host first.
    ///
    /// # Errors
    /// Errors of the rows, of storage and of the specification.
    fn merge(&mut self, ns: &Namespace, merge: &Merge, input: &mut dyn Rows) -> Result<()>;

    /// The documents of a stage that reports on the server.
    ///
    /// # Errors
    /// An error when the pipeline's collection does not have this report.
    fn statistics(&mut self, statistics: &Statistics) -> Result<Vec<Document>>;

    /// Random bits, for `$sample`.
    fn random(&mut self) -> u64;
}

/// A filter for documents that have one of `values` at `path`.
///
/// # Errors
/// Errors of filters.
pub(crate) fn equal_to_one(path: &Path, values: &[Bson], settings: &Settings) -> Result<Filter> {
    let empty = Filter::parse(&bson::RawDocumentBuf::new(), settings)?;
    let tests = values.iter().map(|value| Node::Field {
        path: path.clone(),
        test: Test::Eq(value.clone()),
    });
    let mut nodes: Vec<Node> = tests.collect();
    if nodes.len() > 1
        && !values
            .iter()
            .any(|v| matches!(v, Bson::RegularExpression(_)))
    {
        let mut spec = Document::new();
        let mut list = Document::new();
        list.insert("$in", values.to_vec());
        spec.insert(path.as_str(), list);
        return Filter::parse(&bson::RawDocumentBuf::try_from(&spec)?, settings);
    }
    let root = match (nodes.pop(), nodes.is_empty()) {
        (None, _) => Node::AlwaysFalse,
        (Some(only), true) => only,
        (Some(last), false) => {
            nodes.push(last);
            Node::Or(nodes)
        }
    };
    Ok(empty.with_root(root))
}
