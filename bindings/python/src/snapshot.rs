//! Read views.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stdx::sync::Mutex;

use crate::error::{closed, raise};
use crate::items::{Items, Source};
use crate::tree::Tree;
use crate::{bounds, bytes, list};

/// A read view of all trees at one moment.
#[pyclass(frozen, module = "betree")]
pub(crate) struct Snapshot {
    snapshot: Mutex<Option<Arc<engine::Snapshot>>>,
}

impl Snapshot {
    pub(crate) fn new(snapshot: engine::Snapshot) -> Snapshot {
        Snapshot {
            snapshot: Mutex::new(Some(Arc::new(snapshot))),
        }
    }

    fn open(&self) -> PyResult<Arc<engine::Snapshot>> {
        let held = self.snapshot.lock();
        let snapshot = held.as_ref().map(Arc::clone);
        snapshot.ok_or_else(|| raise(closed("snapshot")))
    }
}

#[pymethods]
impl Snapshot {
    fn get<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (snapshot, id) = (self.open()?, tree.handle.id());
        let value = py.detach(|| snapshot.get(id, key)).map_err(raise)?;
        Ok(bytes(py, value))
    }

    fn get_many<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        keys: Vec<Vec<u8>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let (snapshot, id) = (self.open()?, tree.handle.id());
        let values = py.detach(|| snapshot.get_many(id, &keys)).map_err(raise)?;
        Ok(list(py, values))
    }

    #[pyo3(signature = (tree, start = None, end = None, *, reverse = false))]
    fn range(
        &self,
        py: Python<'_>,
        tree: &Tree,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        reverse: bool,
    ) -> PyResult<Items> {
        let source = Source::Snapshot(self.open()?);
        Items::range(py, source, tree, bounds(start, end), reverse)
    }

    #[pyo3(signature = (tree, prefix, *, reverse = false))]
    fn prefix(&self, py: Python<'_>, tree: &Tree, prefix: &[u8], reverse: bool) -> PyResult<Items> {
        let source = Source::Snapshot(self.open()?);
        Items::prefix(py, source, tree, prefix, reverse)
    }

    fn close(&self) {
        drop(self.snapshot.lock().take());
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (_kind, _error, _trace))]
    fn __exit__(&self, _kind: Py<PyAny>, _error: Py<PyAny>, _trace: Py<PyAny>) -> bool {
        self.close();
        false
    }
}
