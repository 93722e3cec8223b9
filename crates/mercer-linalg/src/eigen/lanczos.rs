//! The largest eigenvalues of a symmetric operator: Lanczos with thick restart and full reorthogonalisation.
//!
//! An orthonormal basis `V` of `m` vectors grows by `A` times its last vector, orthogonalised against all vectors
//! before it, so that
//!
//! ```text
//! A·V = V·H + β v eᵀ_m        H = VᵀAV
//! ```
//!
//! The eigenpairs `(θ, s)` of the small `H` give Ritz pairs `(θ, V·s)` with residual `‖A·V·s - θ·V·s‖ = β |s_m|`. When
//! the basis is full it is restarted with its best Ritz vectors and the residual `v` (Wu and Simon, Thick-restart
//! Lanczos method for large symmetric eigenvalue problems, SIAM J. Matrix Anal. Appl. 22, 2000). We take `H` from the
//! coefficients of the reorthogonalisation, which costs nothing extra and avoids special treatment of its arrow shape.
//!
//! A Krylov space holds only one vector of a multiple eigenvalue, so convergence alone proves little. We deviate: once
//! the wanted pairs have converged, one more cycle starts from a fresh random vector orthogonal to them, and only
//! values that survive it are returned.

use super::{Eigen, LinearOperator, symmetric_eigen};
use crate::random::Signs;
use crate::{LinalgError, Result, Scalar, check_symmetric, input, matmul, matmul_into, verify};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

const ROUTINE: &str = "lanczos";

/// The largest eigenpairs of an operator, and what they cost.
#[derive(Clone, Debug)]
pub struct TopEigen<T> {
    /// The eigenvalues, descending.
    pub values: Array1<T>,
    /// The orthonormal eigenvectors, as columns in the same order.
    pub vectors: Array2<T>,
    /// `‖A·u - λ·u‖` of each pair, computed with extra products.
    pub residuals: Array1<T>,
    /// The other Ritz values of the space in which the pairs were found, descending. The `j`-th from the end is never
    /// below the `j`-th smallest eigenvalue. Each negative Ritz value therefore proves a negative eigenvalue that is at
    /// least as low.
    pub others: Array1<T>,
    /// How often the operator was applied.
    pub n_applications: usize,
}

/// The `n_components` largest eigenpairs of a symmetric matrix.
///
/// ```
/// let a = ndarray::Array2::from_diag(&ndarray::array![1.0, 5.0, 3.0, 4.0]);
/// let top = mercer_linalg::top_eigen(a.view(), 2)?;
/// assert!((top.values[0] - 5.0f64).abs() < 1e-12 && (top.values[1] - 4.0).abs() < 1e-12);
/// # Ok::<(), mercer_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// As [`symmetric_eigen`] and [`Lanczos::run`].
pub fn top_eigen<T: Scalar>(a: ArrayView2<'_, T>, n_components: usize) -> Result<TopEigen<T>> {
    check_symmetric(ROUTINE, a)?;
    Lanczos::new(n_components).run(&a)
}

/// The method and its settings.
#[derive(Clone, Debug)]
pub struct Lanczos {
    n_components: usize,
    n_basis: usize,
    tolerance: f64,
    max_restarts: usize,
}

impl Lanczos {
    /// For this many of the largest eigenvalues.
    pub fn new(n_components: usize) -> Self {
        let n_basis = (2 * n_components + 10).max(30);
        Self { n_components, n_basis, tolerance: 0.0, max_restarts: 300 }
    }

    /// The size of the basis, at least two more than the components: more memory, fewer products.
    pub fn basis(self, n_basis: usize) -> Self {
        Self { n_basis: n_basis.max(self.n_components + 2), ..self }
    }

    /// The tolerance on residuals, relative to the eigenvalue largest in magnitude; `ε^⅔` by default (4·10⁻¹¹ in
    /// `f64`), never below `8ε`.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// The number of restarts before giving up.
    pub fn max_restarts(self, max_restarts: usize) -> Self {
        Self { max_restarts, ..self }
    }

    /// The least number of times an operator with this many rows is applied: the basis is filled twice, and every pair
    /// is checked.
    pub fn least_applications(&self, rows: usize) -> usize {
        let (wanted, size) = (self.n_components.min(rows), self.n_basis.min(rows));
        let again = if size == rows { 0 } else { size - kept(size, wanted) };
        size + again + wanted
    }

