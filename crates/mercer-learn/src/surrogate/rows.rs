//! The samples of a dual machine, and products with their kernel matrix.
//!
//! ```text
//! K·X, or Φ·(Φᵀ·X) for features
//! ```
//!
//! Work is cut into strips of rows of a fixed size. Strips run in parallel, and sums over strips have a fixed order, so
//! the bits do not depend on the number of threads. Features in single precision are widened strip by strip: the matrix
//! is never copied.

use crate::error::{LearnError, Result, check_size};
use crate::samples::{SampleKind, SampleRows};
use mercer_linalg::{Scalar, check_finite, check_symmetric, matmul, matmul_into, syrk, syrk_into};
use ndarray::{Array2, ArrayView2, Axis, CowArray, Ix2, s};
use rayon::prelude::*;

/// Rows per strip: 8 MiB of 4096 features.
const STRIP: usize = 256;
/// Columns of features that are widened at a time.
const COLUMNS: usize = 1024;
/// Strips whose products are held at the same time before they are added.
const WAVE: usize = 8;

/// Samples as kernel values with the training samples, or as features in double or single precision.
///
/// For fitting, a Gram matrix is the symmetric one of the training samples. Queries have a row per query.
#[derive(Clone, Copy, Debug)]
pub enum DualRows<'a> {
    /// `κ(x, xᵢ)`: a column per training sample.
    Gram(ArrayView2<'a, f64>),
    /// `φ(x)`: a column per feature.
    Features(ArrayView2<'a, f64>),
    /// `φ(x)` in single precision. Products are in double precision.
    Features32(ArrayView2<'a, f32>),
}

impl<'a> From<SampleRows<'a>> for DualRows<'a> {
    fn from(rows: SampleRows<'a>) -> Self {
        match rows {
            SampleRows::Gram(rows) => Self::Gram(rows),
            SampleRows::Features(rows) => Self::Features(rows),
        }
    }
}

impl DualRows<'_> {
    /// The kind of samples.
    pub fn basis(&self) -> SampleKind {
        match self {
            Self::Gram(_) => SampleKind::Gram,
            Self::Features(_) | Self::Features32(_) => SampleKind::Features,
        }
    }

    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        self.dim().0
    }

    /// Samples, and training samples or features.
    pub fn dim(&self) -> (usize, usize) {
        match self {
            Self::Gram(rows) | Self::Features(rows) => rows.dim(),
            Self::Features32(rows) => rows.dim(),
        }
    }

    /// Checks samples for fitting: there is at least one, all numbers are finite, and a Gram matrix is symmetric.
    ///
    /// # Errors
    /// The first of these that is not so.
    pub fn check_for_fit(&self) -> Result<()> {
        match self {
            Self::Gram(gram) => check_symmetric("the Gram matrix", *gram)?,
            Self::Features(features) => check_finite("the features", *features)?,
            Self::Features32(features) => check_finite("the features", *features)?,
        }
        if self.n_samples() == 0 { Err(LearnError::Empty { what: "fit" }) } else { Ok(()) }
    }

    /// Checks queries against the training samples.
    pub(crate) fn check_queries(&self, queries: &DualRows<'_>) -> Result<()> {
        if self.basis() != queries.basis() {
            return Err(LearnError::Basis { fitted: self.basis(), given: queries.basis() });
        }
        let (what, width) = match self.basis() {
            SampleKind::Gram => ("the number of training samples (columns of the kernel matrix)", self.n_samples()),
            SampleKind::Features => ("the number of features", self.dim().1),
        };
        check_size(what, width, queries.dim().1)?;
        match queries {
            DualRows::Gram(rows) | DualRows::Features(rows) => check_finite("the queries", *rows)?,
            DualRows::Features32(rows) => check_finite("the queries", *rows)?,
        }
        Ok(())
    }

    /// The kernel rows of queries: the rows themselves, or `Φ(x)·Φᵀ`.
    ///
    /// # Errors
    /// For queries of another kind or width.
    pub fn kernel_rows<'q>(&self, queries: &DualRows<'q>) -> Result<CowArray<'q, f64, Ix2>> {
        self.check_queries(queries)?;
        if let DualRows::Gram(rows) = queries {
            return Ok(CowArray::from(*rows));
        }
        let turned = queries.turned();
        Ok(CowArray::from(self.forward(turned.view()).reversed_axes().as_standard_layout().into_owned()))
    }

    /// The rows in double precision, transposed.
    fn turned(&self) -> Array2<f64> {
        match self {
            Self::Gram(rows) | Self::Features(rows) => rows.t().to_owned(),
            Self::Features32(rows) => rows.t().mapv(f64::from),
        }
    }

    /// `R·X`.
    pub(crate) fn forward(&self, x: ArrayView2<'_, f64>) -> Array2<f64> {
        let x = x.as_standard_layout();
        match self {
            Self::Gram(rows) | Self::Features(rows) => forward(*rows, x.view()),
            Self::Features32(rows) => forward(*rows, x.view()),
        }
    }

    /// `Rᵀ·X`. A Gram matrix is its own transpose.
    pub(crate) fn backward(&self, x: ArrayView2<'_, f64>) -> Array2<f64> {
        match self {
            Self::Gram(_) => self.forward(x),
            Self::Features(rows) => backward(*rows, x.as_standard_layout().view()),
            Self::Features32(rows) => backward(*rows, x.as_standard_layout().view()),
        }
    }

    /// `K·X` for the training samples.
    pub(crate) fn times(&self, x: ArrayView2<'_, f64>) -> Array2<f64> {
        match self {
            Self::Gram(_) => self.forward(x),
            Self::Features(_) | Self::Features32(_) => self.forward(self.backward(x).view()),
        }
    }

    /// The matrix of kernel values of the training samples.
    pub(crate) fn gram(&self) -> CowArray<'_, f64, Ix2> {
        match self {
            Self::Gram(gram) => CowArray::from(*gram),
            Self::Features(features) => CowArray::from(syrk(*features)),
            Self::Features32(features) => {
                let mut gram = Array2::zeros((features.nrows(), features.nrows()));
                for strip in features.axis_chunks_iter(Axis(1), COLUMNS) {
                    syrk_into(1.0, strip.mapv(f64::from).view(), true, gram.view_mut());
                }
                CowArray::from(gram)
            }
        }
    }

    /// The Gram matrix of features, if there are more of them than samples: it is smaller, and so is every product of a
    /// solver.
    pub fn condensed(&self) -> Option<Array2<f64>> {
        let (n, width) = self.dim();
        (self.basis() == SampleKind::Features && width > n).then(|| self.gram().into_owned())
    }

    /// `Φᵀ·Φ`.
    pub(crate) fn normal(&self) -> Array2<f64> {
        let mut sum = Array2::zeros((self.dim().1, self.dim().1));
        self.add_normal(1.0, &mut sum);
        mercer_linalg::mirror_lower(sum.view_mut());
        sum
    }

    /// Adds a multiple of `Φᵀ·Φ` to the lower triangle.
    pub(crate) fn add_normal(&self, factor: f64, sum: &mut Array2<f64>) {
        match self {
            Self::Gram(rows) | Self::Features(rows) => add_normal(factor, *rows, sum),
            Self::Features32(rows) => add_normal(factor, *rows, sum),
        }
    }

    /// A block of the samples: rows, and for a Gram matrix columns, too.
    pub(crate) fn select(&self, rows: &[usize], columns: &[usize]) -> Owned {
        match self {
            Self::Gram(gram) => Owned::Gram(gram.select(Axis(1), columns).select(Axis(0), rows)),
            Self::Features(features) => Owned::Features(features.select(Axis(0), rows)),
            Self::Features32(features) => Owned::Features32(features.select(Axis(0), rows)),
        }
    }
}

