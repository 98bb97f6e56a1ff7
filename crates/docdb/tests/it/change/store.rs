//! `$changeStream` as a cursor of a store.

use std::sync::Arc;

use bson::{Document, doc};
use docdb::change::token::Token;
use docdb::{Batch, CollectionOptions, Namespace, Verbosity, View};

use super::{everything, on};
use crate::lab::{Lab, documents, is_ready, ns, of, on_each, op, raw};
use crate::session::session;
use crate::write::{del, set};

pub(super) fn watch(lab: &Lab, ns: &Namespace, stages: &[Document]) -> query::Result<Batch> {
    lab.store.aggregate(&op(), ns, &of(stages))
}

pub(super) fn stream(options: Document) -> [Document; 1] {
    [doc! { "$changeStream": options }]
}

/// The next batch, of at most `size` events that are there now.
pub(super) fn more(lab: &Lab, batch: &Batch, size: u64) -> Batch {
    lab.more(batch, size).unwrap()
}

fn types(batch: &Batch) -> Vec<String> {
    let name = |event: &Document| event.get_str("operationType").unwrap().to_owned();
    documents(batch).iter().map(name).collect()
}

pub(super) fn ids(batch: &Batch) -> Vec<i32> {
    let id = |event: &Document| {
        let key = event.get_document("documentKey").unwrap();
        key.get_i32("_id").unwrap()
    };
    documents(batch).iter().map(id).collect()
}

pub(super) fn resume(batch: &Batch) -> Document {
    Document::try_from(&**batch.resume.as_ref().unwrap()).unwrap()
}

/// `aggregate::watch`: C1.
#[test]
fn a_cursor_follows_the_oplog_and_each_batch_has_its_token() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        let first = watch(lab, &on("c"), &stream(doc! {})).unwrap();
        assert_eq!(first.documents.len(), 0, "it starts now");
        let some: Vec<Document> = (1..8).map(|id| doc! { "_id": id }).collect();
        lab.insert(&ns("c"), &some[..5]);
        lab.insert(&ns("other"), &[doc! { "_id": 9 }]);
        lab.insert(&ns("c"), &some[5..]);
        let mut all = Vec::new();
        let mut batch = more(lab, &first, 2);
        loop {
            assert_ne!(batch.id, 0);
            let Some(last) = documents(&batch).pop() else {
                break;
            };
            assert_eq!(last.get_document("_id").unwrap(), &resume(&batch), "C1");
            let again = stream(doc! { "resumeAfter": resume(&batch) });
            let rest = watch(lab, &on("c"), &again).unwrap();
            all.extend(ids(&batch));
            let there: Vec<i32> = (1..8).filter(|id| !all.contains(id)).collect();
            assert_eq!(ids(&rest), there, "C1: the rest on {}", lab.engine());
            batch = more(lab, &batch, 2);
        }
        assert_eq!(all, [1, 2, 3, 4, 5, 6, 7]);
        let again = stream(doc! { "startAfter": resume(&first) });
        assert_eq!(ids(&watch(lab, &on("c"), &again).unwrap()), all);
        lab.insert(&ns("other"), &[doc! { "_id": 10 }]);
        let later = more(lab, &batch, 2);
        let (old, new) = (resume(&batch), resume(&later));
        let token = |document: &Document| Token::parse(&raw(document)).unwrap();
        assert!(token(&old) < token(&new), "the token moves without events");
    });
}

#[test]
fn an_invalidate_closes_the_cursor() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        let first = watch(lab, &on("c"), &stream(doc! {})).unwrap();
        lab.store.drop_collection(&op(), &ns("c")).unwrap();
        let batch = more(lab, &first, 1);
        assert_eq!(types(&batch), ["drop"]);
        let last = more(lab, &batch, 5);
        assert_eq!(types(&last), ["invalidate"]);
        assert_eq!(last.id, 0);
        lab.insert(&ns("c"), &[doc! { "_id": 1 }]);
        let again = stream(doc! { "startAfter": resume(&last) });
        assert_eq!(ids(&watch(lab, &on("c"), &again).unwrap()), [1]);
        let again = stream(doc! { "resumeAfter": resume(&last) });
        let error = watch(lab, &on("c"), &again).unwrap_err();
        assert_eq!(error.code.0, 260);
    });
}

