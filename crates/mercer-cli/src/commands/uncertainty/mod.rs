//! `mercer uncertainty`: the uncertainty of a network, by a linearised Laplace approximation.

pub(super) mod report;

use crate::console::Console;
use crate::options::{
    ComponentsOption, DataOptions, FROM, LandmarksOption, NET, NodeOption, OOD, PARAMS, ParameterOptions,
    PrecisionOption, SeedOption, TestOptions, WEIGHT_DECAY, choice, reference, references, with_default,
};
use crate::output::{DryRunOption, OutputFolder};
use mercer::Error;
use mercer::job::uncertainty::{NoiseChoice, PosteriorDraws, PosteriorMethod, PosteriorMethodName, PriorChoice};
use mercer::job::{Destination, UncertaintyJob};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer uncertainty --net model.onnx --data train.npz:x --labels train.npz:y \\
      --test test.npz:x --test-labels test.npz:y --memory 4GiB -o run
  mercer uncertainty … --method kron --ood other.npz:x           can it tell other data apart?
  mercer uncertainty … --method sketch --sketch sjlt:2048        large networks, all layers
  mercer uncertainty … --method eigen -k 64                      through eigenfunctions
  mercer uncertainty … --method eigen --from functions           that `mercer eigen` has learnt
  mercer uncertainty … --validation unseen.npz:x --validation-labels unseen.npz:y   choose by unseen data
  mercer uncertainty … --validation … --conformal 0.9            sets that hold the right class in 90 % of cases
  mercer uncertainty … --method full --dry-run                   what it would take
  mercer predict --from run --data new.npy -o probabilities.npy  later, without any other file";

const MORE: &str = "\
The methods, from cheap to expensive:
  last-layer-diag   one variance per parameter of the last layer
  last-layer-kron   Kronecker factors of the last layer
  last-layer-full   the last layer, exactly; a matrix of side outputs × (features + 1)
  diag              one variance per parameter
  kron              Kronecker factors of every layer
  sketch            all parameters; gradients are projected at random to K numbers
  eigen             all parameters, through eigenfunctions of the tangent kernel
  full              all parameters, exactly; a matrix with a row per parameter

eigen finds its eigenfunctions from --landmarks among the training samples, or takes those of `mercer eigen` with
--from DIR (the first -k): of a matrix-valued kernel such as full or 'directions(1000, of=full)'; of a scalar
kernel, which then stands for every output; or --from once for every output, as with the kernels logit(0), logit(1)
and so on.

auto takes the first of full, kron, last-layer-full, last-layer-kron and last-layer-diag that fits into --memory (2
GiB if none is given), and says what the next better one would take. Where there is no linear last layer, or with
--params, diag is the last resort. The choice is recorded, so that `mercer replay` makes it again.

--validation names samples that the network was not trained on. They choose the prior (unless --prior or
--weight-decay gives it) and a temperature for the network alone, and the result is whatever predicts them better:
the network at that temperature, or the posterior. Without such samples nothing is chosen, and the result is the
posterior's. --test never chooses anything. With --weight-decay, the precision of the prior is the size of the
training set times the decay.

--conformal 0.9 gives every sample a set of classes, or every output of a regression an interval, that holds the
truth with at least this probability, whatever the network (split conformal prediction). Half of the --validation
samples choose as above, and the other half, which chose nothing, calibrates: a class is in the set if its
probability is high enough; an interval is a multiple of the standard deviation. The folder keeps the calibration,
and `mercer predict --from` gives the sets of new samples.

Classification needs logits. If the first output ends in a softmax or sigmoid, the value before it is used; --node
names another one. A single output is the logit of the second of two classes. Regression uses the outputs
themselves.

The output folder holds result.json, probabilities.npy (mean.npy and variance.npy for a regression), the same for
the network alone as map_*.npy and for --ood as ood_*.npy (with --validation also scaled_*.npy for the network at
its temperature and laplace_*.npy for the posterior; with --conformal sets.csv and sets.npy, or intervals.csv and
intervals.npy), reliability.svg, entropy.svg, and the posterior with its network.";

fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{MORE}")
}

/// Estimate how certain a network is, by a linearised Laplace approximation
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mercer uncertainty [OPTIONS] --net MODEL.onnx --data FILE --labels FILE --test FILE --out PATH",
    after_help = EXAMPLES,
    after_long_help = after_long_help(),
    next_help_heading = "Network",
    mut_arg("node", |arg| with_default(arg, "the first output, or the logits before its softmax")),
    mut_arg("test", |arg| arg.required(true))
)]
pub(crate) struct UncertaintyArguments {
    #[arg(long, value_name = "MODEL.onnx", help = NET)]
    net: PathBuf,

    #[command(flatten)]
    node: NodeOption,

    #[arg(long, value_name = "GLOB", value_delimiter = ',', help_heading = "Network", help = PARAMS)]
    params: Vec<String>,

    #[command(flatten)]
    posterior: PosteriorOptions,

    #[command(flatten)]
    data: DataOptions,

