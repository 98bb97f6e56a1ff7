//! Random histories of a primary: operations of every kind that leaves entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use bson::{Bson, DateTime, Document, RawDocument, RawDocumentBuf, doc};
use docdb::{
    CollectionOptions, FindAndModify, IndexNames, InsertOptions, Namespace, Op, Store,
    UpdateStatement,
};
use stdx::Rng;

use crate::lab::{op, raw};
use crate::session::session;
use crate::write::{del, set};

/// A primary's history.
pub(crate) struct History {
    pub(crate) rng: Rng,
    store: Arc<Store>,
    /// Sessions whose last number has an entry.
    pub(crate) sessions: BTreeSet<u8>,
    /// Sessions that are used no more: a write under their last number has no entry.
    pub(crate) retired: BTreeSet<u8>,
    number: i64,
}

fn specs() -> Vec<Document> {
    let mut specs = crate::random::specs();
    specs.extend([
        doc! { "key": { "t": 1 }, "name": "t", "expireAfterSeconds": 60 },
        doc! { "key": { "b": 1 }, "name": "b" },
    ]);
    specs
}

fn options() -> Vec<Document> {
    vec![
        doc! {},
        doc! { "capped": true, "size": 4096, "max": 6 },
        doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } },
        doc! { "changeStreamPreAndPostImages": { "enabled": true } },
        doc! { "collation": { "locale": "en", "strength": 2 } },
        doc! { "validator": { "a": { "$exists": true } }, "validationAction": "warn" },
    ]
}

impl History {
    pub(crate) fn new(store: &Arc<Store>, seed: u64) -> History {
        History {
            rng: Rng::new(seed),
            store: Arc::clone(store),
            sessions: BTreeSet::new(),
            retired: BTreeSet::new(),
            number: 0,
        }
    }

    /// Continue with what a store has, after a rollback or a restart.
    pub(crate) fn resume(&mut self, store: &Arc<Store>, sessions: &BTreeSet<u8>) {
        self.store = Arc::clone(store);
        let lost = self.sessions.difference(sessions).copied();
        self.retired.extend(lost);
        self.sessions.clone_from(sessions);
    }

    /// Hold the store no longer.
    pub(crate) fn release(&mut self) {
        let other = super::pair::Member::new(kv::memory::factory());
        self.store = Arc::clone(&other.store);
    }

    fn int(&mut self, below: u64) -> i32 {
        i32::try_from(self.rng.below(below)).unwrap()
    }

    fn ns(&mut self) -> Namespace {
        let names = ["a", "b", "c", "d"];
        let db = if self.rng.chance(0.2) {
            "other"
        } else {
            "test"
        };
        Namespace::new(db, names[self.rng.index(names.len())]).unwrap()
    }

    fn value(&mut self) -> Bson {
        match self.rng.below(7) {
            0 => Bson::Null,
            1 => Bson::Double(self.rng.unit() * 10.0),
            2 => Bson::String("aBc".chars().take(self.rng.index(4)).collect()),
            3 => Bson::Int64(self.int(10).into()),
            4 => Bson::Array((0..self.int(3)).map(Bson::Int32).collect()),
            _ => Bson::Int32(self.int(10)),
        }
    }

    fn fields(&mut self) -> Document {
        let mut out = Document::new();
        for name in ["a", "b"] {
            if self.rng.chance(0.6) {
                out.insert(name, self.value());
            }
        }
        if self.rng.chance(0.3) {
            out.insert("u", self.int(12));
        }
        if self.rng.chance(0.4) {
            let count = self.rng.index(4);
            let items = (0..count).map(|_| Bson::Document(doc! { "x": self.value() }));
            out.insert("l", items.collect::<Vec<_>>());
        }
        if self.rng.chance(0.1) {
            out.insert("t", DateTime::from_millis(1_000));
        }
        out
    }

    fn document(&mut self) -> RawDocumentBuf {
        let id = self.int(24);
        let mut out = match self.rng.chance(0.2) {
            true => doc! { "_id": "x".repeat(usize::try_from(id).unwrap()) },
            false => doc! { "_id": id },
        };
        out.extend(self.fields());
        raw(&out)
    }

    fn change(&mut self) -> Document {
        let fields = self.fields();
        match self.rng.below(5) {
            0 => fields,
            1 => doc! { "$push": { "l": { "x": self.value() } } },
            2 => doc! { "$unset": { "b": "", "u": "" }, "$inc": { "n": 1 } },
            3 => doc! { "$set": { "s.t": self.value() } },
            _ if fields.is_empty() => doc! { "$set": { "a": self.value() } },
            _ => doc! { "$set": fields },
        }
    }

