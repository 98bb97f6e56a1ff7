//! Latency histograms as text, sent by the worker and stored in `hist.hlog`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// A histogram as text: HdrHistogram's V2 deflate format in base64, as in its logs.
#[must_use]
pub fn encode_histogram(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory does not fail");
    STANDARD.encode(bytes)
}

/// Decode a text written by [`encode_histogram`].
///
/// # Errors
/// What is wrong with the text.
pub fn decode_histogram(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD
        .decode(text.trim())
        .map_err(|e| format!("not base64: {e}"))?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|e| format!("not an HDR histogram: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_survive_being_text() {
        let mut h = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        for i in 1..1000 {
            h.saturating_record(i * 37);
        }
        let back = decode_histogram(&encode_histogram(&h)).unwrap();
        assert_eq!(back.value_at_quantile(0.99), h.value_at_quantile(0.99));
        assert!(decode_histogram("!").is_err());
        assert!(decode_histogram("AAAA").is_err());
    }
}
