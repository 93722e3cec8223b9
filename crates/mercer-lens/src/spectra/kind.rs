//! What kind of spectrum a matrix has: bulk, bulk and spikes, or a heavy tail.
//!
//! These are the three kinds of Wang et al. 2022 (arXiv 2211.06506). They decide by eye; the rule here is, in
//! this order:
//!
//! 1. **Heavy tail**, if more than a few eigenvalues lie beyond the edge of the bulk (at least 5, and 2 % of all), and
//!    the power law is plausible: at least 10 values in its tail, `1 < α ≤ 6` (Martin and Mahoney, JMLR 22, 2021, take
//!    larger exponents for random-like), better than an exponential tail at `p < 0.1`, and not worse than a lognormal
//!    tail at `p < 0.1`.
//! 2. **Spikes**, if any eigenvalue lies beyond the edge and the others fit the law.
//! 3. **Bulk**, if no eigenvalue lies beyond the edge and all fit the law.
//! 4. **Other**: the law does not fit, or there is no bulk.
//!
//! The `n` eigenvalues of the bulk fit the law if they are at least half of all and their Kolmogorov–Smirnov distance
//! from it is at most `max(0.05, 4/n)`. Eigenvalues repel each other, so this distance is a few times `1/n` at most in
//! pure noise, below that of many independent draws. Few eigenvalues are thus hardly ever found to misfit. The
//! thresholds are a convention, set on matrices of noise: report the numbers with the word.

use super::{Bulk, Likelihoods, PowerLaw};
use serde::Serialize;

/// The `p` below which a likelihood ratio counts.
const LEVEL: f64 = 0.1;

/// The kind of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpectrumKind {
    /// All eigenvalues follow the law of noise.
    Bulk,
    /// Some eigenvalues lie beyond the edge, the others follow the law.
    Spikes,
    /// Many do, and fall like a power.
    HeavyTail,
    /// None of these.
    Other,
}

/// The kind of a spectrum, from its bulk and its tail.
///
/// ```
/// use mercer_lens::spectra::{SpectrumKind, kind};
/// assert_eq!(kind(None, None), SpectrumKind::Other);
/// ```
pub fn kind(bulk: Option<&Bulk>, tail: Option<&PowerLaw>) -> SpectrumKind {
    let Some(bulk) = bulk else { return SpectrumKind::Other };
    let (n_spikes, n) = (bulk.spikes.len(), bulk.n_bulk + bulk.spikes.len());
    if n_spikes >= 5 && n_spikes * 50 >= n && tail.is_some_and(is_heavy) {
        SpectrumKind::HeavyTail
    } else if 2 * bulk.n_bulk < n || bulk.distance > f64::max(0.05, 4.0 / bulk.n_bulk as f64) {
        SpectrumKind::Other
    } else if n_spikes > 0 {
        SpectrumKind::Spikes
    } else {
        SpectrumKind::Bulk
    }
}

/// Whether a power law is a plausible description of the tail, by the first part of the rule.
pub fn is_heavy(tail: &PowerLaw) -> bool {
    let decided = |test: &Likelihoods, better: bool| {
        let sign = |ratio: f64| if better { ratio > 0.0 } else { ratio < 0.0 };
        test.ratio.is_some_and(sign) && test.p_value.is_some_and(|p| p < LEVEL)
    };
    let better_than_exponential = decided(&tail.exponential, true);
    tail.n_tail >= 10 && tail.alpha <= 6.0 && better_than_exponential && !decided(&tail.lognormal, false)
}
