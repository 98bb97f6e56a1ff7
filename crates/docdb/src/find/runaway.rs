//! Queries whose planning would use memory or time without limit. Each must look at the clock in
//! proportion to its work, end at the first look that says so, and reserve its memory.

use bson::{Bson, Document, doc};
use query::meter::{Budget, LOOK_EVERY, Meter};
use query::sort::Sort;
use query::{Code, Result};

use super::FindRequest;
use super::prepare::Query;
use super::tests::{Fixture, raw};
use crate::Verbosity;
use crate::limits::DOCUMENT_MAX;
use crate::looks;
use crate::plan::Plans;

/// Number of values of the large lists.
const COUNT: i32 = 16 * 1024;

/// A query, and the work that its planning has at least and at most.
struct Case {
    what: &'static str,
    indexes: Vec<Document>,
    filter: Document,
    sort: Option<Document>,
    needed: Option<&'static str>,
    steps: (i32, i32),
}

fn case(what: &'static str, indexes: &[Document], filter: Document, steps: (i32, i32)) -> Case {
    Case {
        what,
        indexes: indexes.to_vec(),
        filter,
        sort: None,
        needed: None,
        steps,
    }
}

fn numbers(count: i32) -> Vec<i32> {
    (0..count).collect()
}

/// `count` disjunctions of tests of `a` and `b`.
fn disjunctions(count: i32) -> Document {
    let or = |at: i32| Bson::Document(doc! { "$or": [{ "a": at }, { "b": at }] });
    doc! { "$and": (0..count).map(or).collect::<Vec<Bson>>() }
}

fn branches(count: i32, branch: impl Fn(i32) -> Document) -> Document {
    doc! { "$or": (0..count).map(branch).collect::<Vec<Document>>() }
}

fn both_of(one: Document, other: Document) -> Document {
    doc! { "$and": [one, other] }
}

fn all(count: i32, test: impl Fn(i32) -> Document) -> Document {
    doc! { "$and": (0..count).map(test).collect::<Vec<Document>>() }
}

fn lists() -> Vec<Case> {
    let many = numbers(COUNT);
    let a = doc! { "a": 1 };
    let several: Vec<Document> = (0..8)
        .map(|at| doc! { "a": 1, format!("f{at}"): 1 })
        .collect();
    vec![
        case(
            "$in",
            std::slice::from_ref(&a),
            doc! { "a": { "$in": &many } },
            (3 * COUNT, 12 * COUNT),
        ),
        case(
            "$nin",
            std::slice::from_ref(&a),
            doc! { "a": { "$nin": &many } },
            (3 * COUNT, 20 * COUNT),
        ),
        case(
            "$in of a hashed index",
            &[doc! { "a": "hashed" }],
            doc! { "a": { "$in": &many } },
            (3 * COUNT, 40 * COUNT),
        ),
        case(
            "$in of a wildcard index",
            &[doc! { "$**": 1 }],
            doc! { "x": { "$in": &many } },
            (3 * COUNT, 12 * COUNT),
        ),
        case(
            "$in of several indexes",
            &several,
            doc! { "a": { "$in": &many } },
            (8 * 3 * COUNT, 8 * 12 * COUNT),
        ),
        case(
            "two $in",
            &[a],
            doc! { "$and": [{ "a": { "$in": &many } }, { "a": { "$in": &many } }] },
            (6 * COUNT, 24 * COUNT),
        ),
        Case {
            sort: Some(doc! { "b": 1 }),
            ..case(
                "merged scans",
                &[doc! { "a": 1, "b": 1 }],
                doc! { "a": { "$in": numbers(100) }, "b": { "$nin": numbers(500) } },
                (100 * 500, 40 * 100 * 500),
            )
        },
    ]
}

fn disjunctive() -> Vec<Case> {
    let (a, b) = (doc! { "a": 1 }, doc! { "b": 1 });
    let both = [a.clone(), b];
    vec![
        case(
            "tests of one path",
            std::slice::from_ref(&a),
            all(COUNT, |at| doc! { "a": { "$gt": at } }),
            (2 * COUNT, 12 * COUNT),
        ),
        case(
            "branches",
            &both,
            branches(4000, |at| doc! { "a": at, "b": at }),
            (4000 * 4, 4000 * 60),
        ),
        case(
            "branches beside a list",
            &[a],
            both_of(
                doc! { "a": { "$in": numbers(200) } },
                branches(200, |at| doc! { "b": at }),
            ),
            (200 * 200, 200 * 200 * 20),
        ),
        Case {
            needed: Some("a"),
            ..case(
                "covered branches",
                &both,
                branches(2000, |at| doc! { "a": at }),
                (2000 * 4, 2000 * 60),
            )
        },
        case(
            "tests of a wildcard index",
            &[doc! { "$**": 1 }],
            all(COUNT, |at| doc! { format!("f{at}"): at }),
            (0, 8 * COUNT),
        ),
        case(
            "tests that a wildcard index does not serve",
            &[doc! { "$**": 1 }],
            all(COUNT, |at| doc! { format!("f{at}"): { "$ne": at } }),
            (COUNT, 8 * COUNT),
        ),
    ]
}

