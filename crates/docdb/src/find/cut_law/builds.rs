//! The same queries and writes while an index is built, and others are created, dropped and hidden.
//!
//! A build stops at its points (`stop`), on the thread of the test: after it was added to the
//! catalog, after each portion that it reads or inserts, and when only the stored catalog has it as
//! ready. There the lane queries by every plan, writes, creates other indexes of the collection and
//! drops some.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bson::doc;
use kv::Durability;

use super::super::law::number;
use super::super::tests::{Fixture, raw};
use super::{Done, Lane, data};
use crate::ddl::IndexNames;
use crate::index::Index;
use crate::stop::{Point, at_points};
use crate::txn::Op;

/// Number of builds per fixture.
const BUILDS: usize = 4;
/// Number of queries in `make test`.
const DEFAULT: u64 = 600;

/// What happened beside builds.
#[derive(Debug, Default)]
struct Beside {
    /// Points at which a build stopped.
    points: u64,
    /// Completed builds, and those that ended otherwise.
    built: u64,
    failed: u64,
    /// Other indexes that were created, dropped and hidden.
    created: u64,
    dropped: u64,
    hidden: u64,
}

/// A lane during a build.
struct During {
    lane: Lane,
    done: Done,
    beside: Beside,
}

#[test]
fn a_build_changes_no_answer() {
    let (queries, first) = (
        number("ROMANESCO_QUERIES", DEFAULT),
        number("ROMANESCO_SEED", 0),
    );
    let (mut done, mut beside) = (Done::default(), Beside::default());
    for seed in first.. {
        if queries <= done.queries {
            break;
        }
        let mut during = During {
            lane: Lane::new(seed),
            done,
            beside,
        };
        for _ in 0..BUILDS {
            during.hide();
            during = during.build();
            during.lane.query(&mut during.done);
        }
        during.lane.check_store();
        (done, beside) = (during.done, during.beside);
    }
    println!("{done:?} {beside:?}");
    if queries < DEFAULT {
        return;
    }
    assert!(done.queries * 2 < done.plans, "{done:?}");
    assert!(done.queries < done.cut, "{done:?}");
    let least = [
        beside.points / 8,
        beside.built,
        beside.failed,
        beside.created,
        beside.dropped,
        beside.hidden,
    ];
    assert!(
        least.iter().all(|count| queries < count * 100),
        "{beside:?}"
    );
}

impl During {
    /// Build a drawn index, and query, write and change other indexes at each point of the build.
    fn build(mut self) -> During {
        let Fixture { store, ns, .. } = &self.lane.fixture;
        let (store, ns) = (Arc::clone(store), ns.clone());
        let name = format!("b{}", self.beside.points);
        let spec = data::index(&mut self.lane.rng, &self.lane.pool, &name);
        let shared = Rc::new(RefCell::new(self));
        let inner = Rc::clone(&shared);
        let hook = move |point| {
            // What is done at a point reaches points, too.
            if let Ok(mut during) = inner.try_borrow_mut() {
                during.stop(point);
            }
        };
        let op = Op::new(Durability::None);
        let built = at_points(hook, || store.create_indexes(&op, &ns, &[spec]));
        let mut during = Rc::into_inner(shared)
            .expect("the build has ended")
            .into_inner();
        match built {
            Ok(_) => during.beside.built += 1,
            Err(_) => during.beside.failed += 1,
        }
        during
    }

    fn stop(&mut self, point: Point) {
        if !matches!(
            point,
            Point::Begun | Point::Read | Point::Put | Point::Marked
        ) {
            return;
        }
        self.beside.points += 1;
        if point == Point::Marked {
            // The build holds the locks that a write takes.
            self.lane.only_query(&mut self.done);
            return;
        }
        if self.lane.rng.chance(0.3) {
            self.change();
        }
        self.lane.query(&mut self.done);
    }

    /// Create or drop an index beside the one that is built. Dropping that one ends its build.
    fn change(&mut self) {
        let lane = &mut self.lane;
        if lane.rng.chance(0.5) {
            let name = format!("c{}", self.beside.points);
            let spec = data::index(&mut lane.rng, &lane.pool, &name);
            let Fixture { store, op, ns, .. } = &lane.fixture;
            self.beside.created += u64::from(store.create_indexes(op, ns, &[spec]).is_ok());
            return;
        }
        let names = IndexNames::Names(vec![lane.drawn_index()]);
        let Fixture { store, op, ns, .. } = &lane.fixture;
        // The one on `_id` stays.
        self.beside.dropped += u64::from(store.drop_indexes(op, ns, &names).is_ok());
    }

    /// Hide or show an index. During a build of the collection this is refused.
    fn hide(&mut self) {
        let name = self.lane.drawn_index();
        let hidden = self.lane.rng.chance(0.6);
        let change = doc! { "index": { "name": name, "hidden": hidden } };
        let Fixture { store, op, ns, .. } = &self.lane.fixture;
        let changed = store.coll_mod(op, ns, &raw(&change));
        self.beside.hidden += u64::from(changed.is_ok() && hidden);
    }
}

impl Lane {
    /// The name of a drawn index.
    fn drawn_index(&mut self) -> String {
        let collection = self.collection();
        let indexes = collection.indexes();
        let drawn = self.rng.index(indexes.len().max(1));
        indexes
            .get(drawn)
            .map_or_else(|| "none".to_owned(), |index| index.name().to_owned())
    }
}

/// Whether a command may name the index in a hint.
pub(super) fn is_hinted(index: &Arc<Index>) -> bool {
    index.is_ready() && !index.spec().hidden
}
