//! What the log's mutex guards.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::types::Seq;

use super::format::{ALIGN, BLOCK};
use super::group::{Group, Memory, scratch};
use super::options::{LogOptions, LogStats};
use super::segment::{Segment, Spare};

/// Segments that are full sooner than this are followed by larger ones, made two ahead: making one
/// waits for the device, which syncs the others.
pub(super) const HURRY: Duration = Duration::from_secs(1);

/// A sync of fewer bytes takes longer for the call than for the bytes.
const SHORT_SYNC: u64 = 64 << 10;

/// How much larger.
const GROWTH: u64 = 4;

/// A segment that is not released.
pub(super) struct Held {
    pub(super) number: u64,
    pub(super) size: u64,
    /// Bytes of it that hold groups.
    pub(super) used: u64,
    /// The newest record in it; the last segment's is still open.
    pub(super) last: Option<Seq>,
}

/// A segment written to since it was last synced.
#[derive(Clone)]
pub(super) struct Dirty {
    pub(super) segment: Arc<Segment>,
    /// The newest record written to it.
    pub(super) last: Seq,
}

pub(super) struct State {
    /// Where appends go.
    pub(super) active: Group,
    /// Full, waiting to be written, oldest first.
    pub(super) sealed: VecDeque<Group>,
    /// Buffers that are neither active, nor sealed, nor being written.
    pub(super) free: Vec<Memory>,
    /// What the writer compresses into, if it does.
    pub(super) scratch: Option<Memory>,
    /// Where in the segment written last the groups end, unpadded.
    pub(super) tail: (u64, u64),
    /// The next group begins a block: what was written before it may be synced already (I2).
    pub(super) fresh: bool,
    /// The group being written shares a block with one before it.
    pub(super) shares: bool,
    /// A thread writes (I6).
    pub(super) writing: bool,
    /// A thread syncs (I6).
    pub(super) syncing: bool,
    pub(super) preparing: bool,
    /// Why nothing can be written any more.
    pub(super) poison: Option<String>,
    pub(super) appended: Seq,
    pub(super) written: Seq,
    pub(super) durable: Seq,
    /// Where this log began to write new records; groups of older ones are recovery's copies.
    pub(super) restart: Seq,
    /// Ascending in both fields; each segment once.
    pub(super) dirty: VecDeque<Dirty>,
    /// Oldest first; the last is the active one's.
    pub(super) held: VecDeque<Held>,
    /// Made ahead, in the order they will be used in.
    pub(super) ahead: VecDeque<Arc<Segment>>,
    pub(super) next_number: u64,
    pub(super) spares: Vec<Spare>,
    /// Kept for opening the store on a full disk: no running log uses them.
    pub(super) reserve: Vec<Spare>,
    /// Bytes of the next segment, if no record asks for more.
    pub(super) usual: u64,
    /// When the active segment was begun, and how long the one before lasted.
    pub(super) begun: Duration,
    pub(super) lasted: Option<Duration>,
    /// Waits that the next sync will end, and how many the last one ended.
    pub(super) waiting: u64,
    pub(super) last_group: u64,
    /// Syncs with a waiting commit, and bytes written, when this was asked last:
    /// [`State::syncs_matter`].
    pub(super) asked: (u64, u64),
    pub(super) stats: LogStats,
    /// Records up to this one are in no segment that is held.
    pub(super) released: Seq,
}

impl State {
    /// A log that writes its first record, `appended + 1`, to `segment`.
    pub(super) fn new(
        segment: Segment,
        options: &LogOptions,
        appended: Seq,
        restart: Seq,
        now: Duration,
    ) -> State {
        assert!(appended < restart, "a log begins after what is durable");
        assert!(2 <= options.buffers, "one fills while another is written");
        let next_number = segment.number + 1;
        let usual = segment.size;
        let segment = Arc::new(segment);
        let held = Held {
            number: segment.number,
            size: segment.size,
            used: 0,
            last: None,
        };
        let first = Seq(appended.0 + 1);
        let memory = || Memory::new(options.buffer);
        State {
            active: Group::new(memory(), segment, BLOCK, restart, first),
            sealed: VecDeque::with_capacity(options.buffers),
            free: (1..options.buffers).map(|_| memory()).collect(),
            scratch: options.compress.then(|| scratch(options.buffer)),
            tail: (0, 0),
            fresh: true,
            shares: false,
            writing: false,
            syncing: false,
            preparing: false,
            poison: None,
            appended,
            written: appended,
            durable: appended,
            restart,
            dirty: VecDeque::new(),
            held: VecDeque::from([held]),
            ahead: VecDeque::new(),
            next_number,
            spares: Vec::new(),
            reserve: Vec::new(),
            usual,
            begun: now,
            lasted: None,
            waiting: 0,
            last_group: 0,
            released: Seq::ANCIENT,
            asked: (0, 0),
            stats: LogStats {
                segments: 1,
                ..LogStats::default()
            },
        }
    }

    /// `Closed` when the log is poisoned.
    pub(super) fn check(&self) -> Result<()> {
        let Some(cause) = &self.poison else {
            return Ok(());
        };
        let message = format!("the log failed before ({cause}); open the store again");
        Err(Error::new(ErrorKind::Closed, message))
    }

    /// I7: the first cause stays.
    pub(super) fn poison(&mut self, cause: &Error) {
        self.poison.get_or_insert_with(|| cause.to_string());
    }

