//! `mercer demo`: the whole tour, on digits that come with the program.

use super::report::{OpenOption, said, show};
use super::train::report;
use crate::console::Console;
use crate::options::SeedOption;
use crate::output::OutputFolder;
use mercer::Error;
use mercer::demo::{Demo, DemoFindings};
use mercer::job::Outcome;
use mercer::text::{bytes, duration};

const EXAMPLES: &str = "\
Examples:
  mercer demo                    train, look at the network, and write ./mercer-demo with report.html
  mercer demo --open             and look at the report in the browser
  mercer demo -o digits          write ./digits
  mercer demo --force            do it again";

/// Train a small network on handwritten digits and show what can be found out about it
///
/// The 1,797 digits come with the program; nothing is downloaded. A few labels are made wrong, to be found again. It takes
/// less than a minute.
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

    #[command(flatten)]
    open: OpenOption,
}

impl DemoArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let listener = console.clone();
        let speak = move |epoch: &_| listener.slow_line(&report::line(epoch));
        let outcome = Demo { seed: self.seed.seed }.run(&self.output.destination(), console.context(), speak)?;
        console.result(&outcome, || self.tour(&outcome))?;
        if self.open.open { show(&self.output.out.join("report.html")) } else { Ok(()) }
    }

    /// What was found, where to look, and what to try next.
    fn tour(&self, outcome: &Outcome<DemoFindings>) -> String {
        let found = &outcome.findings;
        let n_test = found.similarity.n_test;
        let folder = self.output.out.display();
        let accuracy = found.training.accuracy().map_or_else(String::new, |accuracy| {
            format!(
                "Trained on correct labels, it classifies {:.1} % of {n_test} unseen digits correctly.\n",
                100.0 * accuracy
            )
        });
        let report = &found.tour.report;
        format!(
            "A small network learnt to read digits, from labels of which {wrong} are wrong.\n\n{said}\n\
             Look at {page} ({size}): the findings, every figure, and single digits.\n\n\
             {accuracy}That network is {folder}/model.onnx, for your own tries; the one above is in {folder}/tour.\n\
             It took {took}.\n\n\
             Try next:\n  \
             mercer info {folder}/model.onnx\n  \
             mercer info {folder}/tour/review\n  \
             mercer predict --net {folder}/model.onnx --data {folder}/test-images.npy \\\n      \
             --labels {folder}/test-labels.npy -o {folder}/logits.npy\n  \
             mercer predict --net {folder}/model.onnx --data {folder}/test-images.npy \\\n      \
             --node {node} -o {folder}/features.npy\n  \
             mercer train --arch {folder}/cnn.toml --data {folder}/train-images.npy \\\n      \
             --labels {folder}/train-labels.npy --epochs 20 --batch 32 -o {folder}/again\n  \
             mercer info your-own-model.onnx\n",
            wrong = found.tour.n_wrong,
            said = said(report),
            page = report.report,
            size = bytes(report.bytes),
            took = duration(outcome.measurements.seconds),
            node = found.hidden_node.as_deref().unwrap_or("NODE"),
        )
    }
}
