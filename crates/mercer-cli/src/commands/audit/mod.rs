//! `mercer audit`: training data that looks wrong.

mod report;

use crate::console::Console;
use crate::options::{
    DataOptions, NET, NodeOption, ParameterOptions, PrecisionOption, SeedOption, SurrogateOptions, TrainingNames,
    reference, references, with_default,
};
use crate::output::{DryRunOption, OutputFolder};
use mercer::Error;
use mercer::job::{AuditJob, Destination};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mercer audit --net model.onnx --data train.npz:x --labels train.npz:y -o review
  mercer audit … --ids train.csv:file --fail-above 0.02 -o review       in a pipeline: exit 1 above 2 % noise
  mercer audit … --wrong flipped.npy -o review                          how well does it find known mistakes?
  mercer audit … --poisoned poisoned.csv:id --test new.npy -o review    is new data like known poison?";

const MORE: &str = "\
Every training sample is scored by five opinions: its leave-one-out residual, the network's loss, the probability of its
label by a surrogate that has not seen it, the labels of its nearest samples, and its influence on itself. The combined
score joins their ranks. Use a network that was trained on these labels: one that knows better labels would leak them.

The output folder holds
  review.csv      every training sample once, the most suspicious first, with a suggested label and reasons
  scores.csv      all scores of every sample, in the order of the data; those of poison as well
  clean.npy       row numbers of the samples below --cut, to train on
  forensics.csv   with --poisoned and --test: poisoned samples among the nearest of every test sample
  result.json     all findings: duplicates with contradicting labels, clusters in classes, measures with --wrong";

fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{MORE}")
}

/// Find training data that looks wrong: labels, duplicates, poison
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mercer audit [OPTIONS] --net MODEL.onnx --data FILE --labels FILE --out PATH",
    after_help = EXAMPLES,
    after_long_help = after_long_help(),
    next_help_heading = "Network",
    mut_arg("node", |arg| with_default(arg, "the first output, or the logits before its softmax")),
    mut_arg("machine", |arg| arg.hide(true)),
    mut_arg("to", |arg| arg.hide(true))
)]
pub(crate) struct AuditArguments {
    #[arg(long, value_name = "MODEL.onnx", help = NET)]
    net: PathBuf,

    #[command(flatten)]
    node: NodeOption,

    #[command(flatten)]
    surrogate: SurrogateOptions,

    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    names: TrainingNames,

    #[command(flatten)]
    audit: AuditOptions,

    #[command(flatten)]
    parameters: ParameterOptions,

    #[command(flatten)]
    output: OutputFolder,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    dry_run: DryRunOption,
}

/// What is looked for.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Audit")]
struct AuditOptions {
    /// Training samples that are really wrong, to measure the audit by: ids, or 0 and 1 for each
    #[arg(long, value_name = "FILE[:KEY]")]
    wrong: Option<String>,

    /// Training samples known to be poisoned: ids, or 0 and 1 for each
    #[arg(long, value_name = "FILE[:KEY]", requires = "test")]
    poisoned: Option<String>,

    /// Held-out samples to evaluate the result on
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", requires = "poisoned", help_heading = "Data")]
    test: Vec<String>,

    /// Which held-out samples are really poisoned: 0 and 1 for each
    #[arg(long, value_name = "FILE[:KEY]", requires = "test")]
    test_poisoned: Option<String>,

    /// Flag a held-out sample with this many poisoned samples among its nearest
    #[arg(long, value_name = "N", default_value_t = 3)]
    threshold: usize,

    /// Similarity below one up to which samples are near duplicates
    #[arg(long, value_name = "NUMBER", default_value_t = 1e-4)]
    near: f64,

    /// Score from which on a sample is left out of clean.npy
    #[arg(long, value_name = "SCORE", default_value_t = 0.95)]
    cut: f64,

    /// Exit with code 1 if the estimated share of wrong labels is above this
    #[arg(long, value_name = "SHARE")]
    fail_above: Option<f64>,
}

impl AuditArguments {
    fn job(&self) -> Result<AuditJob, Error> {
        let [kernel] = &self.surrogate.kernel[..] else {
            return Err(Error::new("‹kernel›: an audit takes one kernel"));
        };
        if !self.surrogate.other_machines().is_empty() {
            return Err(Error::new("‹machine›: an audit takes one machine"));
        }
        Ok(AuditJob {
            net: self.net.clone(),
            parameters: self.parameters.spec(),
            node: self.node.node.clone(),
            kernel: kernel.clone(),
            surrogate: self.surrogate.spec(),
            cache: self.surrogate.cache.clone(),
            train: self.data.labelled(),
            ids: reference(&self.names.ids),
            truth: reference(&self.audit.wrong),
            poisoned: reference(&self.audit.poisoned),
            test: references(&self.audit.test),
            test_poisoned: reference(&self.audit.test_poisoned),
            threshold: self.audit.threshold,
            near: self.audit.near,
            cut: self.audit.cut,
            seed: self.seed.seed,
            precision: self.precision.precision,
        })
    }

    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        if let Some(share) = self.audit.fail_above.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(Error::new(format!("‹fail-above› {share}: must be between 0 and 1")));
        }
        let destination = Destination { dry_run: self.dry_run.dry_run, ..self.output.destination() };
        let text = |outcome: &_| report::outcome(outcome, &self.output.out);
        let outcome = console.perform(&self.job()?, &destination, report::plan, text)?;
        let found = outcome.map_or(0.0, |outcome| outcome.findings.estimated_noise);
        match self.audit.fail_above.filter(|share| found > *share) {
            None => Ok(()),
            Some(share) => Err(Error::check(format!(
                "the estimated share of wrong labels is {:.2} %, above {:.2} %",
                100.0 * found,
                100.0 * share
            ))),
        }
    }
}
