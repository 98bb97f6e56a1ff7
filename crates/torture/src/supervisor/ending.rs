//! How a worker's life ends, drawn before it begins.

use std::fmt;
use std::time::Duration;

use stdx::Rng;

/// The shortest and longest mean delay of a kill, in milliseconds; between them it is drawn evenly
/// by its logarithm, and the delay itself exponentially around it.
const DELAY_MS: (f64, f64) = (1.0, 500.0);

/// The longest delay, in milliseconds.
const DELAY_MAX_MS: f64 = 1_500.0;

/// The mean delay of a kill of a worker that opens or closes, in milliseconds.
const AT_EDGE_MS: f64 = 6.0;

/// A way to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// SIGKILL while it writes, so long after it began.
    Kill(Duration),
    /// SIGKILL so long after it was started: while it opens or tells.
    KillOpening(Duration),
    /// It is asked to close after the first time, and killed after the second.
    KillClosing(Duration, Duration),
    /// SIGSTOP, then SIGKILL while it is stopped.
    KillStopped(Duration, Duration),
    /// SIGSTOP, SIGCONT, then SIGKILL.
    KillContinued(Duration, Duration, Duration),
    /// SIGTERM; it must end in order.
    Terminate(Duration),
    /// A second worker tries to open the same store and must be refused; then SIGKILL.
    Rival(Duration),
}

impl Ending {
    /// Draw one.
    pub(super) fn draw(rng: &mut Rng) -> Ending {
        let (least, most) = DELAY_MS;
        let mean = least * (most / least).powf(rng.unit());
        let after = exponential(rng, mean);
        let edge = exponential(rng, AT_EDGE_MS);
        match rng.below(100) {
            0..=64 => Ending::Kill(after),
            65..=74 => Ending::KillOpening(edge),
            75..=82 => Ending::KillClosing(after, edge),
            83..=86 => Ending::KillStopped(after, edge),
            87..=90 => Ending::KillContinued(after, edge, exponential(rng, mean)),
            91..=96 => Ending::Terminate(after),
            _ => Ending::Rival(after),
        }
    }
}

fn exponential(rng: &mut Rng, mean_ms: f64) -> Duration {
    Duration::from_secs_f64(rng.exponential(mean_ms).min(DELAY_MAX_MS) / 1e3)
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Kill(d) => write!(f, "SIGKILL after {d:.1?} of writing"),
            Ending::KillOpening(d) => write!(f, "SIGKILL {d:.1?} after the start, while opening"),
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
        let drawn: Vec<Ending> = (0..500).map(|_| Ending::draw(&mut rng)).collect();
        let kinds: std::collections::HashSet<_> =
            drawn.iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), 7);
        let short = |e: &&Ending| matches!(e, Ending::Kill(d) if d.as_millis() < 20);
        assert!(50 < drawn.iter().filter(short).count());
    }
}