    /// The eigenpairs. The start vector is fixed, so the same operator gives the same bits.
    ///
    /// # Errors
    /// [`LinalgError::TooManyComponents`], [`LinalgError::NotFinite`] if the operator returns such a value, [`LinalgError::NotConverged`]
    /// when the restarts run out, and [`LinalgError::CheckFailed`] when the residuals of the result disagree with the
    /// iteration, as with an operator that is not symmetric.
    pub fn run<T: Scalar>(&self, operator: &impl LinearOperator<T>) -> Result<TopEigen<T>> {
        T::lanczos(self, operator)
    }

    pub(crate) fn iterate<T: Scalar>(&self, operator: &dyn LinearOperator<T>) -> Result<TopEigen<T>> {
        let (n, wanted) = (operator.dim(), self.n_components);
        if wanted > n {
            return Err(LinalgError::TooManyComponents { routine: ROUTINE, wanted, available: n });
        }
        let mut space = Krylov::new(operator, self.n_basis.min(n));
        if wanted == 0 {
            return space.finish(0, 0.0);
        }
        let epsilon = T::epsilon().wide();
        let tolerance = if self.tolerance > 0.0 { self.tolerance.max(8.0 * epsilon) } else { epsilon.powf(2.0 / 3.0) };
        let mut settled: Option<Array1<T>> = None;
        let mut converged = 0;
        for _ in 0..=self.max_restarts {
            space.expand()?;
            let ritz = symmetric_eigen(space.projected.view())?;
            let scale = ritz.values.iter().fold(0.0, |most: f64, v| most.max(v.wide().abs()));
            let small = |i: &usize| space.residual(&ritz, *i) <= tolerance * scale;
            converged = (0..wanted).take_while(small).count();
            let values = ritz.values.slice(s![..wanted]).to_owned();
            space.remember(ritz.values.slice(s![wanted..]));
            space.restart(&ritz, wanted);
            if converged < wanted {
                continue;
            }
            let same = |old: &Array1<T>| (old - &values).iter().all(|d| d.wide().abs() <= tolerance * scale);
            if space.is_everything() || settled.as_ref().is_some_and(same) {
                return space.finish(wanted, tolerance * scale);
            }
            settled = Some(values);
            space.next = None;
        }
        Err(LinalgError::NotConverged { routine: ROUTINE, converged, wanted })
    }
}

/// The basis, the operator restricted to it, and the direction it grows in next.
struct Krylov<'a, T> {
    operator: &'a dyn LinearOperator<T>,
    /// `m × n`: basis vectors as rows, because they are made and used one by one.
    basis: Array2<T>,
    /// `H`. The first `filled` rows and columns are known.
    projected: Array2<T>,
    filled: usize,
    /// The part of the last product that lies outside the basis; `None` means a random direction.
    next: Option<Array1<T>>,
    /// The norm of `next` before it was normalised: β.
    coupling: T,
    ritz: Array1<T>,
    /// The unwanted Ritz values of the cycle that found the lowest one.
    others: Array1<T>,
    random: Signs,
    n_applications: usize,
}

impl<'a, T: Scalar> Krylov<'a, T> {
    fn new(operator: &'a dyn LinearOperator<T>, size: usize) -> Self {
        let n = operator.dim();
        Self {
            operator,
            basis: Array2::zeros((size, n)),
            projected: Array2::zeros((size, size)),
            filled: 0,
            next: None,
            coupling: T::zero(),
            ritz: Array1::zeros(0),
            others: Array1::zeros(0),
            random: Signs::new(n as u64),
            n_applications: 0,
        }
    }

    /// The basis spans the whole space, so its Ritz pairs are eigenpairs.
    fn is_everything(&self) -> bool {
        self.basis.nrows() == self.basis.ncols()
    }

    /// Fills the basis.
    fn expand(&mut self) -> Result<()> {
        for j in self.filled..self.basis.nrows() {
            let direction = match self.next.take() {
                Some(direction) => direction,
                None => self.fresh_direction(j),
            };
            self.basis.row_mut(j).assign(&direction);
            let mut image = self.image(direction.view())?;
            let magnitude = norm(image.view());
            let mut coefficients = remove(self.basis.slice(s![..=j, ..]), &mut image);
            // A second pass: after the first, the rounding errors may be as large as what is left.
            coefficients += &remove(self.basis.slice(s![..=j, ..]), &mut image);
            self.projected.slice_mut(s![..=j, j]).assign(&coefficients);
            self.projected.slice_mut(s![j, ..=j]).assign(&coefficients);
            self.coupling = norm(image.view());
            let noise = T::narrow((image.len() as f64).sqrt() * 4.0) * T::epsilon() * magnitude;
            if self.coupling > noise {
                self.next = Some(image / self.coupling);
            }
        }
        self.filled = self.basis.nrows();
        Ok(())
    }

