//! Eigenvalues, and eigenfunctions at the data.

use crate::error::{Result, SpectralError};
use mercer_kernel::Real;
use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut2, Axis, s};
use serde::{Deserialize, Serialize};

/// The largest eigenvalues of a kernel on data, and the eigenfunctions there. See the conventions of the crate.
#[derive(Clone, Debug)]
pub struct Spectrum<T> {
    /// `μ`, descending and positive.
    pub values: Array1<f64>,
    /// `ψ_j(x_n)`: `rows × k`, a column per function.
    pub functions: Array2<T>,
    /// The repairs.
    pub repairs: Repairs,
}

/// What was dropped or clipped; all zero if nothing was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repairs {
    /// Requested components that do not exist because the rank of the kernel on the data is lower: their eigenvalues
    /// are within rounding.
    pub dropped: usize,
    /// Negative eigenvalues, beyond rounding, that were found and ignored.
    pub negative: usize,
    /// The most negative of them, over the number of rows.
    pub most_negative: f64,
    /// Whether all eigenvalues were computed; otherwise there may be further negative ones.
    pub all_seen: bool,
    /// Landmarks that were dropped because they add nothing to the others.
    pub landmarks_removed: usize,
}

impl Repairs {
    /// Whether something was repaired.
    pub fn any(&self) -> bool {
        self.dropped > 0 || self.negative > 0 || self.landmarks_removed > 0
    }

    /// One sentence per repair.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.dropped > 0 {
            sentences.push(format!(
                "{} of the requested components do not exist: the rank of the kernel on the data is lower",
                self.dropped
            ));
        }
        if self.negative > 0 {
            let least = if self.all_seen { "" } else { "at least " };
            sentences.push(format!(
                "{least}{} negative eigenvalues, down to {:.3e}, were ignored: the matrix is indefinite, or rounding is",
                self.negative, self.most_negative
            ));
        }
        if self.landmarks_removed > 0 {
            sentences.push(format!("{} landmarks add nothing to the others and were dropped", self.landmarks_removed));
        }
        sentences
    }
}

impl<T: Real> Spectrum<T> {
    /// From eigenpairs of a Gram matrix, largest first; at most `wanted` are kept. `all_seen` means that these are all
    /// of its eigenvalues; `precision` is the unit of rounding of the matrix's entries.
    ///
    /// # Errors
    /// [`SpectralError::NoSpectrum`] if no eigenvalue is positive.
    pub fn from_eigenpairs(
        values: ArrayView1<'_, T>,
        vectors: Array2<T>,
        wanted: usize,
        all_seen: bool,
        precision: f64,
    ) -> Result<Self> {
        let rows = vectors.nrows();
        let floor = rounding(values, rows, precision);
        let positive = values.iter().take(wanted).take_while(|v| v.wide() > floor).count();
        if positive == 0 {
            let largest = values.first().map_or(0.0, |v| v.wide()) / rows.max(1) as f64;
            return Err(SpectralError::NoSpectrum { rows, largest });
        }
        let negative = values.iter().filter(|v| v.wide() < -floor).count();
        let least = values.iter().fold(0.0, |least: f64, v| least.min(v.wide()));
        let repairs = Repairs {
            dropped: wanted - positive,
            negative,
            most_negative: if negative > 0 { least / rows as f64 } else { 0.0 },
            all_seen,
            landmarks_removed: 0,
        };
        let values = values.iter().take(positive).map(|v| v.wide() / rows as f64).collect();
        let mut functions = vectors.slice(s![.., ..positive]).mapv(|u| u * T::narrow((rows as f64).sqrt()));
        orient(functions.view_mut());
        Ok(Self { values, functions, repairs })
    }

    /// Only the first `k` functions.
    pub fn truncate(&mut self, k: usize) {
        let k = k.min(self.values.len());
        self.values = self.values.slice(s![..k]).to_owned();
        self.functions = self.functions.slice(s![.., ..k]).to_owned();
    }
}

/// An eigenvalue below `8 √rows ε` of the largest in magnitude is within rounding: independent errors `ε` of the
/// entries of a matrix have a norm of about `2 √rows ε`.
pub(crate) fn rounding<T: Real>(values: ArrayView1<'_, T>, rows: usize, precision: f64) -> f64 {
    let size = values.iter().fold(0.0, |most: f64, v| most.max(v.wide().abs()));
    8.0 * (rows as f64).sqrt() * precision * size
}

/// Gives every column the sign of the crate's conventions; returns the factors, 1 or -1.
pub fn orient<T: Real>(mut functions: ArrayViewMut2<'_, T>) -> Vec<T> {
    let orient_one = |mut column: ndarray::ArrayViewMut1<'_, T>| {
        let largest = column.iter().fold(0.0, |most: f64, v| most.max(v.wide().abs()));
        let first = column.iter().find(|v| 2.0 * v.wide().abs() >= largest);
        let sign = if first.is_some_and(|v| v.wide() < 0.0) { -T::one() } else { T::one() };
        column.mapv_inplace(|v| v * sign);
        sign
    };
    functions.axis_iter_mut(Axis(1)).map(orient_one).collect()
}
