//! `BatchNorm`: an affine map per channel, with given mean and variance.
//!
//! `y = γ (x − μ) / √(v + ε) + β`, channels along axis 1. The statistics `μ` and `v` are shared operands like `γ` and
//! `β`. What they are is not the primitive's business: at inference they are running statistics, in training those of
//! the batch, which the trainer computes. Its cotangents of `μ` and `v` are what the trainer needs for the derivative
//! through the statistics. With `r = 1/√(v + ε)`, summed over a channel:
//!
//! | operand | cotangent |
//! |---|---|
//! | `x` | `γ r dy` |
//! | `γ` | `r Σ dy (x − μ)` |
//! | `β` | `Σ dy` |
//! | `μ` | `−γ r Σ dy` |
//! | `v` | `−½ γ r³ Σ dy (x − μ)` |

use super::axes::{check_rank, fold2};
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use crate::shape::numel;
use mercer_linalg::simd::dispatch;

/// `y = γ (x − μ) / √(v + ε) + β` of the operands `x, γ, β, μ, v`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNorm {
    /// What is added to the variance, `ε`.
    pub epsilon: f64,
}

/// The operands by their positions.
const SCALE: usize = 1;
const SHIFT: usize = 2;
const MEAN: usize = 3;
const VARIANCE: usize = 4;

impl Op for BatchNorm {
    fn name(&self) -> &'static str {
        "BatchNorm"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let [x, rest @ ..] = inputs else { return Err(InferError::Shape("needs five operands".into())) };
        if rest.len() != VARIANCE || x.rank() < 2 {
            let text = "needs [n, channels, …] and four vectors over the channels";
            return Err(InferError::Shape(text.into()));
        }
        check_rank(x.rank())?;
        if rest.iter().any(|meta| meta.is_batched() || meta.shape != [x.shape[1]]) {
            let text = format!("needs vectors over {} channels that all samples share", x.shape[1]);
            return Err(InferError::Shape(text));
        }
        let batch = x.batch.as_ref().map(|batch| batch.not_along(&[1])).transpose()?;
        Ok(Meta { shape: x.shape.clone(), batch })
    }

    fn flops(&self, _: &[&Meta], output: &Meta) -> u64 {
        (output.numel() as u64).saturating_mul(3)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// How the channels lie in memory: `[…, channels, inner]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channels {
    pub(crate) count: usize,
    inner: usize,
}

impl Channels {
    /// Of values of this shape.
    pub(crate) fn new(shape: &[usize]) -> Self {
        Self { count: shape[1], inner: numel(&shape[2..]) }
    }

    /// Calls `run(channel, range)` for every run of elements of one channel.
    #[inline(always)]
    fn runs(self, length: usize, mut run: impl FnMut(usize, std::ops::Range<usize>)) {
        for (index, start) in (0..length).step_by(self.inner.max(1)).enumerate() {
            run(index % self.count, start..start + self.inner);
        }
    }

    /// Adds `Σ term(a, b, m)` over each channel to `sum`, with `m` the channel's number.
    #[inline(always)]
    fn add<T: Element>(self, a: &[T], b: &[T], m: &[T], sum: &mut [T], term: impl Fn(T, T, T) -> T) {
        dispatch(
            #[inline(always)]
            || {
                if self.inner == 1 {
                    for (a, b) in a.chunks_exact(self.count).zip(b.chunks_exact(self.count)) {
                        let terms = a.iter().zip(b).zip(m);
                        sum.iter_mut().zip(terms).for_each(|(sum, ((&a, &b), &m))| *sum += term(a, b, m));
                    }
                    return;
                }
                self.runs(
                    a.len(),
                    #[inline(always)]
                    |channel, at| {
                        let m = m[channel];
                        sum[channel] +=
                            fold2(&a[at.clone()], &b[at], T::zero(), |a, b| term(a, b, m), |sum, x| sum + x);
                    },
                );
            },
        );
    }

