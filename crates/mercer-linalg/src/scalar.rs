//! The two scalars of Mercer, and the calls into faer, once per scalar.

use crate::elementary;
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::{cholesky::llt, evd, householder, matmul, qr::no_pivoting as qr, svd, triangular_solve};
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::{Accum, Conj, MatMut, MatRef, Par};

/// `f32` or `f64`: the arithmetic of networks, kernels and decompositions.
///
/// The hidden methods are the only calls into faer: each is compiled here, for its scalar, and nowhere else. They run
/// on one thread and check nothing. The routines that wrap them define what they mean.
pub trait Scalar:
    num_traits::Float
    + num_traits::NumAssign
    + num_traits::FromPrimitive
    + ndarray::LinalgScalar
    + ndarray::ScalarOperand
    + std::iter::Sum
    + std::fmt::Debug
    + std::fmt::Display
    + Default
    + Send
    + Sync
    + crate::compiled::Compiled
    + 'static
{
    /// The name a user writes: `f32` or `f64`.
    const NAME: &'static str;

    /// The nearest value to `x`.
    fn narrow(x: f64) -> Self;

    /// This value as `f64`, exactly.
    fn wide(self) -> f64;

    /// `dst = alpha · lhs · rhs`, or added to `dst`; one thread, no allocation.
    #[doc(hidden)]
    fn gemm_seq(dst: MatMut<'_, Self>, add: bool, lhs: MatRef<'_, Self>, rhs: MatRef<'_, Self>, alpha: Self);

    /// Replaces the lower triangle by `L` with `A = L·Lᵀ`, or returns the pivot at which this fails.
    #[doc(hidden)]
    fn cholesky_seq(a: MatMut<'_, Self>) -> Result<(), usize>;

    /// Replaces `rhs` by the solution of `L·X = rhs`; only the lower triangle is read.
    #[doc(hidden)]
    fn solve_lower_seq(lower: MatRef<'_, Self>, rhs: MatMut<'_, Self>);

    /// Replaces `rhs` by the solution of `U·X = rhs`; only the upper triangle is read.
    #[doc(hidden)]
    fn solve_upper_seq(upper: MatRef<'_, Self>, rhs: MatMut<'_, Self>);

    /// Ascending eigenvalues and their vectors; whether the iteration converged.
    #[doc(hidden)]
    fn eigen_seq(a: MatRef<'_, Self>, values: &mut [Self], vectors: MatMut<'_, Self>) -> bool;

    /// Descending singular values and thin factors; whether the iteration converged.
    #[doc(hidden)]
    fn svd_seq(a: MatRef<'_, Self>, values: &mut [Self], left: MatMut<'_, Self>, right: MatMut<'_, Self>) -> bool;

    /// Replaces the upper triangle of `a` by `R`, and `q`, given as leading columns of the identity, by `Q`.
    #[doc(hidden)]
    fn qr_seq(a: MatMut<'_, Self>, q: MatMut<'_, Self>);

    /// Replaces every element by the function of it.
    #[doc(hidden)]
    fn elementary(function: elementary::ElementaryFunction, x: &mut [Self]);
}

macro_rules! scalar {
    ($t:ident) => {
        impl Scalar for $t {
            const NAME: &'static str = stringify!($t);

            #[inline(always)]
            fn narrow(x: f64) -> Self {
                x as $t
            }

            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }

            fn gemm_seq(dst: MatMut<'_, Self>, add: bool, lhs: MatRef<'_, Self>, rhs: MatRef<'_, Self>, alpha: Self) {
                let accum = if add { Accum::Add } else { Accum::Replace };
                matmul::matmul(dst, accum, lhs, rhs, alpha, Par::Seq);
            }

            fn cholesky_seq(a: MatMut<'_, Self>) -> Result<(), usize> {
                let params = Default::default();
                let scratch = llt::factor::cholesky_in_place_scratch::<$t>(a.nrows(), Par::Seq, params);
                let mut buffer = MemBuffer::new(scratch);
                let stack = MemStack::new(&mut buffer);
                llt::factor::cholesky_in_place(a, Default::default(), Par::Seq, stack, params)
                    .map(|_| ())
                    .map_err(|llt::factor::LltError::NonPositivePivot { index }| index)
            }

            fn solve_lower_seq(lower: MatRef<'_, Self>, rhs: MatMut<'_, Self>) {
                triangular_solve::solve_lower_triangular_in_place(lower, rhs, Par::Seq);
            }

            fn solve_upper_seq(upper: MatRef<'_, Self>, rhs: MatMut<'_, Self>) {
                triangular_solve::solve_upper_triangular_in_place(upper, rhs, Par::Seq);
            }

            fn eigen_seq(a: MatRef<'_, Self>, values: &mut [Self], vectors: MatMut<'_, Self>) -> bool {
                let params = Default::default();
                let vectors_too = evd::ComputeEigenvectors::Yes;
                let scratch = evd::self_adjoint_evd_scratch::<$t>(a.nrows(), vectors_too, Par::Seq, params);
                let mut buffer = MemBuffer::new(scratch);
                let stack = MemStack::new(&mut buffer);
                let values = DiagMut::from_slice_mut(values);
                evd::self_adjoint_evd(a, values, Some(vectors), Par::Seq, stack, params).is_ok()
            }

            fn svd_seq(
                a: MatRef<'_, Self>,
                values: &mut [Self],
                left: MatMut<'_, Self>,
                right: MatMut<'_, Self>,
            ) -> bool {
                let params = Default::default();
                let thin = svd::ComputeSvdVectors::Thin;
                let scratch = svd::svd_scratch::<$t>(a.nrows(), a.ncols(), thin, thin, Par::Seq, params);
                let mut buffer = MemBuffer::new(scratch);
                let stack = MemStack::new(&mut buffer);
                let values = DiagMut::from_slice_mut(values);
                svd::svd(a, values, Some(left), Some(right), Par::Seq, stack, params).is_ok()
            }

            fn qr_seq(mut a: MatMut<'_, Self>, q: MatMut<'_, Self>) {
                let (rows, columns) = a.shape();
                let params = Default::default();
                let block = qr::factor::recommended_block_size::<$t>(rows, columns);
                let mut coefficients = faer::Mat::<$t>::zeros(block, rows.min(columns));
                let scratch = qr::factor::qr_in_place_scratch::<$t>(rows, columns, block, Par::Seq, params).or(
                    householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<$t>(
                        rows,
                        block,
                        q.ncols(),
                    ),
                );
                let mut buffer = MemBuffer::new(scratch);
                let stack = MemStack::new(&mut buffer);
                qr::factor::qr_in_place(a.rb_mut(), coefficients.as_mut(), Par::Seq, stack, params);
                householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
                    a.rb().subcols(0, rows.min(columns)),
                    coefficients.as_ref(),
                    Conj::No,
                    q,
                    Par::Seq,
                    stack,
                );
            }

            fn elementary(function: elementary::ElementaryFunction, x: &mut [Self]) {
                elementary::$t(function, x);
            }
        }
    };
}

scalar!(f32);
scalar!(f64);
