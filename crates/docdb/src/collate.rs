//! Collations: the bridge from `query`'s collators to key strings.

use std::sync::Arc;

use bson::Document;
use query::{Code, Error, Result};

use crate::key::Collate;

/// The collator of a specification; `None` for byte order.
pub(crate) fn collator(spec: &Document) -> Result<Option<Arc<dyn Collate>>> {
    if spec.get_str("locale").ok() == Some("simple") {
        return Ok(None);
    }
    Err(Error::new(
        Code::COMMAND_NOT_SUPPORTED,
        "collations are not supported",
    ))
}
