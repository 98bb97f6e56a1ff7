//! Numbers as people read them. A missing number is `n/a`, never empty and never zero.
//!
//! KB, MB and GB are powers of 1000; the report says so.

/// The text of a missing number.
pub(crate) const MISSING: &str = "n/a";

/// A number with three or four significant digits: `12,345`, `123`, `12.3`, `1.23`, `0.0123`.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    let size = value.abs();
    if size >= 100.0 {
        return grouped(value.round());
    }
    let digits = if size >= 10.0 {
        1
    } else if size >= 1.0 || size == 0.0 {
        2
    } else if size >= 0.1 {
        3
    } else if size >= 0.001 {
        4
    } else {
        return if size < 1e-9 {
            "0".to_owned()
        } else {
            format!("{value:.1e}")
        };
    };
    let text = format!("{value:.digits$}");
    if size == 0.0 { "0".to_owned() } else { text }
}

/// A count with separators.
pub(crate) fn count(value: u64) -> String {
    grouped(value as f64)
}

/// [`number`] of a value that may be missing.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.to_owned(), number)
}

/// [`maybe`], but whole numbers without decimals: numbers of an experiment may be counts.
pub(crate) fn plain(value: Option<f64>) -> String {
    match value {
        Some(whole) if whole.fract() == 0.0 && whole.abs() < 100.0 => format!("{whole:.0}"),
        other => maybe(other),
    }
}

/// A fixed number of decimals.
pub(crate) fn fixed(value: f64, digits: usize) -> String {
    if value.is_finite() {
        format!("{value:.digits$}")
    } else {
        MISSING.to_owned()
    }
}

/// Bytes: `1.23 GB`.
pub(crate) fn bytes(value: f64) -> String {
    let size = value.abs();
    for (unit, scale) in [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)] {
        if size >= scale {
            return format!("{} {unit}", number(value / scale));
        }
    }
    format!("{} B", number(value))
}

/// A tick of an axis: `1.5M`, `20k`, `0.1`.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = if size >= 1e9 {
        (value / 1e9, "G")
    } else if size >= 1e6 {
        (value / 1e6, "M")
    } else if size >= 1e4 {
        (value / 1e3, "k")
    } else {
        (value, "")
    };
    let text = format!("{scaled:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let text = if text.is_empty() || text == "-0" {
        "0"
    } else {
        text
    };
    format!("{text}{unit}")
}

/// The quantile at x = 1/(1-q), as a percentage: `0`, `90 %`, `99.9 %`.
pub(crate) fn quantile(x: f64) -> String {
    if x <= 1.0 {
        return "0 %".to_owned();
    }
    let percent = 100.0 * (1.0 - 1.0 / x);
    let digits = if x < 101.0 {
        0.0
    } else {
        (x.log10() - 2.0).ceil()
    };
    let mut text = percent.to_string();
    for n in 0_u8..9 {
        if f64::from(n) >= digits {
            text = format!("{percent:.*}", usize::from(n));
            break;
        }
    }
    format!("{text} %")
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let digits = usize::from(value.abs() < 10.0);
    format!("{value:.digits$} %")
}

/// The median; the lower one of two middle values. `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    quantile_of(values, 0.5)
}

/// The value at quantile `q` (nearest rank). `None` without values.
pub(crate) fn quantile_of(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil().max(1.0);
    sorted
        .iter()
        .enumerate()
        .find(|(i, _)| (*i + 1) as f64 >= rank)
        .map(|(_, v)| *v)
}

/// A whole number with a comma between thousands.
fn grouped(value: f64) -> String {
    let text = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if i > 0 && (text.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if value < 0.0 { format!("-{out}") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let cases = [
            (1_234_567.4, "1,234,567"),
            (999.6, "1,000"),
            (12.34, "12.3"),
            (1.0, "1.00"),
            (0.0, "0"),
            (0.1234, "0.123"),
            (-4200.0, "-4,200"),
            (f64::NAN, "n/a"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(bytes(1.5e9), "1.50 GB");
        assert_eq!(short(20_000.0), "20k");
        assert_eq!(short(0.25), "0.25");
        assert_eq!(maybe(None), "n/a");
    }

    #[test]
    fn quantiles_are_marked_by_their_nines() {
        let marks: Vec<_> = [1.0, 10.0, 100.0, 1000.0, 10_000.0].map(quantile).into();
        assert_eq!(marks, ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }
}
