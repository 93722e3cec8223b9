//! `Transpose`: axes in another order.
//!
//! Axes that stay adjacent are merged first. If the innermost axis stays innermost, whole runs are copied. Otherwise
//! the axis that is contiguous before and the axis that is contiguous after span a matrix, which is transposed in small
//! square tiles so that both sides use full cache lines.

use super::axes::{check_rank, only, strides};
use super::linear::Linear;
use super::loops::{Loops, MAX_RANK};
use super::{InferError, Op};
use crate::element::Element;
use crate::graph::Meta;
use mercer_linalg::simd::dispatch;

/// Axis `i` of the result is axis `perm[i]` of the operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// Every axis of the operand once.
    pub perm: Vec<usize>,
}

impl Op for Transpose {
    fn name(&self) -> &'static str {
        "Transpose"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        check_rank(self.perm.len())?;
        if self.perm.len() != x.rank() || (0..x.rank()).any(|axis| !self.perm.contains(&axis)) {
            return Err(InferError::Shape(format!("{:?} is not a permutation of the axes", self.perm)));
        }
        let shape = self.perm.iter().map(|&axis| x.shape[axis]).collect();
        let place = |axis: usize| self.perm.iter().position(|&from| from == axis);
        Ok(Meta { shape, batch: x.batch.as_ref().map(|batch| batch.moved(place)).transpose()? })
    }

    fn flops(&self, _: &[&Meta], _: &Meta) -> u64 {
        0
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Linear for Transpose {
    fn forward<T: Element>(&self, x: &[T], x_shape: &[usize], y: &mut [T], _: &[usize]) {
        permute::<T, false>(x, x_shape, &self.perm, y);
    }

    fn adjoint<T: Element>(&self, dy: &[T], y_shape: &[usize], dx: &mut [T], _: &[usize], add: bool) {
        let mut back = [0; MAX_RANK];
        self.perm.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        let back = &back[..self.perm.len()];
        if add {
            permute::<T, true>(dy, y_shape, back, dx);
        } else {
            permute::<T, false>(dy, y_shape, back, dx);
        }
    }
}

#[inline(always)]
fn put<T: Element, const ADD: bool>(to: &mut T, from: T) {
    if ADD {
        *to += from;
    } else {
        *to = from;
    }
}

/// `to` has `from`'s axes in the order `perm`; overwritten or added to.
fn permute<T: Element, const ADD: bool>(from: &[T], shape: &[usize], perm: &[usize], to: &mut [T]) {
    if from.is_empty() {
        return;
    }
    // The axes of the result: sizes, and strides in `from`; those of size one dropped, neighbours merged.
    let stride = strides(shape);
    let (mut sizes, mut steps, mut rank) = ([1; MAX_RANK], [1; MAX_RANK], 0);
    for &axis in perm.iter().filter(|&&axis| shape[axis] != 1) {
        if rank > 0 && steps[rank - 1] == stride[axis] * shape[axis] {
            sizes[rank - 1] *= shape[axis];
            steps[rank - 1] = stride[axis];
        } else {
            (sizes[rank], steps[rank]) = (shape[axis], stride[axis]);
            rank += 1;
        }
    }
    let rank = rank.max(1);
    let (last, inner) = (rank - 1, (0..rank).find(|&axis| steps[axis] == 1).expect("some axis is contiguous"));
    if inner == last {
        return dispatch(
            #[inline(always)]
            || {
                Loops::strided(&sizes[..rank], [&steps[..rank]]).runs(
                    #[inline(always)]
                    |start, length, [at], _| {
                        let (to, from) = (&mut to[start..start + length], &from[at..at + length]);
                        to.iter_mut().zip(from).for_each(|(to, &from)| put::<T, ADD>(to, from));
                    },
                );
            },
        );
    }
    let to_steps = strides(&sizes[..rank]);
    let (mut others, mut other_from, mut other_to, mut count) = ([1; MAX_RANK], [0; MAX_RANK], [0; MAX_RANK], 0);
    for axis in (0..last).filter(|&axis| axis != inner) {
        (others[count], other_from[count], other_to[count]) = (sizes[axis], steps[axis], to_steps[axis]);
        count += 1;
    }
    let loops = Loops::strided(&others[..count], [&other_from[..count], &other_to[..count]]);
    let matrix = Matrix { rows: sizes[last], cols: sizes[inner], from_row: steps[last], to_row: to_steps[inner] };
    dispatch(
        #[inline(always)]
        || {
            loops.runs(
                #[inline(always)]
                |_, length, [at_from, at_to], [step_from, step_to]| {
                    for i in 0..length {
                        matrix.turn::<T, ADD>(&from[at_from + i * step_from..], &mut to[at_to + i * step_to..]);
                    }
                },
            );
        },
    );
}

/// A matrix with row stride `from_row`, and `to_row` once it is transposed.
#[derive(Clone, Copy)]
struct Matrix {
    rows: usize,
    cols: usize,
    from_row: usize,
    to_row: usize,
}

/// Side of a tile.
const TILE: usize = 8;

impl Matrix {
    #[inline(always)]
    fn turn<T: Element, const ADD: bool>(self, from: &[T], to: &mut [T]) {
        let (full_rows, full_cols) = (self.rows - self.rows % TILE, self.cols - self.cols % TILE);
        for col in (0..full_cols).step_by(TILE) {
            for row in (0..full_rows).step_by(TILE) {
                self.tile::<T, ADD>(&from[row * self.from_row + col..], &mut to[col * self.to_row + row..]);
            }
            for c in col..col + TILE {
                self.line::<T, ADD>(from, c, full_rows, to);
            }
        }
        for col in full_cols..self.cols {
            self.line::<T, ADD>(from, col, 0, to);
        }
    }

    #[inline(always)]
    fn tile<T: Element, const ADD: bool>(self, from: &[T], to: &mut [T]) {
        let mut tile = [[T::zero(); TILE]; TILE];
        for (row, line) in tile.iter_mut().enumerate() {
            let from = &from[row * self.from_row..][..TILE];
            #[expect(clippy::manual_memcpy, reason = "a call that is not inlined is compiled for the baseline")]
            for col in 0..TILE {
                line[col] = from[col];
            }
        }
        for col in 0..TILE {
            let to = &mut to[col * self.to_row..][..TILE];
            for (row, to) in to.iter_mut().enumerate() {
                put::<T, ADD>(to, tile[row][col]);
            }
        }
    }

    /// One column of the matrix, from row `start`: a piece of a row of the result.
    #[inline(always)]
    fn line<T: Element, const ADD: bool>(self, from: &[T], col: usize, start: usize, to: &mut [T]) {
        let to = &mut to[col * self.to_row..][start..self.rows];
        for (row, to) in to.iter_mut().enumerate() {
            put::<T, ADD>(to, from[(start + row) * self.from_row + col]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Batch;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        let cases: [(&[usize], &[usize]); 9] = [
            (&[1, 0], &[3, 5]),
            (&[1, 0], &[17, 21]),
            (&[0, 1, 2], &[2, 3, 4]),
            (&[1, 0, 2], &[9, 3, 4]),
            (&[2, 0, 1], &[8, 9, 3]),
            (&[0, 2, 1, 3], &[1, 4, 2, 3]),
            (&[0, 2, 3, 1], &[1, 3, 4, 5]),
            (&[3, 2, 1, 0], &[2, 1, 3, 9]),
            (&[], &[]),
        ];
        for (perm, shape) in cases {
            check(Transpose { perm: perm.to_vec() }, &[batched(shape)]);
            check(Transpose { perm: perm.to_vec() }, &[shared(shape)]);
        }
    }

    #[test]
    fn every_element_lands_where_its_index_says() {
        let shape = [5, 18, 3, 10];
        let x: Vec<f32> = (0..2700).map(|i| i as f32).collect();
        for perm in [[2, 3, 1, 0], [0, 3, 2, 1], [3, 0, 1, 2], [1, 3, 0, 2]] {
            let mut y = vec![0.0; x.len()];
            permute::<f32, false>(&x, &shape, &perm, &mut y);
            let to = strides(&perm.map(|axis| shape[axis]));
            for (at, &value) in x.iter().enumerate() {
                let index = [at / 540, at / 30 % 18, at / 10 % 3, at % 10];
                let place: usize = (0..4).map(|axis| index[perm[axis]] * to[axis]).sum();
                assert_eq!(y[place], value);
            }
        }
    }

    #[test]
    fn the_batch_moves_along() {
        let x = Meta::batched([5, 1, 3], Batch::axis(1));
        let y = Transpose { perm: vec![1, 2, 0] }.infer(&[&x]).unwrap();
        assert_eq!(y, Meta::batched([1, 3, 5], Batch::axis(0)));
        assert!(Transpose { perm: vec![0, 0, 1] }.infer(&[&x]).is_err());
    }
}
