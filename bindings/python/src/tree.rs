//! Trees.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::database::{Store, level};
use crate::error::raise;
use crate::items::{Items, Source};
use crate::{bounds, bytes, list};

/// A named, ordered map from keys to values.
#[pyclass(frozen, module = "betree")]
pub(crate) struct Tree {
    store: Arc<Store>,
    pub(crate) handle: engine::Tree,
}

impl Tree {
    pub(crate) fn new(store: &Arc<Store>, handle: engine::Tree) -> Tree {
        Tree {
            store: Arc::clone(store),
            handle,
        }
    }

    fn source(&self, py: Python<'_>) -> PyResult<Source> {
        let snapshot = self.store.with(py, engine::Db::begin_read)?;
        Ok(Source::Snapshot(Arc::new(snapshot)))
    }
}

#[pymethods]
impl Tree {
    #[getter]
    fn name(&self) -> &str {
        self.handle.name()
    }

    fn get<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = py.detach(|| self.handle.get(key)).map_err(raise)?;
        Ok(bytes(py, value))
    }

    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Vec<u8>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let values = py.detach(|| self.handle.get_many(&keys)).map_err(raise)?;
        Ok(list(py, values))
    }

    #[pyo3(signature = (key, value, *, durability = "sync"))]
    fn put(&self, py: Python<'_>, key: &[u8], value: &[u8], durability: &str) -> PyResult<()> {
        let durability = level(durability)?;
        py.detach(|| self.handle.put(key, value, durability))
            .map_err(raise)
    }

    #[pyo3(signature = (key, *, durability = "sync"))]
    fn delete(&self, py: Python<'_>, key: &[u8], durability: &str) -> PyResult<()> {
        let durability = level(durability)?;
        py.detach(|| self.handle.delete(key, durability))
            .map_err(raise)
    }

    #[pyo3(signature = (start = None, end = None, *, reverse = false))]
    fn range(
        &self,
        py: Python<'_>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        reverse: bool,
    ) -> PyResult<Items> {
        let source = self.source(py)?;
        Items::range(py, source, self, bounds(start, end), reverse)
    }

    #[pyo3(signature = (prefix, *, reverse = false))]
    fn prefix(&self, py: Python<'_>, prefix: &[u8], reverse: bool) -> PyResult<Items> {
        let source = self.source(py)?;
        Items::prefix(py, source, self, prefix, reverse)
    }
}
