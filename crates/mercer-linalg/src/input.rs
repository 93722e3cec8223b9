//! Input checks (shapes, finite values, symmetry), and the scaled working copy from which decompositions start.
//!
//! Decompositions work on `s·A` with `s = 4^e` chosen such that the largest entry is near one. Squares then neither
//! overflow nor vanish, and undoing the scaling is exact, even for a Cholesky factor (`√s = 2^e`).

use crate::simd::dispatch;
use crate::{LinalgError, Result, Scalar, memory};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, CowArray, Ix2, ShapeBuilder};
use std::ops::Range;

/// How far mirror images may differ, in units of rounding of the largest entry: the noise of a product `A·Aᵀ` over some
/// 10⁶ terms, and far below any meaningful asymmetry.
const SYMMETRY_SLACK: f64 = 1e3;

/// Checks that every value is finite; the error names the first that is not.
///
/// ```
/// use mercer_linalg::{LinalgError, check_finite};
/// let x = ndarray::array![[1.0, 2.0], [f64::NAN, 4.0]];
/// assert!(matches!(check_finite("data", x.view()), Err(LinalgError::NotFinite { row: 1, column: 0, .. })));
/// ```
pub fn check_finite<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<()> {
    // Traverse in memory order: against it, a large matrix takes ten times as long.
    let along = if a.strides()[0].unsigned_abs() < a.strides()[1].unsigned_abs() { a.reversed_axes() } else { a };
    // A fold without early exit, so that it vectorises.
    let finite = |values: ArrayView1<'_, T>| values.iter().fold(true, |finite, v| finite & v.is_finite());
    if along.axis_iter(Axis(0)).all(finite) {
        return Ok(());
    }
    for (row, values) in a.axis_iter(Axis(0)).enumerate() {
        if !values.iter().fold(true, |finite, v| finite & v.is_finite()) {
            let (column, value) = values.iter().enumerate().find(|(_, v)| !v.is_finite()).map_or((0, 0.0), at);
            return Err(LinalgError::NotFinite { routine, row, column, value });
        }
    }
    Ok(())
}

fn at<T: Scalar>((index, value): (usize, &T)) -> (usize, f64) {
    (index, value.wide())
}

pub(crate) fn check_finite_vector<T: Scalar>(routine: &'static str, x: ArrayView1<'_, T>, column: usize) -> Result<()> {
    match x.iter().position(|v| !v.is_finite()) {
        Some(row) => Err(LinalgError::NotFinite { routine, row, column, value: x[row].wide() }),
        None => Ok(()),
    }
}

/// Checks that two sizes agree.
pub(crate) fn check_size(routine: &'static str, what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(LinalgError::ShapeMismatch { routine, what, expected, found }) }
}

/// Checks that a matrix is square, finite and symmetric up to rounding.
///
/// ```
/// let a = ndarray::array![[1.0, 2.0], [2.5, 1.0]];
/// assert!(mercer_linalg::check_symmetric("kernel", a.view()).is_err());
/// ```
pub fn check_symmetric<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<()> {
    T::check_symmetric(routine, a)
}

pub(crate) fn compare_mirrored<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<()> {
    check_size(routine, "the number of columns", a.nrows(), a.ncols())?;
    let tolerance = T::narrow(SYMMETRY_SLACK) * T::epsilon() * largest(routine, a)?;
    let (along, mut differ) = (row_major(a), false);
    let values = along.as_slice().unwrap_or(&[]);
    for tile in Tile::lower(a.nrows()) {
        tile.each_row(values, a.nrows(), |_, row, mirror| differ |= far(row, mirror, tolerance));
    }
    if differ { Err(first_asymmetry(routine, a, tolerance)) } else { Ok(()) }
}

/// Whether any number differs from its mirror image by more than the tolerance. No early exit, so that the loop
/// vectorises.
fn far<T: Scalar>(row: &[T], mirror: &[T], tolerance: T) -> bool {
    row.iter().zip(mirror).fold(false, |far, (&x, &y)| far | ((x - y).abs() > tolerance))
}

/// The matrix or its transpose, whichever lies row by row in memory; a copy if neither does.
fn row_major<T: Scalar>(a: ArrayView2<'_, T>) -> CowArray<'_, T, Ix2> {
    let along = if a.is_standard_layout() { a } else { a.reversed_axes() };
    if along.is_standard_layout() { along.into() } else { along.as_standard_layout().into_owned().into() }
}

/// The slow search for the position, run only when there is something to find.
fn first_asymmetry<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>, tolerance: T) -> LinalgError {
    let difference = |row: usize, column: usize| (a[(row, column)] - a[(column, row)]).abs();
    let pairs = (0..a.nrows()).flat_map(|row| (0..row).map(move |column| (row, column)));
    let (row, column) = pairs.clone().find(|&(row, column)| difference(row, column) > tolerance).unwrap_or((0, 0));
    let difference = difference(row, column).wide();
    LinalgError::NotSymmetric { routine, row, column, difference, tolerance: tolerance.wide() }
}

/// A square block and its mirror image, both small enough to stay in the first-level cache, since one of the two is
/// always read against memory order.
struct Tile {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Tile {
    const SIZE: usize = 64;

