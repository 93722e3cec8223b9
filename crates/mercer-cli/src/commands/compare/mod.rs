//! `mercer compare`: how similar kernels are, and whether one may stand in for another.

mod report;

use crate::commands::train::settings::{CHECKPOINT_AT, OptimiserOptions};
use crate::console::Console;
use crate::options::{
    ARCH, CheckpointOptions, DataOptions, KERNEL, NET, PrecisionOption, SeedOption, TestOptions, reference, references,
};
use crate::output::{DryRunOption, OutputFile};
use mercer::Error;
use mercer::job::train::TrainingSpec;
use mercer::job::{CompareJob, Destination};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer compare trace.npy pseudo.npy                         can the cheap kernel replace the other?
  mercer compare exact.zarr sketch.zarr limit.npy             all pairs
  mercer compare --net model.onnx --data x.npy --kernel full --kernel pseudo --kernel 'trace(sketch=sjlt:4096)'
  mercer compare … --labels y.npy --test new.npy --test-labels z.npy        and do they predict the same?
  mercer compare … --weights run/epoch-*.safetensors -o agreement           how it changes during training
  mercer compare --arch net.toml --widths 0.5,1,2 --seeds 3 …               and with the width
  mercer compare --arch net.toml --widths 1,4 --checkpoint-at 0,50,200 --optimiser sgd --data x.npy --labels y.npy …";

const MORE: &str = "\
The kernels belong to the same samples in the same order. `distance` is ‖A − B‖/‖A‖ in the Frobenius norm, `scaled` the
same for the multiple of B that is nearest. `CKA` is the debiased centred kernel alignment: 1 if one kernel is a
multiple of the other, 0 on average if they have nothing in common. λmax, λmin and condition are relative differences.

A kernel with one number per pair of samples, κ, stands for κ ⊗ I beside `full`, which has a C × C block per pair. A
trace kernel is a sum over the C outputs and is divided by C. `off/on` is the sum of magnitudes off the diagonals of
the blocks, over that on the diagonals.

With --labels and --test, each kernel K gives the linearised network f₀(x) + K(x, D)(K(D, D) + σI)⁻¹(Y − f₀(D)), where
f₀ is the network, Y are one-hot classes (±1 for a single output) or numbers, and σ is --ridge times the mean of the
diagonal, plus the least jitter that makes K regular. `predictions` is the norm of their difference, relative to the
first.

--widths multiplies the hidden widths of --arch: units of dense layers, channels of convolutions. Networks are drawn
with --seed and the seeds after it. With --checkpoint-at they are trained on --data and --labels first, and compared
after these epochs. With -o, the folder holds kernels.svg, agreement.svg (over widths or checkpoints), circle.svg
(κ(x₀, x) for points on a circle) and result.json.";

fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{MORE}")
}

/// Compare kernels of the same samples: distance, alignment, spectra, predictions, over widths and training
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mercer compare [OPTIONS] GRAM GRAM…\n       mercer compare [OPTIONS] --net MODEL.onnx --data FILE --kernel EXPRESSION --kernel EXPRESSION…",
    after_help = EXAMPLES,
    after_long_help = after_long_help(),
    mut_arg("data", |arg| arg.required(false)),
    mut_arg("precision", |arg| arg.default_value("f64"))
)]
pub(crate) struct CompareArguments {
    /// Gram matrices: .npy files or .zarr stores
    #[arg(value_name = "GRAM")]
    grams: Vec<String>,

    #[command(flatten)]
    networks: NetworksOptions,

    #[command(flatten)]
    checkpoints: CheckpointOptions,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    test: TestOptions,

    #[command(flatten)]
    training: CourseOptions,

    #[command(flatten)]
    output: OutputFile,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

/// Which kernels of which networks.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Kernels")]
struct NetworksOptions {
    #[arg(long, value_name = "EXPRESSION", help = KERNEL)]
    kernel: Vec<String>,

    #[arg(long, value_name = "MODEL.onnx", help = NET)]
    net: Option<PathBuf>,

    #[arg(long, value_name = "FILE.toml", help = ARCH, conflicts_with = "net")]
    arch: Option<PathBuf>,

    /// Factors of the hidden widths of --arch, such as 0.5,1,2
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_negative_numbers = true)]
    widths: Vec<f64>,

    /// Networks per width, which differ in their seed [default: 1]
    #[arg(long, value_name = "N")]
    seeds: Option<usize>,

    /// Added to the diagonals for predictions, relative to their mean
    #[arg(long, value_name = "STRENGTH", default_value_t = 0.0, allow_negative_numbers = true)]
    ridge: f64,
}

/// How described networks are trained.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Training")]
struct CourseOptions {
    #[arg(long, value_name = "EPOCHS", value_delimiter = ',', help = CHECKPOINT_AT)]
    checkpoint_at: Vec<usize>,

    #[command(flatten)]
    optimiser: OptimiserOptions,
}

impl CompareArguments {
    fn job(&self) -> CompareJob {
        let networks = &self.networks;
        let checkpoint_at = self.training.checkpoint_at.clone();
        let training = TrainingSpec { checkpoint_at, ..self.training.optimiser.spec() };
        CompareJob {
            grams: self.grams.clone(),
            kernels: networks.kernel.clone(),
            net: networks.net.clone(),
            arch: networks.arch.clone(),
            parameters: self.checkpoints.spec(),
            checkpoints: self.checkpoints.weights.clone(),
            widths: networks.widths.clone(),
            seeds: networks.seeds,
            training,
            data: self.data.spec(),
            test: references(&self.test.test),
            test_labels: reference(&self.test.test_labels),
            ridge: networks.ridge,
            seed: self.seed.seed,
            precision: self.precision.precision,
        }
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let destination = Destination { dry_run: self.dry_run.dry_run, ..self.output.destination() };
        let text = |outcome: &_| report::outcome(outcome, self.output.out.as_deref());
        console.perform(&self.job(), &destination, report::plan, text).map(drop)
    }
}
