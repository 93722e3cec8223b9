//! Colours that can be distinguished with any colour vision, dark enough for white paper.

/// The palette of Okabe and Ito (2008) without its yellow, which is invisible on white, and four of Tol's (2021) muted
/// colours.
pub(crate) const COLOURS: [&str; 10] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#332288", "#882255", "#999933", "#4D4D4D"];

/// Lighter colours instead of those that are hard to see on a dark page.
const ON_DARK: [(usize, &str); 4] = [(0, "#2F8FD0"), (6, "#8C7FE0"), (7, "#C8507F"), (9, "#B8B8B8")];

/// The colour of a number in a matrix that is not finite.
pub(super) const MISSING: [u8; 3] = [0xbb; 3];

/// The colour of the series at this index; colours repeat after ten.
pub(super) fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

/// The same colour where the page may replace it.
pub(super) fn replaceable(at: usize) -> String {
    format!("var(--mercer-colour-{}, {})", at % COLOURS.len(), colour(at))
}

/// How often the colours were used up before this series. Dashes and other marks then distinguish the series.
pub(super) fn round(at: usize) -> usize {
    at / COLOURS.len()
}

/// A style sheet with lighter series colours where the reader prefers dark pages.
pub(super) fn dark_style() -> String {
    let set: String = ON_DARK.iter().map(|(at, paint)| format!("--mercer-colour-{at}:{paint};")).collect();
    format!("@media (prefers-color-scheme: dark){{:root{{{set}}}}}")
}

/// From white (0) to dark blue (1).
pub(super) fn sequential(fraction: f64) -> [u8; 3] {
    between([[255.0; 3], [8.0, 48.0, 107.0]], fraction)
}

/// From blue (0) over white (½) to red (1): the ends of ColorBrewer's RdBu, which are safe for any colour vision.
pub(super) fn diverging(fraction: f64) -> [u8; 3] {
    let away = (2.0 * fraction.clamp(0.0, 1.0) - 1.0).abs();
    let (light, dark) = if fraction < 0.5 {
        ([146.0, 197.0, 222.0], [33.0, 102.0, 172.0])
    } else {
        ([244.0, 165.0, 130.0], [178.0, 24.0, 43.0])
    };
    if away < 0.5 { between([[255.0; 3], light], 2.0 * away) } else { between([light, dark], 2.0 * away - 1.0) }
}

fn between([from, to]: [[f64; 3]; 2], fraction: f64) -> [u8; 3] {
    let fraction = fraction.clamp(0.0, 1.0);
    [0, 1, 2].map(|k| (from[k] + (to[k] - from[k]) * fraction).round() as u8)
}

/// A colour as text.
pub(super) fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Black or white, whichever is readable on this colour.
pub(super) fn ink_on([red, green, blue]: [u8; 3]) -> &'static str {
    let bright = 0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue);
    if bright > 140.0 { "#222" } else { "#fff" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of a colour (WCAG 2).
    fn luminance(paint: &str) -> f64 {
        let channel = |at: usize| {
            let x = f64::from(u8::from_str_radix(&paint[at..at + 2], 16).unwrap()) / 255.0;
            if x <= 0.03928 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    #[test]
    fn colours_are_visible_on_paper_and_on_dark_pages() {
        for (at, paint) in COLOURS.iter().enumerate() {
            assert!(1.05 / (luminance(paint) + 0.05) > 2.2, "{paint} on white");
            let dark = ON_DARK.iter().find(|(of, _)| *of == at).map_or(*paint, |(_, lighter)| *lighter);
            assert!((luminance(dark) + 0.05) / (luminance("#161616") + 0.05) > 3.0, "{dark} on a dark page");
        }
    }

    #[test]
    fn ramps_end_where_they_should() {
        assert_eq!([0.0, 1.0, 7.0, f64::NAN].map(|x| hex(sequential(x))), ["#ffffff", "#08306b", "#08306b", "#000000"]);
        assert_eq!([0.0, 0.5, 1.0].map(|x| hex(diverging(x))), ["#2166ac", "#ffffff", "#b2182b"]);
        assert_eq!((ink_on(sequential(0.0)), ink_on(sequential(1.0))), ("#222", "#fff"));
    }
}
