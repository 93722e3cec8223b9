//! Matrices in memory, for machines: the rows of an array are the samples.

use super::expression::Formula;
use super::kernel::Classic;
use crate::error::Result;
use crate::gram::Gram;
use crate::kernel::Kernel;
use mercer_data::Dataset;
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayD, ArrayView2, Ix2};

impl Formula {
    /// `κ(x_i, x_j)`.
    pub fn gram(&self, x: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let kernel = Classic::<f64>::new(self, x.ncols())?;
        matrix(Gram::new(&kernel, &[dataset(x)?]).to_arrays(&Context::new())?, (x.nrows(), x.nrows()))
    }

    /// `κ(x_i, y_j)`.
    pub fn cross(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let kernel = Classic::<f64>::new(self, x.ncols())?;
        let (rows, columns) = ([dataset(x)?], [dataset(y)?]);
        let arrays = Gram::new(&kernel, &rows).against(&columns).to_arrays(&Context::new())?;
        matrix(arrays, (x.nrows(), y.nrows()))
    }

    /// `κ(x_i, x_i)`.
    pub fn diagonal(&self, x: ArrayView2<'_, f64>) -> Result<Array1<f64>> {
        let kernel = Classic::<f64>::new(self, x.ncols())?;
        let block = kernel.prepare(&[x.as_standard_layout().as_slice().unwrap_or(&[])], x.nrows())?;
        Ok(kernel.diagonal(&block).into())
    }
}

fn dataset(x: ArrayView2<'_, f64>) -> Result<Dataset> {
    Ok(Dataset::from_array("x", x.into_dyn())?)
}

/// The only matrix of a scalar kernel.
fn matrix(arrays: Vec<ArrayD<f64>>, shape: (usize, usize)) -> Result<Array2<f64>> {
    let only = arrays.into_iter().next().and_then(|array| array.into_dimensionality::<Ix2>().ok());
    Ok(only.unwrap_or_else(|| Array2::zeros(shape)))
}
