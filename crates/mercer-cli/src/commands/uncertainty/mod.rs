//! `mercer uncertainty`: how sure a network may be, by a linearised Laplace approximation.

mod report;

use crate::console::Console;
use crate::options::{ClassOptions, ParameterOptions, PreprocessOptions, choice, references};
use crate::output::OutputFolder;
use mercer::Error;
use mercer::job::uncertainty::{NoiseChoice, PosteriorDraws, PosteriorMethod, PriorChoice};
use mercer::job::{Destination, Job, Opened, UncertaintyJob};
use mercer::spec::{DataRef, DataSpec, Precision};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer uncertainty --net model.onnx --train train.npz:x --train-labels train.npz:y \\
      --test test.npz:x --test-labels test.npz:y --method last-layer-full -o run
  mercer uncertainty … --method kron --ood other.npz:x           can it tell other data apart?
  mercer uncertainty … --method sketch --sketch sjlt:2048        large networks, all layers
  mercer uncertainty … --method eigen --components 64            through eigenfunctions
  mercer uncertainty … --method full --dry-run                   what it would take

Methods, from cheap to dear:
  last-layer-kron   Kronecker factors of the last layer
  last-layer-full   the last layer, exactly; side outputs × (features + 1)
  diag              a variance for every parameter
  kron              Kronecker factors of every layer
  sketch            all parameters, gradients projected at random to K numbers
  eigen             all parameters, through eigenfunctions of the tangent kernel
  full              all parameters, exactly; side: number of parameters

Classes need logits: where the first output ends in a softmax or sigmoid, the value before that is taken, and --logits names
another node. One output is the logit of the second of two classes. A regression takes the values themselves.
The folder gets result.json, probabilities.npy (mean.npy and variance.npy for a regression), map_*.npy of
the network alone, ood_*.npy, reliability.svg, entropy.svg, and the posterior itself, with its network: it predicts
later without any other file.";

/// Say how sure a network may be: calibrated probabilities, and a measure of what it does not know
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Network")]
pub(crate) struct UncertaintyArguments {
    /// The network, trained
    #[arg(long, value_name = "MODEL.onnx")]
    net: PathBuf,

    /// The logits, or any other node [default: the first output, or what lies before its softmax or sigmoid]
    #[arg(long = "logits", value_name = "NODE")]
    node: Option<String>,

    /// Only parameters or layers of this name, the others being fixed (`*` and `?` are wild; repeatable)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    params: Vec<String>,

    /// Run the network in single or double precision
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = choice::<Precision>())]
    precision: Precision,

    #[command(flatten)]
    posterior: PosteriorOptions,

    #[command(flatten)]
    data: UncertaintyData,

    #[command(flatten)]
    output: OutputFolder,

    /// Say what would be done and what it would take, and do nothing
    #[arg(long, help_heading = "Run")]
    dry_run: bool,

    #[command(flatten)]
    parameters: ParameterOptions,
}

/// The form of the curvature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MethodName {
    /// All parameters, exactly
    Full,
    /// A variance for every parameter
    Diag,
    /// Kronecker factors of every layer
    Kron,
    /// The last layer, exactly
    LastLayerFull,
    /// Kronecker factors of the last layer
    LastLayerKron,
    /// Through eigenfunctions of the tangent kernel
    Eigen,
    /// Through gradients projected at random
    Sketch,
}

/// Which posterior, and what is done with it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Posterior")]
struct PosteriorOptions {
    /// In which form the curvature of the parameters is kept
    #[arg(long, value_name = "METHOD", default_value = "last-layer-full")]
    method: MethodName,

    /// How gradients are projected for --method sketch
    #[arg(long, value_name = "METHOD:K", default_value = "sjlt:1024")]
    sketch: String,

    /// Eigenfunctions for --method eigen
    #[arg(long, value_name = "K", default_value_t = 64)]
    components: usize,

    /// Training samples that eigenfunctions are made of
    #[arg(long, value_name = "M", default_value_t = 128)]
    landmarks: usize,

    /// Give back the variance that eigenfunctions or a sketch miss [default: true for eigen, false for sketch]
    #[arg(long, value_name = "BOOL")]
    residual: Option<bool>,

    /// The precision of the prior: a number, `evidence` or `validation`
    #[arg(long, value_name = "CHOICE", default_value = "evidence")]
    prior: PriorChoice,

