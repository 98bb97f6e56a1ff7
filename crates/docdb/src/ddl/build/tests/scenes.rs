//! Changes of the catalog while an index is built.

use bson::{Document, doc};
use query::{Code, Namespace};

use super::super::Point::{Begun, Put, Read};
use super::rig::{Site, code, named, on_filled, raw, spec};
use crate::ddl::IndexNames;
use crate::write::UpdateStatement;

const BUSY: Code = Code::BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE;

fn on_a() -> Document {
    spec(&doc! { "a": 1 }, doc! {})
}

fn names(names: &[&str]) -> IndexNames {
    IndexNames::Names(names.iter().map(ToString::to_string).collect())
}

/// B2.
#[test]
fn what_is_built_is_not_modified() {
    on_filled(|site| {
        let wanted = spec(&doc! { "a": 1 }, doc! { "prepareUnique": true });
        let modify = |change: Document| {
            let mut index = doc! { "name": "a_1" };
            index.extend(change);
            let fields = doc! { "index": index };
            site.store.coll_mod(&site.op, &site.ns, &raw(&fields))
        };
        let changes = [
            doc! { "unique": true },
            doc! { "prepareUnique": false },
            doc! { "hidden": true },
            doc! { "expireAfterSeconds": 10 },
        ];
        let builder = site.create(&site.ns, &[wanted], &[Begun, Put]);
        for point in [Begun, Put] {
            builder.at(point);
            for change in &changes {
                assert_eq!(code(modify(change.clone())), BUSY, "{change} at {point:?}");
            }
            let level = doc! { "validationLevel": "off" };
            let other = site.store.coll_mod(&site.op, &site.ns, &raw(&level));
            assert_eq!(code(other), BUSY);
            if point == Begun {
                builder.go();
            }
        }
        builder.finish().unwrap();
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
        assert_eq!(site.count(&site.ns, doc! { "a": 3 }), 10);
        let unique = modify(doc! { "unique": true });
        assert_eq!(code(unique), Code::CANNOT_CONVERT_INDEX_TO_UNIQUE);
        modify(doc! { "hidden": true }).unwrap();
        assert_eq!(site.count(&site.ns, doc! { "a": 3 }), 10);
    });
}

/// Documents that an index cannot contain are deleted and replaced while it is built, and then its
/// build succeeds; a document that stays ends it.
#[test]
fn documents_that_cannot_be_indexed_are_deleted_and_replaced_during_the_build() {
    on_filled(|site| {
        let hashed = spec(&doc! { "h": "hashed" }, doc! {});
        let parallel = spec(&doc! { "h": 1, "k": 1 }, doc! {});
        for wanted in [hashed, parallel] {
            for stay in [false, true] {
                for id in 200..202 {
                    let document = doc! { "_id": id, "h": [1, 2], "k": [3, 4] };
                    site.put(&site.ns, &document).unwrap();
                }
                let builder = site.create(&site.ns, std::slice::from_ref(&wanted), &[Begun]);
                builder.at(Begun);
                site.remove(200);
                if !stay {
                    let (filter, change) = (doc! { "_id": 201 }, doc! { "$set": { "h": 1 } });
                    let change = UpdateStatement::new(raw(&filter), raw(&change));
                    let (store, op) = (&site.store, &site.op);
                    let reply = store.update(op, &site.ns, &[change], true, false);
                    assert!(reply.unwrap().errors.is_empty());
                }
                assert_eq!(site.count(&site.ns, doc! { "_id": { "$gte": 200 } }), 1);
                assert_eq!(builder.finish().is_err(), stay, "{wanted}");
                site.remove(201);
                let (left, all) = (site.ready(&site.ns).len(), IndexNames::All);
                assert_eq!(left, if stay { 1 } else { 2 });
                site.store.drop_indexes(&site.op, &site.ns, &all).unwrap();
            }
        }
    });
}

