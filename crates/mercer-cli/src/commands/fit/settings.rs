//! Which machine, and its settings.

use crate::failure::Failure;
use mercer::data::Classes;
use mercer::learn::classification::{BinaryLogistic, By, Glm, NearestCentre, NearestNeighbours, SgdGlm, Svm};
use mercer::learn::process::{ProcessClassification, ProcessRegression};
use mercer::learn::regression::{Decomposition, Filter, IterativeRidge, LeastSquares, Ridge};
use mercer::learn::{Fit, LearnError, Machine, Samples};
use ndarray::Array2;

/// The machines, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MachineName {
    /// Kernel ridge regression
    Ridge,
    /// Least squares through the pseudo-inverse
    LeastSquares,
    /// Gradient flow from zero, stopped at a time
    Flow,
    /// Gaussian process regression
    Process,
    /// Multinomial logistic regression in kernel rows or features
    Glm,
    /// One class against the others by stochastic gradient descent
    Sgd,
    /// Logistic regression of two classes in the kernel's space
    Logistic,
    /// Support vector machines, one class against the others
    Svm,
    /// Gaussian process classification
    ProcessClassifier,
    /// Votes of nearest neighbours
    Neighbours,
    /// Nearest class mean
    Centres,
}

impl MachineName {
    pub(crate) fn is_classifier(self) -> bool {
        !matches!(self, Self::Ridge | Self::LeastSquares | Self::Flow | Self::Process)
    }

    pub(super) fn name(self) -> String {
        use clap::ValueEnum;
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The settings of all machines; those of others are refused.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(crate) struct Settings {
    /// ridge, sgd: the penalty; of several the best by leave-one-out, for ridge [default: 1, or 0.01 for sgd]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    alpha: Vec<f64>,

    /// ridge: solve by conjugate gradients with a preconditioner of this rank
    #[arg(long, value_name = "N")]
    rank: Option<usize>,

    /// ridge, process: fit what the targets differ from their mean by
    #[arg(long)]
    pub(super) centred: bool,

    /// least-squares: leave out directions below this share of the largest [default: samples · 2.2e-16]
    #[arg(long, value_name = "SHARE")]
    cutoff: Option<f64>,

    /// flow: when to stop, as learning rate × steps
    #[arg(long, value_name = "TIME")]
    time: Option<f64>,

    /// process: the variance of the noise [default: 0.1]
    #[arg(long, value_name = "VARIANCE")]
    noise: Option<f64>,

    /// process: find the parameters of --kernel and the noise by marginal likelihood, from where they are
    #[arg(long)]
    pub(super) tune: bool,

    /// glm, logistic: the penalty, scikit-learn's 1/C [default: 1]
    #[arg(long, value_name = "NUMBER")]
    penalty: Option<f64>,

    /// glm: every class counts the same
    #[arg(long)]
    balanced: bool,

    /// svm: what a sample on the wrong side costs, C [default: 1]
    #[arg(long, value_name = "NUMBER")]
    cost: Option<f64>,

    /// neighbours: how many vote [default: 5]
    #[arg(long, value_name = "N")]
    neighbours: Option<usize>,

    /// neighbours: by least `distance` in the kernel's space or by largest `kernel`; they differ where κ(x,x) does [default: distance]
    #[arg(long, value_name = "WHAT")]
    by: Option<ByName>,

    /// sgd: probabilities of three classes and more as `sigmoids` made to sum to one or as `softmax` of the scores [default: sigmoids]
    #[arg(long, value_name = "WHAT")]
    link: Option<LinkName>,
}

/// What makes a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ByName {
    Distance,
    Kernel,
}

/// How scores become probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LinkName {
    Sigmoids,
    Softmax,
}

/// What is known of the samples.
pub(crate) enum Known {
    Classes(Classes),
    Numbers(Array2<f64>),
}

impl Known {
    pub(crate) fn n_samples(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.indices().len(),
            Self::Numbers(numbers) => numbers.nrows(),
        }
    }
}

/// A machine, and what is good to know of how it was found.
pub(crate) struct Fitted {
    pub(crate) machine: Machine,
    /// Such as `alpha 0.1 by leave-one-out`.
    pub(crate) notes: Vec<String>,
}

impl Settings {
    /// A setting of another machine is refused instead of ignored.
    pub(crate) fn check(&self, machine: MachineName) -> Result<(), Failure> {
        use MachineName::{Flow, Glm, LeastSquares, Logistic, Neighbours, Process, Ridge, Sgd, Svm};
        let given: [(&str, bool, &[MachineName]); 13] = [
            ("--alpha", !self.alpha.is_empty(), &[Ridge, Sgd]),
            ("--rank", self.rank.is_some(), &[Ridge]),
            ("--centred", self.centred, &[Ridge, Process]),
            ("--cutoff", self.cutoff.is_some(), &[LeastSquares]),
            ("--time", self.time.is_some(), &[Flow]),
            ("--noise", self.noise.is_some(), &[Process]),
            ("--tune", self.tune, &[Process]),
            ("--penalty", self.penalty.is_some(), &[Glm, Logistic]),
            ("--balanced", self.balanced, &[Glm]),
            ("--cost", self.cost.is_some(), &[Svm]),
            ("--neighbours", self.neighbours.is_some(), &[Neighbours]),
            ("--by", self.by.is_some(), &[Neighbours]),
            ("--link", self.link.is_some(), &[Sgd]),
        ];
        for (flag, given, machines) in given {
            if given && !machines.contains(&machine) {
                let names: Vec<String> = machines.iter().map(|machine| machine.name()).collect();
                let text = format!("{flag} is a setting of {}, not of {}", names.join(" and "), machine.name());
                return Err(Failure::new(text));
            }
        }
        if machine == Flow && self.time.is_none() {
            return Err(Failure::new("flow: when to stop?").hint("--time T, as learning rate × steps"));
        }
        if machine == Sgd && self.alpha.len() > 1 {
            return Err(Failure::new("--alpha: sgd takes one"));
        }
        if self.alpha.len() > 1 && self.rank.is_some() {
            return Err(Failure::new("--alpha: one, for conjugate gradients").hint("leave --rank out to try several"));
        }
        Ok(())
    }

