//! The multinomial model in dual form.
//!
//! ```text
//! min Σᵢ vᵢ·CE(Tᵢ, softmax(s(xᵢ))) + ½λ·{‖W‖² | tr WᵀKW},    s_c(x) = Σᵢ W_ic κ(x, xᵢ) + b_c
//! ```
//!
//! The biases have no penalty; they sum to zero. Targets may be soft, such as the probabilities of a network. Solved by
//! Newton's method, see `newton`. Features take products with `Φ` and `Φᵀ` only.

use super::machine::{DualMachine, PenaltyNorm};
use super::newton::{Ended, Leading, Place, Problem, Space, Stop};
use super::rows::DualRows;
use super::targets::{check_boundary, importance, probabilities};
use crate::error::{Result, check_positive};
use crate::linear::Solved;
use mercer_run::Context;
use ndarray::{Array2, ArrayView2};

/// Multinomial logistic regression whose weights belong to training samples.
///
/// ```
/// use mercer_learn::surrogate::{DualGlm, DualRows, PenaltyNorm};
/// use ndarray::array;
/// let (features, targets) = (array![[-1.0], [0.5], [2.0]], array![[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]);
/// let rows = DualRows::Features(features.view());
/// let machine = DualGlm::new(0.1, PenaltyNorm::Function)?.fit(rows, targets.view(), &mercer_run::Context::new())?;
/// let scores = machine.scores(array![[-1.0, 0.5, 2.0]].view())?;
/// let shares = machine.attribute(&[-1.0, 0.5, 2.0], 1)?;
/// assert!((shares.iter().sum::<f64>() - scores[(0, 1)]).abs() < 1e-12);
/// # Ok::<(), mercer_learn::LearnError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualGlm {
    pub(super) penalty: f64,
    pub(super) norm: PenaltyNorm,
    pub(super) balanced: bool,
    pub(super) stop: Stop,
}

impl DualGlm {
    /// With this positive penalty `λ`.
    ///
    /// # Errors
    /// For a penalty that is not positive.
    pub fn new(penalty: f64, norm: PenaltyNorm) -> Result<Self> {
        let penalty = check_positive("the penalty", penalty)?;
        Ok(Self { penalty, norm, balanced: false, stop: Stop { tolerance: 1e-8, max_iterations: 100 } })
    }

    /// With weights that balance the classes.
    pub fn balanced(self) -> Self {
        Self { balanced: true, ..self }
    }

    /// Stops when a step changes no score by more than this, relative to the largest score (default `1e-8`), or after
    /// this many steps of Newton's method (default 100).
    ///
    /// # Errors
    /// For a tolerance that is not positive.
    pub fn until(self, tolerance: f64, max_iterations: usize) -> Result<Self> {
        let tolerance = check_positive("the tolerance", tolerance)?;
        Ok(Self { stop: Stop { tolerance, max_iterations }, ..self })
    }

    /// With another penalty.
    pub(super) fn with_penalty(self, penalty: f64) -> Result<Self> {
        Ok(Self { penalty: check_positive("the penalty", penalty)?, ..self })
    }

    /// Fits a machine to samples and targets, whose rows are probabilities.
    ///
    /// # Errors
    /// For samples or targets that cannot be used, a single class, a class without a share in any sample, an indefinite
    /// kernel, and numbers that overflow.
    pub fn fit<'a>(
        &self,
        rows: impl Into<DualRows<'a>>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<DualMachine> {
        let rows = rows.into();
        rows.check_for_fit()?;
        let targets = probabilities(targets, rows.n_samples())?;
        context.install(|| {
            let space = Space { rows, norm: self.norm };
            let leading = Leading::new(&space, targets.ncols(), context)?;
            let ended = self.solve(space, &targets, leading.as_ref(), None, context)?;
            self.machine(ended)
        })
    }

    /// Solves from a place, or from the start.
    pub(super) fn solve(
        &self,
        space: Space<'_>,
        targets: &Array2<f64>,
        leading: Option<&Leading>,
        from: Option<Place>,
        context: &Context,
    ) -> Result<Ended> {
        let importance = importance(targets, self.balanced);
        check_boundary(targets, &importance)?;
        let problem = Problem { space, targets, importance: &importance, penalty: self.penalty, leading };
        problem.minimise(from.unwrap_or_else(|| problem.start()), self.stop, context)
    }

    pub(super) fn machine(&self, ended: Ended) -> Result<DualMachine> {
        let Ended { place, weights, objective, iterations, converged } = ended;
        let solved = Solved { iterations, objective, converged, support_vectors: None };
        DualMachine::new(weights, place.bias, solved, self.penalty, self.norm)
    }
}
