//! Histories with known results.

use super::Kind::*;
use super::*;
use std::collections::HashMap;

use stdx::Rng;

/// A transaction from text: first `?` for an unknown outcome or `!` for an abort, then the
/// operations: `x+1` appends 1 to x, `x=12` reads the list 1, 2.
fn txn(session: u64, start: u64, end: u64, text: &str) -> Txn {
    let (outcome, ops) = match text.split_at(1) {
        ("?", rest) => (Outcome::Unknown, rest),
        ("!", rest) => (Outcome::Aborted, rest),
        _ => (Outcome::Committed, text),
    };
    let digits = |text: &[u8]| text.iter().map(|d| u64::from(d - b'0')).collect::<Vec<_>>();
    let op = |word: &str| match word.as_bytes() {
        [key, b'+', value] => Op::Append(u64::from(*key), digits(&[*value])[0]),
        [key, b'=', list @ ..] => Op::Read(u64::from(*key), digits(list)),
        _ => panic!("{word}"),
    };
    Txn {
        session,
        start,
        end,
        outcome,
        ops: ops.split_whitespace().map(op).collect(),
    }
}

/// Transactions of different clients, all at the same time.
fn together(texts: &[&str]) -> Vec<Txn> {
    let one = |(i, text): (u64, &&str)| txn(i, 0, 100, text);
    (0..).zip(texts).map(one).collect()
}

/// Transactions of different clients, one after the other.
fn in_turn(texts: &[&str]) -> Vec<Txn> {
    let one = |(i, text): (u64, &&str)| txn(i, 10 * i, 10 * i + 5, text);
    (0..).zip(texts).map(one).collect()
}

#[track_caller]
fn expect(history: &[Txn], kinds: &[Kind]) {
    let verdict = check(history);
    let mut found: Vec<Kind> = verdict.anomalies.iter().map(|a| a.kind).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, kinds, "{verdict}");
    let only_skew = kinds.iter().all(|kind| *kind == G2Item);
    assert_eq!(
        verdict.holds(Level::SnapshotIsolation),
        only_skew,
        "{verdict}"
    );
    assert_eq!(
        verdict.holds(Level::Serializable),
        kinds.is_empty(),
        "{verdict}"
    );
}

#[test]
fn sound_histories_are_sound() {
    // I1.
    expect(&[], &[]);
    expect(&together(&["x+1"]), &[]);
    expect(&together(&["x="]), &[]);
    expect(&together(&["x+1 y+1", "x=1 y=1"]), &[]);
    expect(&together(&["x+1", "x+2", "x=21", "x=2", "x="]), &[]);
    expect(
        &in_turn(&["x+1", "x=1 x+2", "x=12", "y=", "x=12 y+1", "y=1"]),
        &[],
    );
    // A transaction sees its own appends, after the existing ones.
    expect(&in_turn(&["x+1", "x=1 x+2 x=12 x+3 x=123", "x=123"]), &[]);
    expect(&in_turn(&["x+1 x=1"]), &[]);
    // The second transaction is not read by any other: this is allowed.
    expect(&in_turn(&["x=", "x+1"]), &[]);
}

#[test]
fn unknown_ends_may_have_happened_or_not() {
    // I2.
    expect(&in_turn(&["?x+1", "x=", "x="]), &[]);
    expect(&in_turn(&["?x+1", "x=", "x=1"]), &[]);
    expect(&in_turn(&["?x+1", "x=1", "x=1"]), &[]);
    // A value that was read once must stay visible.
    expect(&in_turn(&["?x+1", "x=1", "x="]), &[GSingle]);
    // A transaction of unknown outcome is atomic, too.
    expect(&in_turn(&["?x+1 y+1", "x=1 y="]), &[GSingle]);
    // A value cannot be read before its transaction began.
    expect(&in_turn(&["x=1", "?x+1"]), &[G1c]);
}

