//! Creating a log, and recovering one after a crash.

use std::path::Path;
use std::sync::Arc;
use stdx::sync::atomic::{AtomicU64, AtomicUsize};

use stdx::sync::{Condvar, Mutex};
use vfs::Vfs;

use crate::error::{Error, ErrorKind, Result};
use crate::keys::Keys;
use crate::plant::{Plant, planted};
use crate::types::Seq;

use super::chain::{Chain, Replay, follow_all};
use super::format::{self, BLOCK};
use super::options::LogOptions;
use super::pace::Pace;
use super::reserve::{FILES, reserve_of};
use super::segment::{Name, Place, Spare, segment_path, spare_path};
use super::state::{Held, State};
use super::survey::{Survey, names};
use super::upkeep::SPARES;
use super::{Log, proof, sites};

impl Log {
    /// Create the log of a store that has none; the first record is number `from`.
    ///
    /// # Errors
    /// `Exists` when the directory holds a log with records; `Full`; `Io`.
    pub(crate) fn create(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        store: u128,
        first: Seq,
        options: LogOptions,
    ) -> Result<Log> {
        assert!(Seq::ANCIENT < first, "records are numbered from 1");
        let options = options.rounded();
        let place = Place {
            vfs: &*vfs,
            directory,
            store,
            direct: options.direct,
            keys: options.keys.as_deref(),
        };
        clear(&place)?;
        let segment = place.prepare(1, options.first, None, false)?;
        let state = State::new(segment, &options, Seq(first.0 - 1), first, vfs.now());
        Ok(Log::with(vfs, directory, store, options, state))
    }

    /// Open the log of a store: call `replay` for each record from `from` on, in order, then be
    /// ready for appending. `from` is at most one more than the newest record that was durable when
    /// the caller wrote it down. All records replayed are durable when this returns.
    ///
    /// # Errors
    /// `Corrupt` when a record that was durable cannot be read, with file and offset; `Full` when
    /// no new segment can be made; `Invalid` for a log of another format version; `Io`; what
    /// `replay` returns.
    pub(crate) fn recover(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        store: u128,
        from: Seq,
        options: LogOptions,
        replay: Replay<'_>,
    ) -> Result<Log> {
        let options = options.rounded();
        let from = from.max(Seq(1));
        let place = Place {
            vfs: &*vfs,
            directory,
            store,
            direct: options.direct,
            keys: options.keys.as_deref(),
        };
        let mut survey = Survey::take(&place)?;
        if survey.newest() == 0 {
            let message = "the log is missing: a store has at least one segment; restore a backup";
            return Err(Error::corrupt(message).with_path(directory));
        }
        let limits = survey.limits();
        let (end, durable, lasts) = replay_chain(&survey, store, from, &limits, replay)?;
        // Records from this one on are copied, because nothing proves that they are durable.
        let unproven = if planted(Plant::ReplayNotCopied) {
            end
        } else {
            Seq(durable.0 + 1)
        };
        let mut copy = from.max(unproven).min(end);
        if copy < end
            && !proof::fits(&survey, store, copy, end, options.reserve())?
            && proof::on_device(&place, &survey, copy, end)
        {
            copy = end;
        }
        let number = survey.newest() + 1;
        // New segments have the size that was last used.
        let size = survey.last_size().next_multiple_of(BLOCK);
        let size = size.clamp(options.first, options.segment);
        let mut spares = set_aside(&place, &mut survey, &lasts, (size, options.reserve()))?;
        let segment = place.prepare_first(number, size, &mut spares)?;
        let mut state = State::new(segment, &options, Seq(copy.0 - 1), end, vfs.now());
        // All spare files may be used until the copies are written.
        state.spares = spares;
        hold(&mut state, &survey, &lasts);
        let log = Log::with(Arc::clone(&vfs), directory, store, options, state);
        log.copy(&survey, copy)?;
        {
            let mut state = log.state.lock();
            let spares = std::mem::take(&mut state.spares);
            (state.reserve, state.spares) = reserve_of(spares, log.options.reserve());
        }
        assert_eq!(log.appended().0 + 1, end.0, "the chain reads twice alike");
        assert_eq!(log.durable(), log.appended(), "what was copied is synced");
        Ok(log)
    }

    /// Read the records `first..=last` of a log that is being recovered again, in order: `replay`
    /// has been called for all of them, and has not returned from the last.
    ///
    /// # Errors
    /// As [`Log::recover`]; what `visit` returns.
    pub(crate) fn read_again(
        vfs: &dyn Vfs,
        directory: &Path,
        (store, keys): (u128, Option<&Keys>),
        (first, last): (Seq, Seq),
        visit: Replay<'_>,
    ) -> Result<()> {
        let place = Place {
            vfs,
            directory,
            store,
            direct: false,
            keys,
        };
        let survey = Survey::take(&place)?;
        let mut reached = Seq(first.0 - 1);
        let mut failure = None;
        // An error ends the reading: the rest of the log is not needed.
        let mut take = |seq: Seq, payload: &[u8]| {
            match visit(seq, payload) {
                Ok(()) => reached = seq,
                Err(error) => failure = Some(error),
            }
            if reached < last && failure.is_none() {
                return Ok(());
            }
            Err(Error::new(ErrorKind::Io, "read far enough"))
        };
        let stopped = follow_all(&survey, store, first, &mut take);
        match (failure, stopped) {
            (Some(error), _) => Err(error),
            (None, _) if reached == last => Ok(()),
            (None, Err(error)) => Err(error),
            (None, Ok(_)) => {
                let message = format!("the log changed while commit {last} was read again");
                Err(Error::corrupt(message).with_path(directory))
            }
        }
    }

