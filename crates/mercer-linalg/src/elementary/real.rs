//! What the kernels need from a scalar: its tables, and a few operations on its bits.

use super::coefficients::{double, single};
use crate::Scalar;

/// A scalar with the tables of its elementary functions.
pub(super) trait Real: Scalar {
    const EXP: &'static [Self];
    const SIN: &'static [Self];
    const LN: &'static [Self];
    const ASIN: &'static [Self];
    const ERF: &'static [Self];
    const ERF_TAIL: &'static [Self];
    /// ln 2 in two parts, the first short enough for exact products.
    const LN_2: [Self; 2];
    /// π and what its rounding lost.
    const PI: [Self; 2];
    /// π/2 and what its rounding lost.
    const HALF_PI: [Self; 2];
    /// `exp` is 0 below the first and infinite above the second.
    const EXP_RANGE: [Self; 2];
    /// `tanh` is 1 to the last bit from here on.
    const TANH_END: Self;
    /// `erf` is 1 to the last bit from here on.
    const ERF_END: Self;

    /// `a·b + c`; fused only where the instruction set has it, since elsewhere fusing is a library call.
    fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self;

    /// The nearest integer, for arguments up to 2²¹: adding a large constant pushes the fraction out of the mantissa.
    fn nearest(self) -> Self;

    /// `2^self` for an integer within the range of exponents, written straight into the exponent field.
    fn power_of_two(self) -> Self;

    /// `(k, m)` with `self = 2^k · m` and `√½ ≤ m < √2`, for a positive finite argument.
    fn split(self) -> (Self, Self);

    /// `(±0, r)` with `self = (n + shift)·π + r` and `|r| ≤ π/2`, for arguments up to 10⁵ and a shift of 0 or ½; the
    /// zero is negative where the integer `n` is odd.
    fn reduce<const FMA: bool>(self, shift: Self) -> (Self, Self);

    /// `self`, with its sign flipped where the other argument is negative.
    fn turned(self, by: Self) -> Self;
}

/// Horner's rule, highest power first.
#[inline(always)]
pub(super) fn horner<R: Real, const FMA: bool>(x: R, coefficients: &'static [R]) -> R {
    coefficients[1..].iter().fold(coefficients[0], |sum, &c| sum.fma::<FMA>(x, c))
}

macro_rules! real {
    ($t:ident, $tables:ident, $bits:ident, $mantissa:literal, $bias:literal) => {
        const EXP: &'static [Self] = &$tables::EXP;
        const SIN: &'static [Self] = &$tables::SIN;
        const LN: &'static [Self] = &$tables::LN;
        const ASIN: &'static [Self] = &$tables::ASIN;
        const ERF: &'static [Self] = &$tables::ERF;
        const ERF_TAIL: &'static [Self] = &$tables::ERF_TAIL;
        const LN_2: [Self; 2] = $tables::LN_2;
        const PI: [Self; 2] = [std::$t::consts::PI, $tables::PI_REST];
        const HALF_PI: [Self; 2] = [std::$t::consts::FRAC_PI_2, $tables::HALF_PI_REST];

        #[inline(always)]
        fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self {
            if FMA { self.mul_add(b, c) } else { self * b + c }
        }

        #[inline(always)]
        fn nearest(self) -> Self {
            const PUSH: $t = 1.5 * (1u64 << $mantissa) as $t;
            (self + PUSH) - PUSH
        }

        #[inline(always)]
        fn power_of_two(self) -> Self {
            // The low bits of a number pushed against 1.5·2^mantissa are its integer part in two's complement.
            const PUSH: $t = 1.5 * (1u64 << $mantissa) as $t;
            $t::from_bits(((self + PUSH).to_bits() << $mantissa).wrapping_add($bias << $mantissa))
        }

        #[inline(always)]
        fn split(self) -> (Self, Self) {
            // Subnormal numbers are lifted into the normal range first.
            const LIFT: $t = (1u64 << ($mantissa + 2)) as $t;
            let small = self < $t::MIN_POSITIVE;
            let x = if small { self * LIFT } else { self };
            let lifted: $t = if small { ($mantissa + 2) as $t } else { 0.0 };
            // Shifting the origin from √½ to 1 makes the exponent field change at √½ instead of at 1.
            const ORIGIN: $bits = std::$t::consts::FRAC_1_SQRT_2.to_bits();
            const ONE: $bits = $bias << $mantissa;
            const FIELD: $bits = (1 << $mantissa) - 1;
            let moved = x.to_bits().wrapping_add(ONE - ORIGIN);
            // An integer put under the mantissa of 2^mantissa is converted by one subtraction.
            const BASE: $t = (1u64 << $mantissa) as $t;
            let exponent = $t::from_bits(BASE.to_bits() | (moved >> $mantissa)) - (BASE + $bias as $t);
            (exponent - lifted, $t::from_bits((moved & FIELD) + ORIGIN))
        }

        #[inline(always)]
        fn turned(self, by: Self) -> Self {
            const SIGN: $bits = 1 << ($bits::BITS - 1);
            $t::from_bits(self.to_bits() ^ (by.to_bits() & SIGN))
        }
    };
}

impl Real for f32 {
    real!(f32, single, u32, 23, 127);
    const EXP_RANGE: [Self; 2] = [-104.0, 89.0];
    const TANH_END: Self = 10.0;
    const ERF_END: Self = 4.0;

    #[inline(always)]
    fn reduce<const FMA: bool>(self, shift: Self) -> (Self, Self) {
        if !FMA {
            // Without fused products π would need many short parts; two in f64 cost less.
            let (odd, r) = halves(self as f64, shift as f64, |x, q| x - q * double::PI[0] - q * double::PI[1]);
            return (odd as f32, r as f32);
        }
        const PUSH: f32 = 1.5 * (1u32 << 23) as f32;
        let pushed = self.mul_add(std::f32::consts::FRAC_1_PI, -shift) + PUSH;
        let q = (pushed - PUSH) + shift;
        // Where q is not zero, x is a multiple of 2⁻²³, and so is q times the first part: their difference is exact,
        // and the other two steps round once each, relative to what is left.
        let r = (-q).mul_add(Self::PI[1], (-q).mul_add(Self::PI[0], self));
        (f32::from_bits(pushed.to_bits() << 31), (-q).mul_add(single::PI_LAST, r))
    }
}

/// As [`Real::reduce`], where the other function takes `q·π` from `x`.
#[inline(always)]
fn halves(x: f64, shift: f64, less: impl Fn(f64, f64) -> f64) -> (f64, f64) {
    // The low bit of a number pushed against 1.5·2⁵² is that of its integer part.
    const PUSH: f64 = 1.5 * (1u64 << 52) as f64;
    let pushed = (x * std::f64::consts::FRAC_1_PI - shift) + PUSH;
    let q = (pushed - PUSH) + shift;
    (f64::from_bits(pushed.to_bits() << 63), less(x, q))
}

impl Real for f64 {
    real!(f64, double, u64, 52, 1023);
    const EXP_RANGE: [Self; 2] = [-746.0, 710.0];
    const TANH_END: Self = 22.0;
    const ERF_END: Self = 6.0;

    #[inline(always)]
    fn reduce<const FMA: bool>(self, shift: Self) -> (Self, Self) {
        halves(self, shift, |x, q| double::PI.iter().fold(x, |r, &part| (-q).fma::<FMA>(part, r)))
    }
}
