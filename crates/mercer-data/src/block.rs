//! Blocks of samples: the one way in which data sets are read for networks, kernels and bases.

use std::ops::Range;

use crate::dataset::Dataset;
use crate::element::DataScalar;
use crate::error::Result;

/// Consecutive samples of every input, row-major.
///
/// ```
/// use mercer_data::{Dataset, RowBlock};
///
/// let x = Dataset::from_array("x", ndarray::array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]].into_dyn().view())?;
/// let block = RowBlock::<f32>::read(&[x], 1..3)?;
/// assert_eq!(block.slices(), [&[3.0, 4.0, 5.0, 6.0]]);
/// # Ok::<(), mercer_data::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowBlock<T> {
    inputs: Vec<Vec<T>>,
}

impl<T: DataScalar> RowBlock<T> {
    /// Reads some rows of every data set, one per input.
    ///
    /// # Errors
    /// As [`Dataset::rows`].
    pub fn read(data: &[Dataset], rows: Range<usize>) -> Result<Self> {
        let read = |set: &Dataset| {
            let array = set.rows::<T>(rows.clone())?;
            Ok(match array.is_standard_layout() {
                true => array.into_raw_vec_and_offset().0,
                false => array.iter().copied().collect(),
            })
        };
        Ok(Self { inputs: data.iter().map(read).collect::<Result<_>>()? })
    }

    /// The numbers of each input.
    pub fn slices(&self) -> Vec<&[T]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }
}
