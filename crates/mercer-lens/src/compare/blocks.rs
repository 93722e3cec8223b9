//! Kernels with a matrix of outputs per pair of samples, beside kernels with a number.
//!
//! A network with `C` outputs has the tangent kernel `Θ`, a matrix of side `N·C` with a `C × C` block per pair of
//! samples. A scalar kernel `κ` of side `N` stands for `κ ⊗ I_C`: every output is learnt by itself, with the same kernel
//! (Mohamadi and Sutherland 2022, arXiv 2206.12543, equations 2 and 6). Distance and alignment are those of the two matrices of
//! side `N·C`; the Kronecker product is never formed. Its eigenvalues are those of `κ`, `C` times each.
//!
//! **Mass.** For the blocks `B = Θ(xᵢ, xⱼ)` of all pairs of samples,
//!
//! ```text
//! ratio = Σ_pairs Σ_{c≠d} |B_cd|  /  Σ_pairs Σ_c |B_cc|
//! share = Σ_pairs Σ_{c≠d} B_cd²   /  Σ_pairs Σ_cd B_cd²
//! ```
//!
//! The paper speaks of a ratio without defining it; these are ours. Sums are over all pairs before dividing, so that
//! pairs of unrelated samples, whose blocks are near zero, do not decide the result. No scalar kernel is nearer to `Θ`
//! than the mean of the diagonals, `τ = (1/C) Σ_c Θ_cc`: [`BlockMass::least_distance`] is `‖Θ − τ ⊗ I‖ / ‖Θ‖`, and
//! `least_distance² ≥ share`.

use super::{Likeness, likeness};
use crate::arrays::largest;
use crate::checks::{check_count, check_rows};
use crate::cka::{Cka, cka_from_sums};
use crate::error::{LensError, Result};
use mercer_linalg::check_symmetric;
use ndarray::{Array1, ArrayView2, Axis};
use serde::Serialize;

/// A Gram matrix with one or several rows per sample, those of a sample next to each other.
#[derive(Clone, Copy, Debug)]
pub struct Valued<'a> {
    /// The matrix.
    pub matrix: ArrayView2<'a, f64>,
    /// Rows per sample: 1 for a scalar kernel.
    pub n_outputs: usize,
}

/// How much of a matrix-valued kernel lies between different outputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockMass {
    /// The sum of magnitudes off the diagonals of the blocks, over that on the diagonals; `None` if these are zero.
    pub ratio: Option<f64>,
    /// The same per entry: divided by the `C − 1` entries off the diagonal for each on it; `None` also for one output.
    pub per_entry: Option<f64>,
    /// The share of the squares that is off the diagonals; `None` of a zero matrix.
    pub share: Option<f64>,
    /// The relative Frobenius distance of the nearest scalar kernel; `None` of a zero matrix.
    pub least_distance: Option<f64>,
}

impl<'a> Valued<'a> {
    /// A scalar kernel.
    pub fn scalar(matrix: ArrayView2<'a, f64>) -> Self {
        Self { matrix, n_outputs: 1 }
    }

    fn view(&self) -> Valued<'_> {
        Valued { matrix: self.matrix.view(), n_outputs: self.n_outputs }
    }

    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        self.matrix.nrows() / self.n_outputs.max(1)
    }

    fn check(&self) -> Result<()> {
        let (rows, n_outputs) = (self.matrix.nrows(), self.n_outputs);
        if n_outputs == 0 || !rows.is_multiple_of(n_outputs) {
            let reason = "the rows of the matrix must be a multiple of it";
            return Err(LensError::Setting { name: "the number of outputs", value: n_outputs.to_string(), reason });
        }
        Ok(check_symmetric("comparison", self.matrix)?)
    }
}

/// The mass of the blocks of a kernel.
///
/// ```
/// use mercer_lens::{Valued, block_mass};
/// use ndarray::array;
///
/// // One sample with two outputs.
/// let found = block_mass(Valued { matrix: array![[2.0, 1.0], [1.0, 2.0]].view(), n_outputs: 2 })?;
/// assert_eq!((found.ratio, found.share), (Some(0.5), Some(0.2)));
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For a matrix that is empty, not finite or not symmetric, or whose rows are no multiple of the outputs.
pub fn block_mass(kernel: Valued<'_>) -> Result<BlockMass> {
    check_count("the mass of blocks", 1, kernel.matrix.nrows())?;
    kernel.check()?;
    let (n_outputs, unit) = (kernel.n_outputs, unit(kernel.matrix));
    let (mut on, mut off, mut on_squares, mut off_squares, mut kept) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for blocks in kernel.matrix.axis_chunks_iter(Axis(0), n_outputs) {
        for block in blocks.axis_chunks_iter(Axis(1), n_outputs) {
            let mut trace = 0.0;
            for ((c, d), &value) in block.indexed_iter() {
                let value = value / unit;
                if c == d {
                    (on, on_squares, trace) = (on + value.abs(), on_squares + value * value, trace + value);
                } else {
                    (off, off_squares) = (off + value.abs(), off_squares + value * value);
                }
            }
            kept += trace * trace / n_outputs as f64;
        }
    }
    let ratio = (on > 0.0).then(|| off / on);
    let per_entry = ratio.filter(|_| n_outputs > 1).map(|ratio| ratio / (n_outputs - 1) as f64);
    let all = on_squares + off_squares;
    let of_all = |part: f64| (all > 0.0).then(|| part.max(0.0) / all);
    let least_distance = of_all(all - kept).map(f64::sqrt);
    Ok(BlockMass { ratio, per_entry, share: of_all(off_squares), least_distance })
}

