//! A document in a pipeline, as bytes, as an owned document, or both.
//!
//! Stages that only read or copy (`$match`, `$sort`, simple projections) ask for bytes; stages that
//! compute values ask for the owned document. A row makes the missing form on demand, once, and
//! keeps it until the row is passed on.

use std::cell::OnceCell;

use std::sync::Arc;

use bson::{Bson, Document, RawDocument, RawDocumentBuf};

use crate::Result;
use crate::sort::SortKey;

/// One document, as bytes, as an owned document, or both.
#[derive(Debug, Clone)]
pub struct Row {
    raw: OnceCell<RawDocumentBuf>,
    document: OnceCell<Document>,
    /// The values by which `$sort` ordered the row; set only where the pipeline reads them.
    sort_key: Option<Arc<[Bson]>>,
}

impl Row {
    /// A row from bytes.
    #[must_use]
    pub fn from_raw(raw: RawDocumentBuf) -> Row {
        Row {
            raw: OnceCell::from(raw),
            document: OnceCell::new(),
            sort_key: None,
        }
    }

    /// A row from an owned document.
    #[must_use]
    pub fn from_document(document: Document) -> Row {
        Row {
            raw: OnceCell::new(),
            document: OnceCell::from(document),
            sort_key: None,
        }
    }

    /// Returns this row with `key`, the values by which `$sort` ordered it.
    #[must_use]
    pub fn sorted_by(mut self, key: &SortKey) -> Row {
        self.sort_key = Some(key.values().into());
        self
    }

    /// Returns this row with the sort key of the row from which it was made.
    pub(crate) fn with_sort_key(mut self, key: Option<Arc<[Bson]>>) -> Row {
        self.sort_key = key;
        self
    }

    /// The values by which `$sort` ordered the row, if they were kept.
    pub(crate) fn sort_key(&self) -> Option<Arc<[Bson]>> {
        self.sort_key.clone()
    }

    /// The document as bytes.
    ///
    /// # Errors
    /// `InvalidBSON` when the document cannot be encoded (a name with a zero byte).
    pub fn raw(&self) -> Result<&RawDocument> {
        if let Some(raw) = self.raw.get() {
            return Ok(raw);
        }
        let raw = match self.document.get() {
            Some(document) => RawDocumentBuf::try_from(document)?,
            None => RawDocumentBuf::new(),
        };
        Ok(self.raw.get_or_init(|| raw))
    }

    /// The owned document.
    ///
    /// # Errors
    /// `InvalidBSON` when the bytes are not valid BSON.
    pub fn document(&self) -> Result<&Document> {
        if let Some(document) = self.document.get() {
            return Ok(document);
        }
        let document = match self.raw.get() {
            Some(raw) => Document::try_from(raw)?,
            None => Document::new(),
        };
        Ok(self.document.get_or_init(|| document))
    }

    /// Drops the owned document and keeps only the bytes: stages hold rows in this form, because an
    /// owned document takes many times the memory.
    ///
    /// # Errors
    /// As [`Row::raw`].
    pub(crate) fn compact(self) -> Result<Row> {
        let key = self.sort_key();
        Ok(Row::from_raw(self.into_raw()?).with_sort_key(key))
    }

    /// Consumes the row and returns its bytes.
    ///
    /// # Errors
    /// As [`Row::raw`].
    pub fn into_raw(self) -> Result<RawDocumentBuf> {
        match self.raw.into_inner() {
            Some(raw) => Ok(raw),
            None => Ok(RawDocumentBuf::try_from(
                self.document.into_inner().unwrap_or_default(),
            )?),
        }
    }

    /// Consumes the row and returns the owned document.
    ///
    /// # Errors
    /// As [`Row::document`].
    pub fn into_document(self) -> Result<Document> {
        match self.document.into_inner() {
            Some(document) => Ok(document),
            None => match self.raw.into_inner() {
                Some(raw) => Ok(Document::try_from(raw)?),
                None => Ok(Document::new()),
            },
        }
    }
}

impl From<RawDocumentBuf> for Row {
    fn from(raw: RawDocumentBuf) -> Row {
        Row::from_raw(raw)
    }
}

impl From<Document> for Row {
    fn from(document: Document) -> Row {
        Row::from_document(document)
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::Row;

    #[test]
    fn the_two_forms_agree() {
        let document = doc! { "a": 1, "b": { "c": [1, 2] } };
        let row = Row::from_document(document.clone());
        let again = Row::from_raw(row.raw().unwrap().to_owned());
        assert_eq!(again.document().unwrap(), &document);
        assert_eq!(again.into_document().unwrap(), document);
        assert_eq!(row.clone().into_raw().unwrap(), row.into_raw().unwrap());
    }
}