    /// Take the active group out for writing; the next one begins behind it, in a free buffer.
    pub(super) fn rotate_buffer(&mut self) -> Group {
        let memory = self.free.pop().expect("the caller saw a free buffer");
        let group = &self.active;
        assert!(!group.is_empty(), "an empty group is not written");
        let next = Group::new(
            memory,
            Arc::clone(&group.segment),
            group.end(),
            group.void(),
            Seq(self.appended.0 + 1),
        );
        std::mem::replace(&mut self.active, next)
    }

    /// What a writer writes next: the older groups first (I1). There is a free buffer for the
    /// active group unless groups are sealed, since the writer has given back the one before.
    pub(super) fn take_group(&mut self) -> Option<Group> {
        if let Some(group) = self.sealed.pop_front() {
            return Some(group);
        }
        (!self.active.is_empty()).then(|| self.rotate_buffer())
    }

    /// Say where `group`, which is written next, is: right behind the one before it, unless that is
    /// in another segment, or may be synced by now, or `whole` blocks are to be written (I2).
    pub(super) fn place(&mut self, group: &mut Group, whole: bool) {
        assert!(self.writing, "I6: only the writer writes");
        let (segment, end) = self.tail;
        if segment == group.segment.number {
            let begin = if whole || self.fresh { BLOCK } else { ALIGN };
            group.place(end.next_multiple_of(begin));
        }
        self.shares = !group.offset.is_multiple_of(BLOCK);
        self.fresh = false;
    }

    /// A sync of what is written begins: nothing is written to these blocks any more (I2).
    pub(super) fn close_blocks(&mut self) {
        assert!(self.syncing, "I6: only the syncer syncs");
        self.fresh = true;
    }

    /// A group with records up to `last` was written to `segment`.
    pub(super) fn now_written(&mut self, segment: Arc<Segment>, last: Seq, bytes: u64) {
        assert!(self.writing, "I6: only the writer writes");
        assert!(self.written < last, "I1: groups go in order");
        assert!(last <= self.appended, "records are appended first");
        self.written = last;
        self.stats.bytes_written += bytes;
        match self.dirty.back_mut() {
            Some(dirty) if dirty.segment.number == segment.number => dirty.last = last,
            before => {
                let rises = before.is_none_or(|dirty| dirty.segment.number < segment.number);
                assert!(rises, "I3: numbers rise");
                self.dirty.push_back(Dirty { segment, last });
            }
        }
    }

    /// A group of segment `number` was `saved` bytes shorter than what was kept for it: what comes
    /// behind it and is not written yet moves up. Only the writer reads their places.
    pub(super) fn close_up(&mut self, number: u64, saved: u64) {
        assert!(self.writing, "I6: only the writer moves groups");
        if saved == 0 {
            return;
        }
        let groups = self.sealed.iter_mut().chain([&mut self.active]);
        for group in groups.filter(|group| group.segment.number == number) {
            group.move_back(saved);
        }
    }

    /// All files that held something up to `written` when the sync began were synced (I5).
    pub(super) fn now_durable(&mut self, written: Seq) {
        assert!(self.syncing, "I6: only the syncer makes durable");
        assert!(self.poison.is_none(), "I7: not after a failure");
        assert!(written <= self.written, "what was written was synced");
        assert!(self.durable <= written, "durable never falls");
        self.durable = written;
        self.dirty.retain(|dirty| written < dirty.last);
    }

    /// Let the empty active group begin `segment`, at time `now`. Segments grow up to `most` bytes
    /// while they are full soon.
    pub(super) fn begin_segment(&mut self, segment: Arc<Segment>, now: Duration, most: u64) {
        assert!(self.active.is_empty(), "I2: a group lies in one segment");
        let first = Seq(self.appended.0 + 1);
        let back = self.held.back_mut().expect("the active segment is held");
        assert!(back.number < segment.number, "I3: numbers rise");
        back.last = Some(self.appended);
        back.used = self.active.end();
        self.held.push_back(Held {
            number: segment.number,
            size: segment.size,
            used: 0,
            last: None,
        });
        // Recovery's copies must not make void what they are copies of.
        let void = first.max(self.restart);
        self.active.restart_in(segment, void, first);
        self.stats.segments += 1;
        let lasted = now.saturating_sub(self.begun);
        if lasted < HURRY {
            self.usual = self.usual.saturating_mul(GROWTH).min(most);
        }
        self.lasted = Some(lasted);
        self.begun = now;
    }

    /// Whether commits wait for many short syncs, going by what came since this was asked last.
    pub(super) fn syncs_matter(&mut self) -> bool {
        let now = (self.stats.groups, self.stats.bytes_written);
        let (groups, bytes) = (now.0 - self.asked.0, now.1 - self.asked.1);
        self.asked = now;
        bytes < groups.saturating_mul(SHORT_SYNC)
    }

    pub(super) fn bytes_held(&self) -> u64 {
        let closed: u64 = self.held.iter().map(|held| held.used).sum();
        closed + self.active.end()
    }

    /// The share of the buffers that holds records not yet written, in 1/1000; the rest of a
    /// sealed buffer is of no use either.
    pub(super) fn filled(&self) -> usize {
        let capacity = self.active.capacity();
        let whole = self.sealed.len() + usize::from(self.writing);
        let count = self.free.len() + 1 + whole;
        (whole * capacity + self.active.used()) * 1000 / (count * capacity)
    }
}
