//! Fences: the offset of each page of a run, and the range of keys it may contain.
//!
//! Between each two pages stands a *separator*: the shortest key that is greater than the last key
//! of the page before and not greater than the first key of the page after. Where versions of one
//! key fill the end of a page and the beginning of the next, that key is the separator, and it is
//! marked *continued*.
//!
//! Invariants:
//! - I1: separators ascend; two are equal only when the later is continued.
//! - I2: page `i` holds keys from separator `i` (inclusive) to separator `i + 1` (exclusive; or
//!   inclusive where that is continued); the first page has no lower and the last no upper limit.
//! - I3: pages lie back to back from offset 0 to the fence block.
//!
//! The body of the block, for each page: its stored length, the number of bytes its separator
//! shares with the one before, the number of bytes it does not share times 2 plus 1 if it is
//! continued (all three as LEB128), and the bytes not shared. The separator of the first page is
//! empty.
//!
//! In memory: the prefix all separators share, then for each its next 8 bytes as a number (a
//! search goes through these, 8 KiB for 1,000 pages), then the rest of the bytes.

use std::cmp::Ordering;
use std::mem;
use std::ops::Range;

use super::BlockIdent;
use crate::types::head;

/// Maximum length of a separator read from disk: more than the longest key.
const MAX_SEPARATOR: usize = 1 << 16;

/// The decoded fences of a run.
#[derive(Debug)]
pub(crate) struct Fence {
    prefix: Box<[u8]>,
    /// The 8 bytes after the prefix of each separator, one fewer than pages.
    heads: Box<[u64]>,
    separators: Box<[Separator]>,
    /// The bytes after the prefix of all separators.
    keys: Box<[u8]>,
    /// The start of each page, and the end of the last one.
    offsets: Box<[u64]>,
}

#[derive(Clone, Copy, Debug)]
struct Separator {
    start: u32,
    len: u16,
    continued: bool,
}

impl Fence {
    /// The fences of a run with a single page, which stores none.
    pub(crate) fn single(page_len: u64) -> Fence {
        Fence {
            prefix: Box::default(),
            heads: Box::default(),
            separators: Box::default(),
            keys: Box::default(),
            offsets: Box::new([0, page_len]),
        }
    }

