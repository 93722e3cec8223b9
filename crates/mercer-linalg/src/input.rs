//! Checks of inputs: shapes, finite values, symmetry; and the scaled working copy decompositions start from.
//!
//! Decompositions work on `s·A` with `s = 4^e` chosen such that the largest entry is near one. Squares then neither
//! overflow nor vanish, and undoing the scaling is exact, also for a Cholesky factor (`√s = 2^e`).

use crate::{Error, Result, Scalar, memory};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, CowArray, Ix2, ShapeBuilder};
use std::ops::Range;

/// How far, in units of rounding of the largest entry, mirror images may differ: the noise of a product `A·Aᵀ` over some
/// 10⁶ terms, and far below any asymmetry with a meaning.
const SYMMETRY_SLACK: f64 = 1e3;

/// Checks that every value is finite; the error names the first that is not.
///
/// ```
/// use mercer_linalg::{Error, check_finite};
/// let x = ndarray::array![[1.0, 2.0], [f64::NAN, 4.0]];
/// assert!(matches!(check_finite("data", x.view()), Err(Error::NotFinite { row: 1, column: 0, .. })));
/// ```
pub fn check_finite<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<()> {
    // With the grain of the memory: against it a large matrix takes ten times as long.
    let along = if a.strides()[0].unsigned_abs() < a.strides()[1].unsigned_abs() { a.reversed_axes() } else { a };
    // A fold without early exit, so that it vectorises.
    let finite = |values: ArrayView1<'_, T>| values.iter().fold(true, |finite, v| finite & v.is_finite());
    if along.axis_iter(Axis(0)).all(finite) {
        return Ok(());
    }
    for (row, values) in a.axis_iter(Axis(0)).enumerate() {
        if !values.iter().fold(true, |finite, v| finite & v.is_finite()) {
            let (column, value) = values.iter().enumerate().find(|(_, v)| !v.is_finite()).map_or((0, 0.0), at);
            return Err(Error::NotFinite { routine, row, column, value });
        }
    }
    Ok(())
}

fn at<T: Scalar>((index, value): (usize, &T)) -> (usize, f64) {
    (index, value.wide())
}

pub(crate) fn check_finite_vector<T: Scalar>(routine: &'static str, x: ArrayView1<'_, T>, column: usize) -> Result<()> {
    match x.iter().position(|v| !v.is_finite()) {
        Some(row) => Err(Error::NotFinite { routine, row, column, value: x[row].wide() }),
        None => Ok(()),
    }
}

/// Checks that two sizes agree.
pub(crate) fn check_size(routine: &'static str, what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::ShapeMismatch { routine, what, expected, found }) }
}

/// Checks that a matrix is square, finite and symmetric up to rounding.
///
/// ```
/// let a = ndarray::array![[1.0, 2.0], [2.5, 1.0]];
/// assert!(mercer_linalg::check_symmetric("kernel", a.view()).is_err());
/// ```
pub fn check_symmetric<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<()> {
    check_size(routine, "the number of columns", a.nrows(), a.ncols())?;
    check_finite(routine, a)?;
    let tolerance = T::of(SYMMETRY_SLACK) * T::epsilon() * largest(a);
    let (along, mut differ) = (row_major(a), false);
    let values = along.as_slice().unwrap_or(&[]);
    for tile in Tile::all(a.nrows()).filter(|tile| tile.rows.start >= tile.columns.start) {
        tile.each_row(values, a.nrows(), |_, row, mirror| {
            let pairs = row.iter().zip(mirror);
            differ |= pairs.fold(false, |differ, (&x, &y)| differ | ((x - y).abs() > tolerance));
        });
    }
    if differ { Err(first_asymmetry(routine, a, tolerance)) } else { Ok(()) }
}