/// Many sets for one field, whose intersection is its bounds.
fn intersections() -> Vec<Case> {
    let a = doc! { "a": 1 };
    vec![
        case(
            "a list within ranges",
            std::slice::from_ref(&a),
            within_ranges(doc! { "$in": numbers(COUNT) }),
            (8 * COUNT, 80 * COUNT),
        ),
        case(
            "a list within ranges of one element",
            std::slice::from_ref(&a),
            doc! { "a": { "$elemMatch": { "$in": numbers(COUNT), "$nin": numbers(COUNT) } } },
            (6 * COUNT, 80 * COUNT),
        ),
        case(
            "excluded values",
            std::slice::from_ref(&a),
            all(COUNT, |at| doc! { "a": { "$ne": at } }),
            (2 * COUNT, 80 * COUNT),
        ),
    ]
}

/// A test of `a`, and as many ranges that contain all its values, in any order of their edges.
fn within_ranges(test: Document) -> Document {
    let mut tests = vec![doc! { "a": test }];
    for at in 0..COUNT {
        tests.push(doc! { "a": { "$gt": -1 - at } });
        tests.push(doc! { "a": { "$lt": 2 * COUNT - at } });
    }
    doc! { "$and": tests }
}

impl Case {
    fn fixture(&self) -> Fixture {
        let fixture = Fixture::new();
        fixture.insert(&[doc! { "_id": 1 }]);
        for (at, key) in self.indexes.iter().enumerate() {
            let spec = doc! { "key": key, "name": format!("i{at}") };
            let Fixture { store, op, ns, .. } = &fixture;
            store.create_indexes(op, ns, &[spec]).unwrap();
        }
        fixture
    }

    fn query(&self, fixture: &Fixture) -> Query {
        let collection = fixture.store.collection(&fixture.ns).unwrap();
        let filter = raw(&self.filter);
        let mut query = Query::plain(&fixture.op, &collection, &filter, None, None).unwrap();
        if let Some(sort) = &self.sort {
            query.set_parsed_sort(Sort::parse(&raw(sort)).unwrap());
        }
        query.set_needed(self.needed.map(|path| vec![path.to_owned()]));
        query
    }
}

fn check(cases: &[Case]) {
    let mut faults = Vec::new();
    for case in cases {
        let what = case.what;
        let query = case.query(&case.fixture());
        let (outcome, looks) = looks::counted(usize::MAX, || query.candidates());
        let plans = outcome.unwrap().candidates.len();
        if 64 < plans {
            faults.push(format!("{what}: {plans} plans"));
        }
        let (least, most) = case.steps;
        let [least, most] = [least, most].map(|steps| usize::try_from(steps).unwrap() / LOOK_EVERY);
        if looks + 1 < least || most < looks {
            faults.push(format!("{what}: {looks} looks, not {least} to {most}"));
        }
        let last = 1 + looks / 2;
        let (outcome, done) = looks::counted(last, || query.candidates());
        if outcome.err().map(|error| error.code) != Some(Code::INTERRUPTED) || done != last {
            faults.push(format!("{what}: {done} looks when interrupted at {last}"));
        }
    }
    assert!(faults.is_empty(), "E1: {}", faults.join("\n"));
}

/// `plan::effort`: E1.
#[test]
fn planning_of_lists_looks_at_the_clock() {
    check(&lists());
}

/// `plan::effort`: E1.
#[test]
fn planning_of_disjunctions_looks_at_the_clock() {
    check(&disjunctive());
}

/// The work is not in proportion to the product of the sizes.
///
/// `plan::effort`: E1.
#[test]
fn intersections_take_little_more_than_their_sets() {
    check(&intersections());
}

/// `plan::effort`: E1.
#[test]
fn disjunctions_of_partial_indexes_are_compared_in_bounded_work() {
    let fixture = case("", &[], doc! {}, (0, 0)).fixture();
    let partial = doc! { "$or": [{ "x": 1 }, { "y": 1 }] };
    let spec = doc! { "key": { "c": 1 }, "name": "c", "partialFilterExpression": partial };
    let Fixture { store, op, ns, .. } = &fixture;
    store.create_indexes(op, ns, &[spec]).unwrap();
    // Without a bound the work is more than the factorial of this number.
    let filter = disjunctions(25);
    let query = case("", &[], filter, (0, 0)).query(&fixture);
    let (outcome, looks) = looks::counted(20_000, || query.candidates());
    assert_eq!(
        outcome.unwrap().candidates.len(),
        1,
        "a scan of the collection"
    );
    assert!(looks < 2_000, "E1: {looks} looks");
}

