//! Decompositions on data: of a Gram matrix, a kernel, an operator, or features.
//!
//! | given | `Full` | `Lanczos`, `Randomised` |
//! |---|---|---|
//! | matrix | [`symmetric_eigen`] | products with the matrix |
//! | operator | – | products with the operator |
//! | features `Φ` | [`thin_svd`] of `Φ` | products with the smaller of `ΦᵀΦ` and `ΦΦᵀ`, which is formed up to [`FORMED`] rows |
//! | kernel and data | as a matrix, from the Gram engine, extended to new data by Nyström's formula |

use crate::error::{Result, SpectralError};
use crate::functions::Eigenfunctions;
use crate::memory::MemoryNeeds;
use crate::samples;
use crate::sections::Sections;
use crate::spectrum::Spectrum;
use mercer_data::Dataset;
use mercer_kernel::gram::Gram;
use mercer_kernel::{Kernel, Real};
use mercer_linalg::{Lanczos, LinearOperator, Randomised, Scalar, TopEigen, Watched};
use mercer_linalg::{check_symmetric, matmul, matmul_into, symmetric_eigen, syrk, thin_svd};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayD, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, concatenate, s};
use std::sync::Arc;

/// How eigenpairs are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// All of them, keeping the largest: `O(N³)`. All negative eigenvalues are seen.
    Full,
    /// The largest ones, to convergence, by restarted Lanczos.
    Lanczos,
    /// Approximations of the largest ones, from five products with a block.
    Randomised {
        /// The seed of the random start.
        seed: u64,
    },
}

impl Solver {
    /// The name that a user writes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "exact",
            Self::Lanczos => "lanczos",
            Self::Randomised { .. } => "randomised",
        }
    }

    /// The least number of products of an operator with this many rows with a vector. The whole decomposition needs
    /// none and counts as Lanczos.
    pub(crate) fn products(self, k: usize, rows: usize) -> usize {
        let k = k.min(rows);
        match self {
            Self::Randomised { .. } => Randomised::new(k).n_applications(rows),
            _ => Lanczos::new(k).least_applications(rows),
        }
    }

    fn top<T: Scalar>(self, operator: &impl LinearOperator<T>, k: usize, context: &Context) -> Result<TopEigen<T>> {
        let watched = Watched::new(operator, context);
        let top = match self {
            Self::Randomised { seed } => Randomised::new(k).seed(seed).run(&watched),
            _ => Lanczos::new(k).run(&watched),
        };
        // A watched operator returns NaN once cancelled, which surfaces as another error.
        context.check()?;
        Ok(top?)
    }
}

/// `FᵀF` is not formed for more columns than this. Forming it for `n` rows and `m` columns takes `n m²` operations at
/// the speed of matrix products, whereas a product through `F` reads `F` twice. 300 functions of 2000 features of
/// 20,000 samples take 5 s of processor time with it and 40 s without.
pub(crate) const FORMED: usize = 4096;

/// Above this share of all components, the whole decomposition is faster than products.
const FEW: usize = 8;

impl Solver {
    /// The largest eigenpairs of `FᵀF`.
    fn top_of_square(
        self,
        factor: ArrayView2<'_, f64>,
        k: usize,
        context: &Context,
    ) -> Result<(Array1<f64>, Array2<f64>)> {
        let side = factor.ncols();
        if side > FORMED {
            let top = self.top(&Square { factor }, k, context)?;
            return Ok((top.values, top.vectors));
        }
        let square = syrk(factor.t());
        if FEW * k >= side {
            let eigen = symmetric_eigen(square.view())?;
            return Ok((eigen.values.slice(s![..k]).to_owned(), eigen.vectors.slice(s![.., ..k]).to_owned()));
        }
        let top = self.top(&square.view(), k, context)?;
        Ok((top.values, top.vectors))
    }
}

fn check_wanted(k: usize, rows: usize) -> Result<()> {
    if k > 0 && rows > 0 {
        return Ok(());
    }
    Err(SpectralError::Setting(format!("{k} components of {rows} rows were requested; both must be at least one")))
}

