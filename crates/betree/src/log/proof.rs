//! Proving that records are on the device, so that they need not be copied.
//!
//! Recovery copies the records whose durability has no evidence, because the operating system may
//! show bytes that the device does not have: after a failed sync it keeps them in the page cache,
//! and a later sync succeeds without writing them. A copy needs as much space as the records have,
//! and on a full disk there is only the reserve. So when the reserve is too small, the segments are
//! synced and read again past the page cache. What comes from the device after a sync is durable.
//!
//! Whatever fails here only means that nothing is proven: then the records are copied.

use crate::error::{Error, ErrorKind, Result};
use crate::plant::{Plant, planted};
use crate::types::Seq;

use super::chain::follow_all;
use super::format::BLOCK;
use super::segment::Place;
use super::sites;
use super::survey::Survey;

/// Whether the records `copy..end` fit into `room` bytes, with what a log adds to them.
///
/// # Errors
/// As following the chain.
pub(super) fn fits(survey: &Survey, store: u128, copy: Seq, end: Seq, room: u64) -> Result<bool> {
    let mut bytes = 4 * BLOCK;
    // Twice their length: a record has a header, and a group and a block may hold one record only.
    let mut count = |_, payload: &[u8]| {
        bytes += 2 * payload.len() as u64;
        if room < bytes {
            // The rest need not be counted.
            return Err(Error::new(ErrorKind::Full, "more than there is room for"));
        }
        Ok(())
    };
    match follow_all(survey, store, copy, &mut count) {
        Err(error) if bytes <= room => Err(error),
        Ok(reached) if bytes <= room => {
            assert_eq!(reached, end, "the chain reads twice alike");
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Whether the device has the records `copy..end` of the segments in `survey`, durably.
pub(super) fn on_device(place: &Place<'_>, survey: &Survey, copy: Seq, end: Seq) -> bool {
    assert!(copy < end, "there is something to prove");
    reached(place, survey, copy).is_ok_and(|reached| reached == Some(end))
}

/// The end of the chain as the device has it; `None` if reads do not bypass the page cache.
fn reached(place: &Place<'_>, survey: &Survey, copy: Seq) -> Result<Option<Seq>> {
    for found in &survey.segments {
        found
            .file
            .sync(sites::PROOF_SYNC)
            .map_err(|e| Error::io("syncing a log segment", &found.path, e))?;
    }
    let cached = planted(Plant::ProofReadsCache);
    let direct = Place {
        direct: !cached,
        ..*place
    };
    let stored = Survey::take(&direct)?;
    let end = follow_all(&stored, place.store, copy, &mut |_, _| Ok(()))?;
    // Asked last: a file system may refuse the first direct read.
    let from_device = |survey: &Survey| survey.segments.iter().all(|s| s.file.reads_device());
    Ok((cached || from_device(&stored)).then_some(end))
}
