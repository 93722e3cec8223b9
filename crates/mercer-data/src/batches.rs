//! One pass over a data set, batch by batch, in order or shuffled.

use std::marker::PhantomData;

use ndarray::ArrayD;
use rand::seq::SliceRandom;

use crate::dataset::Dataset;
use crate::element::DataScalar;
use crate::error::{DataError, Result};
use crate::random::stream;

/// Some samples, and their rows in the data set.
#[derive(Clone, Debug, PartialEq)]
pub struct RowBatch<T> {
    /// The rows of the data set.
    pub indices: Vec<usize>,
    /// The samples themselves.
    pub rows: ArrayD<T>,
}

/// The batches of one pass, from [`Dataset::batches`] and [`Dataset::shuffled_batches`].
///
/// Every sample appears exactly once; the last batch may be smaller.
#[derive(Debug)]
pub struct RowBatches<'a, T> {
    dataset: &'a Dataset,
    size: usize,
    order: Option<Vec<usize>>,
    next: usize,
    element: PhantomData<T>,
}

impl Dataset {
    /// The samples in order, `size` at a time.
    pub fn batches<T: DataScalar>(&self, size: usize) -> Result<RowBatches<'_, T>> {
        self.batches_in_order(size, None)
    }

    /// The samples in an order that depends only on seed and epoch, `size` at a time.
    ///
    /// ```
    /// use mercer_data::{Dataset, Result};
    /// use ndarray::Array;
    ///
    /// let numbers = Dataset::from_array("numbers", Array::linspace(0.0, 9.0, 10).into_dyn().view())?;
    /// let batches = numbers.shuffled_batches::<f32>(4, 7, 0)?.collect::<Result<Vec<_>>>()?;
    /// let mut seen: Vec<usize> = batches.iter().flat_map(|batch| batch.indices.clone()).collect();
    /// seen.sort();
    /// assert_eq!(seen, (0..10).collect::<Vec<_>>());
    /// # Ok::<(), mercer_data::DataError>(())
    /// ```
    pub fn shuffled_batches<T: DataScalar>(&self, size: usize, seed: u64, epoch: u64) -> Result<RowBatches<'_, T>> {
        self.batches_in_order(size, Some(shuffled(self.n_samples(), seed, epoch)))
    }

    fn batches_in_order<T: DataScalar>(&self, size: usize, order: Option<Vec<usize>>) -> Result<RowBatches<'_, T>> {
        if size == 0 {
            return Err(DataError::Argument { name: "batch size", reason: "must be at least 1".to_owned() });
        }
        Ok(RowBatches { dataset: self, size, order, next: 0, element: PhantomData })
    }
}

/// The numbers from 0 to `n_samples` − 1 in the random order of this epoch (stream `"batches/epoch {epoch}"`).
pub fn shuffled(n_samples: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n_samples).collect();
    order.shuffle(&mut stream(seed, &format!("batches/epoch {epoch}")));
    order
}

impl<T: DataScalar> Iterator for RowBatches<'_, T> {
    type Item = Result<RowBatch<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next;
        let end = start.saturating_add(self.size).min(self.dataset.n_samples());
        if start >= end {
            return None;
        }
        self.next = end;
        let (indices, rows) = match &self.order {
            None => ((start..end).collect(), self.dataset.rows(start..end)),
            Some(order) => (order[start..end].to_vec(), self.dataset.select(&order[start..end])),
        };
        Some(rows.map(|rows| RowBatch { indices, rows }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.dataset.n_samples().saturating_sub(self.next).div_ceil(self.size);
        (left, Some(left))
    }
}

impl<T: DataScalar> ExactSizeIterator for RowBatches<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    fn numbers(n_samples: usize) -> Dataset {
        let array = Array2::from_shape_fn((n_samples, 2), |(row, column)| (2 * row + column) as f64);
        Dataset::from_array("numbers", array.into_dyn().view()).unwrap()
    }

    #[test]
    fn in_order() {
        let dataset = numbers(5);
        let batches = dataset.batches::<f64>(2).unwrap();
        assert_eq!(batches.len(), 3);
        let all: Vec<f64> = batches.flat_map(|batch| batch.unwrap().rows.into_iter()).collect();
        assert_eq!(all, (0..10).map(f64::from).collect::<Vec<_>>());
    }

    #[test]
    fn shuffles_depend_on_seed_and_epoch() {
        assert_eq!(shuffled(50, 1, 2), shuffled(50, 1, 2));
        assert_ne!(shuffled(50, 1, 2), shuffled(50, 1, 3));
        assert_ne!(shuffled(50, 1, 2), shuffled(50, 2, 2));
    }

    #[test]
    fn rows_belong_to_their_indices() {
        let dataset = numbers(7);
        for batch in dataset.shuffled_batches::<f32>(3, 0, 0).unwrap() {
            let batch = batch.unwrap();
            for (row, &index) in batch.rows.outer_iter().zip(&batch.indices) {
                assert_eq!(row.iter().copied().collect::<Vec<_>>(), [2.0 * index as f32, 2.0 * index as f32 + 1.0]);
            }
        }
    }

    #[test]
    fn odd_sizes() {
        assert!(matches!(numbers(3).batches::<f32>(0), Err(DataError::Argument { .. })));
        assert_eq!(numbers(3).batches::<f32>(usize::MAX).unwrap().count(), 1);
        assert_eq!(numbers(0).batches::<f32>(4).unwrap().count(), 0);
    }
}
