//! Kernel ridge regression by preconditioned conjugate gradients, for `(K + αI)` too large to factorise or never
//! formed.
//!
//! The preconditioner is the inverse of a low-rank approximation plus `αI`: randomly pivoted Cholesky where columns are
//! available (Díaz et al. 2023, arXiv 2304.12465), Nyström's from products with random vectors where they are not
//! (Frangella, Tropp and Udell 2021, arXiv 2110.02820, algorithm 2.1).

use super::ridge::centre;
use crate::error::{Result, check_positive, check_size, setting};
use crate::linear::Linear;
use crate::repair::Repair;
use crate::samples::{SampleKind, SampleRows};
use crate::traits::{Fit, Predict, finite};
use mercer_data::random::stream;
use mercer_kernel::Real;
use mercer_kernel::gram::GramOperator;
use mercer_linalg::{
    ConjugateGradient, LinearOperator, LowRankInverse, PivotedCholesky, Triangle, cholesky, matmul, solve_triangular,
    syrk, thin_qr,
};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewD};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// A Gram matrix whose columns are available one by one.
pub trait GramColumns<T>: LinearOperator<T> {
    /// Its diagonal.
    fn diagonal(&self) -> Array1<T>;

    /// One column.
    fn column(&self, row: usize) -> Result<Array1<T>>;
}

impl<T: Real> GramColumns<T> for GramOperator<'_, T> {
    fn diagonal(&self) -> Array1<T> {
        GramOperator::diagonal(self)
    }

    fn column(&self, row: usize) -> Result<Array1<T>> {
        Ok(GramOperator::column(self, row)?)
    }
}

impl<T: Real> GramColumns<T> for Array2<T> {
    fn diagonal(&self) -> Array1<T> {
        self.diag().to_owned()
    }

    fn column(&self, row: usize) -> Result<Array1<T>> {
        Ok(self.index_axis(ndarray::Axis(1), row).to_owned())
    }
}

/// Kernel ridge regression by conjugate gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IterativeRidge {
    alpha: f64,
    tolerance: f64,
    max_iterations: usize,
    rank: usize,
    seed: u64,
    centred: bool,
}

/// A machine found by iteration, and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Iterated {
    /// The machine.
    pub machine: Linear,
    /// Products with the Gram matrix.
    pub iterations: usize,
    /// The largest relative residual of a target.
    pub residual: f64,
    /// The rank of the preconditioner.
    pub rank: usize,
}

impl IterativeRidge {
    /// With this positive `α`, until the relative residual is below the tolerance.
    pub fn new(alpha: f64, tolerance: f64) -> Result<Self> {
        let (alpha, tolerance) = (check_positive("alpha", alpha)?, check_positive("the tolerance", tolerance)?);
        Ok(Self { alpha, tolerance, max_iterations: 1000, rank: 0, seed: 0, centred: false })
    }

    /// With at most this many products.
    pub fn max_iterations(self, max_iterations: usize) -> Self {
        Self { max_iterations, ..self }
    }

    /// With a preconditioner of this rank; zero for none.
    pub fn precondition(self, rank: usize, seed: u64) -> Self {
        Self { rank, seed, ..self }
    }

    /// Centres the targets, and adds their mean to predictions.
    pub fn centred(self) -> Self {
        Self { centred: true, ..self }
    }

