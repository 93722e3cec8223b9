//! `Pad`: a value with a margin around it, either constant or continued from the inside.
//!
//! Along one axis of size `n`, position `i` of the result shows position `i − before` of the operand; outside it, mode
//! `Reflect` shows `|j mod 2(n−1)|` mirrored at the end points, mode `Edge` the nearest position, and mode `Wrap`
//! `j mod n`.

use super::axes::{only, strides};
use super::linear::clear;
use super::loops::MAX_RANK;
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use crate::shape::numel;

/// Adds a margin to every axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// Elements before the first, along each axis.
    pub before: Vec<usize>,
    /// Elements after the last, along each axis.
    pub after: Vec<usize>,
    /// What the margin holds.
    pub mode: Margin,
}

/// What a margin holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// This number.
    Constant(f64),
    /// The mirror image, without repeating the edge.
    Reflect,
    /// The edge.
    Edge,
    /// The opposite end.
    Wrap,
}

impl Margin {
    /// The position along an axis of size `n` that is seen at `at`.
    fn source(self, at: isize, n: usize) -> Option<usize> {
        let n = n as isize;
        let inside = match self {
            Self::Constant(_) => Some(at).filter(|&at| (0..n).contains(&at)),
            Self::Edge => Some(at.clamp(0, n - 1)),
            Self::Wrap => Some(at.rem_euclid(n)),
            Self::Reflect if n == 1 => Some(0),
            Self::Reflect => {
                let folded = at.rem_euclid(2 * (n - 1));
                Some(folded.min(2 * (n - 1) - folded))
            }
        };
        inside.map(|at| at as usize)
    }
}

