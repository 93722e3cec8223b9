//! The expectations of activations in closed form, over slices of pairs.
//!
//! With variances `a = s²`, `b = t²`, covariance `c = st cos θ`:
//!
//! | φ | `E[φ(u)φ(v)]` | its derivative in `c` |
//! |---|---|---|
//! | bent line, slopes `p` and `q` (arc-cosine kernel, Cho and Saul 2009) | `½(p²+q²)c + (p−q)²/2π · st(sin θ − θ cos θ)` | `pq + (p−q)²(π−θ)/2π` |
//! | erf (arcsine kernel, Williams 1997) | `2/π asin(2c/√((1+2a)(1+2b)))` | `4/π / √((1+2a)(1+2b) − 4c²)` |
//! | sin, cos | `½(e^{−(a+b)/2+c} ∓ e^{−(a+b)/2−c})` | the other sign |
//! | e^{−x²} | `1/√D`, `D = (1+2a)(1+2b) − 4c²` | `4c/D^{3/2}` |
//! | GELU (Tsuchida et al., arXiv 2002.08517) | `c/4 + (c asin(c/√e) + (c² + ab·D)/(e√D))/2π`, `e = (1+a)(1+b)`, `D = e − c²` | `¼ + (asin(c/√e) + c/√D (1/D + (1−ab)/e + 1))/2π` |
//! | xⁿ | `Σ_k ((n!/(((n−k)/2)! 2^{(n−k)/2}))²/k!) (ab)^{(n−k)/2} c^k` | `n²` times that of `n − 1` |
//!
//! A correlation near one must not be rounded, because the error of an angle is the square root of the error of its
//! cosine. Pairs are therefore represented by `c` or, if available, by the distance `Δ = ½(a + b) − c ≥ 0`, and the
//! angle comes from `1 − cos θ = (Δ − ½(s − t)²)/st` through `π − θ = 2 acos √((1 − cos θ)/2)`. If both samples are the
//! same, this is exactly zero. Where a deviation is zero the angle is a right one, as if the slope at zero were the
//! mean of both sides.

use super::activation::{Dual, LimitActivation};
use super::series;
use crate::kernel::Real;
use mercer_linalg::elementary::{ElementaryFunction, apply};
use mercer_linalg::simd::dispatch;
use std::f64::consts::{FRAC_1_PI, FRAC_2_PI, PI};

/// The representation of a pair of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By the covariance.
    Covariance,
    /// By half the mean squared difference.
    Distance,
}

/// The data of each sample at the positions of some pairs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments<'a, T> {
    pub(super) variance: &'a [T],
    pub(super) deviation: &'a [T],
    /// The coefficients of a series, one after the other; empty without one.
    pub(super) series: &'a [T],
}

impl<T> Moments<'_, T> {
    fn piece(&self, from: usize, to: usize) -> Self {
        // The series is not cut: its coefficients keep their stride.
        Self { variance: &self.variance[from..to], deviation: &self.deviation[from..to], series: self.series }
    }
}

/// Pairs that are processed together in the first-level cache.
pub(super) const PIECE: usize = 512;

/// Scratch memory for a piece.
struct Room<T>([[T; PIECE]; 3]);

impl LimitActivation {
    /// The output form for an input form: smooth functions lose nothing by using covariances.
    pub(super) fn form(&self, form: Form) -> Form {
        if matches!(self.dual, Dual::Bent { .. }) { form } else { Form::Covariance }
    }

    /// Replaces the value of each pair, and multiplies its tangent by the derivative.
    pub(super) fn apply<T: Real>(
        &self,
        form: Form,
        value: &mut [T],
        mut tangent: Option<&mut [T]>,
        left: Moments<'_, T>,
        right: Moments<'_, T>,
    ) {
        let mut room = Room([[T::zero(); PIECE]; 3]);
        let stride = value.len();
        for from in (0..stride).step_by(PIECE) {
            let to = (from + PIECE).min(stride);
            let (value, tangent) = (&mut value[from..to], tangent.as_deref_mut().map(|tangent| &mut tangent[from..to]));
            let pair = [left.piece(from, to), right.piece(from, to)];
            match &self.dual {
                Dual::Bent { left: q, right: p } => {
                    bent([*p, *q].map(|x| x * self.outer), self.inner, form, value, tangent, pair, &mut room)
                }
                Dual::Series { odd, .. } => {
                    series::apply(*odd, form, value, tangent, pair, (from, stride), &mut room.0);
                }
                smooth => {
                    covariances(form, value, pair);
                    self.smooth(smooth, value, tangent, pair, &mut room);
                }
            }
        }
    }

