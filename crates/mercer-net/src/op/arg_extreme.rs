//! `ArgExtreme`: the index of the largest or smallest number along an axis, as a number. It has no derivative.

use super::axes::{only, reduced};
use super::linear::clear;
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use crate::shape::around;

/// The position of the extreme along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgExtreme {
    /// The axis.
    pub axis: usize,
    /// Whether the axis stays, with size one.
    pub keep: bool,
    /// The largest, or the smallest.
    pub max: bool,
    /// The last of equals, or the first.
    pub last: bool,
}

impl Op for ArgExtreme {
    fn name(&self) -> &'static str {
        "ArgExtreme"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        let y = reduced(x, &[self.axis], self.keep)?;
        if x.shape[self.axis] == 0 {
            return Err(InferError::Shape("an empty axis has no extreme".into()));
        }
        Ok(y)
    }

    fn flops(&self, inputs: &[&Meta], _: &Meta) -> u64 {
        inputs[0].numel() as u64
    }

    fn differentiable(&self, _: usize) -> bool {
        false
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl ArgExtreme {
    fn better<T: Element>(&self, new: T, best: T) -> bool {
        (if self.max { new > best } else { new < best }) || (self.last && new == best)
    }
}

impl<T: Element> OpKernel<T> for ArgExtreme {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let x = call.arg(0);
        let (_, size, inner) = around(x.shape, self.axis);
        // Samples are treated as further blocks.
        for (at, y) in y.iter_mut().enumerate() {
            let lane = at / inner * size * inner + at % inner;
            let value = |index: usize| x.data[lane + index * inner];
            let best = (1..size).fold(0, |best, new| if self.better(value(new), value(best)) { new } else { best });
            *y = T::narrow(best as f64);
        }
    }

    fn vjp(&self, _: &Call<'_, T>, _: &[T], _: usize, _: usize, dx: &mut [T], add: bool, _: &mut Scratch<T>) {
        clear(dx, add);
    }

    fn jvp(&self, _: &Call<'_, T>, _: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        dy.fill(T::zero());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared, values};

    #[test]
    fn conforms() {
        for (max, last) in [(true, false), (true, true), (false, false), (false, true)] {
            for keep in [false, true] {
                check(ArgExtreme { axis: 0, keep, max, last }, &[batched(&[4])]);
                check(ArgExtreme { axis: 1, keep, max, last }, &[batched(&[2, 5, 3])]);
                check(ArgExtreme { axis: 2, keep, max, last }, &[shared(&[2, 1, 4])]);
            }
        }
    }

    #[test]
    fn ties_go_to_the_first_or_to_the_last() {
        let x = [2.0, 5.0, 5.0, 1.0, 1.0, 3.0];
        let at = |max, last| values(ArgExtreme { axis: 0, keep: false, max, last }, &[&[6]], &[&x]);
        assert_eq!([at(true, false), at(true, true), at(false, false), at(false, true)], [[1.0], [2.0], [3.0], [4.0]]);
    }
}
