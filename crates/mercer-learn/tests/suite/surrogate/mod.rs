//! Machines in dual form against stationarity, refits and each other.

mod glm;
mod influence;
mod machine;
mod penalty;
mod refusals;
mod ridge;

use crate::machines::sets::{labels, rows};
use mercer_learn::softmax;
use mercer_learn::surrogate::{DualRows, PenaltyNorm, one_hot};
use ndarray::Array2;

const NORMS: [PenaltyNorm; 2] = [PenaltyNorm::Weights, PenaltyNorm::Function];

/// Features, their Gram matrix and targets.
struct Problem {
    features: Array2<f64>,
    gram: Array2<f64>,
    targets: Array2<f64>,
}

impl Problem {
    /// Smooth features of points in the plane, with classes by angle.
    fn new(n: usize, width: usize, n_classes: usize, name: &str) -> Self {
        let (x, directions) = (rows(n, 2, name), rows(3, width, "directions"));
        let features = Array2::from_shape_fn((n, width), |(i, j)| {
            (2.0 * (x[(i, 0)] * directions[(0, j)] + x[(i, 1)] * directions[(1, j)]) + 3.0 * directions[(2, j)]).sin()
        });
        let gram = features.dot(&features.t());
        let (_, targets) = one_hot(&labels(x.view(), n_classes)).unwrap();
        Self { features, gram, targets }
    }

    /// The same with uncertain targets.
    fn softened(mut self) -> Self {
        self.targets = softmax((&self.targets * 3.0).view());
        self
    }

    fn gram(&self) -> DualRows<'_> {
        DualRows::Gram(self.gram.view())
    }

    fn features(&self) -> DualRows<'_> {
        DualRows::Features(self.features.view())
    }

    fn both(&self) -> [DualRows<'_>; 2] {
        [self.gram(), self.features()]
    }
}

/// The largest difference.
fn apart(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    assert_eq!(a.dim(), b.dim());
    (a - b).iter().fold(0.0, |most: f64, d| if d.is_nan() { f64::NAN } else { most.max(d.abs()) })
}

fn size(a: &Array2<f64>) -> f64 {
    apart(a, &Array2::zeros(a.dim()))
}