/// B1.
#[test]
fn a_collection_that_is_created_anew_is_left_alone_by_the_old_ones_build() {
    for same_uuid in [false, true] {
        on_filled(|site| {
            for stop in [Begun, Read, Put] {
                let before = site.store.collection(&site.ns).unwrap();
                let builder = site.create(&site.ns, &[on_a()], &[stop]);
                builder.at(stop);
                assert_eq!(site.store.drop_collection(&site.op, &site.ns), Ok(true));
                if same_uuid {
                    let (ns, uuid) = (&site.ns, before.uuid());
                    let options = before.options().clone();
                    let made = site.store.create_with_uuid(&site.op, ns, options, uuid);
                    made.unwrap();
                }
                site.put(&site.ns, &doc! { "_id": 1, "u": 1 }).unwrap();
                // It gets the number of the build's index.
                let unique = spec(&doc! { "u": 1 }, doc! { "unique": true });
                let again = site.store.create_indexes(&site.op, &site.ns, &[unique]);
                again.unwrap();
                assert_eq!(code(builder.finish()), Code::INDEX_BUILD_ABORTED);
                assert_eq!(site.ready(&site.ns), ["_id_", "u_1"], "{stop:?}");
                let twin = site.put(&site.ns, &doc! { "_id": 2, "u": 1 });
                assert_eq!(code(twin), Code::DUPLICATE_KEY);
                site.store.drop_collection(&site.op, &site.ns).unwrap();
                site.fill();
            }
        });
    }
}

#[test]
fn neither_source_nor_target_of_a_rename_is_built() {
    on_filled(|site| {
        let other = named("other");
        site.put(&other, &doc! { "_id": 1, "a": 1 }).unwrap();
        let rename = |from: &Namespace, to: &Namespace| site.store.rename(&site.op, from, to, true);
        for stop in [Begun, Read, Put] {
            let builder = site.create(&site.ns, &[on_a()], &[stop]);
            builder.at(stop);
            assert_eq!(code(rename(&site.ns, &named("new"))), BUSY);
            assert_eq!(code(rename(&site.ns, &other)), BUSY);
            assert_eq!(code(rename(&other, &site.ns)), BUSY);
            builder.finish().unwrap();
            assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
            let dropped = site
                .store
                .drop_indexes(&site.op, &site.ns, &names(&["a_1"]));
            assert_eq!(dropped, Ok(2));
        }
        rename(&site.ns, &other).unwrap();
        assert_eq!(site.count(&other, doc! {}), 100);
    });
}

#[test]
fn the_target_of_out_is_not_replaced_while_it_is_built() {
    on_filled(|site| {
        let builder = site.create(&site.ns, &[on_a()], &[Begun]);
        builder.at(Begun);
        site.put(&named("source"), &doc! { "_id": 1 }).unwrap();
        let out = || {
            let request = crate::AggregateRequest {
                pipeline: [super::rig::raw(&doc! { "$out": "c" })]
                    .into_iter()
                    .collect(),
                ..crate::AggregateRequest::default()
            };
            site.store.aggregate(&site.op, &named("source"), &request)
        };
        assert_eq!(code(out()), BUSY);
        let left: Vec<_> = site
            .store
            .catalog()
            .iter()
            .map(|(ns, _)| ns.clone())
            .collect();
        assert_eq!(left, [site.ns.clone(), named("source")]);
        builder.finish().unwrap();
        out().unwrap();
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
        assert_eq!(site.count(&site.ns, doc! {}), 1);
    });
}

/// B2.
#[test]
fn a_collection_that_is_dropped_ends_the_build() {
    on_filled(|site| {
        for stop in [Begun, Read, Put] {
            for database in [false, true] {
                let builder = site.create(&site.ns, &[on_a()], &[stop]);
                builder.at(stop);
                let dropped = match database {
                    true => site.store.drop_database(&site.op, &site.ns.db),
                    false => site.store.drop_collection(&site.op, &site.ns),
                };
                assert_eq!(dropped, Ok(true));
                let error = builder.finish().unwrap_err();
                assert_eq!(error.code, Code::INDEX_BUILD_ABORTED);
                assert!(error.message.ends_with("collection dropped"), "{error}");
                assert!(site.store.lookup(&site.ns).is_none());
                site.fill();
            }
        }
    });
}

