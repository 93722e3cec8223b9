//! `Reduce`: sums, means, extremes and products over axes.
//!
//! All derivatives have one form: with weights `w = ∂y/∂x` (1 for a sum, `1/n` for a mean, 1 at the first extreme, the
//! product of the other factors for a product) the cotangent is `dx = w · dy` and the tangent `dy = Σ w · dx`.

use super::axes::{fold, groups, only, reduced};
use super::binary::add_reduced;
use super::linear::clear;
use super::loops::Loops;
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use mercer_linalg::simd::dispatch;

/// Reduces over axes, which stay with size one or are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// What is computed.
    pub kind: Reduction,
    /// The axes; none of them leaves the operand as it is.
    pub axes: Vec<usize>,
    /// Whether the axes stay, with size one.
    pub keep: bool,
}

/// What a [`Reduce`] computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the functions")]
pub enum Reduction {
    Sum,
    Mean,
    /// The first one, in row-major order, has the derivative.
    Max,
    /// The first one, in row-major order, has the derivative.
    Min,
    Prod,
}

/// How one sample is reduced.
struct Plan {
    kind: Reduction,
    loops: Loops<1>,
    results: usize,
    members: usize,
}

impl Reduce {
    fn plan(&self, x_shape: &[usize]) -> Plan {
        let (loops, results, members) = groups(x_shape, &self.axes);
        Plan { kind: self.kind, loops, results, members }
    }
}

