//! Matrices of random signs that multiply a vector in `K log n` additions, by Hadamard transforms.
//!
//! With `H` the Hadamard matrix of `n = 2^m` rows (entries ±1), `D` and `E` diagonals of random signs, a vector `x` of
//! length `l ≤ n` is multiplied by the stack of `E_b H D_b`, `b = 1 … ⌈K/n⌉`, cut to `K` rows; a longer one is cut into pieces
//! `x_c` of length `n ≥ K`, and their results added: `Σ_c E_c H D_c x_c`. This is the block-subsampled randomised Hadamard transform of
//! Balabanov, Beaupère, Grigori and Lederer 2022 (arXiv 2210.11295), up to the choice of `n`.
//!
//! Every entry of the matrix is a fair coin, and so `E[PᵀP] = K·I`. The diagonal `E` makes different pieces, and different
//! matrices, independent of each other, row by row; inside one piece, rows are orthogonal, which is better than
//! independent.

use super::signs::{SignTable, bytes_for, coins};
use mercer_data::random::ChaCha8Rng;
use mercer_linalg::Scalar;
use rand::Rng;

/// The transform of sixteen numbers is done in registers.
pub(super) const LEAST: usize = 16;

/// A `K × length` matrix of random signs.
#[derive(Debug)]
pub(super) struct SignMatrix {
    length: usize,
    outputs: usize,
    /// The size of one transform.
    n: usize,
    /// Stacked transforms; only a vector that fits into one has several.
    blocks: usize,
    /// Pieces of the vector.
    pieces: usize,
    /// The order in which the vector's elements are taken.
    order: Option<Vec<u32>>,
    /// `D`: `[blocks or pieces, n]`.
    before: Vec<u8>,
    /// `E`: `[pieces, outputs]`, or nothing.
    after: Vec<u8>,
}

/// Whether the results of a matrix get their own random signs although the vector is one piece. If two matrices
/// multiply the same features, one pair of `E` is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Always,
    IfNeeded,
}

impl SignMatrix {
    pub(super) fn new(length: usize, outputs: usize, after: After, stream: &mut ChaCha8Rng) -> Self {
        let most = outputs.next_power_of_two().max(LEAST);
        let n = length.next_power_of_two().clamp(LEAST, most);
        let (pieces, blocks) = (length.div_ceil(n).max(1), outputs.div_ceil(n));
        let before = coins(stream, pieces.max(blocks) * n / 8);
        let after = match after {
            After::IfNeeded if pieces == 1 => Vec::new(),
            _ => coins(stream, pieces * bytes_for(outputs)),
        };
        Self { length, outputs, n, blocks, pieces, order: None, before, after }
    }

    /// Permutes the vector's elements at random. If the features of two matrices are multiplied, one of them needs
    /// this; otherwise vectors with their energy at the same positions would use the same rows of `H`.
    pub(super) fn shuffled(mut self, stream: &mut ChaCha8Rng) -> Self {
        let mut order: Vec<u32> = (0..self.length as u32).collect();
        for last in (1..order.len()).rev() {
            let chosen = (u128::from(stream.next_u64()) * (last as u128 + 1)) >> 64;
            order.swap(last, chosen as usize);
        }
        self.order = Some(order);
        self
    }

    /// The number of rows.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Numbers that [`apply`](Self::apply) writes: the outputs and the part that is cut off.
    pub(super) fn padded(&self) -> usize {
        self.blocks * self.n
    }

    /// Numbers of scratch that it needs.
    pub(super) fn scratch(&self) -> usize {
        let moved = if self.order.is_some() { self.length } else { 0 };
        moved + if self.pieces > 1 { self.n } else { 0 }
    }

    /// Additions for one vector.
    pub(super) fn flops(&self) -> f64 {
        (self.pieces.max(self.blocks) * self.n) as f64 * (self.n.ilog2() as f64 + 2.0)
    }

    /// `out = P x`: the first `outputs` numbers.
    #[inline(always)]
    pub(super) fn apply<T: Scalar>(&self, table: &SignTable<T>, x: &[T], scratch: &mut [T], out: &mut [T]) {
        let (moved, scratch) = scratch.split_at_mut(if self.order.is_some() { self.length } else { 0 });
        let x = match &self.order {
            None => x,
            Some(order) => {
                moved.iter_mut().zip(order).for_each(|(to, &from)| *to = x[from as usize]);
                moved
            }
        };
        if self.pieces == 1 {
            for (block, signs) in out[..self.padded()].chunks_exact_mut(self.n).zip(self.before.chunks(self.n / 8)) {
                table.copy(signs, x, &mut block[..self.length]);
                block[self.length..].fill(T::zero());
                transform(block);
            }
            if !self.after.is_empty() {
                table.flip(&self.after, &mut out[..self.outputs]);
            }
            return;
        }
        out[..self.outputs].fill(T::zero());
        let piece = &mut scratch[..self.n];
        let signs = self.before.chunks(self.n / 8).zip(self.after.chunks(bytes_for(self.outputs)));
        for (x, (before, after)) in x.chunks(self.n).zip(signs) {
            table.copy(before, x, &mut piece[..x.len()]);
            piece[x.len()..].fill(T::zero());
            transform(piece);
            table.add(after, &piece[..self.outputs], &mut out[..self.outputs]);
        }
    }

