//! The flags of all machines, and which machine each is of.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mercer::Error;
use mercer::job::fit::{Link, MachineName, MachineSpec};
use mercer::learn::classification::By;

/// The names of the library.
pub(super) fn parse_machine() -> impl TypedValueParser<Value = MachineName> {
    let values = MachineName::ALL.map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|text| text.parse::<MachineName>())
}

/// The settings of all machines; those of others are refused.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub(super) struct Settings {
    /// ridge, sgd: the penalty; of several the best by leave-one-out, for ridge [default: 1, or 0.01 for sgd]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    alpha: Vec<f64>,

    /// ridge: solve by conjugate gradients with a preconditioner of this rank
    #[arg(long, value_name = "N")]
    rank: Option<usize>,

    /// ridge, process: fit what the targets differ from their mean by
    #[arg(long)]
    centred: bool,

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
    tune: bool,

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

impl Settings {
    /// A setting of another machine is refused instead of ignored.
    fn check(&self, machine: MachineName) -> Result<(), Error> {
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
                let names: Vec<&str> = machines.iter().map(|machine| machine.name()).collect();
                return Err(Error::new(format!("{flag} is a setting of {}, not of {machine}", names.join(" and "))));
            }
        }
        if machine == Sgd && self.alpha.len() > 1 {
            return Err(Error::new("--alpha: sgd takes one"));
        }
        Ok(())
    }

    /// The machine with what was said of it.
    pub(super) fn spec(&self, machine: MachineName) -> Result<MachineSpec, Error> {
        self.check(machine)?;
        let mut spec = MachineSpec::from(machine);
        match &mut spec {
            MachineSpec::Ridge { alpha, rank, centred } => {
                if !self.alpha.is_empty() {
                    alpha.clone_from(&self.alpha);
                }
                (*rank, *centred) = (self.rank, self.centred);
            }
            MachineSpec::LeastSquares { cutoff } => *cutoff = self.cutoff,
            MachineSpec::Flow { time } => *time = self.time,
            MachineSpec::Process { noise, centred, tune } => {
                (*noise, *centred, *tune) = (self.noise.unwrap_or(*noise), self.centred, self.tune);
            }
            MachineSpec::Glm { penalty, balanced } => {
                (*penalty, *balanced) = (self.penalty.unwrap_or(*penalty), self.balanced);
            }
            MachineSpec::Sgd { alpha, link } => {
                *alpha = self.alpha.first().copied().unwrap_or(*alpha);
                *link = if self.link == Some(LinkName::Softmax) { Link::Softmax } else { Link::Sigmoids };
            }
            MachineSpec::Logistic { penalty } => *penalty = self.penalty.unwrap_or(*penalty),
            MachineSpec::Svm { cost } => *cost = self.cost.unwrap_or(*cost),
            MachineSpec::Neighbours { neighbours, by } => {
                *neighbours = self.neighbours.unwrap_or(*neighbours);
                *by = if self.by == Some(ByName::Kernel) { By::Kernel } else { By::Distance };
            }
            MachineSpec::ProcessClassifier {} | MachineSpec::Centres {} => {}
        }
        Ok(spec)
    }
}
