//! What an experiment is, and all of them.

use crate::options::Options;
use crate::report::Report;
use crate::{Fallible, eigen, explain, inside, kernels, limits, machines};

/// Something that an experiment needs from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// The four IDX files of MNIST.
    Mnist,
    /// The four IDX files of Fashion-MNIST, gzipped.
    FashionMnist,
    /// `train_images.npy`, `train_labels.npy`, and `images.npy`, `labels.npy` of the test set; images are `[samples, 32, 32, 3]`.
    Cifar10,
    /// A Python with cleanlab, for `--peers`; without one the comparison is left out.
    Cleanlab,
    /// A Python with dattri, for `--peers`; without one the comparison is left out.
    Dattri,
    /// A Python with WeightWatcher, for `--peers`; without one the comparison is left out.
    WeightWatcher,
    /// A folder that the user has; the text says what is in it.
    Folder(&'static str),
}

impl Needs {
    /// As the list and `--needs` print it; the folder of a set has the same name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::FashionMnist => "fashion-mnist",
            Self::Cifar10 => "cifar10",
            Self::Cleanlab => "cleanlab",
            Self::Dattri => "dattri",
            Self::WeightWatcher => "weightwatcher",
            Self::Folder(what) => what,
        }
    }
}

/// An experiment of a paper, or of our own.
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    /// The part of the page that it belongs to.
    pub(crate) group: &'static str,
    pub(crate) title: &'static str,
    /// Empty for our own.
    pub(crate) paper: &'static str,
    /// What is claimed.
    pub(crate) claim: &'static str,
    /// The numbers that the paper has for it; the tables repeat those that have a row.
    pub(crate) published: &'static str,
    /// What we compute, and what differs from the paper.
    pub(crate) setting: &'static str,
    /// Rough seconds on two cores.
    pub(crate) cost: u32,
    pub(crate) needs: &'static [Needs],
    /// Its own options, without the dashes.
    pub(crate) options: &'static [&'static str],
    /// Threads, unless told otherwise; 0 for all cores.
    pub(crate) threads: usize,
    pub(crate) run: fn(&Options) -> Fallible<Report>,
}

/// All experiments, in the order of the page.
pub(crate) const ALL: [&Experiment; 31] = [
    &eigen::line::EXPERIMENT,
    &eigen::growth::EXPERIMENT,
    &eigen::moons::EXPERIMENT,
    &eigen::tangent_kernel::EXPERIMENT,
    &eigen::mnist::EXPERIMENT,
    &eigen::codes::EXPERIMENT,
    &machines::functions::EXPERIMENT,
    &machines::boundaries::EXPERIMENT,
    &machines::widths::EXPERIMENT,
    &machines::posteriors::EXPERIMENT,
    &machines::laplace::EXPERIMENT,
    &machines::iterative::EXPERIMENT,
    &machines::tables::EXPERIMENT,
    &limits::circle::EXPERIMENT,
    &limits::rates::EXPERIMENT,
    &kernels::sketches::EXPERIMENT,
    &kernels::residuals::EXPERIMENT,
    &kernels::spectra::EXPERIMENT,
    &kernels::pseudo::EXPERIMENT,
    &kernels::regression::EXPERIMENT,
    &explain::surrogates::EXPERIMENT,
    &explain::kernels::EXPERIMENT,
    &explain::index::EXPERIMENT,
    &explain::label_audit::EXPERIMENT,
    &explain::datamodels::EXPERIMENT,
    &explain::poisoned::EXPERIMENT,
    &inside::probes::EXPERIMENT,
    &inside::training::EXPERIMENT,
    &inside::tangent::EXPERIMENT,
    &inside::tails::EXPERIMENT,
    &inside::shifts::EXPERIMENT,
];

/// The experiment of a name.
pub(crate) fn named(name: &str) -> Fallible<&'static Experiment> {
    let all = ALL.map(|experiment| experiment.name);
    let found = ALL.into_iter().find(|experiment| experiment.name == name);
    found.ok_or_else(|| format!("unknown experiment {name}; there are {}", all.join(", ")).into())
}