#[test]
fn stages_behind_filter_and_change_events() {
    on_each(|lab| {
        let stages = [
            doc! { "$changeStream": {} },
            doc! { "$match": { "operationType": "insert", "fullDocument.a": { "$gt": 1 } } },
            doc! { "$project": { "a": "$fullDocument.a", "documentKey": 1 } },
            doc! { "$changeStreamSplitLargeEvent": {} },
        ];
        let first = watch(lab, &on(""), &stages).unwrap();
        for a in 0..4 {
            lab.insert(&ns("c"), &[doc! { "_id": a, "a": a }]);
        }
        let batch = more(lab, &first, 9);
        let mut found = documents(&batch);
        for event in &mut found {
            event.remove("_id");
        }
        let expected = [2, 3].map(|a| doc! { "documentKey": { "_id": a }, "a": a });
        assert_eq!(found, expected);
        let without = [
            doc! { "$changeStream": {} },
            doc! { "$project": { "_id": 0 } },
        ];
        let first = watch(lab, &on("c"), &without).unwrap();
        lab.insert(&ns("c"), &[doc! { "_id": 9 }]);
        let error = lab.more(&first, 9).unwrap_err();
        assert_eq!(error.code.0, 280, "{error}");
    });
}

#[test]
fn a_large_event_is_split_or_refused() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1, "a": 1 }]);
        let large = "x".repeat(9 << 20);
        let lookup = doc! { "$changeStream": { "fullDocument": "updateLookup" } };
        let whole = watch(lab, &on("c"), std::slice::from_ref(&lookup)).unwrap();
        let split = doc! { "$changeStreamSplitLargeEvent": {} };
        let parts = watch(lab, &on("c"), &[lookup.clone(), split.clone()]).unwrap();
        let change = set(doc! { "_id": 1 }, doc! { "$set": { "large": large } });
        lab.store
            .update(&op(), &ns("c"), &[change], true, false)
            .unwrap();
        let error = lab.more(&whole, 9).unwrap_err();
        assert_eq!(error.code.0, 10_334);
        let one = more(lab, &parts, 9);
        let two = more(lab, &one, 9);
        let shown = |batch: &Batch| {
            let mut all = documents(batch);
            assert_eq!(all.len(), 1);
            all.remove(0)
        };
        let of_two = |fragment: i32| doc! { "fragment": fragment, "of": 2 };
        for (batch, number) in [(&one, 1), (&two, 2)] {
            let split = shown(batch).get_document("splitEvent").unwrap().clone();
            assert_eq!(split, of_two(number));
        }
        let mut again = lookup;
        again
            .get_document_mut("$changeStream")
            .unwrap()
            .insert("resumeAfter", resume(&one));
        let rest = watch(lab, &on("c"), &[again, split]).unwrap();
        assert_eq!(shown(&rest), shown(&two), "C1");
    });
}

#[test]
fn the_current_document_is_looked_up() {
    on_each(|lab| {
        let french = doc! { "collation": { "locale": "fr", "strength": 1 } };
        let options = CollectionOptions::parse(&french).unwrap();
        lab.store.create(&op(), &ns("c"), options).unwrap();
        lab.insert(&ns("c"), &[doc! { "_id": "A" }, doc! { "_id": "b" }]);
        let options = doc! { "fullDocument": "updateLookup" };
        let first = watch(lab, &on("c"), &stream(options)).unwrap();
        for (id, n) in [("A", 1), ("A", 2), ("b", 1)] {
            let change = set(doc! { "_id": id }, doc! { "$set": { "n": n } });
            let changed = lab.store.update(&op(), &ns("c"), &[change], true, false);
            changed.unwrap();
        }
        let gone = del(doc! { "_id": "b" }, false);
        lab.store.delete(&op(), &ns("c"), &[gone], true).unwrap();
        let batch = more(lab, &first, 9);
        let found: Vec<Option<Document>> = documents(&batch)
            .iter()
            .map(|event| event.get_document("fullDocument").ok().cloned())
            .collect();
        let now = doc! { "_id": "A", "n": 2 };
        assert_eq!(found, [Some(now.clone()), Some(now), None, None]);
        assert_eq!(
            documents(&batch)[2].get("fullDocument"),
            Some(&bson::Bson::Null)
        );
    });
}

/// A wait ends with the next entry of what the stream follows.
#[test]
fn a_get_more_without_events_waits_for_entries() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        let first = watch(lab, &on("c"), &stream(doc! {})).unwrap();
        let more = |waited| lab.more_waiting(&first, waited);
        let mut batch = more(false);
        assert!(batch.documents.is_empty());
        assert!(!is_ready(batch.awaits.as_mut().unwrap()));
        lab.insert(&ns("other"), &[doc! { "_id": 1 }]);
        assert!(!is_ready(batch.awaits.as_mut().unwrap()));
        lab.insert(&ns("c"), &[doc! { "_id": 1 }]);
        assert!(is_ready(batch.awaits.as_mut().unwrap()));
        let batch = more(true);
        assert!(batch.awaits.is_none());
        assert_eq!(ids(&batch), [1]);
    });
}

