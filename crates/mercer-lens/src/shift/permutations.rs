//! Which samples belong to the first set, as they are and in random permutations.
//!
//! A permutation matters only through the `n_a` samples that it puts into the first set, so it is a bit per sample. All
//! permutations are drawn together, row by row, by selection sampling (Knuth, *The Art of Computer Programming* 3.4.2):
//! the next of `r` remaining samples belongs to the first set with probability `needed/r`. A million samples and 199
//! permutations take 32 MB, and a block of rows becomes a matrix of zeros and ones, so that sums over the first set of all
//! permutations are one product.

use crate::checks::check_count;
use crate::error::{LensError, Result};
use mercer_data::random::stream;
use ndarray::Array2;
use rand::{Rng, RngExt};
use std::ops::Range;

/// Permutations in a word.
const LANES: usize = u64::BITS as usize;

/// The sets as they are (the first column) and random permutations of their samples (the others).
#[derive(Clone, Debug)]
pub struct Permutations {
    n_first: usize,
    n_rows: usize,
    n_columns: usize,
    n_words: usize,
    /// A row of words per sample.
    bits: Vec<u64>,
    /// The half of each sample, for classifiers that are tested on samples they have not seen.
    halves: Vec<bool>,
}

/// Some rows of [`Permutations`].
#[derive(Clone, Debug)]
pub struct Members {
    /// One if a sample is in the first set, a row per sample and a column per permutation.
    pub matrix: Array2<f64>,
    /// The half of each sample.
    pub halves: Vec<bool>,
}

impl Permutations {
    /// Draws permutations of two sets: the samples of the first come first.
    ///
    /// ```
    /// use mercer_lens::shift::Permutations;
    /// let drawn = Permutations::draw(2, 3, 9, 0)?;
    /// let members = drawn.members(0..5).matrix;
    /// assert_eq!(members.column(0).to_vec(), [1.0, 1.0, 0.0, 0.0, 0.0]);
    /// assert!(members.columns().into_iter().all(|column| column.sum() == 2.0));
    /// # Ok::<(), mercer_lens::LensError>(())
    /// ```
    ///
    /// # Errors
    /// If a set has fewer than two samples, and without permutations.
    pub fn draw(n_first: usize, n_second: usize, count: usize, seed: u64) -> Result<Self> {
        check_count("a test of the first of two sets", 2, n_first)?;
        check_count("a test of the second of two sets", 2, n_second)?;
        if count == 0 {
            let reason = "at least one is needed for a p-value";
            return Err(LensError::Setting { name: "the number of permutations", value: "0".to_owned(), reason });
        }
        let (n_rows, n_columns) = (n_first + n_second, count + 1);
        let n_words = n_columns.div_ceil(LANES);
        let mut bits = vec![0_u64; n_rows * n_words];
        for word in 0..n_words {
            let mut random = stream(seed, &format!("lens/shift/permutations {word}"));
            let mut needed = [n_first as u64; LANES];
            for row in 0..n_rows {
                let remaining = (n_rows - row) as u64;
                let mut found = 0_u64;
                for (lane, needed) in needed.iter_mut().enumerate() {
                    let chosen = match (word, lane) {
                        (0, 0) => row < n_first,
                        _ => random.random_range(0..remaining) < *needed,
                    };
                    *needed -= u64::from(chosen);
                    found |= u64::from(chosen) << lane;
                }
                bits[row * n_words + word] = found;
            }
        }
        let mut random = stream(seed, "lens/shift/halves");
        let halves = (0..n_rows).map(|_| random.next_u32() & 1 == 1).collect();
        Ok(Self { n_first, n_rows, n_columns, n_words, bits, halves })
    }

    /// The samples of both sets.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The samples of the first set.
    pub fn n_first(&self) -> usize {
        self.n_first
    }

    /// The permutations, and one: the sets as they are.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The bytes that permutations of this many samples take.
    pub fn bytes(n_rows: usize, count: usize) -> usize {
        n_rows.saturating_mul((count + 1).div_ceil(LANES) * size_of::<u64>() + 1)
    }

    /// The memberships of some samples.
    pub fn members(&self, rows: Range<usize>) -> Members {
        let mut matrix = Array2::zeros((rows.len(), self.n_columns));
        for (mut to, row) in matrix.outer_iter_mut().zip(rows.clone()) {
            let words = self.words(row);
            for (column, slot) in to.iter_mut().enumerate() {
                *slot = f64::from(u8::from(words[column / LANES] >> (column % LANES) & 1 == 1));
            }
        }
        Members { matrix, halves: self.halves[rows].to_vec() }
    }

    /// The halves of some samples.
    pub fn halves(&self, rows: Range<usize>) -> &[bool] {
        &self.halves[rows]
    }

    /// The memberships of a sample, 64 permutations in a word.
    pub(super) fn words(&self, row: usize) -> &[u64] {
        &self.bits[row * self.n_words..(row + 1) * self.n_words]
    }
}
