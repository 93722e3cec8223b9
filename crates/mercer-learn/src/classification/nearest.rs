//! Nearest neighbours and class centres in the kernel's space.
//!
//! ```text
//! ‖φ(x) − φ(xᵢ)‖² = κ(x,x) − 2κ(x,xᵢ) + κ(xᵢ,xᵢ)
//! ‖φ(x) − m_c‖²   = κ(x,x) − 2·mean_i κ(x,xᵢ) + mean_ij κ(xᵢ,xⱼ)
//! ```
//!
//! `κ(x,x)` is the same in all distances of a sample, so neither machine needs it. Neighbours may instead be those with
//! the largest `κ(x,xᵢ)` ([`By`]). The two orders agree for kernels with a constant diagonal, such as normalised ones.
//! They differ for others, where a sample with a large `κ(xᵢ,xᵢ)` is similar to many samples but near none. Ties
//! between neighbours are broken by the order of the training samples, ties between classes in favour of the first.

use crate::classes::ClassSet;
use crate::error::{Result, check_size, setting};
use crate::repair::Repair;
use crate::samples::{SampleKind, SampleRows};
use crate::traits::{Classify, Fit, Predict};
use mercer_data::Classes;
use mercer_linalg::matmul;
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayViewD, CowArray, Ix2};
use serde::{Deserialize, Serialize};

/// What makes a training sample a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A small distance in the kernel's space.
    #[default]
    Distance,
    /// A large kernel value, as in explanations by example (Engel et al. 2023, arXiv 2305.14585, appendix J).
    Kernel,
}

mercer_run::named! {
    By, "measure":
    Distance = "distance", "Smallest distance in the kernel's space";
    Kernel = "kernel", "Largest kernel value";
}

/// Votes of the nearest training samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearestNeighbours {
    neighbours: usize,
    by: By,
}

impl NearestNeighbours {
    /// With this many neighbours, at least one, by distance.
    pub fn new(neighbours: usize) -> Result<Self> {
        match neighbours {
            0 => Err(setting("the number of neighbours", 0, "there must be at least one")),
            _ => Ok(Self { neighbours, by: By::default() }),
        }
    }

    /// With neighbours by this criterion.
    pub fn by(self, by: By) -> Self {
        Self { by, ..self }
    }
}

/// The machine of [`NearestNeighbours`]. Its scores are fractions of the votes.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    pub(crate) basis: SampleKind,
    pub(crate) count: usize,
    pub(crate) by: By,
    /// Features of the training samples, if it was fitted on features.
    pub(crate) features: Array2<f64>,
    /// `κ(xᵢ, xᵢ)`.
    pub(crate) squares: Array1<f64>,
    pub(crate) labels: Vec<usize>,
    pub(crate) classes: ClassSet,
    pub(crate) repairs: Vec<Repair>,
}

impl Neighbours {
    /// How many neighbours vote.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The class of every training sample, among those that have samples.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }
}

impl Fit<Classes> for NearestNeighbours {
    type Machine = Neighbours;

    fn learn(&self, samples: &SampleRows<'_>, labels: &Classes, _: &Context) -> Result<Neighbours> {
        samples.check_for_fit()?;
        check_size("the number of labels", samples.n_samples(), labels.indices().len())?;
        if self.neighbours > samples.n_samples() {
            return Err(setting("the number of neighbours", self.neighbours, "there are fewer samples"));
        }
        let (classes, labels) = ClassSet::from_labels(labels);
        let features = match samples {
            SampleRows::Features(features) => features.to_owned(),
            SampleRows::Gram(_) => Array2::zeros((0, 0)),
        };
        let (basis, squares, repairs) = (samples.basis(), samples.diagonal(), classes.repairs());
        Ok(Neighbours { basis, count: self.neighbours, by: self.by, features, squares, labels, classes, repairs })
    }
}

impl Neighbours {
    /// What makes a training sample a neighbour.
    pub fn chosen_by(&self) -> By {
        self.by
    }

