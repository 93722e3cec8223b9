//! `cargo xtask machines`: experiments with machines on kernels whose outcome was published, or promised.
//!
//! | experiment | what it shows |
//! |---|---|
//! | `regression` | networks, and least squares with their tangent and conjugate kernels, on three functions (arXiv 2310.18612, figures 3 and 6) |
//! | `logistic` | the same for two boundaries (figure 8) |
//! | `widths` | pseudo against empirical tangent kernel as networks grow (arXiv 2206.12543, figures 2 to 4) |
//! | `uci --data-dir DIR` | Gaussian processes with RBF, NNGP and NTK kernels on tables, split 0 |
//! | `iterative` | conjugate gradients on 50,000 samples with and without a preconditioner |

mod functions;
mod iterative;
mod logistic;
mod uci;
mod widths;

use crate::Outcome;
use mercer_data::Dataset;
use mercer_kernel::gram::Gram;
use mercer_kernel::{FeatureMap, Kernel};
use mercer_run::Context;
use ndarray::Array2;

/// Takes the name of an experiment and its options.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    match arguments.first().map(String::as_str) {
        Some("regression") => functions::run(arguments),
        Some("logistic") => logistic::run(arguments),
        Some("widths") => widths::run(arguments),
        Some("uci") => uci::run(arguments),
        Some("iterative") => iterative::run(arguments),
        _ => Err("which experiment: regression, logistic, widths, uci or iterative?".into()),
    }
}

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// The Gram matrix of rows, or between rows and columns.
fn gram(kernel: &dyn Kernel<f64>, rows: &Array2<f64>, columns: Option<&Array2<f64>>) -> Fallible<Array2<f64>> {
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
fn features(map: &dyn FeatureMap<f64>, rows: &Array2<f64>) -> Fallible<Array2<f64>> {
    let mut out = Array2::zeros((rows.nrows(), map.n_features()));
    let rows_slice = rows.as_slice().ok_or("rows are contiguous")?;
    map.features(&[rows_slice], rows.nrows(), out.as_slice_mut().ok_or("features are contiguous")?)?;
    Ok(out)
}

fn dataset(rows: &Array2<f64>) -> Fallible<Dataset> {
    Ok(Dataset::from_array("rows", rows.view().into_dyn())?)
}

/// The middle of some numbers.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { 0.5 * (values[middle - 1] + values[middle]) }
}
