//! A machine with everything it needs to predict from samples: its kernel and its training samples.

use crate::error::{Result, setting};
use crate::machine::Machine;
use crate::samples::{SampleKind, SampleRows};
use crate::traits::Predict;
use mercer_data::folder::{Folder, FolderKind, FolderWriter, SavedSamples};
use mercer_data::{Dataset, Existing, RowBlock};
use mercer_kernel::gram::Gram;
use mercer_kernel::{Kernel, SavedKernel};
use mercer_net::Network;
use mercer_run::Context;
use ndarray::{Array1, Array2, Ix2};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// A machine in the form in which it is saved. It is self-contained: the folder can be moved, and the network and data
/// can be deleted.
#[derive(Clone, Debug)]
pub struct KernelMachine {
    /// The machine itself.
    pub machine: Machine,
    /// The kernel that computes rows of samples; `None` if the user supplies rows.
    pub kernel: Option<SavedKernel>,
    /// What is known about the training samples. Only machines with a kernel need the inputs.
    pub samples: SavedSamples,
}

/// What the manifest says.
#[derive(Serialize, Deserialize)]
struct Content {
    machine: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<Value>,
    samples: Value,
}

/// The kernel values of new samples.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Kernel values with the training samples, with one row per new sample.
    pub matrix: Array2<f64>,
    /// Kernel values of new samples with themselves.
    pub prior: Array1<f64>,
}

impl From<Machine> for KernelMachine {
    /// A machine on rows that the user supplies.
    fn from(machine: Machine) -> Self {
        Self { machine, kernel: None, samples: SavedSamples::default() }
    }
}

impl KernelMachine {
    /// The folder kind of machines.
    pub const KIND: FolderKind = FolderKind { name: "machine", version: 1 };

    /// Saves the machine in a folder and creates it if necessary.
    ///
    /// # Errors
    /// As [`FolderWriter::create`] and [`FolderWriter::commit`].
    pub fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        self.commit(FolderWriter::create(folder, Self::KIND, existing)?)
    }

    /// Completes a folder of this [`KIND`](Self::KIND), to which other files may have been added.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn commit(&self, writer: FolderWriter) -> Result<()> {
        let content = self.write(&writer)?;
        Ok(writer.commit(&content)?)
    }

    /// Writes all parts into a folder, on disk or in memory, and returns its content.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn write(&self, writer: &FolderWriter) -> Result<Value> {
        let objects = writer.objects();
        let content = Content {
            machine: self.machine.write(&objects)?,
            kernel: self.kernel.as_ref().map(|kernel| kernel.write(&objects.part("kernel"))).transpose()?,
            samples: self.samples.write(&objects.part("samples"))?,
        };
        Ok(objects.content(&content)?)
    }

    /// Loads a machine from a folder.
    ///
    /// # Errors
    /// For files that are missing or damaged, of another kind or a newer version, or inconsistent.
    pub fn load(folder: &Path) -> Result<Self> {
        Self::read(&Folder::open(folder, Some(Self::KIND))?)
    }

    /// Reads a machine from an open folder.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read(folder: &Folder) -> Result<Self> {
        let (objects, content) = (folder.objects(), folder.content::<Content>()?);
        let kernel = content.kernel.map(|content| SavedKernel::read(&objects.part("kernel"), &content)).transpose()?;
        Ok(Self {
            machine: Machine::read(&objects, &content.machine)?,
            kernel,
            samples: SavedSamples::read(&objects.part("samples"), &content.samples)?,
        })
    }

    /// The network of the kernel, for opening samples.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn network(&self) -> Result<Option<Network>> {
        Ok(self.kernel.as_ref().map(SavedKernel::open).transpose()?.flatten())
    }

    /// The kernel values of new samples, one set per input, preprocessed like the training samples.
    ///
    /// # Errors
    /// For a machine without a kernel, and for samples of another shape.
    pub fn rows(&self, inputs: &[Dataset], context: &Context) -> Result<Rows> {
        self.rows_with(self.network()?.as_ref(), inputs, context)
    }

    /// The same, with the [`network`](Self::network) already opened.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn rows_with(&self, network: Option<&Network>, inputs: &[Dataset], context: &Context) -> Result<Rows> {
        let Some(kernel) = &self.kernel else {
            return Err(setting("the kernel", "not known", "the machine was fitted on rows and predicts from rows"));
        };
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|input| input.sample_shape().to_vec()).collect();
        if shapes != self.samples.shapes() {
            let text = format!("{shapes:?} instead of {:?}", self.samples.shapes());
            return Err(setting("the shape of samples", text, "it must be that of the training samples"));
        }
        let built = kernel.build_with::<f64>(network, &shapes)?;
        let cross = Gram::new(&*built.kernel, inputs).against(&self.samples.inputs).to_kernel(context)?;
        let matrix = cross.into_dimensionality::<Ix2>();
        let reason = "a machine takes one number per pair of samples";
        let matrix = matrix.map_err(|error| setting("the kernel", error, reason))?;
        Ok(Rows { matrix, prior: diagonal(&*built.kernel, inputs, context)? })
    }

    /// Predictions for new samples, as [`Predict::predict`].
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn predict(&self, inputs: &[Dataset], context: &Context) -> Result<Array2<f64>> {
        self.machine.predict(&self.samples_of(&self.rows(inputs, context)?))
    }

    /// Rows in the form that the machine takes.
    pub fn samples_of<'a>(&self, rows: &'a Rows) -> SampleRows<'a> {
        match self.machine.basis() {
            SampleKind::Gram => SampleRows::Gram(rows.matrix.view()),
            SampleKind::Features => SampleRows::Features(rows.matrix.view()),
        }
    }
}

/// Kernel values of samples with themselves.
fn diagonal(kernel: &dyn Kernel<f64>, inputs: &[Dataset], context: &Context) -> Result<Array1<f64>> {
    const BLOCK: usize = 256;
    let n_samples = inputs.first().map_or(0, Dataset::n_samples);
    let mut diagonal = Vec::with_capacity(n_samples);
    for start in (0..n_samples).step_by(BLOCK) {
        context.check()?;
        let rows = start..(start + BLOCK).min(n_samples);
        let block = RowBlock::<f64>::read(inputs, rows.clone())?;
        let block = kernel.prepare(&block.slices(), rows.len()).map_err(|error| error.shifted(start))?;
        diagonal.extend(kernel.diagonal(&block));
    }
    Ok(diagonal.into())
}
