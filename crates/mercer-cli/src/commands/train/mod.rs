//! `mercer train`: trains a described network, or that of an ONNX file, on data.

pub(crate) mod report;
pub(crate) mod settings;

use crate::console::Console;
use crate::options::{ARCH, DataOptions, ImportOptions, NET, NodeOption, PARAMS, TestOptions, reference, references};
use crate::output::{DryRunOption, OutputFolder, ResumeOption};
use clap::ArgAction;
use mercer::Error;
use mercer::job::train::TuningSpec;
use mercer::job::{Destination, Job, Opened, TrainJob};
use settings::TrainingOptions;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer train --arch cnn.toml --data train.npz:x --labels train.npz:y -o run
  mercer train --arch mlp.toml --data table.csv --labels table.csv:class --epochs 50 \\
      --optimiser sgd --learning-rate 0.1 --schedule cosine --warm-up 1 -o run
  mercer train --arch cnn.toml --data train.npz:x --labels train.npz:y --scale 1/255 \\
      --test test.npz:x --test-labels test.npz:y --checkpoint-every 5 -o run
  mercer train --arch resnet.toml --data cifar.npz:x --labels cifar.npz:y --crop-margin 4 --flip --epochs 200 \\
      --optimiser sgd --momentum 0.9 --schedule step --step-at 100,150 --stop-loss 0.001 -o run
  mercer train --net minilm.onnx --head 2 --data tweets.csv:text --labels tweets.csv:mood \\
      --tokenizer tokenizer.json --learning-rate 2e-5 -o tuned        fine-tune a network with a new head
  mercer train …the same… --params 'head*'          train the head alone; with --redraw, on random features
  mercer train --arch cnn.toml --data images/ --resize 32 --scale 1/255 -o run
  mercer train …the same… -o run --resume           continue after Ctrl-C, with the same result

A network is a few lines of TOML, for instance:
  [cnn]
  inputs = [1, 8, 8]
  outputs = 10
  layers = [
      { conv = { channels = 16, kernel = 3 } },
      { max-pool = { size = 2 } },
      { dense = { width = 64 } },
  ]
or a wide residual network with batch normalisation, WRN-16-4:
  [residual]
  outputs = 10
  blocks = [2, 2, 2]
  width = 16
  widen = 4
  pre_activation = true
The kinds are mlp, cnn, resnet, residual and two-layer. All take activation (\"relu\", \"normalised(tanh)\",
\"tanh/0.6278\"), most take initialisation and law (\"normal\", \"cauchy\"); mlp and cnn take batch_norm = true. The output
folder holds model.onnx, weights.safetensors, result.json, state.safetensors for --resume, and the checkpoints.";

/// Train a small network described in TOML, or fine-tune an ONNX model
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    next_help_heading = "Network",
    mut_arg("node", |arg| arg.conflicts_with("arch")),
    mut_arg("test", |arg| arg.action(ArgAction::Set).requires("test_labels"))
)]
pub(crate) struct TrainArguments {
    #[arg(long, value_name = "FILE.toml", help = ARCH, required_unless_present = "net", conflicts_with = "net")]
    arch: Option<PathBuf>,

    #[arg(long, value_name = "MODEL.onnx", help = NET)]
    net: Option<PathBuf>,

    #[arg(long, value_name = "GLOB", value_delimiter = ',', help = PARAMS, conflicts_with = "arch")]
    params: Vec<String>,

    /// Put a new dense layer with N outputs, named head, in the place of the last one
    #[arg(long, value_name = "N", conflicts_with = "arch")]
    head: Option<NonZeroUsize>,

    /// Draw all weights again: matrices from N(0, 0.02²), scales 1, biases 0
    #[arg(long, conflicts_with = "arch")]
    redraw: bool,

    #[command(flatten)]
    node: NodeOption,

    #[command(flatten)]
    import: ImportOptions,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    test: TestOptions,

    #[command(flatten)]
    training: TrainingOptions,

    #[command(flatten)]
    output: OutputFolder,

    #[command(flatten)]
    resume: ResumeOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

impl TrainArguments {
    fn job(&self) -> TrainJob {
        TrainJob {
            import_limit: self.import.import_limit,
            // The parser accepts at most one.
            eval_data: references(&self.test.test).pop(),
            eval_labels: reference(&self.test.test_labels),
            training: self.training.spec(),
            precision: self.training.precision(),
            tuning: self.net.clone().map(|net| TuningSpec {
                net,
                params: self.params.clone(),
                head: self.head.map(NonZeroUsize::get),
                node: self.node.node.clone(),
                redraw: self.redraw,
            }),
            ..TrainJob::new(self.arch.clone().unwrap_or_default(), self.data.labelled())
        }
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let (resume, dry_run) = (self.resume.resume, self.dry_run.dry_run);
        let destination = Destination { resume, dry_run, ..self.output.destination() };
        let opened = self.job().open(&destination, console.opening())?;
        if dry_run {
            return console.result(opened.plan(), || report::plan(opened.plan()));
        }
        let listener = console.clone();
        let opened = opened.on_epoch(move |epoch| listener.slow_line(&report::line(epoch)));
        let outcome = opened.run(console.context()).map_err(|error| error.when_interrupted(go_on))?;
        console.result(&outcome, || report::outcome(&outcome, console.verbose))
    }
}

/// The command that continues where this one stopped.
fn go_on() -> String {
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_./:=,+%@".contains(c));
    let quoted = |text: String| if plain(&text) { text } else { format!("'{}'", text.replace('\'', "'\\''")) };
    let mut words: Vec<String> = std::env::args().skip(1).map(quoted).filter(|word| word != "--force").collect();
    if !words.iter().any(|word| word == "--resume") {
        words.push("--resume".to_owned());
    }
    format!("`mercer {}` continues after the last complete epoch", words.join(" "))
}
