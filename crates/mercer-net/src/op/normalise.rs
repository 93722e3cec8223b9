//! `Normalise`: layer, instance, group and RMS normalisation without their affine parts.
//!
//! Over each group of elements that differ only along the axes, `y = (x − μ) / σ` with `σ² = mean (x − μ)² + ε` (the
//! biased variance); for RMS `μ = 0`. The Jacobian is symmetric, `J v = (v − mean v − y · mean(v·y)) / σ` (without
//! `mean v` for RMS), so both derivative readings are one function. It reads `x` only for `σ`, once per sample for any
//! number of seeds.

use super::axes::{check_axis, dot, fold, groups, only, total};
use super::loops::Loops;
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use mercer_linalg::simd::dispatch;

/// Normalises groups of elements to mean zero and variance one, or only to mean square one.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalise {
    /// The axes a group extends over.
    pub axes: Vec<usize>,
    /// What is added to the variance.
    pub epsilon: f64,
    /// Whether the mean is subtracted; RMS normalisation if not.
    pub centred: bool,
}

impl Op for Normalise {
    fn name(&self) -> &'static str {
        "Normalise"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        self.axes.iter().try_for_each(|&axis| check_axis(axis, x.rank()))?;
        let batch = x.batch.as_ref().map(|batch| batch.not_along(&self.axes)).transpose()?;
        Ok(Meta { shape: x.shape.clone(), batch })
    }

    fn flops(&self, _: &[&Meta], output: &Meta) -> u64 {
        (output.numel() as u64).saturating_mul(8)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// How one sample is normalised.
struct Plan<T> {
    /// The groups are rows: the axes are the innermost ones.
    rows: bool,
    loops: Loops<1>,
    groups: usize,
    members: usize,
    epsilon: T,
    centred: bool,
}

impl Normalise {
    fn plan<T: Element>(&self, shape: &[usize]) -> Plan<T> {
        let (loops, groups, members) = groups(shape, &self.axes);
        let wide = |axis: &usize| shape[*axis] > 1;
        let first = (0..shape.len()).filter(wide).find(|axis| self.axes.contains(axis)).unwrap_or(shape.len());
        let rows = (first..shape.len()).filter(wide).all(|axis| self.axes.contains(&axis));
        Plan { rows, loops, groups, members, epsilon: T::narrow(self.epsilon), centred: self.centred }
    }
}

impl<T: Element> Plan<T> {
    fn inverse(&self, sum_of_squares: T) -> T {
        T::one() / (sum_of_squares / T::narrow(self.members as f64) + self.epsilon).sqrt()
    }

    /// Mean and `1/σ` of every group.
    fn statistics(&self, x: &[T], mean: &mut [T], inverse: &mut [T]) {
        let (zero, count) = (T::zero(), T::narrow(self.members as f64));
        if self.rows {
            return dispatch(
                #[inline(always)]
                || {
                    let rows = x.chunks_exact(self.members.max(1));
                    for ((x, mean), inverse) in rows.zip(&mut *mean).zip(&mut *inverse) {
                        let centre = if self.centred { total(x) / count } else { zero };
                        let term = |sum: T, x: T| sum + x;
                        *mean = centre;
                        *inverse = self.inverse(if self.centred {
                            super::axes::fold2(x, x, zero, |x, _| (x - centre) * (x - centre), term)
                        } else {
                            dot(x, x)
                        });
                    }
                },
            );
        }
        mean.fill(zero);
        if self.centred {
            self.each(
                #[inline(always)]
                |at, group| mean[group] += x[at],
            );
            mean.iter_mut().for_each(|mean| *mean /= count);
        }
        inverse.fill(zero);
        self.each(
            #[inline(always)]
            |at, group| inverse[group] += (x[at] - mean[group]) * (x[at] - mean[group]),
        );
        inverse.iter_mut().for_each(|inverse| *inverse = self.inverse(*inverse));
    }

    /// Calls `body(element, group)` in order.
    #[inline(always)]
    fn each(&self, mut body: impl FnMut(usize, usize)) {
        self.loops.runs(
            #[inline(always)]
            |start, length, [at], [stride]| (0..length).for_each(|i| body(start + i, at + i * stride)),
        );
    }

    fn values(&self, x: &[T], y: &mut [T], mean: &mut [T], inverse: &mut [T]) {
        self.statistics(x, mean, inverse);
        if !self.rows {
            return self.each(
                #[inline(always)]
                |at, group| y[at] = (x[at] - mean[group]) * inverse[group],
            );
        }
        dispatch(
            #[inline(always)]
            || {
                let members = self.members.max(1);
                let rows = x.chunks_exact(members).zip(y.chunks_exact_mut(members));
                for ((x, y), (&mean, &inverse)) in rows.zip(mean.iter().zip(&*inverse)) {
                    y.iter_mut().zip(x).for_each(|(y, &x)| *y = (x - mean) * inverse);
                }
            },
        );
    }

    /// `to = J v`, or added to it; `means` and `slopes` are memory for one number per group.
    fn derivative<const ADD: bool>(
        &self,
        y: &[T],
        v: &[T],
        to: &mut [T],
        inverse: &[T],
        [means, slopes]: [&mut [T]; 2],
    ) {
        let (zero, count) = (T::zero(), T::narrow(self.members as f64));
        let put = |to: &mut T, x: T| if ADD { *to += x } else { *to = x };
        if self.rows {
            return dispatch(
                #[inline(always)]
                || {
                    let members = self.members.max(1);
                    let rows = y.chunks_exact(members).zip(v.chunks_exact(members)).zip(to.chunks_exact_mut(members));
                    for (((y, v), to), &inverse) in rows.zip(inverse) {
                        let mean = if self.centred { fold(v, zero, |a, b| a + b) / count } else { zero };
                        let slope = dot(v, y) / count;
                        let terms = to.iter_mut().zip(v).zip(y);
                        terms.for_each(|((to, &v), &y)| put(to, (v - mean - y * slope) * inverse));
                    }
                },
            );
        }
        means.fill(zero);
        slopes.fill(zero);
        self.each(
            #[inline(always)]
            |at, group| {
                means[group] += v[at];
                slopes[group] += v[at] * y[at];
            },
        );
        means.iter_mut().for_each(|mean| *mean = if self.centred { *mean / count } else { zero });
        slopes.iter_mut().for_each(|slope| *slope /= count);
        self.each(
            #[inline(always)]
            |at, group| put(&mut to[at], (v[at] - means[group] - y[at] * slopes[group]) * inverse[group]),
        );
    }
}

impl<T: Element> OpKernel<T> for Normalise {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], scratch: &mut Scratch<T>) {
        let x = call.arg(0);
        let (plan, size) = (self.plan(x.shape), x.numel());
        let [mean, inverse] = scratch.take([plan.groups; 2]);
        for sample in 0..call.n_results() {
            plan.values(x.sample(sample), &mut y[sample * size..(sample + 1) * size], mean, inverse);
        }
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
        let (plan, size) = (self.plan(x.shape), x.numel());
        let [inverse, means, slopes] = scratch.take([plan.groups; 3]);
        for sample in 0..call.samples {
            plan.statistics(x.sample(sample), means, inverse);
            for at in sample * seeds..(sample + 1) * seeds {
                let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * size..(at + 1) * size]);
                if add {
                    plan.derivative::<true>(y.sample(sample), dy, dx, inverse, [means, slopes]);
                } else {
                    plan.derivative::<false>(y.sample(sample), dy, dx, inverse, [means, slopes]);
                }
            }
        }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], scratch: &mut Scratch<T>) {
        let (Some(tangent), x, y) = (tangents.operand(call, 0), call.arg(0), call.result()) else { return };
        let (plan, size) = (self.plan(x.shape), x.numel());
        let [inverse, means, slopes] = scratch.take([plan.groups; 3]);
        for sample in 0..call.n_results() {
            plan.statistics(x.sample(sample), means, inverse);
            let dy = &mut dy[sample * size..(sample + 1) * size];
            plan.derivative::<false>(y.sample(sample), tangent.sample(sample), dy, inverse, [means, slopes]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        let cases: [(&[usize], &[usize]); 8] = [
            (&[5], &[0]),
            (&[2, 7], &[1]),
            (&[7, 2], &[0]),
            (&[1, 3, 4, 5], &[2, 3]),
            (&[1, 6, 2, 3], &[1]),
            (&[3, 1, 20], &[0, 2]),
            (&[2, 37, 1], &[1, 2]),
            (&[2, 4, 3], &[0, 1, 2]),
        ];
        for centred in [true, false] {
            for (shape, axes) in cases {
                let normalise = Normalise { axes: axes.to_vec(), epsilon: 1e-3, centred };
                check(normalise.clone(), &[batched(shape)]);
                check(normalise, &[shared(shape)]);
            }
        }
    }

    #[test]
    fn groups_have_mean_zero_and_variance_one() {
        let plan: Plan<f64> = Normalise { axes: vec![1], epsilon: 0.0, centred: true }.plan(&[2, 2]);
        let mut y = [0.0; 4];
        plan.values(&[1.0, 3.0, -5.0, 5.0], &mut y, &mut [0.0; 2], &mut [0.0; 2]);
        assert_eq!(y, [-1.0, 1.0, -1.0, 1.0]);
        let plan: Plan<f64> = Normalise { axes: vec![0], epsilon: 0.0, centred: false }.plan(&[2]);
        plan.values(&[1.0, 7.0], &mut y[..2], &mut [0.0; 1], &mut [0.0; 1]);
        assert!((y[0] - 0.2).abs() < 1e-15 && (y[1] - 1.4).abs() < 1e-15);
    }
}