#[test]
fn a_build_is_ended_as_a_whole_by_who_drops_its_indexes() {
    on_filled(|site| {
        let two = [on_a(), spec(&doc! { "u": 1 }, doc! {})];
        site.store
            .create_indexes(&site.op, &site.ns, &[spec(&doc! { "r": 1 }, doc! {})])
            .unwrap();
        let drop = |names: &IndexNames| site.store.drop_indexes(&site.op, &site.ns, names);
        for stop in [Begun, Read, Put] {
            let builder = site.create(&site.ns, &two, &[stop]);
            builder.at(stop);
            let parts: [&[&str]; 3] = [&["a_1"], &["r_1", "a_1"], &["r_1", "a_1", "u_1"]];
            for part in parts {
                assert_eq!(code(drop(&names(part))), Code::INDEX_NOT_FOUND, "{part:?}");
            }
            let by_key = IndexNames::Key(doc! { "u": 1 });
            assert_eq!(code(drop(&by_key)), Code::INDEX_NOT_FOUND);
            assert_eq!(drop(&names(&["u_1", "a_1"])), Ok(4));
            let error = builder.finish().unwrap_err();
            assert_eq!(error.code, Code::INDEX_BUILD_ABORTED);
            assert!(error.message.ends_with("dropIndexes command"), "{error}");
            assert_eq!(site.ready(&site.ns), ["_id_", "r_1"]);
        }
        let builder = site.create(&site.ns, &two, &[Read]);
        builder.at(Read);
        assert_eq!(drop(&IndexNames::All), Ok(4));
        assert_eq!(code(builder.finish()), Code::INDEX_BUILD_ABORTED);
        assert_eq!(site.ready(&site.ns), ["_id_"]);
    });
}

/// `index::build`: U1.
#[test]
fn an_index_that_is_dropped_and_begun_anew_is_another_one() {
    on_filled(|site| {
        let first = site.create(&site.ns, &[on_a()], &[Read]);
        first.at(Read);
        let dropped = site
            .store
            .drop_indexes(&site.op, &site.ns, &names(&["a_1"]));
        assert_eq!(dropped, Ok(2));
        let second = site.create(&site.ns, &[on_a()], &[Read]);
        second.at(Read);
        assert_eq!(code(first.finish()), Code::INDEX_BUILD_ABORTED);
        assert_eq!(site.indexes(&site.ns).len(), 2);
        second.finish().unwrap();
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
    });
}

#[test]
fn a_collection_that_is_built_is_not_made_capped() {
    on_filled(|site| {
        let capped = || site.store.convert_to_capped(&site.op, &site.ns, 1_000_000);
        let builder = site.create(&site.ns, &[on_a()], &[Read]);
        builder.at(Read);
        assert_eq!(code(capped()), BUSY);
        builder.finish().unwrap();
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
        capped().unwrap();
        assert_eq!(site.ready(&site.ns), ["_id_"]);
    });
}

#[test]
fn indexes_of_one_command_are_compared_and_a_refused_one_leaves_nothing_in_the_way() {
    on_filled(|site| {
        let create = |specs: &[Document]| site.store.create_indexes(&site.op, &site.ns, specs);
        let mut other = spec(&doc! { "b": 1 }, doc! {});
        other.insert("name", "a_1");
        let conflict = Code::INDEX_KEY_SPECS_CONFLICT;
        assert_eq!(code(create(&[on_a(), other.clone()])), conflict);
        assert_eq!(site.ready(&site.ns), ["_id_"]);
        let done = create(&[on_a(), on_a()]).unwrap();
        assert_eq!((done.before, done.after), (1, 2));
        let fresh = spec(&doc! { "u": 1 }, doc! {});
        assert_eq!(code(create(&[fresh.clone(), other])), conflict);
        create(&[fresh]).unwrap();
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1", "u_1"]);
    });
}

/// A build inserts its entries while other threads write to the collection, and ends.
#[test]
fn writers_go_on_between_the_points() {
    on_filled(|site: &Site| {
        let builder = site.create(&site.ns, &[on_a()], &[Begun, Read, Put]);
        let mut id = 100;
        loop {
            match builder.news() {
                super::rig::News::Done(done) => {
                    done.unwrap();
                    break;
                }
                super::rig::News::At(_) => {
                    site.insert(id, 3);
                    site.set(id - 100, 3);
                    site.remove(id - 50);
                    id += 1;
                    builder.go();
                }
                other @ super::rig::News::Dead => panic!("{other:?}"),
            }
        }
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
    });
}
