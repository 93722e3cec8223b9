//! Training data of a machine: rows from the user, or a kernel and samples.

use super::findings::{TunedParameter, Tuning};
use super::machine::MachineSpec;
use crate::Error;
use crate::job::record::InputRecord;
use crate::job::rows::{UserRows, fingerprint, flat};
use crate::spec::{
    DataRef, DataSpec, DecodingSpec, KernelSpec, Known, NetworkSource, Opening, PreprocessSpec, Samples,
};
use mercer_data::folder::{SavedSamples, digest};
use mercer_data::{Dataset, Labels};
use mercer_kernel::classic::{ClassicError, Formula, KernelParameter};
use mercer_kernel::gram::Gram;
use mercer_kernel::{Recipe, SavedKernel};
use mercer_learn::SampleKind;
use mercer_learn::process::Tune;
use mercer_run::Context;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// The training data of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Training {
    /// The Gram matrix of the training samples: an array, a store, or one array per layer.
    Gram(DataRef),
    /// The features of the training samples, one row each.
    Features(DataRef),
    /// A kernel and the training samples; the matrix is computed in double precision.
    Kernel {
        /// The kernel.
        kernel: Box<KernelSpec>,
        /// One array per input of the network, or one.
        data: Vec<DataRef>,
        /// The preprocessing of the samples.
        #[serde(default, skip_serializing_if = "PreprocessSpec::is_empty")]
        preprocess: PreprocessSpec,
        /// How texts and images become numbers.
        #[serde(default, skip_serializing_if = "DecodingSpec::is_empty")]
        decoding: DecodingSpec,
    },
}

/// Opened training data.
#[derive(Debug)]
pub(super) enum Opened {
    Rows(UserRows, SampleKind),
    Kernel(Box<OpenedKernel>),
}

/// A kernel and its samples.
#[derive(Debug)]
pub(super) struct OpenedKernel {
    spec: KernelSpec,
    source: NetworkSource,
    samples: Samples,
    recipe: Recipe,
}

/// The rows, and how they were made.
pub(super) struct Made {
    pub(super) matrix: Array2<f64>,
    pub(super) basis: SampleKind,
    /// The kernel that makes rows; none for rows from the user.
    pub(super) kernel: Option<SavedKernel>,
    pub(super) samples: SavedSamples,
    pub(super) inputs: Vec<InputRecord>,
    /// The tuned noise and the tuned parameters.
    pub(super) tuned: Option<(f64, Tuning)>,
}

impl Training {
    /// Opens the files; reads only headers.
    pub(super) fn open(&self, machine: &MachineSpec, labels: &DataRef, opening: Opening<'_>) -> Result<Opened, Error> {
        let options = DataSpec { used: vec![labels.clone()], ..DataSpec::default() };
        let (setting, data, basis) = match self {
            Self::Gram(data) => ("gram", data, SampleKind::Gram),
            Self::Features(data) => ("features", data, SampleKind::Features),
            Self::Kernel { kernel, data, preprocess, decoding } => {
                let options = DataSpec { preprocess: preprocess.clone(), decoding: decoding.clone(), ..options };
                let opened = OpenedKernel::open(kernel, data, &options, machine, opening)?;
                return Ok(Opened::Kernel(Box::new(opened)));
            }
        };
        if machine.is_tuned() {
            let text = format!("‹tune›: ‹{setting}› has no parameters; it takes ‹kernel› and ‹data›");
            return Err(Error::new(text));
        }
        let rows = UserRows::open(setting, data, &options, &[], opening)?;
        match (basis, rows.dim()) {
            (SampleKind::Gram, (rows, columns)) if rows != columns => {
                Err(Error::new(format!("‹gram› {data}: {rows} rows but {columns} columns"))
                    .hint("a machine is fitted on the kernel of the training samples with themselves"))
            }
            _ => Ok(Opened::Rows(rows, basis)),
        }
    }
}

