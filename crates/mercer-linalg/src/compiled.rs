//! Decompositions and iterations, compiled once per scalar.
//!
//! A generic function is compiled again in every crate that calls it. These are called from everywhere, so the public
//! ones only pass their arguments on to a method of the scalar, which is compiled here and nowhere else.

use crate::cholesky::{self, Cholesky};
use crate::conjugate_gradient::{BlockSolution, ConjugateGradient, Preconditioner};
use crate::eigen::{self, Eigen, Lanczos, LinearOperator, Randomised, SpectralDensity, StochasticLanczos, TopEigen};
use crate::qr::{self, Qr};
use crate::svd::{self, Svd};
use crate::{Result, input};
use ndarray::{Array2, ArrayView2};

/// The routines of a scalar; the functions and methods of the same names say what they do.
pub trait Compiled: Sized {
    fn cholesky(a: ArrayView2<'_, Self>, shift: Self, ladder: &[f64]) -> Result<Cholesky<Self>>;

    fn substitute(factor: &Cholesky<Self>, b: ArrayView2<'_, Self>, steps: [bool; 2]) -> Result<Array2<Self>>;

    fn symmetric_eigen(a: ArrayView2<'_, Self>) -> Result<Eigen<Self>>;

    fn thin_svd(a: ArrayView2<'_, Self>) -> Result<Svd<Self>>;

    fn thin_qr(a: ArrayView2<'_, Self>) -> Result<Qr<Self>>;

    fn lanczos(method: &Lanczos, operator: &dyn LinearOperator<Self>) -> Result<TopEigen<Self>>;

    fn randomised(method: &Randomised, operator: &dyn LinearOperator<Self>) -> Result<TopEigen<Self>>;

    fn density(method: &StochasticLanczos, operator: &dyn LinearOperator<Self>) -> Result<SpectralDensity>;

    fn conjugate_gradient(
        method: &ConjugateGradient<Self>,
        operator: &dyn LinearOperator<Self>,
        rhs: ArrayView2<'_, Self>,
        preconditioner: Option<Preconditioner<'_, Self>>,
    ) -> Result<BlockSolution<Self>>;

    fn check_symmetric(routine: &'static str, a: ArrayView2<'_, Self>) -> Result<()>;
}

macro_rules! compiled {
    ($t:ident) => {
        impl Compiled for $t {
            fn cholesky(a: ArrayView2<'_, Self>, shift: Self, ladder: &[f64]) -> Result<Cholesky<Self>> {
                cholesky::climb(a, shift, ladder)
            }

            fn substitute(factor: &Cholesky<Self>, b: ArrayView2<'_, Self>, steps: [bool; 2]) -> Result<Array2<Self>> {
                factor.substitute(b, steps)
            }

            fn symmetric_eigen(a: ArrayView2<'_, Self>) -> Result<Eigen<Self>> {
                eigen::decompose(a)
            }

            fn thin_svd(a: ArrayView2<'_, Self>) -> Result<Svd<Self>> {
                svd::decompose(a)
            }

            fn thin_qr(a: ArrayView2<'_, Self>) -> Result<Qr<Self>> {
                qr::decompose(a)
            }

            fn lanczos(method: &Lanczos, operator: &dyn LinearOperator<Self>) -> Result<TopEigen<Self>> {
                method.iterate(operator)
            }

            fn randomised(method: &Randomised, operator: &dyn LinearOperator<Self>) -> Result<TopEigen<Self>> {
                method.iterate(operator)
            }

            fn density(method: &StochasticLanczos, operator: &dyn LinearOperator<Self>) -> Result<SpectralDensity> {
                method.iterate(operator)
            }

            fn conjugate_gradient(
                method: &ConjugateGradient<Self>,
                operator: &dyn LinearOperator<Self>,
                rhs: ArrayView2<'_, Self>,
                preconditioner: Option<Preconditioner<'_, Self>>,
            ) -> Result<BlockSolution<Self>> {
                method.iterate(operator, rhs, preconditioner)
            }

            fn check_symmetric(routine: &'static str, a: ArrayView2<'_, Self>) -> Result<()> {
                input::compare_mirrored(routine, a)
            }
        }
    };
}

compiled!(f32);
compiled!(f64);
