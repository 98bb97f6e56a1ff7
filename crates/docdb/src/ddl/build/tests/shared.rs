//! Several operations that request the same index.

use std::time::Duration;

use bson::{Document, doc};
use query::Code;

use super::super::Point::{Begun, Put, Read, Waits};
use super::rig::{Actor, Site, code, on_filled, spec};

fn on_a(unique: bool) -> Document {
    match unique {
        true => spec(&doc! { "a": 1 }, doc! { "unique": true }),
        false => spec(&doc! { "a": 1 }, doc! {}),
    }
}

/// An operation that waits for the build of an index on `a`.
fn waiter(site: &Site, unique: bool) -> Actor {
    let waiter = site.create(&site.ns, &[on_a(unique)], &[Waits, Begun]);
    waiter.at(Waits);
    waiter
}

/// B3.
#[test]
fn the_second_waits_and_shares_the_end() {
    on_filled(|site| {
        for stop in [Begun, Read, Put] {
            let builder = site.create(&site.ns, &[on_a(false)], &[stop]);
            builder.at(stop);
            let waiters = [waiter(site, false), waiter(site, false)];
            // It holds no locks: writers and the builder continue.
            site.set(1, 5);
            let done = builder.finish().unwrap();
            assert_eq!((done.before, done.after), (1, 2));
            for waiter in &waiters {
                let done = waiter.end().unwrap();
                assert_eq!((done.before, done.after), (2, 2));
            }
            assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
            let all = crate::ddl::IndexNames::All;
            site.store.drop_indexes(&site.op, &site.ns, &all).unwrap();
        }
    });
}

#[test]
fn the_second_fails_as_the_first() {
    on_filled(|site| {
        let builder = site.create(&site.ns, &[on_a(true)], &[Read]);
        builder.at(Read);
        let second = waiter(site, true);
        let error = builder.finish().unwrap_err();
        assert_eq!(error.code, Code::DUPLICATE_KEY);
        assert_eq!(second.end().unwrap_err(), error);
        assert_eq!(site.ready(&site.ns), ["_id_"]);

        let builder = site.create(&site.ns, &[on_a(false)], &[Read]);
        builder.at(Read);
        let second = waiter(site, false);
        site.store.drop_collection(&site.op, &site.ns).unwrap();
        assert_eq!(code(builder.finish()), Code::INDEX_BUILD_ABORTED);
        assert_eq!(code(second.end()), Code::INDEX_BUILD_ABORTED);
        assert!(site.store.lookup(&site.ns).is_none());
    });
}

#[test]
fn another_index_of_the_name_is_refused_at_once() {
    on_filled(|site| {
        let builder = site.create(&site.ns, &[on_a(false)], &[Read]);
        builder.at(Read);
        let other = site.create(&site.ns, &[on_a(true)], &[]);
        assert_eq!(code(other.end()), Code::INDEX_KEY_SPECS_CONFLICT);
        builder.finish().unwrap();
    });
}

#[test]
fn who_waits_can_be_killed_and_runs_out_of_time() {
    on_filled(|site| {
        let builder = site.create(&site.ns, &[on_a(false)], &[Read]);
        builder.at(Read);
        let killed = waiter(site, false);
        killed.kill();
        assert_eq!(code(killed.end()), Code::INTERRUPTED);
        let limit = Some(Duration::from_millis(100));
        let specs = vec![on_a(false)];
        let late = Actor::new(&site.store, site.ns.clone(), specs, &[], limit);
        assert_eq!(code(late.end()), Code::MAX_TIME_MS_EXPIRED);
        assert_eq!(site.indexes(&site.ns).len(), 2, "the build is not theirs");
        builder.finish().unwrap();
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
    });
}

/// B3.
#[test]
fn when_the_builder_is_killed_another_builds() {
    on_filled(|site| {
        let builder = site.create(&site.ns, &[on_a(false)], &[Read]);
        builder.at(Read);
        let second = waiter(site, false);
        builder.kill();
        assert_eq!(code(builder.finish()), Code::INTERRUPTED);
        second.at(Begun);
        let third = waiter(site, false);
        let done = second.finish().unwrap();
        assert_eq!((done.before, done.after), (1, 2));
        third.end().unwrap();
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1"]);
    });
}

#[test]
fn of_several_indexes_the_second_builds_what_the_first_does_not() {
    on_filled(|site| {
        let builder = site.create(&site.ns, &[on_a(false)], &[Read]);
        builder.at(Read);
        let both = [spec(&doc! { "u": 1 }, doc! {}), on_a(false)];
        let second = site.create(&site.ns, &both, &[Waits, Begun]);
        second.at(Waits);
        assert_eq!(site.indexes(&site.ns).len(), 2, "it builds nothing yet");
        builder.finish().unwrap();
        second.at(Begun);
        second.finish().unwrap();
        assert_eq!(site.ready(&site.ns), ["_id_", "a_1", "u_1"]);
    });
}
