//! Where items come from: scans, single documents, and several of them together.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;

use query::Result;
use query::collation::Collator;
use query::sort::{Sort, SortKey};

use super::cx::Cx;
use super::item::{Counts, Item, Step};
use super::output::Output;
use super::point::Point;
use super::scan::Scan;
use crate::examined::{Examined, Leaf};
use crate::index::Index;
use crate::record::RecordId;

/// A source of items.
pub(crate) enum Input {
    /// None come.
    Nothing,
    /// One document by its `_id`.
    Point(Point),
    /// A scan.
    Scan(Box<Scan>),
    /// One after the other, each document once.
    Or(Or),
    /// Merged, each document once.
    Merge(Merge),
}

impl Input {
    /// The next item.
    pub(crate) fn next(&mut self, cx: &mut Cx<'_>) -> Result<Step<Item>> {
        match self {
            Input::Nothing => Ok(Step::End),
            Input::Point(point) => point.next(cx),
            Input::Scan(scan) => scan.next(cx),
            Input::Or(or) => or.next(cx),
            Input::Merge(merge) => merge.next(cx),
        }
    }

    /// Leave the view of the store.
    pub(crate) fn save(&mut self) {
        match self {
            Input::Nothing | Input::Point(_) => {}
            Input::Scan(scan) => scan.save(),
            Input::Or(or) => or.inputs.iter_mut().for_each(Input::save),
            Input::Merge(merge) => {
                merge.stale = true;
                merge.inputs.iter_mut().for_each(Input::save);
            }
        }
    }

    /// What was done so far, here and below.
    pub(crate) fn counts(&self) -> Counts {
        let (mut all, inputs) = match self {
            Input::Nothing => return Counts::default(),
            Input::Point(point) => return *point.counts(),
            Input::Scan(scan) => return *scan.counts(),
            Input::Or(or) => (or.counts, &or.inputs),
            Input::Merge(merge) => (merge.counts, &merge.inputs),
        };
        for input in inputs {
            all.add(&input.counts());
        }
        all
    }

    /// The inputs of this one.
    pub(crate) fn inputs(&self) -> &[Input] {
        match self {
            Input::Or(or) => &or.inputs,
            Input::Merge(merge) => &merge.inputs,
            _ => &[],
        }
    }

    /// The indexes that are read, here and below.
    pub(crate) fn indexes(&self) -> Vec<Arc<Index>> {
        match self {
            Input::Scan(scan) => scan.index().cloned().into_iter().collect(),
            other => other.inputs().iter().flat_map(Input::indexes).collect(),
        }
    }

    /// Say where it reads.
    pub(crate) fn report_plan(&self, examined: &Examined) {
        match self.leaf() {
            Some(leaf) => examined.plan(&[leaf]),
            None => {
                let mut leaves = Vec::new();
                self.gather(&mut leaves);
                examined.plan(&leaves);
            }
        }
    }

    /// What reads by itself.
    fn leaf(&self) -> Option<Leaf> {
        match self {
            Input::Nothing => Some(Leaf::plain("EOF")),
            Input::Point(point) => Some(point.leaf().clone()),
            Input::Scan(scan) => Some(scan.leaf()),
            Input::Or(_) | Input::Merge(_) => None,
        }
    }

    fn gather(&self, leaves: &mut Vec<Leaf>) {
        match self.leaf() {
            Some(leaf) => leaves.push(leaf),
            None => self.inputs().iter().for_each(|input| input.gather(leaves)),
        }
    }

    /// The only scan, if that is what it is.
    pub(crate) fn as_scan(&mut self) -> Option<&mut Scan> {
        match self {
            Input::Scan(scan) => Some(scan),
            _ => None,
        }
    }
}

/// Several inputs one after the other.
pub(crate) struct Or {
    inputs: Vec<Input>,
    at: usize,
    seen: HashSet<RecordId>,
    counts: Counts,
}