#[test]
fn lists_that_cannot_be_are_found() {
    expect(&together(&["x+1", "x=11"]), &[Duplicate]);
    expect(&together(&["x=1"]), &[Unwritten]);
    expect(&together(&["x+1", "x+2", "x=12", "x=21"]), &[Incompatible]);
    expect(&together(&["x+1", "x+2", "x=1", "x=2"]), &[Incompatible]);
    expect(&together(&["x+1", "x+1"]), &[Ambiguous]);
}

#[test]
fn aborted_and_intermediate_reads_are_found() {
    expect(&together(&["!x+1", "x=1"]), &[AbortedRead]);
    expect(&together(&["!x+1", "x+2", "x=12"]), &[AbortedRead]);
    expect(&together(&["!x+1", "x="]), &[]);
    expect(&together(&["x+1 x+2", "x=1"]), &[IntermediateRead, GSingle]);
    expect(&together(&["x+1 x+2", "x=12"]), &[]);
    // The reads of an aborted transaction are not checked.
    expect(&together(&["!x=9"]), &[]);
}

#[test]
fn transactions_agree_with_themselves() {
    expect(&together(&["x+1 x="]), &[Internal]);
    expect(&together(&["x+1 x=1", "x=1"]), &[]);
    expect(&together(&["x+1", "x= x=1"]), &[Internal]);
    expect(&together(&["x+1", "x+2 x=21", "x=21"]), &[Internal]);
}

#[test]
fn lost_updates_are_found() {
    expect(
        &together(&["x= x+1", "x= x+2", "x=12"]),
        &[LostUpdate, GSingle],
    );
    expect(
        &together(&["x= x+1", "x= x+2", "x=1"]),
        &[LostUpdate, GSingle],
    );
    expect(&together(&["x= x+1", "!x= x+2", "x=1"]), &[]);
    expect(&together(&["x= x+1", "x=1 x+2", "x=12"]), &[]);
}

#[test]
fn what_was_acknowledged_is_seen() {
    expect(&in_turn(&["x+1", "x="]), &[GSingle]);
    expect(&in_turn(&["x+1", "x+2", "x=1"]), &[GSingle]);
    // The append was not acknowledged before the read began, so the read may miss it.
    expect(&together(&["x+1", "x="]), &[]);
    // A client must see its own earlier append, whatever the clock says.
    let own = [txn(1, 0, 9, "x+1"), txn(1, 0, 9, "x=")];
    expect(&own, &[GSingle]);
    let other = [txn(1, 0, 9, "x+1"), txn(2, 0, 9, "x=")];
    expect(&other, &[]);
    // The second transaction read the append and ended before the third began, so the third read is
    // stale.
    let stale = [
        txn(1, 0, 50, "x+1"),
        txn(2, 10, 20, "x=1"),
        txn(3, 30, 40, "x="),
    ];
    expect(&stale, &[GSingle]);
}

#[test]
fn write_cycles_are_found() {
    expect(&together(&["x+1 y+1", "x+2 y+2", "x=12", "y=21"]), &[G0]);
    expect(&together(&["x+1 y+1", "x+2 y+2", "x=12", "y=12"]), &[]);
    // The order of the appends contradicts real time.
    expect(&in_turn(&["x+1", "x+2", "x=21"]), &[G0]);
}

#[test]
fn circular_information_is_found() {
    expect(&together(&["x+1 y=1", "y+1 x=1"]), &[G1c]);
    expect(&together(&["x+1 y=2", "x+2 y+2", "x=21"]), &[]);
    expect(&together(&["x+1 y=2", "x+2 y+2", "x=12"]), &[G1c]);
    // The first transaction reads a value that is appended later.
    expect(&in_turn(&["x=1", "x+1"]), &[G1c]);
}

#[test]
fn read_skew_is_found() {
    expect(&together(&["x+1 y+1", "x= y=1"]), &[GSingle]);
    expect(&together(&["x+1 y+1", "x+2 y+2", "x=1 y=12"]), &[GSingle]);
    // In three steps: the third transaction sees the second, which saw the first, but does not see
    // the first.
    expect(&together(&["x+1", "x=1 y+1", "x= y=1"]), &[GSingle]);
}

