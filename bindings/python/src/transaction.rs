//! Transactions.

use std::sync::Arc;

use engine::Durability;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stdx::sync::Mutex;

use crate::error::{closed, raise};
use crate::items::{Items, Source};
use crate::tree::Tree;
use crate::{bounds, bytes, list};

/// A transaction until it ends; shared with the iterators over it.
pub(crate) type Open = Arc<Mutex<Option<engine::Transaction>>>;

/// Reads and writes as one unit, at snapshot isolation.
#[pyclass(frozen, module = "betree")]
pub(crate) struct Transaction {
    open: Open,
    durability: Durability,
}

impl Transaction {
    pub(crate) fn new(transaction: engine::Transaction, durability: Durability) -> Transaction {
        Transaction {
            open: Arc::new(Mutex::new(Some(transaction))),
            durability,
        }
    }

    /// Do `work` on the open transaction without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut engine::Transaction) -> engine::Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| match &mut *self.open.lock() {
            Some(transaction) => work(transaction),
            None => Err(closed("transaction")),
        })
        .map_err(raise)
    }
}

#[pymethods]
impl Transaction {
    fn get<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let id = tree.handle.id();
        let value = self.with(py, |transaction| transaction.get(id, key))?;
        Ok(bytes(py, value))
    }

    fn get_many<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        keys: Vec<Vec<u8>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let id = tree.handle.id();
        let values = self.with(py, |transaction| transaction.get_many(id, &keys))?;
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
        let source = Source::Transaction(Arc::clone(&self.open));
        Items::range(py, source, tree, bounds(start, end), reverse)
    }

    #[pyo3(signature = (tree, prefix, *, reverse = false))]
    fn prefix(&self, py: Python<'_>, tree: &Tree, prefix: &[u8], reverse: bool) -> PyResult<Items> {
        let source = Source::Transaction(Arc::clone(&self.open));
        Items::prefix(py, source, tree, prefix, reverse)
    }

    fn insert(&self, py: Python<'_>, tree: &Tree, key: &[u8], value: &[u8]) -> PyResult<()> {
        let id = tree.handle.id();
        self.with(py, |transaction| transaction.insert(id, key, value))
    }

    fn put(&self, py: Python<'_>, tree: &Tree, key: &[u8], value: &[u8]) -> PyResult<()> {
        let id = tree.handle.id();
        self.with(py, |transaction| transaction.put(id, key, value))
    }

    fn delete(&self, py: Python<'_>, tree: &Tree, key: &[u8]) -> PyResult<bool> {
        let id = tree.handle.id();
        self.with(py, |transaction| transaction.delete(id, key))
    }

    fn put_blind(&self, py: Python<'_>, tree: &Tree, key: &[u8], value: &[u8]) -> PyResult<()> {
        let id = tree.handle.id();
        self.with(py, |transaction| transaction.put_blind(id, key, value))
    }

    fn delete_blind(&self, py: Python<'_>, tree: &Tree, key: &[u8]) -> PyResult<()> {
        let id = tree.handle.id();
        self.with(py, |transaction| transaction.delete_blind(id, key))
    }

    #[pyo3(signature = (tree, start = None, end = None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        tree: &Tree,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> PyResult<()> {
        let (id, (start, end)) = (tree.handle.id(), bounds(start, end));
        self.with(py, |transaction| transaction.delete_range(id, start, end))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let commit = || match self.open.lock().take() {
            Some(transaction) => transaction.commit(self.durability),
            None => Err(closed("transaction")),
        };
        py.detach(commit).map_err(raise)
    }

    fn rollback(&self, py: Python<'_>) {
        py.detach(|| drop(self.open.lock().take()));
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (kind, _error, _trace))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Py<PyAny>>,
        _error: Py<PyAny>,
        _trace: Py<PyAny>,
    ) -> PyResult<bool> {
        // One that was committed or rolled back in its block has ended.
        let ended = self.open.lock().is_none();
        if kind.is_some() || ended {
            self.rollback(py);
        } else {
            self.commit(py)?;
        }
        Ok(false)
    }
}
