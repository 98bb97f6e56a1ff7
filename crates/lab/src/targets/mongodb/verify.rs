//! Compares the collection with the workload's model. The rows and the entries of every index are
//! counted, each by its own index; a sample of the rows is generated again and compared byte by
//! byte.

use bson::{Document, doc};
use lab_report::record::Integrity;
use mongodb::options::Hint;

use super::database::Server;
use super::document;
use crate::targets::database::Live;
use crate::targets::findings::{Findings, Found};

/// Compare the collection with the model.
pub(super) fn verify(server: &Server, live: Live) -> Integrity {
    Findings::of(live, |findings| {
        findings.rows(count(server, doc! { "_id": 1 })?, live);
        if live.indexed {
            for (index, fields) in server.indexes().enumerate() {
                let entries = count(server, document::keys(fields))?;
                findings.entries(index, entries, live);
            }
        }
        let seed = server.generator.params().seed;
        let mut text = String::new();
        findings.sample(live, seed, |id| {
            let filter = doc! { "_id": document::number(id) };
            let found = server.rows.find_one(filter).run();
            Ok(match found.map_err(|e| server.text(&e))? {
                None => Found::Missing,
                Some(row) if row != document::row(&server.generator, id, &mut text) => Found::Wrong,
                Some(_) => Found::Right,
            })
        })
    })
}

/// The number of documents, counted by one index.
pub(super) fn count(server: &Server, keys: Document) -> Result<u64, String> {
    let counted = server.rows.count_documents(doc! {}).hint(Hint::Keys(keys));
    counted.run().map_err(|e| server.text(&e))
}
