//! Matrices and vectors of a saved machine.

use crate::error::{LearnError, Result};
use mercer_data::folder::Part;
use ndarray::{Array1, Array2, Ix1, Ix2};

/// Arrays in a part of a folder, by name. Known sizes must match, and all numbers must be finite.
pub(crate) struct Arrays<'a>(pub(crate) &'a Part<'a>);

impl Arrays<'_> {
    pub(crate) fn matrix(&self, name: &str, rows: Option<usize>, columns: Option<usize>) -> Result<Array2<f64>> {
        let array = self.0.read::<f64>(name, &[rows, columns])?.into_dimensionality::<Ix2>();
        array.map_err(|error| self.malformed(error))
    }

    pub(crate) fn vector(&self, name: &str, length: Option<usize>) -> Result<Array1<f64>> {
        let array = self.0.read::<f64>(name, &[length])?.into_dimensionality::<Ix1>();
        array.map_err(|error| self.malformed(error))
    }

    pub(crate) fn malformed(&self, reason: impl ToString) -> LearnError {
        self.0.malformed(reason).into()
    }
}
