//! `mercer demo`: trains a small example network in a few seconds.

use super::info;
use super::train::report;
use crate::console::Console;
use crate::format::table;
use crate::options::SeedOption;
use crate::output::OutputFolder;
use mercer::Error;
use mercer::demo::{Demo, DemoFindings, Example, Neighbour, SimilarityFindings};
use mercer::job::Outcome;
use mercer::text::duration;

const EXAMPLES: &str = "\
Examples:
  mercer demo                    train, and write ./mercer-demo
  mercer demo -o digits          write ./digits
  mercer demo --force            train again";

/// Train a small network on handwritten digits and show what can be done with it
///
/// The 1,797 digits come with the program; nothing is downloaded. It takes a few seconds.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("out", |arg| arg.required(false).default_value("mercer-demo"))
)]
pub(crate) struct DemoArguments {
    #[command(flatten)]
    output: OutputFolder,

    #[command(flatten)]
    seed: SeedOption,
}

impl DemoArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let listener = console.clone();
        let speak = move |epoch: &_| listener.slow_line(&report::line(epoch));
        let outcome = Demo { seed: self.seed.seed }.run(&self.output.destination(), console.context(), speak)?;
        let model = self.output.out.join(&outcome.findings.training.model);
        let network = info::text_of(&model.display().to_string(), console.verbose, console.context())?;
        console.result(&outcome, || self.tour(&outcome, &network, console))
    }

    /// What happened, and what to try next.
    fn tour(&self, outcome: &Outcome<DemoFindings>, network: &str, console: &Console) -> String {
        let found = &outcome.findings;
        let n_test = found.similarity.n_test;
        let folder = self.output.out.display();
        let accuracy = found.training.accuracy().map_or_else(String::new, |accuracy| {
            format!("It classifies {:.1} % of {n_test} unseen digits correctly.\n", 100.0 * accuracy)
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
             --kernel trace --by-layer -o layers.npy\n  \
             mercer predict --net {folder}/model.onnx --data {folder}/test-images.npy \\\n      \
             --node {node} -o {folder}/features.npy\n  \
             mercer train --arch {folder}/cnn.toml --data {folder}/train-images.npy \\\n      \
             --labels {folder}/train-labels.npy --epochs 20 --batch 32 -o {folder}/again\n  \
             mercer info your-own-model.onnx\n",
            table = report::course(&found.training, console.verbose),
            summary = report::summary(&found.training, outcome.measurements.phase("training")),
            kernel = similarity(&found.similarity, outcome.measurements.phase("kernel")),
            node = found.hidden_node.as_deref().unwrap_or("NODE"),
        )
    }
}

/// Describes the network as a kernel machine.
fn similarity(found: &SimilarityFindings, seconds: f64) -> String {
    let mut rows = vec![vec!["unseen".to_owned(), "is a".to_owned(), "most alike in training".to_owned()]];
    for Example { place, class, nearest } in &found.examples {
        let named = |Neighbour { place, class, similarity }: &Neighbour| format!("{class} (#{place}, {similarity:.2})");
        let named: Vec<String> = nearest.iter().map(named).collect();
        rows.push(vec![format!("#{place}"), class.to_string(), named.join("  ")]);
    }
    format!(
        "The network as a kernel: its trace-NTK between {} unseen digits and the training digits, in {}.\n\
         Digits of the same class are alike by {:.2} on average, others by {:.2}; the nearest training digit is of\n\
         the right class in {:.1} % of cases.\n{}",
        found.n_test,
        duration(seconds),
        found.same,
        found.other,
        100.0 * found.nearest_right,
        table(&rows, &[])
    )
}
