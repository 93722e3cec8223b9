//! A finite network, linearised around its parameters.

use super::flow::{Flow, FlowSettings};
use crate::arrays::Arrays;
use crate::error::{LearnError, Result, check_size};
use crate::repair::Repair;
use mercer_data::Existing;
use mercer_data::folder::{Folder, FolderKind, FolderWriter};
use mercer_linalg::{check_finite, matmul};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use std::path::Path;

const KIND: FolderKind = FolderKind { name: "linearised network", version: 1 };

/// `f_lin` at any time of gradient flow: how training would change a network if its kernel stayed constant.
///
/// The kernel has a row for every output of every sample (the full empirical NTK, equation 5), or a row for every
/// sample (the pseudo-NTK or any scalar kernel, equation 6, the same for every output).
#[derive(Clone, Debug)]
pub struct Linearised {
    flow: Flow,
    /// `Y − f_0(X)`, a row per sample.
    residual: Array2<f64>,
}

impl Linearised {
    /// From the kernel of the training samples, the network's outputs there, and the targets (one-hot for classes).
    pub fn fit(
        gram: ArrayView2<'_, f64>,
        outputs: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        settings: FlowSettings,
    ) -> Result<Self> {
        let (samples, n_outputs) = outputs.dim();
        if samples == 0 {
            return Err(LearnError::Empty { what: "fit" });
        }
        check_size("the number of targets", samples, targets.nrows())?;
        check_size("the number of targets per sample", n_outputs, targets.ncols())?;
        if gram.nrows() != samples {
            check_size(
                "the number of rows of the kernel (samples, or samples times outputs)",
                samples * n_outputs,
                gram.nrows(),
            )?;
        }
        check_finite("the outputs", outputs)?;
        check_finite("the targets", targets)?;
        let residual = &targets - &outputs;
        if residual.iter().any(|number| !number.is_finite()) {
            return Err(LearnError::NotFinite { what: "residuals" });
        }
        Ok(Self { flow: Flow::new(gram, samples, settings)?, residual })
    }

    /// Whether all outputs are learnt together.
    pub fn is_full(&self) -> bool {
        self.flow.values.len() != self.residual.nrows()
    }

    /// Directions that are never learnt.
    pub fn repairs(&self) -> Vec<Repair> {
        self.flow.repairs()
    }

    /// The outputs at a time, which may be infinite, from the kernel of test and training samples and the network's
    /// outputs.
    pub fn predict(&self, time: f64, cross: ArrayView2<'_, f64>, outputs: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (samples, n_outputs) = outputs.dim();
        check_size("the number of outputs", self.residual.ncols(), n_outputs)?;
        check_size("the number of columns of the kernel", self.flow.values.len(), cross.ncols())?;
        let rows = if self.is_full() { samples * n_outputs } else { samples };
        check_size("the number of rows of the kernel", rows, cross.nrows())?;
        check_finite("the kernel", cross)?;
        check_finite("the outputs", outputs)?;
        let columns = if self.is_full() { 1 } else { n_outputs };
        let stacked = self.residual.to_shape((self.flow.values.len(), columns)).expect("as many numbers");
        let learnt = self.flow.apply(&self.flow.filter(time, 1.0)?, stacked.view());
        let change = matmul(cross, learnt.view());
        Ok(&outputs + &change.to_shape((samples, n_outputs)).expect("as many numbers"))
    }

    /// Writes the machine into a folder and creates it if necessary.
    pub fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        let writer = FolderWriter::create(folder, KIND, existing)?;
        let objects = writer.objects();
        objects.array("values", &self.flow.values)?;
        objects.array("vectors", &self.flow.vectors)?;
        objects.array("residual", &self.residual)?;
        Ok(writer.commit(&Stored { settings: self.flow.settings })?)
    }

    /// Reads a saved machine.
    pub fn load(folder: &Path) -> Result<Self> {
        let folder = Folder::open(folder, Some(KIND))?;
        let objects = folder.objects();
        let reader = Arrays(&objects);
        let Stored { settings } = folder.content()?;
        let values = reader.vector("values", None)?;
        let vectors = reader.matrix("vectors", Some(values.len()), Some(values.len()))?;
        let residual = reader.matrix("residual", None, None)?;
        let (samples, n_outputs) = residual.dim();
        if values.len() != samples && values.len() != samples * n_outputs {
            return Err(reader.malformed(format!("{} eigenvalues do not match {samples} samples", values.len())));
        }
        Ok(Self { flow: Flow { settings, values, vectors, n_samples: samples }, residual })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    settings: FlowSettings,
}