    fn image(&mut self, x: ArrayView1<'_, T>) -> Result<Array1<T>> {
        let mut y = Array1::zeros(x.len());
        self.operator.apply(x, y.view_mut());
        input::check_finite_vector("lanczos operator", y.view(), self.n_applications)?;
        self.n_applications += 1;
        Ok(y)
    }

    /// A unit vector orthogonal to the first `filled` basis vectors.
    fn fresh_direction(&mut self, filled: usize) -> Array1<T> {
        let mut direction = self.random.vector(self.basis.ncols());
        // Three passes with a normalisation between them, because in a nearly full basis little is left after the
        // first.
        for _ in 0..3 {
            remove(self.basis.slice(s![..filled, ..]), &mut direction);
            let length = norm(direction.view());
            direction.mapv_inplace(|v| v / length);
        }
        direction
    }

    /// `β |s_m|` of one Ritz pair.
    fn residual(&self, ritz: &Eigen<T>, pair: usize) -> f64 {
        let m = self.basis.nrows();
        if self.is_everything() { 0.0 } else { (self.coupling * ritz.vectors[(m - 1, pair)]).wide().abs() }
    }

    /// Restarts discard the lower end of the spectrum, so a later cycle may see less of it.
    fn remember(&mut self, unwanted: ArrayView1<'_, T>) {
        if self.others.last() >= unwanted.last() || self.others.is_empty() {
            self.others = unwanted.to_owned();
        }
    }

    /// Keeps the best half of the Ritz vectors, and `next`.
    fn restart(&mut self, ritz: &Eigen<T>, wanted: usize) {
        let size = self.basis.nrows();
        let kept = kept(size, wanted);
        let rotated = matmul(ritz.vectors.slice(s![.., ..kept]).t(), self.basis.view());
        self.basis.slice_mut(s![..kept, ..]).assign(&rotated);
        self.projected.fill(T::zero());
        self.ritz = ritz.values.slice(s![..kept]).to_owned();
        self.projected.slice_mut(s![..kept, ..kept]).diag_mut().assign(&self.ritz);
        self.filled = kept;
    }

    /// Checks the first pairs with extra products, and returns them.
    fn finish(mut self, wanted: usize, allowed: f64) -> Result<TopEigen<T>> {
        let rows = self.basis.slice(s![..wanted, ..]).to_owned();
        let values = self.ritz.slice(s![..wanted.min(self.ritz.len())]).to_owned();
        let mut residuals = Array1::zeros(wanted);
        for (pair, vector) in rows.outer_iter().enumerate() {
            let mut image = self.image(vector)?;
            image.zip_mut_with(&vector, |y, &x| *y -= values[pair] * x);
            residuals[pair] = norm(image.view());
        }
        // The iteration allows this much; the rest is rounding in products with norms up to the largest value.
        let rounding =
            rows.ncols().max(1) as f64 * T::epsilon().wide() * values.first().map_or(0.0, |v| v.wide().abs());
        let worst = residuals.iter().fold(0.0, |most: f64, r| most.max(r.wide()));
        let ratio = if worst == 0.0 { 0.0 } else { worst / (allowed + rounding) };
        verify::require(ROUTINE, "residual", ratio)?;
        verify::require(ROUTINE, "orthogonality", verify::orthogonality(rows.t(), verify::Depth::Full))?;
        let vectors = rows.reversed_axes();
        Ok(TopEigen { values, vectors, residuals, others: self.others, n_applications: self.n_applications })
    }
}

/// Ritz vectors of a full basis that a restart keeps.
fn kept(size: usize, wanted: usize) -> usize {
    (wanted + size.saturating_sub(wanted) / 2).min(size.saturating_sub(1)).max(wanted)
}

pub(super) fn norm<T: Scalar>(x: ArrayView1<'_, T>) -> T {
    T::narrow(x.iter().map(|v| v.wide() * v.wide()).sum::<f64>().sqrt())
}

/// `x ← x - Vᵀ(V·x)`; returns `V·x`.
pub(super) fn remove<T: Scalar>(basis: ArrayView2<'_, T>, x: &mut Array1<T>) -> Array1<T> {
    let coefficients = matmul(basis, x.view().insert_axis(Axis(1)));
    matmul_into(-T::one(), basis.t(), coefficients.view(), true, x.view_mut().insert_axis(Axis(1)));
    coefficients.remove_axis(Axis(1))
}
