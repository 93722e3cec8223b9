//! The settings of each machine, with their help.

use crate::options::{FoldOptions, NEIGHBOURS, PENALTY, choice};
use mercer::job::fit::{Link, MachineSpec};
use mercer::learn::classification::By;

/// Calls a macro with the names of all machines: the variants of `MachineName`, and of the types below.
macro_rules! with_all {
    ($macro:ident) => {
        $macro!(Ridge, LeastSquares, Flow, Process, Glm, Sgd, Logistic, Svm, ProcessClassifier, Neighbours, Centres);
    };
}

pub(super) use with_all;

/// The flags of one machine.
pub(super) trait Settings: clap::Args {
    /// Two command lines.
    const EXAMPLES: &'static str;

    /// As data.
    fn spec(&self) -> MachineSpec;
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Ridge {
    #[arg(long, value_name = "NUMBERS", help = PENALTY, value_delimiter = ',', default_value = "1")]
    penalty: Vec<f64>,

    /// Solve by conjugate gradients with a preconditioner of this rank
    #[arg(long, value_name = "N")]
    rank: Option<usize>,

    /// Subtract the mean of the targets before the fit
    #[arg(long)]
    centred: bool,
}

impl Settings for Ridge {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit ridge --gram gram.zarr --labels targets.npy --penalty 0.01,0.1,1,10 -o machine
  mercer fit ridge --kernel 'rbf(lengthscale=2)' --data x.npy --labels y.npy --centred -o machine";

    fn spec(&self) -> MachineSpec {
        MachineSpec::Ridge { penalty: self.penalty.clone(), rank: self.rank, centred: self.centred }
    }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct LeastSquares {
    /// Drop singular values below this fraction of the largest [default: samples × 2.2e-16]
    #[arg(long, value_name = "SHARE")]
    cutoff: Option<f64>,
}

impl Settings for LeastSquares {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit least-squares --features phi.npy --labels targets.npy -o machine
  mercer fit least-squares --gram gram.npy --labels targets.npy --cutoff 1e-8 -o machine";

    fn spec(&self) -> MachineSpec {
        MachineSpec::LeastSquares { cutoff: self.cutoff }
    }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Flow {
    /// When to stop, as learning rate × steps
    #[arg(long, value_name = "TIME")]
    time: f64,
}

impl Settings for Flow {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit flow --time 100 --gram gram.npy --labels targets.npy -o machine
  mercer fit flow --time 10 --features phi.npy --labels targets.npy -o machine";

    fn spec(&self) -> MachineSpec {
        MachineSpec::Flow { time: Some(self.time) }
    }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Process {
    /// Variance of the observation noise
    #[arg(long, value_name = "VARIANCE", default_value_t = 0.1)]
    noise_variance: f64,

    /// Tune the kernel's parameters and the noise by marginal likelihood
    #[arg(long)]
    tune: bool,

    /// Subtract the mean of the targets before the fit
    #[arg(long)]
    centred: bool,
}

impl Settings for Process {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit process --kernel '1*rbf(lengthscale=2)' --tune --data x.npy --labels y.npy -o machine
  mercer fit process --features phi.npy --labels y.npy --noise-variance 0.01 -o machine";

    fn spec(&self) -> MachineSpec {
        let Self { noise_variance, tune, centred } = *self;
        MachineSpec::Process { noise_variance, centred, tune }
    }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Glm {
    #[arg(long, value_name = "NUMBERS", help = PENALTY, value_delimiter = ',', default_value = "1")]
    penalty: Vec<f64>,

    #[command(flatten)]
    folds: FoldOptions,

    /// Weight the samples so that every class counts the same
    #[arg(long)]
    balanced: bool,
}

impl Settings for Glm {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit glm --net model.onnx --kernel trace --data train.npz:x --labels train.npz:y -o machine
  mercer fit glm --features phi.npy --labels y.npy --penalty 0.1,1,10 -o probe";

    fn spec(&self) -> MachineSpec {
        let (penalty, folds) = (self.penalty.clone(), self.folds.folds);
        MachineSpec::Glm { penalty, folds, balanced: self.balanced }
    }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Sgd {
    #[arg(long, value_name = "NUMBERS", help = PENALTY, value_delimiter = ',', default_value = "0.01")]
    penalty: Vec<f64>,

    #[command(flatten)]
    folds: FoldOptions,

    /// Probabilities of three or more classes: normalised sigmoids, or softmax
    #[arg(long, value_name = "LINK", default_value_t = Link::Sigmoids, value_parser = choice::<Link>(), hide_possible_values = true)]
    link: Link,
}

impl Settings for Sgd {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit sgd --gram gram.npy --labels y.npy -o machine
  mercer fit sgd --features phi.npy --labels y.npy --penalty 0.001 --link softmax -o machine";

    fn spec(&self) -> MachineSpec {
        MachineSpec::Sgd { penalty: self.penalty.clone(), folds: self.folds.folds, link: self.link }
    }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Logistic {
    #[arg(long, value_name = "NUMBERS", help = PENALTY, value_delimiter = ',', default_value = "1")]
    penalty: Vec<f64>,

    #[command(flatten)]
    folds: FoldOptions,
}

impl Settings for Logistic {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit logistic --gram gram.npy --labels y.npy -o machine
  mercer fit logistic --features phi.npy --labels y.npy --penalty 0.1 -o machine";

    fn spec(&self) -> MachineSpec {
        MachineSpec::Logistic { penalty: self.penalty.clone(), folds: self.folds.folds }
    }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Svm {
    /// Cost C of margin violations; of several, the best by cross-validation
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1")]
    cost: Vec<f64>,

    #[command(flatten)]
    folds: FoldOptions,
}

impl Settings for Svm {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit svm --net model.onnx --kernel trace --data train.npz:x --labels train.npz:y -o machine
  mercer fit svm --gram gram.npy --labels y.npy --cost 0.1,1,10,100 -o machine";

    fn spec(&self) -> MachineSpec {
        MachineSpec::Svm { cost: self.cost.clone(), folds: self.folds.folds }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(super) struct ProcessClassifier {}

impl Settings for ProcessClassifier {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit process-classifier --kernel '4*rbf(lengthscale=2)' --data x.npy --labels y.npy -o machine
  mercer fit process-classifier --gram gram.npy --labels y.npy -o machine";

    fn spec(&self) -> MachineSpec {
        MachineSpec::ProcessClassifier {}
    }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Neighbours {
    #[arg(long, value_name = "N", help = NEIGHBOURS, default_value_t = 5)]
    neighbours: usize,

    /// Neighbours by smallest `distance` in the kernel's space, or by largest `kernel` value
    #[arg(long, value_name = "MEASURE", default_value_t = By::Distance, value_parser = choice::<By>(), hide_possible_values = true)]
    by: By,
}

impl Settings for Neighbours {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit neighbours --features eigenfunctions.npy --labels y.npy --neighbours 10 -o machine
  mercer fit neighbours --gram gram.npy --labels y.npy --by kernel -o machine";

    fn spec(&self) -> MachineSpec {
        MachineSpec::Neighbours { neighbours: self.neighbours, by: self.by }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Centres {}

impl Settings for Centres {
    const EXAMPLES: &'static str = "\
Examples:
  mercer fit centres --features eigenfunctions.npy --labels y.npy -o machine
  mercer fit centres --gram gram.npy --labels y.npy -o machine";

    fn spec(&self) -> MachineSpec {
        MachineSpec::Centres {}
    }
}
