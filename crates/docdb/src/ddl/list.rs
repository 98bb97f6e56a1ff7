//! Results of `listCollections`, `listIndexes` and `listDatabases`.

use bson::raw::cstr;
use bson::{Binary, RawDocumentBuf, rawdoc, spec::BinarySubtype};
use query::{Namespace, Result};

use crate::catalog::Named;
use crate::store::Store;

impl Store {
    /// The collections and views of a database, in the order of their names.
    ///
    /// # Errors
    /// Invalid bytes in a definition.
    pub fn list_collections(&self, db: &str) -> Result<Vec<RawDocumentBuf>> {
        let catalog = self.catalog();
        let mut out = catalog
            .in_database(db)
            .map(|(ns, named)| describe(ns, named))
            .collect::<Result<Vec<_>>>()?;
        // View definitions are in the collection `system.views`, which users see.
        let views = catalog
            .in_database(db)
            .any(|(_, named)| matches!(named, Named::View(_)));
        if views {
            out.push(rawdoc! {
                "name": "system.views",
                "type": "collection",
                "options": {},
                "info": { "readOnly": false },
            });
        }
        Ok(out)
    }

    /// The indexes of a collection, the one on `_id` first.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`.
    pub fn list_indexes(&self, ns: &Namespace) -> Result<Vec<RawDocumentBuf>> {
        let collection = self.existing(ns)?;
        let mut out = Vec::new();
        if let Some(name) = &collection.options().clustered {
            out.push(rawdoc! {
                "v": 2, "key": { "_id": 1 }, "name": &**name, "unique": true, "clustered": true,
            });
        }
        for index in collection.indexes() {
            out.push(index.spec().to_raw()?);
        }
        Ok(out)
    }
}

fn describe(ns: &Namespace, named: &Named) -> Result<RawDocumentBuf> {
    let kind = match named {
        Named::View(_) => "view",
        Named::Collection(_) => "collection",
    };
    let mut out = rawdoc! { "name": &*ns.coll, "type": kind };
    out.append(cstr!("options"), named.options().to_raw()?);
    let Named::Collection(collection) = named else {
        out.append(cstr!("info"), rawdoc! { "readOnly": true });
        return Ok(out);
    };
    let uuid = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: collection.uuid().bytes().to_vec(),
    };
    out.append(cstr!("info"), rawdoc! { "readOnly": false, "uuid": uuid });
    if let Some(index) = collection.id_index() {
        out.append(cstr!("idIndex"), index.spec().to_raw()?);
    }
    Ok(out)
}