    fn with(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        store: u128,
        options: LogOptions,
        state: State,
    ) -> Log {
        Log {
            vfs,
            directory: directory.to_owned(),
            store,
            options,
            state: Mutex::new(state),
            written: Mutex::new(None),
            moved: Condvar::new(),
            synced: Condvar::new(),
            work: Condvar::new(),
            chores: Condvar::new(),
            filled: AtomicUsize::new(0),
            append_waited: AtomicU64::new(0),
            pace: Pace::default(),
        }
    }

    /// Append the records from `copy` on again, and sync them.
    fn copy(&self, survey: &Survey, copy: Seq) -> Result<()> {
        let mut append = |seq, payload: &[u8]| self.append(seq, &[payload]).map(|_| ());
        follow_all(survey, self.store, copy, &mut append)?;
        self.sync()
    }
}

/// Replay the chain; its end, what is proven durable, and the last record of each segment (none for
/// a segment that holds no record of the chain, and never may: I8).
fn replay_chain(
    survey: &Survey,
    store: u128,
    from: Seq,
    limits: &[Seq],
    replay: Replay<'_>,
) -> Result<(Seq, Seq, Vec<Option<Seq>>)> {
    let mut chain = Chain::new(store, from);
    let mut lasts = Vec::new();
    for (found, &limit) in survey.segments.iter().zip(limits) {
        if limit <= from {
            // All of its records were released or will be soon.
            lasts.push(Some(Seq(limit.0.saturating_sub(1))));
            continue;
        }
        let belongs = chain.follow(found, limit, replay)?;
        let last = Seq(chain.end().0 - 1);
        lasts.push(belongs.then_some(last));
    }
    chain.judge()?;
    Ok((chain.end(), chain.durable(), lasts))
}

/// Set the segments without records of the chain aside (I8), and remove what spares are too many,
/// larger than `size` or of no use. Those of `reserve` bytes are kept. Durable before the header of
/// the segment that is made next.
fn set_aside(
    place: &Place<'_>,
    survey: &mut Survey,
    lasts: &[Option<Seq>],
    (size, reserve): (u64, u64),
) -> Result<Vec<Spare>> {
    let mut spares = std::mem::take(&mut survey.spares);
    for (found, _) in survey
        .segments
        .iter()
        .zip(lasts)
        .filter(|(_, last)| last.is_none())
    {
        spares.push(place.recycle(found.number, found.length)?);
    }
    let mut kept = Vec::new();
    let (mut usual, mut reserved) = (0, 0);
    for spare in spares {
        // One more than usual of each kind, because one is used at once.
        let (count, most) = if spare.size == reserve {
            (&mut reserved, FILES)
        } else {
            (&mut usual, SPARES)
        };
        let fits = spare.size <= size.max(reserve) && 2 * BLOCK <= spare.size;
        if fits && *count <= most {
            *count += 1;
            kept.push(spare);
        } else {
            place.remove(&spare.path)?;
        }
    }
    Ok(kept)
}

/// Keep the old segments until they are released.
fn hold(state: &mut State, survey: &Survey, lasts: &[Option<Seq>]) {
    let active = state.held.pop_back().expect("a new log holds its segment");
    assert!(survey.newest() < active.number, "I3: numbers rise");
    for (found, last) in survey.segments.iter().zip(lasts) {
        if last.is_some() {
            state.held.push_back(Held {
                number: found.number,
                size: found.length,
                used: found.length,
                last: *last,
            });
        }
    }
    state.held.push_back(active);
}

/// Remove the files of a creation that did not finish; refuse if they contain records.
pub(super) fn clear(place: &Place<'_>) -> Result<()> {
    for name in names(place.vfs, place.directory)? {
        let Name::Segment(number) = name else {
            continue;
        };
        let path = segment_path(place.directory, number);
        let file = place.open(sites::OPEN, &path, false)?;
        let mut head = vec![0; usize::try_from(2 * BLOCK).expect("two blocks")];
        let length = file
            .len()
            .map_err(|e| Error::io("opening a log segment", &path, e))?;
        if length < head.len() as u64 {
            continue;
        }
        file.read_at(sites::READ, &mut head, 0)
            .map_err(|e| Error::io("reading the log", &path, e))?;
        let Ok(header) = format::decode_segment(&head) else {
            continue;
        };
        let seed = format::seed(header.store, number);
        let group = head.get(4096..).unwrap_or_default();
        if format::decode_group(group, seed, number, BLOCK).is_ok() {
            let message = "there is a log with commits: open the store it belongs to, or choose \
                           another directory";
            return Err(Error::new(ErrorKind::Exists, message).with_path(&path));
        }
    }
    for name in names(place.vfs, place.directory)? {
        let path = match name {
            Name::Segment(number) => segment_path(place.directory, number),
            Name::Spare(number) => spare_path(place.directory, number),
        };
        place.remove(&path)?;
    }
    Ok(())
}