    /// The standard deviation of the observations of a regression: a number or `evidence`
    #[arg(long, value_name = "CHOICE", default_value = "evidence")]
    noise: NoiseChoice,

    /// Draw outputs so often, instead of probit's closed form
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "256")]
    draws: Option<usize>,

    /// Multiply the noise of draws, as a paper did by 20
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "draws")]
    noise_scale: f64,

    /// Seed of sketches, landmarks and draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// What to learn from and what to predict.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Data")]
struct UncertaintyData {
    /// The samples that the network was trained on; with several inputs once per input
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", required = true)]
    train: Vec<String>,

    /// What they show
    #[arg(long, value_name = "FILE[:KEY]", required = true)]
    train_labels: String,

    /// The number of samples that the network was trained on, if --train has only a part of them, which stands for all
    #[arg(long, value_name = "N")]
    train_size: Option<usize>,

    /// The samples to predict
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", required = true)]
    test: Vec<String>,

    /// What they show
    #[arg(long, value_name = "FILE[:KEY]")]
    test_labels: Option<String>,

    /// Samples of another kind, which should be less certain
    #[arg(long, value_name = "[NAME=]FILE[:KEY]")]
    ood: Vec<String>,

    /// Samples that choose the prior, for --prior validation
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", requires = "validation_labels")]
    validation: Vec<String>,

    /// What they show
    #[arg(long, value_name = "FILE[:KEY]", requires = "validation")]
    validation_labels: Option<String>,

    #[command(flatten)]
    classes: ClassOptions,

    #[command(flatten)]
    preprocess: PreprocessOptions,
}

impl PosteriorOptions {
    fn method(&self) -> Result<PosteriorMethod, Error> {
        let method = match self.method {
            MethodName::Full => PosteriorMethod::Full,
            MethodName::Diag => PosteriorMethod::Diag,
            MethodName::Kron => PosteriorMethod::Kron,
            MethodName::LastLayerFull => PosteriorMethod::LastLayerFull,
            MethodName::LastLayerKron => PosteriorMethod::LastLayerKron,
            MethodName::Eigen => {
                let (components, landmarks) = (self.components, self.landmarks);
                return Ok(PosteriorMethod::Eigen { components, landmarks, residual: self.residual.unwrap_or(true) });
            }
            MethodName::Sketch => {
                return Ok(PosteriorMethod::Sketch {
                    sketch: self.sketch.clone(),
                    residual: self.residual.unwrap_or(false),
                });
            }
        };
        match self.residual {
            Some(_) => Err(Error::new(format!("‹residual›: ‹method› {} misses nothing", method.name()))
                .hint("leave ‹residual› out; it is for ‹method› eigen and sketch")),
            None => Ok(method),
        }
    }
}

impl UncertaintyArguments {
    fn job(&self) -> Result<UncertaintyJob, Error> {
        let (posterior, data) = (&self.posterior, &self.data);
        let label = |text: &Option<String>| text.clone().map(DataRef::from);
        Ok(UncertaintyJob {
            net: self.net.clone(),
            parameters: self.parameters.spec(),
            node: self.node.clone(),
            params: self.params.clone(),
            method: posterior.method()?,
            prior: posterior.prior,
            noise: posterior.noise,
            draws: posterior.draws.map(|count| PosteriorDraws { count, noise_scale: posterior.noise_scale }),
            seed: posterior.seed,
            train: DataSpec {
                data: references(&data.train),
                labels: Some(data.train_labels.clone().into()),
                classes: data.classes.classes.clone(),
                preprocess: data.preprocess.spec(),
                used: Vec::new(),
            },
            train_size: data.train_size,
            test: references(&data.test),
            test_labels: label(&data.test_labels),
            ood: references(&data.ood),
            validation: references(&data.validation),
            validation_labels: label(&data.validation_labels),
            precision: self.precision,
        })
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let OutputFolder { path, force } = &self.output;
        let destination = Destination { force: *force, dry_run: self.dry_run, ..Destination::new(path) };
        let opened = self.job()?.open(&destination, console.opening())?;
        if self.dry_run {
            return console.result(opened.plan(), || report::plan(opened.plan()));
        }
        let outcome = opened.run(console.context())?;
        console.result(&outcome, || report::outcome(&outcome, path))
    }
}
