//! `mercer probe`: what the layers of a network know.

mod report;

use crate::console::Console;
use crate::options::{
    CheckpointOptions, DataOptions, KERNEL, LAYER, NEIGHBOURS, NET, NodeOption, PERMUTATIONS, PrecisionOption,
    SeedOption, TestOptions, reference, references, with_default,
};
use crate::output::{DryRunOption, OutputFile};
use mercer::Error;
use mercer::job::{Destination, ProbeJob};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer probe --net model.onnx --data train.npz:x --labels train.npz:y --test test.npz:x --test-labels test.npz:y
  mercer probe … --weights run/epoch-*.safetensors -o probes        how layers change during training
  mercer probe … --layer '*relu*' --svm-cost 0                      chosen layers, without support vector machines
  mercer probe … --untrained --kernel trace --other-net other.onnx  compared with other views of the same samples";

const MORE: &str = "\
Every layer is standardised by its training samples and projected onto its principal components. Three classifiers are
trained on the first 1, 2, … components: the votes of the nearest samples, the nearest class centre, and linear support
vector machines. d90 is the least number of components with 90 % of the best accuracy of that layer. A linear probe
(ridge regression, penalty by leave-one-out) is trained on all components, on the labels and on shuffled labels.

NC1 to NC4 measure neural collapse, and are 0 when it is complete. The similarity of layers is debiased CKA, linear and
Gaussian, with p-values by permutation (--permutations 0 leaves them out).

Without --layer, the layers are what the blocks of a residual network hand on, or else what enters each product with a
parameter. With -o, the folder holds accuracy.svg, layers.svg, collapse.svg, similarity.svg and result.json.";

fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{MORE}")
}

/// Look into the layers: what they know, in how few directions, and how similar they are
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mercer probe [OPTIONS] --net MODEL.onnx --data FILE --labels FILE",
    after_help = EXAMPLES,
    after_long_help = after_long_help(),
    next_help_heading = "Network",
    mut_arg("node", |arg| with_default(arg, "the first output, or the logits before its softmax"))
)]
pub(crate) struct ProbeArguments {
    #[arg(long, value_name = "MODEL.onnx", help = NET)]
    net: PathBuf,

    #[command(flatten)]
    node: NodeOption,

    #[command(flatten)]
    checkpoints: CheckpointOptions,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    test: TestOptions,

    #[command(flatten)]
    probe: ProbeOptions,

    #[command(flatten)]
    output: OutputFile,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

/// What is looked at.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Probes")]
struct ProbeOptions {
    #[arg(long, value_name = "GLOB", help = LAYER)]
    layer: Vec<String>,

    #[arg(long, value_name = "N", help = NEIGHBOURS, default_value_t = 10)]
    neighbours: usize,

    /// Cost of support vector machines on samples scaled to a mean square of 1; 0 for none
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    svm_cost: f64,

    /// Also probe the network with the numbers of every weight shuffled
    #[arg(long)]
    untrained: bool,

    /// Training samples that are compared in pairs, for TwoNN and the similarity of layers
    #[arg(long, value_name = "N", default_value_t = 2000)]
    compared: usize,

    #[arg(long, value_name = "N", help = PERMUTATIONS, default_value_t = 99)]
    permutations: usize,

    #[arg(long, value_name = "EXPRESSION", help = KERNEL)]
    kernel: Vec<String>,

    /// Another network whose layers are compared with these (repeatable)
    #[arg(long, value_name = "MODEL.onnx")]
    other_net: Vec<PathBuf>,
}

impl ProbeArguments {
    fn job(&self) -> ProbeJob {
        ProbeJob {
            net: self.net.clone(),
            parameters: self.checkpoints.spec(),
            checkpoints: self.checkpoints.weights.clone(),
            node: self.node.node.clone(),
            layers: self.probe.layer.clone(),
            train: self.data.labelled(),
            test: references(&self.test.test),
            test_labels: reference(&self.test.test_labels),
            neighbours: self.probe.neighbours,
            cost: self.probe.svm_cost,
            untrained: self.probe.untrained,
            pairs: self.probe.compared,
            permutations: self.probe.permutations,
            kernels: self.probe.kernel.clone(),
            against: self.probe.other_net.clone(),
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