/// Compares two kernels on the same samples. If one of them is scalar and the other is not, the scalar one stands for
/// `κ ⊗ I`.
///
/// ```
/// use mercer_lens::{Valued, kernel_likeness};
/// use ndarray::{array, linalg::kron, Array2};
///
/// let scalar = array![[2.0, 1.0, 0.0, 0.5], [1.0, 2.0, 0.3, 0.0], [0.0, 0.3, 2.0, 1.0], [0.5, 0.0, 1.0, 2.0]];
/// let full = kron(&scalar, &Array2::eye(3));
/// let found = kernel_likeness(Valued { matrix: full.view(), n_outputs: 3 }, Valued::scalar(scalar.view()))?;
/// assert!(found.frobenius == 0.0 && (found.cka.unwrap() - 1.0).abs() < 1e-12);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// As [`likeness`](super::likeness), and for two kernels with different numbers of outputs of which neither is scalar.
pub fn kernel_likeness(a: Valued<'_>, b: Valued<'_>) -> Result<Likeness> {
    if a.n_outputs == b.n_outputs {
        return likeness(a.matrix, b.matrix);
    }
    let (full, scalar) = match (a.n_outputs, b.n_outputs) {
        (_, 1) => (a.view(), b.view()),
        (1, _) => (b.view(), a.view()),
        (expected, found) => return Err(LensError::Rows { what: "a block of outputs", expected, found }),
    };
    check_count("an alignment", 4, full.n_samples())?;
    full.check()?;
    scalar.check()?;
    check_rows("the other kernel", full.n_samples(), scalar.n_samples())?;
    let sides = Sides { full, scalar };
    let cka = sides.cka().debiased;
    let [own, other] = [full.matrix, scalar.matrix].map(mercer_linalg::verify::frobenius);
    let other = other * (full.n_outputs as f64).sqrt();
    let product = sides.product();
    Ok(match a.n_outputs {
        1 => Likeness::new([other, own], product, |scale| sides.distance([scale, 1.0]), cka),
        _ => Likeness::new([own, other], product, |scale| sides.distance([1.0, scale]), cka),
    })
}

/// Divides sums, so that squares neither overflow nor vanish.
fn unit(matrix: ArrayView2<'_, f64>) -> f64 {
    Some(largest(matrix)).filter(|&largest| largest > 0.0).unwrap_or(1.0)
}

/// A matrix-valued kernel and a scalar one.
struct Sides<'a> {
    full: Valued<'a>,
    scalar: Valued<'a>,
}

impl Sides<'_> {
    /// Visits all blocks: their samples, the block, and the scalar kernel.
    fn each(&self, mut visit: impl FnMut(usize, usize, ArrayView2<'_, f64>, f64)) {
        let c = self.full.n_outputs;
        for (i, blocks) in self.full.matrix.axis_chunks_iter(Axis(0), c).enumerate() {
            for (j, block) in blocks.axis_chunks_iter(Axis(1), c).enumerate() {
                visit(i, j, block, self.scalar.matrix[(i, j)]);
            }
        }
    }

    /// `⟨Θ, κ ⊗ I⟩`.
    fn product(&self) -> f64 {
        let mut sum = 0.0;
        self.each(|_, _, block, value| sum += block.diag().sum() * value);
        sum
    }

    /// `‖s·Θ − t·κ ⊗ I‖`.
    fn distance(&self, [s, t]: [f64; 2]) -> f64 {
        let mut sum = 0.0;
        self.each(|_, _, block, value| {
            for ((c, d), &own) in block.indexed_iter() {
                let other = if c == d { t * value } else { 0.0 };
                sum += (s * own - other).powi(2);
            }
        });
        sum.sqrt()
    }

    /// CKA of the centred matrices, `Θ_{ic,jd} − r_{ic} − r_{jd} + m` and `δ_cd κ_ij − ρ_i − ρ_j + μ` with means over
    /// all `N·C` columns.
    fn cka(&self) -> Cka {
        let c = self.full.n_outputs;
        let (rows, scalar_unit, full_unit) =
            (self.full.matrix.nrows() as f64, unit(self.scalar.matrix), unit(self.full.matrix));
        let full_means = self.full.matrix.map_axis(Axis(1), |row| row.sum() / rows / full_unit);
        let scalar_means = self.scalar.matrix.map_axis(Axis(1), |row| row.sum() / rows / scalar_unit);
        let full_mean = full_means.sum() / rows;
        let scalar_mean = scalar_means.sum() * c as f64 / rows;
        let (mut cross, mut own, mut other) = (0.0, 0.0, 0.0);
        let mut diagonals = [Array1::zeros(self.full.matrix.nrows()), Array1::zeros(self.full.matrix.nrows())];
        self.each(|i, j, block, value| {
            let shift = scalar_mean - scalar_means[i] - scalar_means[j];
            for ((first, second), &entry) in block.indexed_iter() {
                let (row, column) = (i * c + first, j * c + second);
                let a = entry / full_unit - full_means[row] - full_means[column] + full_mean;
                let b = if first == second { value / scalar_unit + shift } else { shift };
                (cross, own, other) = (cross + a * b, own + a * a, other + b * b);
                if row == column {
                    (diagonals[0][row], diagonals[1][row]) = (a, b);
                }
            }
        });
        // Of a constant kernel only rounding is left.
        let rounding = (rows * 16.0 * f64::EPSILON).powi(2);
        let [own, other] = [own, other].map(|sum| if sum > rounding { sum } else { 0.0 });
        cka_from_sums(diagonals, [cross, own, other])
    }
}
