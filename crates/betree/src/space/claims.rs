//! Claims: room that merges in progress have asked for and not yet taken.
//!
//! Merges that run at once would take the last room from each other, and all give up what they have
//! written. So each asks for the room of its outputs before it writes, and leaves what the others
//! have asked for. What it takes, it takes of its claim; what is beyond the claim must be free
//! beside all of them.
//!
//! Claims are no part of what is kept: flushes, deletes and the image of a checkpoint go first, and
//! may take claimed room. Then the sum of the claims is more than there is, and the merge that is
//! served last gives up.
//!
//! - I1. `bytes` is the sum of what is left of each claim.

use std::collections::BTreeMap;

/// The claim of one merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim(u64);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Claims {
    begun: u64,
    left: BTreeMap<Claim, u64>,
    bytes: u64,
}

impl Claims {
    /// Bytes claimed and not taken yet.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Claim `bytes`.
    pub(super) fn begin(&mut self, bytes: u64) -> Claim {
        let claim = Claim(self.begun);
        self.begun += 1;
        self.left.insert(claim, bytes);
        self.bytes += bytes;
        claim
    }

    /// What must be left for other claims by the merge of `claim` when it takes `len` bytes.
    pub(super) fn others(&self, claim: Claim, len: u64) -> u64 {
        let own = self.left.get(&claim).copied().unwrap_or(0);
        if len <= own { 0 } else { self.bytes - own }
    }

    /// `len` bytes are taken by the merge of `claim`.
    pub(super) fn take(&mut self, claim: Claim, len: u64) {
        if let Some(left) = self.left.get_mut(&claim) {
            let own = len.min(*left);
            *left -= own;
            self.bytes -= own;
        }
    }

    /// The merge of `claim` has not used `len` bytes that it took.
    pub(super) fn put_back(&mut self, claim: Claim, len: u64) {
        if let Some(left) = self.left.get_mut(&claim) {
            *left += len;
            self.bytes += len;
        }
    }

    /// The merge of `claim` takes no more. Ending a claim twice is allowed.
    pub(super) fn end(&mut self, claim: Claim) {
        if let Some(left) = self.left.remove(&claim) {
            assert!(left <= self.bytes, "I1: it is a part of the sum");
            self.bytes -= left;
        }
    }
}
