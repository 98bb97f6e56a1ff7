//! The events of changes of the catalog.

use bson::{Bson, Document, doc};
use docdb::{CollectionOptions, IndexNames, Namespace, View};

use super::{Log, all_brief, events, everything, kinds, on};
use crate::lab::{Lab, ns, on_each, op, raw};

fn without_uuids(mut events: Vec<Document>) -> Vec<Document> {
    for event in &mut events {
        event.remove("collectionUUID");
    }
    events
}

fn place(coll: &str) -> Document {
    doc! { "db": "test", "coll": coll }
}

fn change_all(lab: &Lab) {
    let store = &lab.store;
    lab.insert(&ns("c"), &[doc! { "_id": 1 }]);
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    store.create_indexes(&op(), &ns("c"), &[index]).unwrap();
    let hide = raw(&doc! { "index": { "name": "a_1", "hidden": true } });
    store.coll_mod(&op(), &ns("c"), &hide).unwrap();
    store
        .drop_indexes(&op(), &ns("c"), &IndexNames::All)
        .unwrap();
    lab.insert(&ns("d"), &[doc! { "_id": 1 }]);
    store.rename(&op(), &ns("c"), &ns("d"), true).unwrap();
    store.convert_to_capped(&op(), &ns("d"), 4096).unwrap();
    store.drop_database(&op(), "test").unwrap();
}

#[test]
fn expanded_streams_show_changes_of_the_catalog() {
    on_each(|lab| {
        change_all(lab);
        let log = Log::of(&lab.store);
        let found = events(&log, &doc! { "showExpandedEvents": true }, &on(""));
        let all = without_uuids(all_brief(&found));
        let id_index = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
        let index = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" };
        let mut hidden = index.clone();
        hidden.insert("hidden", true);
        let created = |coll: &str| {
            doc! {
                "operationType": "create", "ns": place(coll),
                "operationDescription": { "idIndex": id_index.clone() }, "nsType": "collection",
            }
        };
        assert_eq!(all[0], created("c"));
        assert_eq!(all[1].get_str("operationType").unwrap(), "insert");
        let expected = doc! {
            "operationType": "createIndexes", "ns": place("c"),
            "operationDescription": { "indexes": [index] },
        };
        assert_eq!(all[2], expected);
        let modified = &all[3];
        assert_eq!(modified.get_str("operationType").unwrap(), "modify");
        let description = doc! { "index": { "name": "a_1", "hidden": true } };
        assert_eq!(
            modified.get_document("operationDescription").unwrap(),
            &description
        );
        let state = modified.get_document("stateBeforeChange").unwrap();
        assert!(state.contains_key("collectionOptions"), "{state}");
        let expected = doc! {
            "operationType": "dropIndexes", "ns": place("c"),
            "operationDescription": { "indexes": [hidden] },
        };
        assert_eq!(all[4], expected);
        assert_eq!(all[5], created("d"));
        let target = found[5].token.stands_for().unwrap().uuid.unwrap();
        let expected = doc! {
            "operationType": "rename", "ns": place("c"), "to": place("d"),
            "operationDescription": { "to": place("d"), "dropTarget": target },
        };
        assert_eq!(all[7], expected);
        let expected = doc! {
            "operationType": "modify", "ns": place("d"),
            "operationDescription": { "capped": true, "size": 4096_i64 },
        };
        assert_eq!(all[8], expected);
        let expected = [
            doc! { "operationType": "drop", "ns": place("d") },
            doc! { "operationType": "dropDatabase", "ns": { "db": "test" } },
            doc! { "operationType": "invalidate" },
        ];
        assert_eq!(all[9..], expected);
    });
}

#[test]
fn other_streams_show_what_ends_collections() {
    on_each(|lab| {
        change_all(lab);
        let log = Log::of(&lab.store);
        let database = events(&log, &doc! {}, &on(""));
        let shown = ["insert", "insert", "rename", "drop", "dropDatabase"];
        assert_eq!(kinds(&database)[..5], shown);
        assert_eq!(kinds(&database)[5..], ["invalidate"]);
        let expected = doc! { "operationType": "rename", "ns": place("c"), "to": place("d") };
        assert_eq!(all_brief(&database)[2], expected);
        let deployment = doc! { "allChangesForCluster": true };
        let deployment = events(&log, &deployment, &everything());
        assert_eq!(kinds(&deployment), shown, "nothing ends it");
        assert_eq!(
            kinds(&events(&log, &doc! {}, &on("c"))),
            ["insert", "rename", "invalidate"]
        );
        assert_eq!(
            kinds(&events(&log, &doc! {}, &on("d"))),
            ["insert", "rename", "invalidate"],
            "its collection was replaced"
        );
    });
}

#[test]
fn views_are_shown_by_expanded_streams_on_databases() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1 }]);
        let pipeline = doc! { "$match": { "a": 1 } };
        let options = CollectionOptions {
            view: Some(View::new("c", [raw(&pipeline)].into_iter().collect())),
            ..CollectionOptions::default()
        };
        lab.store.create(&op(), &ns("v"), options).unwrap();
        let change = raw(&doc! { "viewOn": "c", "pipeline": [] });
        lab.store.coll_mod(&op(), &ns("v"), &change).unwrap();
        lab.store.drop_collection(&op(), &ns("v")).unwrap();
        let log = Log::of(&lab.store);
        let expanded = doc! { "showExpandedEvents": true };
        let found = all_brief(&events(&log, &expanded, &on("")));
        let created = doc! {
            "operationType": "create", "ns": place("v"),
            "operationDescription": { "viewOn": "c", "pipeline": [pipeline] }, "nsType": "view",
        };
        assert_eq!(found[2], created);
        assert_eq!(found[3].get_str("operationType").unwrap(), "modify");
        let dropped = doc! { "operationType": "drop", "ns": place("v") };
        assert_eq!(found[4..], [dropped]);
        assert_eq!(kinds(&events(&log, &doc! {}, &on(""))), ["insert"]);
        assert_eq!(events(&log, &expanded, &on("v")).len(), 0);
    });
}

/// System collections, and other databases.
#[test]
fn streams_show_no_other_namespaces() {
    on_each(|lab| {
        let admin = Namespace::new("admin", "c").unwrap();
        let more = Namespace::new("testing", "c").unwrap();
        let js = ns("system.js");
        for ns in [&admin, &more, &js] {
            lab.insert(ns, &[doc! { "_id": 1 }]);
        }
        let log = Log::of(&lab.store);
        let places = |stage: Document, ns: &Namespace| {
            let found = all_brief(&events(&log, &stage, ns));
            let place = |event: &Document| event.get("ns").cloned();
            found.iter().filter_map(place).collect::<Vec<Bson>>()
        };
        let deployment = doc! { "allChangesForCluster": true };
        let other = Bson::Document(doc! { "db": "testing", "coll": "c" });
        assert_eq!(places(deployment, &everything()), [other]);
        assert_eq!(places(doc! {}, &on("")), []);
        let system = doc! { "showSystemEvents": true };
        let js = Bson::Document(place("system.js"));
        assert_eq!(places(system, &on("")), [js]);
    });
}