/// Samples that were copied.
pub(crate) enum Owned {
    Gram(Array2<f64>),
    Features(Array2<f64>),
    Features32(Array2<f32>),
}

impl Owned {
    pub(crate) fn view(&self) -> DualRows<'_> {
        match self {
            Self::Gram(rows) => DualRows::Gram(rows.view()),
            Self::Features(rows) => DualRows::Features(rows.view()),
            Self::Features32(rows) => DualRows::Features32(rows.view()),
        }
    }
}

fn strip_of<T: Scalar>(rows: &ArrayView2<'_, T>, at: usize) -> std::ops::Range<usize> {
    at * STRIP..((at + 1) * STRIP).min(rows.nrows())
}

/// A number type whose strips can be lent or widened.
pub(crate) trait Stripped: Scalar {
    /// Hands a strip in double precision to the work.
    fn lend<R>(strip: ArrayView2<'_, Self>, work: impl FnOnce(ArrayView2<'_, f64>) -> R) -> R;
}

impl Stripped for f64 {
    fn lend<R>(strip: ArrayView2<'_, f64>, work: impl FnOnce(ArrayView2<'_, f64>) -> R) -> R {
        work(strip)
    }
}

impl Stripped for f32 {
    fn lend<R>(strip: ArrayView2<'_, f32>, work: impl FnOnce(ArrayView2<'_, f64>) -> R) -> R {
        work(strip.mapv(f64::from).view())
    }
}

