//! Small histories with known results.
//!
//! A history is a line of words: `+w:n` announces a commit, `.w:n` acknowledges and `!w:n` aborts
//! it, `(` and `)` begin and end a sync. Each commit writes its ledger entry and the changes in
//! `writes`.

use kv::Durability;

use super::{Law, Oracle, State, Verdict, Violation};
use crate::key::Key;
use crate::protocol::{Change, Event, Intent};
use crate::value::{Stamp, VALUE_MIN};

const A: u64 = 0;
const B: u64 = 1;

fn stamp(writer: u32, counter: u64) -> Stamp {
    Stamp {
        writer,
        counter,
        len: VALUE_MIN,
    }
}

fn put(number: u64) -> Change {
    Change::Put(Key::hot(1, number), VALUE_MIN)
}

fn delete(number: u64) -> Change {
    Change::Delete(Key::hot(1, number))
}

type Writes<'a> = &'a [(u32, u64, &'a [Change])];

fn pair(word: &str) -> (u32, u64) {
    let (writer, counter) = word.split_once(':').unwrap();
    (writer.parse().unwrap(), counter.parse().unwrap())
}

/// Report the events of `history` to `oracle`; commits have the durability `level`.
fn tell(oracle: &mut Oracle, level: Durability, history: &str, writes: Writes<'_>) {
    for word in history.split_whitespace() {
        let (sign, rest) = word.split_at(1);
        let event = match sign {
            "(" => Event::SyncBegun,
            ")" => Event::Synced,
            "." => Event::Acked(pair(rest).0, pair(rest).1),
            "!" => Event::Aborted(pair(rest).0, pair(rest).1),
            _ => {
                let (writer, counter) = pair(rest);
                let own = writes.iter().find(|w| (w.0, w.1) == (writer, counter));
                let mut changes = vec![Change::Put(Key::ledger(writer), VALUE_MIN)];
                changes.extend(own.map_or(&[][..], |w| w.2));
                Event::Intend(Intent {
                    writer,
                    counter,
                    durability: level,
                    transaction: false,
                    changes,
                })
            }
        };
        oracle.observe(&event).unwrap();
    }
}

/// A state: each writer's last commit, and the authors of the hot keys.
fn state(ledger: &[(u32, u64)], hot: &[(u64, (u32, u64))]) -> State {
    let ledger = ledger.iter().map(|&(w, n)| (Key::ledger(w), stamp(w, n)));
    let hot = hot.iter().map(|&(k, (w, n))| (Key::hot(1, k), stamp(w, n)));
    ledger.chain(hot).collect()
}

fn check(
    level: Durability,
    history: &str,
    writes: Writes<'_>,
    found: State,
) -> Result<Verdict, Violation> {
    let mut oracle = Oracle::new(Durability::Group);
    tell(&mut oracle, level, history, writes);
    oracle.check(found)
}

fn law(result: Result<Verdict, Violation>) -> Law {
    result.unwrap_err().law
}

use Durability::{Interval, Sync};

#[test]
fn what_was_not_acknowledged_may_be_there_or_not() {
    let there = check(Sync, "+0:1 .0:1 +0:2", &[], state(&[(0, 2)], &[])).unwrap();
    assert_eq!((there.survived, there.unreported), (2, 1));
    let gone = check(Sync, "+0:1 .0:1 +0:2", &[], state(&[(0, 1)], &[])).unwrap();
    assert_eq!((gone.survived, gone.unreported), (1, 0));
}

#[test]
fn a_durable_commit_must_be_there() {
    let result = check(Sync, "+0:1 .0:1 +0:2 .0:2", &[], state(&[(0, 1)], &[]));
    let violation = result.unwrap_err();
    assert_eq!(violation.law, Law::Durable);
    assert!(violation.story.contains("0:2 (batch, sync"), "{violation}");
}

#[test]
fn a_commit_without_a_promise_may_be_lost_until_a_sync() {
    let lost = check(
        Interval,
        "+0:1 .0:1 ( +0:2 .0:2 )",
        &[],
        state(&[(0, 1)], &[]),
    );
    assert_eq!(lost.unwrap().lost_unpromised, 1);
    let synced = check(Interval, "+0:1 .0:1 ( +0:2 .0:2 )", &[], state(&[], &[]));
    assert_eq!(law(synced), Law::Durable);
}

#[test]
fn a_close_promises_all() {
    let mut oracle = Oracle::new(Sync);
    tell(&mut oracle, Interval, "+0:1 .0:1", &[]);
    oracle.closed();
    assert_eq!(law(oracle.check(State::new())), Law::Durable);
}

#[test]
fn nothing_is_there_behind_a_hole() {
    let history = "+0:1 .0:1 +1:1 .1:1";
    let result = check(Interval, history, &[], state(&[(1, 1)], &[]));
    assert_eq!(law(result), Law::Prefix);
    // Concurrent commits may be in either order.
    let history = "+0:1 +1:1 .1:1 .0:1";
    check(Interval, history, &[], state(&[(1, 1)], &[])).unwrap();
}

#[test]
fn a_commit_is_whole() {
    let writes: Writes<'_> = &[(0, 1, &[put(A), put(B)])];
    let whole = state(&[(0, 1)], &[(A, (0, 1)), (B, (0, 1))]);
    check(Sync, "+0:1 .0:1", writes, whole).unwrap();
    let half = state(&[(0, 1)], &[(A, (0, 1))]);
    assert_eq!(law(check(Sync, "+0:1 .0:1", writes, half)), Law::Atomic);
    let without_ledger = state(&[], &[(A, (0, 1))]);
    assert_eq!(
        law(check(Sync, "+0:1", writes, without_ledger)),
        Law::Atomic
    );
}

#[test]
fn an_aborted_commit_is_nowhere() {
    let writes: Writes<'_> = &[(0, 1, &[put(A)])];
    let shown = state(&[], &[(A, (0, 1))]);
    assert_eq!(law(check(Sync, "+0:1 !0:1", writes, shown)), Law::Atomic);
    let noted = state(&[(0, 1)], &[]);
    assert_eq!(law(check(Sync, "+0:1 !0:1", writes, noted)), Law::Atomic);
    check(Sync, "+0:1 !0:1", writes, State::new()).unwrap();
}

#[test]
fn a_later_commit_hides_an_earlier_one() {
    let writes: Writes<'_> = &[(0, 1, &[put(A)]), (1, 1, &[put(A)])];
    let found = |w| state(&[(0, 1), (1, 1)], &[(A, (w, 1))]);
    let in_turn = "+0:1 .0:1 +1:1 .1:1";
    check(Sync, in_turn, writes, found(1)).unwrap();
    assert_eq!(law(check(Sync, in_turn, writes, found(0))), Law::Order);
    let beside = "+0:1 +1:1 .0:1 .1:1";
    check(Sync, beside, writes, found(0)).unwrap();
    check(Sync, beside, writes, found(1)).unwrap();
}

#[test]
fn two_keys_must_agree_on_the_order() {
    let writes: Writes<'_> = &[(0, 1, &[put(A), put(B)]), (1, 1, &[put(A), put(B)])];
    let beside = "+0:1 +1:1 .0:1 .1:1";
    let found = |a, b| state(&[(0, 1), (1, 1)], &[(A, (a, 1)), (B, (b, 1))]);
    check(Sync, beside, writes, found(0, 0)).unwrap();
    let violation = check(Sync, beside, writes, found(0, 1)).unwrap_err();
    assert_eq!(violation.law, Law::Order);
    assert!(violation.story.contains("no order"), "{violation}");
}

#[test]
fn an_order_may_not_go_around_through_time() {
    // By A, commit 0:1 is after 1:1; by B, commit 1:2 is before 0:1. But 0:1 ended before 1:2
    // began.
    let writes: Writes<'_> = &[
        (0, 1, &[put(A), put(B)]),
        (1, 1, &[put(A)]),
        (1, 2, &[put(B)]),
    ];
    let history = "+0:1 +1:1 .0:1 .1:1 +1:2 .1:2";
    let found = |b| state(&[(0, 1), (1, 2)], &[(A, (0, 1)), (B, b)]);
    check(Sync, history, writes, found((1, 2))).unwrap();
    assert_eq!(law(check(Sync, history, writes, found((0, 1)))), Law::Order);
}

#[test]
fn a_deleted_key_stays_away_and_a_range_takes_what_was_known() {
    let writes: Writes<'_> = &[(0, 1, &[put(A)]), (0, 2, &[delete(A)])];
    let history = "+0:1 .0:1 +0:2 .0:2";
    check(Sync, history, writes, state(&[(0, 2)], &[])).unwrap();
    let back = state(&[(0, 2)], &[(A, (0, 1))]);
    assert_eq!(law(check(Sync, history, writes, back)), Law::Order);
    let range = Change::DeleteRange(Key::hot(1, A), Key::hot(1, B));
    let writes: Writes<'_> = &[(0, 1, &[put(A), put(B)]), (0, 2, &[range])];
    check(Sync, history, writes, state(&[(0, 2)], &[(B, (0, 1))])).unwrap();
    let none = state(&[(0, 2)], &[]);
    assert_eq!(law(check(Sync, history, writes, none)), Law::Atomic);
}

#[test]
fn what_was_shown_once_stays() {
    let mut oracle = Oracle::new(Sync);
    tell(&mut oracle, Interval, "+0:1", &[(0, 1, &[put(A)])]);
    let found = state(&[(0, 1)], &[(A, (0, 1))]);
    oracle.check(found.clone()).unwrap();
    oracle.check(found).unwrap();
    assert_eq!(oracle.next_counter(), 2);
    let without = state(&[(0, 1)], &[]);
    assert_eq!(law(oracle.check(without)), Law::Durable);
    assert_eq!(law(oracle.check(State::new())), Law::Durable);
}

#[test]
fn a_state_from_nowhere_is_refused() {
    let unknown = state(&[(0, 7)], &[]);
    assert_eq!(law(check(Sync, "+0:1", &[], unknown)), Law::Bytes);
    let entry = state(&[], &[(A, (0, 9))]);
    assert_eq!(law(check(Sync, "", &[], entry)), Law::Atomic);
}

#[test]
fn a_worker_that_contradicts_itself_is_told_so() {
    for history in ["+0:1 +0:2", "+0:1 .0:2", ".0:1", "+0:2 .0:2 +0:1", ")"] {
        let mut oracle = Oracle::new(Sync);
        let words: Vec<&str> = history.split_whitespace().collect();
        let (last, first) = words.split_last().unwrap();
        tell(&mut oracle, Sync, &first.join(" "), &[]);
        let event = match last.split_at(1) {
            ("+", rest) => Event::Intend(Intent {
                writer: pair(rest).0,
                counter: pair(rest).1,
                durability: Sync,
                transaction: true,
                changes: Vec::new(),
            }),
            (".", rest) => Event::Acked(pair(rest).0, pair(rest).1),
            _ => Event::Synced,
        };
        assert_eq!(
            oracle.observe(&event).unwrap_err().law,
            Law::Behaviour,
            "{history}"
        );
    }
}
