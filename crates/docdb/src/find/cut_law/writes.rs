//! Writes whose documents are found by keys that are cut.

use bson::{Bson, Document, RawBson, RawDocumentBuf, doc};

use super::super::tests::{Fixture, raw};
use super::{Case, Lane, data};
use crate::{DeleteStatement, FindAndModify, UpdateStatement};

impl Lane {
    /// Do one write of the documents that a query finds.
    pub(super) fn write(&mut self, case: &Case) {
        match self.rng.below(5) {
            0 => self.update_many(case),
            1 => self.delete_many(case),
            2 => self.upsert(case),
            3 => self.change_first(case),
            _ => self.delete_first(case),
        }
        self.look();
    }

    fn numbers(documents: &[Document]) -> Vec<i32> {
        let number = |document: &Document| document.get_i32("n").unwrap();
        let mut numbers: Vec<i32> = documents.iter().map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// All that match are marked, and nothing else; then some are given other values.
    fn update_many(&mut self, case: &Case) {
        let hint = self.drawn_hint();
        let mark = i64::try_from(self.rng.below(1 << 40)).unwrap();
        let change = RawBson::Document(raw(&doc! { "$set": { "mark": mark } }));
        let statement = UpdateStatement {
            multi: true,
            hint: hint.clone(),
            collation: case.collation.as_ref().map(raw),
            ..UpdateStatement::new(raw(&case.filter), change)
        };
        let how = format!("update by {hint:?}");
        let reply = self.update(statement);
        assert_eq!(reply, case.expected.len(), "{}", self.what(case, &how));
        self.look();
        let marked = |document: &&Document| document.get_i64("mark").ok() == Some(mark);
        let marked: Vec<Document> = self.documents.iter().filter(marked).cloned().collect();
        let wanted = Lane::numbers(&case.expected);
        assert_eq!(Lane::numbers(&marked), wanted, "{}", self.what(case, &how));
        for document in marked.iter().take(5) {
            self.give_another_value(document);
        }
    }

    /// Change an indexed field, unless an index forbids it.
    fn give_another_value(&mut self, document: &Document) {
        let field = data::FIELDS[self.rng.index(4)];
        let value = self.pool.draw(&mut self.rng);
        let change = RawBson::Document(raw(&doc! { "$set": { field: value } }));
        let filter = raw(&doc! { "n": document.get_i32("n").unwrap() });
        let Fixture { store, op, ns, .. } = &self.fixture;
        let statement = UpdateStatement::new(filter, change);
        let reply = store.update(op, ns, &[statement], true, false).unwrap();
        if let Some(refused) = reply.errors.first() {
            // The document may be new to a partial index on hashes, which have no arrays.
            let code = refused.error.code.0;
            assert!([11000, 16766].contains(&code), "{}: {refused:?}", self.seed);
        }
    }

    fn update(&self, statement: UpdateStatement) -> usize {
        let Fixture { store, op, ns, .. } = &self.fixture;
        let reply = store.update(op, ns, &[statement], true, false).unwrap();
        assert!(reply.errors.is_empty(), "{}: {:?}", self.seed, reply.errors);
        assert!(reply.upserted.is_empty(), "{}: a twin", self.seed);
        usize::try_from(reply.n).unwrap()
    }

    fn delete_many(&mut self, case: &Case) {
        let hint = self.drawn_hint();
        let statement = DeleteStatement {
            multi: true,
            hint: hint.clone(),
            collation: case.collation.as_ref().map(raw),
            ..DeleteStatement::new(raw(&case.filter))
        };
        let Fixture { store, op, ns, .. } = &self.fixture;
        let reply = store.delete(op, ns, &[statement], true).unwrap();
        let how = format!("delete by {hint:?}");
        let deleted = usize::try_from(reply.n).unwrap();
        assert_eq!(deleted, case.expected.len(), "{}", self.what(case, &how));
        let gone = Lane::numbers(&case.expected);
        let mut left = Lane::numbers(&self.documents);
        left.retain(|number| !gone.contains(number));
        self.look();
        let there = Lane::numbers(&self.documents);
        assert_eq!(there, left, "{}", self.what(case, &how));
        for document in &case.expected {
            self.insert(document);
        }
    }

    /// What matches is not inserted once more.
    fn upsert(&mut self, case: &Case) {
        if case.expected.is_empty() {
            return;
        }
        let change = RawBson::Document(raw(&doc! { "$set": { "seen": true } }));
        let statement = UpdateStatement {
            upsert: true,
            collation: case.collation.as_ref().map(raw),
            ..UpdateStatement::new(raw(&case.filter), change)
        };
        assert_eq!(self.update(statement), 1, "{}", self.what(case, "upsert"));
    }

    fn find_and_modify(&mut self, case: &Case, update: Option<RawBson>) -> Option<RawDocumentBuf> {
        let asked = FindAndModify {
            filter: raw(&case.filter),
            sort: case.sort.as_ref().map(|sort| raw(&sort.to_document())),
            update,
            collation: case.collation.as_ref().map(raw),
            hint: self.drawn_hint(),
            ..FindAndModify::default()
        };
        let Fixture { store, op, ns, .. } = &self.fixture;
        let reply = store.find_and_modify(op, ns, &asked).unwrap();
        let how = format!("findAndModify by {:?}", asked.hint);
        let first: Option<Document> = reply
            .value
            .as_ref()
            .map(|document| Document::try_from(&**document).unwrap());
        let first: Vec<Document> = first.into_iter().collect();
        self.agree(case, &first, Some(1), &how);
        reply.value
    }

    fn change_first(&mut self, case: &Case) {
        let change = doc! { "$set": { "first": Bson::Boolean(true) } };
        let change = RawBson::Document(raw(&change));
        self.find_and_modify(case, Some(change));
    }

    fn delete_first(&mut self, case: &Case) {
        if let Some(first) = self.find_and_modify(case, None) {
            self.insert(&Document::try_from(&*first).unwrap());
        }
    }
}