    /// `y = map(y, x, first, second, third)`, the last three being the channel's numbers.
    #[inline(always)]
    fn map<T: Element>(self, x: &[T], y: &mut [T], [a, b, c]: [&[T]; 3], map: impl Fn(T, T, [T; 3]) -> T) {
        dispatch(
            #[inline(always)]
            || {
                if self.inner == 1 {
                    for (x, y) in x.chunks_exact(self.count).zip(y.chunks_exact_mut(self.count)) {
                        let numbers = a.iter().zip(b).zip(c);
                        for ((y, &x), ((&a, &b), &c)) in y.iter_mut().zip(x).zip(numbers) {
                            *y = map(*y, x, [a, b, c]);
                        }
                    }
                    return;
                }
                self.runs(
                    x.len(),
                    #[inline(always)]
                    |channel, at| {
                        let numbers = [a[channel], b[channel], c[channel]];
                        y[at.clone()].iter_mut().zip(&x[at]).for_each(|(y, &x)| *y = map(*y, x, numbers));
                    },
                );
            },
        );
    }

    /// Adds the sums over each channel to `sum`.
    pub(crate) fn sums<T: Element>(self, x: &[T], sum: &mut [f64]) {
        self.add_wide(x, sum, |x, _| x);
    }

    /// Adds `Σ (x − mean)²` over each channel to `sum`.
    pub(crate) fn squares<T: Element>(self, x: &[T], mean: &[T], sum: &mut [f64]) {
        self.add_wide(x, sum, |x, channel| (x - mean[channel]) * (x - mean[channel]));
    }

    /// Adds `Σ term(x, channel)` in double precision: a batch may have millions of elements per channel.
    #[inline(always)]
    fn add_wide<T: Element>(self, x: &[T], sum: &mut [f64], term: impl Fn(T, usize) -> T) {
        dispatch(
            #[inline(always)]
            || {
                if self.inner == 1 {
                    for x in x.chunks_exact(self.count) {
                        let terms = sum.iter_mut().zip(x).enumerate();
                        terms.for_each(|(channel, (sum, &x))| *sum += term(x, channel).wide());
                    }
                    return;
                }
                self.runs(
                    x.len(),
                    #[inline(always)]
                    |channel, at| {
                        let x = &x[at];
                        sum[channel] += fold2(x, x, T::zero(), |x, _| term(x, channel), |sum, x| sum + x).wide();
                    },
                );
            },
        );
    }

    /// `dx += constant + slope (x − mean)` per channel: the derivative through the statistics.
    pub(crate) fn add_through<T: Element>(self, x: &[T], mean: &[T], [constant, slope]: [&[T]; 2], dx: &mut [T]) {
        self.map(x, dx, [mean, constant, slope], |dx, x, [mean, constant, slope]| dx + constant + slope * (x - mean));
    }
}

/// Numbers per channel.
fn per_channel<T: Element>(to: &mut [T], of: impl Fn(usize) -> T) {
    to.iter_mut().enumerate().for_each(|(channel, to)| *to = of(channel));
}

impl BatchNorm {
    /// `1/√(v + ε)`.
    fn inverse<T: Element>(&self, variance: &[T], to: &mut [T]) {
        let epsilon = T::narrow(self.epsilon);
        per_channel(to, |channel| T::one() / (variance[channel] + epsilon).sqrt());
    }

    /// Adds the cotangent of a vector over the channels to `dx`, for some elements of `x` and `dy`.
    fn add_cotangent<T: Element>(
        &self,
        call: &Call<'_, T>,
        (x, dy): (&[T], &[T]),
        which: usize,
        dx: &mut [T],
        [inverse, sum]: [&mut [T]; 2],
    ) {
        let channels = Channels::new(call.arg(0).shape);
        let (mean, scale) = (call.arg(MEAN).data, call.arg(SCALE).data);
        sum.fill(T::zero());
        if matches!(which, SCALE | VARIANCE) {
            channels.add(x, dy, mean, sum, |x, dy, mean| dy * (x - mean));
        } else {
            channels.add(dy, dy, mean, sum, |dy, _, _| dy);
        }
        self.inverse(call.arg(VARIANCE).data, inverse);
        let half = T::narrow(0.5);
        for (channel, dx) in dx.iter_mut().enumerate() {
            let (r, scale) = (inverse[channel], scale[channel]);
            *dx += sum[channel]
                * match which {
                    SCALE => r,
                    SHIFT => T::one(),
                    MEAN => -scale * r,
                    _ => -half * scale * r * r * r,
                };
        }
    }
}

