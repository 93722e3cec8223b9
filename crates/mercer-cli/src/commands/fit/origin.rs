//! Where the rows of a machine come from: the kernel, its network and the training samples, so that predictions need new
//! samples alone.

use crate::console::Console;
use crate::failure::Failure;
use crate::options::{
    DataOptions, KernelOptions, ParameterOptions, PreprocessOptions, Samples, Source as KernelSource, SourceOptions,
};
use mercer::data::{Columns, Dataset, Existing, Source, write_npy};
use mercer::kernel::gram::{Gram, KeptGram};
use mercer::kernel::{KernelError, Recipe};
use mercer::learn::folder::{FolderReader, FolderWriter};
use mercer::run::Context;
use ndarray::{Array2, ArrayD, Ix2};
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "origin.json";
const FORMAT: &str = "mercer origin";
const VERSION: u32 = 1;

/// How rows are made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Origin {
    recipe: Recipe,
    source: SourceOptions,
    parameters: ParameterOptions,
    seed: u64,
    /// What the kernel was: another network under the same name has another.
    identity: serde_json::Value,
    /// What each input went through between its file and the kernel.
    #[serde(default)]
    preprocess: serde_json::Value,
    /// The training samples beside it are called `input-0.npy` and so on.
    n_inputs: usize,
}

impl Origin {
    pub(super) fn new(
        kernel: &KernelOptions,
        parameters: &ParameterOptions,
        recipe: Recipe,
        identity: serde_json::Value,
        preprocess: serde_json::Value,
    ) -> Self {
        let source = kernel.source().absolute();
        Self { recipe, source, parameters: parameters.clone(), seed: kernel.seed(), identity, preprocess, n_inputs: 0 }
    }

    /// The steps of preprocessing, if they are known.
    pub(crate) fn preprocess(&self) -> Option<&serde_json::Value> {
        Some(&self.preprocess).filter(|steps| !steps.is_null())
    }

    /// Takes away the origin of a machine that is being replaced.
    pub(super) fn forget(folder: &Path) -> Result<(), Failure> {
        Ok(mercer::learn::folder::forget(folder, FILE)?)
    }

    pub(super) fn save(&self, folder: &Path, inputs: &[Dataset], existing: Existing) -> Result<(), Failure> {
        let writer = FolderWriter::create(folder, FILE, existing)?;
        for (at, input) in inputs.iter().enumerate() {
            write_npy(&folder.join(input_name(at)), &input.read::<f64>()?, existing)?;
        }
        let content = serde_json::to_value(Self { n_inputs: inputs.len(), ..self.clone() })
            .map_err(|error| Failure::new(format!("the kernel cannot be written down: {error}")))?;
        Ok(writer.finish(FORMAT, VERSION, content)?)
    }

    /// The origin of a machine, if it knows it.
    pub(crate) fn load(folder: &Path) -> Result<Option<Self>, Failure> {
        if !folder.join(FILE).exists() {
            return Ok(None);
        }
        Ok(Some(FolderReader::open(folder, FILE, FORMAT, VERSION)?.content()?))
    }

    /// The network, to open samples for.
    pub(crate) fn network(&self) -> Result<KernelSource, Failure> {
        self.source.open(&self.parameters, self.seed).map_err(|failure| {
            let hint = "the machine's kernel is of this network: bring it back, or fit again";
            Failure::new(format!("the network of the machine: {}", failure.message())).hint(hint)
        })
    }

    /// Kernel values between new samples and the training samples, and of new samples with themselves.
    pub(crate) fn rows(
        &self,
        folder: &Path,
        source: &KernelSource,
        samples: &Samples,
        progress: &Context,
    ) -> Result<(Array2<f64>, Vec<f64>), Failure> {
        let path = self.source.path();
        let failed = |error: KernelError| match error {
            KernelError::Network(error) => Failure::of_network(path, *error),
            KernelError::Cancelled => Failure::interrupted("interrupted; nothing was written"),
            other => Failure::new(format!("{}: {other}", path.display())),
        };
        let training: Vec<Dataset> = (0..self.n_inputs)
            .map(|at| Ok(Source::new(folder.join(input_name(at)), None).open()?))
            .collect::<Result<_, Failure>>()?;
        let shapes = samples.shapes();
        let fitted: Vec<Vec<usize>> = training.iter().map(|input| input.sample_shape().to_vec()).collect();
        if shapes != fitted {
            return Err(Failure::new(format!(
                "--data has samples of shape {shapes:?}, the machine learnt from {fitted:?}"
            )));
        }
        source.check_shapes(&shapes, path)?;
        let built = self.recipe.build::<f64>(source.network(), &shapes).map_err(failed)?;
        if built.kernel.identity() != self.identity {
            let text = format!("{}: this is not the network that the machine was fitted with", path.display());
            return Err(Failure::new(text).hint("its structure or its weights have changed: fit again"));
        }
        let cross = Gram::new(&*built.kernel, &samples.inputs).against(&training);
        let cross = cross.to_kernel(progress).map_err(failed)?;
        let mut diagonal = Vec::with_capacity(samples.n_samples);
        for start in (0..samples.n_samples).step_by(256) {
            let range = start..(start + 256).min(samples.n_samples);
            let inputs: Vec<ArrayD<f64>> =
                samples.inputs.iter().map(|input| input.rows(range.clone())).collect::<Result<_, _>>()?;
            let inputs: Vec<_> = inputs.iter().map(|input| input.as_standard_layout()).collect();
            let slices: Vec<&[f64]> = inputs.iter().map(|input| input.as_slice().unwrap_or(&[])).collect();
            let block = built.kernel.prepare(&slices, range.len()).map_err(|error| failed(error.shifted(start)))?;
            diagonal.extend(built.kernel.diagonal(&block));
        }
        Ok((flat("the kernel", cross)?, diagonal))
    }
}

fn input_name(at: usize) -> String {
    format!("input-{at}.npy")
}

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
