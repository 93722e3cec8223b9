//! `mercer train`: a network from a description, trained on data.

pub(crate) mod report;
pub(crate) mod run;
mod settings;

use crate::console::Console;
use crate::failure::Failure;
use crate::options::{DataOptions, ImportOptions, Precision, Samples, open_architecture};
use crate::output::OutputFolder;
use mercer::data::{Dataset, Labels};
use mercer::net::{Network, train};
use run::Run;
use settings::TrainingOptions;
use std::path::{Path, PathBuf};

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
    #[arg(long, value_name = "TYPE", default_value = "f32")]
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
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        let optimiser = self.training.optimiser()?;
        let (_, mut network) = open_architecture(&self.arch, self.training.seed, self.import)?;
        let Some(_) = &self.data.labels else {
            return Err(Failure::new("training needs --labels").hint("--labels FILE[:KEY], one per sample"));
        };
        let samples = Samples::open(&self.data, &network, console)?;
        samples.hint(Some(&network), console)?;
        let (Some(inputs), Some(labels)) = (samples.inputs.first(), &samples.labels) else {
            return Err(Failure::new("training needs data and labels"));
        };
        fits(&self.arch, &network, inputs, labels)?;
        let evaluation = self.evaluation(&network, &samples, labels, console)?;
        if let Some((inputs, labels)) = &evaluation {
            fits(&self.arch, &network, inputs, labels)?;
        }
        network.set_trained_on(samples.trained_on())?;
        self.output.prepare(self.resume)?;
        let run = Run {
            network,
            training: train::Samples { inputs, labels },
            evaluation: evaluation.as_ref().map(|(inputs, labels)| train::Samples { inputs, labels }),
            settings: self.training.settings(),
            loss: self.training.loss(matches!(labels, Labels::Classes(_))),
            optimiser,
            folder: &self.output.path,
            resume: self.resume,
        };
        let report = match self.precision {
            Precision::F32 => run.run::<f32>(console),
            Precision::F64 => run.run::<f64>(console),
        };
        let report = report.map_err(|failure| failure.when_interrupted(go_on))?;
        console.result(&report, || {
            let table = report.table(console.verbose);
            format!("{table}\n{}\nThe network is in {}\n", report.summary(), report.model)
        })
    }

    fn evaluation(
        &self,
        network: &Network,
        samples: &Samples,
        training: &Labels,
        console: &Console,
    ) -> Result<Option<(Dataset, Labels)>, Failure> {
        let (Some(data), Some(_)) = (&self.eval_data, &self.eval_labels) else { return Ok(None) };
        let options = DataOptions { labels: self.eval_labels.clone(), ..self.data.clone() };
        let texts = std::slice::from_ref(data);
        let mut given = Samples::given("--eval-data", texts, &options, network, &samples.columns, console)?;
        let (dataset, Some(labels)) = (given.inputs.remove(0), given.labels) else { return Ok(None) };
        let labels = match (training, labels) {
            // The number of a class is that of the training set.
            (Labels::Classes(known), Labels::Classes(own)) if known.names() != own.names() => {
                let text = |error| Failure::new(format!("--eval-labels: {error}"));
                Labels::Classes(own.with_names(known.names()).map_err(text)?)
            }
            (_, labels) => labels,
        };
        Ok(Some((dataset, labels)))
    }
}

/// Whether the network is made for such samples and labels.
fn fits(path: &Path, network: &Network, inputs: &Dataset, labels: &Labels) -> Result<(), Failure> {
    let (place, path) = (inputs.place(), path.display());
    let about =
        |error| Failure::new(format!("{place} does not fit {path}: {error}")).hint(format!("set `inputs` in {path}"));
    let graph = network.graph(&[inputs.sample_shape().to_vec()]).map_err(about)?;
    let n_outputs = graph.outputs().first().map_or(0, |&(_, id)| graph.value(id).meta.numel());
    let needed = labels.n_outputs();
    let fits = match labels {
        // Which output is which class must be known; numbers say it themselves.
        Labels::Classes(classes) if !classes.are_numbered() => n_outputs == needed,
        Labels::Classes(_) => n_outputs >= needed,
        Labels::Targets(_) => n_outputs == needed,
    };
    if fits {
        return Ok(());
    }
    let what = if matches!(labels, Labels::Classes(_)) { "classes" } else { "numbers per sample" };
    Err(Failure::new(format!(
        "{path}: the network has {n_outputs} outputs, the labels of {place} have {needed} {what}"
    ))
    .hint(format!(
        "set `outputs = {needed}` in {path}{}",
        if n_outputs > needed { ", or name all classes with --classes" } else { "" }
    )))
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
