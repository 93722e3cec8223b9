//! CKA from strips of rows of both Gram matrices, in one pass.
//!
//! With row sums `r`, `s` and sums of products off the diagonal, both forms of the module's header follow at the end.
//! An offset and a scale, taken from the first strip, are removed from every value; the result does not depend on them.

use super::{Cka, ROUNDING, Sums, ratio};
use crate::arrays::largest;
use crate::checks::{check_count, check_rows};
use crate::error::{LensError, Result};
use mercer_linalg::check_finite;
use ndarray::ArrayView2;

/// CKA of two kernels that are given in strips of rows, in any order. Stores `O(n)` numbers.
///
/// The strips of both sides must be rows of symmetric matrices. This cannot be checked.
///
/// ```
/// use ndarray::{Array2, s};
/// let x = Array2::from_shape_fn((6, 2), |(i, j)| ((i * 5 + j * 3) % 7) as f64);
/// let gram = x.dot(&x.t());
/// let mut strips = mercer_lens::cka::CkaStrips::new(6)?;
/// for start in [4, 0] {
///     let rows = gram.slice(s![start..(start + 4).min(6), ..]);
///     strips.add(start, rows, rows)?;
/// }
/// assert!((strips.finish()?.debiased.unwrap() - 1.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CkaStrips {
    rows: [Vec<f64>; 2],
    diagonals: [Vec<f64>; 2],
    /// Sums of products off the diagonal: of both sides, of the first, of the second.
    products: [f64; 3],
    /// An offset and a scale of each side, from its first strip.
    units: Option<[(f64, f64); 2]>,
    seen: Vec<bool>,
}

impl CkaStrips {
    /// For this many samples.
    ///
    /// # Errors
    /// For fewer than four samples.
    pub fn new(n_samples: usize) -> Result<Self> {
        check_count("an alignment", 4, n_samples)?;
        let zeros = || [vec![0.0; n_samples], vec![0.0; n_samples]];
        Ok(Self { rows: zeros(), diagonals: zeros(), products: [0.0; 3], units: None, seen: vec![false; n_samples] })
    }

    /// Adds rows `start`, `start + 1`, … of both Gram matrices.
    ///
    /// # Errors
    /// For strips of different shapes, rows beyond the last or given before, and numbers that are not finite.
    pub fn add(&mut self, start: usize, first: ArrayView2<'_, f64>, second: ArrayView2<'_, f64>) -> Result<()> {
        let n = self.seen.len();
        check_rows("the strip of the other matrix", first.nrows(), second.nrows())?;
        for strip in [first, second] {
            check_rows("a transposed strip", n, strip.ncols())?;
            check_finite("a strip of a Gram matrix", strip)?;
        }
        let refused =
            |row: usize, reason| LensError::Setting { name: "a row of a strip", value: row.to_string(), reason };
        for row in start..start.saturating_add(first.nrows()) {
            match self.seen.get(row) {
                None => return Err(refused(row, "the matrix ends before it")),
                Some(true) => return Err(refused(row, "it was given before")),
                Some(false) => {}
            }
        }
        // The result does not depend on offset and scale. Without them digits would be lost, or squares overflow.
        let units = *self.units.get_or_insert_with(|| [unit(first), unit(second)]);
        for (i, (a, b)) in first.outer_iter().zip(second.outer_iter()).enumerate() {
            let row = start + i;
            self.seen[row] = true;
            for (column, (a, b)) in a.iter().zip(b).enumerate() {
                let [a, b] = [(a, units[0]), (b, units[1])].map(|(value, (offset, scale))| value / scale - offset);
                if column == row {
                    (self.diagonals[0][row], self.diagonals[1][row]) = (a, b);
                    continue;
                }
                self.rows[0][row] += a;
                self.rows[1][row] += b;
                self.products[0] += a * b;
                self.products[1] += a * a;
                self.products[2] += b * b;
            }
        }
        Ok(())
    }

    /// The similarity, after all rows.
    ///
    /// # Errors
    /// If rows are missing.
    pub fn finish(self) -> Result<Cka> {
        let n = self.seen.len();
        check_rows("the strips together", n, self.seen.iter().filter(|seen| **seen).count())?;
        let size = n as f64;
        let pairs = [(0, 1), (0, 0), (1, 1)];
        let hollow = |which: usize| {
            let (r, s) = (&self.rows[pairs[which].0], &self.rows[pairs[which].1]);
            let total = r.iter().sum::<f64>() * s.iter().sum::<f64>() / ((size - 1.0) * (size - 2.0));
            let cross: f64 = r.iter().zip(s).map(|(r, s)| r * s).sum();
            self.products[which] + total - 2.0 * cross / (size - 2.0)
        };
        // Of the centred matrices, diagonals included.
        let whole = |which: usize| {
            let (one, two) = pairs[which];
            let full = |side: usize, i: usize| self.rows[side][i] + self.diagonals[side][i];
            let diagonal: f64 = (0..n).map(|i| self.diagonals[one][i] * self.diagonals[two][i]).sum();
            let rows: f64 = (0..n).map(|i| full(one, i) * full(two, i)).sum();
            let totals: f64 = (0..n).map(|i| full(one, i)).sum::<f64>() * (0..n).map(|i| full(two, i)).sum::<f64>();
            self.products[which] + diagonal - 2.0 * rows / size + totals / (size * size)
        };
        let sums = Sums { cross: whole(0), own: whole(1), other: whole(2) };
        let noise = (16.0 * size * f64::EPSILON).powi(2);
        let least = [1, 2].map(|which| noise + ROUNDING * self.products[which].max(whole(which)));
        Ok(ratio(n, [hollow(0), hollow(1), hollow(2)], sums, least))
    }
}

/// The mean off the diagonal, relative to the largest magnitude, and that magnitude. The mean of the first strip is
/// near enough.
fn unit(strip: ArrayView2<'_, f64>) -> (f64, f64) {
    let largest = largest(strip);
    if largest == 0.0 {
        return (0.0, 1.0);
    }
    (strip.iter().map(|value| value / largest).sum::<f64>() / strip.len() as f64, largest)
}
