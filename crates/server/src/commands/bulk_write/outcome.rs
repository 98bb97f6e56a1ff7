//! The outcomes of the statements of `bulkWrite`: one document for each, and totals.

use bson::{Bson, RawDocumentBuf};
use query::Error;
use wire::Builder;

use crate::commands::update::integer;
use crate::request::failure;

/// The outcomes of the statements so far.
#[derive(Default)]
pub(super) struct Outcome {
    /// Whether to report only failures.
    pub(super) errors_only: bool,
    /// One document per reported statement.
    pub(super) items: Vec<RawDocumentBuf>,
    /// Statements that failed.
    pub(super) failed: usize,
    /// Documents inserted.
    pub(super) inserted: i64,
    /// Documents that updates matched.
    pub(super) matched: i64,
    /// Documents that updates changed.
    pub(super) modified: i64,
    /// Documents that updates inserted.
    pub(super) upserted: i64,
    /// Documents deleted.
    pub(super) deleted: i64,
    /// Numbers of statements that an earlier attempt executed.
    pub(super) retried: Vec<i32>,
}

fn index(reply: &mut Builder, at: usize) {
    reply.int("idx", i32::try_from(at).unwrap_or(i32::MAX));
}

impl Outcome {
    fn item(&mut self, at: usize, fill: impl FnOnce(&mut Builder)) {
        if self.errors_only {
            return;
        }
        let mut item = Builder::new();
        item.double("ok", 1.0);
        index(&mut item, at);
        fill(&mut item);
        self.items.push(item.into_document());
    }

    /// Record an inserted document.
    pub(super) fn inserted(&mut self, at: usize) {
        self.inserted += 1;
        self.item(at, |item| {
            item.int("n", 1);
        });
    }

    /// Record updated documents, or a document inserted with this `_id`.
    pub(super) fn updated(&mut self, at: usize, n: i64, modified: i64, upserted: Option<&Bson>) {
        self.modified += modified;
        match upserted {
            Some(_) => self.upserted += 1,
            None => self.matched += n,
        }
        self.item(at, |item| {
            integer(item, "n", n);
            integer(item, "nModified", modified);
            if let Some(id) = upserted {
                item.open_document("upserted").value("_id", id).close();
            }
        });
    }

    /// Record deleted documents.
    pub(super) fn deleted(&mut self, at: usize, n: i64) {
        self.deleted += n;
        self.item(at, |item| integer(item, "n", n));
    }

    /// Record a failed statement; `update` marks an update.
    pub(super) fn failed(&mut self, at: usize, error: &Error, updates: bool) {
        self.failed += 1;
        let mut item = Builder::new();
        item.double("ok", 0.0);
        index(&mut item, at);
        item.int("code", error.code.0);
        item.string("errmsg", &error.message);
        if let Some(details) = &error.details {
            failure::append(&mut item, details);
        }
        item.int("n", 0);
        if updates {
            item.int("nModified", 0);
        }
        self.items.push(item.into_document());
    }

    /// Append the sums to a reply.
    pub(super) fn sums(&self, reply: &mut Builder) {
        reply.int("nErrors", i32::try_from(self.failed).unwrap_or(i32::MAX));
        for (name, n) in [
            ("nInserted", self.inserted),
            ("nMatched", self.matched),
            ("nModified", self.modified),
            ("nUpserted", self.upserted),
            ("nDeleted", self.deleted),
        ] {
            integer(reply, name, n);
        }
    }
}
