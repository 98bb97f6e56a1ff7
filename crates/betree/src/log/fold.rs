//! Folding the last segments of a log that is being recovered into its new one.
//!
//! Every opening begins a new segment. On a full disk that is a file of the reserve, and a store
//! that is opened again and again without finding space would use the reserve up. So when the
//! reserve is short, the segments before the new one, as far as they are short, are copied to it
//! whole, and their files take the place of the one it used.
//!
//! - I1. A segment goes when its records are in the new one, synced. Until then both hold them, and
//!   the copies make nothing void.
//! - I2. With a segment goes what it said to be void in those before it. So it goes only if the
//!   chain through those before ends there all the same.

use crate::error::Result;
use crate::plant::{Plant, planted};
use crate::types::Seq;

use super::chain::Chain;
use super::recover::Followed;
use super::segment::{Place, Spare};
use super::state::State;
use super::survey::{Found, Survey};
use super::upkeep::SPARES;

/// The segments from `first` on go.
pub(super) struct Fold {
    first: usize,
    /// Where the copies begin.
    pub(super) copy: Seq,
}

impl Fold {
    /// [`Fold::plan`], or nothing goes.
    pub(super) fn plan_if(
        wanted: bool,
        survey: &Survey,
        followed: &Followed,
        chain: (u128, Seq),
        (size, copy): (u64, Seq),
    ) -> Result<Fold> {
        if wanted && !planted(Plant::ReplayNotCopied) {
            return Fold::plan(survey, followed, chain, (size, copy));
        }
        let first = survey.segments.len();
        Ok(Fold { first, copy })
    }

    /// What can go when the new segment has `size` bytes, and records from `copy` on are copied
    /// to it in any case.
    fn plan(
        survey: &Survey,
        followed: &Followed,
        (store, from): (u128, Seq),
        (size, copy): (u64, Seq),
    ) -> Result<Fold> {
        let none = survey.segments.len();
        let mut fold = Fold { first: none, copy };
        let (mut bytes, mut void) = (0, Seq::MAX);
        for (index, found) in survey.segments.iter().enumerate().rev() {
            if !followed.is_held(index) {
                continue;
            }
            let Some(group) = &found.first else { break };
            bytes += followed.used(index);
            if size / 2 < bytes && group.first < copy {
                break;
            }
            void = void.min(group.void);
            fold.first = index;
            fold.copy = fold.copy.min(group.first.max(from));
        }
        assert!(fold.copy <= copy, "nothing is copied less for it");
        assert!(fold.first <= none, "an index, or none");
        if fold.first < none && !is_safe(survey, followed, (store, from), fold.first, void)? {
            return Ok(Fold { first: none, copy });
        }
        Ok(fold)
    }

    /// What was folded is copied and synced: its files are spares now, or go (I1).
    pub(super) fn finish(
        &self,
        place: &Place<'_>,
        state: &mut State,
        survey: &Survey,
        reserve: u64,
    ) -> Result<()> {
        for found in survey.segments.iter().skip(self.first) {
            let held = state.held.len();
            state.held.retain(|held| held.number != found.number);
            if state.held.len() < held {
                set_aside(place, state, found, reserve)?;
            }
        }
        assert!(!state.held.is_empty(), "the active segment is held");
        Ok(())
    }
}

fn set_aside(place: &Place<'_>, state: &mut State, found: &Found, reserve: u64) -> Result<()> {
    assert!(
        state.held.iter().all(|held| held.number != found.number),
        "I1: it is held no longer"
    );
    let fits = found.length == reserve || found.length <= state.usual;
    let alike = |spare: &&Spare| (spare.size == reserve) == (found.length == reserve);
    let few = state.spares.iter().filter(alike).count() < SPARES;
    if fits && few {
        let spare = place.recycle(found.number, found.length)?;
        state.spares.push(spare);
        return Ok(());
    }
    place.remove(&found.path)
}

/// I2, of the segments from `first` on, which make void what is numbered from `void` on.
fn is_safe(
    survey: &Survey,
    followed: &Followed,
    (store, from): (u128, Seq),
    first: usize,
    void: Seq,
) -> Result<bool> {
    let stay = survey.segments.iter().enumerate().take(first);
    let stay = stay.filter(|(index, _)| followed.is_held(*index));
    let stay: Vec<&Found> = stay.map(|(_, found)| found).collect();
    let mut limits = Vec::with_capacity(stay.len());
    let mut least = followed.end;
    for found in stay.iter().rev() {
        limits.push(least);
        least = found
            .first
            .as_ref()
            .map_or(least, |group| least.min(group.void));
    }
    assert_eq!(limits.len(), stay.len(), "a limit for each segment");
    debug_assert!(limits.iter().rev().is_sorted(), "what is void stays void");
    let mut chain = Chain::new(store, from);
    let mut pass = |_: Seq, _: &[u8]| Ok(());
    for (found, limit) in stay.into_iter().zip(limits.into_iter().rev()) {
        if from < limit {
            chain.follow(found, limit, &mut pass)?;
        }
    }
    Ok(chain.end() <= void.max(from))
}
