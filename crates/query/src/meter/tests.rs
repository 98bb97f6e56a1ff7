//! Steps, scopes, the budget and the sort.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{
    Budget, CHUNK, Held, LOOK_EVERY, Meter, Watch, charge, charge_reply, scope, sort_by, step,
    steps,
};
use crate::{Code, Error, Result};

/// Ends the operation at the check with this number and at all later ones.
struct After {
    looks: AtomicUsize,
    allowed: usize,
}

impl Watch for After {
    fn check(&self) -> Result<()> {
        if self.looks.fetch_add(1, Ordering::Relaxed) < self.allowed {
            return Ok(());
        }
        Err(Error::new(Code::INTERRUPTED, "stop"))
    }
}

fn stopping_after(allowed: usize) -> Arc<After> {
    Arc::new(After {
        looks: AtomicUsize::new(0),
        allowed,
    })
}

/// M2 and M3.
#[test]
fn the_watch_is_checked_every_n_steps_and_at_every_step_after_a_stop() {
    let watch = stopping_after(2);
    let entered = Meter::default().with_watch(watch.clone()).enter();
    let taken = (0..).find(|_| step().is_err()).unwrap();
    assert_eq!(taken + 1, 3 * LOOK_EVERY);
    assert!(step().is_err() && steps(5).is_err());
    drop(entered);
    assert!(steps(10 * LOOK_EVERY).is_ok(), "the meter is gone");
}

#[test]
fn scopes_release_what_was_charged_in_them() {
    let _entered = Meter::default().with_limit(1000).enter();
    let outer = scope();
    charge("a", 600).unwrap();
    let inner = scope();
    charge("a", 300).unwrap();
    let error = charge("$op", 200).unwrap_err();
    assert_eq!(error.code, Code::EXCEEDED_MEMORY_LIMIT);
    assert!(error.message.starts_with("$op "), "{error}");
    inner.keep("a", 100).unwrap();
    assert_eq!(outer.charged(), 700);
    drop(outer);
    assert!(charge("a", 1000).is_ok());
}

#[test]
fn a_reply_leaves_half_of_the_memory() {
    let _entered = Meter::default().with_limit(1000).enter();
    charge_reply("a", 400).unwrap();
    let error = charge_reply("a", 200).unwrap_err();
    assert_eq!(error.code, Code::EXCEEDED_MEMORY_LIMIT);
    charge_reply("a", 100).unwrap();
    charge("$op", 500).unwrap();
}

#[test]
fn a_meter_within_another_leaves_it_as_it_was() {
    let _outer = Meter::default().with_limit(100).enter();
    charge("a", 60).unwrap();
    let inner = Meter::default().enter();
    charge("a", 1 << 20).unwrap();
    drop(inner);
    assert!(charge("a", 50).is_err());
    assert!(charge("a", 40).is_ok());
}

/// B1 and B2.
#[test]
fn the_budget_is_shared_and_given_back() {
    let budget = Budget::new(8 * CHUNK);
    let entered = Meter::default()
        .with_budget(Some(Arc::clone(&budget)))
        .enter();
    let mut held = Held::new();
    assert!(held.set(5 * CHUNK));
    charge("a", 2 * CHUNK).unwrap();
    assert_eq!(budget.usage().used, 7 * CHUNK);
    let error = charge("a", 2 * CHUNK).unwrap_err();
    assert_eq!(error.code, Code::EXCEEDED_MEMORY_LIMIT);
    assert!(!held.set(9 * CHUNK));
    assert_eq!(budget.usage().refused, 2);
    drop(entered);
    assert_eq!(budget.usage().used, 5 * CHUNK, "what a stage holds stays");
    drop(held);
    assert_eq!(budget.usage().used, 0);
    assert_eq!(budget.usage().peak, 7 * CHUNK);
}

#[test]
fn the_size_of_a_tree_is_known_before_it_is_decoded() {
    let items: Vec<i32> = (0..1000).collect();
    let document = bson::doc! { "a": items, "b": { "c": "text", "d": [1, { "e": 2 }] } };
    let raw = bson::RawDocumentBuf::try_from(&document).unwrap();
    let (before, after) = (
        super::decoded_size(&raw).unwrap(),
        super::document_size(&document),
    );
    assert!(after <= before && before <= 2 * after, "{before} {after}");
}

#[test]
fn sorting_is_stable_and_agrees_with_the_standard_library() {
    let mut rng = stdx::Rng::new(7);
    for length in 0..200_u64 {
        let items: Vec<(u64, u64)> = (0..length)
            .map(|at| (rng.below(length / 2 + 1), at))
            .collect();
        let mut expected = items.clone();
        expected.sort_by_key(|(key, _)| *key);
        assert_eq!(sort_by(items, |a, b| a.0.cmp(&b.0)).unwrap(), expected);
    }
}

#[test]
fn sorting_ends_when_interrupted_and_tolerates_a_comparison_without_order() {
    let watch = stopping_after(1);
    let entered = Meter::default().with_watch(watch).enter();
    let items: Vec<u64> = (0..100_000).rev().collect();
    assert_eq!(
        sort_by(items, u64::cmp).unwrap_err().code,
        Code::INTERRUPTED
    );
    drop(entered);
    let items: Vec<u64> = (0..1000).collect();
    let sorted = sort_by(items, |_, _| std::cmp::Ordering::Greater).unwrap();
    assert_eq!(sorted.len(), 1000);
}
