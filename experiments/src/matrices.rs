//! What several experiments need: Gram matrices and features of rows, outputs of networks, medians.

use crate::Fallible;
use mercer::data::Dataset;
use mercer::kernel::gram::Gram;
use mercer::kernel::{FeatureMap, Kernel};
use mercer::net::Network;
use mercer::run::Context;
use ndarray::Array2;

/// The Gram matrix of rows, or between rows and columns.
pub(crate) fn gram(
    kernel: &dyn Kernel<f64>,
    rows: &Array2<f64>,
    columns: Option<&Array2<f64>>,
) -> Fallible<Array2<f64>> {
    let rows = [dataset(rows)?];
    let mut work = Gram::new(kernel, &rows);
    let against;
    if let Some(columns) = columns {
        against = [dataset(columns)?];
        work = work.against(&against);
    }
    let matrix = work.to_arrays(&Context::new())?.remove(0);
    let side = matrix.shape().iter().take(matrix.ndim() / 2).product::<usize>();
    let columns = matrix.len() / side;
    Ok(matrix.into_shape_with_order((side, columns))?)
}

/// The features of rows.
pub(crate) fn features(map: &dyn FeatureMap<f64>, rows: &Array2<f64>) -> Fallible<Array2<f64>> {
    let mut out = Array2::zeros((rows.nrows(), map.n_features()));
    let rows_slice = rows.as_slice().ok_or("rows are contiguous")?;
    map.features(&[rows_slice], rows.nrows(), out.as_slice_mut().ok_or("features are contiguous")?)?;
    Ok(out)
}

pub(crate) fn dataset(rows: &Array2<f64>) -> Fallible<Dataset> {
    Ok(Dataset::from_array("rows", rows.view().into_dyn())?)
}

/// The middle of some numbers.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { 0.5 * (values[middle - 1] + values[middle]) }
}

/// The outputs of a network.
pub(crate) fn outputs(network: &Network, rows: &Array2<f64>) -> Fallible<Array2<f64>> {
    let values: Vec<f64> = rows.iter().copied().collect();
    let found = network.predict(&[(&values[..], &[rows.ncols()][..])], rows.nrows(), None, None)?;
    Ok(Array2::from_shape_vec((rows.nrows(), found.values.len() / rows.nrows()), found.values)?)
}