impl Op for Reduce {
    fn name(&self) -> &'static str {
        "Reduce"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        let y = reduced(x, &self.axes, self.keep)?;
        // An empty set has a sum (0), a product (1) and extremes (−∞ and ∞), but no mean.
        if self.kind == Reduction::Mean && self.axes.iter().any(|&axis| x.shape[axis] == 0) {
            return Err(InferError::Shape("the mean over an empty axis is undefined".into()));
        }
        Ok(y)
    }

    fn flops(&self, inputs: &[&Meta], _: &Meta) -> u64 {
        inputs[0].numel() as u64
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Plan {
    /// The factor that all weights have in common, if they are equal.
    fn scale<T: Element>(&self) -> Option<T> {
        match self.kind {
            Reduction::Sum => Some(T::one()),
            Reduction::Mean => Some(T::one() / T::narrow(self.members as f64)),
            _ => None,
        }
    }

    fn values<T: Element>(&self, x: &[T], y: &mut [T]) {
        match self.kind {
            Reduction::Sum | Reduction::Mean => self.fold(x, y, T::zero(), |a, b| a + b),
            Reduction::Max => self.fold(x, y, T::neg_infinity(), |a, b| if b > a { b } else { a }),
            Reduction::Min => self.fold(x, y, T::infinity(), |a, b| if b < a { b } else { a }),
            Reduction::Prod => self.fold(x, y, T::one(), |a, b| a * b),
        }
        if self.kind == Reduction::Mean {
            let count = T::narrow(self.members as f64);
            y.iter_mut().for_each(|y| *y /= count);
        }
    }

    #[inline(always)]
    fn fold<T: Element>(&self, x: &[T], y: &mut [T], identity: T, f: impl Fn(T, T) -> T + Copy) {
        y.fill(identity);
        dispatch(
            #[inline(always)]
            || {
                self.loops.runs(
                    #[inline(always)]
                    |start, length, [at], [stride]| {
                        let x = &x[start..start + length];
                        match stride {
                            0 => y[at] = f(y[at], fold(x, identity, f)),
                            1 => y[at..at + length].iter_mut().zip(x).for_each(|(y, &x)| *y = f(*y, x)),
                            _ => x.iter().enumerate().for_each(|(i, &x)| y[at + i * stride] = f(y[at + i * stride], x)),
                        }
                    },
                );
            },
        );
    }

    /// `w = ∂y/∂x`; `state` has one number per result.
    fn weights<T: Element>(&self, x: &[T], y: &[T], w: &mut [T], state: &mut [T]) {
        let (zero, one) = (T::zero(), T::one());
        state.fill(one);
        if self.kind != Reduction::Prod {
            // The state is 1 while the extreme is still to come.
            w.fill(zero);
            return self.loops.runs(|start, length, [at], [stride]| {
                let (x, w) = (&x[start..start + length], &mut w[start..start + length]);
                if stride == 0 {
                    if state[at] == one
                        && let Some(first) = x.iter().position(|&x| x == y[at])
                    {
                        (w[first], state[at]) = (one, zero);
                    }
                    return;
                }
                for (i, (w, &x)) in w.iter_mut().zip(x).enumerate() {
                    let group = at + i * stride;
                    *w = if x == y[group] { state[group] } else { zero };
                    state[group] -= *w;
                }
            });
        }
        // Products of the factors before, then of those after: exact with any number of zeros. Indices counted from the
        // end walk the same loops backwards.
        self.loops.runs(
            #[inline(always)]
            |start, length, [at], [stride]| {
                for i in 0..length {
                    let group = at + i * stride;
                    w[start + i] = state[group];
                    state[group] *= x[start + i];
                }
            },
        );
        state.fill(one);
        self.loops.runs(
            #[inline(always)]
            |start, length, [at], [stride]| {
                for i in 0..length {
                    let (group, from_end) = (self.results - 1 - (at + i * stride), x.len() - 1 - (start + i));
                    w[from_end] *= state[group];
                    state[group] *= x[from_end];
                }
            },
        );
    }

    /// `dx = w · dy`, or added to it; `w` is one number or one per element.
    fn spread<T: Element>(&self, dy: &[T], scale: T, w: Option<&[T]>, dx: &mut [T]) {
        dispatch(
            #[inline(always)]
            || {
                self.loops.runs(
                    #[inline(always)]
                    |start, length, [at], [stride]| {
                        let dx = &mut dx[start..start + length];
                        match (stride, w.map(|w| &w[start..start + length])) {
                            (0, None) => {
                                let dy = scale * dy[at];
                                dx.iter_mut().for_each(|dx| *dx += dy);
                            }
                            (0, Some(w)) => dx.iter_mut().zip(w).for_each(|(dx, &w)| *dx += w * dy[at]),
                            (1, None) => {
                                dx.iter_mut().zip(&dy[at..at + length]).for_each(|(dx, &dy)| *dx += scale * dy)
                            }
                            (_, w) => {
                                for (i, dx) in dx.iter_mut().enumerate() {
                                    *dx += w.map_or(scale, |w| w[i]) * dy[at + i * stride];
                                }
                            }
                        }
                    },
                );
            },
        );
    }
}

impl<T: Element> OpKernel<T> for Reduce {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let x = call.arg(0);
        let plan = self.plan(x.shape);
        for sample in 0..call.n_results() {
            plan.values(x.sample(sample), &mut y[sample * plan.results..(sample + 1) * plan.results]);
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
        let plan = self.plan(x.shape);
        let (own, size) = (x.numel(), plan.results);
        let scale = plan.scale();
        let [w, state] = scratch.take([if scale.is_some() { 0 } else { own }, size]);
        clear(dx, add);
        for sample in 0..call.samples {
            if scale.is_none() {
                plan.weights(x.sample(sample), y.sample(sample), w, state);
            }
            for at in sample * seeds..(sample + 1) * seeds {
                let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own..(at + 1) * own]);
                plan.spread(dy, scale.unwrap_or(T::one()), scale.is_none().then_some(&*w), dx);
            }
        }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], scratch: &mut Scratch<T>) {
        let (Some(tangent), x, y) = (tangents.operand(call, 0), call.arg(0), call.result()) else { return };
        let plan = self.plan(x.shape);
        let scale: Option<T> = plan.scale();
        let [w, state] = scratch.take([if scale.is_some() { 0 } else { x.numel() }, plan.results]);
        for sample in 0..call.n_results() {
            let dy = &mut dy[sample * plan.results..(sample + 1) * plan.results];
            if scale.is_some() {
                plan.values(tangent.sample(sample), dy);
                continue;
            }
            plan.weights(x.sample(sample), y.sample(sample), w, state);
            dy.fill(T::zero());
            add_reduced(&plan.loops, tangent.sample(sample), Some(w), dy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    const KINDS: [Reduction; 5] = [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min, Reduction::Prod];

    #[test]
    fn conforms() {
        let cases: [(&[usize], &[usize]); 8] = [
            (&[2, 3], &[1]),
            (&[2, 3], &[0]),
            (&[2, 3], &[]),
            (&[4], &[0]),
            (&[1, 3, 4, 5], &[2, 3]),
            (&[3, 1, 4], &[0, 2]),
            (&[2, 3, 20], &[2]),
            (&[2, 1, 2], &[0, 1, 2]),
        ];
        for kind in KINDS {
            for (shape, axes) in cases {
                for keep in [false, true] {
                    let reduce = Reduce { kind, axes: axes.to_vec(), keep };
                    check(reduce.clone(), &[batched(shape)]);
                    check(reduce, &[shared(shape)]);
                }
            }
        }
    }

    fn weights(kind: Reduction, x: &[f64], shape: &[usize], axes: &[usize]) -> Vec<f64> {
        let plan = Reduce { kind, axes: axes.to_vec(), keep: false }.plan(shape);
        let (mut y, mut state) = (vec![0.0; plan.results], vec![0.0; plan.results]);
        let mut w = vec![0.0; x.len()];
        plan.values(x, &mut y);
        plan.weights(x, &y, &mut w, &mut state);
        w
    }

    #[test]
    fn the_first_extreme_has_the_derivative() {
        assert_eq!(weights(Reduction::Max, &[1.0, 3.0, 3.0, 2.0], &[4], &[0]), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(weights(Reduction::Min, &[1.0, 5.0, 1.0, 2.0], &[2, 2], &[0]), [1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn products_with_zeros_have_the_right_derivative() {
        assert_eq!(weights(Reduction::Prod, &[2.0, 0.0, 5.0], &[3], &[0]), [0.0, 10.0, 0.0]);
        assert_eq!(weights(Reduction::Prod, &[0.0, 0.0, 5.0], &[3], &[0]), [0.0, 0.0, 0.0]);
        // Columns (2, 0, 4) and (3, 5, 7).
        let x = [2.0, 3.0, 0.0, 5.0, 4.0, 7.0];
        assert_eq!(weights(Reduction::Prod, &x, &[3, 2], &[0]), [0.0, 35.0, 8.0, 21.0, 0.0, 15.0]);
    }
}