fn forward<T: Stripped>(rows: ArrayView2<'_, T>, x: ArrayView2<'_, f64>) -> Array2<f64> {
    let mut product = Array2::zeros((rows.nrows(), x.ncols()));
    let strips = product.axis_chunks_iter_mut(Axis(0), STRIP).collect::<Vec<_>>();
    strips.into_par_iter().enumerate().for_each(|(at, out)| {
        let strip = rows.slice(s![strip_of(&rows, at), ..]);
        T::lend(strip, |strip| matmul_into(1.0, strip, x, false, out));
    });
    product
}

fn backward<T: Stripped>(rows: ArrayView2<'_, T>, x: ArrayView2<'_, f64>) -> Array2<f64> {
    let part = |at: usize| {
        let range = strip_of(&rows, at);
        T::lend(rows.slice(s![range.clone(), ..]), |strip| matmul(strip.t(), x.slice(s![range, ..])))
    };
    in_order(rows.nrows(), (rows.ncols(), x.ncols()), part)
}

fn add_normal<T: Stripped>(factor: f64, rows: ArrayView2<'_, T>, sum: &mut Array2<f64>) {
    // Few large strips: the parts are as large as the result.
    for start in (0..rows.nrows()).step_by(STRIP * WAVE) {
        let strip = rows.slice(s![start..(start + STRIP * WAVE).min(rows.nrows()), ..]);
        T::lend(strip, |strip| {
            let columns: Vec<_> = sum.axis_chunks_iter_mut(Axis(0), STRIP).collect();
            columns.into_par_iter().enumerate().for_each(|(at, mut out)| {
                let end = at * STRIP + out.nrows();
                let left = strip.slice(s![.., at * STRIP..end]);
                matmul_into(factor, left.t(), strip.slice(s![.., ..end]), true, out.slice_mut(s![.., ..end]));
            });
        });
    }
}

/// The sum of one part per strip, in the order of the strips.
fn in_order(n: usize, shape: (usize, usize), part: impl Fn(usize) -> Array2<f64> + Sync) -> Array2<f64> {
    let mut sum = Array2::zeros(shape);
    let strips: Vec<usize> = (0..n.div_ceil(STRIP)).collect();
    for wave in strips.chunks(WAVE) {
        for part in wave.par_iter().map(|&at| part(at)).collect::<Vec<_>>() {
            sum += &part;
        }
    }
    sum
}