impl Or {
    /// Before the first item of the first input.
    pub(crate) fn new(inputs: Vec<Input>) -> Or {
        Or {
            inputs,
            at: 0,
            seen: HashSet::new(),
            counts: Counts::default(),
        }
    }

    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Step<Item>> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            match input.next(cx)? {
                Step::Row(item) => {
                    if self.seen.insert(item.record.clone()) {
                        self.counts.returned += 1;
                        return Ok(Step::Row(item));
                    }
                    self.counts.duplicates += 1;
                }
                Step::Pause => return Ok(Step::Pause),
                Step::End => self.at += 1,
            }
        }
        Ok(Step::End)
    }
}

/// The next item of one input of a merge.
enum Head {
    Unknown,
    Item(SortKey, Item),
    Ended,
}

/// Several inputs that are each in the order of `sort`.
pub(crate) struct Merge {
    inputs: Vec<Input>,
    heads: Vec<Head>,
    sort: Arc<Sort>,
    collator: Option<Arc<Collator>>,
    /// How documents are read again.
    output: Output,
    /// Whether the heads are from an earlier view of the store.
    stale: bool,
    seen: HashSet<RecordId>,
    counts: Counts,
}

impl Merge {
    /// Before the first item.
    pub(crate) fn new(
        inputs: Vec<Input>,
        sort: Arc<Sort>,
        collator: Option<Arc<Collator>>,
        output: Output,
    ) -> Merge {
        Merge {
            heads: inputs.iter().map(|_| Head::Unknown).collect(),
            inputs,
            sort,
            collator,
            output,
            stale: false,
            seen: HashSet::new(),
            counts: Counts::default(),
        }
    }

    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Step<Item>> {
        if mem::take(&mut self.stale) {
            self.refresh(cx)?;
        }
        loop {
            for at in 0..self.inputs.len() {
                if !self.find_head(at, cx)? {
                    return Ok(Step::Pause);
                }
            }
            let Some(least) = self.least() else {
                return Ok(Step::End);
            };
            let Some(head) = self.heads.get_mut(least) else {
                return Ok(Step::End);
            };
            if let Head::Item(_, item) = mem::replace(head, Head::Unknown) {
                if self.seen.insert(item.record.clone()) {
                    self.counts.returned += 1;
                    return Ok(Step::Row(item));
                }
                self.counts.duplicates += 1;
            }
        }
    }

    /// Make sure that the head of an input is known; false when the work allowed is done.
    fn find_head(&mut self, at: usize, cx: &mut Cx<'_>) -> Result<bool> {
        let (Some(head), Some(input)) = (self.heads.get_mut(at), self.inputs.get_mut(at)) else {
            return Ok(true);
        };
        if matches!(head, Head::Unknown) {
            *head = match input.next(cx)? {
                Step::Row(item) => {
                    let key = self.sort.key(&item.document, self.collator.as_deref())?;
                    Head::Item(key, item)
                }
                Step::Pause => return Ok(false),
                Step::End => Head::Ended,
            };
        }
        Ok(true)
    }

    fn least(&self) -> Option<usize> {
        let mut least: Option<(usize, &SortKey)> = None;
        for (at, head) in self.heads.iter().enumerate() {
            if let Head::Item(key, _) = head
                && least.is_none_or(|(_, best)| key < best)
            {
                least = Some((at, key));
            }
        }
        least.map(|(at, _)| at)
    }

    /// Read the heads again: those that are gone, or have moved, are dropped.
    fn refresh(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        let mut scratch = Vec::new();
        for head in &mut self.heads {
            let Head::Item(key, item) = head else {
                continue;
            };
            let again = self
                .output
                .again(&item.record, cx, &mut scratch, &mut self.counts)?;
            let stays = match &again {
                None => false,
                Some(now) => self.sort.key(&now.document, self.collator.as_deref())? == *key,
            };
            match again {
                // The key it was found by is not read again.
                Some(_) if stays && self.output.is_keyed() => {}
                Some(now) if stays => *item = now,
                _ => *head = Head::Unknown,
            }
        }
        Ok(())
    }
}
