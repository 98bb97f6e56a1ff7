//! Reads a whole run and compares it with all recorded metadata.

use std::sync::Arc;

use super::Run;
use super::pages::PageReader;
use super::sites::VERIFY_READ;
use crate::block::{Fence, Filter, key_hash};
use crate::error::{Error, Result};
use crate::page::Page;
use crate::types::{Entry, Op, Seq};

impl Run {
    /// Read all of the run from the file and check checksums, order, counts, the smallest and the
    /// largest key, fences and filter.
    ///
    /// # Errors
    /// `Corrupt` with the first thing that is wrong; `Io`.
    pub(crate) fn verify(self: &Arc<Self>) -> Result<()> {
        self.meta().check()?;
        let fence = self.read_fence(VERIFY_READ)?;
        let filtered = self.meta().filter_len != 0;
        let filter = if filtered {
            Some(self.read_filter(VERIFY_READ)?)
        } else {
            None
        };
        let mut walk = Walk {
            run: self,
            fence,
            filter,
            found: Found::default(),
            last: None,
        };
        let mut reader = PageReader::new(Arc::clone(self), VERIFY_READ);
        let mut page = Page::default();
        loop {
            let start = reader.offset();
            let Some(index) = reader.next(&mut page)? else {
                return walk.end();
            };
            walk.page(index, &page, start..reader.offset())?;
        }
    }
}

/// The counts so far.
#[derive(Default)]
struct Found {
    entries: u64,
    tombstones: u64,
    raw_bytes: u64,
    max_seq: Seq,
}

struct Walk<'a> {
    run: &'a Run,
    fence: Fence,
    filter: Option<Filter>,
    found: Found,
    /// Key and sequence number of the previous entry.
    last: Option<(Vec<u8>, Seq)>,
}

impl Walk<'_> {
    fn page(&mut self, index: u32, page: &Page, span: std::ops::Range<u64>) -> Result<()> {
        let wrong = |why: &str| self.run.damage(&format!("page {index}"), span.start, &why);
        if self.fence.span(index) != Some(span.clone()) {
            return Err(wrong("its fence says it is elsewhere"));
        }
        let first = page.key(0);
        if index == 0 && first != &*self.run.meta().min_key {
            return Err(wrong("its first key is not the smallest of the run"));
        }
        if let (Some((before, _)), Some((separator, continued))) =
            (&self.last, self.fence.separator(index))
        {
            let above = before < &separator || continued && before == &separator;
            if !above || first < &*separator || continued && first != &*separator {
                return Err(wrong(
                    "its separator is not between its keys and those before",
                ));
            }
        }
        for slot in 0..page.len() {
            let entry = page.entry(slot);
            if let Err(why) = self.entry(entry) {
                let what = format!("entry {slot} of page {index}");
                return Err(self.run.damage(&what, span.start, &why).with_key(entry.key));
            }
        }
        Ok(())
    }

    fn entry(&mut self, entry: Entry<'_>) -> Result<(), &'static str> {
        let ascends = self.last.as_ref().is_none_or(|(key, seq)| {
            key.as_slice() < entry.key || key.as_slice() == entry.key && entry.seq < *seq
        });
        if !ascends {
            return Err("it is not in order");
        }
        if entry.op == Op::Delete && !entry.value.is_empty() {
            return Err("it is a tombstone with a value");
        }
        if self
            .filter
            .as_ref()
            .is_some_and(|filter| !filter.may_hold(key_hash(entry.key)))
        {
            return Err("the filter does not know its key");
        }
        self.found.entries += 1;
        self.found.tombstones += u64::from(entry.op == Op::Delete);
        self.found.raw_bytes += (entry.key.len() + entry.value.len()) as u64;
        self.found.max_seq = self.found.max_seq.max(entry.seq);
        let (key, seq) = self.last.get_or_insert_default();
        key.clear();
        key.extend_from_slice(entry.key);
        *seq = entry.seq;
        Ok(())
    }

    fn end(self) -> Result<()> {
        let (meta, found) = (self.run.meta(), &self.found);
        assert!(found.tombstones <= found.entries, "tombstones are entries");
        let max_key = self.last.as_ref().map(|(key, _)| key.as_slice());
        let wrong = if found.entries != meta.entries {
            "entries"
        } else if found.tombstones != meta.tombstones {
            "tombstones"
        } else if found.raw_bytes != meta.raw_bytes {
            "bytes of keys and values"
        } else if found.max_seq != meta.max_seq {
            "largest sequence number"
        } else if max_key != Some(&*meta.max_key) {
            "largest key"
        } else {
            return Ok(());
        };
        Err(self.mismatch(wrong))
    }

    fn mismatch(&self, what: &str) -> Error {
        self.run.damage(
            "the description",
            0,
            &format!("the {what} of the run differ"),
        )
    }
}