    fn statement(&mut self, multi: bool) -> UpdateStatement {
        let filter = doc! { "_id": self.int(24) };
        let change = self.change();
        let replaces = !change.keys().any(|name| name.starts_with('$'));
        let mut statement = set(filter, change);
        statement.upsert = self.rng.chance(0.2);
        if multi && !replaces {
            statement = set(
                doc! { "b": { "$gt": self.int(10) } },
                doc! { "$inc": { "m": 1 } },
            );
            statement.multi = true;
        }
        statement
    }

    /// Run a retryable write. A session with a write that leaves no entry is not used again.
    fn retryable(&mut self, write: impl FnOnce(&Store, &Op<'_>)) {
        let free: Vec<u8> = (0..u8::MAX)
            .filter(|id| !self.retired.contains(id))
            .collect();
        let id = free[self.rng.index(6)];
        self.number += 1;
        let before = self.store.oplog_visible();
        write(&self.store, &session(id, self.number));
        match self.store.oplog_visible() == before {
            true => {
                self.retired.insert(id);
                self.sessions.remove(&id);
            }
            false => drop(self.sessions.insert(id)),
        }
    }

    /// One operation. Its errors leave nothing.
    pub(crate) fn step(&mut self) {
        let ns = self.ns();
        match self.rng.below(32) {
            0..8 => self.insert(&ns),
            8..14 => self.update(&ns),
            14..16 => {
                let gone = del(doc! { "_id": self.int(24) }, false);
                match self.rng.chance(0.5) {
                    true => self.retryable(|store, op| {
                        drop(store.delete(op, &ns, &[gone], true));
                    }),
                    false => drop(self.store.delete(&op(), &ns, &[gone], true)),
                }
            }
            16 => {
                let gone = del(doc! { "a": { "$lt": self.int(9) } }, true);
                drop(self.store.delete(&op(), &ns, &[gone], true));
            }
            17 if self.rng.chance(0.5) => self.upserts(&ns),
            17 => self.find_and_modify(&ns),
            18..20 => self.transaction(),
            20 => self.many(&ns),
            _ => self.catalog(&ns),
        }
    }

    fn insert(&mut self, ns: &Namespace) {
        let count = 1 + self.rng.index(4);
        let documents: Vec<_> = (0..count).map(|_| self.document()).collect();
        let documents: Vec<&RawDocument> = documents.iter().map(AsRef::as_ref).collect();
        let options = InsertOptions::default();
        match self.rng.chance(0.4) {
            true => self.retryable(|store, op| {
                drop(store.insert(op, ns, &documents, options));
            }),
            false => drop(self.store.insert(&op(), ns, &documents, options)),
        }
    }

    fn update(&mut self, ns: &Namespace) {
        let multi = self.rng.chance(0.2);
        let statement = [self.statement(multi)];
        match self.rng.chance(0.4) && !multi {
            true => self.retryable(|store, op| {
                drop(store.update(op, ns, &statement, true, false));
            }),
            false => drop(self.store.update(&op(), ns, &statement, true, false)),
        }
    }

    /// A retryable write of several statements whose results differ: each has a record.
    fn upserts(&mut self, ns: &Namespace) {
        let number = self.number;
        let one = |part: i32| {
            let id = format!("{number}.{part}");
            let mut statement = set(doc! { "_id": id }, doc! { "$set": { "a": part } });
            statement.upsert = true;
            statement
        };
        let statements: Vec<UpdateStatement> = (0..3).map(one).collect();
        self.retryable(|store, op| drop(store.update(op, ns, &statements, true, false)));
    }

    fn find_and_modify(&mut self, ns: &Namespace) {
        let update = self.change();
        let update = bson::RawBson::Document(raw(&update));
        let asked = FindAndModify {
            filter: raw(&doc! { "_id": self.int(24) }),
            update: self.rng.chance(0.7).then_some(update),
            ..FindAndModify::default()
        };
        self.retryable(|store, op| drop(store.find_and_modify(op, ns, &asked)));
    }

    /// A multi-document transaction, which may create collections.
    fn transaction(&mut self) {
        let count = 1 + self.int(4);
        let writes: Vec<_> = (0..count)
            .map(|_| (self.ns(), self.document(), self.statement(false)))
            .collect();
        let commits = self.rng.chance(0.8);
        let spec = self
            .rng
            .chance(0.2)
            .then(|| doc! { "key": { "a": 1 }, "name": "made" });
        let made = format!("made{}", self.rng.below(6));
        let store = Arc::clone(&self.store);
        self.retryable(move |_, op| {
            for (index, (ns, document, statement)) in writes.into_iter().enumerate() {
                let (inner, spec, made) = (Arc::clone(&store), spec.clone(), made.clone());
                let spec = spec.filter(|_| index == 0);
                let body = move |op: &Op<'_>| {
                    let options = InsertOptions::default();
                    if let Some(spec) = spec {
                        let made = Namespace::new("test", made)?;
                        inner.create_indexes(op, &made, &[spec])?;
                        inner.insert(op, &made, &[&document], options)?;
                    }
                    let reply = inner.insert(op, &ns, &[&document], options)?;
                    let _ = inner.update(op, &ns, &[statement], true, false)?;
                    Ok(reply.n)
                };
                let mut part = crate::lab::op();
                part.session = op.session.clone();
                if store.in_transaction(part, index == 0, body).is_err() {
                    return;
                }
            }
            match commits {
                true => drop(store.commit_transaction(op)),
                false => drop(store.abort_transaction(op)),
            }
        });
    }

