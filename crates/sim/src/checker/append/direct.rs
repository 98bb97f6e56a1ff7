//! Checks that need no dependencies: of the lists, and of each transaction by itself.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::history::{Key, Op, Outcome, Txn, Value};
use super::verdict::{Anomaly, Kind};

/// The appends of a history, and their order as far as reads determine it.
pub(super) struct Lists {
    /// For each key, the longest list that was read.
    pub(super) longest: HashMap<Key, Vec<Value>>,
    /// For each value, the transaction that appended it, and whether it was the last append of this
    /// transaction to the key.
    pub(super) authors: HashMap<(Key, Value), Author>,
    /// For each transaction, whether it happened: it was acknowledged, or one of its values was
    /// read (I2).
    pub(super) happened: Vec<bool>,
}

/// The transaction that appended a value.
#[derive(Clone, Copy)]
pub(super) struct Author {
    pub(super) txn: usize,
    last: bool,
}

/// A read without the transaction's own appends.
pub(super) struct External<'a> {
    pub(super) key: Key,
    pub(super) list: &'a [Value],
}

fn found(kind: Kind, transactions: Vec<usize>, seen: String) -> Anomaly {
    Anomaly {
        kind,
        transactions,
        edges: Vec::new(),
        seen,
    }
}

/// Find the order of the lists, and report errors in them and in single transactions.
pub(super) fn lists(history: &[Txn], anomalies: &mut Vec<Anomaly>) -> Lists {
    let mut lists = Lists {
        longest: HashMap::new(),
        authors: authors(history, anomalies),
        happened: history
            .iter()
            .map(|t| t.outcome == Outcome::Committed)
            .collect(),
    };
    // The reads of a transaction of unknown outcome are valid even if it did not commit.
    let readers = || {
        history
            .iter()
            .enumerate()
            .filter(|(_, t)| t.outcome != Outcome::Aborted)
    };
    for (_, txn) in readers() {
        for read in external(txn, &mut |_| {}) {
            let longest = lists.longest.entry(read.key).or_default();
            if longest.len() < read.list.len() {
                *longest = read.list.to_vec();
            }
        }
    }
    lists.judge(history, anomalies);
    for (index, txn) in readers() {
        for read in external(txn, &mut |what| {
            anomalies.push(found(Kind::Internal, vec![index], what));
        }) {
            lists.judge_read(index, &read, history, anomalies);
        }
    }
    lists.lost_updates(history, anomalies);
    lists
}

fn authors(history: &[Txn], anomalies: &mut Vec<Anomaly>) -> HashMap<(Key, Value), Author> {
    let mut authors: HashMap<(Key, Value), Author> = HashMap::new();
    for (index, txn) in history.iter().enumerate() {
        for (at, op) in txn.ops.iter().enumerate() {
            let Op::Append(key, value) = op else { continue };
            let mut later = txn.ops.iter().skip(at + 1);
            let last = !later.any(|op| matches!(op, Op::Append(other, _) if other == key));
            let author = Author { txn: index, last };
            if let Some(before) = authors.insert((*key, *value), author) {
                let seen = format!("{value} is appended twice to key {key}");
                anomalies.push(found(Kind::Ambiguous, vec![before.txn, index], seen));
            }
        }
    }
    authors
}

/// The first read of each key, without the transaction's earlier appends to it. `wrong` receives
/// contradictions: own appends that are missing, later reads that differ.
pub(super) fn external<'a>(txn: &'a Txn, wrong: &mut dyn FnMut(String)) -> Vec<External<'a>> {
    let mut reads: Vec<External<'a>> = Vec::new();
    let mut own: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
    for op in &txn.ops {
        match op {
            Op::Append(key, value) => own.entry(*key).or_default().push(*value),
            Op::Read(key, list) => {
                let mine = own.get(key).map_or(&[][..], Vec::as_slice);
                let Some(list) = list.strip_suffix(mine) else {
                    wrong(format!(
                        "key {key} was read as {list:?} after appends of {mine:?}"
                    ));
                    continue;
                };
                match reads.iter().find(|read| read.key == *key) {
                    None => reads.push(External { key: *key, list }),
                    Some(before) if before.list == list => {}
                    Some(before) => wrong(format!(
                        "key {key} was read as {:?} and then as {list:?}",
                        before.list
                    )),
                }
            }
        }
    }
    reads
}

