//! Numbers as text, for messages and results.
//!
//! ```
//! use mercer::text::{bytes, count, duration, grouped};
//!
//! assert_eq!((grouped(1_234_567), bytes(1_572_864)), ("1,234,567".to_owned(), "1.5 MiB".to_owned()));
//! assert_eq!((duration(750.0), count(2, "thing")), ("12 min 30 s".to_owned(), "2 things".to_owned()));
//! ```

/// 1234567 as 1,234,567.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// 40813184 as 40.8 M.
pub fn short(number: u64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.iter().find(|(size, _)| number as f64 >= *size) {
        Some((size, prefix)) => format!("{:.1} {prefix}", number as f64 / size),
        None => number.to_string(),
    }
}

/// 1572864 as 1.5 MiB.
pub fn bytes(number: usize) -> String {
    let units =
        [(1u64 << 60, "EiB"), (1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(size, _)| number as u64 >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", number as f64 / *size as f64),
        None => format!("{number} bytes"),
    }
}

/// Seconds as 0.80 s, 189.5 s, 12 min 30 s, 5 h 12 min or 7 d 7 h.
pub fn duration(seconds: f64) -> String {
    let [second, minute, hour, day] = [1, 60, 3_600, 86_400];
    let both = |whole: u64, [large, small]: [u64; 2], [first, next]: [&str; 2]| {
        // Rounded to the smaller unit first, so that 59.9 minutes become an hour, not 0 h 60 min.
        let smalls = (whole + small / 2) / small;
        format!("{} {first} {} {next}", grouped((smalls * small / large) as usize), smalls * small % large / small)
    };
    let whole = seconds.round() as u64;
    match seconds {
        _ if seconds < 100.0 => format!("{seconds:.2} s"),
        _ if seconds < 600.0 => format!("{seconds:.1} s"),
        _ if whole < hour - minute / 2 => both(whole, [minute, second], ["min", "s"]),
        _ if whole < day - hour / 2 => both(whole, [hour, minute], ["h", "min"]),
        _ => both(whole, [day, hour], ["d", "h"]),
    }
}

/// Bytes as a user would write them after `--memory`, rounded up to a hundredth more.
pub fn rounded_up(needed: usize) -> String {
    let (unit, name) = if needed >= 1 << 30 { (1usize << 30, "GiB") } else { (1 << 20, "MiB") };
    let hundredths = (needed as f64 / unit as f64 * 100.0).ceil() + 1.0;
    format!("{:.2}{name}", hundredths / 100.0)
}

/// The bytes to suggest after `--memory`: the bytes needed, with a margin for another process that may hold more.
pub fn suggested(needed: usize) -> String {
    rounded_up(needed.saturating_add(mercer_run::PROCESS_NOISE))
}

/// `[3, 32, 32]`.
pub fn shape(sizes: &[usize]) -> String {
    format!("{sizes:?}")
}

/// `one thing`, `2 things`.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{} {thing}s", grouped(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([12, 1_500, 40_813_184].map(short), ["12", "1.5 k", "40.8 M"]);
        assert_eq!(count(1, "sample"), "1 sample");
        assert_eq!(count(1500, "sample"), "1,500 samples");
        assert_eq!([1 << 10, 3 << 49, 1 << 60].map(bytes), ["1.0 KiB", "1.5 PiB", "1.0 EiB"]);
    }

    #[test]
    fn long_times_are_hours_and_days() {
        let cases = [
            (0.0, "0.00 s"),
            (26.217, "26.22 s"),
            (189.46, "189.5 s"),
            (600.0, "10 min 0 s"),
            (754.4, "12 min 34 s"),
            (3_599.9, "1 h 0 min"),
            (18_720.0, "5 h 12 min"),
            (86_399.0, "1 d 0 h"),
            (631_242.4, "7 d 7 h"),
            (1e9, "11,574 d 2 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
    }
}
