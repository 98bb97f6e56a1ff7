//! Results of `listCollections`, `listIndexes` and `listDatabases`.

use bson::{Binary, Document, doc, spec::BinarySubtype};
use query::{Namespace, Result};

use crate::catalog::Named;
use crate::store::Store;

impl Store {
    /// The collections and views of a database, in the order of their names.
    #[must_use]
    pub fn list_collections(&self, db: &str) -> Vec<Document> {
        let catalog = self.catalog();
        let mut out: Vec<Document> = catalog
            .in_database(db)
            .map(|(ns, named)| describe(ns, named))
            .collect();
        // View definitions are in the collection `system.views`, which users see.
        let views = catalog
            .in_database(db)
            .any(|(_, named)| matches!(named, Named::View(_)));
        if views {
            out.push(doc! {
                "name": "system.views",
                "type": "collection",
                "options": {},
                "info": { "readOnly": false },
            });
        }
        out
    }

    /// The indexes of a collection, the one on `_id` first.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`.
    pub fn list_indexes(&self, ns: &Namespace) -> Result<Vec<Document>> {
        let collection = self.existing(ns)?;
        let mut out = Vec::new();
        if let Some(name) = &collection.options().clustered {
            out.push(doc! {
                "v": 2, "key": { "_id": 1 }, "name": name, "unique": true, "clustered": true,
            });
        }
        out.extend(
            collection
                .indexes()
                .iter()
                .map(|index| index.spec().to_document()),
        );
        Ok(out)
    }
}

fn describe(ns: &Namespace, named: &Named) -> Document {
    let options = named.options().to_document();
    match named {
        Named::View(_) => doc! {
            "name": &ns.coll,
            "type": "view",
            "options": options,
            "info": { "readOnly": true },
        },
        Named::Collection(collection) => {
            let uuid = Binary {
                subtype: BinarySubtype::Uuid,
                bytes: collection.uuid().bytes().to_vec(),
            };
            let mut out = doc! {
                "name": &ns.coll,
                "type": "collection",
                "options": options,
                "info": { "readOnly": false, "uuid": uuid },
            };
            if let Some(index) = collection.id_index() {
                out.insert("idIndex", index.spec().to_document());
            }
            out
        }
    }
}