/// The matrix or its transpose, whichever lies row by row in memory; a copy if neither does.
fn row_major<T: Scalar>(a: ArrayView2<'_, T>) -> CowArray<'_, T, Ix2> {
    let along = if a.is_standard_layout() { a } else { a.reversed_axes() };
    if along.is_standard_layout() { along.into() } else { along.as_standard_layout().into_owned().into() }
}

/// The slow search, once it is known that there is something to find.
fn first_asymmetry<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>, tolerance: T) -> Error {
    let difference = |row: usize, column: usize| (a[(row, column)] - a[(column, row)]).abs();
    let pairs = (0..a.nrows()).flat_map(|row| (0..row).map(move |column| (row, column)));
    let (row, column) = pairs.clone().find(|&(row, column)| difference(row, column) > tolerance).unwrap_or((0, 0));
    let difference = difference(row, column).wide();
    Error::NotSymmetric { routine, row, column, difference, tolerance: tolerance.wide() }
}

/// A square block and its mirror image, both small enough to stay in the first-level cache: one of the two is always read
/// against the grain of the memory.
struct Tile {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Tile {
    const SIZE: usize = 64;

    fn all(n: usize) -> impl Iterator<Item = Self> {
        let ranges = move || (0..n).step_by(Self::SIZE).map(move |start| start..(start + Self::SIZE).min(n));
        ranges().flat_map(move |rows| ranges().map(move |columns| Self { rows: rows.clone(), columns }))
    }

    /// Calls `body(at, row, mirror)` for every row of the block of a matrix that lies row by row: where it begins, its numbers
    /// and their mirror images, which are turned in a buffer first.
    fn each_row<T: Scalar>(&self, a: &[T], n: usize, mut body: impl FnMut(usize, &[T], &[T])) {
        let mut turned = [[T::zero(); Self::SIZE]; Self::SIZE];
        for (j, column) in self.columns.clone().enumerate() {
            let images = &a[column * n..][self.rows.clone()];
            turned.iter_mut().zip(images).for_each(|(row, &image)| row[j] = image);
        }
        for (row, mirror) in self.rows.clone().zip(&turned) {
            let at = row * n + self.columns.start;
            body(at, &a[at..][..self.columns.len()], &mirror[..self.columns.len()]);
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

/// The checked, scaled and exactly symmetric copy: `s·(A + Aᵀ)/2`.
pub(crate) fn symmetric_copy<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<Scaled<T>> {
    check_symmetric(routine, a)?;
    let factor = scale_factor(largest(a));
    let half = factor * T::of(0.5);
    let along = row_major(a);
    let (values, n) = (along.as_slice().unwrap_or(&[]), a.nrows());
    let mut means = memory::zeros(n * n);
    for tile in Tile::all(n) {
        tile.each_row(values, n, |at, row, mirror| {
            let pairs = row.iter().zip(mirror);
            means[at..][..row.len()].iter_mut().zip(pairs).for_each(|(mean, (&x, &y))| *mean = half * x + half * y);
        });
    }
    // Symmetric to the last bit, so rows are columns.
    let matrix = Array2::from_shape_vec((n, n).f(), means).expect("n² numbers");
    Ok(Scaled { matrix, factor })
}

/// The checked and scaled copy of any matrix.
pub(crate) fn scaled_copy<T: Scalar>(routine: &'static str, a: ArrayView2<'_, T>) -> Result<Scaled<T>> {
    check_finite(routine, a)?;
    let factor = scale_factor(largest(a));
    let mut matrix = Array2::zeros(a.dim().f());
    matrix.zip_mut_with(&a, |copy, &value| *copy = factor * value);
    Ok(Scaled { matrix, factor })
}

fn largest<T: Scalar>(a: ArrayView2<'_, T>) -> T {
    const LANES: usize = 16;
    let larger = |most: T, v: T| if v > most { v } else { most };
    let Some(values) = a.as_slice_memory_order() else {
        return a.iter().fold(T::zero(), |most, v| larger(most, v.abs()));
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut most = [T::zero(); LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            most[lane] = larger(most[lane], chunk[lane].abs());
        }
    }
    rest.iter().map(|v| v.abs()).chain(most).fold(T::zero(), larger)
}

/// The power of four that brings `largest` into `[1, 4)`, as far as the exponents of `T` reach.
fn scale_factor<T: Scalar>(largest: T) -> T {
    if largest == T::zero() {
        return T::one();
    }
    let reach = (T::max_value().wide().log2() / 2.0).floor() as i32 - 2;
    let exponent = -(largest.wide().log2() / 2.0).floor() as i32;
    T::of(4.0).powi(exponent.clamp(-reach, reach))
}
