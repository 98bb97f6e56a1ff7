//! Sources of items: scans, lookups by `_id`, and unions of several inputs.

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
    /// No items.
    Nothing,
    /// One document by its `_id`.
    Point(Point),
    /// A scan.
    Scan(Box<Scan>),
    /// Inputs read one after another, each document once.
    Or(Or),
    /// Inputs merged in sort order, each document once.
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

    /// Release the current view of the store.
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

    /// The counts so far, of this input and those below it.
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

    /// The direct inputs of this one.
    pub(crate) fn inputs(&self) -> &[Input] {
        match self {
            Input::Or(or) => &or.inputs,
            Input::Merge(merge) => &merge.inputs,
            _ => &[],
        }
    }

    /// The indexes read by this input and those below it.
    pub(crate) fn indexes(&self) -> Vec<Arc<Index>> {
        match self {
            Input::Scan(scan) => scan.index().cloned().into_iter().collect(),
            other => other.inputs().iter().flat_map(Input::indexes).collect(),
        }
    }

    /// Report the plan's leaves.
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

    /// The plan leaf of an input without inputs of its own.
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

    /// The scan; `None` if this input is not a single scan.
    pub(crate) fn as_scan(&mut self) -> Option<&mut Scan> {
        match self {
            Input::Scan(scan) => Some(scan),
            _ => None,
        }
    }
}

/// Several inputs, read one after another.
pub(crate) struct Or {
    inputs: Vec<Input>,
    at: usize,
    seen: HashSet<RecordId>,
    counts: Counts,
}

impl Or {
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

/// Merges several inputs, each ordered by `sort`.
pub(crate) struct Merge {
    inputs: Vec<Input>,
    heads: Vec<Head>,
    sort: Arc<Sort>,
    collator: Option<Arc<Collator>>,
    /// Reads the documents of the heads again in a new view of the store.
    output: Output,
    /// Whether the heads are from an earlier view of the store.
    stale: bool,
    seen: HashSet<RecordId>,
    counts: Counts,
}

impl Merge {
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

    /// Fetch the head of an input if it is unknown; false when the work budget is used up first.
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

    /// Read the heads again in the current view; drops those whose document was deleted or moved.
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
                // The item carries the index key it was found by, which a new read would lose: keep
                // the item.
                Some(_) if stays && self.output.is_keyed() => {}
                Some(now) if stays => *item = now,
                _ => *head = Head::Unknown,
            }
        }
        Ok(())
    }
}
