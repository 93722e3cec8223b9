//! How many dimensions a matrix uses: four answers from its singular values `σ`.
//!
//! ```text
//! stable rank          ‖W‖²_F / ‖W‖₂² = Σσ²/σ₁²                       Rudelson and Vershynin 2007
//! effective rank       exp(−Σ p ln p),  p = σ/Σσ                      Roy and Vetterli 2007
//! spectral rank        exp(−Σ p ln p),  p = σ²/Σσ²                    the same of the eigenvalues of WWᵀ
//! participation ratio  (Σσ²)² / Σσ⁴                                  of the eigenvalues of WWᵀ
//! numerical rank       #{σ > max(h, d)·ε·σ₁}                          as NumPy and MATLAB count
//! ```
//!
//! The effective rank is of the singular values, as its authors define it. For a kernel matrix these are the
//! eigenvalues, so pass those: its effective rank is then the entropy of the normalised eigenvalues. All but the
//! numerical rank are real numbers between one and `min(h, d)` that do not depend on the scale.

use super::bulk::sorted;
use crate::error::Result;
use serde::Serialize;

/// The sizes of a spectrum; `None` for a matrix of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Size {
    /// `Σσ²/σ₁²`.
    pub stable_rank: Option<f64>,
    /// The exponential of the entropy of the singular values.
    pub effective_rank: Option<f64>,
    /// The exponential of the entropy of their squares.
    pub spectral_rank: Option<f64>,
    /// `(Σσ²)²/Σσ⁴`.
    pub participation_ratio: Option<f64>,
    /// The number of singular values beyond rounding.
    pub numerical_rank: usize,
}

/// The sizes of an `rows × columns` matrix from its singular values, in any order.
///
/// ```
/// let found = mercer_lens::spectra::size(&[2.0, 2.0, 0.0], 3, 5)?;
/// assert_eq!((found.stable_rank, found.numerical_rank), (Some(2.0), 2));
/// assert!((found.effective_rank.unwrap() - 2.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For values that are negative beyond rounding or not finite.
pub fn size(singular_values: &[f64], rows: usize, columns: usize) -> Result<Size> {
    let ascending = sorted(singular_values)?;
    let largest = ascending.last().copied().unwrap_or(0.0);
    let rounding = rows.max(columns) as f64 * f64::EPSILON * largest;
    let numerical_rank = ascending.len() - ascending.partition_point(|value| *value <= rounding);
    // Relative to the largest, so that fourth powers neither overflow nor vanish.
    let relative: Vec<f64> = ascending.iter().map(|value| value / largest).collect();
    let squares: Vec<f64> = relative.iter().map(|value| value * value).collect();
    let total: f64 = squares.iter().sum();
    let defined = |value: f64| (largest > 0.0).then_some(value);
    Ok(Size {
        stable_rank: defined(total),
        effective_rank: defined(entropy(&relative).exp()),
        spectral_rank: defined(entropy(&squares).exp()),
        participation_ratio: defined(total * total / squares.iter().map(|square| square * square).sum::<f64>()),
        numerical_rank,
    })
}

/// The entropy of values that are normalised here.
fn entropy(values: &[f64]) -> f64 {
    let total: f64 = values.iter().sum();
    let shares = values.iter().map(|value| value / total).filter(|share| *share > 0.0);
    -shares.map(|share| share * share.ln()).sum::<f64>()
}