/// Plans with a common budget of `limit` bytes; the plans, and the budget.
fn within(limit: usize, case: &Case) -> (Result<Plans>, std::sync::Arc<Budget>) {
    let query = case.query(&case.fixture());
    let budget = Budget::new(limit);
    let entered = Meter::default().with_budget(Some(budget.clone())).enter();
    let outcome = query.candidates();
    drop(entered);
    (outcome, budget)
}

/// `plan::effort`: E2.
#[test]
fn plans_reserve_their_memory() {
    for case in lists() {
        let what = case.what;
        let (outcome, budget) = within(usize::MAX, &case);
        let plans = outcome.unwrap();
        let held = budget.usage().used;
        let least = usize::try_from(case.steps.0).unwrap() / 3 * 150;
        assert!(least < held, "E2: {what} holds {held} bytes, not {least}");
        drop(plans);
        assert_eq!(budget.usage().used, 0, "E2: {what}");
        let (outcome, budget) = within(least / 2, &case);
        let error = outcome
            .err()
            .unwrap_or_else(|| panic!("{what} was not refused"));
        assert_eq!(error.code, Code::EXCEEDED_MEMORY_LIMIT, "{what}");
        assert_eq!(budget.usage().used, 0, "E2: {what}");
    }
}

#[test]
fn a_long_value_is_not_repeated_in_each_key() {
    let filter = doc! { "a": { "$in": numbers(1000) }, "b": "x".repeat(1 << 20) };
    let case = case("", &[doc! { "a": 1, "b": 1 }], filter, (0, 0));
    let (outcome, _) = within(64 << 20, &case);
    let plans = outcome.unwrap();
    let ranges: usize = plans
        .candidates
        .iter()
        .flat_map(|plan| plan.access.scans())
        .map(|scan| scan.ranges.ranges.len())
        .sum();
    assert_eq!(ranges, 1000);
}

/// `plan::effort`: E2.
#[test]
fn a_cursor_holds_the_memory_of_its_plan() {
    let case = case(
        "",
        &[doc! { "a": 1 }, doc! { "a": 1, "b": 1 }],
        doc! { "a": { "$in": numbers(COUNT) } },
        (0, 0),
    );
    let fixture = case.fixture();
    let query = case.query(&fixture);
    let collection = fixture.store.collection(&fixture.ns).unwrap();
    let budget = Budget::new(usize::MAX);
    let entered = Meter::default().with_budget(Some(budget.clone())).enter();
    let executor = crate::txn::with_view(&fixture.store, &fixture.op, &mut |view| {
        query.execute(&collection, view)
    })
    .unwrap();
    drop(entered);
    let (held, peak) = (budget.usage().used, budget.usage().peak);
    let values = usize::try_from(COUNT).unwrap();
    assert!(values * 200 < held, "E2: {held} bytes");
    assert!(held < peak * 2 / 3, "E2: {held} of {peak} bytes");
    drop(executor);
    assert_eq!(budget.usage().used, 0, "E2: all released");
}

#[test]
fn an_explanation_of_many_scans_has_a_bounded_size() {
    let indexes = [doc! { "a": 1 }, doc! { "b": 1 }];
    let branch = |at| doc! { if at % 2 == 0 { "a" } else { "b" }: at, "z": at };
    let case = case("", &indexes, branches(1000, branch), (0, 0));
    let Fixture { store, op, ns, .. } = &case.fixture();
    let request = FindRequest {
        filter: raw(&case.filter),
        ..FindRequest::default()
    };
    let explained = store
        .explain_find(op, ns, &request, Verbosity::ExecutionStats)
        .unwrap();
    assert!(raw(&explained).as_bytes().len() < DOCUMENT_MAX);
    let plan = explained.get_document("queryPlanner").unwrap();
    let shown = plan.get_document("winningPlan").unwrap().to_string();
    assert!(shown.contains("exceeded BSON size limit for explain"));
}

#[test]
fn the_plan_of_a_long_shape_is_not_cached() {
    let (a, b) = (doc! { "a": 1 }, doc! { "a": 1, "b": 1 });
    for (count, cached) in [(3, 1), (3000, 0)] {
        let tests = branches(count, |at| doc! { "x": at });
        let filter = doc! { "$and": [{ "a": 1 }, tests] };
        let case = case("", &[a.clone(), b.clone()], filter, (0, 0));
        let fixture = case.fixture();
        let request = FindRequest {
            filter: raw(&case.filter),
            ..FindRequest::default()
        };
        fixture.find(&request);
        let collection = fixture.store.collection(&fixture.ns).unwrap();
        assert_eq!(collection.plans().list().len(), cached, "{count} branches");
    }
}