    /// Decode the fence block of `pages` pages that end at offset `end`.
    pub(crate) fn decode(
        ident: BlockIdent,
        stored: &[u8],
        pages: u32,
        end: u64,
    ) -> Result<Fence, &'static str> {
        let block = super::decode(ident, stored)?;
        if block.count != pages || pages == 0 {
            return Err("it does not have the pages of its run");
        }
        // Each page takes three numbers of at least one byte, which bounds the memory reserved
        // here.
        let count = usize::try_from(pages).map_err(|_| "it has too many pages")?;
        if block.body.len() / 3 < count {
            return Err("it is too short for its pages");
        }
        let mut parser = Parser::new(block.body, count);
        for _ in 0..count {
            parser.page()?;
        }
        if !parser.body.is_empty() {
            return Err("there are bytes after its last page");
        }
        if parser.offsets.last() != Some(&end) {
            return Err("its pages do not end where the fence block begins");
        }
        parser.finish()
    }

    /// The number of pages.
    pub(crate) fn pages(&self) -> u32 {
        let count = self.heads.len() + 1;
        u32::try_from(count).expect("a run counts its pages in 32 bits")
    }

    /// The location of a page, if it exists.
    #[inline]
    pub(crate) fn span(&self, page: u32) -> Option<Range<u64>> {
        let page = usize::try_from(page).ok()?;
        let start = *self.offsets.get(page)?;
        let end = *self.offsets.get(page + 1)?;
        debug_assert!(start < end, "I3: pages are not empty");
        Some(start..end)
    }

    /// The first page that may contain `key` or, if none does, later keys.
    #[inline]
    pub(crate) fn first_page(&self, key: &[u8]) -> u32 {
        let below = self.rank(key, false);
        let begins = match self.separators.get(below) {
            Some(next) => !next.continued && self.is(below, key),
            None => false,
        };
        number(below + usize::from(begins))
    }

    /// The last page that may contain `key` or, if none does, earlier keys.
    #[inline]
    pub(crate) fn last_page(&self, key: &[u8]) -> u32 {
        number(self.rank(key, true))
    }

    /// Whether `page` starts with versions of `key`, and the previous page ends with some.
    #[inline]
    pub(crate) fn continues(&self, page: u32, key: &[u8]) -> bool {
        let Some(at) = usize::try_from(page)
            .ok()
            .and_then(|page| page.checked_sub(1))
        else {
            return false;
        };
        let continued = self.separators.get(at).is_some_and(|it| it.continued);
        continued && self.is(at, key)
    }

    /// The separator before `page`, if there is one, and whether it is continued.
    pub(crate) fn separator(&self, page: u32) -> Option<(Vec<u8>, bool)> {
        let at = usize::try_from(page).ok()?.checked_sub(1)?;
        let separator = *self.separators.get(at)?;
        let mut key = self.prefix.to_vec();
        key.extend_from_slice(self.suffix(separator));
        Some((key, separator.continued))
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        mem::size_of::<Fence>()
            + self.prefix.len()
            + mem::size_of_val(&*self.heads)
            + mem::size_of_val(&*self.separators)
            + self.keys.len()
            + mem::size_of_val(&*self.offsets)
    }

    /// Number of separators below `key`, or, with `or_equal`, not above it.
    fn rank(&self, key: &[u8], or_equal: bool) -> usize {
        let shared = self.prefix.len().min(key.len());
        let (front, rest) = key.split_at(shared);
        let prefix = self.prefix.get(..shared).expect("at most its length");
        match front.cmp(prefix) {
            Ordering::Less => return 0,
            Ordering::Greater => return self.heads.len(),
            Ordering::Equal if shared < self.prefix.len() => return 0,
            Ordering::Equal => {}
        }
        let head = head(rest);
        let from = self.heads.partition_point(|it| *it < head);
        let Some(tail) = self.heads.get(from..) else {
            return from;
        };
        if tail.first() != Some(&head) {
            return from;
        }
        let to = from + tail.partition_point(|it| *it == head);
        let alike = self.separators.get(from..to).expect("as many as heads");
        from + alike.partition_point(|it| match self.suffix(*it).cmp(rest) {
            Ordering::Less => true,
            Ordering::Equal => or_equal,
            Ordering::Greater => false,
        })
    }

    /// Whether separator `at` is `key`.
    #[inline]
    fn is(&self, at: usize, key: &[u8]) -> bool {
        let Some(separator) = self.separators.get(at) else {
            return false;
        };
        key.strip_prefix(&*self.prefix) == Some(self.suffix(*separator))
    }

    #[inline]
    fn suffix(&self, separator: Separator) -> &[u8] {
        let start = separator.start as usize;
        let end = start + usize::from(separator.len);
        self.keys
            .get(start..end)
            .expect("built from the lengths of its keys")
    }
}

fn number(page: usize) -> u32 {
    u32::try_from(page).expect("a run counts its pages in 32 bits")
}

/// Collects the fences of a run that is being written.
#[derive(Debug, Default)]
pub(crate) struct FenceBuilder {
    body: Vec<u8>,
    pages: u32,
    last: Vec<u8>,
    next: Option<(Vec<u8>, bool)>,
}

impl FenceBuilder {
    /// Start a page whose first key is `first_key`; `last_key` is the last key of the previous
    /// page, if any.
    pub(crate) fn begin(&mut self, last_key: Option<&[u8]>, first_key: &[u8]) {
        assert!(self.next.is_none(), "the page before has ended");
        assert_eq!(
            last_key.is_none(),
            self.pages == 0,
            "only the first page has none before"
        );
        let Some(last_key) = last_key else {
            self.next = Some((Vec::new(), false));
            return;
        };
        debug_assert!(last_key <= first_key, "I1: keys ascend");
        let continued = last_key == first_key;
        let len = if continued {
            first_key.len()
        } else {
            shared(last_key, first_key) + 1
        };
        let separator = first_key.get(..len).expect("greater keys are not prefixes");
        self.next = Some((separator.to_vec(), continued));
    }

    /// End the page, which takes `stored` bytes.
    pub(crate) fn end(&mut self, stored: u32) {
        let (separator, continued) = self.next.take().expect("a page has begun");
        assert!(0 < stored, "I3: pages are not empty");
        let shared = shared(&self.last, &separator);
        let rest = separator.get(shared..).expect("at most its length");
        put(&mut self.body, u64::from(stored));
        put(&mut self.body, shared as u64);
        put(
            &mut self.body,
            (rest.len() as u64) << 1 | u64::from(continued),
        );
        self.body.extend_from_slice(rest);
        self.last = separator;
        self.pages += 1;
    }

    /// Number of completed pages.
    pub(crate) fn pages(&self) -> u32 {
        self.pages
    }

