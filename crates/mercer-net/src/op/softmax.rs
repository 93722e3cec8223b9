//! `Softmax` and its logarithm along an axis.
//!
//! `yᵢ = exp(xᵢ − m) / Σⱼ exp(xⱼ − m)` with `m = max x`, so that nothing overflows. From `y` alone,
//! `dx = y (dy − ⟨dy, y⟩)`; for the logarithm, with `p = exp(y)`, `dx = dy − p Σ dy` and `dy = dx − ⟨p, dx⟩`.

use super::axes::{check_axis, dot, fold, only, total};
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use crate::shape::around;
use mercer_linalg::elementary::{exp, exp_in_place};
use mercer_linalg::simd::dispatch;

/// Softmax along an axis, or its logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Softmax {
    /// The axis.
    pub axis: usize,
    /// Whether to compute the logarithm.
    pub log: bool,
}

impl Op for Softmax {
    fn name(&self) -> &'static str {
        "Softmax"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        check_axis(self.axis, x.rank())?;
        let batch = x.batch.as_ref().map(|batch| batch.not_along(&[self.axis])).transpose()?;
        Ok(Meta { shape: x.shape.clone(), batch })
    }

    fn flops(&self, _: &[&Meta], output: &Meta) -> u64 {
        (output.numel() as u64).saturating_mul(20)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[inline(always)]
fn larger<T: Element>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// One row.
#[inline(always)]
fn row<T: Element>(log: bool, x: &[T], y: &mut [T]) {
    let max = fold(x, T::neg_infinity(), larger);
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = x - max);
    exp_in_place(y);
    let sum = total(y);
    if log {
        let shift = max + sum.ln();
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = x - shift);
    } else {
        let scale = T::one() / sum;
        y.iter_mut().for_each(|y| *y *= scale);
    }
}

/// `inner` rows that lie across a block `[size, inner]`; `max` and `sum` have a number for each.
#[inline(always)]
fn columns<T: Element>(log: bool, x: &[T], y: &mut [T], max: &mut [T], sum: &mut [T]) {
    let inner = max.len();
    max.fill(T::neg_infinity());
    sum.fill(T::zero());
    for x in x.chunks_exact(inner) {
        max.iter_mut().zip(x).for_each(|(max, &x)| *max = larger(*max, x));
    }
    for (x, y) in x.chunks_exact(inner).zip(y.chunks_exact_mut(inner)) {
        y.iter_mut().zip(x).zip(&*max).for_each(|((y, &x), &max)| *y = x - max);
        exp_in_place(y);
        sum.iter_mut().zip(&*y).for_each(|(sum, &y)| *sum += y);
    }
    if log {
        max.iter_mut().zip(&*sum).for_each(|(max, &sum)| *max += sum.ln());
    } else {
        sum.iter_mut().for_each(|sum| *sum = T::one() / *sum);
    }
    for (x, y) in x.chunks_exact(inner).zip(y.chunks_exact_mut(inner)) {
        if log {
            y.iter_mut().zip(x).zip(&*max).for_each(|((y, &x), &shift)| *y = x - shift);
        } else {
            y.iter_mut().zip(&*sum).for_each(|(y, &scale)| *y *= scale);
        }
    }
}

/// `to = a (v − ⟨v, b⟩)` per row, or added to it; factors that are missing are 1.
#[inline(always)]
fn project_row<T: Element, const ADD: bool>(v: &[T], a: Option<&[T]>, b: Option<&[T]>, from: bool, to: &mut [T]) {
    let sum = b.map_or_else(|| total(v), |b| dot(v, b));
    let put = |to: &mut T, x: T| if ADD { *to += x } else { *to = x };
    match a {
        None => to.iter_mut().zip(v).for_each(|(to, &v)| put(to, v - sum)),
        Some(a) if from => to.iter_mut().zip(v).zip(a).for_each(|((to, &v), &a)| put(to, v - a * sum)),
        Some(a) => to.iter_mut().zip(v).zip(a).for_each(|((to, &v), &a)| put(to, a * (v - sum))),
    }
}

/// The three derivatives, all of the form "subtract a sum".
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// `p (v − ⟨v, p⟩)`: softmax, both ways.
    Plain,
    /// `v − p Σ v`: the logarithm, backwards.
    LogReverse,
    /// `v − ⟨v, p⟩`: the logarithm, forwards.
    LogForward,
}

