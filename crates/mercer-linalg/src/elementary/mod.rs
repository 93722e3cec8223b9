//! Elementary functions on slices: polynomials without branches, under run-time dispatch.
//!
//! Each function reduces its argument to a short interval, where it is a polynomial, and undoes the reduction:
//!
//! - `exp x = 2^n · e^r`, with `x = n ln 2 + r`, `|r| ≤ ln 2 / 2`; `tanh` and `sigmoid` follow from it,
//! - `ln x = k ln 2 + 2 atanh(f / (2 + f))`, with `x = 2^k (1 + f)`, `√½ ≤ 1 + f < √2`,
//! - `sin x = ± sin r` with `x = n π + r`, and `cos x = ∓ sin r` with `x = (n + ½) π + r`, `|r| ≤ π/2` (Cody and
//!   Waite's reduction in several parts),
//! - `acos x` through `asin` on `[0, ½]`,
//! - `erf x = x P(x²)` for `|x| ≤ 1`, `1 - e^{-x²} Q(t)` with `t = (x - 3) / (x + 3)` beyond.
//!
//! Errors stay below 4 units in the last place (measured: at most 3, against references within 1), except `sin` and
//! `cos` beyond `|x| = 10⁵`, which go to the standard library element by element. NaN gives NaN, and infinities, signed
//! zeros and subnormal numbers give what the standard library gives. Results are the same for any position and length,
//! but differ in the last bits between machines with and without fused multiply-add.

mod coefficients;
mod kernels;
mod real;
mod sweep;
#[cfg(test)]
mod tests;

use crate::Scalar;
use kernels::{Acos, Cos, Erf, Exp, Ln, Sigmoid, Sin, Tanh};
use sweep::sweep;

/// An elementary function as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementaryFunction {
    /// `e^x`.
    Exp,
    /// `ln x`; `-∞` at zero, NaN below.
    Ln,
    /// `tanh x`.
    Tanh,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `sin x`.
    Sin,
    /// `cos x`.
    Cos,
    /// `acos x`; NaN outside of `[-1, 1]`.
    Acos,
    /// `erf x = 2/√π ∫₀ˣ e^{-t²} dt`.
    Erf,
}

/// Replaces every `x` by the function of it.
///
/// ```
/// use mercer_linalg::elementary::{ElementaryFunction, apply};
/// let mut x = [0.0f32, 1.0];
/// apply(ElementaryFunction::Tanh, &mut x);
/// assert!(x[0] == 0.0 && (x[1] - 1.0f32.tanh()).abs() <= 2e-7);
/// ```
pub fn apply<T: Scalar>(function: ElementaryFunction, x: &mut [T]) {
    T::elementary(function, x);
}

macro_rules! per_scalar {
    ($name:ident, $t:ident) => {
        /// [`apply`] for this scalar. Not generic, so that it is compiled in this crate.
        pub(crate) fn $name(function: ElementaryFunction, x: &mut [$t]) {
            match function {
                ElementaryFunction::Exp => sweep::<Exp, $t>(x),
                ElementaryFunction::Ln => sweep::<Ln, $t>(x),
                ElementaryFunction::Tanh => sweep::<Tanh, $t>(x),
                ElementaryFunction::Sigmoid => sweep::<Sigmoid, $t>(x),
                ElementaryFunction::Sin => sweep::<Sin, $t>(x),
                ElementaryFunction::Cos => sweep::<Cos, $t>(x),
                ElementaryFunction::Acos => sweep::<Acos, $t>(x),
                ElementaryFunction::Erf => sweep::<Erf, $t>(x),
            }
        }
    };
}

per_scalar!(f32, f32);
per_scalar!(f64, f64);

/// `y = function(x)`, copied in pieces that stay in the first-level cache.
fn map<T: Scalar>(function: ElementaryFunction, x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "lengths of argument and result");
    for (x, y) in x.chunks(1024).zip(y.chunks_mut(1024)) {
        y.copy_from_slice(x);
        apply(function, y);
    }
}

macro_rules! slices {
    ($($name:ident, $in_place:ident, $function:ident, $what:literal;)*) => {$(
        #[doc = concat!("`y = ", $what, "`, element by element.")]
        ///
        /// # Panics
        /// If the lengths differ.
        pub fn $name<T: Scalar>(x: &[T], y: &mut [T]) {
            map(ElementaryFunction::$function, x, y);
        }

        #[doc = concat!("`x ← ", $what, "`, element by element.")]
        pub fn $in_place<T: Scalar>(x: &mut [T]) {
            apply(ElementaryFunction::$function, x);
        }
    )*};
}

slices! {
    exp, exp_in_place, Exp, "e^x";
    ln, ln_in_place, Ln, "ln x";
    tanh, tanh_in_place, Tanh, "tanh x";
    sigmoid, sigmoid_in_place, Sigmoid, "1 / (1 + e^-x)";
    sin, sin_in_place, Sin, "sin x";
    cos, cos_in_place, Cos, "cos x";
    acos, acos_in_place, Acos, "acos x";
    erf, erf_in_place, Erf, "erf x";
}