impl OpenedKernel {
    fn open(
        spec: &KernelSpec,
        data: &[DataRef],
        options: &DataSpec,
        machine: &MachineSpec,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        if !spec.is_given() {
            return Err(Error::new("‹data›: which kernel?").hint(
                "‹kernel› 'rbf(lengthscale=1)', or ‹net› MODEL.onnx ‹kernel› trace; or ‹features› FILE for rows that are features themselves",
            ));
        }
        spec.check()?;
        let source = spec.open()?;
        let samples = source.samples("data", data, options, &[], opening)?;
        samples.hint(source.network(), opening)?;
        let shapes = samples.shapes();
        source.check_shapes(&shapes, spec.path())?;
        let recipe = spec.recipe(&source)?;
        spec.tell(&recipe, &source, &shapes, opening.context);
        if machine.is_tuned() && !(matches!(recipe, Recipe::Classic(_)) && samples.inputs.len() == 1) {
            let text = "‹tune›: this kernel has no parameters to tune";
            return Err(Error::new(text).hint("‹kernel› 'rbf(lengthscale=1)'"));
        }
        Ok(Self { spec: spec.clone(), source, samples, recipe })
    }

    /// The formula and the noise that maximise the marginal likelihood.
    fn tune(
        &self,
        machine: &MachineSpec,
        known: &Known,
        seed: u64,
        context: &Context,
    ) -> Result<(Recipe, Option<(f64, Tuning)>), Error> {
        let (MachineSpec::Process { noise_variance, centred, tune: true }, Recipe::Classic(formula), [input]) =
            (machine, &self.recipe, &self.samples.inputs[..])
        else {
            return Ok((self.recipe.clone(), None));
        };
        let _phase = context.phase("tuning");
        let wrong = |error: String| Error::new(format!("‹kernel› {formula}: {error}"));
        let expression: Formula = formula.parse().map_err(|error: ClassicError| wrong(error.to_string()))?;
        let rows = flat_samples(input).map_err(|error| wrong(error.to_string()))?;
        let Known::Numbers(targets) = known else {
            return Err(Error::new("‹tune›: ‹labels› must be numbers"));
        };
        for hint in tuning_hints(formula, &expression, targets, *centred) {
            context.note(&hint);
        }
        let search = Tune { noise: *noise_variance, centred: *centred, restarts: 2, seed };
        let found = search.run(&expression, rows.view(), targets.view(), context)?;
        let kernel = found.kernel.to_string();
        let both = expression.parameters().into_iter().zip(found.kernel.parameters());
        let changed = |(old, new): (KernelParameter, KernelParameter)| TunedParameter {
            name: old.name,
            before: old.value,
            after: new.value,
        };
        let mut tuned: Vec<TunedParameter> = both.map(changed).collect();
        let name = "noise_variance".to_owned();
        tuned.push(TunedParameter { name, before: *noise_variance, after: found.noise });
        let tuning = Tuning {
            kernel: kernel.clone(),
            tuned,
            log_marginal_likelihood_before: found.log_likelihood_before,
            evaluations: found.evaluations,
        };
        Ok((Recipe::Classic(kernel), Some((found.noise, tuning))))
    }
}

/// Targets whose mean is larger than this many of their standard deviations are far from zero.
const FAR: f64 = 1.0;

/// Hints about what tuning cannot change: a kernel of fixed variance, and targets whose mean is far from zero.
fn tuning_hints(formula: &str, kernel: &Formula, targets: &Array2<f64>, centred: bool) -> Vec<String> {
    let mut hints = Vec::new();
    if !kernel.parameters().iter().any(|parameter| parameter.name.starts_with("factor")) {
        let scaled = if formula.contains('+') { format!("1*({formula})") } else { format!("1*{formula}") };
        hints.push(format!(
            "the variance of the kernel {formula} is fixed; ‹kernel› '{scaled}' also tunes the variance"
        ));
    }
    let far = targets.columns().into_iter().any(|column| {
        let mean = column.mean().unwrap_or(0.0);
        mean.abs() > FAR * column.std(0.0)
    });
    if far && !centred {
        hints.push(
            "the mean of the targets is large against their standard deviation, but the process has mean zero: ‹centred› \
             subtracts it"
                .to_owned(),
        );
    }
    hints
}

/// Samples as rows of numbers.
fn flat_samples(input: &Dataset) -> Result<Array2<f64>, Error> {
    let size = input.sample_shape().iter().product::<usize>();
    let rows = input.read::<f64>()?.into_shape_with_order((input.n_samples(), size));
    rows.map_err(|error| Error::new(error.to_string()))
}