impl Lists {
    /// Check the longest list of each key: each value occurs once, and its transaction may have
    /// happened.
    fn judge(&mut self, history: &[Txn], anomalies: &mut Vec<Anomaly>) {
        let mut keys: Vec<Key> = self.longest.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            let list = self.longest.get(&key).map_or(&[][..], Vec::as_slice);
            self.judge_list(key, list, None, history, anomalies);
            for value in list {
                if let Some(author) = self.authors.get(&(key, *value))
                    && let Some(happened) = self.happened.get_mut(author.txn)
                {
                    *happened = true;
                }
            }
        }
    }

    fn judge_list(
        &self,
        key: Key,
        list: &[Value],
        reader: Option<usize>,
        history: &[Txn],
        anomalies: &mut Vec<Anomaly>,
    ) {
        let mut values = HashSet::with_capacity(list.len());
        for value in list {
            if !values.insert(*value) {
                let seen = format!("key {key} holds {value} twice");
                let who = self.authors.get(&(key, *value)).map(|author| author.txn);
                anomalies.push(found(Kind::Duplicate, who.into_iter().collect(), seen));
            }
            let Some(author) = self.authors.get(&(key, *value)) else {
                let seen = format!("key {key} holds {value}, which no transaction appended");
                anomalies.push(found(Kind::Unwritten, reader.into_iter().collect(), seen));
                continue;
            };
            let outcome = history.get(author.txn).map(|txn| txn.outcome);
            if outcome == Some(Outcome::Aborted) {
                let seen = format!("key {key} holds {value} of a transaction that was rolled back");
                let who = reader.into_iter().chain([author.txn]).collect();
                anomalies.push(found(Kind::AbortedRead, who, seen));
            }
        }
    }

    fn judge_read(
        &self,
        reader: usize,
        read: &External<'_>,
        history: &[Txn],
        anomalies: &mut Vec<Anomaly>,
    ) {
        let (key, list) = (read.key, read.list);
        let longest = self.longest.get(&key).map_or(&[][..], Vec::as_slice);
        if !longest.starts_with(list) {
            let seen = format!("key {key} was read as {list:?} and as {longest:?}");
            anomalies.push(found(Kind::Incompatible, vec![reader], seen));
            self.judge_list(key, list, Some(reader), history, anomalies);
        }
        let Some(author) = list.last().and_then(|last| self.authors.get(&(key, *last))) else {
            return;
        };
        if !author.last && author.txn != reader {
            let seen = format!("key {key} was read as {list:?}, before its author's next append");
            anomalies.push(found(
                Kind::IntermediateRead,
                vec![reader, author.txn],
                seen,
            ));
        }
    }

    /// Find acknowledged transactions that read the same list of a key and then appended to it.
    fn lost_updates(&self, history: &[Txn], anomalies: &mut Vec<Anomaly>) {
        let mut first: HashMap<(Key, usize), usize> = HashMap::new();
        for (index, txn) in history.iter().enumerate() {
            if self.happened.get(index) != Some(&true) {
                continue;
            }
            for read in external(txn, &mut |_| {}) {
                let appends = |op: &Op| matches!(op, Op::Append(key, _) if *key == read.key);
                if !txn.ops.iter().any(appends) {
                    continue;
                }
                let before = *first.entry((read.key, read.list.len())).or_insert(index);
                if before != index {
                    let (key, list) = (read.key, read.list);
                    let seen = format!("both read key {key} as {list:?} and appended to it");
                    anomalies.push(found(Kind::LostUpdate, vec![before, index], seen));
                }
            }
        }
    }
}