impl<T: Element> OpKernel<T> for BatchNorm {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], scratch: &mut Scratch<T>) {
        let (x, channels) = (call.arg(0), Channels::new(call.arg(0).shape));
        let [inverse, factor] = scratch.take([channels.count; 2]);
        self.inverse(call.arg(VARIANCE).data, inverse);
        per_channel(factor, |channel| inverse[channel] * call.arg(SCALE).data[channel]);
        let numbers = [call.arg(MEAN).data, factor, call.arg(SHIFT).data];
        channels.map(x.data, y, numbers, |_, x, [mean, factor, shift]| (x - mean) * factor + shift);
    }

    fn vjp(
        &self,
        call: &Call<'_, T>,
        dy: &[T],
        seeds: usize,
        which: usize,
        dx: &mut [T],
        add: bool,
        scratch: &mut Scratch<T>,
    ) {
        let (x, channels) = (call.arg(0), Channels::new(call.arg(0).shape));
        let [inverse, factor] = scratch.take([channels.count; 2]);
        if which == 0 {
            self.inverse(call.arg(VARIANCE).data, inverse);
            per_channel(factor, |channel| inverse[channel] * call.arg(SCALE).data[channel]);
            let factors: [&[T]; 3] = [factor; 3];
            return match add {
                true => channels.map(dy, dx, factors, |dx, dy, [factor, ..]| dx + dy * factor),
                false => channels.map(dy, dx, factors, |_, dy, [factor, ..]| dy * factor),
            };
        }
        if !add {
            dx.fill(T::zero());
        }
        let (size, own) = (x.numel(), channels.count);
        for sample in 0..call.samples {
            for at in sample * seeds..(sample + 1) * seeds {
                let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own..(at + 1) * own]);
                self.add_cotangent(call, (x.sample(sample), dy), which, dx, [inverse, factor]);
            }
        }
    }

    fn accumulate(&self, call: &Call<'_, T>, dy: &[T], which: usize, dx: &mut [T], scratch: &mut Scratch<T>) -> bool {
        let x = call.arg(0);
        let [inverse, sum] = scratch.take([x.shape[1]; 2]);
        self.add_cotangent(call, (x.data, dy), which, dx, [inverse, sum]);
        true
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], scratch: &mut Scratch<T>) {
        let (x, channels) = (call.arg(0), Channels::new(call.arg(0).shape));
        let [inverse, constant, slope] = scratch.take([channels.count; 3]);
        let (mean, scale) = (call.arg(MEAN).data, call.arg(SCALE).data);
        self.inverse(call.arg(VARIANCE).data, inverse);
        dy.fill(T::zero());
        if let Some(dx) = tangents.operand(call, 0) {
            per_channel(constant, |channel| inverse[channel] * scale[channel]);
            channels.map(dx.data, dy, [constant; 3], |_, dx, [factor, ..]| dx * factor);
        }
        // The tangents of the vectors give constant + slope (x − μ).
        let [d_scale, d_shift, d_mean, d_variance] =
            [SCALE, SHIFT, MEAN, VARIANCE].map(|which| tangents.operand(call, which));
        let (zero, half) = (T::zero(), T::narrow(0.5));
        let number =
            |tangent: &Option<super::Arg<'_, T>>, channel: usize| tangent.map_or(zero, |arg| arg.data[channel]);
        for channel in 0..channels.count {
            let (r, scale) = (inverse[channel], scale[channel]);
            constant[channel] = number(&d_shift, channel) - scale * r * number(&d_mean, channel);
            slope[channel] = r * number(&d_scale, channel) - half * scale * r * r * r * number(&d_variance, channel);
        }
        channels.add_through(x.data, mean, [constant, slope], dy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared, values};

    #[test]
    fn conforms() {
        for shape in [&[1, 3][..], &[1, 2, 3, 5], &[1, 3, 19], &[2, 3, 4], &[2, 5]] {
            let vector = || shared(&shape[1..2]);
            let rest = [vector(), vector(), vector(), vector().within(|x| 1.5 + x)];
            for x in [batched(shape), shared(shape)] {
                let operands: Vec<_> = std::iter::once(x).chain(rest.clone()).collect();
                check(BatchNorm { epsilon: 1e-3 }, &operands);
            }
        }
    }

    #[test]
    fn is_the_formula() {
        let shapes: [&[usize]; 5] = [&[1, 2, 2], &[2], &[2], &[2], &[2]];
        let operands: [&[f64]; 5] = [&[1.0, 3.0, -1.0, 5.0], &[2.0, 1.0], &[0.5, 0.0], &[1.0, 2.0], &[3.0, 8.0]];
        let y = values(BatchNorm { epsilon: 1.0 }, &shapes, &operands);
        assert_eq!(y, [0.5, 2.5, -1.0, 1.0]);
    }
}
