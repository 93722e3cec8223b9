//! `mercer explain`: which training data a prediction is based on, and how far that answer can be trusted.

mod report;

use crate::console::Console;
use crate::options::{
    DataOptions, FROM, NET, NodeOption, OOD, ParameterOptions, PrecisionOption, SeedOption, SurrogateOptions,
    TestOptions, TrainingNames, choice, reference, references, with_default,
};
use crate::output::{DryRunOption, OutputFolder, PartOption};
use mercer::Error;
use mercer::job::explain::{ClassChoice, ValidateSpec, Validation};
use mercer::job::{Destination, ExplainJob};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer explain --net model.onnx --data train.npz:x --labels train.npz:y \\
      --test test.npz:x --test-labels test.npz:y -o why
  mercer explain … --kernel 'normalised(trace)' --kernel 'normalised(ck)' -o why      which kernel is faithful?
  mercer explain … --kernel 'normalised(trace(sketch=sjlt:4096, total=true))' -o why  many training samples
  mercer explain … --rows 0,17 --groups train.csv:hospital -o why   two samples in full, summed by hospital
  mercer explain … --validate lds -o why                            do the attributions predict retraining?
  mercer explain --from why --test new.npy -o new                   new samples, without the training set";

const MORE: &str = "\
A kernel machine is fitted to the same training data as the network. Its score of a class is a sum over training
samples, so the share of each sample is exact; how far the machine is from the network is measured on --test. Compare
several kernels before you believe one: the first explains, the others are listed beside it. A penalty is chosen by
cross-validation on the training samples, never on --test.

The output folder holds
  top.csv             the largest (rank 1, 2, …) and smallest (rank −1, −2, …) attributions of every score
  examples.csv        the training samples with the largest kernel values, for every kernel
  local.csv           network and surrogate, sample by sample, with a warning where they differ
  scores.npy          scores of the surrogate (test × class); network_scores.npy those of the network
  means.npy           mean attributions (test × class × group); groups are the classes, or --groups
  distribution.npy    of the predicted class (test × group × n, mean, q1, median, q3, whiskers, fliers)
  attribution.npy     with --rows or --all: attributions in full (row × training sample × class)
  surrogate/          the machine, for `mercer predict --from`
  result.json, *.svg  all findings, and figures";

fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{MORE}")
}

/// Explain predictions by training data, with a measure of how faithful the explanation is
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mercer explain [OPTIONS] --net MODEL.onnx --data FILE --labels FILE --test FILE --out PATH",
    after_help = EXAMPLES,
    after_long_help = after_long_help(),
    next_help_heading = "Network",
    mut_arg("node", |arg| with_default(arg, "the first output, or the logits before its softmax")),
    mut_arg("data", |arg| arg.required(false)),
    mut_arg("kernel", |arg| arg.conflicts_with("from")),
    mut_arg("test", |arg| arg.required(true))
)]
pub(crate) struct ExplainArguments {
    #[arg(long, value_name = "MODEL.onnx", help = NET, required_unless_present = "from")]
    net: Option<PathBuf>,

    #[arg(long, value_name = "DIR", help = FROM, conflicts_with = "net")]
    from: Option<PathBuf>,

    #[command(flatten)]
    node: NodeOption,

    #[command(flatten)]
    surrogate: SurrogateOptions,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    names: TrainingNames,

    /// Groups of training samples to sum over, one each [default: their classes]
    #[arg(long, value_name = "FILE[:KEY]", help_heading = "Data")]
    groups: Option<String>,

    #[command(flatten)]
    test: TestOptions,

    #[arg(long, value_name = "[NAME=]FILE[:KEY]", help = OOD, help_heading = "Data")]
    ood: Vec<String>,

    /// Also measure faithfulness on test samples perturbed against the network by this step (FGSM), in the units of
    /// its inputs
    #[arg(long, value_name = "STEP", help_heading = "Data")]
    fgsm: Option<f64>,

    #[command(flatten)]
    attribution: AttributionOptions,

    #[command(flatten)]
    validation: ValidationOptions,

    #[command(flatten)]
    parameters: ParameterOptions,

    #[command(flatten)]
    output: OutputFolder,

    #[command(flatten)]
    part: PartOption,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

/// Whether attributions predict what happens when training data is left out.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Validation")]
struct ValidationOptions {
    /// Check attributions by retraining the network (lds, removal) or by shuffling its weights (sanity)
    #[arg(long, value_name = "KIND", value_parser = choice::<Validation>(), hide_possible_values = true)]
    validate: Option<Validation>,

    /// Random parts of the data (lds), or test samples (removal)
    #[arg(long, value_name = "N", default_value_t = 50, requires = "validate")]
    subsets: usize,

    /// Share of the training samples in a part
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, requires = "validate")]
    fraction: f64,

    /// Networks per part; two also give the largest score that the noise of training allows
    #[arg(long, value_name = "N", default_value_t = 1, requires = "validate")]
    repeats: usize,
}

/// What is written about the attributions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Attribution")]
struct AttributionOptions {
    /// Class at which network and surrogate are compared: correct, predicted, or a name
    #[arg(long, value_name = "CLASS", default_value = "correct")]
    class: ClassChoice,

    /// How many training samples to list at either end
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Test samples whose attributions are written in full, counted from 0
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    rows: Vec<usize>,

    /// Write the attributions of all test samples in full
    #[arg(long, conflicts_with = "rows")]
    all: bool,

    /// Compute the part of every layer in the scores
    #[arg(long)]
    layers: bool,
}

impl ExplainArguments {
    fn job(&self) -> ExplainJob {
        let fresh = self.from.is_none();
        ExplainJob {
            net: self.net.clone(),
            from: self.from.clone(),
            parameters: self.parameters.spec(),
            node: self.node.node.clone(),
            kernels: if fresh { self.surrogate.kernel.clone() } else { Vec::new() },
            surrogate: self.surrogate.spec(),
            other_machines: self.surrogate.other_machines(),
            cache: self.surrogate.cache.clone(),
            train: self.data.labelled(),
            ids: reference(&self.names.ids),
            groups: reference(&self.groups),
            test: references(&self.test.test),
            test_labels: reference(&self.test.test_labels),
            ood: references(&self.ood),
            fgsm: self.fgsm,
            class: self.attribution.class.clone(),
            top: self.attribution.top,
            rows: self.attribution.rows.clone(),
            all: self.attribution.all,
            by_layer: self.attribution.layers,
            validate: self.validation.validate.map(|kind| ValidateSpec {
                kind,
                subsets: self.validation.subsets,
                fraction: self.validation.fraction,
                repeats: self.validation.repeats,
            }),
            seed: self.seed.seed,
            precision: self.precision.precision,
        }
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        if let Some(share) = self.part.part {
            let found = self.job().fill(share, console.opening())?;
            return console.result(&found, || report::filled(&found));
        }
        let destination = Destination { dry_run: self.dry_run.dry_run, ..self.output.destination() };
        let text = |outcome: &_| report::outcome(outcome, &self.output.out);
        console.perform(&self.job(), &destination, report::plan, text).map(drop)
    }
}
