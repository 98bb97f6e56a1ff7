//! Small histories with known results, and long random ones, compared with a naive algorithm.

use std::ops::Bound;

use stdx::Rng;

use super::history::apply;
use super::*;

fn put(key: &str, value: &str) -> Change {
    Change::Put("t".into(), key.into(), value.into())
}

fn delete(key: &str) -> Change {
    Change::Delete("t".into(), key.into())
}

fn state(pairs: &[(&str, &str)]) -> State {
    let tree = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into()));
    State::from([("t".to_owned(), tree.collect())])
}

/// A history of the commits a=1 (durable), {b=1, c=1} (visible), a=2 (aborted), a=3 (started).
fn history() -> History {
    let mut history = History::new(state(&[]));
    let one = history.begin(vec![put("a", "1")]);
    history.acknowledge(one, true);
    let two = history.begin(vec![put("b", "1"), put("c", "1")]);
    history.acknowledge(two, false);
    let three = history.begin(vec![put("a", "2")]);
    history.abort(three);
    history.begin(vec![put("a", "3")]);
    history
}

fn broken(found: &[(&str, &str)]) -> Counterexample {
    *history().check(&state(found)).unwrap_err()
}

#[test]
fn prefixes_from_the_durable_to_the_started_are_allowed() {
    let check = |pairs: &[(&str, &str)]| history().check(&state(pairs)).unwrap();
    let one = check(&[("a", "1")]);
    assert_eq!((one.first, one.last), (1, 1));
    let two = check(&[("a", "1"), ("b", "1"), ("c", "1")]);
    assert_eq!((two.first, two.last), (2, 3));
    let four = check(&[("a", "3"), ("b", "1"), ("c", "1")]);
    assert_eq!((four.first, four.last), (4, 4));
}

#[test]
fn l1_a_durable_commit_that_is_missing() {
    let answer = broken(&[]);
    assert_eq!((answer.law, answer.explained_by), (Law::Durable, Some(0)));
    let text = answer.to_string();
    assert!(text.starts_with("L1"), "{text}");
    assert!(text.contains("that after 0 commits"), "{text}");
}

#[test]
fn l2_a_commit_without_those_before_it() {
    let answer = broken(&[("a", "3")]);
    assert_eq!(answer.law, Law::Prefix);
    let text = answer.to_string();
    assert!(
        text.contains("key a: expected 1, found 3 (of commit 4)"),
        "{text}"
    );
}

#[test]
fn l2_a_value_that_nobody_wrote() {
    let answer = broken(&[("a", "1"), ("b", "1"), ("c", "1"), ("x", "9")]);
    assert!(
        answer.to_string().contains("found 9 (of no commit)"),
        "{answer}"
    );
    let foreign = State::from([
        ("t".into(), TreeState::new()),
        ("u".into(), TreeState::new()),
    ]);
    let answer = *history().check(&foreign).unwrap_err();
    assert!(
        answer
            .to_string()
            .contains("tree u: expected nothing, found the tree")
    );
}

#[test]
fn l3_a_part_of_a_commit() {
    assert_eq!(broken(&[("a", "1"), ("b", "1")]).law, Law::Atomic);
    assert_eq!(broken(&[("a", "1"), ("c", "1")]).law, Law::Atomic);
}

#[test]
fn l6_an_aborted_commit() {
    let answer = broken(&[("a", "2"), ("b", "1"), ("c", "1")]);
    assert_eq!(answer.law, Law::Aborted);
    assert!(
        answer.to_string().contains("found 2 (of commit 3)"),
        "{answer}"
    );
}

#[test]
fn a_sync_makes_what_was_acknowledged_durable() {
    let mut history = history();
    assert_eq!((history.durable(), history.started()), (1, 4));
    history.synced();
    assert_eq!(history.durable(), 2);
    let answer = history.check(&state(&[("a", "1")])).unwrap_err();
    assert_eq!(answer.law, Law::Durable);
}

