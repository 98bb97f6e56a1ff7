//! What the log's mutex guards.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::types::Seq;

use super::format::BLOCK;
use super::group::{Group, Memory};
use super::options::LogStats;
use super::segment::{Segment, Spare};

/// A segment that is not released.
pub(super) struct Held {
    pub(super) number: u64,
    pub(super) size: u64,
    /// Bytes of it that hold groups.
    pub(super) used: u64,
    /// The newest record in it; the last segment's is still open.
    pub(super) last: Option<Seq>,
}

pub(super) struct State {
    /// Where appends go.
    pub(super) active: Group,
    /// Full, waiting for a leader.
    pub(super) sealed: Option<Group>,
    /// The other buffer, when it is neither sealed nor in a leader's hands.
    pub(super) spare: Option<Memory>,
    pub(super) leading: bool,
    pub(super) preparing: bool,
    /// Why nothing can be written any more.
    pub(super) poison: Option<String>,
    pub(super) appended: Seq,
    pub(super) written: Seq,
    pub(super) durable: Seq,
    /// Where this log began to write new records; groups of older ones are recovery's copies.
    pub(super) restart: Seq,
    /// The segment written to since it was last synced (I5: one at most).
    pub(super) unsynced: Option<Arc<Segment>>,
    /// Oldest first; the last is the active one's.
    pub(super) held: VecDeque<Held>,
    /// Made ahead.
    pub(super) next: Option<Arc<Segment>>,
    pub(super) next_number: u64,
    pub(super) spares: Vec<Spare>,
    /// Waits that the group in the making will end, and how many the last one ended.
    pub(super) waiting: u64,
    pub(super) last_group: u64,
    pub(super) stats: LogStats,
    /// Records up to this one are in no segment that is held.
    pub(super) released: Seq,
}

impl State {
    /// A log that writes its first record, `appended + 1`, to `segment`.
    pub(super) fn new(segment: Segment, buffer: usize, appended: Seq, restart: Seq) -> State {
        assert!(appended < restart, "a log begins after what is durable");
        let next_number = segment.number + 1;
        let segment = Arc::new(segment);
        let held = Held {
            number: segment.number,
            size: segment.size,
            used: 0,
            last: None,
        };
        let first = Seq(appended.0 + 1);
        State {
            active: Group::new(Memory::new(buffer), segment, BLOCK, restart, first),
            sealed: None,
            spare: Some(Memory::new(buffer)),
            leading: false,
            preparing: false,
            poison: None,
            appended,
            written: appended,
            durable: appended,
            restart,
            unsynced: None,
            held: VecDeque::from([held]),
            next: None,
            next_number,
            spares: Vec::new(),
            waiting: 0,
            last_group: 0,
            released: Seq::ANCIENT,
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

    /// Take the active group out for writing; the next one begins behind it, in the other buffer.
    pub(super) fn rotate_buffer(&mut self) -> Group {
        let memory = self.spare.take().expect("the caller saw the other buffer");
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

    /// What a leader writes next: the older group first (I1).
    pub(super) fn take_group(&mut self) -> Option<Group> {
        if let Some(group) = self.sealed.take() {
            return Some(group);
        }
        (!self.active.is_empty()).then(|| self.rotate_buffer())
    }

    /// Let the empty active group begin `segment`.
    pub(super) fn begin_segment(&mut self, segment: Arc<Segment>) {
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
    }

    pub(super) fn bytes_held(&self) -> u64 {
        let closed: u64 = self.held.iter().map(|held| held.used).sum();
        closed + self.active.end()
    }
}
