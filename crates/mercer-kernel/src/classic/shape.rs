//! Turns inner products or distances into kernel values, in place and many at a time.

use super::catalogue::Family;
use super::expression::Term;
use mercer_linalg::Scalar;
use mercer_linalg::elementary::{acos_in_place, exp_in_place, ln_in_place};
use mercer_linalg::simd::dispatch;

/// Numbers that are processed together: they and their scratch memory stay in the first-level cache.
const CHUNK: usize = 512;

/// Replaces inner products, squared or absolute distances by the values of the kernel. Cosines are unchanged, and
/// [`arc`] computes arc-cosine kernels.
pub(super) fn values<T: Scalar>(term: &Term, x: &mut [T]) {
    match term.spec.family {
        Family::Linear | Family::Cosine | Family::ArcCosine => {}
        Family::Polynomial => x.chunks_mut(CHUNK).for_each(|chunk| polynomial(term, chunk)),
        Family::Rbf | Family::Periodic => {
            let half = T::narrow(-0.5);
            map(x, |square| half * square);
            exp_in_place(x);
        }
        Family::Laplacian => {
            map(x, |distance| -distance);
            exp_in_place(x);
        }
        Family::Matern12 => {
            map(x, |square| -square.sqrt());
            exp_in_place(x);
        }
        Family::Matern32 => {
            let root = T::narrow(3f64.sqrt());
            times_exponential(x, |square| root * square.sqrt(), |r| T::one() + r);
        }
        Family::Matern52 => {
            let (root, third) = (T::narrow(5f64.sqrt()), T::narrow(1.0 / 3.0));
            times_exponential(x, |square| root * square.sqrt(), |r| T::one() + r + third * r * r);
        }
        Family::RationalQuadratic => {
            let alpha = T::narrow(term.one("alpha"));
            let over = T::narrow(0.5 / term.one("alpha"));
            x.chunks_mut(CHUNK).for_each(|chunk| {
                logs_of_one_plus(chunk, over);
                map(chunk, |log| -alpha * log);
            });
            exp_in_place(x);
        }
    }
}

#[inline(always)]
fn map<T: Scalar>(x: &mut [T], f: impl Fn(T) -> T) {
    dispatch(
        #[inline(always)]
        || x.iter_mut().for_each(|x| *x = f(*x)),
    );
}

/// `x = p(r) e^{−r}` with `r = radius(x)`.
#[inline(always)]
fn times_exponential<T: Scalar>(x: &mut [T], radius: impl Fn(T) -> T, p: impl Fn(T) -> T) {
    let mut scratch = [T::zero(); CHUNK];
    for chunk in x.chunks_mut(CHUNK) {
        let scratch = &mut scratch[..chunk.len()];
        map(chunk, &radius);
        scratch.iter_mut().zip(&*chunk).for_each(|(to, &r)| *to = -r);
        exp_in_place(scratch);
        dispatch(
            #[inline(always)]
            || chunk.iter_mut().zip(&*scratch).for_each(|(r, &e)| *r = p(*r) * e),
        );
    }
}

/// `x = ln(1 + over·x)`, with all digits if that is small: `ln b · u/(b − 1)` with `b = 1 + u` as rounded (Kahan).
fn logs_of_one_plus<T: Scalar>(x: &mut [T], over: T) {
    let mut scratch = [T::zero(); CHUNK];
    let scratch = &mut scratch[..x.len()];
    scratch.iter_mut().zip(&*x).for_each(|(to, &x)| *to = T::one() + over * x);
    ln_in_place(scratch);
    dispatch(
        #[inline(always)]
        || {
            for (x, &log) in x.iter_mut().zip(&*scratch) {
                let u = over * *x;
                let rounded = (T::one() + u) - T::one();
                *x = if rounded > T::zero() { log * (u / rounded) } else { u };
            }
        },
    );
}

/// `(scale·x + bias)^degree` by repeated squaring.
fn polynomial<T: Scalar>(term: &Term, x: &mut [T]) {
    let (scale, bias) = (T::narrow(term.one("scale")), T::narrow(term.one("bias")));
    let mut degree = term.one("degree") as u32;
    let mut power = [T::one(); CHUNK];
    let power = &mut power[..x.len()];
    map(x, |x| scale * x + bias);
    dispatch(
        #[inline(always)]
        || {
            while degree > 0 {
                if degree & 1 == 1 {
                    power.iter_mut().zip(&*x).for_each(|(to, &x)| *to *= x);
                }
                degree >>= 1;
                if degree > 0 {
                    x.iter_mut().for_each(|x| *x *= *x);
                }
            }
        },
    );
    x.copy_from_slice(power);
}

/// Replaces signed squared chords by `aⁿ bⁿ J_n(θ)/π`, with the lengths `a` of one vector and `b` of the others
/// (Cho and Saul 2009, equations 4 to 7): `J₀ = φ`, `J₁ = sin θ + φ cos θ`, `J₂ = 3 sin θ cos θ + φ (1 + 2 cos² θ)`, where
/// `φ = π − θ`.
pub(super) fn arc<T: Scalar>(order: u32, x: &mut [T], length: T, lengths: &[T]) {
    let (one, two, three) = (T::one(), T::narrow(2.0), T::narrow(3.0));
    let (half, quarter, pi) = (T::narrow(0.5), T::narrow(0.25), T::narrow(std::f64::consts::PI));
    let over = one / pi;
    let mut scratch = [T::zero(); CHUNK];
    for (chunk, lengths) in x.chunks_mut(CHUNK).zip(lengths.chunks(CHUNK)) {
        let scratch = &mut scratch[..chunk.len()];
        dispatch(
            #[inline(always)]
            || scratch.iter_mut().zip(&*chunk).for_each(|(to, &x)| *to = (half * x.abs().sqrt()).min(one)),
        );
        acos_in_place(scratch);
        dispatch(
            #[inline(always)]
            || {
                for ((x, &angle), &other) in chunk.iter_mut().zip(&*scratch).zip(lengths) {
                    let (square, blunt) = (x.abs(), x.is_sign_negative());
                    // Half of the chord is the sine of half of the angle (or of its supplement, if that is smaller).
                    let phi = if blunt { pi - two * angle } else { two * angle };
                    let cosine = if blunt { half * square - one } else { one - half * square };
                    let sine = (square * (one - quarter * square)).max(T::zero()).sqrt();
                    let both = length * other;
                    *x = over
                        * match order {
                            0 => phi,
                            1 => both * (sine + phi * cosine),
                            _ => both * both * (three * sine * cosine + phi * (one + two * cosine * cosine)),
                        };
                }
            },
        );
    }
}