    /// A batch that is a chain of entries, and its removal.
    fn many(&mut self, ns: &Namespace) {
        if !self.rng.chance(0.3) {
            return;
        }
        let documents: Vec<_> = (0..700)
            .map(|id| raw(&doc! { "_id": 1_000 + id, "a": 1 }))
            .collect();
        let documents: Vec<&RawDocument> = documents.iter().map(AsRef::as_ref).collect();
        drop(
            self.store
                .insert(&op(), ns, &documents, InsertOptions::default()),
        );
        let gone = del(doc! { "_id": { "$gt": 1_000 + self.int(700) } }, true);
        drop(self.store.delete(&op(), ns, &[gone], true));
    }

    fn catalog(&mut self, ns: &Namespace) {
        let (store, other) = (Arc::clone(&self.store), self.ns());
        match self.rng.below(12) {
            0..2 => {
                let all = options();
                let chosen = &all[self.rng.index(all.len())];
                let parsed = CollectionOptions::parse(chosen).unwrap();
                drop(store.create(&op(), ns, parsed));
            }
            2 => drop(store.drop_collection(&op(), ns)),
            3 => drop(store.rename(&op(), ns, &other, self.rng.chance(0.6))),
            4..7 => {
                let (all, count) = (specs(), 1 + self.rng.index(2));
                let chosen: Vec<Document> = (0..count)
                    .map(|_| all[self.rng.index(all.len())].clone())
                    .collect();
                drop(store.create_indexes(&op(), ns, &chosen));
            }
            7 => {
                let all = specs();
                let name = all[self.rng.index(all.len())].get_str("name").unwrap();
                let names = match self.rng.chance(0.2) {
                    true => IndexNames::All,
                    false => IndexNames::Names(vec![name.to_owned()]),
                };
                drop(store.drop_indexes(&op(), ns, &names));
            }
            8 => self.modify(ns),
            9 => match self.rng.below(4) {
                0 => drop(store.convert_to_capped(&op(), ns, 2_048)),
                1 => drop(store.drop_database(&op(), &ns.db)),
                2 => self.view(ns),
                _ => drop(store.append_oplog_note(&op(), &raw(&doc! { "msg": "note" }))),
            },
            _ => drop(store.expire(&op())),
        }
    }

    fn modify(&mut self, ns: &Namespace) {
        let change = match self.rng.below(6) {
            0 => doc! { "validationLevel": "off" },
            1 => doc! { "index": { "name": "ab", "hidden": self.rng.chance(0.5) } },
            2 => doc! { "changeStreamPreAndPostImages": { "enabled": self.rng.chance(0.7) } },
            3 => doc! { "index": { "name": "b", "prepareUnique": true } },
            4 => doc! { "index": { "name": "b", "unique": true } },
            _ => doc! { "index": { "name": "t", "expireAfterSeconds": 100 + self.int(9) } },
        };
        drop(self.store.coll_mod(&op(), ns, &raw(&change)));
    }

    fn view(&mut self, ns: &Namespace) {
        let view = Namespace::new(ns.db.as_str(), "view").unwrap();
        match self.rng.below(3) {
            0 => drop(self.store.drop_collection(&op(), &view)),
            1 => {
                let change = doc! { "viewOn": &ns.coll, "pipeline": [{ "$match": { "a": 1 } }] };
                drop(self.store.coll_mod(&op(), &view, &raw(&change)));
            }
            _ => {
                let options = doc! { "viewOn": &ns.coll, "pipeline": [] };
                let options = CollectionOptions::parse(&options).unwrap();
                drop(self.store.create(&op(), &view, options));
            }
        }
    }
}
