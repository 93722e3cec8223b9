//! The space of functions in which a penalty is a plain norm: `s = R·u + b`, `½λ‖u‖²`.
//!
//! | norm | `u` | `R·u` | `⟨u, u'⟩` | `Rᵀ·s` |
//! |---|---|---|---|---|
//! | function | `W` | `K·u` | `uᵀK·u'` | `s` |
//! | weights | `W` | `K·u` | `uᵀu'` | `K·s` |
//!
//! A vector is kept with its image `R·u`, so that the inner product of `K` costs nothing. `K` of features is `Φ·(Φᵀ·x)`.

use crate::surrogate::machine::PenaltyNorm;
use crate::surrogate::rows::DualRows;
use mercer_linalg::LinearOperator;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, Zip};

#[derive(Clone, Copy)]
pub(crate) struct Space<'a> {
    pub(crate) rows: DualRows<'a>,
    pub(crate) norm: PenaltyNorm,
}

/// `u` and `R·u`, a row per training sample.
#[derive(Clone)]
pub(crate) struct Vector {
    pub(crate) own: Array2<f64>,
    pub(crate) image: Array2<f64>,
}

impl Vector {
    pub(crate) fn zeros(shape: (usize, usize)) -> Self {
        Self { own: Array2::zeros(shape), image: Array2::zeros(shape) }
    }

    pub(crate) fn add(&mut self, factor: f64, other: &Self) {
        self.own.scaled_add(factor, &other.own);
        self.image.scaled_add(factor, &other.image);
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.own.mapv_inplace(|v| v * factor);
        self.image.mapv_inplace(|v| v * factor);
    }
}

impl Space<'_> {
    /// The vector of these weights of training samples.
    pub(crate) fn vector(&self, own: Array2<f64>) -> Vector {
        Vector { image: self.rows.times(own.view()), own }
    }

    /// `Rᵀ·s`.
    pub(crate) fn adjoint(&self, s: Array2<f64>) -> Vector {
        match self.norm {
            PenaltyNorm::Function => self.vector(s),
            PenaltyNorm::Weights => self.vector(self.rows.times(s.view())),
        }
    }

    pub(crate) fn inner(&self, x: &Vector, y: &Vector) -> f64 {
        match self.norm {
            PenaltyNorm::Function => dot(&x.own, &y.image),
            PenaltyNorm::Weights => dot(&x.own, &y.own),
        }
    }
}

/// As an operator it is `R·Rᵀ`.
impl LinearOperator<f64> for Space<'_> {
    fn dim(&self) -> usize {
        self.rows.n_samples()
    }

    fn apply(&self, x: ArrayView1<'_, f64>, y: ArrayViewMut1<'_, f64>) {
        self.apply_block(x.insert_axis(Axis(1)), y.insert_axis(Axis(1)));
    }

    fn apply_block(&self, x: ArrayView2<'_, f64>, mut y: ArrayViewMut2<'_, f64>) {
        y.assign(&self.adjoint(x.to_owned()).image);
    }
}

/// `Σ xy`, in memory order.
pub(crate) fn dot(x: &Array2<f64>, y: &Array2<f64>) -> f64 {
    Zip::from(x).and(y).fold(0.0, |sum, x, y| sum + x * y)
}