    fn smooth<T: Real>(
        &self,
        dual: &Dual,
        value: &mut [T],
        tangent: Option<&mut [T]>,
        pair: [Moments<'_, T>; 2],
        room: &mut Room<T>,
    ) {
        let Room([one, two, slope]) = room;
        let count = value.len();
        let (one, two, slope) = (&mut one[..count], &mut two[..count], &mut slope[..count]);
        let k = T::narrow(self.inner * self.inner);
        let (size, rate) = (T::narrow(self.outer * self.outer), T::narrow((self.outer * self.inner).powi(2)));
        let [a, b] = pair.map(|side| side.variance);
        match dual {
            Dual::Erf => arcsine(k, [size, rate], value, slope, one, [a, b]),
            Dual::Sin => waves(true, k, [size, rate], value, slope, [one, two], [a, b]),
            Dual::Cos => waves(false, k, [size, rate], value, slope, [one, two], [a, b]),
            Dual::Gaussian => bell(k, [size, rate], value, slope, [a, b]),
            Dual::Gelu => gelu(k, [size, rate], value, slope, one, [a, b]),
            Dual::Monomial(power) => monomial(*power, k, [size, rate], value, slope, [a, b]),
            Dual::Bent { .. } | Dual::Series { .. } => unreachable!("handled by the caller"),
        }
        if let Some(tangent) = tangent {
            multiply(tangent, slope);
        }
    }
}

pub(super) fn multiply<T: Real>(tangent: &mut [T], slope: &[T]) {
    dispatch(
        #[inline(always)]
        || tangent.iter_mut().zip(slope).for_each(|(tangent, &slope)| *tangent *= slope),
    );
}

/// Converts distances to covariances.
pub(super) fn covariances<T: Real>(form: Form, value: &mut [T], [left, right]: [Moments<'_, T>; 2]) {
    if form == Form::Distance {
        let half = T::narrow(0.5);
        dispatch(
            #[inline(always)]
            || {
                let sides = left.variance.iter().zip(right.variance);
                value.iter_mut().zip(sides).for_each(|(value, (&a, &b))| *value = half * (a + b) - *value);
            },
        );
    }
}

#[inline(always)]
fn opening_of<T: Real>(distance: T, s: T, t: T) -> T {
    let (zero, two) = (T::zero(), T::narrow(2.0));
    let (gap, product) = (s - t, s * t);
    let ratio = (distance - T::narrow(0.5) * gap * gap) / product;
    let ratio = if ratio > zero { ratio } else { zero };
    let ratio = if ratio < two { ratio } else { two };
    if product > zero { ratio } else { T::one() }
}

/// `1 − cos θ`, in `[0, 2]`; 1 where a deviation is zero.
pub(super) fn openings<T: Real>(form: Form, value: &[T], [left, right]: [Moments<'_, T>; 2], opening: &mut [T]) {
    let half = T::narrow(0.5);
    dispatch(
        #[inline(always)]
        || {
            let deviations = left.deviation.iter().zip(right.deviation);
            let items = opening.iter_mut().zip(value).zip(deviations);
            if form == Form::Distance {
                items.for_each(|((opening, &value), (&s, &t))| *opening = opening_of(value, s, t));
            } else {
                let variances = left.variance.iter().zip(right.variance);
                items.zip(variances).for_each(|(((opening, &value), (&s, &t)), (&a, &b))| {
                    *opening = opening_of(half * (a + b) - value, s, t);
                });
            }
        },
    );
}

fn bent<T: Real>(
    [p, q]: [f64; 2],
    inner: f64,
    form: Form,
    value: &mut [T],
    tangent: Option<&mut [T]>,
    [left, right]: [Moments<'_, T>; 2],
    room: &mut Room<T>,
) {
    // A bent line is homogeneous: a scale before it equals a scale after it, mirrored if negative.
    let [p, q] = if inner < 0.0 { [q * inner, p * inner] } else { [p * inner, q * inner] };
    let scale = T::narrow(0.5 * (p * p + q * q));
    if p == q {
        let scale = T::narrow(p * p);
        dispatch(
            #[inline(always)]
            || {
                value.iter_mut().for_each(|value| *value *= scale);
                if let Some(tangent) = tangent {
                    tangent.iter_mut().for_each(|tangent| *tangent *= scale);
                }
            },
        );
        return;
    }
    let Room([opening, angle, _]) = room;
    let (opening, angle) = (&mut opening[..value.len()], &mut angle[..value.len()]);
    openings(form, value, [left, right], opening);
    let half = T::narrow(0.5);
    dispatch(
        #[inline(always)]
        || angle.iter_mut().zip(&*opening).for_each(|(angle, &opening)| *angle = (opening * half).sqrt()),
    );
    apply(ElementaryFunction::Acos, angle);
    let (one, two, pi) = (T::one(), T::narrow(2.0), T::narrow(PI));
    let bend = T::narrow(0.5 * (p - q) * (p - q) * FRAC_1_PI);
    let bend = if form == Form::Distance { -bend } else { bend };
    let (product, rest) = (T::narrow((p - q) * (p - q) * FRAC_1_PI), T::narrow(p * q));
    dispatch(
        #[inline(always)]
        || {
            let deviations = left.deviation.iter().zip(right.deviation);
            let items = value.iter_mut().zip(&*opening).zip(&*angle).zip(deviations);
            items.for_each(|(((value, &opening), &half_rest), (&s, &t))| {
                let angle = pi - two * half_rest;
                let bow = (opening * (two - opening)).sqrt() - (one - opening) * angle;
                *value = scale * *value + bend * (s * t) * bow;
            });
            if let Some(tangent) = tangent {
                tangent
                    .iter_mut()
                    .zip(&*angle)
                    .for_each(|(tangent, &half_rest)| *tangent *= rest + product * half_rest);
            }
        },
    );
}

/// The same bounds as [`PIECE`] for all, so that a loop over an index needs no checks.
macro_rules! each {
    ($i:ident < $count:expr, [$($slice:ident),*], $body:block) => {
        dispatch(
            #[inline(always)]
            || {
                let count = $count;
                $(let $slice = &mut $slice[..count];)*
                for $i in 0..count $body
            },
        )
    };
}

fn arcsine<T: Real>(k: T, [size, rate]: [T; 2], value: &mut [T], slope: &mut [T], angle: &mut [T], [a, b]: [&[T]; 2]) {
    let (one, two) = (T::one(), T::narrow(2.0) * k);
    let four_over_pi = rate * T::narrow(4.0 * FRAC_1_PI);
    let (a, b) = (&a[..value.len()], &b[..value.len()]);
    each!(i < value.len(), [value, slope, angle], {
        let (product, c) = ((one + two * a[i]) * (one + two * b[i]), two * value[i]);
        let rest = product - c * c;
        angle[i] = c / product.sqrt();
        slope[i] = four_over_pi / rest.sqrt();
    });
    arcsines(angle);
    let scale = size * T::narrow(FRAC_2_PI);
    each!(i < value.len(), [value, angle], { value[i] = scale * angle[i] });
}

/// `asin x = π/2 − acos x`: accurate to an absolute rounding of one, which suffices for sums.
fn arcsines<T: Real>(x: &mut [T]) {
    let (one, right) = (T::one(), T::narrow(PI / 2.0));
    dispatch(
        #[inline(always)]
        || {
            for x in x.iter_mut() {
                let below = if *x < one { *x } else { one };
                *x = if below > -one { below } else { -one };
            }
        },
    );
    apply(ElementaryFunction::Acos, x);
    dispatch(
        #[inline(always)]
        || x.iter_mut().for_each(|x| *x = right - *x),
    );
}

fn waves<T: Real>(
    sine: bool,
    k: T,
    [size, rate]: [T; 2],
    value: &mut [T],
    slope: &mut [T],
    [near, far]: [&mut [T]; 2],
    [a, b]: [&[T]; 2],
) {
    let half = T::narrow(0.5);
    let (a, b) = (&a[..value.len()], &b[..value.len()]);
    each!(i < value.len(), [value, near, far], {
        let (mean, c) = (half * k * (a[i] + b[i]), k * value[i]);
        near[i] = c - mean;
        far[i] = -c - mean;
    });
    apply(ElementaryFunction::Exp, near);
    apply(ElementaryFunction::Exp, far);
    let sign = if sine { -T::one() } else { T::one() };
    each!(i < value.len(), [value, slope, near, far], {
        value[i] = half * size * (near[i] + sign * far[i]);
        slope[i] = half * rate * (near[i] - sign * far[i]);
    });
}

fn bell<T: Real>(k: T, [size, rate]: [T; 2], value: &mut [T], slope: &mut [T], [a, b]: [&[T]; 2]) {
    let (one, two) = (T::one(), T::narrow(2.0) * k);
    let (a, b) = (&a[..value.len()], &b[..value.len()]);
    each!(i < value.len(), [value, slope], {
        let c = two * value[i];
        let rest = (one + two * a[i]) * (one + two * b[i]) - c * c;
        let inverse = one / rest.sqrt();
        value[i] = size * inverse;
        slope[i] = rate * (c + c) * inverse / rest;
    });
}

fn gelu<T: Real>(k: T, [size, rate]: [T; 2], value: &mut [T], slope: &mut [T], angle: &mut [T], [a, b]: [&[T]; 2]) {
    let one = T::one();
    let (a, b) = (&a[..value.len()], &b[..value.len()]);
    each!(i < value.len(), [value, angle], {
        angle[i] = k * value[i] / ((one + k * a[i]) * (one + k * b[i])).sqrt();
    });
    arcsines(angle);
    let (quarter, turn) = (T::narrow(0.25), T::narrow(0.5 * FRAC_1_PI));
    each!(i < value.len(), [value, slope, angle], {
        let (a, b, c) = (k * a[i], k * b[i], k * value[i]);
        let (whole, product) = ((one + a) * (one + b), a * b);
        let rest = whole - c * c;
        let root = rest.sqrt();
        value[i] = size * (quarter * c + turn * (c * angle[i] + (c * c + product * rest) / (whole * root)));
        let inner = one / rest + (one - product) / whole + one;
        slope[i] = rate * (quarter + turn * (angle[i] + c / root * inner));
    });
}

/// The coefficients of `(ab)^{(n−k)/2} c^k` in `E[uⁿvⁿ]`, for `k = n, n − 2, …`.
fn coefficients<T: Real>(n: u32) -> Vec<T> {
    let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
    (0..=n / 2)
        .map(|pairs| {
            let ways = factorial(n) / (factorial(pairs) * f64::from(2u32.pow(pairs)));
            T::narrow(ways * ways / factorial(n - 2 * pairs))
        })
        .collect()
}

fn monomial<T: Real>(n: u32, k: T, [size, rate]: [T; 2], value: &mut [T], slope: &mut [T], [a, b]: [&[T]; 2]) {
    let (own, below) = (coefficients::<T>(n), coefficients::<T>(n - 1));
    let rate = rate * T::narrow(f64::from(n * n));
    let (a, b) = (&a[..value.len()], &b[..value.len()]);
    each!(i < value.len(), [value, slope], {
        let (product, c) = (k * a[i] * k * b[i], k * value[i]);
        value[i] = size * polynomial(&own, n, product, c);
        slope[i] = rate * polynomial(&below, n - 1, product, c);
    });
}

/// `Σ_j coefficients[j] (ab)^j c^{degree − 2j}`, by Horner's rule in `ab`.
#[inline(always)]
fn polynomial<T: Real>(coefficients: &[T], degree: u32, product: T, c: T) -> T {
    let (mut sum, mut power) = (T::zero(), T::one());
    for &coefficient in coefficients.iter().rev() {
        sum = sum * product + coefficient * power;
        power *= c * c;
    }
    if degree % 2 == 1 { sum * c } else { sum }
}
