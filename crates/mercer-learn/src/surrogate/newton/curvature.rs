//! The curvature of the log loss at some probabilities, one block per sample, with the biases eliminated.
//!
//! ```text
//! Bᵢ = vᵢ·(diag pᵢ − pᵢpᵢᵀ) = SᵢSᵢᵀ        Sᵢ = √vᵢ·(diag √pᵢ − pᵢ√pᵢᵀ)
//! B̂ = B − B1·(1ᵀB1)⁺·1ᵀB = SΠSᵀ           Π = I − Sᵀ1·(1ᵀB1)⁺·1ᵀS
//! ```
//!
//! All arrays have a row per sample and a column per class. A shift of all scores of a sample changes nothing, so `1ᵀB1`
//! is singular and the biases keep their sum.

use crate::error::Result;
use crate::surrogate::rows::DualRows;
use mercer_linalg::{matmul, matmul_into, symmetric_eigen, syrk};
use ndarray::{Array1, Array2, ArrayView1, Axis, s};

/// Eigenvalues below this part of the largest are zero.
const ROUNDING: f64 = 1e-14;
/// Samples whose weighted columns are held at the same time.
const STRIP: usize = 2048;

pub(crate) struct Curvature<'a> {
    shares: Array2<f64>,
    roots: Array2<f64>,
    importance: &'a [f64],
    /// `(1ᵀB1)⁺`.
    inverse: Array2<f64>,
}

impl<'a> Curvature<'a> {
    pub(crate) fn new(shares: Array2<f64>, importance: &'a [f64]) -> Result<Self> {
        let weighted = &shares * &ArrayView1::from(importance).insert_axis(Axis(1));
        let mut sum = -matmul(shares.t(), weighted.view());
        sum.diag_mut().zip_mut_with(&weighted.sum_axis(Axis(0)), |d, total| *d += total);
        Ok(Self { roots: shares.mapv(f64::sqrt), shares, importance, inverse: inverse(&sum)? })
    }

    /// `B·x`.
    pub(crate) fn times(&self, x: &Array2<f64>) -> Array2<f64> {
        let mut y = x * &self.shares;
        for ((mut y, p), &v) in y.outer_iter_mut().zip(self.shares.outer_iter()).zip(self.importance) {
            let total = y.sum();
            y.zip_mut_with(&p, |y, p| *y = v * (*y - p * total));
        }
        y
    }

    /// `S·x`.
    pub(crate) fn root(&self, x: &Array2<f64>) -> Array2<f64> {
        let mut y = x * &self.roots;
        for ((mut y, p), v) in y.outer_iter_mut().zip(self.shares.outer_iter()).zip(self.importance) {
            let (total, v) = (y.sum(), v.sqrt());
            y.zip_mut_with(&p, |y, p| *y = v * (*y - p * total));
        }
        y
    }

    /// `Sᵀ·x`.
    pub(crate) fn root_transposed(&self, x: &Array2<f64>) -> Array2<f64> {
        let mut y = x.clone();
        let rows = y.outer_iter_mut().zip(self.shares.outer_iter()).zip(self.roots.outer_iter());
        for (((mut y, p), root), v) in rows.zip(self.importance) {
            let (mean, v) = (y.dot(&p), v.sqrt());
            y.zip_mut_with(&root, |y, root| *y = v * root * (*y - mean));
        }
        y
    }

    /// `1b`: the same scores for all samples.
    fn everywhere(&self, bias: &Array1<f64>) -> Array2<f64> {
        bias.broadcast(self.shares.dim()).map(|b| b.to_owned()).unwrap_or_default()
    }

    /// `B·1b`.
    pub(crate) fn of_bias(&self, bias: &Array1<f64>) -> Array2<f64> {
        self.times(&self.everywhere(bias))
    }

    /// The biases that answer a pull: `(1ᵀB1)⁺·c`.
    pub(crate) fn bias(&self, c: &Array1<f64>) -> Array1<f64> {
        self.inverse.dot(c)
    }

    /// `B̂·x`.
    pub(crate) fn eliminated(&self, x: &Array2<f64>) -> Array2<f64> {
        let mut y = self.times(x);
        y -= &self.of_bias(&self.bias(&y.sum_axis(Axis(0))));
        y
    }

    /// `Π·x`.
    pub(crate) fn project(&self, x: &mut Array2<f64>) {
        let bias = self.bias(&self.root(x).sum_axis(Axis(0)));
        *x -= &self.root_transposed(&self.everywhere(&bias));
    }