    /// The nearest training samples of every sample, nearest first.
    pub fn nearest(&self, samples: &SampleRows<'_>) -> Result<Vec<Vec<usize>>> {
        let width = if self.basis == SampleKind::Gram { self.squares.len() } else { self.features.ncols() };
        samples.check_for_predict(self.basis, width)?;
        let kernel: CowArray<'_, f64, Ix2> = match samples {
            SampleRows::Gram(kernel) => CowArray::from(*kernel),
            SampleRows::Features(features) => CowArray::from(matmul(*features, self.features.t())),
        };
        let of_row = |row: ndarray::ArrayView1<'_, f64>| {
            let far = |(k, square): (&f64, &f64)| match self.by {
                By::Distance => square - 2.0 * k,
                By::Kernel => -k,
            };
            let distances: Vec<f64> = row.iter().zip(&self.squares).map(far).collect();
            let mut order: Vec<usize> = (0..distances.len()).collect();
            let compare = |a: &usize, b: &usize| distances[*a].total_cmp(&distances[*b]).then(a.cmp(b));
            if self.count < order.len() {
                order.select_nth_unstable_by(self.count, compare);
                order.truncate(self.count);
            }
            order.sort_unstable_by(compare);
            order
        };
        Ok(kernel.outer_iter().map(of_row).collect())
    }
}

impl Predict for Neighbours {
    fn predict(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        let nearest = self.nearest(samples)?;
        let mut votes = Array2::zeros((nearest.len(), self.classes.present().len()));
        for (row, nearest) in nearest.iter().enumerate() {
            nearest.iter().for_each(|&at| votes[(row, self.labels[at])] += 1.0 / self.count as f64);
        }
        Ok(votes)
    }

    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
        vec![("squares", self.squares.view().into_dyn())]
    }

    fn repairs(&self) -> &[Repair] {
        &self.repairs
    }
}

impl Classify for Neighbours {
    fn classes(&self) -> &ClassSet {
        &self.classes
    }

    fn probabilities(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        Ok(self.classes.spread(self.predict(samples)?))
    }
}

/// The class whose mean is nearest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NearestCentre;

/// The machine of [`NearestCentre`]. Its scores are `−½·distance²`, up to a term that is the same for all classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Centres {
    pub(crate) basis: SampleKind,
    /// The weights of training samples in a class mean, or the means of features, with a column per class.
    pub(crate) means: Array2<f64>,
    /// `‖m_c‖²`.
    pub(crate) squares: Array1<f64>,
    pub(crate) classes: ClassSet,
    pub(crate) repairs: Vec<Repair>,
}

impl Fit<Classes> for NearestCentre {
    type Machine = Centres;

    fn learn(&self, samples: &SampleRows<'_>, labels: &Classes, _: &Context) -> Result<Centres> {
        samples.check_for_fit()?;
        check_size("the number of labels", samples.n_samples(), labels.indices().len())?;
        let (classes, compact) = ClassSet::from_labels(labels);
        let n_classes = classes.present().len();
        let mut counts = vec![0_usize; n_classes];
        compact.iter().for_each(|&class| counts[class] += 1);
        let mut shares = Array2::zeros((compact.len(), n_classes));
        compact.iter().enumerate().for_each(|(at, &class)| shares[(at, class)] = 1.0 / counts[class] as f64);
        let images = matmul(samples.rows().t(), shares.view());
        let means = samples.weights(shares);
        let squares = match samples {
            SampleRows::Gram(_) => (&images * &means).sum_axis(ndarray::Axis(0)),
            SampleRows::Features(_) => means.mapv(|v| v * v).sum_axis(ndarray::Axis(0)),
        };
        let repairs = classes.repairs();
        Ok(Centres { basis: samples.basis(), means, squares, classes, repairs })
    }
}

impl Predict for Centres {
    fn predict(&self, samples: &SampleRows<'_>) -> Result<Array2<f64>> {
        samples.check_for_predict(self.basis, self.means.nrows())?;
        Ok(matmul(samples.rows(), self.means.view()) - &(&self.squares * 0.5))
    }

    fn numbers(&self) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
        vec![("means", self.means.view().into_dyn()), ("squares", self.squares.view().into_dyn())]
    }

    fn repairs(&self) -> &[Repair] {
        &self.repairs
    }
}

impl Classify for Centres {
    fn classes(&self) -> &ClassSet {
        &self.classes
    }
}
