//! `mercer eigen METHOD`: the eigenvalues and eigenfunctions of a kernel.

mod learn;
mod pairs;
mod report;
mod solve;
mod source;

use crate::console::Console;
use mercer::Error;
use mercer::job::{Destination, EigenJob};
use source::ResultOptions;

const EXAMPLES: &str = "\
Examples:
  mercer eigen exact --kernel 'polynomial(degree=4, bias=1.5)' --data x.npy -k 10 -o functions
  mercer eigen lanczos --gram gram.zarr -k 50 -o spectrum
  mercer predict --from functions --data new.npy -o psi.npy       evaluate the functions on new samples
  mercer help eigen                                               conventions, and the files that are written";

const MORE: &str = "\
With N samples and K u = λ u, the eigenvalues are μ = λ/N and the eigenfunctions are ψ(x_n) = √N u_n. They are
orthonormal under the data, and κ(x, x') = Σ μ_j ψ_j(x) ψ_j(x'). The sign of a function is chosen so that it is positive
where its magnitude first reaches half of its maximum.

Learnt functions (spin, neuralef, shared, contrastive) are refined by Rayleigh–Ritz at the end. The folder also keeps
them as they were before: `mercer predict --from DIR/before` evaluates those.

Functions are ordered, so the first few numbers of a sample are a shorter code for it. With --labels and --test-labels,
codes of several lengths are scored: every sample of --test is classified, and looked up, by the samples of --data.

Files in the output folder:
  values.npy         the eigenvalues μ
  psi_data.npy       the functions on --data: one row per sample, or per sample and output
  psi.npy            the functions on --test
  functions.svg      a figure
  result.json        everything that was found
  run.json           how it was made, for `mercer replay`
  folder.json        the functions themselves, for `mercer predict --from`, with their preprocessing
  psi.onnx           the functions as one network, if they were learnt";

fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{MORE}")
}

/// Find the leading eigenvalues and eigenfunctions of a kernel
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = after_long_help(), disable_help_subcommand = true)]
pub(crate) struct EigenArguments {
    #[command(subcommand)]
    method: Method,
}

/// How the functions are found; each method has its own settings.
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_value_name = "METHOD", subcommand_help_heading = "Methods")]
enum Method {
    Exact(Box<solve::Exact>),
    Lanczos(Box<solve::Lanczos>),
    Randomised(Box<solve::Randomised>),
    Nystrom(Box<solve::Nystrom>),
    Rff(Box<solve::Rff>),
    Spin(Box<learn::Spin>),
    Neuralef(Box<learn::Neuralef>),
    Shared(Box<learn::Shared>),
    Contrastive(Box<learn::Contrastive>),
}

impl Method {
    fn job(&self) -> Result<EigenJob, Error> {
        Ok(match self {
            Self::Exact(method) => method.job(),
            Self::Lanczos(method) => method.job(),
            Self::Randomised(method) => method.job(),
            Self::Nystrom(method) => method.job()?,
            Self::Rff(method) => method.job(),
            Self::Spin(method) => method.job(),
            Self::Neuralef(method) => method.job(),
            Self::Shared(method) => method.job(),
            Self::Contrastive(method) => method.job(),
        })
    }

    /// Settings shared by all methods, and whether to resume a run.
    fn results(&self) -> (&ResultOptions, bool) {
        match self {
            Self::Exact(method) => (method.of.results(), false),
            Self::Lanczos(method) => (method.of.results(), false),
            Self::Randomised(method) => (method.of.results(), false),
            Self::Nystrom(method) => (&method.of.results, false),
            Self::Rff(method) => (&method.of.results, false),
            Self::Spin(method) => (method.of.results(), method.resume.resume),
            Self::Neuralef(method) => (method.of.results(), method.resume.resume),
            Self::Shared(method) => (method.of.results(), method.resume.resume),
            Self::Contrastive(method) => (&method.results, method.resume.resume),
        }
    }
}

impl EigenArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let (results, resume) = self.method.results();
        let destination = Destination { resume, dry_run: results.dry_run.dry_run, ..results.output.destination() };
        let text = |outcome: &_| report::outcome(outcome, &results.output.out);
        console.perform(&self.method.job()?, &destination, report::plan, text).map(drop)
    }
}
