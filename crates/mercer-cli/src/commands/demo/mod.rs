//! `mercer demo`: a small network, trained in a few seconds, to look at.

mod kernel;

use super::info;
use super::train::report::TrainReport;
use super::train::run::Run;
use crate::console::Console;
use crate::failure::Failure;
use crate::format::count;
use crate::output::prepare_folder;
use kernel::Findings;
use mercer::data::digits::{self, Digits};
use mercer::data::{Dataset, Existing, Labels, Preprocess, write_atomic, write_npy};
use mercer::net::arch::Architecture;
use mercer::net::train::{Decay, FitSettings, Loss, Optimiser, Samples, Schedule, files};
use ndarray::{Array1, Axis};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  mercer demo                    trains, and writes ./mercer-demo
  mercer demo -o digits          writes ./digits
  mercer demo --force            trains again";

/// The network, as a user would write it.
const NETWORK: &str = r#"# A small convolutional network for images of 8 × 8 pixels; see `mercer train --help`.
[cnn]
inputs = [1, 8, 8]
outputs = 10
activation = "relu"
layers = [
    { conv = { channels = 16, kernel = 3 } },
    { max-pool = { size = 2 } },
    { conv = { channels = 32, kernel = 3 } },
    { max-pool = { size = 2 } },
    { dense = { width = 64 } },
]
"#;

/// The width of its last hidden layer.
const N_FEATURES: usize = 64;

/// Train a small convolutional network on handwritten digits, and show what can be done with it
///
/// The 1,797 digits come with the program; nothing is downloaded. It takes a few seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArguments {
    /// The folder to write
    #[arg(short = 'o', long = "output", value_name = "DIR", default_value = "mercer-demo")]
    output: PathBuf,

    /// Replace the demo that is there
    #[arg(long)]
    force: bool,

    /// Initial weights and the order of the samples depend on this
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
}

/// One part of the digits, ready for the network.
struct Part {
    inputs: Dataset,
    labels: Labels,
}

impl DemoArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Failure> {
        let folder = &self.output;
        let model = folder.join("model.onnx");
        let hint = format!("--force trains again; `mercer info {}` shows the network that is there", model.display());
        prepare_folder(folder, &files::results(folder)?, self.force, false, &hint)?;
        let (train, test) = digits::split()?;
        let (train, test) = (write_part(folder, "train", &train)?, write_part(folder, "test", &test)?);
        write_text(&folder.join("cnn.toml"), NETWORK)?;
        let (n_train, n_test) = (train.inputs.n_samples(), test.inputs.n_samples());
        console.note(&format!(
            "Training a small convolutional network on {} of 8 × 8 pixels …",
            count(n_train, "handwritten digit")
        ));
        let run = Run {
            network: Architecture::from_toml(NETWORK)?.build(self.seed)?,
            training: Samples { inputs: &train.inputs, labels: &train.labels },
            evaluation: Some(Samples { inputs: &test.inputs, labels: &test.labels }),
            settings: FitSettings {
                epochs: 30,
                batch_size: Some(32),
                seed: self.seed,
                schedule: Schedule { learning_rate: 0.003, decay: Decay::Cosine { floor: 0.0 }, warm_up: 0.5 },
                checkpoints: Vec::new(),
            },
            loss: Loss::CrossEntropy,
            optimiser: Optimiser::adam(),
            folder,
            resume: false,
        };
        let again = || "`mercer demo --force` begins again".to_owned();
        let report = run.run::<f32>(console).map_err(|failure| failure.when_interrupted(again))?;
        let findings = kernel::compare(folder, &train, &test, console)?;
        let network = info::model_text(&model, console)?;
        console.result(&report, || self.tour(&report, &network, n_test, &findings, console))
    }

    /// What happened, and what to try next.
    fn tour(
        &self,
        report: &TrainReport,
        network: &str,
        n_test: usize,
        findings: &Findings,
        console: &Console,
    ) -> String {
        let folder = self.output.display();
        let accuracy = report.accuracy().map_or_else(String::new, |accuracy| {
            format!("It reads {:.1} % of {n_test} digits right that it has not seen before.\n", 100.0 * accuracy)
        });
        format!(
            "{table}\n{summary}.\n{accuracy}\n{network}\n{kernel}\n\
             The folder {folder} holds the network (model.onnx, weights.safetensors), its description\n\
             (cnn.toml), the digits (train-*.npy, test-*.npy), the kernel between them (ntk-test-train.npy) and the\n\
             course of training (result.json).\n\n\
             Try next:\n  \
             mercer info {folder}/train-images.npy\n  \
             mercer predict --net {folder}/model.onnx --data {folder}/test-images.npy \\\n      \
             --labels {folder}/test-labels.npy -o {folder}/logits.npy\n  \
             mercer kernel --net {folder}/model.onnx --data {folder}/train-images.npy \\\n      \
             --kind trace --by-layer -o layers.npy\n  \
             mercer predict --net {folder}/model.onnx --data {folder}/test-images.npy \\\n      \
             --at {node} -o {folder}/features.npy\n  \
             mercer train --arch {folder}/cnn.toml --data {folder}/train-images.npy \\\n      \
             --labels {folder}/train-labels.npy --epochs 20 --batch 32 -o {folder}/again\n  \
             mercer info your-own-model.onnx\n",
            table = report.table(console.verbose),
            summary = report.summary(),
            kernel = findings.text(),
            node = self.hidden_node().unwrap_or_else(|| "NODE".to_owned()),
        )
    }

    /// The last layer before the outputs: what the network has learnt to see.
    fn hidden_node(&self) -> Option<String> {
        let network = mercer::net::Network::from_onnx(self.output.join("model.onnx")).ok()?;
        let graph = network.declared_graph().ok()?;
        let mut hidden = graph.nodes().iter().rev().map(|node| graph.value(node.output));
        let found =
            hidden.find(|value| value.meta.is_batched() && value.meta.numel() == N_FEATURES && !value.name.is_empty());
        found.map(|value| value.name.clone())
    }
}

/// Writes images (pixels from 0 to 1) and labels, and hands them on as the network sees them.
fn write_part(folder: &Path, name: &str, digits: &Digits) -> Result<Part, Failure> {
    let images = digits.pixels()?.insert_axis(Axis(1));
    write_npy(&folder.join(format!("{name}-images.npy")), &images, Existing::Replace)?;
    let classes: Array1<i64> = digits.classes.indices().iter().map(|&class| class as i64).collect();
    write_npy(&folder.join(format!("{name}-labels.npy")), &classes, Existing::Replace)?;
    let inputs = Dataset::from_array(name, images.into_dyn().view())?.with_preprocess(Preprocess::new())?;
    Ok(Part { inputs, labels: Labels::Classes(digits.classes.clone()) })
}

fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    Ok(write_atomic(path, Existing::Replace, |writer| writer.write_all(text.as_bytes()))?)
}