impl<T: Real> Spectrum<T> {
    /// From a Gram matrix.
    ///
    /// # Errors
    /// For a matrix that is not square, finite and symmetric, and [`SpectralError::NoSpectrum`] for one without
    /// positive eigenvalues.
    pub fn of_matrix(gram: ArrayView2<'_, T>, k: usize, solver: Solver, context: &Context) -> Result<Self> {
        check_wanted(k, gram.nrows())?;
        let precision = T::epsilon().wide();
        if solver == Solver::Full {
            MemoryNeeds::whole("all eigenvectors", gram.nrows(), gram.nrows()).check(context)?;
            // Decompositions run in double precision; the rounding of the entries remains.
            let eigen = symmetric_eigen(gram.mapv(Scalar::wide).view())?;
            let kept = k.min(gram.nrows());
            let vectors = eigen.vectors.slice(s![.., ..kept]).mapv(T::narrow);
            return Self::from_eigenpairs(eigen.values.mapv(T::narrow).view(), vectors, k, true, precision);
        }
        check_symmetric("spectrum", gram)?;
        Self::of_operator(&gram, k, solver, context)
    }

    /// From a symmetric operator that is known by its products, such as [`NtkOperator`](mercer_kernel::NtkOperator).
    /// The whole decomposition is not available, so [`Solver::Full`] means Lanczos. Negative eigenvalues are counted as
    /// far as the search space proves them.
    pub fn of_operator(operator: &impl LinearOperator<T>, k: usize, solver: Solver, context: &Context) -> Result<Self> {
        let rows = operator.dim();
        check_wanted(k, rows)?;
        let top = solver.top(operator, k.min(rows), context)?;
        // The other Ritz values bound the lower end of the spectrum.
        let values = concatenate![Axis(0), top.values, top.others];
        Self::from_eigenpairs(values.view(), top.vectors, k, values.len() == rows, T::epsilon().wide())
    }

    /// From features, for the kernel `Φ Φᵀ`, with the weights of the functions: `ψ(x) = φ(x)·W`.
    ///
    /// With the singular value decomposition `Φ = U S Vᵀ` these are `W = √N · V S⁻¹`.
    pub fn of_features(
        features: ArrayView2<'_, T>,
        k: usize,
        solver: Solver,
        context: &Context,
    ) -> Result<(Self, Array2<T>)> {
        let (rows, width) = features.dim();
        check_wanted(k, rows.min(width))?;
        let kept = k.min(rows.min(width));
        let wide = features.mapv(Scalar::wide);
        let (singular, right) = match solver {
            Solver::Full => {
                let svd = thin_svd(wide.view())?;
                (svd.values.slice(s![..kept]).to_owned(), svd.right.slice(s![.., ..kept]).to_owned())
            }
            _ if width <= rows => {
                let (values, vectors) = solver.top_of_square(wide.view(), kept, context)?;
                (values.mapv(|v| v.max(0.0).sqrt()), vectors)
            }
            _ => {
                let (values, vectors) = solver.top_of_square(wide.t(), kept, context)?;
                let singular = values.mapv(|v| v.max(0.0).sqrt());
                let mut right = matmul(wide.t(), vectors.view());
                scale_columns(&mut right, singular.mapv(|s| if s > 0.0 { 1.0 / s } else { 0.0 }));
                (singular, right)
            }
        };
        let root = (rows as f64).sqrt();
        let mut weights = right;
        scale_columns(&mut weights, singular.mapv(|s| if s > 0.0 { root / s } else { 0.0 }));
        let vectors = matmul(wide.view(), weights.view()).mapv(|v| T::narrow(v / root));
        let values = singular.mapv(|s| T::narrow(s * s));
        let spectrum = Self::from_eigenpairs(values.view(), vectors.clone(), k, true, T::epsilon().wide())?;
        let weights = follow_signs(weights.mapv(T::narrow), &vectors, &spectrum);
        Ok((spectrum, weights))
    }
}

/// Applies the signs and the number of components of a spectrum to the weights.
pub(crate) fn follow_signs<T: Real>(weights: Array2<T>, vectors: &Array2<T>, spectrum: &Spectrum<T>) -> Array2<T> {
    let mut weights = weights.slice(s![.., ..spectrum.values.len()]).to_owned();
    for (column, mut weight) in weights.axis_iter_mut(Axis(1)).enumerate() {
        let flipped = vectors.column(column).dot(&spectrum.functions.column(column)) < T::zero();
        weight.mapv_inplace(|w| if flipped { -w } else { w });
    }
    weights
}

