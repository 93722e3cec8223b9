//! Rows supplied by the user: a Gram matrix, kernel values with the samples of a machine, or features.

use crate::Error;
use crate::spec::{DataRef, DataSpec, Opening, PreprocessSpec, Samples};
use mercer_data::{Columns, Dataset, Fingerprint, Source};
use mercer_kernel::KernelError;
use mercer_kernel::gram::KeptGram;
use mercer_run::Context;
use ndarray::{Array2, ArrayD, Ix2};

/// Rows that have been located but not read.
#[derive(Debug)]
pub(crate) struct UserRows {
    setting: &'static str,
    place: String,
    source: RowSource,
}

#[derive(Debug)]
enum RowSource {
    Table(Box<Samples>),
    /// A file, a store, or one file per layer: the kernel itself, without matrices that are not part of it.
    Matrix(Box<KeptGram>),
    Given(Box<Dataset>),
}

impl UserRows {
    /// Locates rows. The columns of a table are matched to those of `like`.
    pub(crate) fn open(
        setting: &'static str,
        data: &DataRef,
        options: &DataSpec,
        like: &[Option<Columns>],
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let source = match data {
            DataRef::Given { given } => RowSource::Given(Box::new(opening.inputs.array(given)?.clone())),
            DataRef::File(text) => {
                let source = text.parse::<Source>()?;
                if source.is_table() {
                    let plain = DataSpec { preprocess: PreprocessSpec::default(), ..options.clone() };
                    let samples = Samples::plain(setting, std::slice::from_ref(data), &plain, like, opening)?;
                    RowSource::Table(Box::new(samples))
                } else {
                    let kept = KeptGram::open(&source).map_err(|error| of_matrix(setting, error))?;
                    RowSource::Matrix(Box::new(kept))
                }
            }
        };
        let rows = Self { setting, place: data.to_string(), source };
        match rows.shape()[..] {
            [_, _] => Ok(rows),
            ref shape => Err(no_matrix(&format!("‹{setting}›"), shape)),
        }
    }

    /// As it was named.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    fn shape(&self) -> Vec<usize> {
        match &self.source {
            RowSource::Table(samples) => samples.inputs.first().map_or(Vec::new(), |input| input.shape().to_vec()),
            RowSource::Matrix(kept) => kept.shape(),
            RowSource::Given(set) => set.shape().to_vec(),
        }
    }

    /// Rows and columns.
    pub(crate) fn dim(&self) -> (usize, usize) {
        match self.shape()[..] {
            [rows, columns] => (rows, columns),
            _ => (0, 0),
        }
    }

    /// The number of matrices to sum when it is read.
    pub(crate) fn n_parts(&self) -> usize {
        match &self.source {
            RowSource::Matrix(kept) => kept.n_parts(),
            _ => 1,
        }
    }

    /// The columns of a table.
    pub(crate) fn columns(&self) -> Vec<Option<Columns>> {
        match &self.source {
            RowSource::Table(samples) => samples.columns.clone(),
            _ => Vec::new(),
        }
    }

    /// Reads them.
    pub(crate) fn read(&self, context: &Context) -> Result<Array2<f64>, Error> {
        let array = match &self.source {
            RowSource::Table(samples) => samples.inputs[0].read::<f64>()?,
            RowSource::Matrix(kept) => kept.read::<f64>(context).map_err(|error| of_matrix(self.setting, error))?,
            RowSource::Given(set) => set.read::<f64>()?,
        };
        flat(&format!("‹{}›", self.setting), array)
    }
}

fn of_matrix(setting: &str, error: KernelError) -> Error {
    match error {
        KernelError::Setting(text) => Error::new(format!("‹{setting}› {text}")),
        other => other.into(),
    }
}

/// An array with two axes.
pub(crate) fn flat(what: &str, array: ArrayD<f64>) -> Result<Array2<f64>, Error> {
    let shape = array.shape().to_vec();
    array.into_dimensionality::<Ix2>().map_err(|_| no_matrix(what, &shape))
}

fn no_matrix(what: &str, shape: &[usize]) -> Error {
    Error::new(format!("{what}: a matrix is needed, this has shape {shape:?}"))
        .hint("a row per sample; a full kernel has a matrix per pair, take trace or pseudo")
}

/// The fingerprint of a matrix, equal to that of a file that holds it.
pub(crate) fn fingerprint(matrix: &Array2<f64>) -> String {
    let mut fingerprint = Fingerprint::new();
    fingerprint.update_count(2);
    matrix.shape().iter().for_each(|&length| fingerprint.update_count(length));
    let mut bytes = Vec::new();
    for row in matrix.rows() {
        bytes.clear();
        row.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        fingerprint.update(&bytes);
    }
    fingerprint.finish()
}
