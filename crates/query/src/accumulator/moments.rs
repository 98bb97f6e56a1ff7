//! Count, mean and variance in one pass (Welford 1962; merging by Chan, Golub and LeVeque 1979).

use bson::Bson;

/// Running mean and variance, for the standard deviations.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds one number.
    pub(crate) fn add(&mut self, number: f64) {
        self.count += 1;
        let delta = number - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (number - self.mean);
    }

    /// Adds the numbers of `other`.
    pub(crate) fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (mine, others) = (self.count as f64, other.count as f64);
        let (count, delta) = (mine + others, other.mean - self.mean);
        self.mean += delta * others / count;
        self.squares += other.squares + delta * delta * mine * others / count;
        self.count += other.count;
    }

    /// The standard deviation of the population; null without values.
    pub(crate) fn population(&self) -> Bson {
        match self.count {
            0 => Bson::Null,
            count => Bson::Double((self.squares / count as f64).sqrt()),
        }
    }

    /// The standard deviation estimated from a sample; null for fewer than two numbers.
    pub(crate) fn sample(&self) -> Bson {
        match self.count {
            0 | 1 => Bson::Null,
            count => Bson::Double((self.squares / (count - 1) as f64).sqrt()),
        }
    }
}