    /// Size of the training set, if --data is only a part of it
    #[arg(long, value_name = "N", help_heading = "Data")]
    train_size: Option<usize>,

    #[command(flatten)]
    test: TestOptions,

    #[command(flatten)]
    other: OtherData,

    #[command(flatten)]
    parameters: ParameterOptions,

    #[command(flatten)]
    output: OutputFolder,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

/// The posterior and its use.
#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "Posterior",
    mut_arg("k", |arg| arg.default_value("64")),
    mut_arg("landmarks", |arg| with_default(arg, "128"))
)]
struct PosteriorOptions {
    /// Form of the posterior
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = choice::<PosteriorMethodName>())]
    method: PosteriorMethodName,

    /// Random projection of the gradients (sketch)
    #[arg(long, value_name = "METHOD:K", default_value = "sjlt:1024")]
    sketch: String,

    /// Add back the variance that eigen or sketch misses [default: only for eigen]
    #[arg(long, value_name = "BOOL")]
    residual: Option<bool>,

    /// Precision of the prior: a number, `evidence` or `validation` [default: validation with --validation, else evidence]
    #[arg(long, value_name = "CHOICE")]
    prior: Option<PriorChoice>,

    #[arg(long, value_name = "STRENGTH", help = WEIGHT_DECAY, allow_negative_numbers = true, conflicts_with = "prior")]
    weight_decay: Option<f64>,

    /// Standard deviation of a regression's noise: a number or `evidence`
    #[arg(long, value_name = "CHOICE", default_value = "evidence")]
    noise_std: NoiseChoice,

    /// Average N random draws (256 without a number) instead of the closed-form probit
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "256")]
    draws: Option<usize>,

    /// Multiply the deviation of the draws by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "draws")]
    draw_scale: f64,

    #[command(flatten)]
    components: ComponentsOption,

    #[command(flatten)]
    landmarks: LandmarksOption,

    #[arg(long, value_name = "DIR", help = FROM, conflicts_with = "landmarks")]
    from: Vec<PathBuf>,
}

/// Out-of-distribution samples and validation samples.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Data")]
struct OtherData {
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", help = OOD)]
    ood: Vec<String>,

    /// Samples to choose settings by; the network must not have been trained on them
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", requires = "validation_labels")]
    validation: Vec<String>,

    /// Labels of the validation samples
    #[arg(long, value_name = "FILE[:KEY]", requires = "validation")]
    validation_labels: Option<String>,

    /// Sets of classes, or intervals, that hold the truth with this probability (0.9); --validation calibrates them
    #[arg(long, value_name = "COVERAGE", requires = "validation", help_heading = "Posterior")]
    conformal: Option<f64>,
}

impl PosteriorOptions {
    fn method(&self) -> Result<PosteriorMethod, Error> {
        let mut method = PosteriorMethod::from(self.method);
        match &mut method {
            PosteriorMethod::Eigen { components, landmarks, residual } => {
                *components = self.components.k;
                *landmarks = self.landmarks.landmarks.unwrap_or(*landmarks);
                *residual = self.residual.unwrap_or(*residual);
            }
            PosteriorMethod::Sketch { sketch, residual } => {
                sketch.clone_from(&self.sketch);
                *residual = self.residual.unwrap_or(*residual);
            }
            _ if self.residual.is_some() => {
                return Err(Error::new(format!("‹residual›: the method {} misses no variance", method.name()))
                    .hint("leave ‹residual› out; it is for the methods eigen and sketch"));
            }
            _ => {}
        }
        Ok(method)
    }
}

impl UncertaintyArguments {
    fn prior(&self) -> PriorChoice {
        match (self.posterior.prior, self.posterior.weight_decay) {
            (Some(prior), _) => prior,
            (None, Some(decay)) => PriorChoice::WeightDecay(decay),
            (None, None) if !self.other.validation.is_empty() => PriorChoice::Validation,
            (None, None) => PriorChoice::Evidence,
        }
    }

    fn job(&self) -> Result<UncertaintyJob, Error> {
        let (posterior, other) = (&self.posterior, &self.other);
        Ok(UncertaintyJob {
            net: self.net.clone(),
            parameters: self.parameters.spec(),
            node: self.node.node.clone(),
            params: self.params.clone(),
            method: posterior.method()?,
            from: posterior.from.clone(),
            prior: self.prior(),
            noise: posterior.noise_std,
            draws: posterior.draws.map(|count| PosteriorDraws { count, noise_scale: posterior.draw_scale }),
            seed: self.seed.seed,
            train: self.data.labelled(),
            train_size: self.train_size,
            test: references(&self.test.test),
            test_labels: reference(&self.test.test_labels),
            ood: references(&other.ood),
            validation: references(&other.validation),
            validation_labels: reference(&other.validation_labels),
            conformal: other.conformal,
            precision: self.precision.precision,
        })
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let destination = Destination { dry_run: self.dry_run.dry_run, ..self.output.destination() };
        let text = |outcome: &_| report::outcome(outcome, &self.output.out);
        console.perform(&self.job()?, &destination, report::plan, text).map(drop)
    }
}
