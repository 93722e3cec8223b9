//! Where a surrogate should not be trusted, sample by sample.
//!
//! The gap of a sample is the network's log-odds minus the surrogate's, after the [line](crate::Line) that maps one to
//! the other. It is large if it exceeds [`LARGE`] robust standard deviations (1.4826 × the median of the absolute gaps),
//! so that a few wild samples do not hide each other.

use crate::error::Result;
use crate::faithfulness::{Line, decisions, log_odds};
use ndarray::ArrayView2;
use serde::Serialize;

/// Robust standard deviations beyond which a gap is large.
pub const LARGE: f64 = 3.0;

/// Gaps of this size mean nothing: a surrogate that is exact but for rounding has no large gaps.
const NEGLIGIBLE: f64 = 1e-3;

/// A sample, seen by the network and by the surrogate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LocalGap {
    /// The class that the network decides for.
    pub network: usize,
    /// The class that the surrogate decides for.
    pub surrogate: usize,
    /// The log-odds of the compared class in the network.
    pub network_odds: f64,
    /// The same in the surrogate, mapped by the line.
    pub surrogate_odds: f64,
    /// The reason not to trust the surrogate here, if there is one.
    pub doubt: Option<Doubt>,
}

/// Why an explanation should not be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// The surrogate decides for another class.
    OtherDecision,
    /// It decides for the same class, but is far more or less certain than the network.
    LargeGap,
}

impl LocalGap {
    /// The network's log-odds minus the surrogate's.
    pub fn gap(&self) -> f64 {
        self.network_odds - self.surrogate_odds
    }
}

/// Compares network and surrogate on every sample, at one class per sample.
///
/// ```
/// use mercer_lens::{Doubt, local_gaps};
/// use ndarray::array;
///
/// let network = array![[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]];
/// let surrogate = array![[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]];
/// let found = local_gaps(network.view(), surrogate.view(), &[0, 0, 1], None)?;
/// assert_eq!(found.iter().map(|gap| gap.doubt).collect::<Vec<_>>(), [None, Some(Doubt::OtherDecision), None]);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// As [`log_odds`].
pub fn local_gaps(
    network: ArrayView2<'_, f64>,
    surrogate: ArrayView2<'_, f64>,
    classes: &[usize],
    line: Option<Line>,
) -> Result<Vec<LocalGap>> {
    let line = line.unwrap_or(Line { slope: 1.0, intercept: 0.0 });
    let (a, b) = (log_odds(network, classes)?, log_odds(surrogate, classes)?);
    let mut found: Vec<LocalGap> = decisions(network)
        .into_iter()
        .zip(decisions(surrogate))
        .zip(a.into_iter().zip(b))
        .map(|((network, surrogate), (own, other))| LocalGap {
            network,
            surrogate,
            network_odds: own,
            surrogate_odds: line.at(other),
            doubt: None,
        })
        .collect();
    let mut sizes: Vec<f64> = found.iter().map(|gap| gap.gap().abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let typical = 1.4826 * sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    let large = (LARGE * typical).max(NEGLIGIBLE);
    for gap in &mut found {
        gap.doubt = match (gap.network == gap.surrogate, gap.gap().abs() > large) {
            (false, _) => Some(Doubt::OtherDecision),
            (true, true) => Some(Doubt::LargeGap),
            (true, false) => None,
        };
    }
    Ok(found)
}
