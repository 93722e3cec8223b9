//! Functions of one number, applied elementwise, with their derivatives.

use super::math;
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use mercer_linalg::elementary::{self, ElementaryFunction as Elementary};
use mercer_linalg::simd::dispatch;

/// `y = f(x)`, elementwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unary(pub Function);

/// A function of one number. By convention, the derivative of `Relu` at its kink is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are the functions")]
pub enum Function {
    Relu,
    LeakyRelu(f64),
    Elu(f64),
    Selu {
        alpha: f64,
        gamma: f64,
    },
    Celu(f64),
    Sigmoid,
    HardSigmoid {
        alpha: f64,
        beta: f64,
    },
    Tanh,
    Erf,
    /// `x·Φ(x)`.
    Gelu,
    /// The approximation of `Gelu` by `tanh`.
    GeluTanh,
    /// `x·sigmoid(βx)`; SiLU for β = 1.
    Swish(f64),
    HardSwish,
    Mish,
    Softplus,
    Softsign,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Asinh,
    Acosh,
    Atanh,
    Abs,
    Neg,
    Exp,
    Log,
    Sqrt,
    Reciprocal,
    /// `x^p` for a fixed `p`.
    Power(f64),
    Clip {
        low: f64,
        high: f64,
    },
    /// `x` where it exceeds the threshold, else 0.
    ThresholdedRelu(f64),
    Shrink {
        lambda: f64,
        bias: f64,
    },
    /// `scale·x + shift`.
    Affine {
        scale: f64,
        shift: f64,
    },
    Floor,
    Ceil,
    Round,
    /// Truncation towards zero, as in a cast to an integer.
    Trunc,
    Sign,
    /// 1 for 0, else 0.
    Not,
    IsNan,
    IsInf,
}

impl Function {
    /// Whether the derivative is zero wherever it exists.
    pub fn is_step(&self) -> bool {
        use Function::*;
        matches!(self, Floor | Ceil | Round | Trunc | Sign | Not | IsNan | IsInf)
    }
}

/// `y = f(x)` over slices, compiled for the machine's widest instructions.
fn map<T: Element>(x: &[T], y: &mut [T], f: impl Fn(T) -> T) {
    dispatch(
        #[inline(always)]
        || y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(x)),
    );
}

/// `d = f'(x)`, from `x` and `y = f(x)`.
fn map2<T: Element>(x: &[T], y: &[T], d: &mut [T], f: impl Fn(T, T) -> T) {
    dispatch(
        #[inline(always)]
        || d.iter_mut().zip(x.iter().zip(y)).for_each(|(d, (&x, &y))| *d = f(x, y)),
    );
}

/// Elements that are processed while they are in the first-level cache.
const PIECE: usize = 512;

/// `y = after(x, f(before(x)))` for an elementary function `f`.
fn staged<T: Element>(x: &[T], y: &mut [T], before: impl Fn(T) -> T, function: Elementary, after: impl Fn(T, T) -> T) {
    for (x, y) in x.chunks(PIECE).zip(y.chunks_mut(PIECE)) {
        map(x, y, &before);
        elementary::apply(function, y);
        dispatch(
            #[inline(always)]
            || y.iter_mut().zip(x).for_each(|(y, &x)| *y = after(x, *y)),
        );
    }
}

/// `d = join(x, f(x/√2 or …), g(…))` for two elementary functions of the same number.
fn staged2<T: Element>(
    x: &[T],
    d: &mut [T],
    (first, before_first): (Elementary, impl Fn(T) -> T),
    (second, before_second): (Elementary, impl Fn(T) -> T),
    join: impl Fn(T, T, T) -> T,
) {
    let mut other = [T::zero(); PIECE];
    for (x, d) in x.chunks(PIECE).zip(d.chunks_mut(PIECE)) {
        let other = &mut other[..x.len()];
        map(x, d, &before_first);
        elementary::apply(first, d);
        map(x, other, &before_second);
        elementary::apply(second, other);
        dispatch(
            #[inline(always)]
            || d.iter_mut().zip(x.iter().zip(other.iter())).for_each(|(d, (&x, &o))| *d = join(x, *d, o)),
        );
    }
}

