//! Elementary functions of one number, in forms that vectorise and do not overflow.

use crate::element::Element;

/// `1 / (1 + e^−x)`; the exponential overflows to a harmless infinity.
#[inline(always)]
pub(crate) fn sigmoid<T: Element>(x: T) -> T {
    T::one() / (T::one() + (-x).exp())
}

/// `ln(1 + eˣ)` without overflow.
#[inline(always)]
pub(crate) fn softplus<T: Element>(x: T) -> T {
    x.max(T::zero()) + (-x.abs()).exp().ln_1p()
}

/// `x^p`; small whole powers by multiplication, so that negative bases and speed are right.
#[inline(always)]
pub(crate) fn power<T: Element>(x: T, p: T) -> T {
    let two = T::narrow(2.0);
    if p == T::zero() {
        T::one()
    } else if p == T::one() {
        x
    } else if p == two {
        x * x
    } else if p == T::narrow(3.0) {
        x * x * x
    } else if p == T::narrow(0.5) {
        x.sqrt()
    } else if p == -T::one() {
        T::one() / x
    } else {
        x.powf(p)
    }
}

/// To the nearest integer, ties to even, as ONNX's `Round`.
#[inline(always)]
pub(crate) fn round_half_to_even<T: Element>(x: T) -> T {
    let rounded = x.round();
    if (x - x.trunc()).abs() == T::narrow(0.5) && rounded % T::narrow(2.0) != T::zero() {
        rounded - x.signum()
    } else {
        rounded
    }
}
