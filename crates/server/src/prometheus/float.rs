//! Numbers as Prometheus stores them: floats.

#[expect(clippy::cast_precision_loss, reason = "Prometheus stores floats")]
pub(super) fn float(n: i64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus stores floats")]
pub(super) fn unsigned(n: u64) -> f64 {
    n as f64
}

pub(super) fn size(n: usize) -> f64 {
    unsigned(u64::try_from(n).unwrap_or(u64::MAX))
}