impl Function {
    /// The values over a slice.
    pub fn values<T: Element>(&self, x: &[T], y: &mut [T]) {
        use Function::*;
        let c = T::narrow;
        let (zero, one, half) = (T::zero(), T::one(), c(0.5));
        let positive = move |x: T| if x > zero { x } else { zero };
        match *self {
            Relu => map(x, y, positive),
            LeakyRelu(a) => map(x, y, |x| if x > zero { x } else { c(a) * x }),
            Elu(a) => map(x, y, |x| if x > zero { x } else { c(a) * x.exp_m1() }),
            Selu { alpha, gamma } => map(x, y, |x| c(gamma) * if x > zero { x } else { c(alpha) * x.exp_m1() }),
            Celu(a) => map(x, y, |x| if x > zero { x } else { c(a) * (x / c(a)).exp_m1() }),
            Sigmoid => elementary::sigmoid(x, y),
            HardSigmoid { alpha, beta } => map(x, y, |x| (c(alpha) * x + c(beta)).max(zero).min(one)),
            Tanh => elementary::tanh(x, y),
            Erf => elementary::erf(x, y),
            Gelu => staged(x, y, |x| x * c(SQRT_HALF), Elementary::Erf, |x, e| half * x * (one + e)),
            GeluTanh => staged(x, y, gelu_inner, Elementary::Tanh, |x, t| half * x * (one + t)),
            Swish(beta) => staged(x, y, |x| c(beta) * x, Elementary::Sigmoid, |x, s| x * s),
            HardSwish => map(x, y, |x| x * (x / c(6.0) + half).max(zero).min(one)),
            Mish => map(x, y, |x| x * math::softplus(x).tanh()),
            Softplus => map(x, y, math::softplus),
            Softsign => map(x, y, |x| x / (one + x.abs())),
            Sin => elementary::sin(x, y),
            Cos => elementary::cos(x, y),
            Tan => map(x, y, |x| x.tan()),
            Asin => map(x, y, |x| x.asin()),
            Acos => map(x, y, |x| x.acos()),
            Atan => map(x, y, |x| x.atan()),
            Sinh => map(x, y, |x| x.sinh()),
            Cosh => map(x, y, |x| x.cosh()),
            Asinh => map(x, y, |x| x.asinh()),
            Acosh => map(x, y, |x| x.acosh()),
            Atanh => map(x, y, |x| x.atanh()),
            Abs => map(x, y, |x| x.abs()),
            Neg => map(x, y, |x| -x),
            Exp => elementary::exp(x, y),
            Log => elementary::ln(x, y),
            Sqrt => map(x, y, |x| x.sqrt()),
            Reciprocal => map(x, y, |x| one / x),
            Power(p) => map(x, y, |x| math::power(x, c(p))),
            Clip { low, high } => map(x, y, |x| if x < c(low) { c(low) } else { x }.min(c(high))),
            ThresholdedRelu(a) => map(x, y, |x| if x > c(a) { x } else { zero }),
            Shrink { lambda, bias } => map(x, y, |x| {
                if x < -c(lambda) {
                    x + c(bias)
                } else if x > c(lambda) {
                    x - c(bias)
                } else {
                    zero
                }
            }),
            Affine { scale, shift } => map(x, y, |x| c(scale) * x + c(shift)),
            Floor => map(x, y, |x| x.floor()),
            Ceil => map(x, y, |x| x.ceil()),
            Round => map(x, y, math::round_half_to_even),
            Trunc => map(x, y, |x| x.trunc()),
            Sign => map(x, y, |x| {
                if x > zero {
                    one
                } else if x < zero {
                    -one
                } else {
                    zero
                }
            }),
            Not => map(x, y, |x| if x == zero { one } else { zero }),
            IsNan => map(x, y, |x| if x.is_nan() { one } else { zero }),
            IsInf => map(x, y, |x| if x.is_infinite() { one } else { zero }),
        }
    }

