//! Is a difference a difference? The one place that decides it.
//!
//! The interval of a ratio is taken from the ends of the two intervals: its low end is the low end
//! of one over the high end of the other. That is wider than a bootstrap of the ratio, never
//! narrower. A difference counts only when the interval excludes 1 and its size is above the noise
//! floor, when one is known.

use crate::record::Estimate;

use super::metrics::Better;

/// The words of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Faster,
    Slower,
    NoDifference,
    Invalid,
}

impl Word {
    /// As printed.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Word::Faster => "faster",
            Word::Slower => "slower",
            Word::NoDifference => "no difference",
            Word::Invalid => "invalid",
        }
    }

    /// As a style class.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Word::Faster => "good",
            Word::Slower => "bad",
            Word::NoDifference => "same",
            Word::Invalid => "invalid",
        }
    }
}

/// A ratio with its conservative 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The fewer repeats of the two.
    pub(crate) repeats: u32,
}

impl Ratio {
    /// `a` over `b`; `None` when a number is missing, negative, or the divisor is zero.
    pub(crate) fn of(a: &Estimate, b: &Estimate) -> Option<Ratio> {
        let finite = [a.median, a.low, a.high, b.median, b.low, b.high]
            .iter()
            .all(|v| v.is_finite() && *v >= 0.0);
        if !finite || b.median <= 0.0 {
            return None;
        }
        // A divisor that may be zero leaves the high end open.
        let high = if b.low > 0.0 {
            a.high / b.low
        } else {
            f64::INFINITY
        };
        let low = if b.high > 0.0 { a.low / b.high } else { 0.0 };
        Some(Ratio {
            median: a.median / b.median,
            low,
            high,
            repeats: a.repeats.min(b.repeats),
        })
    }

    /// Whether the difference counts.
    pub(crate) fn counts(&self, floor: Option<f64>) -> bool {
        let excludes_one = self.low > 1.0 || self.high < 1.0;
        excludes_one && (self.median - 1.0).abs() > floor.unwrap_or(0.0)
    }

    /// The verdict on the numerator.
    pub(crate) fn word(&self, better: Better, floor: Option<f64>) -> Word {
        if !self.counts(floor) {
            return Word::NoDifference;
        }
        if (self.median > 1.0) == (better == Better::Higher) {
            Word::Faster
        } else {
            Word::Slower
        }
    }

    /// What weakens the verdict, in words for a badge.
    pub(crate) fn caveats(&self, floor: Option<f64>) -> Vec<&'static str> {
        let mut said = Vec::new();
        if floor.is_none() {
            said.push("uncalibrated");
        }
        if self.repeats <= 1 {
            said.push("within-run");
        }
        said
    }

    /// `95 % interval 1.60 to 2.01`.
    pub(crate) fn interval(&self) -> String {
        if self.high.is_finite() {
            format!("95 % interval {} to {}", times(self.low), times(self.high))
        } else {
            format!("95 % interval from {}", times(self.low))
        }
    }
}

/// A ratio's number with the digits that count.
pub(crate) fn times(value: f64) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else if value >= 0.1 || value == 0.0 {
        2
    } else {
        3
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, median: f64, high: f64) -> Estimate {
        Estimate {
            median,
            low,
            high,
            repeats: 3,
        }
    }

    #[test]
    fn a_difference_must_exclude_one_and_exceed_the_floor() {
        let fast = estimate(190.0, 200.0, 210.0);
        let slow = estimate(95.0, 100.0, 105.0);
        let ratio = Ratio::of(&fast, &slow).unwrap();
        assert!((ratio.low - 190.0 / 105.0).abs() < 1e-12);
        assert!((ratio.high - 210.0 / 95.0).abs() < 1e-12);
        assert_eq!(ratio.word(Better::Higher, None), Word::Faster);
        assert_eq!(ratio.word(Better::Lower, None), Word::Slower);
        assert_eq!(ratio.word(Better::Higher, Some(1.5)), Word::NoDifference);

        let near = Ratio::of(&estimate(95.0, 101.0, 110.0), &slow).unwrap();
        assert_eq!(near.word(Better::Higher, Some(0.01)), Word::NoDifference);
    }

    #[test]
    fn strange_numbers_make_no_ratio() {
        let one = estimate(1.0, 1.0, 1.0);
        assert_eq!(Ratio::of(&one, &estimate(0.0, 0.0, 0.0)), None);
        assert_eq!(Ratio::of(&estimate(f64::NAN, 1.0, 1.0), &one), None);
        let open = Ratio::of(&one, &estimate(0.0, 0.5, 1.0)).unwrap();
        assert!(open.high.is_infinite() && !open.counts(None));
        assert_eq!(open.interval(), "95 % interval from 1.00");
    }
}
