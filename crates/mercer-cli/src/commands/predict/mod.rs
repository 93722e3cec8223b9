//! `mercer predict`: the outputs of a network, or of whatever was saved.

mod report;

use crate::console::Console;
use crate::options::{DataOptions, ParameterOptions, choice};
use crate::output::OutputFile;
use mercer::Error;
use mercer::job::predict::Subject;
use mercer::job::{Job, Opened, PredictJob};
use mercer::spec::Precision;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer predict --net model.onnx --data images.npy -o logits.npy
  mercer predict --net model.onnx --data test.npz:x --labels test.npz:y          accuracy
  mercer predict --net resnet.onnx --data cifar.npz:x --layout nhwc --scale 1/255 \\
      --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 -o logits.npy
  mercer predict --net model.onnx --data images.npy --at /layer2/Relu -o features.npy
  mercer predict --net bert.onnx --data input_ids=tokens.npz:ids \\
      --data attention_mask=tokens.npz:mask -o embeddings.npy
  mercer predict --from machine --data test.npz:x --labels test.npz:y -o scores.npy

The data may be larger than memory. `mercer info MODEL` lists the nodes that --at takes. --from takes whatever `mercer fit`, eigen,
uncertainty or train wrote: a machine gives scores, eigenfunctions their values, a posterior probabilities or means and variances, a
network its outputs. No other file is needed, and the preprocessing is that of the folder unless other flags are given. For a
machine fitted on --gram the data are the kernel between new samples (rows) and training samples (columns), for one fitted on
--features their features.";

/// Run a network, or whatever was saved, on data: outputs, values at any node, scores; accuracy if there are labels
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Network")]
pub(crate) struct PredictArguments {
    /// The network
    #[arg(long, value_name = "MODEL.onnx", required_unless_present = "from")]
    net: Option<PathBuf>,

    /// What `mercer fit`, eigen, uncertainty or train wrote, instead of a network's file
    #[arg(long, value_name = "DIR", conflicts_with_all = ["net", "weights", "include", "exclude", "unmerge"])]
    from: Option<PathBuf>,

    /// Write the probabilities of the classes, instead of a machine's scores
    #[arg(long, requires = "from")]
    probabilities: bool,

    /// Write the values at this node or output [default: the first output]
    #[arg(long, value_name = "NODE")]
    at: Option<String>,

    /// Compute in single or double precision
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = choice::<Precision>())]
    precision: Precision,

    /// Read about so many samples at once; the results do not depend on it [default: what suits the network]
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroUsize>,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    output: OutputFile,

    #[command(flatten)]
    parameters: ParameterOptions,
}

impl PredictArguments {
    fn job(&self) -> PredictJob {
        let subject = match (&self.from, &self.net) {
            (Some(folder), _) => Subject::From(folder.clone()),
            // The parser has seen to it that there is one.
            (None, file) => Subject::Net(file.clone().unwrap_or_default()),
        };
        PredictJob {
            subject,
            parameters: self.parameters.spec(),
            at: self.at.clone(),
            probabilities: self.probabilities,
            precision: self.precision,
            batch: self.batch,
            data: self.data.spec(),
        }
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let opened = self.job().open(&self.output.destination(), console.opening())?;
        let outcome = opened.run(console.context())?;
        console.result(&outcome, || report::outcome(&outcome))
    }
}
