//! `mercer train`: a network from a description, trained on data.

pub(crate) mod report;
mod settings;

use crate::console::Console;
use crate::options::{DataOptions, ImportOptions, choice};
use crate::output::OutputFolder;
use mercer::Error;
use mercer::job::{Job, Opened, TrainJob};
use mercer::spec::{DataRef, Precision};
use settings::TrainingOptions;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer train --arch cnn.toml --data train.npz:x --labels train.npz:y -o run
  mercer train --arch mlp.toml --data table.csv --labels table.csv:class --epochs 50 \\
      --optimiser sgd --learning-rate 0.1 --schedule cosine --warm-up 1 -o run
  mercer train --arch cnn.toml --data train.npz:x --labels train.npz:y --scale 1/255 \\
      --eval-data test.npz:x --eval-labels test.npz:y --checkpoint-every 5 -o run
  mercer train …the same… -o run --resume           goes on after Ctrl-C, to the same result

A network is a few lines of TOML, for instance:
  [cnn]
  inputs = [1, 8, 8]
  outputs = 10
  layers = [
      { conv = { channels = 16, kernel = 3 } },
      { max-pool = { size = 2 } },
      { dense = { width = 64 } },
  ]
The kinds are mlp, cnn, resnet and two-layer. The folder gets model.onnx, weights.safetensors,
result.json, state.safetensors to go on from, and the checkpoints.";

/// Train a small network that a TOML file describes
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Network")]
pub(crate) struct TrainArguments {
    /// The description of the network
    #[arg(long, value_name = "FILE.toml")]
    arch: PathBuf,

    #[command(flatten)]
    import: ImportOptions,

    /// Train in single or double precision
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = choice::<Precision>())]
    precision: Precision,

    #[command(flatten)]
    data: DataOptions,

    /// Measure on these samples after every epoch
    #[arg(long, value_name = "FILE[:KEY]", requires = "eval_labels", help_heading = "Data")]
    eval_data: Option<String>,

    /// What they show
    #[arg(long, value_name = "FILE[:KEY]", requires = "eval_data", help_heading = "Data")]
    eval_labels: Option<String>,

    #[command(flatten)]
    training: TrainingOptions,

    #[command(flatten)]
    output: OutputFolder,

    /// Go on with the run in the folder
    #[arg(long, help_heading = "Output", conflicts_with = "force")]
    resume: bool,
}

impl TrainArguments {
    fn job(&self) -> TrainJob {
        TrainJob {
            import_limit: self.import.import_limit,
            eval_data: self.eval_data.clone().map(DataRef::from),
            eval_labels: self.eval_labels.clone().map(DataRef::from),
            training: self.training.spec(),
            precision: self.precision,
            ..TrainJob::new(&self.arch, self.data.spec())
        }
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let destination = self.output.destination(self.resume);
        let listener = console.clone();
        let opened = self.job().open(&destination, console.opening())?;
        let opened = opened.on_epoch(move |epoch| listener.slow_line(&report::line(epoch)));
        let outcome = opened.run(console.context()).map_err(|error| error.when_interrupted(go_on))?;
        console.result(&outcome, || report::outcome(&outcome, console.verbose))
    }
}

/// The command that goes on where this one stopped.
fn go_on() -> String {
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_./:=,+%@".contains(c));
    let quoted = |text: String| if plain(&text) { text } else { format!("'{}'", text.replace('\'', "'\\''")) };
    let mut words: Vec<String> = std::env::args().skip(1).map(quoted).filter(|word| word != "--force").collect();
    if !words.iter().any(|word| word == "--resume") {
        words.push("--resume".to_owned());
    }
    format!("`mercer {}` goes on from the last whole epoch", words.join(" "))
}
