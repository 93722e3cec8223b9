//! The density of a spectrum as a curve.
//!
//! ```text
//! p(x) = Σₖ wₖ φ((x − θₖ)/s)/s
//! ```
//!
//! Weighted values, such as the nodes of stochastic Lanczos quadrature ([`mercer_linalg::StochasticLanczos`]), are
//! smoothed with a Gaussian kernel of width `s` (Ghorbani, Krishnan and Xiao 2019, arXiv 1901.10159).

use crate::error::{LensError, Result};
use mercer_linalg::{LinalgError, Node};
use std::f64::consts::PI;

/// The smoothed density at the points of a grid. It integrates to the sum of the weights.
///
/// ```
/// use mercer_linalg::Node;
/// let density = mercer_lens::spectra::smoothed(&[Node { value: 1.0, weight: 1.0 }], &[1.0], 0.5)?;
/// assert!((density[0] - 0.797_884_560_8).abs() < 1e-9);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For numbers that are not finite, and a width that is not positive.
pub fn smoothed(nodes: &[Node], grid: &[f64], width: f64) -> Result<Vec<f64>> {
    crate::checks::check_numbers("a grid", grid)?;
    if let Some(row) = nodes.iter().position(|node| !(node.value.is_finite() && node.weight.is_finite())) {
        let value = nodes[row].value;
        return Err(LinalgError::NotFinite { routine: "a density", row, column: 0, value }.into());
    }
    if !(width > 0.0 && width.is_finite()) {
        let reason = "it must be a positive number";
        return Err(LensError::Setting { name: "the width of the kernel", value: width.to_string(), reason });
    }
    let height = 1.0 / (width * (2.0 * PI).sqrt());
    let at = |x: &f64| {
        let part = |node: &Node| node.weight * (-0.5 * ((x - node.value) / width).powi(2)).exp();
        height * nodes.iter().map(part).sum::<f64>()
    };
    Ok(grid.iter().map(at).collect())
}
