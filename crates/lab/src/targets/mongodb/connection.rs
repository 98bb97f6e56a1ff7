//! One client's operations on a server.

use std::ops::Range;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, doc};
use lab_report::error::{Error, Result};
use mongodb::options::Hint;

use super::database::Server;
use super::document;
use crate::targets::database::{
    Compared, Connection, Counted, Deleted, Meter, Part, Ranged, build_at_once,
};

/// A client: the generated rows of the next insert, and a buffer. The driver's pool provides its
/// socket.
pub(super) struct Link<'a> {
    server: &'a Server,
    batch: Vec<RawDocumentBuf>,
    bytes: u64,
    text: String,
    /// The document that [`Connection::get`] returned last.
    got: Option<RawDocumentBuf>,
}

impl<'a> Link<'a> {
    pub(super) fn new(server: &'a Server) -> Link<'a> {
        Link {
            server,
            batch: Vec::new(),
            bytes: 0,
            text: String::new(),
            got: None,
        }
    }

    /// The fields of an index, from 0.
    fn fields(&self, index: usize) -> Result<&'static [&'static str]> {
        let found = self.server.indexes().nth(index);
        found.ok_or_else(|| Error::target("there is no such index"))
    }

    fn entries(&self, rows: u64, indexed: bool) -> u64 {
        let each = if indexed {
            self.server.generator.entry_bytes()
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

    fn insert(&mut self) -> Result<u64> {
        let inserted = self.server.rows.insert_many(&self.batch).run();
        inserted.map_err(|e| self.server.text(&e))?;
        Ok(self.bytes)
    }

    fn delete(&mut self, rows: Range<u64>, indexed: bool) -> Result<Deleted> {
        let of = rows.end - rows.start;
        let filter = document::between(rows.start, rows.end);
        let deleted = self.server.rows.delete_many(filter).run();
        Ok(Deleted {
            found: deleted.map_err(|e| self.server.text(&e))?.deleted_count,
            // A delete sends keys to the server, not documents.
            bytes: of * 8 + self.entries(of, indexed),
        })
    }

    fn range(&mut self, index: usize, random: u64, id: u64, limit: usize) -> Result<Ranged> {
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
        let mut last =
            numbers(&RawDocumentBuf::try_from(&start).map_err(|e| Error::target(e.to_string()))?);
        let mut ranged = Ranged {
            entries: 0,
            in_order: true,
        };
        while cursor.advance().map_err(|e| server.text(&e))? {
            let here = numbers(cursor.current());
            ranged.in_order &= last <= here && here.len() == fields.len();
            last = here;
            ranged.entries += 1;
        }
        Ok(ranged)
    }

    fn get(&mut self, id: u64) -> Result<bool> {
        let filter = doc! { "_id": document::number(id) };
        let found = self.server.rows.find_one(filter).run();
        self.got = found.map_err(|e| self.server.text(&e))?;
        Ok(self.got.is_some())
    }

    fn matches(&mut self, id: u64) -> bool {
        let expected = document::row(&self.server.generator, id, &mut self.text);
        self.got.as_ref() == Some(&expected)
    }

    fn rows(&mut self, visit: &mut dyn FnMut(Compared) -> bool) -> Result<()> {
        let server = self.server;
        let all = server.rows.find(doc! {}).sort(doc! { "_id": 1 }).run();
        let mut all = all.map_err(|e| server.text(&e))?;
        while all.advance().map_err(|e| server.text(&e))? {
            let row = all.current();
            let id = match row.get("_id") {
                Ok(Some(RawBsonRef::Int64(id))) => Some(id.cast_unsigned()),
                _ => None,
            };
            let expected = id.map(|id| document::row(&server.generator, id, &mut self.text));
            let compared = Compared {
                id,
                right: expected.is_some_and(|expected| expected.as_bytes() == row.as_bytes()),
                digests: [0; 3],
            };
            if !visit(compared) {
                break;
            }
        }
        Ok(())
    }

    fn count(&mut self, part: Part) -> Result<Counted> {
        let keys = match part {
            Part::Rows => doc! { "_id": 1 },
            Part::Index(index) => document::keys(self.fields(index)?),
        };
        let rows = &self.server.rows;
        let counted = rows.count_documents(doc! {}).hint(Hint::Keys(keys)).run();
        Ok(Counted {
            entries: counted.map_err(|e| self.server.text(&e))?,
            digest: 0,
        })
    }

    fn scan(&mut self, part: Part, piece: u64, meter: &dyn Meter) -> Result<u64> {
        let server = self.server;
        let batch = u32::try_from(piece).unwrap_or(u32::MAX);
        let mut find = server.rows.find(doc! {}).batch_size(batch);
        if let Part::Index(index) = part {
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

    fn build(&mut self, index: usize, rows: Range<u64>, meter: &dyn Meter) -> Result<()> {
        let of = (index, self.server.generator.params());
        build_at_once(of, rows.end - rows.start, meter, || {
            self.server.create_index(index)
        })
    }
}

/// The values of an index entry as doubles, in the order of its fields. The order of the doubles
/// suffices for the comparison of entries: a date in milliseconds has 41 bits, and equal values
/// count as in order.
fn numbers(entry: &RawDocument) -> Vec<f64> {
    let values = entry.iter().flatten().map(|(_, value)| match value {
        RawBsonRef::Int32(n) => f64::from(n),
        RawBsonRef::Int64(n) => n as f64,
        RawBsonRef::Double(n) => n,
        _ => f64::NAN,
    });
    values.collect()
}
