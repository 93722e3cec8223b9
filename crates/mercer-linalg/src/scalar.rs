//! The two scalars of Mercer.

use faer::{Accum, MatMut, MatRef, Par};

/// `f32` or `f64`: the arithmetic of networks, kernels and decompositions.
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
    + 'static
{
    /// The name a user writes: `f32` or `f64`.
    const NAME: &'static str;

    /// The nearest value to `x`.
    fn of(x: f64) -> Self;

    /// This value as `f64`, exactly.
    fn wide(self) -> f64;

    /// `dst = alpha · lhs · rhs`, or added to `dst`; one thread, no allocation.
    #[doc(hidden)]
    fn gemm_seq(dst: MatMut<'_, Self>, add: bool, lhs: MatRef<'_, Self>, rhs: MatRef<'_, Self>, alpha: Self);
}

macro_rules! scalar {
    ($t:ident) => {
        impl Scalar for $t {
            const NAME: &'static str = stringify!($t);

            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $t
            }

            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }

            fn gemm_seq(dst: MatMut<'_, Self>, add: bool, lhs: MatRef<'_, Self>, rhs: MatRef<'_, Self>, alpha: Self) {
                let accum = if add { Accum::Add } else { Accum::Replace };
                faer::linalg::matmul::matmul(dst, accum, lhs, rhs, alpha, Par::Seq);
            }
        }
    };
}

scalar!(f32);
scalar!(f64);
