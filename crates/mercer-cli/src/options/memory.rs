//! Amounts of memory, as a user writes them.

/// The supported units, in bytes.
const UNITS: [(&str, f64); 9] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("B", 1.0),
];

/// Parses `4GiB`, `512MiB`, `2.5GB` or a number of bytes.
///
/// # Errors
/// If the text is none of these.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not an amount of memory such as 4GiB or 512MiB");
    let lower = text.trim().to_lowercase();
    let unit = UNITS.iter().find(|(name, _)| lower.ends_with(&name.to_lowercase()));
    let (number, factor) = match unit {
        Some((name, factor)) => (&lower[..lower.len() - name.len()], *factor),
        None => (&lower[..], 1.0),
    };
    let amount: f64 = number.trim().parse().map_err(|_| wrong())?;
    let bytes = amount * factor;
    if bytes.is_finite() && bytes >= 1.0 && bytes < 2f64.powi(60) { Ok(bytes as usize) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_binary_and_decimal() {
        assert_eq!(parse_bytes("4GiB"), Ok(4 << 30));
        assert_eq!(parse_bytes("512 mib"), Ok(512 << 20));
        assert_eq!(parse_bytes("2.5GB"), Ok(2_500_000_000));
        assert_eq!(parse_bytes("1000"), Ok(1000));
        for text in ["", "GiB", "0", "-1GiB", "four", "4XB", "nan", "1e30GiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