impl Pad {
    /// Calls `body(from, to, length)` for runs of the result that are runs of the operand, `from = None` for a
    /// constant.
    fn runs(&self, x_shape: &[usize], y_shape: &[usize], mut body: impl FnMut(Option<usize>, usize, usize)) {
        let rank = x_shape.len();
        if numel(y_shape) == 0 {
            return;
        }
        // After the last padded axis everything is contiguous.
        let Some(last) = (0..rank).rev().find(|&axis| self.before[axis] + self.after[axis] > 0) else {
            return body(Some(0), 0, numel(x_shape));
        };
        let (stride, inner) = (strides(x_shape), numel(&x_shape[last + 1..]));
        let (before, n) = (self.before[last], x_shape[last]);
        let row = y_shape[last] * inner;
        let mut index = [0; MAX_RANK];
        for outer in 0..numel(&y_shape[..last]) {
            let mut from = Some(0);
            for axis in 0..last {
                let source = self.mode.source(index[axis] as isize - self.before[axis] as isize, x_shape[axis]);
                from = from.zip(source).map(|(from, source)| from + source * stride[axis]);
            }
            let to = outer * row;
            let mut margin = |at: usize| {
                let source = self.mode.source(at as isize - before as isize, n);
                body(from.zip(source).map(|(from, source)| from + source * inner), to + at * inner, inner);
            };
            (0..before).for_each(&mut margin);
            (before + n..y_shape[last]).for_each(&mut margin);
            body(from, to + before * inner, n * inner);
            for axis in (0..last).rev() {
                index[axis] += 1;
                if index[axis] < y_shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
    }

    fn fill<T: Element>(&self, x: &[T], x_shape: &[usize], constant: T, y: &mut [T], y_shape: &[usize]) {
        self.runs(x_shape, y_shape, |from, to, length| match from {
            None => y[to..to + length].fill(constant),
            Some(from) => y[to..to + length].copy_from_slice(&x[from..from + length]),
        });
    }
}

impl Op for Pad {
    fn name(&self) -> &'static str {
        "Pad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        let rank = x.rank();
        if self.before.len() != rank || self.after.len() != rank {
            return Err(InferError::Shape("padding must be given for every axis".into()));
        }
        let along: Vec<usize> = (0..rank).filter(|&axis| self.before[axis] + self.after[axis] > 0).collect();
        if !matches!(self.mode, Margin::Constant(_)) && along.iter().any(|&axis| x.shape[axis] == 0) {
            return Err(InferError::Shape("an empty axis cannot be continued".into()));
        }
        let shape = (0..rank).map(|axis| self.before[axis] + x.shape[axis] + self.after[axis]).collect();
        let batch = x.batch.as_ref().map(|batch| batch.not_along(&along)).transpose()?;
        Ok(Meta { shape, batch })
    }

    fn flops(&self, _: &[&Meta], _: &Meta) -> u64 {
        0
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl<T: Element> OpKernel<T> for Pad {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let constant = if let Margin::Constant(value) = self.mode { T::narrow(value) } else { T::zero() };
        let (x, shape) = (call.arg(0), call.result().shape);
        let size = numel(shape);
        for sample in 0..call.n_results() {
            self.fill(x.sample(sample), x.shape, constant, &mut y[sample * size..(sample + 1) * size], shape);
        }
    }

    fn vjp(&self, call: &Call<'_, T>, dy: &[T], seeds: usize, _: usize, dx: &mut [T], add: bool, _: &mut Scratch<T>) {
        let (x, shape) = (call.arg(0), call.result().shape);
        let (own, size) = (x.numel(), numel(shape));
        clear(dx, add);
        for at in 0..call.samples * seeds {
            let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own..(at + 1) * own]);
            self.runs(x.shape, shape, |to, from, length| {
                let Some(to) = to else { return };
                dx[to..to + length].iter_mut().zip(&dy[from..from + length]).for_each(|(dx, &dy)| *dx += dy);
            });
        }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        let Some(tangent) = tangents.operand(call, 0) else { return };
        let shape = call.result().shape;
        let size = numel(shape);
        for sample in 0..call.n_results() {
            let dy = &mut dy[sample * size..(sample + 1) * size];
            self.fill(tangent.sample(sample), tangent.shape, T::zero(), dy, shape);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Batch;
    use crate::op::conformance::{batched, check, shared};

    fn pad(before: &[usize], after: &[usize], mode: Margin) -> Pad {
        Pad { before: before.to_vec(), after: after.to_vec(), mode }
    }

    const MODES: [Margin; 4] = [Margin::Constant(1.5), Margin::Reflect, Margin::Edge, Margin::Wrap];

    #[test]
    fn conforms() {
        for mode in MODES {
            check(pad(&[2], &[1], mode), &[batched(&[4])]);
            check(pad(&[0, 0], &[0, 0], mode), &[batched(&[2, 3])]);
            check(pad(&[1, 0], &[0, 0], mode), &[batched(&[2, 3])]);
            check(pad(&[0, 0, 1, 2], &[0, 0, 2, 0], mode), &[batched(&[1, 2, 3, 4])]);
            check(pad(&[1, 2, 0], &[1, 0, 1], mode), &[shared(&[2, 3, 2])]);
            check(pad(&[3, 5], &[4, 2], mode), &[batched(&[1, 2])]);
        }
    }

    #[test]
    fn margins_are_those_of_numpy() {
        let padded = |mode| {
            let mut y = [0.0; 9];
            pad(&[2], &[4], mode).fill(&[1.0, 2.0, 3.0], &[3], 9.0, &mut y, &[9]);
            y
        };
        assert_eq!(padded(Margin::Constant(9.0)), [9.0, 9.0, 1.0, 2.0, 3.0, 9.0, 9.0, 9.0, 9.0]);
        assert_eq!(padded(Margin::Reflect), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0]);
        assert_eq!(padded(Margin::Edge), [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0]);
        assert_eq!(padded(Margin::Wrap), [2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]);
    }

    #[test]
    fn padding_the_batch_is_refused() {
        let x = Meta::batched([1, 3], Batch::axis(0));
        assert_eq!(pad(&[1, 0], &[0, 0], Margin::Edge).infer(&[&x]), Err(InferError::Mixes));
        assert!(pad(&[0, 1], &[0, 1], Margin::Edge).infer(&[&x]).is_ok());
    }
}
