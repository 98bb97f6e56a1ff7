//! What a merge asks for before it writes.
//!
//! A merge holds its outputs and what they replace at once. Several merges on a nearly full disk
//! would each write until there is no room, and all give up, again and again. So a merge first
//! claims room for all of its outputs ([`crate::space`]). If the disk has none, it is put off
//! while others write: what they replace is freed when they end.
//!
//! The claim is an estimate: what is written may be much shorter, since nothing is left of what was
//! deleted. So a merge that lacks room while no other writes is tried with the rest. If that fails,
//! it is not tried again before there is more room, or something has changed that could make its
//! outputs shorter.

use std::sync::Arc;

use crate::db::Core;
use crate::error::{ErrorKind, Result};
use crate::plant::{Plant, planted};
use crate::run::Run;
use crate::space::{Claim, Space};
use crate::tree::Short;
use crate::types::UNIT;

/// Outputs may be longer than what they replace by this part of it: pages hold other keys, and
/// extents whole units.
const SLACK: u64 = 16;

/// The room of a merge in progress; what is left of it returns when this is dropped.
pub(super) struct Claimed {
    space: Arc<Space>,
    claim: Claim,
    /// What to remember if it fails, when the room is less than what the merge asked for.
    pub(super) short: Option<Short>,
}

impl Claimed {
    pub(super) fn claim(&self) -> Claim {
        self.claim
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.space.end_claim(self.claim);
    }
}

impl Core {
    /// Claim room for a merge of these runs. `before` is what its last attempt found. `None`: the
    /// merge must wait for others.
    ///
    /// # Errors
    /// `Full` if it would fail, or if the caller can free something; the device's.
    pub(super) fn claim_outputs(
        &self,
        runs: &[&Arc<Run>],
        before: Option<Short>,
    ) -> Result<Option<Claimed>> {
        let bytes = match planted(Plant::MergesClaimNothing) {
            true => 0,
            false => self.output_bytes(runs),
        };
        let mut claim = self.runs.claim(bytes);
        let is_full = |claim: &Result<Claim>| {
            let error = claim.as_ref().err();
            error.is_some_and(|error| error.kind() == ErrorKind::Full)
        };
        if is_full(&claim) {
            if self.space.is_claimed() {
                return Ok(None);
            }
            if self.release_excess() {
                claim = self.runs.claim(bytes);
            }
        }
        let frees = || self.waits_for_checkpoint() && !self.refused.checkpoint.stands();
        if !is_full(&claim) || frees() {
            return claim.map(|claim| Some(self.claimed(claim, None)));
        }
        let mut short = self.short(runs);
        let same = before.filter(|before| before.is_like(&short));
        if let Some((claim, room)) = self.space.claim_rest(same.map(|before| before.room)) {
            short.room = room;
            return Ok(Some(self.claimed(claim, Some(short))));
        }
        match claim {
            Err(error) if !self.space.is_claimed() => Err(error),
            _ => Ok(None),
        }
    }

    fn claimed(&self, claim: Claim, short: Option<Short>) -> Claimed {
        Claimed {
            space: Arc::clone(&self.space),
            claim,
            short,
        }
    }

    /// What decides how long the outputs will be.
    fn short(&self, runs: &[&Arc<Run>]) -> Short {
        let horizon = self.snapshots.horizon_only(self.vfs.now());
        Short {
            room: 0,
            newest: runs.iter().map(|run| run.meta().id).max(),
            held: (horizon < self.snapshots.visible()).then_some(horizon),
        }
    }

    /// About what a merge of these runs writes if it drops nothing.
    fn output_bytes(&self, runs: &[&Arc<Run>]) -> u64 {
        let part = |run: &&Arc<Run>| {
            let meta = run.meta();
            // Of a run that several buckets share, each merges a part.
            meta.bytes / self.sharing.names(meta.id) as u64
        };
        let bytes: u64 = runs.iter().map(part).sum();
        let outputs = 1 + bytes / (self.options.bucket() / 4).max(1);
        bytes + bytes / SLACK + outputs * UNIT
    }
}
