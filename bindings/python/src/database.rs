//! The store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::{Codec, Durability, Options, TreeOptions};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stdx::sync::RwLock;

use crate::batch::Batch;
use crate::error::{closed, invalid, raise};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::tree::Tree;

/// A store until it is closed. Calls hold it for reading, so closing waits for them.
pub(crate) struct Store {
    db: RwLock<Option<engine::Db>>,
}

impl Store {
    /// Do `work` on the open store without the interpreter's lock.
    pub(crate) fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&engine::Db) -> engine::Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| match &*self.db.read() {
            Some(db) => work(db),
            None => Err(closed("store")),
        })
        .map_err(raise)
    }
}

/// An open store.
#[pyclass(frozen, module = "betree")]
pub(crate) struct Database {
    store: Arc<Store>,
}

/// Open the store in a directory.
#[pyfunction]
#[pyo3(signature = (
    path, *, preset = "balanced", memory = None, threads = None, log = None, codec = None,
    interval = None, snapshot_max_age = None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    preset: &str,
    memory: Option<u64>,
    threads: Option<u32>,
    log: Option<bool>,
    codec: Option<&str>,
    interval: Option<f64>,
    snapshot_max_age: Option<f64>,
) -> PyResult<Database> {
    let mut options = match preset {
        "btree" => Options::btree(),
        "balanced" => Options::balanced(),
        "ingest" => Options::ingest(),
        other => {
            let message = format!("no preset {other:?}; use btree, balanced or ingest");
            return Err(invalid(message));
        }
    };
    if let Some(bytes) = memory {
        options = options.with_memory(bytes);
    }
    if let Some(threads) = threads {
        options = options.with_threads(threads);
    }
    if let Some(log) = log {
        options = options.with_log(log);
    }
    if let Some(codec) = codec {
        let codec = codec.parse::<Codec>().map_err(|e| invalid(e.to_string()))?;
        options = options.with_codec(codec);
    }
    if let Some(interval) = interval {
        options = options.with_interval(seconds(interval)?);
    }
    if let Some(age) = snapshot_max_age {
        options = options.with_snapshot_max_age(Some(seconds(age)?));
    }
    let db = py
        .detach(|| engine::Db::open(path, options))
        .map_err(raise)?;
    let store = Store {
        db: RwLock::new(Some(db)),
    };
    Ok(Database {
        store: Arc::new(store),
    })
}

#[pymethods]
impl Database {
    #[pyo3(signature = (name, *, create = true, ascending = false, point_lookups = false))]
    fn tree(
        &self,
        py: Python<'_>,
        name: &str,
        create: bool,
        ascending: bool,
        point_lookups: bool,
    ) -> PyResult<Tree> {
        let options = TreeOptions {
            ascending,
            point_lookups,
        };
        let handle = self.store.with(py, |db| {
            if !create {
                db.open_tree(name)?;
            }
            db.tree_with(name, options)
        })?;
        Ok(Tree::new(&self.store, handle))
    }

    fn trees(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.store.with(py, engine::Db::trees)
    }

    fn drop_tree(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.store.with(py, |db| db.drop_tree(name))
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        self.store
            .with(py, engine::Db::begin_read)
            .map(Snapshot::new)
    }

    #[pyo3(signature = (*, durability = "sync"))]
    fn begin(&self, py: Python<'_>, durability: &str) -> PyResult<Transaction> {
        let durability = level(durability)?;
        let transaction = self.store.with(py, engine::Db::begin)?;
        Ok(Transaction::new(transaction, durability))
    }

    #[pyo3(signature = (batch, *, durability = "sync"))]
    fn write(&self, py: Python<'_>, batch: &Batch, durability: &str) -> PyResult<()> {
        let durability = level(durability)?;
        let changes = &batch.changes;
        self.store
            .with(py, |db| db.write(&changes.lock(), durability))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.store.with(py, engine::Db::flush)
    }

    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        self.store.with(py, engine::Db::checkpoint)
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.store.with(py, engine::Db::sync_log)
    }

    #[pyo3(signature = (limit = 60.0))]
    fn settle(&self, py: Python<'_>, limit: f64) -> PyResult<bool> {
        let limit = seconds(limit)?;
        self.store.with(py, |db| db.settle(limit))
    }

    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.store.with(py, |db| db.verify().map(|_| ()))
    }

    fn backup(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let copied = |db: &engine::Db| db.backup(path, &mut |_, _| true);
        self.store.with(py, copied).map(|_| ())
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.store.with(py, engine::Db::stats)?;
        let found = PyDict::new(py);
        found.set_item("buckets", stats.buckets)?;
        found.set_item("runs_per_bucket", stats.mean_runs())?;
        found.set_item("buffered_bytes", stats.buffered_bytes)?;
        found.set_item("file_bytes", stats.space.file_bytes)?;
        found.set_item("debt_bytes", stats.debt_bytes)?;
        Ok(found)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let close = || match self.store.db.write().take() {
            Some(db) => db.close(),
            None => Ok(()),
        };
        py.detach(close).map_err(raise)
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (_kind, _error, _trace))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Py<PyAny>,
        _error: Py<PyAny>,
        _trace: Py<PyAny>,
    ) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }
}

/// A level of durability by its name.
pub(crate) fn level(name: &str) -> PyResult<Durability> {
    name.parse().map_err(|message: String| invalid(message))
}

fn seconds(number: f64) -> PyResult<Duration> {
    let wrong = |_| invalid(format!("{number} is not a number of seconds"));
    Duration::try_from_secs_f64(number).map_err(wrong)
}