    /// The derivatives over a slice, from `x` and `y = f(x)`.
    pub fn slopes<T: Element>(&self, x: &[T], y: &[T], d: &mut [T]) {
        use Function::*;
        let c = T::narrow;
        let (zero, one, half) = (T::zero(), T::one(), c(0.5));
        let step = move |yes: bool| if yes { one } else { zero };
        match *self {
            Relu => map2(x, y, d, |x, _| step(x > zero)),
            LeakyRelu(a) => map2(x, y, d, |x, _| if x > zero { one } else { c(a) }),
            Elu(a) => map2(x, y, d, |x, y| if x > zero { one } else { y + c(a) }),
            Selu { alpha, gamma } => map2(x, y, d, |x, y| if x > zero { c(gamma) } else { y + c(gamma * alpha) }),
            Celu(a) => map2(x, y, d, |x, y| if x > zero { one } else { y / c(a) + one }),
            Sigmoid => map2(x, y, d, |_, y| y * (one - y)),
            HardSigmoid { alpha, .. } => map2(x, y, d, |_, y| if y > zero && y < one { c(alpha) } else { zero }),
            Tanh => map2(x, y, d, |_, y| one - y * y),
            Erf => {
                let scale = c(std::f64::consts::FRAC_2_SQRT_PI);
                staged(x, d, |x| -x * x, Elementary::Exp, |_, e| scale * e);
            }
            Gelu => {
                let cdf = (Elementary::Erf, |x| x * c(SQRT_HALF));
                let density = (Elementary::Exp, |x| c(-0.5) * x * x);
                staged2(x, d, cdf, density, |x, e, g| half * (one + e) + x * c(INV_SQRT_2PI) * g);
            }
            GeluTanh => staged(x, d, gelu_inner, Elementary::Tanh, |x, t| {
                half * (one + t) + half * x * (one - t * t) * c(GELU_SCALE) * (one + c(3.0 * GELU_CUBIC) * x * x)
            }),
            Swish(beta) => staged(x, d, |x| c(beta) * x, Elementary::Sigmoid, |x, s| s + c(beta) * x * s * (one - s)),
            HardSwish => map2(x, y, d, |x, _| {
                if x <= c(-3.0) {
                    zero
                } else if x < c(3.0) {
                    x / c(3.0) + half
                } else {
                    one
                }
            }),
            Mish => map2(x, y, d, |x, _| {
                let t = math::softplus(x).tanh();
                t + x * (one - t * t) * math::sigmoid(x)
            }),
            Softplus => elementary::sigmoid(x, d),
            Softsign => map2(x, y, d, |x, _| one / ((one + x.abs()) * (one + x.abs()))),
            Sin => elementary::cos(x, d),
            Cos => staged(x, d, |x| x, Elementary::Sin, |_, s| -s),
            Tan => map2(x, y, d, |_, y| one + y * y),
            Asin => map2(x, y, d, |x, _| one / (one - x * x).sqrt()),
            Acos => map2(x, y, d, |x, _| -one / (one - x * x).sqrt()),
            Atan => map2(x, y, d, |x, _| one / (one + x * x)),
            Sinh => map2(x, y, d, |x, _| x.cosh()),
            Cosh => map2(x, y, d, |x, _| x.sinh()),
            Asinh => map2(x, y, d, |x, _| one / (x * x + one).sqrt()),
            Acosh => map2(x, y, d, |x, _| one / (x * x - one).sqrt()),
            Atanh => map2(x, y, d, |x, _| one / (one - x * x)),
            Abs => map2(x, y, d, |x, _| {
                if x > zero {
                    one
                } else if x < zero {
                    -one
                } else {
                    zero
                }
            }),
            Neg => d.fill(-one),
            Exp => d.copy_from_slice(y),
            Log => map2(x, y, d, |x, _| one / x),
            Sqrt => map2(x, y, d, |_, y| half / y),
            Reciprocal => map2(x, y, d, |_, y| -y * y),
            Power(p) => map2(x, y, d, |x, _| c(p) * math::power(x, c(p - 1.0))),
            Clip { low, high } => map2(x, y, d, |x, _| step(x > c(low) && x < c(high))),
            ThresholdedRelu(a) => map2(x, y, d, |x, _| step(x > c(a))),
            Shrink { lambda, .. } => map2(x, y, d, |x, _| step(x.abs() > c(lambda))),
            Affine { scale, .. } => d.fill(c(scale)),
            Floor | Ceil | Round | Trunc | Sign | Not | IsNan | IsInf => d.fill(zero),
        }
    }
}

/// `dx = f(s, dy)`, or added to it.
fn scaled<T: Element>(s: &[T], dy: &[T], dx: &mut [T], add: bool, f: impl Fn(T, T) -> T) {
    dispatch(
        #[inline(always)]
        || {
            let terms = dx.iter_mut().zip(dy.iter().zip(s));
            if add {
                terms.for_each(|(dx, (&dy, &s))| *dx += f(s, dy));
            } else {
                terms.for_each(|(dx, (&dy, &s))| *dx = f(s, dy));
            }
        },
    );
}

/// √(2/π) and the cubic coefficient of the tanh form of GELU (Hendrycks and Gimpel 2016, arXiv 1606.08415).
const GELU_SCALE: f64 = 0.797_884_560_802_865_4;
const GELU_CUBIC: f64 = 0.044_715;
const SQRT_HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;
const INV_SQRT_2PI: f64 = 0.398_942_280_401_432_7;

#[inline(always)]
fn gelu_inner<T: Element>(x: T) -> T {
    T::narrow(GELU_SCALE) * (x + T::narrow(GELU_CUBIC) * x * x * x)
}