    /// Column `at` of the matrix, its product with a one-hot vector.
    #[inline(always)]
    pub(super) fn column<T: Scalar>(&self, table: &SignTable<T>, at: usize, out: &mut [T]) {
        let at = match &self.order {
            None => at,
            Some(order) => order.iter().position(|&from| from as usize == at).unwrap_or(0),
        };
        let (piece, within) = (at / self.n, at % self.n);
        for (index, block) in out[..self.padded()].chunks_exact_mut(self.n).enumerate() {
            let sign = (piece + index) * self.n + within;
            block[0] = if self.before[sign / 8] >> (sign % 8) & 1 == 0 { T::one() } else { -T::one() };
            // Each bit of the column's index doubles the length, with or without a change of sign.
            for bit in 0..self.n.ilog2() {
                let (known, rest) = block.split_at_mut(1 << bit);
                let sign = if within >> bit & 1 == 0 { T::one() } else { -T::one() };
                rest.iter_mut().zip(&*known).for_each(|(to, &from)| *to = from * sign);
            }
        }
        if !self.after.is_empty() {
            let after = &self.after[piece * bytes_for(self.outputs)..];
            table.flip(after, &mut out[..self.outputs]);
        }
    }
}

/// The Hadamard transform, unscaled, of `2^m ≥ 16` numbers in place.
#[inline(always)]
pub(super) fn transform<T: Scalar>(x: &mut [T]) {
    for block in x.as_chunks_mut::<LEAST>().0 {
        *block = butterflies::<T, 8>(butterflies::<T, 4>(butterflies::<T, 2>(butterflies::<T, 1>(*block))));
    }
    let mut half = LEAST;
    if (x.len() / LEAST).ilog2() % 2 == 1 {
        for pair in x.chunks_exact_mut(2 * half) {
            let (a, b) = pair.split_at_mut(half);
            for (a, b) in a.iter_mut().zip(b) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    // Two stages at a time halve the traffic.
    while half < x.len() {
        for four in x.chunks_exact_mut(4 * half) {
            let (ab, cd) = four.split_at_mut(2 * half);
            let ((a, b), (c, d)) = (ab.split_at_mut(half), cd.split_at_mut(half));
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let (p, q, r, s) = (*a + *b, *a - *b, *c + *d, *c - *d);
                (*a, *b, *c, *d) = (p + r, q + s, p - r, q - s);
            }
        }
        half *= 4;
    }
}

/// One stage of the transform of sixteen numbers, as a shuffle, a product with ±1 and a sum.
#[inline(always)]
fn butterflies<T: Scalar, const HALF: usize>(x: [T; LEAST]) -> [T; LEAST] {
    std::array::from_fn(|i| if i & HALF == 0 { x[i] + x[i | HALF] } else { x[i ^ HALF] - x[i] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mercer_data::random::stream;

    #[test]
    fn the_transform_is_a_product_with_the_matrix_of_parities() {
        for n in [16usize, 32, 64, 128, 1024] {
            let x: Vec<f64> = (0..n).map(|i| ((i * i * 7 + 3) % 31) as f64 - 15.0).collect();
            let mut fast = x.clone();
            transform(&mut fast);
            for (row, &found) in fast.iter().enumerate() {
                let sign = |i: usize| if (i & row).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
                let expected: f64 = (0..n).map(|i| sign(i) * x[i]).sum();
                // Sums of small whole numbers are exact.
                assert_eq!(found, expected, "row {row} of {n}");
            }
        }
    }

    #[test]
    fn a_product_is_the_sum_of_the_columns() {
        let table = SignTable::<f64>::new();
        for (length, outputs) in [(1, 5), (7, 40), (16, 16), (40, 100), (100, 40), (300, 33), (64, 1)] {
            for shuffle in [false, true] {
                for after in [After::Always, After::IfNeeded] {
                    let mut random = stream(3, "test");
                    let mut matrix = SignMatrix::new(length, outputs, after, &mut random);
                    if shuffle {
                        matrix = matrix.shuffled(&mut random);
                    }
                    let x: Vec<f64> = (0..length).map(|i| (i * 5 % 11) as f64 - 4.0).collect();
                    let (mut out, mut scratch) = (vec![0.0; matrix.padded()], vec![0.0; matrix.scratch()]);
                    matrix.apply(&table, &x, &mut scratch, &mut out);
                    let mut expected = vec![0.0; outputs];
                    let mut column = vec![0.0; matrix.padded()];
                    for (at, &x) in x.iter().enumerate() {
                        matrix.column(&table, at, &mut column);
                        assert!(column[..outputs].iter().all(|s| s.abs() == 1.0));
                        expected.iter_mut().zip(&column).for_each(|(sum, &sign)| *sum += sign * x);
                    }
                    assert_eq!(out[..outputs], expected, "{length} to {outputs}");
                }
            }
        }
    }
}