    /// The variance of the noise, of a Gaussian process.
    pub(super) fn noise(&self) -> f64 {
        self.noise.unwrap_or(0.1)
    }

    /// With another noise.
    pub(super) fn with_noise(&self, noise: f64) -> Self {
        Self { noise: Some(noise), ..self.clone() }
    }

    /// Learns.
    pub(crate) fn fit(
        &self,
        machine: MachineName,
        samples: &Samples<'_>,
        known: &Known,
        seed: u64,
    ) -> Result<Fitted, Failure> {
        let mut notes = Vec::new();
        let machine = match known {
            Known::Numbers(targets) => self.regression(machine, samples, targets, seed, &mut notes),
            Known::Classes(classes) => self.classifier(machine, samples, classes, seed, &mut notes),
        };
        Ok(Fitted { machine: machine?, notes })
    }

    fn regression(
        &self,
        machine: MachineName,
        samples: &Samples<'_>,
        targets: &Array2<f64>,
        seed: u64,
        notes: &mut Vec<String>,
    ) -> Result<Machine, LearnError> {
        Ok(match machine {
            MachineName::LeastSquares => {
                let method = LeastSquares::new();
                let method = self.cutoff.map_or(Ok(method.clone()), |cutoff| method.with_cutoff(cutoff))?;
                method.fit(samples, targets)?.into()
            }
            MachineName::Flow => {
                let filter = Filter::Flow { time: self.time.unwrap_or(0.0) };
                Decomposition::new(samples)?.fit(&filter, targets.view())?.into()
            }
            MachineName::Process => {
                let process = ProcessRegression::new(self.noise())?;
                let process = if self.centred { process.centred() } else { process };
                let found = process.fit(samples, targets)?;
                notes.push(format!("log marginal likelihood {:.6}", found.log_likelihood()));
                found.into()
            }
            _ => self.ridge(samples, targets, seed, notes)?,
        })
    }

    fn ridge(
        &self,
        samples: &Samples<'_>,
        targets: &Array2<f64>,
        seed: u64,
        notes: &mut Vec<String>,
    ) -> Result<Machine, LearnError> {
        let alpha = match self.alpha[..] {
            [] => 1.0,
            [alpha] => alpha,
            _ => {
                let (alpha, error) = Decomposition::new(samples)?.best_alpha(&self.alpha, targets.view())?;
                notes.push(format!("alpha {alpha} by leave-one-out, mean squared error {error:.6e}"));
                alpha
            }
        };
        if let Some(rank) = self.rank {
            let method = IterativeRidge::new(alpha, 1e-10)?.precondition(rank, seed);
            let found = (if self.centred { method.centred() } else { method }).fit(samples, targets)?;
            notes.push(format!("{} products, relative residual {:.1e}", found.iterations, found.residual));
            return Ok(found.machine.into());
        }
        let ridge = Ridge::new(alpha)?;
        Ok((if self.centred { ridge.centred() } else { ridge }).fit(samples, targets)?.into())
    }

    fn classifier(
        &self,
        machine: MachineName,
        samples: &Samples<'_>,
        classes: &Classes,
        seed: u64,
        notes: &mut Vec<String>,
    ) -> Result<Machine, LearnError> {
        let linear = match machine {
            MachineName::Sgd => {
                let sgd = SgdGlm::new(seed);
                let sgd = if self.link == Some(LinkName::Softmax) { sgd.softmax() } else { sgd };
                self.alpha.first().map_or(Ok(sgd), |&alpha| sgd.with_alpha(alpha))?.fit(samples, classes)?
            }
            MachineName::Logistic => BinaryLogistic::new(self.penalty.unwrap_or(1.0))?.fit(samples, classes)?,
            MachineName::Svm => Svm::new(self.cost.unwrap_or(1.0))?.fit(samples, classes)?,
            MachineName::ProcessClassifier => {
                let found = ProcessClassification.fit(samples, classes)?;
                notes.push(format!("log marginal likelihood {:.6}", found.log_likelihood()));
                return Ok(found.into());
            }
            MachineName::Neighbours => {
                let by = if self.by == Some(ByName::Kernel) { By::Kernel } else { By::Distance };
                let method = NearestNeighbours::new(self.neighbours.unwrap_or(5))?.by(by);
                notes.push(format!("neighbours by {by}"));
                return Ok(method.fit(samples, classes)?.into());
            }
            MachineName::Centres => return Ok(NearestCentre.fit(samples, classes)?.into()),
            _ => {
                let glm = Glm::new(self.penalty.unwrap_or(1.0))?;
                (if self.balanced { glm.balanced() } else { glm }).fit(samples, classes)?
            }
        };
        let solved = linear.solved();
        notes.push(format!("objective {:.6} after {} iterations", solved.objective, solved.iterations));
        if !solved.converged {
            notes.push("the solver stopped before its tolerance: this is the best it found".to_owned());
        }
        Ok(linear.into())
    }
}