    /// Append the block to `out`; returns its length.
    pub(crate) fn finish(&self, ident: BlockIdent, out: &mut Vec<u8>) -> u32 {
        assert!(self.next.is_none(), "the last page has ended");
        super::encode(ident, 0, self.pages, &self.body, out)
    }
}

fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("7 bits");
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// A fence block being decoded.
struct Parser<'a> {
    body: &'a [u8],
    last: Vec<u8>,
    keys: Vec<u8>,
    separators: Vec<Separator>,
    offsets: Vec<u64>,
}

impl Parser<'_> {
    fn new(body: &[u8], count: usize) -> Parser<'_> {
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0);
        Parser {
            body,
            last: Vec::new(),
            keys: Vec::with_capacity(body.len()),
            separators: Vec::with_capacity(count - 1),
            offsets,
        }
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0u64;
        for shift in (0..63).step_by(7) {
            let (byte, rest) = self.body.split_first().ok_or("it ends within a page")?;
            self.body = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number in it is too long")
    }

    fn page(&mut self) -> Result<(), &'static str> {
        let stored = self.number()?;
        let shared = self.number()?;
        let rest_len = self.number()?;
        let (continued, rest_len) = (rest_len & 1 == 1, rest_len >> 1);
        let start = self.offsets.last().copied().unwrap_or(0);
        let end = start.checked_add(stored).filter(|end| start < *end);
        let first = self.offsets.len() == 1;
        self.offsets
            .push(end.ok_or("the length of a page is wrong")?);
        let shared = usize::try_from(shared).map_err(|_| "a separator is too long")?;
        let rest_len = usize::try_from(rest_len).map_err(|_| "a separator is too long")?;
        if self.last.len() < shared || MAX_SEPARATOR <= shared.saturating_add(rest_len) {
            return Err("a separator is too long");
        }
        let cut = self
            .body
            .split_at_checked(rest_len)
            .ok_or("it ends within a separator")?;
        let (rest, body) = cut;
        self.body = body;
        if first {
            let none = rest.is_empty() && !continued;
            return if none {
                Ok(())
            } else {
                Err("its first page has a separator")
            };
        }
        self.separate(shared, rest, continued)
    }

    /// Add a separator.
    fn separate(
        &mut self,
        shared: usize,
        rest: &[u8],
        continued: bool,
    ) -> Result<(), &'static str> {
        let before = mem::take(&mut self.last);
        self.last
            .extend_from_slice(before.get(..shared).unwrap_or_default());
        self.last.extend_from_slice(rest);
        let order = before.cmp(&self.last);
        let ascends = order == Ordering::Less || order == Ordering::Equal && continued;
        if !ascends {
            return Err("its separators are not in order");
        }
        let start = u32::try_from(self.keys.len()).map_err(|_| "its separators are too long")?;
        let len = u16::try_from(self.last.len()).map_err(|_| "a separator is too long")?;
        self.keys.extend_from_slice(&self.last);
        self.separators.push(Separator {
            start,
            len,
            continued,
        });
        Ok(())
    }

    /// Remove the common prefix of the separators.
    fn finish(self) -> Result<Fence, &'static str> {
        let whole = |it: &Separator| {
            let start = it.start as usize;
            self.keys
                .get(start..start + usize::from(it.len))
                .unwrap_or_default()
        };
        let first = self.separators.first().map(whole).unwrap_or_default();
        let last = self.separators.last().map(whole).unwrap_or_default();
        // All keys between two keys with a common prefix have it as well (I1).
        let prefix = first.get(..shared(first, last)).unwrap_or_default();
        let mut keys = Vec::with_capacity(self.keys.len());
        let mut heads = Vec::with_capacity(self.separators.len());
        let mut separators = Vec::with_capacity(self.separators.len());
        for separator in &self.separators {
            let out_of_order = "its separators are not in order";
            let suffix = whole(separator).strip_prefix(prefix).ok_or(out_of_order)?;
            heads.push(head(suffix));
            separators.push(Separator {
                start: u32::try_from(keys.len()).map_err(|_| "its separators are too long")?,
                len: u16::try_from(suffix.len()).map_err(|_| "a separator is too long")?,
                continued: separator.continued,
            });
            keys.extend_from_slice(suffix);
        }
        Ok(Fence {
            prefix: prefix.into(),
            heads: heads.into(),
            separators: separators.into(),
            keys: keys.into(),
            offsets: self.offsets.into(),
        })
    }
}