impl Opened {
    /// The number of samples and the length of their rows.
    pub(super) fn dim(&self) -> (usize, usize) {
        match self {
            Self::Rows(rows, _) => rows.dim(),
            Self::Kernel(kernel) => (kernel.samples.n_samples, kernel.samples.n_samples),
        }
    }

    pub(super) fn basis(&self) -> SampleKind {
        match self {
            Self::Rows(_, basis) => *basis,
            Self::Kernel(_) => SampleKind::Gram,
        }
    }

    /// Matrices of the result's size that are held while it is made.
    pub(super) fn copies(&self) -> usize {
        match self {
            Self::Rows(rows, _) => rows.n_parts().min(2),
            Self::Kernel(_) => 1,
        }
    }

    /// The least memory in which the rows can be computed; nothing for rows from the user.
    pub(super) fn least_bytes(&self) -> Result<usize, Error> {
        let Self::Kernel(kernel) = self else { return Ok(0) };
        let OpenedKernel { spec, source, samples, .. } = &**kernel;
        let failed = |error| spec.failure(error);
        let built = kernel.recipe.build::<f64>(source.network(), &samples.shapes()).map_err(failed)?;
        let gram = Gram::new(&*built.kernel, &samples.inputs);
        let plan = gram.plan(&gram.layout().all_tiles(), &Context::new().with_memory(usize::MAX)).map_err(failed)?;
        let held = samples.n_samples.saturating_mul(samples.n_samples).saturating_mul(size_of::<f64>());
        Ok(plan.least_bytes.saturating_add(held))
    }

    /// The files, as they were named.
    pub(super) fn places(&self) -> String {
        match self {
            Self::Rows(rows, _) => rows.place().to_owned(),
            Self::Kernel(kernel) => kernel.samples.places(),
        }
    }

    /// Reads or computes the rows.
    pub(super) fn make(
        self,
        machine: &MachineSpec,
        known: &Known,
        seed: u64,
        context: &Context,
    ) -> Result<Made, Error> {
        let labels = Some(match known {
            Known::Classes(classes) => Labels::Classes(classes.clone()),
            Known::Numbers(targets) => Labels::Targets(targets.clone()),
        });
        match self {
            Self::Rows(rows, basis) => {
                let _phase = context.phase("kernel");
                let matrix = rows.read(context)?;
                let setting = if basis == SampleKind::Gram { "gram" } else { "features" };
                let inputs = vec![InputRecord::new(setting, rows.place(), fingerprint(&matrix))];
                let samples = SavedSamples { columns: rows.columns(), labels, ..SavedSamples::default() };
                Ok(Made { matrix, basis, kernel: None, samples, inputs, tuned: None })
            }
            Self::Kernel(kernel) => {
                let (recipe, tuned) = kernel.tune(machine, known, seed, context)?;
                let _phase = context.phase("kernel");
                let OpenedKernel { spec, source, samples, .. } = *kernel;
                let failed = |error| spec.failure(error);
                let built = recipe.build::<f64>(source.network(), &samples.shapes()).map_err(failed)?;
                if built.kernel.per_sample() != 1 {
                    let text = "‹kernel›: this kernel has a matrix per pair of samples; machines take one number";
                    return Err(Error::new(text).hint("‹kernel› trace or pseudo"));
                }
                let matrix = Gram::new(&*built.kernel, &samples.inputs).to_kernel(context).map_err(failed)?;
                let matrix = flat("the kernel", matrix)?;
                let mut inputs = Vec::new();
                if let Some(file) = spec.file() {
                    let identity = digest(built.kernel.identity().to_string().as_bytes());
                    inputs.push(InputRecord::new(spec.setting(), &file.display().to_string(), identity));
                }
                inputs.push(InputRecord::new("data", &samples.places(), samples.fingerprint()?));
                let saved = spec.saved(&recipe, &source, &built)?;
                let Samples { inputs: sets, columns, .. } = samples;
                let samples = SavedSamples { inputs: sets, columns, labels, ids: None };
                Ok(Made { matrix, basis: SampleKind::Gram, kernel: Some(saved), samples, inputs, tuned })
            }
        }
    }
}