#[test]
fn write_skew_is_told_from_what_snapshots_forbid() {
    expect(&together(&["x= y+1", "y= x+1", "x=1 y=1"]), &[G2Item]);
    expect(
        &together(&["x= y+1", "y= z+1", "z= x+1", "x=1 y=1 z=1"]),
        &[G2Item],
    );
    // The read-only anomaly (Fekete, O'Neil, O'Neil, 2004): its rw edges are adjacent, so snapshot
    // isolation allows it.
    let read_only = [
        txn(1, 0, 50, "x= y= x+1"),
        txn(2, 10, 20, "y= y+1"),
        txn(3, 30, 40, "x= y=1"),
        txn(4, 60, 70, "x=1 y=1"),
    ];
    expect(&read_only, &[G2Item]);
    // Long fork: two readers see two appends in different orders.
    expect(
        &together(&["x+1", "y+1", "x=1 y=", "x= y=1"]),
        &[GNonadjacent],
    );
    // Executed one after the other, this is not write skew but a stale read.
    expect(&in_turn(&["x= y+1", "y= x+1", "x=1 y=1"]), &[GSingle]);
}

#[test]
fn an_anomaly_says_what_it_is_made_of() {
    let verdict = check(&together(&["x+1 y+1", "x= y=1"]));
    let x = u64::from(b'x');
    let anomaly = &verdict.anomalies[0];
    assert_eq!(anomaly.transactions.len(), 2, "{verdict}");
    assert!(anomaly.edges.contains(&Edge::Rw(x)), "{verdict}");
    assert!(verdict.to_string().contains("T1 -rw 120-> T0"), "{verdict}");
}

/// A serial execution by clients whose transactions overlap in time.
fn serial(seed: u64, transactions: usize) -> Vec<Txn> {
    let mut rng = Rng::new(seed);
    let mut lists: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut history = Vec::with_capacity(transactions);
    let mut next = 0;
    for now in 0..transactions as u64 {
        let mut ops = Vec::new();
        for _ in 0..1 + rng.below(4) {
            // Keys change, so that lists stay short, as in real workloads.
            let key = now / 500 * 64 + rng.below(64);
            let list = lists.entry(key).or_default();
            if rng.chance(0.5) {
                ops.push(Op::Read(key, list.clone()));
            } else {
                next += 1;
                list.push(next);
                ops.push(Op::Append(key, next));
            }
        }
        let slack = rng.below(20);
        history.push(Txn {
            session: now % 16,
            start: 100 + 10 * now - slack,
            end: 100 + 10 * now + rng.below(20),
            outcome: Outcome::Committed,
            ops,
        });
    }
    history
}

#[test]
fn serial_executions_are_sound_and_changed_ones_are_not() {
    for seed in 0..30 {
        let mut history = serial(seed, 300);
        expect(&history, &[]);
        // Let a transaction read an old state.
        let stale = history
            .iter_mut()
            .rev()
            .find_map(|txn| match txn.ops.as_mut_slice() {
                [Op::Read(_, list), ..] if 3 < list.len() => Some(list),
                _ => None,
            });
        let list = stale.expect("a transaction read a list");
        list.truncate(list.len() / 2);
        let verdict = check(&history);
        assert!(
            !verdict.holds(Level::SnapshotIsolation),
            "seed {seed}: {verdict}"
        );
    }
}

/// Prints the speed of the checker; asserts nothing about it.
#[test]
fn long_histories_are_judged_in_linear_time() {
    let transactions = 100_000;
    let history = serial(1, transactions);
    let begin = stdx::time::now();
    let verdict = check(&history);
    let seconds = (stdx::time::now() - begin).as_secs_f64();
    assert!(verdict.holds(Level::Serializable), "{verdict}");
    assert!(transactions < verdict.edges, "{verdict}");
    println!(
        "{:.0} transactions per second",
        transactions as f64 / seconds
    );
}