/// Multiplies every column by a number.
pub(crate) fn scale_columns(matrix: &mut Array2<f64>, factors: Array1<f64>) {
    for (mut column, factor) in matrix.axis_iter_mut(Axis(1)).zip(factors) {
        column.mapv_inplace(|v| v * factor);
    }
}

/// `FᵀF`, through two products.
struct Square<'a> {
    factor: ArrayView2<'a, f64>,
}

impl LinearOperator<f64> for Square<'_> {
    fn dim(&self) -> usize {
        self.factor.ncols()
    }

    fn apply(&self, x: ArrayView1<'_, f64>, y: ArrayViewMut1<'_, f64>) {
        self.apply_block(x.insert_axis(Axis(1)), y.insert_axis(Axis(1)));
    }

    fn apply_block(&self, x: ArrayView2<'_, f64>, y: ArrayViewMut2<'_, f64>) {
        matmul_into(1.0, self.factor.t(), matmul(self.factor, x).view(), false, y);
    }
}

/// The Gram matrix of a kernel on data, `rows × rows`, the sum of its parts.
pub fn gram_matrix<T: Real>(kernel: &dyn Kernel<T>, data: &[Dataset], context: &Context) -> Result<Array2<T>> {
    let mut arrays = Gram::new(kernel, data).to_arrays(context)?.into_iter().take(kernel.parts().len());
    let rows = samples::count(data) * kernel.per_sample();
    let mut sum: ArrayD<T> =
        arrays.next().ok_or_else(|| SpectralError::Setting("the kernel has no parts".to_owned()))?;
    arrays.for_each(|part| sum += &part);
    sum.into_shape_with_order((rows, rows)).map_err(|error| SpectralError::Setting(error.to_string()))
}

/// `κ(x_n, x_n)`, for every output of a matrix-valued kernel.
pub(crate) fn diagonal<T: Real>(kernel: &dyn Kernel<T>, data: &[Dataset], context: &Context) -> Result<Array1<f64>> {
    let mut all = Vec::new();
    for rows in samples::pieces(samples::count(data), 128) {
        context.check()?;
        let block = samples::prepare(kernel, data, rows)?;
        all.extend(kernel.diagonal(&block).iter().map(|v| v.wide()));
    }
    Ok(Array1::from_vec(all))
}

/// `Σ_n κ(x_n, x_n)`, over all outputs of a matrix-valued kernel.
pub fn trace<T: Real>(kernel: &dyn Kernel<T>, data: &[Dataset], context: &Context) -> Result<f64> {
    Ok(diagonal(kernel, data, context)?.sum())
}

/// The leading eigenfunctions of a kernel on all of the data: the decomposition of the Gram matrix, extended to new
/// data by [`extend`].
pub fn exact<T: Real>(
    kernel: Arc<dyn Kernel<T>>,
    data: &[Dataset],
    k: usize,
    solver: Solver,
    context: &Context,
) -> Result<(Eigenfunctions<T>, Spectrum<T>)> {
    let rows = samples::count(data) * kernel.per_sample();
    if solver == Solver::Full {
        MemoryNeeds::whole("all eigenvectors", rows, rows).check(context)?;
    }
    let gram = gram_matrix(&*kernel, data, context)?;
    let spectrum = Spectrum::of_matrix(gram.view(), k, solver, context)?;
    let functions = extend(&spectrum, kernel, data)?.note("method", solver.name());
    Ok((functions, spectrum))
}

/// A spectrum on data, extended to new data: `ψ_j(x) = 1/(R μ_j) Σ_n κ(x, x_n) ψ_j(x_n)`.
///
/// Deng, Shi and Zhu 2022 (arXiv 2205.00165), equation 8.
pub fn extend<T: Real>(
    spectrum: &Spectrum<T>,
    kernel: Arc<dyn Kernel<T>>,
    data: &[Dataset],
) -> Result<Eigenfunctions<T>> {
    let landmarks = data.iter().map(|set| Ok(set.read::<T>()?)).collect::<Result<Vec<_>>>()?;
    let rows = spectrum.functions.nrows() as f64;
    let mut weights = spectrum.functions.clone();
    for (mut column, value) in weights.axis_iter_mut(Axis(1)).zip(&spectrum.values) {
        let factor = T::narrow(1.0 / (rows * value));
        column.mapv_inplace(|v| v * factor);
    }
    Eigenfunctions::from_spectrum(spectrum, Arc::new(Sections::new(kernel, landmarks)?), weights)
}
