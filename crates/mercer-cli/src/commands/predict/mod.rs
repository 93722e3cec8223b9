//! `mercer predict`: the outputs of a network or of any saved result.

mod report;

use crate::console::Console;
use crate::options::{DataOptions, FROM, NET, NodeOption, ParameterOptions, PrecisionOption, with_default};
use crate::output::{DryRunOption, OutputFile};
use mercer::Error;
use mercer::job::predict::Subject;
use mercer::job::{Destination, PredictJob};
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer predict --net model.onnx --data images.npy -o logits.npy
  mercer predict --net model.onnx --data test.npz:x --labels test.npz:y          accuracy
  mercer predict --net resnet.onnx --data cifar.npz:x --layout nhwc --scale 1/255 \\
      --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 -o logits.npy
  mercer predict --net model.onnx --data images.npy --node /layer2/Relu -o features.npy
  mercer predict --net bert.onnx --data input_ids=tokens.npz:ids \\
      --data attention_mask=tokens.npz:mask -o embeddings.npy
  mercer predict --from machine --data test.npz:x --labels test.npz:y -o scores.npy
  mercer predict --from functions --data new.npy -o psi.npy                      eigenfunctions on new samples

--from takes any folder written by `mercer fit`, `eigen`, `uncertainty` or `train`. A machine gives scores,
eigenfunctions their values, a posterior probabilities or means and variances, and a network its outputs. The folder is
enough: it remembers the preprocessing, and flags given here replace it. DIR/before evaluates learnt eigenfunctions as
they were before their final refinement. For a machine fitted on --gram, --data is the kernel between new samples (rows)
and training samples (columns). For a machine fitted on --features, --data are features. Data may be larger than memory.";

/// Evaluate a network, or anything saved, on data; with labels, measure how good it is
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    next_help_heading = "Network",
    mut_arg("node", |arg| with_default(arg, "the first output"))
)]
pub(crate) struct PredictArguments {
    #[arg(long, value_name = "MODEL.onnx", required_unless_present = "from", help = NET)]
    net: Option<PathBuf>,

    #[arg(long, value_name = "DIR", help = FROM, conflicts_with_all = ["net", "weights", "include", "exclude", "unmerge"])]
    from: Option<PathBuf>,

    /// Write class probabilities instead of the scores of a machine
    #[arg(long, requires = "from")]
    probabilities: bool,

    #[command(flatten)]
    node: NodeOption,

    #[command(flatten)]
    parameters: ParameterOptions,

    #[command(flatten)]
    data: DataOptions,

    /// Read about N samples at a time; this does not change the results [default: automatic]
    #[arg(long, value_name = "N", help_heading = "Data")]
    chunk: Option<NonZeroUsize>,

    #[command(flatten)]
    output: OutputFile,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

impl PredictArguments {
    fn job(&self) -> PredictJob {
        let subject = match (&self.from, &self.net) {
            (Some(folder), _) => Subject::From(folder.clone()),
            // The parser guarantees that there is one.
            (None, file) => Subject::Net(file.clone().unwrap_or_default()),
        };
        PredictJob {
            subject,
            parameters: self.parameters.spec(),
            at: self.node.node.clone(),
            probabilities: self.probabilities,
            precision: self.precision.precision,
            batch: self.chunk,
            data: self.data.spec(),
        }
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let destination = Destination { dry_run: self.dry_run.dry_run, ..self.output.destination() };
        console.perform(&self.job(), &destination, report::plan, report::outcome).map(drop)
    }
}
