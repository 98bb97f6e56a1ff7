//! Values of settings, read from their text.

/// Parse a boolean.
pub(super) fn boolean(value: &str) -> Result<bool, String> {
    match value {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// Parse a number between two bounds, both included.
pub(super) fn within<T>(value: &str, least: T, most: T) -> Result<T, String>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let number = value.parse().ok().filter(|n| least <= *n && *n <= most);
    number.ok_or_else(|| format!("must be a number from {least} to {most}"))
}

/// Parse gigabytes; returns bytes.
pub(super) fn gigabytes(value: &str) -> Result<u64, String> {
    let gigabytes: f64 = within(value, 0.0, 1e6)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range just above"
    )]
    let bytes = (gigabytes * f64::from(1 << 30)) as u64;
    Ok(bytes)
}