    /// The blocks on and below the diagonal.
    fn lower(n: usize) -> impl Iterator<Item = Self> {
        let range = move |start: usize| start..(start + Self::SIZE).min(n);
        let starts = move |end: usize| (0..end).step_by(Self::SIZE);
        starts(n)
            .flat_map(move |row| starts(row + 1).map(move |column| Self { rows: range(row), columns: range(column) }))
    }

    /// Calls `body(row, numbers, mirror)` for every row of the block of a row-major matrix: its index, its numbers, and
    /// their mirror images, which are transposed into a buffer first.
    fn each_row<T: Scalar>(&self, a: &[T], n: usize, mut body: impl FnMut(usize, &[T], &[T])) {
        let mut turned = [[T::zero(); Self::SIZE]; Self::SIZE];
        for (j, column) in self.columns.clone().enumerate() {
            let images = &a[column * n..][self.rows.clone()];
            turned.iter_mut().zip(images).for_each(|(row, &image)| row[j] = image);
        }
        for (row, mirror) in self.rows.clone().zip(&turned) {
            body(row, &a[row * n..][self.columns.clone()], &mirror[..self.columns.len()]);
        }
    }

    /// Copies the block onto its mirror image.
    fn mirror<T: Scalar>(&self, a: &mut [T], n: usize) {
        let mut turned = [[T::zero(); Self::SIZE]; Self::SIZE];
        for (i, row) in self.rows.clone().enumerate() {
            let numbers = &a[row * n..][self.columns.clone()];
            turned.iter_mut().zip(numbers).for_each(|(to, &number)| to[i] = number);
        }
        for (column, numbers) in self.columns.clone().zip(&turned) {
            a[column * n..][self.rows.clone()].copy_from_slice(&numbers[..self.rows.len()]);
        }
    }
}

/// A working copy, and the factor it was scaled with.
pub(crate) struct Scaled<T> {
    /// `factor · A`, column-major as faer prefers.
    pub(crate) matrix: Array2<T>,
    /// `4^e`.
    pub(crate) factor: T,
}

/// The checked, scaled and exactly symmetric copy `s·(A + Aᵀ)/2`. One pass finds the scale; a second pass over mirrored
/// blocks compares, averages and writes both while they are in the cache.
pub(crate) fn symmetric_copy<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<Scaled<T>> {
    check_size(routine, "the number of columns", a.nrows(), a.ncols())?;
    let most = largest(routine, a)?;
    let (factor, tolerance) = (scale_factor(most), T::narrow(SYMMETRY_SLACK) * T::epsilon() * most);
    let half = factor * T::narrow(0.5);
    let along = row_major(a);
    let (values, n) = (along.as_slice().unwrap_or(&[]), a.nrows());
    let (mut means, mut differ) = (memory::zeros(n * n), false);
    for tile in Tile::lower(n) {
        tile.each_row(values, n, |at, row, mirror| {
            differ |= far(row, mirror, tolerance);
            let pairs = row.iter().zip(mirror);
            let to = &mut means[at * n..][tile.columns.clone()];
            to.iter_mut().zip(pairs).for_each(|(mean, (&x, &y))| *mean = half * x + half * y);
        });
        tile.mirror(&mut means, n);
    }
    if differ {
        return Err(first_asymmetry(routine, a, tolerance));
    }
    // Symmetric to the last bit, so rows are columns.
    let matrix = Array2::from_shape_vec((n, n).f(), means).expect("n² numbers");
    Ok(Scaled { matrix, factor })
}

/// The checked and scaled copy of any matrix.
pub(crate) fn scaled_copy<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<Scaled<T>> {
    let factor = scale_factor(largest(routine, a)?);
    let mut matrix = Array2::zeros(a.dim().f());
    matrix.zip_mut_with(&a, |copy, &value| *copy = factor * value);
    Ok(Scaled { matrix, factor })
}

/// The largest absolute value of numbers that are all finite, in one pass.
fn largest<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<T> {
    const LANES: usize = 16;
    let larger = |most: T, v: T| if v > most { v } else { most };
    let Some(values) = a.as_slice_memory_order() else {
        check_finite(routine, a)?;
        return Ok(a.iter().fold(T::zero(), |most, v| larger(most, v.abs())));
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let (mut most, mut zeros) = ([T::zero(); LANES], [T::zero(); LANES]);
    dispatch(
        #[inline(always)]
        || {
            for chunk in chunks {
                for lane in 0..LANES {
                    most[lane] = larger(most[lane], chunk[lane].abs());
                    // Stays zero for finite values and becomes NaN for good after the first that is not.
                    zeros[lane] += chunk[lane] * T::zero();
                }
            }
        },
    );
    if rest.iter().map(|&v| v * T::zero()).chain(zeros).any(|zero| zero.is_nan()) {
        check_finite(routine, a)?;
    }
    Ok(rest.iter().map(|v| v.abs()).chain(most).fold(T::zero(), larger))
}

/// The power of four that brings `largest` into `[1, 4)`, within the exponent range of `T`.
fn scale_factor<T: Scalar>(largest: T) -> T {
    if largest == T::zero() {
        return T::one();
    }
    let reach = (T::max_value().wide().log2() / 2.0).floor() as i32 - 2;
    let exponent = -(largest.wide().log2() / 2.0).floor() as i32;
    T::narrow(4.0).powi(exponent.clamp(-reach, reach))
}