#[test]
fn an_unknown_commit_may_be_there_or_not_but_whole() {
    let mut history = History::new(state(&[]));
    let one = history.begin(vec![put("a", "1"), put("b", "1")]);
    history.unknown(one);
    let two = history.begin(vec![put("c", "1")]);
    history.acknowledge(two, true);
    let with = state(&[("a", "1"), ("b", "1"), ("c", "1")]);
    assert!(history.check(&with).unwrap().skipped.is_empty());
    let without = history.check(&state(&[("c", "1")])).unwrap();
    assert_eq!(without.skipped, [CommitId(1)]);
    history
        .check(&state(&[("a", "1"), ("c", "1")]))
        .unwrap_err();
    history
        .check(&state(&[("a", "1"), ("b", "1")]))
        .unwrap_err();
}

#[test]
#[should_panic(expected = "commit 1 ends once")]
fn a_commit_ends_once() {
    let mut history = history();
    history.abort(CommitId(1));
}

#[test]
fn trees_come_and_go() {
    let mut history = History::default();
    let one = history.begin(vec![Change::CreateTree("t".into()), put("a", "1")]);
    history.acknowledge(one, true);
    let two = history.begin(vec![Change::DropTree("t".into())]);
    assert_eq!(history.check(&state(&[("a", "1")])).unwrap().first, 1);
    assert_eq!(history.check(&State::new()).unwrap().first, 2);
    history.check(&state(&[])).unwrap_err();
    history.acknowledge(two, true);
    let answer = history.check(&state(&[("a", "1")])).unwrap_err();
    assert_eq!(answer.law, Law::Durable);
}

#[test]
fn ranges_are_deleted() {
    let mut history = History::new(state(&[("a", "1"), ("b", "1"), ("c", "1")]));
    let (start, end) = (
        Bound::Included(b"a".to_vec()),
        Bound::Excluded(b"c".to_vec()),
    );
    history.begin(vec![Change::DeleteRange("t".into(), start, end)]);
    assert_eq!(history.check(&state(&[("c", "1")])).unwrap().first, 1);
    history
        .check(&state(&[("b", "1"), ("c", "1")]))
        .unwrap_err();
    assert_eq!(history.expected(), state(&[("c", "1")]));
}

fn random_change(rng: &mut Rng) -> Change {
    let key = |rng: &mut Rng| format!("k{:02}", rng.below(20));
    match rng.below(20) {
        0 => {
            let (a, b) = (key(rng), key(rng));
            let range = (Bound::Included(a.into()), Bound::Excluded(b.into()));
            Change::DeleteRange("t".into(), range.0, range.1)
        }
        1..6 => delete(&key(rng)),
        _ => {
            let value = rng.next_u64().to_string();
            put(&key(rng), &value)
        }
    }
}

/// Every prefix is found, and the updated count of differences equals a complete comparison.
#[test]
fn random_histories_agree_with_comparing_every_prefix() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut history = History::new(state(&[]));
        let mut states = vec![state(&[])];
        for _ in 0..30 {
            let changes: Vec<_> = (0..=rng.below(3))
                .map(|_| random_change(&mut rng))
                .collect();
            let mut next = states.last().unwrap().clone();
            changes.iter().for_each(|change| apply(&mut next, change));
            states.push(next);
            let id = history.begin(changes);
            history.acknowledge(id, rng.chance(0.1));
        }
        let durable = history.durable();
        for (prefix, found) in states.iter().enumerate() {
            let same = |i: &usize| states[*i] == *found;
            let first = (durable..states.len()).find(same);
            match history.check(found) {
                Ok(found) => assert_eq!(Some(found.first), first, "seed {seed} {prefix}"),
                Err(e) => assert_eq!((first, e.law), (None, Law::Durable), "seed {seed}"),
            }
            let mut wrong = found.clone();
            wrong
                .get_mut("t")
                .unwrap()
                .insert(b"k00".to_vec(), b"?".to_vec());
            history.check(&wrong).unwrap_err();
        }
        assert_eq!(&history.expected(), states.last().unwrap());
    }
}
