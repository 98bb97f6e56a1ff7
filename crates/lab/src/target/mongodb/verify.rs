//! Is the collection what the workload's model says? The rows and the entries of every index are
//! counted, each by its own index; a sample of the rows is made again and compared byte by byte.

use bson::{Document, doc};
use mongodb::options::Hint;
use stdx::{Rng, time};

use super::database::Server;
use super::document;
use crate::record::Integrity;
use crate::target::database::Live;

/// Rows that are compared, drawn at random; the first and the last are always among them.
const SAMPLE: u64 = 2000;

/// Faults that are told word for word.
const FAULTS_MAX: usize = 10;

/// Compare.
pub(super) fn verify(server: &Server, live: Live) -> Integrity {
    let start = time::now();
    let mut check = Check {
        server,
        live,
        found: 0,
        faults: Vec::new(),
    };
    if let Err(message) = check.all() {
        check.fault(message);
    }
    Integrity {
        checked: true,
        rows_expected: live.rows(),
        rows_found: check.found,
        faults: check.faults,
        seconds: start.elapsed().as_secs_f64(),
    }
}

struct Check<'a> {
    server: &'a Server,
    live: Live,
    found: u64,
    faults: Vec<String>,
}

impl Check<'_> {
    fn fault(&mut self, message: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(message);
        }
    }

    fn all(&mut self) -> Result<(), String> {
        let rows = self.live.rows();
        self.found = self.count(doc! { "_id": 1 })?;
        if self.found != rows {
            let found = self.found;
            self.fault(format!("{found} rows, and there should be {rows}"));
        }
        if self.live.indexed {
            for (index, fields) in self.server.indexes().into_iter().enumerate() {
                let entries = self.count(document::keys(fields))?;
                if entries != rows {
                    let name = index + 1;
                    self.fault(format!(
                        "index {name} has {entries} entries, and there should be {rows}"
                    ));
                }
            }
        }
        self.sample()
    }

    /// The documents there are by way of one index.
    fn count(&self, keys: Document) -> Result<u64, String> {
        let server = self.server;
        let counted = server.rows.count_documents(doc! {}).hint(Hint::Keys(keys));
        counted.run().map_err(|e| server.text(&e))
    }

    fn sample(&mut self) -> Result<(), String> {
        let Live { low, high, .. } = self.live;
        if low == high {
            return Ok(());
        }
        let server = self.server;
        let mut rng = Rng::new(server.generator.params().seed ^ high);
        let mut text = String::new();
        for turn in 0..SAMPLE.min(high - low) {
            let id = match turn {
                0 => low,
                1 => high - 1,
                _ => low + rng.below(high - low),
            };
            let filter = doc! { "_id": document::number(id) };
            let found = server.rows.find_one(filter).run();
            match found.map_err(|e| server.text(&e))? {
                None => self.fault(format!("row {id} is missing")),
                Some(row) if row != document::row(&server.generator, id, &mut text) => {
                    self.fault(format!("row {id} has a wrong value"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
