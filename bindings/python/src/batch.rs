//! Write batches.

use pyo3::prelude::*;
use stdx::sync::Mutex;

use crate::bounds;
use crate::tree::Tree;

/// Changes of any number of trees, applied atomically by `Database.write`.
#[pyclass(frozen, module = "betree")]
pub(crate) struct Batch {
    pub(crate) changes: Mutex<engine::Batch>,
}

#[pymethods]
impl Batch {
    #[new]
    fn new() -> Batch {
        Batch {
            changes: Mutex::new(engine::Batch::new()),
        }
    }

    fn put(&self, tree: &Tree, key: &[u8], value: &[u8]) {
        self.changes.lock().put(tree.handle.id(), key, value);
    }

    fn delete(&self, tree: &Tree, key: &[u8]) {
        self.changes.lock().delete(tree.handle.id(), key);
    }

    #[pyo3(signature = (tree, start = None, end = None))]
    fn delete_range(&self, tree: &Tree, start: Option<&[u8]>, end: Option<&[u8]>) {
        let (start, end) = bounds(start, end);
        let id = tree.handle.id();
        self.changes.lock().delete_range(id, start, end);
    }

    fn clear(&self) {
        self.changes.lock().clear();
    }

    fn __len__(&self) -> usize {
        self.changes.lock().len()
    }
}
