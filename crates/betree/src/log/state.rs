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

/// Segments that fill up faster than this are followed by larger ones, created two ahead, because
/// creating a segment waits for the device while it syncs others.
pub(super) const HURRY: Duration = Duration::from_secs(1);

/// For fewer bytes than this the duration of a sync depends on the call and not on the bytes.
const SHORT_SYNC: u64 = 64 << 10;

/// Factor by which segments grow.
const GROWTH: u64 = 4;

/// A segment that is not released.
pub(super) struct Held {
    pub(super) number: u64,
    pub(super) size: u64,
    /// Bytes that contain groups.
    pub(super) used: u64,
    /// The newest record in it; `None` for the last segment, which may get more.
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
    /// The group that appends are copied to.
    pub(super) active: Group,
    /// Full groups that wait to be written, oldest first.
    pub(super) sealed: VecDeque<Group>,
    /// Buffers that are neither active, nor sealed, nor being written.
    pub(super) free: Vec<Memory>,
    /// Memory that the writer compresses into, if compression is on.
    pub(super) scratch: Option<Memory>,
    /// The segment that was written last, and the end of its groups without padding.
    pub(super) tail: (u64, u64),
    /// Whether the next group must start a new block, because the previous ones may already be
    /// synced (I2).
    pub(super) fresh: bool,
    /// Whether the group being written shares a block with an earlier one.
    pub(super) shares: bool,
    /// Whether a thread is writing (I6).
    pub(super) writing: bool,
    /// Whether a thread is syncing (I6).
    pub(super) syncing: bool,
    pub(super) preparing: bool,
    /// The reason why nothing can be written any more.
    pub(super) poison: Option<String>,
    pub(super) appended: Seq,
    pub(super) written: Seq,
    pub(super) durable: Seq,
    /// The first new record of this log; groups with older records are recovery's copies.
    pub(super) restart: Seq,
    /// Segments to sync, ascending in both fields, each once.
    pub(super) dirty: VecDeque<Dirty>,
    /// Segments in use, oldest first; the last is the active one.
    pub(super) held: VecDeque<Held>,
    /// Segments created ahead, in the order of their use.
    pub(super) ahead: VecDeque<Arc<Segment>>,
    pub(super) next_number: u64,
    pub(super) spares: Vec<Spare>,
    /// Spare files that only recovery uses, on a full disk.
    pub(super) reserve: Vec<Spare>,
    /// Size of the next segment in bytes, unless a record needs more.
    pub(super) usual: u64,
    /// The time at which the active segment was started, and how long the previous one lasted.
    pub(super) begun: Duration,
    pub(super) lasted: Option<Duration>,
    /// Number of commits that wait for the next sync, and the number that the last one served.
    pub(super) waiting: u64,
    pub(super) last_group: u64,
    /// Number of syncs with waiting commits and of bytes written at the last call of
    /// [`State::syncs_matter`].
    pub(super) asked: (u64, u64),
    pub(super) stats: LogStats,
    /// Records up to this one are in no segment that is in use.
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

    /// Take the active group for writing; the next one starts behind it, in a free buffer.
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

    /// The group to write next: the oldest one (I1). Unless groups are sealed, there is a free
    /// buffer for the active group, since the writer has returned the previous one.
    pub(super) fn take_group(&mut self) -> Option<Group> {
        if let Some(group) = self.sealed.pop_front() {
            return Some(group);
        }
        (!self.active.is_empty()).then(|| self.rotate_buffer())
    }

    /// Set the offset of `group`, which is written next: directly behind the previous group, unless
    /// that is in another segment or may be synced by now, or `whole` blocks must be written (I2).
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

    /// A sync of the written groups begins: the blocks they end in must not be written any more
    /// (I2).
    pub(super) fn close_blocks(&mut self) {
        assert!(self.syncing, "I6: only the syncer syncs");
        self.fresh = true;
    }

    /// Record that a group with records up to `last` was written to `segment`.
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

    /// A group in segment `number` was `saved` bytes shorter than the space reserved for it: move
    /// the unwritten groups behind it up. Only the writer reads their offsets.
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

    /// Record that all files were synced that contained groups up to `written` when the sync began
    /// (I5).
    pub(super) fn now_durable(&mut self, written: Seq) {
        assert!(self.syncing, "I6: only the syncer makes durable");
        assert!(self.poison.is_none(), "I7: not after a failure");
        assert!(written <= self.written, "what was written was synced");
        assert!(self.durable <= written, "durable never falls");
        self.durable = written;
        self.dirty.retain(|dirty| written < dirty.last);
    }

    /// Make the empty active group start in `segment`, at time `now`. Segments grow up to `most`
    /// bytes while they fill up quickly.
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
        // Copies made by recovery must not void the records that they copy.
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

    /// Whether commits wait for many short syncs, judged by the activity since the last call.
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

    /// The fraction of the buffers with unwritten records, in thousandths. Unused room in a sealed
    /// buffer counts as filled.
    pub(super) fn filled(&self) -> usize {
        let capacity = self.active.capacity();
        let whole = self.sealed.len() + usize::from(self.writing);
        let count = self.free.len() + 1 + whole;
        (whole * capacity + self.active.used()) * 1000 / (count * capacity)
    }
}
