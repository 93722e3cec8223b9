//! The training samples with the largest kernel values.
//!
//! The neighbours of `x` are the `k` training samples with the largest `κ(x, xᵢ)`, largest first (Engel et al. 2023,
//! arXiv 2305.14585, "explain by example": the largest kernel value, not the smallest distance). Equal values are
//! ordered by index, so the result does not depend on the order in which a matrix is read. [`TopK`] reads a matrix in
//! strips of columns and keeps `k` entries per row.

use crate::checks::check_count;
use crate::error::{LensError, Result};
use mercer_linalg::{Scalar, check_finite};
use ndarray::ArrayView2;
use serde::Serialize;
use std::collections::BTreeMap;

/// A training sample and its kernel value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Neighbour {
    /// The training sample.
    pub index: usize,
    /// Its kernel value.
    pub value: f64,
}

/// The `k` largest values of every row, largest first; fewer if there are fewer columns.
///
/// With `exclude_self = Some(offset)`, row `r` is the sample of column `offset + r`, and is not its own neighbour.
///
/// ```
/// use mercer_lens::neighbours::largest;
/// let kernel = ndarray::array![[1.0, 0.2, 0.9], [0.2, 1.0, 0.2]];
/// let found = largest(kernel.view(), 2, Some(0))?;
/// assert_eq!(found[0].iter().map(|n| n.index).collect::<Vec<_>>(), [2, 1]);
/// assert_eq!(found[1].iter().map(|n| n.index).collect::<Vec<_>>(), [0, 2]);
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For a `k` of zero, no columns, and values that are not finite.
pub fn largest<T: Scalar>(
    rows: ArrayView2<'_, T>,
    k: usize,
    exclude_self: Option<usize>,
) -> Result<Vec<Vec<Neighbour>>> {
    check_count("a list of neighbours", 1, rows.ncols())?;
    let mut top = TopK::new(rows.nrows(), k, exclude_self)?;
    top.add(0, rows)?;
    Ok(top.finish())
}

/// The `k` largest values of every row of a matrix that arrives in strips of columns, in any order.
#[derive(Clone, Debug)]
pub struct TopK {
    k: usize,
    exclude_self: Option<usize>,
    rows: Vec<Vec<Neighbour>>,
    /// First column and end of every strip so far.
    strips: BTreeMap<usize, usize>,
}

impl TopK {
    /// For a matrix with this many rows; `exclude_self` as in [`largest`].
    ///
    /// # Errors
    /// For a `k` of zero.
    pub fn new(n_rows: usize, k: usize, exclude_self: Option<usize>) -> Result<Self> {
        if k == 0 {
            return Err(LensError::Setting { name: "‹k›", value: "0".into(), reason: "at least one is needed" });
        }
        Ok(Self { k, exclude_self, rows: vec![Vec::new(); n_rows], strips: BTreeMap::new() })
    }

    /// Reads the columns from `first_column` on.
    ///
    /// # Errors
    /// For another number of rows, values that are not finite, and columns that were read before.
    pub fn add<T: Scalar>(&mut self, first_column: usize, strip: ArrayView2<'_, T>) -> Result<()> {
        crate::checks::check_rows("a strip of columns", self.rows.len(), strip.nrows())?;
        check_finite("neighbours", strip)?;
        let end = first_column.saturating_add(strip.ncols());
        if strip.ncols() > 0 {
            if self.strips.range(..end).next_back().is_some_and(|(_, &last)| last > first_column) {
                let reason = "these columns were read before";
                return Err(LensError::Setting { name: "the first column", value: first_column.to_string(), reason });
            }
            self.strips.insert(first_column, end);
        }
        for (row, (values, list)) in strip.outer_iter().zip(&mut self.rows).enumerate() {
            let own = self.exclude_self.map(|offset| offset + row);
            for (index, value) in (first_column..).zip(values) {
                if own != Some(index) {
                    insert(list, self.k, Neighbour { index, value: value.wide() });
                }
            }
        }
        Ok(())
    }

    /// The neighbours of every row, largest value first.
    pub fn finish(self) -> Vec<Vec<Neighbour>> {
        self.rows
    }
}

/// Whether `a` comes before `b`: the larger value, then the smaller index.
fn before(a: &Neighbour, b: &Neighbour) -> bool {
    a.value > b.value || a.value == b.value && a.index < b.index
}

fn insert(list: &mut Vec<Neighbour>, k: usize, candidate: Neighbour) {
    if list.len() == k {
        match list.last() {
            Some(last) if before(&candidate, last) => list.pop(),
            _ => return,
        };
    }
    let at = list.partition_point(|kept| before(kept, &candidate));
    list.insert(at, candidate);
}
