//! Compares the contents of a killed server with what was acknowledged before the kill. Documents
//! are read in the order of their numbers, each is generated again and compared, and every index
//! must have the same number of entries.

use bson::{RawBsonRef, doc};
use stdx::time;

use super::database::Server;
use super::document;
use super::verify::count;
use crate::protocol::{Audit, Told};
use crate::targets::embedded::reconcile;
use crate::targets::findings::FAULTS_MAX;

/// Compare the collection with the rows acknowledged to each client, in the order of its commits.
pub(super) fn audit(server: &Server, told: &[Told]) -> Result<Audit, String> {
    let start = time::now();
    let (mut found, mut faults, mut text) = (Vec::new(), Vec::new(), String::new());
    let all = server.rows.find(doc! {}).sort(doc! { "_id": 1 }).run();
    let mut all = all.map_err(|e| server.text(&e))?;
    while all.advance().map_err(|e| server.text(&e))? {
        let row = all.current();
        let Ok(Some(RawBsonRef::Int64(id))) = row.get("_id") else {
            faults.push("there is a document without a number".to_owned());
            continue;
        };
        let id = id.cast_unsigned();
        found.push(id);
        let right = document::row(&server.generator, id, &mut text);
        if right.as_bytes() != row.as_bytes() && faults.len() < FAULTS_MAX {
            faults.push(format!("document {id} has a wrong value"));
        }
    }
    for (index, fields) in server.indexes().enumerate() {
        let entries = count(server, document::keys(fields))?;
        let rows = found.len();
        if entries != rows as u64 {
            faults.push(format!(
                "index {index} has {entries} entries, and there are {rows} documents"
            ));
        }
    }
    let mut audit = reconcile(told, &found);
    faults.truncate(FAULTS_MAX);
    audit.faults.extend(faults);
    audit.seconds = start.elapsed().as_secs_f64();
    Ok(audit)
}
