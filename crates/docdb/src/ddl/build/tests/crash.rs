//! Builds interrupted by the end of the process.

use bson::doc;

use super::super::Point::{Begun, Marked, Put, Read, Waits};
use super::rig::{Site, raw, spec};

fn filled() -> Site {
    let site = Site::new(kv_betree::factory());
    site.fill();
    site
}

#[test]
fn a_build_that_is_cut_off_anywhere_is_done_at_the_next_opening() {
    for stop in [Begun, Read, Put] {
        let mut site = filled();
        let two = [
            spec(&doc! { "a": 1 }, doc! {}),
            spec(&doc! { "u": 1 }, doc! { "unique": true }),
        ];
        let builder = site.create(&site.ns, &two, &[stop]);
        builder.at(stop);
        site.insert(100, 3);
        builder.die();
        site = site.reopen();
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1", "u_1"], "{stop:?}");
        assert_eq!(site.count(&site.ns, doc! { "a": 3 }), 11);
        site.validate();
    }
}

#[test]
fn a_build_that_is_cut_off_when_it_is_marked_is_ready() {
    let site = filled();
    let builder = site.create(&site.ns, &[spec(&doc! { "a": 1 }, doc! {})], &[Marked]);
    // Its beginning is a change of the catalog, too.
    builder.at(Marked);
    builder.go().at(Marked);
    builder.die();
    let site = site.reopen();
    assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
    site.validate();
}

#[test]
fn an_index_that_cannot_be_built_is_gone_after_the_crash() {
    let site = filled();
    let unique = spec(&doc! { "a": 1 }, doc! { "unique": true });
    let builder = site.create(&site.ns, &[unique], &[Read]);
    builder.at(Read);
    builder.die();
    let site = site.reopen();
    assert_eq!(site.ready(&site.ns), ["_id_"]);
    site.validate();
}

/// A thread that panics leaves the catalog unchanged and does not block other threads.
#[test]
fn what_a_dead_builder_leaves_is_in_nobodys_way() {
    let site = filled();
    let on_a = spec(&doc! { "a": 1 }, doc! {});
    let builder = site.create(&site.ns, std::slice::from_ref(&on_a), &[Put]);
    builder.at(Put);
    let second = site.create(&site.ns, std::slice::from_ref(&on_a), &[Waits, Begun]);
    second.at(Waits);
    builder.die();
    second.at(Begun);
    assert_eq!(site.indexes(&site.ns).len(), 2, "the old one is taken out");
    second.finish().unwrap();
    assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
    site.validate();

    let other = spec(&doc! { "u": 1 }, doc! {});
    let builder = site.create(&site.ns, &[other], &[Read]);
    builder.at(Read);
    builder.die();
    let new = super::rig::named("new");
    site.store.rename(&site.op, &site.ns, &new, false).unwrap();
    let hide = doc! { "index": { "name": "u_1", "hidden": true } };
    site.store.coll_mod(&site.op, &new, &raw(&hide)).unwrap();
    assert_eq!(site.count(&new, doc! { "u": 3 }), 1);
    let all = crate::ddl::IndexNames::Names(vec!["u_1".to_owned()]);
    assert_eq!(site.store.drop_indexes(&site.op, &new, &all), Ok(3));
    assert_eq!(site.ready(&new), ["_id_", "a_1"]);
    site.validate();
}
