//! `mercer shift`: is new data like old data?

mod report;

use crate::console::Console;
use crate::options::{
    DataOptions, FROM, KERNEL, LAYER, LandmarksOption, NET, NodeOption, PERMUTATIONS, ParameterOptions,
    PrecisionOption, SeedOption, TestOptions, TrainingNames, reference, references, with_default,
};
use crate::output::{DryRunOption, OutputFile};
use mercer::Error;
use mercer::job::{Destination, ShiftJob};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer shift --net model.onnx --data old.npz:x --test new.npz:x            is new data like old data, in all layers?
  mercer shift --net model.onnx --data old.npz:x --labels old.npz:y --test new.npz:x -o look     which samples, and why?
  mercer shift --net model.onnx --data old.npz:x --labels old.npz:y -o reference                 save a reference, then
  mercer shift --from reference --test new.npz:x --fail-below 0.01           in a pipeline: exit 1 below p = 0.01
  mercer shift --data old.npy --test new.npy --kernel 'rbf(lengthscale=2)'   without a network";

const MORE: &str = "\
Every layer is tested in four ways: the means of its features (mmd-linear), their distribution (mmd-gaussian), a linear
classifier trained on one half of the samples and tested on the other (classifier), and the first principal component
(pc1). With --labels, the rates of the network's decisions are tested, too (predictions). P-values are those of
--permutations random exchanges of old and new samples. The corrected ones hold for all tests together: each says how
often chance alone would make any of the tests as striking.

With --labels, the rates of the classes in the new samples are estimated from the decisions of the network (BBSE). Old
samples with these rates are then compared with the new ones. If they are alike, only the rates have changed (label
shift); if not, samples of a class look different (covariate shift). The accuracy on the new samples is estimated from
how certain the network is. Use old samples that the network was not trained on: on those it is too certain.

Without --layer, the layers are what the blocks of a residual network hand on, or else what enters each product with a
parameter. Samples are read in blocks, so they need not fit into memory. With --from, network, old samples, layers,
kernels, seed and precision are those of the reference. With -o, the folder is a reference itself and holds

  samples.csv      every sample: principal components, the classifier's score, the witness (positive: like new samples),
                   the density of the other set over that of its own, whether that is at least --keep-above, and
                   its id: --ids and --test-ids, the files of a folder of images, or rows
  densities.svg    the first two principal components of both sets in the last layer
  tests.svg        p-values and accuracies by layer
  result.json      all findings";

fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{MORE}")
}

/// Test whether new data is like old data, seen through a network: where, which samples, and why
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mercer shift [OPTIONS] --data FILE --test FILE",
    after_help = EXAMPLES,
    after_long_help = after_long_help(),
    next_help_heading = "Network",
    mut_arg("node", |arg| {
        with_default(arg, "the first output, or the logits before its softmax").conflicts_with("from")
    }),
    mut_arg("data", |arg| arg.required(false).required_unless_present("from").conflicts_with("from")),
    mut_arg("labels", |arg| arg.conflicts_with("from")),
    mut_arg("ids", |arg| arg.conflicts_with("from")),
    mut_arg("landmarks", |arg| with_default(arg, "512").help_heading("Shift").conflicts_with("from")),
    mut_arg("reduce_to", |arg| arg.conflicts_with("from")),
    mut_arg("seed", |arg| arg.conflicts_with("from")),
    mut_arg("precision", |arg| arg.conflicts_with("from")),
    mut_arg("include", |arg| arg.conflicts_with("from")),
    mut_arg("exclude", |arg| arg.conflicts_with("from")),
    mut_arg("unmerge", |arg| arg.conflicts_with("from")),
    mut_arg("weights", |arg| arg.conflicts_with("from"))
)]
pub(crate) struct ShiftArguments {
    #[arg(long, value_name = "MODEL.onnx", help = NET)]
    net: Option<PathBuf>,

    #[arg(long, value_name = "DIR", help = FROM, conflicts_with = "net")]
    from: Option<PathBuf>,

    #[command(flatten)]
    node: NodeOption,

    #[command(flatten)]
    parameters: ParameterOptions,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    names: TrainingNames,

    #[command(flatten)]
    test: TestOptions,

    /// Names of the samples of --test, one each [default: files of a folder of images, or row numbers]
    #[arg(long, value_name = "FILE[:KEY]", help_heading = "Data", requires = "test")]
    test_ids: Option<String>,

    #[command(flatten)]
    shift: ShiftOptions,

    #[command(flatten)]
    landmarks: LandmarksOption,

    #[command(flatten)]
    output: OutputFile,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

/// How the sets are compared.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Shift")]
struct ShiftOptions {
    #[arg(long, value_name = "GLOB", help = LAYER, conflicts_with = "from")]
    layer: Vec<String>,

    #[arg(long, value_name = "EXPRESSION", help = KERNEL, conflicts_with = "from")]
    kernel: Vec<String>,

    #[arg(long, value_name = "N", help = PERMUTATIONS, default_value_t = 199)]
    permutations: usize,

    /// Corrected p-value up to which data counts as shifted
    #[arg(long, value_name = "NUMBER", default_value_t = 0.05)]
    level: f64,

    /// Exit with code 1 if the corrected p-value is at most this
    #[arg(long, value_name = "NUMBER", requires = "test")]
    fail_below: Option<f64>,

    /// Least density of the other set, relative to its own, where a sample is kept
    #[arg(long, value_name = "NUMBER", default_value_t = 0.5)]
    keep_above: f64,

    /// Reduce wider layers to this many numbers, by a random projection
    #[arg(long, value_name = "N", default_value_t = 1024)]
    reduce_to: usize,
}

impl ShiftArguments {
    fn job(&self) -> ShiftJob {
        let job = ShiftJob::new(self.net.clone(), self.data.spec());
        ShiftJob {
            from: self.from.clone(),
            parameters: self.parameters.spec(),
            node: self.node.node.clone(),
            layers: self.shift.layer.clone(),
            kernels: self.shift.kernel.clone(),
            ids: reference(&self.names.ids),
            test: references(&self.test.test),
            test_ids: reference(&self.test_ids),
            test_labels: reference(&self.test.test_labels),
            permutations: self.shift.permutations,
            level: self.shift.level,
            keep: self.shift.keep_above,
            reduce_to: self.shift.reduce_to,
            landmarks: self.landmarks.landmarks.unwrap_or(job.landmarks),
            seed: self.seed.seed,
            precision: self.precision.precision,
            ..job
        }
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        if let Some(p) = self.shift.fail_below {
            let least = 1.0 / (self.shift.permutations as f64 + 1.0);
            if !(p > 0.0 && p < 1.0) {
                return Err(Error::new(format!("‹fail-below› {p}: must be above 0 and below 1")));
            }
            if least > p {
                let text = format!(
                    "‹fail-below› {p}: with {} permutations no p-value is below {least:.4}",
                    self.shift.permutations
                );
                return Err(Error::new(text).hint(format!("‹permutations› {:.0} or more", (1.0 / p).ceil() - 1.0)));
            }
        }
        let destination = Destination { dry_run: self.dry_run.dry_run, ..self.output.destination() };
        let text = |outcome: &_| report::outcome(outcome, self.output.out.as_deref(), self.from.is_some());
        let outcome = console.perform(&self.job(), &destination, report::plan, text)?;
        let found = outcome.and_then(|outcome| outcome.findings.p_value);
        match self.shift.fail_below.zip(found).filter(|(limit, p)| p <= limit) {
            None => Ok(()),
            Some((limit, p)) => Err(Error::check(format!("the corrected p-value is {p:.4}, at most {limit}"))),
        }
    }
}
