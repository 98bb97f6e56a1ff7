//! One client's operations on a server.

use std::ops::Range;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::options::Hint;

use super::database::Server;
use super::document;
use crate::targets::database::{Connection, Meter, indexed_rows};

/// A client: the rows it is about to insert, and a buffer. The driver's pool gives it a socket.
pub(super) struct Link<'a> {
    server: &'a Server,
    batch: Vec<RawDocumentBuf>,
    bytes: u64,
    text: String,
}

impl<'a> Link<'a> {
    pub(super) fn new(server: &'a Server) -> Link<'a> {
        Link {
            server,
            batch: Vec::new(),
            bytes: 0,
            text: String::new(),
        }
    }

    /// The fields of an index, from 0.
    fn fields(&self, index: usize) -> Result<&'static [&'static str], String> {
        let found = self.server.indexes().nth(index);
        found.ok_or("there is no such index".to_owned())
    }

    fn entries(&self, rows: u64, indexed: bool) -> u64 {
        let each = if indexed {
            document::entry_bytes(&self.server.generator)
        } else {
            0
        };
        rows * each as u64
    }
}

impl Connection for Link<'_> {
    fn fill(&mut self, rows: Range<u64>, indexed: bool) {
        self.batch.clear();
        self.bytes = self.entries(rows.end - rows.start, indexed);
        for id in rows {
            let row = document::row(&self.server.generator, id, &mut self.text);
            self.bytes += row.as_bytes().len() as u64;
            self.batch.push(row);
        }
    }

    fn insert(&mut self) -> Result<u64, String> {
        let inserted = self.server.rows.insert_many(&self.batch).run();
        inserted.map_err(|e| self.server.text(&e))?;
        Ok(self.bytes)
    }

    fn delete(
        &mut self,
        rows: Range<u64>,
        indexed: bool,
        meter: &dyn Meter,
    ) -> Result<u64, String> {
        let of = rows.end - rows.start;
        let filter = document::between(rows.start, rows.end);
        let deleted = self.server.rows.delete_many(filter).run();
        let found = deleted.map_err(|e| self.server.text(&e))?.deleted_count;
        if found != of {
            meter.wrong(format!("{found} of {of} old rows found"));
        }
        // A delete sends keys to the server, not documents.
        Ok(of * 8 + self.entries(of, indexed))
    }

    fn range(
        &mut self,
        index: usize,
        random: u64,
        id: u64,
        limit: usize,
        meter: &dyn Meter,
    ) -> Result<u64, String> {
        let server = self.server;
        let fields = self.fields(index)?;
        let shape = server.generator.params().shape;
        let sale = server.generator.query_sale(random, id);
        let found = server
            .rows
            .find(doc! {})
            .min(document::bound(&sale, shape, fields))
            .hint(Hint::Keys(document::keys(fields)))
            .projection(document::covered(fields))
            .limit(i64::try_from(limit).unwrap_or(i64::MAX))
            .run();
        let mut cursor = found.map_err(|e| server.text(&e))?;
        let start = document::bound(&sale, shape, fields);
        let mut last = numbers(&RawDocumentBuf::try_from(&start).map_err(|e| e.to_string())?);
        let mut met = 0;
        while cursor.advance().map_err(|e| server.text(&e))? {
            let here = numbers(cursor.current());
            if here < last || here.len() != fields.len() {
                meter.wrong(format!("a range query on index {index} was out of order"));
            }
            last = here;
            met += 1;
        }
        Ok(met)
    }

    fn point(&mut self, id: u64, meter: &dyn Meter) -> Result<bool, String> {
        let server = self.server;
        let filter = doc! { "_id": document::number(id) };
        let found = server.rows.find_one(filter).run();
        let Some(found) = found.map_err(|e| server.text(&e))? else {
            return Ok(false);
        };
        let (text, mut right) = (&mut self.text, false);
        meter.generate(&mut || right = document::row(&server.generator, id, text) == found);
        if !right {
            meter.wrong(format!("row {id} has a wrong value"));
        }
        Ok(true)
    }

    fn scan(&mut self, part: usize, piece: u64, meter: &dyn Meter) -> Result<u64, String> {
        let server = self.server;
        let batch = u32::try_from(piece).unwrap_or(u32::MAX);
        let mut find = server.rows.find(doc! {}).batch_size(batch);
        if let Some(index) = part.checked_sub(1) {
            let fields = self.fields(index)?;
            find = find
                .hint(Hint::Keys(document::keys(fields)))
                .projection(document::covered(fields));
        }
        meter.begin();
        let mut cursor = find.run().map_err(|e| server.text(&e))?;
        let mut all = 0;
        loop {
            let (mut found, mut bytes) = (0, 0);
            while found < piece && cursor.advance().map_err(|e| server.text(&e))? {
                found += 1;
                bytes += cursor.current().as_bytes().len();
            }
            std::hint::black_box(bytes);
            meter.end();
            all += found;
            meter.met(found);
            if found < piece || meter.stopped() {
                return Ok(all);
            }
            meter.begin();
        }
    }

    fn build(&mut self, index: usize, rows: Range<u64>, meter: &dyn Meter) -> Result<(), String> {
        meter.begin();
        self.server.create_index(index)?;
        meter.end();
        let count = rows.end - rows.start;
        let shape = self.server.generator.params().shape;
        let each = shape.key_bytes().get(index).copied().unwrap_or(0);
        meter.wrote(indexed_rows(index, count, 0..count), count * each as u64);
        Ok(())
    }
}

/// The values of an index entry, in the order of its fields. A double orders all of them well
/// enough (a date in milliseconds has 41 bits; equal values are in order).
fn numbers(entry: &RawDocument) -> Vec<f64> {
    let values = entry.iter().flatten().map(|(_, value)| match value {
        RawBsonRef::Int32(n) => f64::from(n),
        RawBsonRef::Int64(n) => n as f64,
        RawBsonRef::Double(n) => n,
        _ => f64::NAN,
    });
    values.collect()
}
