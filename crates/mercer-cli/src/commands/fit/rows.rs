//! Rows that a machine is fitted on or predicts from, as the user gives them.

use crate::console::Console;
use crate::failure::Failure;
use crate::options::{DataOptions, PreprocessOptions, Samples};
use mercer::data::{Columns, Source};
use mercer::kernel::KernelError;
use mercer::kernel::gram::KeptGram;
use ndarray::{Array2, ArrayD, Ix2};

/// Rows of samples from a file or a store, and the columns of a table.
pub(crate) fn read_rows(
    flag: &str,
    text: &str,
    options: &DataOptions,
    like: &[Option<Columns>],
    console: &Console,
) -> Result<(Array2<f64>, Vec<Option<Columns>>), Failure> {
    let source = text.parse::<Source>()?;
    if !source.is_table() {
        return Ok((read_matrix(flag, &source, console)?, Vec::new()));
    }
    let plain = DataOptions { preprocess: PreprocessOptions::default(), ..options.clone() };
    let samples = Samples::plain(flag, &[text.to_owned()], &plain, like, console)?;
    Ok((flat(flag, samples.inputs[0].read::<f64>()?)?, samples.columns))
}

/// A matrix from a file or a store: the kernel itself, without what lies beside it.
fn read_matrix(flag: &str, source: &Source, console: &Console) -> Result<Array2<f64>, Failure> {
    let matrix = KeptGram::open(source).and_then(|kept| kept.read::<f64>(console.context()));
    let matrix = matrix.map_err(|error| match error {
        KernelError::Data(error) => (*error).into(),
        KernelError::Store(error) => (*error).into(),
        other => Failure::new(format!("{flag} {other}")),
    })?;
    flat(flag, matrix)
}

/// An array with two axes.
pub(super) fn flat(what: &str, array: ArrayD<f64>) -> Result<Array2<f64>, Failure> {
    let shape = array.shape().to_vec();
    array.into_dimensionality::<Ix2>().map_err(|_| {
        Failure::new(format!("{what}: a matrix is needed, this has shape {shape:?}"))
            .hint("a row per sample; a full kernel has a matrix per pair, take trace or pseudo")
    })
}
