//! Nested loops over broadcast operands, with inner runs as few and as long as the shapes allow.

use crate::shape::numel;

/// The largest rank a primitive works on.
pub(crate) const MAX_RANK: usize = 8;

/// Loops over a shape with `K` operands read at their own strides. Adjacent axes that every operand walks evenly are
/// merged; nothing is allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loops<const K: usize> {
    rank: usize,
    sizes: [usize; AXES],
    strides: [[usize; AXES]; K],
}

/// The axes of a value, and one for the samples.
const AXES: usize = MAX_RANK + 1;

impl<const K: usize> Loops<K> {
    /// From strides per operand, aligned with `shape`.
    pub(crate) fn strided(shape: &[usize], strides: [&[usize]; K]) -> Self {
        let mut loops = Self { rank: 0, sizes: [1; AXES], strides: [[0; AXES]; K] };
        for axis in 0..shape.len() {
            loops.push(shape[axis], std::array::from_fn(|k| strides[k][axis]));
        }
        loops.finish()
    }

    /// From operands of shapes that broadcast to `shape`.
    pub(crate) fn broadcast(shape: &[usize], operands: [&[usize]; K]) -> Self {
        let mut strides = [[0; MAX_RANK]; K];
        for (k, operand) in operands.iter().enumerate() {
            let missing = shape.len() - operand.len();
            let mut stride = 1;
            for axis in (0..operand.len()).rev() {
                strides[k][axis + missing] = if operand[axis] == 1 { 0 } else { stride };
                stride *= operand[axis];
            }
        }
        Self::strided(shape, std::array::from_fn(|k| &strides[k][..shape.len()]))
    }

    /// The same for many samples: batched operands advance by their size from one sample to the next.
    pub(crate) fn over_samples(shape: &[usize], operands: [(&[usize], bool); K], samples: usize) -> Self {
        let mut loops = Self { rank: 0, sizes: [1; AXES], strides: [[0; AXES]; K] };
        loops.push(samples, operands.map(|(operand, batched)| if batched { numel(operand) } else { 0 }));
        let one = Self::broadcast(shape, operands.map(|(operand, _)| operand));
        for axis in 0..one.rank {
            loops.push(one.sizes[axis], std::array::from_fn(|k| one.strides[k][axis]));
        }
        loops.finish()
    }

    fn push(&mut self, size: usize, strides: [usize; K]) {
        if size == 1 {
            return;
        }
        if self.rank > 0 {
            let last = self.rank - 1;
            if (0..K).all(|k| self.strides[k][last] == strides[k] * size) {
                self.sizes[last] *= size;
                (0..K).for_each(|k| self.strides[k][last] = strides[k]);
                return;
            }
        }
        self.sizes[self.rank] = size;
        (0..K).for_each(|k| self.strides[k][self.rank] = strides[k]);
        self.rank += 1;
    }

    fn finish(mut self) -> Self {
        self.rank = self.rank.max(1);
        self
    }

    /// Calls `body(start, length, offsets, strides)` for each inner run: `start` counts elements of the whole shape in
    /// order.
    #[inline(always)]
    pub(crate) fn runs(&self, mut body: impl FnMut(usize, usize, [usize; K], [usize; K])) {
        let inner = self.rank - 1;
        let length = self.sizes[inner];
        let strides: [usize; K] = std::array::from_fn(|k| self.strides[k][inner]);
        let outer: usize = self.sizes[..inner].iter().product();
        if length == 0 {
            return;
        }
        let mut index = [0usize; AXES];
        let mut offsets = [0usize; K];
        for run in 0..outer {
            body(run * length, length, offsets, strides);
            for axis in (0..inner).rev() {
                index[axis] += 1;
                if index[axis] < self.sizes[axis] {
                    (0..K).for_each(|k| offsets[k] += self.strides[k][axis]);
                    break;
                }
                (0..K).for_each(|k| offsets[k] -= self.strides[k][axis] * (self.sizes[axis] - 1));
                index[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_visit_every_element_once_in_order() {
        let (shape, a, b) = ([2, 3, 4], [3, 1], [2, 1, 4]);
        let loops = Loops::broadcast(&shape, [&a, &b]);
        let mut seen = Vec::new();
        loops.runs(|start, length, offsets, strides| {
            for i in 0..length {
                seen.push((start + i, offsets[0] + i * strides[0], offsets[1] + i * strides[1]));
            }
        });
        let expected: Vec<_> = (0..24).map(|e| (e, (e / 4) % 3, e / 12 * 4 + e % 4)).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn even_axes_merge() {
        let mut count = 0;
        Loops::broadcast(&[2, 3, 4], [&[2, 3, 4], &[]]).runs(|_, length, _, strides| {
            count += 1;
            assert_eq!((length, strides), (24, [1, 0]));
        });
        assert_eq!(count, 1);
    }
}