#[test]
fn what_cannot_be_watched_is_refused() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        let options = CollectionOptions {
            view: Some(View::new("c", bson::RawArrayBuf::new())),
            ..CollectionOptions::default()
        };
        lab.store.create(&op(), &ns("v"), options).unwrap();
        let code = |ns: &Namespace, stages: &[Document]| {
            let refused = watch(lab, ns, stages).unwrap_err();
            let plan = docdb::Verbosity::default();
            let explained = lab.store.explain_aggregate(&op(), ns, &of(stages), plan);
            assert_eq!(explained.unwrap_err().code, refused.code, "{stages:?}");
            refused.code.0
        };
        assert_eq!(code(&on("v"), &stream(doc! {})), 166);
        let followed = raw(&stream(doc! {})[0]);
        let view = View::new("c", bson::RawArrayBuf::from_iter([followed]));
        let options = CollectionOptions {
            view: Some(view),
            ..CollectionOptions::default()
        };
        let defined = lab.store.create(&op(), &ns("follows"), options);
        assert_eq!(defined.unwrap_err().code.0, 167);
        assert_eq!(code(&everything(), &stream(doc! {})), 73);
        assert_eq!(code(&on("c"), &[doc! { "$changeStream": 1 }]), 50_808);
        let grouped = [doc! { "$changeStream": {} }, doc! { "$count": "n" }];
        assert_eq!(code(&on("c"), &grouped), 20);
        let second = [doc! { "$match": {} }, doc! { "$changeStream": {} }];
        assert_eq!(code(&on("c"), &second), 40_602);
        let split = |argument: Document| {
            [
                doc! { "$changeStream": {} },
                doc! { "$changeStreamSplitLargeEvent": argument },
            ]
        };
        assert_eq!(code(&on("c"), &split(doc! { "a": 1 })), 14);
        let alone = [doc! { "$changeStreamSplitLargeEvent": {} }];
        assert_eq!(code(&on("c"), &alone), 20);
        let store = Arc::clone(&lab.store);
        let body = move |op: &docdb::Op<'_>| {
            let request = of(&stream(doc! {}));
            store.aggregate(op, &ns("c"), &request).map(drop)
        };
        let refused = lab.store.in_transaction(session(1, 1), true, body);
        assert_eq!(refused.unwrap_err().code.0, 263);
        watch(
            lab,
            &everything(),
            &stream(doc! { "allChangesForCluster": true }),
        )
        .unwrap();
    });
}

#[test]
fn explain_shows_the_scan_and_the_stages() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        let first = watch(lab, &on("c"), &stream(doc! {})).unwrap();
        lab.insert(
            &ns("c"),
            &[doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 3 }],
        );
        let stages = [
            doc! { "$changeStream": { "resumeAfter": resume(&first) } },
            doc! { "$match": { "documentKey._id": { "$gt": 1 } } },
            doc! { "$changeStreamSplitLargeEvent": {} },
        ];
        let explain = |verbosity| {
            let request = of(&stages);
            let explained = lab
                .store
                .explain_aggregate(&op(), &on("c"), &request, verbosity);
            explained.unwrap()
        };
        let stage = |explained: &Document, at: usize| {
            let stages = explained.get_array("stages").unwrap();
            stages[at].as_document().unwrap().clone()
        };
        let planned = explain(Verbosity::QueryPlanner);
        let cursor = stage(&planned, 0);
        let planner = cursor.get_document("$cursor").unwrap();
        assert!(!planner.contains_key("executionStats"));
        let planner = planner.get_document("queryPlanner").unwrap();
        assert_eq!(planner.get_str("namespace").unwrap(), "local.oplog.rs");
        let winner = planner.get_document("winningPlan").unwrap();
        assert_eq!(winner.get_str("stage").unwrap(), "CLUSTERED_IXSCAN");
        let names = ["$changeStream", "$match", "$changeStreamSplitLargeEvent"];
        for (at, name) in (1..).zip(names) {
            assert_eq!(stage(&planned, at), doc! { name: {} });
        }
        let run = explain(Verbosity::ExecutionStats);
        for (at, rows) in [(1, 3_i64), (2, 2), (3, 2)] {
            assert_eq!(stage(&run, at).get_i64("nReturned").unwrap(), rows, "{at}");
        }
        let scanned = stage(&run, 0);
        let scanned = scanned.get_document("$cursor").unwrap();
        assert!(scanned.contains_key("executionStats"));
        let refused = stream(doc! { "nothing": 1 });
        let verbosity = Verbosity::QueryPlanner;
        let refused = lab
            .store
            .explain_aggregate(&op(), &on("c"), &of(&refused), verbosity);
        assert_eq!(refused.unwrap_err().code.0, 40_415);
    });
}
