//! How a worker ends; chosen before it starts.

use std::fmt;
use std::time::Duration;

use stdx::Rng;

use crate::draw::pick;
use crate::protocol::{Abort, Part};

/// The minimum and maximum mean delay of a kill, in milliseconds. The mean is drawn evenly on a
/// logarithmic scale; the delay is drawn from an exponential distribution with this mean.
const DELAY_MS: (f64, f64) = (1.0, 500.0);

/// The maximum delay, in milliseconds.
const DELAY_MAX_MS: f64 = 1_500.0;

/// The mean delay of a kill while the worker opens or closes the store, in milliseconds.
const AT_EDGE_MS: f64 = 6.0;

/// The mean delay of a kill during a sync, in milliseconds.
const IN_SYNC_MS: f64 = 0.6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// SIGKILL, this time after the worker started to write.
    Kill(Duration),
    /// SIGKILL, this time after the worker was started: while it opens the store or sends entries.
    KillOpening(Duration),
    /// SIGKILL during a sync: in the first sync that starts after the first time, when it has run
    /// for the second time.
    KillSyncing(Duration, Duration),
    /// A request to close after the first time, and SIGKILL after the second.
    KillClosing(Duration, Duration),
    /// SIGSTOP, then SIGKILL while it is stopped.
    KillStopped(Duration, Duration),
    /// SIGSTOP, SIGCONT, then SIGKILL.
    KillContinued(Duration, Duration, Duration),
    /// SIGTERM, on which the worker must close the store and exit.
    Terminate(Duration),
    /// The worker sends itself SIGKILL in a call that was chosen before ([`abort`]).
    Abort,
    /// A second worker tries to open the same store and must be refused; then SIGKILL.
    Rival(Duration),
}

impl Ending {
    /// Draw an ending. If `young`, the store is new, and the kill should often interrupt its
    /// creation.
    pub(super) fn draw(rng: &mut Rng, young: bool) -> Ending {
        let (least, most) = DELAY_MS;
        let mean = least * (most / least).powf(rng.unit());
        let after = exponential(rng, mean);
        let edge = exponential(rng, AT_EDGE_MS);
        match rng.below(100) {
            0..=49 if young => Ending::KillOpening(edge),
            0..=49 => Ending::Kill(after),
            50..=64 => Ending::KillSyncing(after, exponential(rng, IN_SYNC_MS)),
            65..=74 => Ending::KillOpening(edge),
            75..=82 => Ending::KillClosing(after, edge),
            83..=86 => Ending::KillStopped(after, edge),
            87..=90 => Ending::KillContinued(after, edge, exponential(rng, mean)),
            91..=96 => Ending::Terminate(after),
            _ => Ending::Rival(after),
        }
    }
}

/// Sites of betree at which a worker may kill itself; the empty one means any call that changes a
/// file.
const SITES: [&str; 20] = [
    "",
    "create.",
    "data.cut",
    "flush.write",
    "image.sync",
    "image.write",
    "log.header",
    "log.recycle",
    "log.remove",
    "log.reuse",
    "log.rotate",
    "log.sync",
    "log.write",
    "merge.write",
    "reserve.allocate",
    "run.allocate",
    "spill.write",
    "superblock.copy",
    "superblock.sync",
    "superblock.write",
];

/// Probability that a plain kill is replaced by one in a chosen call, for engines that support it.
const CHOSEN: f64 = 0.6;
/// Probability of the site that means any call, and the maximum number of the call in this case.
const ANY: (f64, f64) = (0.4, 3_000.0);
/// Mean number of the call at other sites.
const AT_SITE: f64 = 6.0;

/// The call in which the worker kills itself, instead of `ending`. `None` if the ending is not a
/// plain kill, and sometimes for plain kills.
pub(super) fn abort(rng: &mut Rng, ending: &Ending) -> Option<Abort> {
    let plain = matches!(ending, Ending::Kill(_) | Ending::KillOpening(_));
    if !plain || !rng.chance(CHOSEN) {
        return None;
    }
    let site = match rng.chance(ANY.0) {
        true => "",
        false => pick(rng, &SITES),
    };
    let nth = match site {
        "" => ANY.1.powf(rng.unit()),
        _ => 1.0 + rng.exponential(AT_SITE),
    };
    Some(Abort {
        site: site.to_owned(),
        // A small positive number, truncated to an integer.
        nth: Duration::from_secs_f64(nth).as_secs(),
        part: pick(rng, &[Part::Before, Part::Half, Part::After]),
    })
}

fn exponential(rng: &mut Rng, mean_ms: f64) -> Duration {
    Duration::from_secs_f64(rng.exponential(mean_ms).min(DELAY_MAX_MS) / 1e3)
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Kill(d) => write!(f, "SIGKILL after {d:.1?} of writing"),
            Ending::KillOpening(d) => write!(f, "SIGKILL {d:.1?} after the start, while opening"),
            Ending::KillSyncing(d, e) => {
                write!(
                    f,
                    "SIGKILL {e:.1?} into the first sync after {d:.1?} of writing"
                )
            }
            Ending::KillClosing(d, e) => {
                write!(f, "asked to close after {d:.1?}, SIGKILL {e:.1?} later")
            }
            Ending::KillStopped(d, e) => {
                write!(f, "SIGSTOP after {d:.1?}, SIGKILL {e:.1?} later")
            }
            Ending::KillContinued(d, e, k) => {
                write!(
                    f,
                    "SIGSTOP after {d:.1?}, SIGCONT {e:.1?} later, SIGKILL {k:.1?} later"
                )
            }
            Ending::Terminate(d) => write!(f, "SIGTERM after {d:.1?} of writing"),
            Ending::Abort => f.write_str("SIGKILL by itself"),
            Ending::Rival(d) => write!(f, "a rival after {d:.1?} of writing, then SIGKILL"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_is_drawn() {
        let mut rng = Rng::new(4);
        let drawn: Vec<Ending> = (0..500).map(|_| Ending::draw(&mut rng, false)).collect();
        let kinds: std::collections::HashSet<_> =
            drawn.iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), 8);
        let short = |e: &&Ending| matches!(e, Ending::Kill(d) if d.as_millis() < 20);
        assert!(50 < drawn.iter().filter(short).count());
    }
}