    /// Fits on a matrix whose columns are available, with a pivoted Cholesky preconditioner.
    pub fn fit_columns<T: Real>(
        &self,
        gram: &dyn GramColumns<T>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<Iterated> {
        let mut random = stream(self.seed, "ridge/pivots");
        let low = match self.rank {
            0 => None,
            rank => {
                let column = |row| {
                    context.check()?;
                    gram.column(row)
                };
                Some(PivotedCholesky::new(gram.diagonal().view(), column, rank, || random.random())?.factor)
            }
        };
        self.solve(&Upcast(gram), low, targets, context)
    }

    /// Fits on a matrix known only by its products, with a Nyström preconditioner.
    pub fn fit_operator<T: Real>(
        &self,
        gram: &dyn LinearOperator<T>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<Iterated> {
        let low = if self.rank == 0 { None } else { Some(nystrom(gram, self.rank.min(gram.dim()), self.seed)?) };
        self.solve(gram, low, targets, context)
    }

    fn solve<T: Real>(
        &self,
        gram: &dyn LinearOperator<T>,
        low: Option<Array2<T>>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<Iterated> {
        check_size("the number of targets", gram.dim(), targets.nrows())?;
        mercer_linalg::check_finite("the targets", targets)?;
        let (bias, targets, repairs) = centre(targets, self.centred);
        let shift = T::narrow(self.alpha);
        if shift == T::zero() {
            return Err(setting("alpha", self.alpha, "it vanishes in the precision of the kernel"));
        }
        let rank = low.as_ref().map_or(0, Array2::ncols);
        let inverse = low.map(|factor| LowRankInverse::new(factor, shift)).transpose()?;
        let method = ConjugateGradient { shift, tolerance: self.tolerance, max_iterations: self.max_iterations };
        let rhs = targets.mapv(T::narrow);
        // A failed product is not finite, and the iteration then returns an error.
        let apply = |x: ArrayView2<'_, T>| match &inverse {
            Some(inverse) => inverse.apply(x).unwrap_or_else(|_| Array2::from_elem(x.dim(), T::nan())),
            None => x.to_owned(),
        };
        let preconditioner = if inverse.is_some() { Some(&apply as _) } else { None };
        let found = method.solve(&Watched { gram, context }, rhs.view(), preconditioner);
        context.check()?;
        let found = found?;
        let weights = found.solution.mapv(|v| v.wide());
        let machine = finite(Linear { basis: SampleKind::Gram, weights, bias, repairs })?;
        Ok(Iterated { machine, iterations: found.iterations, residual: found.residual, rank })
    }
}

/// Wraps a matrix with columns as an operator, because `dyn GramColumns` is not `dyn LinearOperator`.
struct Upcast<'a, T>(&'a dyn GramColumns<T>);

impl<T> LinearOperator<T> for Upcast<'_, T> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn apply(&self, x: ndarray::ArrayView1<'_, T>, y: ndarray::ArrayViewMut1<'_, T>) {
        self.0.apply(x, y);
    }

    fn apply_block(&self, x: ArrayView2<'_, T>, y: ndarray::ArrayViewMut2<'_, T>) {
        self.0.apply_block(x, y);
    }
}

/// A matrix whose products are not finite once the work is cancelled, which ends the iteration.
struct Watched<'a, T> {
    gram: &'a dyn LinearOperator<T>,
    context: &'a Context,
}

impl<T: Real> LinearOperator<T> for Watched<'_, T> {
    fn dim(&self) -> usize {
        self.gram.dim()
    }

    fn apply(&self, x: ndarray::ArrayView1<'_, T>, mut y: ndarray::ArrayViewMut1<'_, T>) {
        match self.context.cancelled() {
            true => y.fill(T::nan()),
            false => self.gram.apply(x, y),
        }
    }

    fn apply_block(&self, x: ArrayView2<'_, T>, mut y: ndarray::ArrayViewMut2<'_, T>) {
        match self.context.cancelled() {
            true => y.fill(T::nan()),
            false => self.gram.apply_block(x, y),
        }
    }
}

/// `F` with `F·Fᵀ ≈ A`, from products with an orthonormal random block.
fn nystrom<T: Real>(operator: &dyn LinearOperator<T>, rank: usize, seed: u64) -> Result<Array2<T>> {
    let mut random = stream(seed, "ridge/nystrom");
    let mut draw = || -> f64 { StandardNormal.sample(&mut random) };
    let gaussian = Array2::from_shape_simple_fn((operator.dim(), rank), || T::narrow(draw()));
    let basis = thin_qr(gaussian.view())?.q;
    let mut image = Array2::zeros(basis.dim());
    operator.apply_block(basis.view(), image.view_mut());
    mercer_linalg::check_finite("the kernel operator", image.view())?;
    // A small shift keeps the inner matrix definite; it is not undone, because a preconditioner need not be exact.
    let shift = T::narrow(
        (operator.dim() as f64).sqrt() * T::epsilon().wide() * mercer_linalg::verify::frobenius(image.view()),
    );
    image.scaled_add(shift, &basis);
    let inner = matmul(basis.t(), image.view());
    let inner = (&inner + &inner.t()).mapv(|v| v * T::narrow(0.5));
    let factor = cholesky(inner.view())?;
    Ok(solve_triangular(Triangle::Lower, factor.lower.view(), image.t())?.reversed_axes())
}

impl Fit<Array2<f64>> for IterativeRidge {
    type Machine = Iterated;

    fn learn(&self, samples: &SampleRows<'_>, targets: &Array2<f64>, context: &Context) -> Result<Iterated> {
        super::check(samples, targets.view())?;
        match samples {
            SampleRows::Gram(gram) => self.fit_columns(&gram.to_owned(), targets.view(), context),
            SampleRows::Features(features) => {
                let mut found = self.fit_columns(&syrk(*features), targets.view(), context)?;
                found.machine.weights = matmul(features.t(), found.machine.weights.view());
                found.machine.basis = SampleKind::Features;
                Ok(found)
            }
        }
    }
}

impl Predict for Iterated {
    fn predict(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        self.machine.predict(samples)
    }

    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
        self.machine.numbers()
    }

    fn repairs(&self) -> &[Repair] {
        &self.machine.repairs
    }
}
