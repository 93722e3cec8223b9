//! Ridge regression in dual form.
//!
//! ```text
//! min Σᵢ ‖f(xᵢ) − yᵢ‖² + λ‖f‖²        α = (K + λI)⁻¹(y − m),    f(x) = Σᵢ αᵢ κ(x, xᵢ) + m
//! ```
//!
//! `m` is the mean of the targets, or zero. With features the matrix `Φᵀ·Φ + λI` is factorised instead, and
//! `α = (y − m − Φw)/λ`. With classes as targets (rows with a single one) the largest score decides.

use super::factor::Factor;
use super::influence::RidgeInfluence;
use super::machine::{DualMachine, PenaltyNorm};
use super::rows::DualRows;
use crate::error::{LearnError, Result, check_positive, check_size};
use crate::linear::Solved;
use crate::regression::centre;
use crate::selection::{Selected, Strongest};
use mercer_linalg::check_finite;
use mercer_run::Context;
use ndarray::{Array2, ArrayView2};

/// Ridge regression whose weights belong to training samples.
///
/// ```
/// use mercer_learn::surrogate::{DualRidge, DualRows};
/// use ndarray::array;
/// let gram = array![[2.0, 1.0], [1.0, 2.0]];
/// let targets = array![[8.0], [0.0]];
/// let machine = DualRidge::new(1.0)?.fit(DualRows::Gram(gram.view()), targets.view(), &mercer_run::Context::new())?;
/// assert!((machine.weights()[(0, 0)] - 3.0).abs() < 1e-12);
/// # Ok::<(), mercer_learn::LearnError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualRidge {
    pub(super) penalty: f64,
    pub(super) centred: bool,
}

impl DualRidge {
    /// With this positive penalty `λ`.
    ///
    /// # Errors
    /// For a penalty that is not positive.
    pub fn new(penalty: f64) -> Result<Self> {
        Ok(Self { penalty: check_positive("the penalty", penalty)?, centred: false })
    }

    /// Centres the targets; their means are the biases.
    pub fn centred(self) -> Self {
        Self { centred: true, ..self }
    }

    /// Fits a machine to samples and targets, a row per sample.
    ///
    /// # Errors
    /// For samples or targets that cannot be used, and a matrix that cannot be factorised.
    pub fn fit<'a>(
        &self,
        rows: impl Into<DualRows<'a>>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<DualMachine> {
        let rows = rows.into();
        check(&rows, targets)?;
        context.install(|| {
            context.check()?;
            let factor = Factor::new(rows, None, self.penalty)?;
            context.check()?;
            let (bias, centred, mut repairs) = centre(targets, self.centred);
            repairs.extend(factor.repairs());
            let weights = factor.solve(centred.view())?;
            let objective = factor.penalty * (&weights * &centred).sum();
            let solved = Solved { iterations: 1, objective, converged: true, support_vectors: None };
            let machine = DualMachine::new(weights, bias, solved, self.penalty, PenaltyNorm::Function)?;
            Ok(machine.with_repairs(repairs))
        })
    }

    /// The penalty with the smallest exact leave-one-out squared error, over all targets; of equal ones the largest.
    /// Centred targets are centred again without the sample.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and for an empty list.
    pub fn choose<'a>(
        &self,
        penalties: &[f64],
        rows: impl Into<DualRows<'a>>,
        targets: ArrayView2<'_, f64>,
        context: &Context,
    ) -> Result<Selected> {
        let rows = rows.into();
        check(&rows, targets)?;
        context.install(|| {
            let normal = if let DualRows::Gram(_) = rows { None } else { Some(rows.normal()) };
            Selected::least(penalties, Strongest::Largest, |penalty| {
                context.check()?;
                let settings = Self { penalty: check_positive("the penalty", penalty)?, ..*self };
                let factor = Factor::new(rows, normal.as_ref(), penalty)?;
                let errors: Array2<f64> = RidgeInfluence::from_factor(&settings, factor, targets, context)?.errors();
                Ok(errors.iter().map(|e| e * e).sum::<f64>() / errors.len().max(1) as f64)
            })
        })
    }
}

/// Samples and targets that belong together, all finite.
pub(super) fn check(rows: &DualRows<'_>, targets: ArrayView2<'_, f64>) -> Result<()> {
    rows.check_for_fit()?;
    check_size("the number of targets", rows.n_samples(), targets.nrows())?;
    if targets.ncols() == 0 {
        return Err(LearnError::Empty { what: "targets" });
    }
    Ok(check_finite("the targets", targets)?)
}
