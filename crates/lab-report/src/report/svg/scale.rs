//! Axes: mapping values to positions, and placing ticks.

/// A linear or logarithmic mapping of values to coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    domain: (f64, f64),
    range: (f64, f64),
    log: bool,
}

impl Scale {
    /// A linear scale. An empty domain is widened, so that every value has a place.
    #[must_use]
    pub fn linear(domain: (f64, f64), range: (f64, f64)) -> Scale {
        let (lo, hi) = domain;
        let hi = if hi > lo { hi } else { lo + 1.0 };
        Scale {
            domain: (lo, hi),
            range,
            log: false,
        }
    }

    /// A logarithmic scale over whole decades around the domain; values at or below zero are put at
    /// its lower end.
    #[must_use]
    pub fn log(domain: (f64, f64), range: (f64, f64)) -> Scale {
        let lo = domain.0.max(1e-9).log10().floor();
        let hi = domain.1.max(1e-9).log10().ceil().max(lo + 1.0);
        Scale {
            domain: (10f64.powf(lo), 10f64.powf(hi)),
            range,
            log: true,
        }
    }

    /// The place of a value; values outside the domain are put at its ends.
    #[must_use]
    pub fn map(&self, value: f64) -> f64 {
        let (lo, hi) = self.domain;
        let share = if self.log {
            (value.max(lo) / lo).log10() / (hi / lo).log10()
        } else {
            (value - lo) / (hi - lo)
        };
        let share = share.clamp(0.0, 1.0);
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// The coordinates of the two ends.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        self.range
    }

    /// Round values to mark, at most about `count`: steps of 1, 2 or 5 times a power of ten, or
    /// powers of ten.
    #[must_use]
    pub fn ticks(&self, count: u32) -> Vec<f64> {
        let (lo, hi) = self.domain;
        let mut ticks = Vec::new();
        if self.log {
            let decades = (hi / lo).log10().round();
            let skip = (decades / f64::from(count.max(1))).ceil().max(1.0);
            let mut at = lo;
            while at <= hi * 1.000_001 {
                ticks.push(at);
                at *= 10f64.powf(skip);
            }
            return ticks;
        }
        let step = nice_step((hi - lo) / f64::from(count.max(1)));
        let mut i = (lo / step).ceil();
        while i * step <= hi + step * 1e-6 && ticks.len() < 100 {
            ticks.push(i * step);
            i += 1.0;
        }
        ticks
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `raw`.
fn nice_step(raw: f64) -> f64 {
    if !raw.is_finite() || raw <= 0.0 {
        return 1.0;
    }
    let base = 10f64.powf(raw.log10().floor());
    let share = raw / base;
    let factor = if share <= 1.0 {
        1.0
    } else if share <= 2.0 {
        2.0
    } else if share <= 5.0 {
        5.0
    } else {
        10.0
    };
    base * factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let scale = Scale::linear((0.0, 97.0), (0.0, 1.0));
        assert_eq!(scale.ticks(5), vec![0.0, 20.0, 40.0, 60.0, 80.0]);
        let scale = Scale::log((0.03, 800.0), (0.0, 1.0));
        let ticks = scale.ticks(8);
        assert_eq!(ticks.len(), 6, "{ticks:?}");
        assert!((ticks[5] - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn empty_and_strange_domains_have_places() {
        assert_eq!(Scale::linear((3.0, 3.0), (0.0, 10.0)).map(3.0), 0.0);
        assert_eq!(Scale::log((0.0, 0.0), (0.0, 10.0)).map(-1.0), 0.0);
        assert_eq!(Scale::linear((0.0, 1.0), (10.0, 0.0)).map(7.0), 0.0);
    }
}
