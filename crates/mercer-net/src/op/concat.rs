//! `Concat`: operands joined along an axis. Shared operands are repeated for each sample.

use super::axes::{check_axis, check_rank};
use super::linear::{add_rows, copy_rows};
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::{Batch, Meta, Mixes, Position};
use crate::shape::{around, numel};

/// Joins any number of operands along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concat {
    /// The axis.
    pub axis: usize,
}

impl Concat {
    /// Where the batch of the result is.
    ///
    /// Outside the joined axis the operands combine elementwise. On it, `[mᵢ, batch, minor]` joined over `i` is
    /// `[Σ mᵢ, batch, minor]` if all operands have their batch there with the same `minor`.
    fn batch(&self, inputs: &[&Meta]) -> Result<Option<Batch>, Mixes> {
        let batched = || inputs.iter().filter_map(|meta| meta.batch.as_ref().map(|batch| (meta, batch)));
        let mut tracked = batched().filter_map(|(meta, batch)| match batch {
            Batch::At(places) => Some((meta, places)),
            Batch::Untracked => None,
        });
        let Some((first, places)) = tracked.next() else {
            return Ok(batched().next().map(|_| Batch::Untracked));
        };
        let minor = |meta: &Meta, place: &Position| meta.shape[place.axis] / place.major.max(1);
        let on_axis = batched().count() == inputs.len();
        let mut joined: Vec<Position> = places.clone();
        joined.retain(|place| place.axis != self.axis || on_axis);
        for (meta, places) in tracked {
            joined.retain(|place| {
                let same = |other: &Position| place.axis != self.axis || minor(meta, other) == minor(first, place);
                places.iter().any(|other| other.axis == place.axis && same(other))
            });
        }
        let untracked = batched().any(|(_, batch)| *batch == Batch::Untracked);
        if untracked {
            joined.retain(|place| place.axis != self.axis);
        }
        let size: usize = inputs.iter().map(|meta| meta.shape[self.axis]).sum();
        for place in joined.iter_mut().filter(|place| place.axis == self.axis) {
            place.major = size / minor(first, place).max(1);
        }
        match (joined.is_empty(), untracked) {
            (false, _) => Ok(Some(Batch::At(joined))),
            (true, true) => Ok(Some(Batch::Untracked)),
            (true, false) => Err(Mixes),
        }
    }
}

impl Op for Concat {
    fn name(&self) -> &'static str {
        "Concat"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let [first, rest @ ..] = inputs else { return Err(InferError::Shape("needs operands".into())) };
        check_rank(first.rank())?;
        check_axis(self.axis, first.rank())?;
        let fits = |meta: &&Meta| {
            meta.rank() == first.rank()
                && (0..first.rank()).all(|axis| axis == self.axis || meta.shape[axis] == first.shape[axis])
        };
        if !rest.iter().all(fits) {
            return Err(InferError::Shape(format!("shapes differ outside axis {}", self.axis)));
        }
        let mut shape = first.shape.clone();
        shape[self.axis] = inputs.iter().map(|meta| meta.shape[self.axis]).sum();
        Ok(Meta { shape, batch: self.batch(inputs)? })
    }

    fn flops(&self, _: &[&Meta], _: &Meta) -> u64 {
        0
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl<T: Element> OpKernel<T> for Concat {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let shape = call.result().shape;
        let (size, (outer, joined, inner)) = (numel(shape), around(shape, self.axis));
        let (samples, mut offset) = (call.n_results(), 0);
        for which in 0..call.n_args() {
            let x = call.arg(which);
            let row = x.shape[self.axis] * inner;
            if x.batched {
                // The rows of all samples are evenly spaced.
                copy_rows(samples * outer, row, (x.data, 0, row), (&mut *y, offset, joined * inner));
            } else {
                for y in y.chunks_exact_mut(size.max(1)) {
                    copy_rows(outer, row, (x.data, 0, row), (y, offset, joined * inner));
                }
            }
            offset += row;
        }
    }

    fn vjp(
        &self,
        call: &Call<'_, T>,
        dy: &[T],
        seeds: usize,
        which: usize,
        dx: &mut [T],
        add: bool,
        _: &mut Scratch<T>,
    ) {
        let shape = call.result().shape;
        let (outer, joined, inner) = around(shape, self.axis);
        let offset: usize = (0..which).map(|before| call.arg(before).shape[self.axis] * inner).sum();
        let row = call.arg(which).shape[self.axis] * inner;
        let rows = call.samples * seeds * outer;
        let from = (dy, offset, joined * inner);
        if add { add_rows(rows, row, from, (dx, 0, row)) } else { copy_rows(rows, row, from, (dx, 0, row)) }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        let shape = call.result().shape;
        let (size, (outer, joined, inner)) = (numel(shape), around(shape, self.axis));
        dy.fill(T::zero());
        let mut offset = 0;
        for which in 0..call.n_args() {
            let row = call.arg(which).shape[self.axis] * inner;
            if let Some(tangent) = tangents.operand(call, which) {
                for sample in 0..call.n_results() {
                    let dy = &mut dy[sample * size..(sample + 1) * size];
                    copy_rows(outer, row, (tangent.sample(sample), 0, row), (dy, offset, joined * inner));
                }
            }
            offset += row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        check(Concat { axis: 0 }, &[batched(&[2, 3]), batched(&[1, 3])]);
        check(Concat { axis: 1 }, &[batched(&[2, 3]), batched(&[2, 1]), batched(&[2, 4])]);
        check(Concat { axis: 1 }, &[shared(&[1, 1, 4]), batched(&[1, 5, 4])]);
        check(Concat { axis: 2 }, &[batched(&[2, 2, 1]), shared(&[2, 2, 3]), batched(&[2, 2, 2])]);
        check(Concat { axis: 0 }, &[shared(&[2]), shared(&[3])]);
        check(Concat { axis: 0 }, &[batched(&[2])]);
    }

    #[test]
    fn the_batch_is_followed_and_shared_rows_are_not_samples() {
        let x = Meta::batched([1, 3], Batch::axis(0));
        let join = |axis, other: &Meta| Concat { axis }.infer(&[&x, other]);
        assert_eq!(join(1, &x).unwrap(), Meta::batched([1, 6], Batch::axis(0)));
        assert_eq!(join(1, &Meta::shared([1, 2])).unwrap(), Meta::batched([1, 5], Batch::axis(0)));
        assert_eq!(join(0, &Meta::shared([1, 3])), Err(InferError::Mixes));
        let doubled = Batch::At(vec![Position { axis: 0, major: 2 }]);
        assert_eq!(join(0, &x).unwrap(), Meta::batched([2, 3], doubled));
        // Two heads folded after the batch cannot be joined with one.
        assert_eq!(join(0, &Meta::batched([2, 3], Batch::axis(0))), Err(InferError::Mixes));
        assert_eq!(join(0, &Meta::batched([1, 3], Batch::Untracked)).unwrap().batch, Some(Batch::Untracked));
    }
}