impl Op for Unary {
    fn name(&self) -> &'static str {
        "Unary"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let [x] = inputs else { return Err(InferError::Shape("needs one operand".into())) };
        Ok((*x).clone())
    }

    fn differentiable(&self, _: usize) -> bool {
        !self.0.is_step()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl<T: Element> OpKernel<T> for Unary {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        self.0.values(call.arg(0).data, y);
    }

    fn vjp(
        &self,
        call: &Call<'_, T>,
        dy: &[T],
        seeds: usize,
        _: usize,
        dx: &mut [T],
        add: bool,
        scratch: &mut Scratch<T>,
    ) {
        let (x, y) = (call.arg(0), call.result());
        let size = x.numel();
        if self.0 == Function::Relu && seeds == 1 && x.batched {
            // By far the most common case needs no memory for its slopes.
            return scaled(x.data, dy, dx, add, |x, dy| if x > T::zero() { dy } else { T::zero() });
        }
        if seeds == 1 && x.batched {
            // Samples need not be distinguished. The slopes of a piece stay in the first-level cache.
            let mut slope = [T::zero(); PIECE];
            for (start, dx) in (0..).step_by(PIECE).zip(dx.chunks_mut(PIECE)) {
                let (range, slope) = (start..start + dx.len(), &mut slope[..dx.len()]);
                self.0.slopes(&x.data[range.clone()], &y.data[range.clone()], slope);
                scaled(slope, &dy[range], dx, add, |s, dy| dy * s);
            }
            return;
        }
        let [slope] = scratch.take([size]);
        for sample in 0..call.samples {
            self.0.slopes(x.sample(sample), y.sample(sample), slope);
            for at in sample * seeds..(sample + 1) * seeds {
                let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * size..(at + 1) * size]);
                scaled(slope, dy, dx, add, |s, dy| dy * s);
            }
        }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        let Some(tangent) = tangents.operand(call, 0) else { return };
        self.0.slopes(call.arg(0).data, call.result().data, dy);
        dispatch(
            #[inline(always)]
            || dy.iter_mut().zip(tangent.data).for_each(|(dy, &t)| *dy *= t),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        use Function::*;
        let everywhere = [
            Relu,
            LeakyRelu(0.1),
            Elu(0.7),
            Selu { alpha: 1.67, gamma: 1.05 },
            Celu(0.8),
            Sigmoid,
            HardSigmoid { alpha: 0.2, beta: 0.5 },
            Tanh,
            Erf,
            Gelu,
            GeluTanh,
            Swish(1.3),
            HardSwish,
            Mish,
            Softplus,
            Softsign,
            Sin,
            Cos,
            Atan,
            Sinh,
            Cosh,
            Asinh,
            Abs,
            Neg,
            Exp,
            Power(2.0),
            Power(3.0),
            Clip { low: -0.5, high: 0.7 },
            ThresholdedRelu(0.3),
            Shrink { lambda: 0.5, bias: 0.1 },
            Affine { scale: 2.0, shift: -1.0 },
            Floor,
            Ceil,
            Round,
            Trunc,
            Sign,
            Not,
            IsNan,
            IsInf,
        ];
        for function in everywhere {
            check(Unary(function), &[batched(&[2, 3])]);
            check(Unary(function), &[shared(&[4])]);
        }
        for function in [Log, Sqrt, Reciprocal, Power(0.5), Power(1.7)] {
            check(Unary(function), &[batched(&[5]).within(|x| 1.5 + x)]);
        }
        for function in [Tan, Asin, Acos, Atanh] {
            check(Unary(function), &[batched(&[5]).within(|x| 0.8 * x)]);
        }
        check(Unary(Acosh), &[batched(&[5]).within(|x| 3.0 + x)]);
    }

    #[test]
    fn kinks_and_extremes_follow_the_convention() {
        let mut slope = [9.0; 1];
        Function::Relu.slopes(&[0.0f64], &[0.0], &mut slope);
        assert_eq!(slope, [0.0]);
        let mut y = [0.0f32; 2];
        Function::Softplus.values(&[200.0, -200.0], &mut y);
        assert_eq!(y, [200.0, 0.0]);
        Function::Sigmoid.values(&[200.0, -200.0], &mut y);
        assert_eq!(y, [1.0, 0.0]);
        let mut y = [0.0f64; 4];
        Function::Round.values(&[0.5, 1.5, 2.5, -0.5], &mut y);
        assert_eq!(y, [0.0, 2.0, 2.0, 0.0]);
    }
}
