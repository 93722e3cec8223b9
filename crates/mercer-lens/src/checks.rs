//! Checks of inputs that several lenses share.

use crate::error::{LensError, Result};
use crate::neighbours::Neighbour;
use mercer_linalg::LinalgError;

/// Checks that there are enough samples.
pub(crate) fn check_count(what: &'static str, least: usize, found: usize) -> Result<()> {
    if found >= least { Ok(()) } else { Err(LensError::TooFew { what, least, found }) }
}

/// Checks that two sizes agree.
pub(crate) fn check_rows(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(LensError::Rows { what, expected, found }) }
}

/// Checks that every number is finite.
pub(crate) fn check_numbers(what: &'static str, values: &[f64]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(row) => Err(LinalgError::NotFinite { routine: what, row, column: 0, value: values[row] }.into()),
        None => Ok(()),
    }
}

/// Checks that every label is the index of a class.
pub(crate) fn check_labels(labels: &[usize], n_classes: usize) -> Result<()> {
    match labels.iter().position(|&label| label >= n_classes) {
        Some(row) => Err(LensError::Label { row, label: labels[row], n_classes }),
        None => Ok(()),
    }
}

/// Checks that lists of neighbours refer to samples below `size`, with finite values.
pub(crate) fn check_neighbours(lists: &[Vec<Neighbour>], size: usize) -> Result<()> {
    for (row, list) in lists.iter().enumerate() {
        for (column, &Neighbour { index, value }) in list.iter().enumerate() {
            if index >= size {
                return Err(LensError::Index { what: "the list of neighbours", row, index, size });
            }
            if !value.is_finite() {
                return Err(LinalgError::NotFinite { routine: "neighbours", row, column, value }.into());
            }
        }
    }
    Ok(())
}
