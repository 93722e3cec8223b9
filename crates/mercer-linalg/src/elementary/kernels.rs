//! The functions at one point, branch-free, so that a loop over them vectorises.
//!
//! A comparison with NaN is false, and every clamp below then keeps its argument. NaN therefore passes through all
//! functions.

use super::real::{Real, horner};
use super::sweep::Kernel;

pub(super) struct Exp;
pub(super) struct Sigmoid;
pub(super) struct Tanh;
pub(super) struct Ln;
pub(super) struct Sin;
pub(super) struct Cos;
pub(super) struct Acos;
pub(super) struct Erf;

/// `(n, exp(r) - 1)` with `x = n·ln 2 + r`, `|r| ≤ ln 2 / 2`.
#[inline(always)]
fn exp_parts<R: Real, const FMA: bool>(x: R) -> (R, R) {
    let n = (x * R::narrow(std::f64::consts::LOG2_E)).nearest();
    let r = (-n).fma::<FMA>(R::LN_2[1], (-n).fma::<FMA>(R::LN_2[0], x));
    (n, (r * r).fma::<FMA>(horner::<R, FMA>(r, R::EXP), r))
}

#[inline(always)]
fn exp<R: Real, const FMA: bool>(x: R) -> R {
    let [low, high] = R::EXP_RANGE;
    let x = if x < low { low } else { x };
    let x = if x > high { high } else { x };
    let (n, rest) = exp_parts::<R, FMA>(x);
    // Two factors, because 2^n itself leaves the range where the result is subnormal or just overflows.
    let half = (n * R::narrow(0.5)).nearest();
    (rest + R::one()) * half.power_of_two() * (n - half).power_of_two()
}

impl Kernel for Exp {
    #[inline(always)]
    fn at<R: Real, const FMA: bool>(x: R) -> R {
        exp::<R, FMA>(x)
    }
}

impl Kernel for Sigmoid {
    /// `1 / (1 + e^-x)`, and `e^x / (1 + e^x)` on the left so that small values keep their digits.
    #[inline(always)]
    fn at<R: Real, const FMA: bool>(x: R) -> R {
        let e = exp::<R, FMA>(-x.abs());
        (if x < R::zero() { e } else { R::one() }) / (R::one() + e)
    }
}

impl Kernel for Tanh {
    /// `t / (t + 2)` with `t = e^{2|x|} - 1`, computed without cancellation as `2^n·(e^r - 1) + (2^n - 1)`.
    #[inline(always)]
    fn at<R: Real, const FMA: bool>(x: R) -> R {
        let magnitude = x.abs();
        let magnitude = if magnitude > R::TANH_END { R::TANH_END } else { magnitude };
        let (n, rest) = exp_parts::<R, FMA>(magnitude + magnitude);
        let power = n.power_of_two();
        let t = power.fma::<FMA>(rest, power - R::one());
        (t / (t + R::narrow(2.0))).copysign(x)
    }
}

impl Kernel for Ln {
    /// With `x = 2^k·(1 + f)` and `s = f / (2 + f)`: `ln x = k·ln 2 + 2 atanh(s)`, where
    /// `2 atanh(s) = f - (f²/2 - s·(f²/2 + s²·R(s²)))` keeps the leading term `f` exact.
    #[inline(always)]
    fn at<R: Real, const FMA: bool>(x: R) -> R {
        let (k, m) = x.split();
        let f = m - R::one();
        let s = f / (f + R::narrow(2.0));
        let z = s * s;
        let half_square = R::narrow(0.5) * f * f;
        let inner = s.fma::<FMA>(half_square + z * horner::<R, FMA>(z, R::LN), k * R::LN_2[1]);
        let finite = k.fma::<FMA>(R::LN_2[0], f - (half_square - inner));
        let positive = if x < R::infinity() { finite } else { x };
        let negative = if x == R::zero() { R::neg_infinity() } else { R::nan() };
        if x <= R::zero() { negative } else { positive }
    }
}

/// `sin r` for `|r| ≤ π/2`.
#[inline(always)]
fn sin_near_zero<R: Real, const FMA: bool>(r: R) -> R {
    let z = r * r;
    (r * z).fma::<FMA>(horner::<R, FMA>(z, R::SIN), r)
}

impl Kernel for Sin {
    const LIMIT: f64 = 1e5;

    #[inline(always)]
    fn at<R: Real, const FMA: bool>(x: R) -> R {
        let (odd, r) = x.reduce::<FMA>(R::zero());
        let value = sin_near_zero::<R, FMA>(r).turned(odd);
        // The reduction loses the sign of zero.
        if x == R::zero() { x } else { value }
    }

    fn beyond<R: Real>(x: R) -> R {
        x.sin()
    }
}

impl Kernel for Cos {
    const LIMIT: f64 = 1e5;

    /// `cos((n + ½)π + r) = -(-1)ⁿ sin r`.
    #[inline(always)]
    fn at<R: Real, const FMA: bool>(x: R) -> R {
        let (odd, r) = x.reduce::<FMA>(R::narrow(0.5));
        sin_near_zero::<R, FMA>(-r).turned(odd)
    }

    fn beyond<R: Real>(x: R) -> R {
        x.cos()
    }
}

impl Kernel for Acos {
    /// `π/2 - asin(x)` in the middle; `2 asin(√((1-|x|)/2))`, mirrored for `x < 0`, outside of `|x| ≤ ½`.
    #[inline(always)]
    fn at<R: Real, const FMA: bool>(x: R) -> R {
        let half = R::narrow(0.5);
        let magnitude = x.abs();
        let middle = magnitude <= half;
        let outer = (R::one() - magnitude) * half;
        let root = outer.sqrt();
        let z = if middle { x * x } else { outer };
        let s = if middle { x } else { root };
        let arcsine = (s * z).fma::<FMA>(horner::<R, FMA>(z, R::ASIN), s);
        let right = arcsine + arcsine;
        let left = R::PI[0] - (right - R::PI[1]);
        let outside = if x < R::zero() { left } else { right };
        if middle { R::HALF_PI[0] - (arcsine - R::HALF_PI[1]) } else { outside }
    }
}

impl Kernel for Erf {
    /// `x·P(x²)` for `|x| ≤ 1`, `1 - e^{-x²}·Q((|x| - 3) / (|x| + 3))` beyond.
    #[inline(always)]
    fn at<R: Real, const FMA: bool>(x: R) -> R {
        let (one, three) = (R::one(), R::narrow(3.0));
        let magnitude = x.abs();
        let magnitude = if magnitude > R::ERF_END { R::ERF_END } else { magnitude };
        let square = magnitude * magnitude;
        let centre = magnitude * horner::<R, FMA>(square, R::ERF);
        let t = (magnitude - three) / (magnitude + three);
        let tail = one - exp::<R, FMA>(-square) * horner::<R, FMA>(t, R::ERF_TAIL);
        (if magnitude <= one { centre } else { tail }).copysign(x)
    }
}
