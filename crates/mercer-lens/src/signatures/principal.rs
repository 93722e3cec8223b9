//! Principal coordinates of the samples of a class.
//!
//! For centred features `A = UΣVᵀ` the coordinates are `AV = UΣ`. They are computed from the smaller of `AᵀA` and
//! `AAᵀ`. From a Gram matrix `K` they are `U√Λ` of the centred matrix `HKH`, with `H = I − 11ᵀ/n`.

use crate::arrays::largest;
use crate::error::{LensError, Result};
use mercer_linalg::{check_finite, check_symmetric, matmul, symmetric_eigen, syrk, top_eigen};
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Up to this size, all eigenvectors are computed at once.
const DENSE: usize = 128;

/// Leading principal coordinates.
pub(super) struct Principal {
    /// A row per sample, a column per component; none if all samples are equal.
    pub(super) coordinates: Array2<f64>,
    /// The sum of squares along each component, descending.
    pub(super) values: Array1<f64>,
    /// The sum of squares along all components.
    pub(super) total: f64,
}

pub(super) fn of_features(features: ArrayView2<'_, f64>, count: usize) -> Result<Principal> {
    check_finite("features", features)?;
    let (n, width) = features.dim();
    let Some(mean) = features.mean_axis(Axis(0)) else { return Ok(none(n)) };
    // Divided by the largest entry, so that squares stay finite; multiplied back at the end.
    let mut centred = &features - &mean;
    let scale = largest(features);
    check_scale(scale)?;
    if scale > 0.0 {
        centred /= scale;
    }
    let total: f64 = centred.iter().map(|x| x * x).sum();
    // What is left after subtracting a mean is rounding below this.
    if total <= (n * width) as f64 * f64::EPSILON.powi(2) * 16.0 {
        return Ok(none(n));
    }
    if n <= width {
        return Ok(from_centred(syrk(centred.view()), count)?.scaled(scale));
    }
    let (values, vectors) = leading(syrk(centred.t()), count)?;
    let coordinates = matmul(centred.view(), vectors.view());
    Ok(Principal { coordinates, values, total }.scaled(scale))
}

pub(super) fn of_gram(gram: ArrayView2<'_, f64>, count: usize) -> Result<Principal> {
    check_symmetric("a Gram matrix", gram)?;
    let n = gram.nrows();
    let (Some(rows), Some(columns), Some(mean)) = (gram.mean_axis(Axis(1)), gram.mean_axis(Axis(0)), gram.mean())
    else {
        return Ok(none(n));
    };
    let scale = largest(gram);
    check_scale(scale)?;
    if scale == 0.0 {
        return Ok(none(n));
    }
    let centred = Array2::from_shape_fn((n, n), |(i, j)| {
        // The same number for (i, j) and (j, i).
        let off = (rows[i] + columns[j] + rows[j] + columns[i]) / 2.0;
        ((gram[[i, j]] + gram[[j, i]]) / 2.0 - off + mean) / scale
    });
    if centred.diag().sum() <= n as f64 * f64::EPSILON * 16.0 {
        return Ok(none(n));
    }
    Ok(from_centred(centred, count)?.scaled(scale.sqrt()))
}

/// Coordinates from a centred Gram matrix.
fn from_centred(gram: Array2<f64>, count: usize) -> Result<Principal> {
    let total = gram.diag().sum();
    let (values, mut vectors) = leading(gram, count)?;
    vectors.axis_iter_mut(Axis(1)).zip(&values).for_each(|(mut column, value)| column *= value.sqrt());
    Ok(Principal { coordinates: vectors, values, total })
}

/// The leading eigenpairs of a positive semidefinite matrix, without those that are rounding.
fn leading(matrix: Array2<f64>, count: usize) -> Result<(Array1<f64>, Array2<f64>)> {
    let n = matrix.nrows();
    let count = count.min(n);
    let (values, vectors) = if n <= DENSE || 4 * count > n {
        let all = symmetric_eigen(matrix.view())?;
        (all.values, all.vectors)
    } else {
        let top = top_eigen(matrix.view(), count)?;
        (top.values, top.vectors)
    };
    let least = values[0] * n as f64 * f64::EPSILON;
    let kept = values.iter().take(count).take_while(|value| **value > least && **value > 0.0).count();
    let columns: Vec<usize> = (0..kept).collect();
    Ok((values.select(Axis(0), &columns), vectors.select(Axis(1), &columns)))
}

/// Sums of numbers near the largest of `f64` would overflow.
fn check_scale(scale: f64) -> Result<()> {
    if scale < 1e150 {
        return Ok(());
    }
    let reason = "signatures take numbers up to 1e150; rescale the features";
    Err(LensError::Setting { name: "the largest number", value: format!("{scale:e}"), reason })
}

fn none(n: usize) -> Principal {
    Principal { coordinates: Array2::zeros((n, 0)), values: Array1::zeros(0), total: 0.0 }
}

impl Principal {
    fn scaled(mut self, scale: f64) -> Self {
        self.coordinates *= scale;
        self.values *= scale * scale;
        self.total *= scale * scale;
        self
    }
}
