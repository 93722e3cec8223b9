//! The log loss of scores against soft targets, and its residual: shared by all multinomial models.
//!
//! ```text
//! Σᵢ vᵢ·(ln Σ_c exp sᵢ_c − Σ_c tᵢ_c·sᵢ_c)        residual: vᵢ·(softmax(sᵢ) − tᵢ)
//! ```
//!
//! The rows of `t` are probabilities. A known class is a row with a single one.

use mercer_linalg::elementary::exp_in_place;

/// The loss; all arrays are row-major with a column per class. Subtracts the largest score from every row, which
/// changes nothing, and writes the residual.
pub(crate) fn log_loss(
    scores: &mut [f64],
    targets: &[f64],
    importance: &[f64],
    n_classes: usize,
    residual: &mut [f64],
) -> f64 {
    for row in scores.chunks_exact_mut(n_classes) {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|score| *score -= most);
    }
    residual.copy_from_slice(scores);
    exp_in_place(residual);
    let mut loss = 0.0;
    let rows = residual.chunks_exact_mut(n_classes).zip(scores.chunks_exact(n_classes));
    for (((row, scores), targets), &v) in rows.zip(targets.chunks_exact(n_classes)).zip(importance) {
        let sum: f64 = row.iter().sum();
        // An impossible class takes no part, even if its score is infinite.
        let expected: f64 = targets.iter().zip(scores).filter(|(t, _)| **t != 0.0).map(|(t, s)| t * s).sum();
        loss += v * (sum.ln() - expected);
        row.iter_mut().zip(targets).for_each(|(p, t)| *p = *p * (v / sum) - v * t);
    }
    loss
}