impl Form {
    /// Over a block `[size, inner]` of probabilities `p`; `sum` has `inner` numbers.
    #[inline(always)]
    fn block<T: Element, const ADD: bool>(self, p: &[T], v: &[T], to: &mut [T], sum: &mut [T]) {
        let inner = sum.len();
        if inner == 1 {
            return match self {
                Self::Plain => project_row::<T, ADD>(v, Some(p), Some(p), false, to),
                Self::LogReverse => project_row::<T, ADD>(v, Some(p), None, true, to),
                Self::LogForward => project_row::<T, ADD>(v, None, Some(p), false, to),
            };
        }
        sum.fill(T::zero());
        for (p, v) in p.chunks_exact(inner).zip(v.chunks_exact(inner)) {
            if self == Self::LogReverse {
                sum.iter_mut().zip(v).for_each(|(sum, &v)| *sum += v);
            } else {
                sum.iter_mut().zip(v).zip(p).for_each(|((sum, &v), &p)| *sum += v * p);
            }
        }
        let rows = p.chunks_exact(inner).zip(v.chunks_exact(inner)).zip(to.chunks_exact_mut(inner));
        for ((p, v), to) in rows {
            for (((to, &v), &p), &sum) in to.iter_mut().zip(v).zip(p).zip(&*sum) {
                let x = match self {
                    Self::Plain => p * (v - sum),
                    Self::LogReverse => v - p * sum,
                    Self::LogForward => v - sum,
                };
                if ADD { *to += x } else { *to = x }
            }
        }
    }

    /// Over all blocks of one sample.
    fn sample<T: Element>(self, p: &[T], v: &[T], to: &mut [T], add: bool, block: usize, sum: &mut [T]) {
        dispatch(
            #[inline(always)]
            || {
                for ((p, v), to) in p.chunks_exact(block).zip(v.chunks_exact(block)).zip(to.chunks_exact_mut(block)) {
                    if add {
                        self.block::<T, true>(p, v, to, sum);
                    } else {
                        self.block::<T, false>(p, v, to, sum);
                    }
                }
            },
        );
    }
}

impl Softmax {
    /// The probabilities of a sample's result: itself, or its exponential in `memory`.
    fn probabilities<'a, T: Element>(&self, y: &'a [T], memory: &'a mut [T]) -> &'a [T] {
        if !self.log {
            return y;
        }
        exp(y, memory);
        memory
    }
}

impl<T: Element> OpKernel<T> for Softmax {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], scratch: &mut Scratch<T>) {
        let x = call.arg(0);
        let (_, size, inner) = around(x.shape, self.axis);
        let block = (size * inner).max(1);
        let [max, sum] = scratch.take([inner, inner]);
        // Samples are treated as further rows.
        dispatch(
            #[inline(always)]
            || {
                for (x, y) in x.data.chunks_exact(block).zip(y.chunks_exact_mut(block)) {
                    if inner == 1 {
                        row(self.log, x, y);
                    } else {
                        columns(self.log, x, y, max, sum);
                    }
                }
            },
        );
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
        let y = call.result();
        let (size, (_, length, inner)) = (y.numel(), around(y.shape, self.axis));
        let [sum, memory] = scratch.take([inner, if self.log { size } else { 0 }]);
        let form = if self.log { Form::LogReverse } else { Form::Plain };
        for sample in 0..call.samples {
            let p = self.probabilities(y.sample(sample), memory);
            for at in sample * seeds..(sample + 1) * seeds {
                let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * size..(at + 1) * size]);
                form.sample(p, dy, dx, add, (length * inner).max(1), sum);
            }
        }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], scratch: &mut Scratch<T>) {
        let (Some(tangent), y) = (tangents.operand(call, 0), call.result()) else { return };
        let (size, (_, length, inner)) = (y.numel(), around(y.shape, self.axis));
        let [sum, memory] = scratch.take([inner, if self.log { size } else { 0 }]);
        let form = if self.log { Form::LogForward } else { Form::Plain };
        for sample in 0..call.n_results() {
            let p = self.probabilities(y.sample(sample), memory);
            let dy = &mut dy[sample * size..(sample + 1) * size];
            form.sample(p, tangent.sample(sample), dy, false, (length * inner).max(1), sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        for log in [false, true] {
            for (axis, shape) in
                [(0, vec![5]), (1, vec![2, 3]), (0, vec![3, 4]), (1, vec![2, 1, 3]), (2, vec![2, 2, 37])]
            {
                check(Softmax { axis, log }, &[batched(&shape)]);
                check(Softmax { axis, log }, &[shared(&shape)]);
            }
        }
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let mut y = [0.0f32; 3];
        row(false, &[1000.0, 1000.0, -1000.0], &mut y);
        assert_eq!(y, [0.5, 0.5, 0.0]);
        row(true, &[1000.0, 0.0, -1000.0], &mut y);
        assert_eq!(y, [0.0, -1000.0, -2000.0]);
    }
}
