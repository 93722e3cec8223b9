//! Colours that can be distinguished with any colour vision, dark enough for white paper.

/// The palette of Okabe and Ito (2008) without its yellow, which is invisible on white, and four of Tol's (2021) muted
/// colours.
const COLOURS: [&str; 10] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#332288", "#882255", "#999933", "#4D4D4D"];

/// The colour of the series at this index; colours repeat after ten.
pub(super) fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

/// How often the colours were used up before this series. Dashes and other marks then distinguish the series.
pub(super) fn round(at: usize) -> usize {
    at / COLOURS.len()
}