    /// `FᵀB̂F` for columns `F` that are the same for all classes: all columns of a class after those of another.
    pub(crate) fn between(&self, columns: &Array2<f64>) -> Array2<f64> {
        let (n_classes, width) = (self.shares.ncols(), columns.ncols());
        let side = n_classes * width;
        let mut sum = Array2::zeros((side, side));
        let mut bias = Array2::zeros((side, n_classes));
        let weighted = &self.shares * &ArrayView1::from(self.importance).insert_axis(Axis(1));
        for (at, column) in weighted.axis_iter(Axis(1)).enumerate() {
            let range = at * width..(at + 1) * width;
            let own = columns * &column.mapv(f64::sqrt).insert_axis(Axis(1));
            sum.slice_mut(s![range.clone(), range.clone()]).assign(&syrk(own.t()));
            // `Fᵀ·B_{c,:}·1`: the share of a class in the pull of all biases.
            let mut pulls = -(&self.shares * &column.insert_axis(Axis(1)));
            pulls.column_mut(at).zip_mut_with(&column, |pull, own| *pull += own);
            bias.slice_mut(s![range, ..]).assign(&matmul(columns.t(), pulls.view()));
        }
        for start in (0..columns.nrows()).step_by(STRIP) {
            let rows = start..(start + STRIP).min(columns.nrows());
            let mut strip = Array2::zeros((rows.len(), side));
            for (at, share) in self.shares.axis_iter(Axis(1)).enumerate() {
                let factors: Array1<f64> = rows.clone().map(|row| share[row] * self.importance[row].sqrt()).collect();
                let scaled = &columns.slice(s![rows.clone(), ..]) * &factors.insert_axis(Axis(1));
                strip.slice_mut(s![.., at * width..(at + 1) * width]).assign(&scaled);
            }
            DualRows::Features(strip.view()).add_normal(-1.0, &mut sum);
        }
        let answered = matmul(bias.view(), self.inverse.view());
        matmul_into(-1.0, answered.view(), bias.t(), true, sum.view_mut());
        mercer_linalg::mirror_lower(sum.view_mut());
        sum
    }
}

/// The pseudo-inverse of a matrix that is singular along `1`. That direction is known exactly, so it is filled before the
/// decomposition and taken out after it: its eigenvalue is a sum of rounding errors, which may exceed small ones that count.
fn inverse(sum: &Array2<f64>) -> Result<Array2<f64>> {
    let n_classes = sum.nrows().max(1) as f64;
    let level = sum.diag().sum() / (n_classes * n_classes);
    let filled = (sum + &sum.t()) * 0.5 + level;
    let eigen = symmetric_eigen(filled.view())?;
    let least = ROUNDING * eigen.values.first().copied().unwrap_or(0.0).max(0.0);
    let values = eigen.values.mapv(|value| if value > least { 1.0 / value } else { 0.0 });
    let mut inverse = matmul((&eigen.vectors * &values).view(), eigen.vectors.t());
    for axis in [Axis(0), Axis(1)] {
        let means = inverse.sum_axis(axis).insert_axis(axis) / n_classes;
        inverse -= &means;
    }
    Ok(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::softmax::softmax;

    /// With many samples the eigenvalue along `1` is a sum of many rounding errors; it is still taken for zero.
    #[test]
    fn a_shift_of_all_scores_has_no_answer() {
        let (n, n_classes) = (20_000, 10);
        let importance = vec![1.0; n];
        let curvature = Curvature::new(Array2::from_elem((n, n_classes), 0.1), &importance).expect("decomposes");
        let shift = curvature.bias(&Array1::ones(n_classes));
        assert!(shift.iter().all(|b| b.abs() < 1e-15), "{shift}");
        let mut pull = Array1::zeros(n_classes);
        (pull[0], pull[1]) = (1.0, -1.0);
        let answer = curvature.bias(&pull) * (0.1 * n as f64);
        assert!((answer - pull).iter().all(|d| d.abs() < 1e-10));
    }

    /// The inner matrix, the root and the projection are those of dense formulas.
    #[test]
    fn products_are_those_of_the_dense_matrix() {
        let (n, n_classes, width) = (9, 3, 2);
        let wave = |i: usize, j: usize| ((7 * i + 3 * j) as f64).sin();
        let shares = softmax(Array2::from_shape_fn((n, n_classes), |(i, c)| 2.0 * wave(i, c)).view());
        let importance: Vec<f64> = (0..n).map(|i| 0.5 + i as f64 / 4.0).collect();
        let curvature = Curvature::new(shares, &importance).expect("decomposes");
        let columns = Array2::from_shape_fn((n, width), |(i, j)| wave(i + 1, 5 * j));
        let inner = curvature.between(&columns);
        for ((row, column), value) in inner.indexed_iter() {
            let place = |at: usize| {
                let mut x = Array2::zeros((n, n_classes));
                x.column_mut(at / width).assign(&columns.column(at % width));
                x
            };
            let expected = (place(row) * curvature.eliminated(&place(column))).sum();
            assert!((value - expected).abs() < 1e-12, "{value} instead of {expected}");
        }
        let x = Array2::from_shape_fn((n, n_classes), |(i, c)| wave(2 * i, c + 4));
        let mut y = curvature.root_transposed(&x);
        curvature.project(&mut y);
        let difference = curvature.root(&y) - curvature.eliminated(&x);
        assert!(difference.iter().all(|d| d.abs() < 1e-12));
    }
}
